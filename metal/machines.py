"""Machines as scenarios see them: commands, files, power, links, drives, blocks; the same on the lab and under qemu.

Everything that is done to them and everything that they say goes through here, so that it is told (``Journal``) and
recorded in the format that ``quorate lab recordings`` replays.
"""

from __future__ import annotations

import abc
import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from metal.errors import Failed
from metal.journal import Journal
from quorate.engine.store import Store

BLOCK = 4096
MIB = 1 << 20
#: The size of every drive.
DRIVE = 1 << 30


@dataclass(frozen=True, slots=True)
class Said:
    """What a command came to. ``exit`` is None while it runs, or when nobody will ever hear of it."""

    exit: int | None
    output: str


@dataclass(frozen=True, slots=True)
class Written:
    """One write of a writer: which block, when it began and ended, and how: ``ok``, an error, or ``""``, unanswered."""

    block: int
    began: float
    ended: float
    result: str


@dataclass
class Writer:
    """Somebody who writes one block after the other, each with its number and a tag."""

    node: str
    device: str
    tag: str
    writes: list[Written] = field(default_factory=list)
    #: Ends it; what waits in the kernel goes on waiting.
    stop: Callable[[], Awaitable[None]] = field(default=lambda: asyncio.sleep(0))

    def acknowledged(self) -> list[int]:
        """The blocks whose writer was told that they are written."""
        return [each.block for each in self.writes if each.result == "ok"]


class Running(abc.ABC):
    """A command that was begun."""

    @abc.abstractmethod
    async def wait(self, seconds: float) -> Said:
        """What it has come to in so many seconds."""

    @abc.abstractmethod
    async def kill(self) -> None:
        """End it, if it can be ended."""


class Machines(abc.ABC):
    """A few machines, all on one wire, each with drives; agents and a server only if ``agents`` was asked for."""

    #: What kind of machines these are, for people.
    kind: str = ""
    #: How much longer than on bare hardware everything may take.
    patience: float = 1.0

    def __init__(self, nodes: Iterable[str], journal: Journal) -> None:
        self.nodes = tuple(nodes)
        self.journal = journal
        #: Directions that are cut.
        self.cut_ways: set[tuple[str, str]] = set()

    # --- what differs ---

    @property
    @abc.abstractmethod
    def store(self) -> Store:
        """The API, where there are agents."""

    @abc.abstractmethod
    def now(self) -> float:
        """Seconds since the machines were there."""

    @abc.abstractmethod
    async def sleep(self, seconds: float) -> None:
        """Let time pass."""

    @abc.abstractmethod
    def _start(self, node: str, command: str) -> Running: ...

    @abc.abstractmethod
    async def _write_file(self, node: str, path: str, data: bytes) -> None: ...

    @abc.abstractmethod
    async def _set_ways(self, ways: Iterable[tuple[str, str]], *, up: bool) -> None: ...

    @abc.abstractmethod
    async def _power(self, node: str, *, on: bool) -> None: ...

    @abc.abstractmethod
    async def _ends(self, node: str, seconds: float) -> bool: ...

    @abc.abstractmethod
    async def _shut_down(self, node: str) -> None: ...

    @abc.abstractmethod
    async def kill_agent(self, node: str) -> None:
        """Kill a node's agent; it is started again at once."""

    @abc.abstractmethod
    async def stop_agent(self, node: str) -> None:
        """Let a node be without its agent, until :meth:`start_agent`."""

    @abc.abstractmethod
    async def start_agent(self, node: str) -> None:
        """Let it have one again."""

    @abc.abstractmethod
    async def kill_agents_at_commands(self, nodes: Iterable[str]) -> None:
        """From now on, agents die once before and once after each new command that changes something."""

    @abc.abstractmethod
    async def deaths(self, node: str) -> list[str]:
        """Before and after which commands a node's agent has died so."""

    @abc.abstractmethod
    async def _read_blocks(self, node: str, device: str, blocks: Iterable[int]) -> list[str]: ...

    @abc.abstractmethod
    async def _start_writer(
        self, node: str, device: str, tag: str, *, first: int, pause: float, sync: bool
    ) -> Writer: ...

    @abc.abstractmethod
    def drives(self, node: str) -> tuple[str, ...]:
        """The serial numbers of the drives that are in a node."""

    @abc.abstractmethod
    async def pull(self, node: str, serial: str) -> None:
        """Take a drive out."""

    @abc.abstractmethod
    async def plug(self, node: str, serial: str) -> None:
        """Put a drive in: a new, empty one, or one that was taken out."""

    @abc.abstractmethod
    async def kernel_lines(self, node: str) -> list[str]:
        """What the kernel has said, as far as the machine still knows."""

    @abc.abstractmethod
    async def close(self) -> None:
        """End everything."""

    # --- what is the same ---

    async def run(self, node: str, command: str, *, seconds: float = 30.0) -> Said:
        """Have a shell command done; one that does not end in time is told as such."""
        return await self.finish(node, command, self.start(node, command), seconds)

    def start(self, node: str, command: str) -> Running:
        """Begin a shell command that may wait. Hand it to :meth:`finish`."""
        self.journal.tell(self.now(), node, f"$ {command}")
        return self._start(node, command)

    async def finish(self, node: str, command: str, running: Running, seconds: float) -> Said:
        """Wait for a command, tell and record what it came to."""
        said = await running.wait(seconds * self.patience)
        if said.exit is None:
            self.journal.tell(self.now(), node, f"... still runs after {seconds:g} s: {command}")
            await running.kill()
        else:
            self.journal.command(self.now(), node, command, said.exit, said.output)
        return said

    async def expect(self, node: str, command: str, *, seconds: float = 30.0) -> str:
        """Have a command done that must work; what it said. Raises Failed."""
        said = await self.run(node, command, seconds=seconds)
        if said.exit != 0:
            raise Failed(f"{node}: {command}: exit {said.exit}\n{said.output}")
        return said.output

    async def write_file(self, node: str, path: str, content: str | bytes) -> None:
        """Put a file there; one that is no text is not recorded."""
        if isinstance(content, str):
            self.journal.file(self.now(), node, path, content)
            content = content.encode()
        await self._write_file(node, path, content)

    async def status(self, node: str, label: str, resource: str = "") -> list[dict[str, Any]]:
        """What DRBD says of itself; recorded."""
        said = await self._start(node, f"drbdsetup status --json {resource}".strip()).wait(30 * self.patience)
        if said.exit != 0:
            self.journal.tell(self.now(), node, f"drbdsetup status: exit {said.exit}: {said.output}")
            return []
        found: list[dict[str, Any]] = msgspec.json.decode(said.output)
        self.journal.status(self.now(), node, label, found)
        return found

    async def cut(self, one: str, other: str, *, one_way: bool = False) -> None:
        """Let frames from one to the other get lost, and back unless only one way is meant."""
        await self._change({(one, other)} | (set() if one_way else {(other, one)}), up=False)

    async def isolate(self, node: str) -> None:
        """Cut a node off from all others."""
        await self._change(
            {way for each in self.nodes if each != node for way in ((node, each), (each, node))}, up=False
        )

    async def heal(self, *pairs: tuple[str, str]) -> None:
        """Mend these links; all of them when none is named."""
        named = {way for one, other in pairs for way in ((one, other), (other, one))}
        await self._change(self.cut_ways & named if pairs else set(self.cut_ways), up=True)

    async def _change(self, ways: set[tuple[str, str]], *, up: bool) -> None:
        (self.cut_ways.difference_update if up else self.cut_ways.update)(ways)
        self.journal.network(self.now(), sorted(self.cut_ways))
        await self._set_ways(sorted(ways), up=up)

    async def power_off(self, node: str) -> None:
        """Take a node's power away, all at once."""
        self.journal.power(self.now(), node, on=False)
        await self._power(node, on=False)

    async def power_on(self, node: str) -> None:
        """Give it back, and wait until it has booted."""
        await self._power(node, on=True)
        self.journal.power(self.now(), node, on=True)

    async def told_to_end(self, node: str, command: str, seconds: float) -> float | None:
        """Have a machine end by itself, by ``reboot -f`` say; after how many seconds it did, None: it did not."""
        began = self.now()
        self.start(node, command)
        if not await self._ends(node, seconds * self.patience):
            self.journal.tell(self.now(), node, f"has not ended after {self.now() - began:.1f} s")
            return None
        self.journal.power(self.now(), node, on=False)
        return self.now() - began

    async def shut_down(self, node: str, seconds: float) -> float | None:
        """Have a machine end in order, the shipped unit with it; after how many seconds it did, None: it did not."""
        began = self.now()
        self.journal.tell(began, node, "is told to end in order")
        await self._shut_down(node)
        if not await self._ends(node, seconds * self.patience):
            self.journal.tell(self.now(), node, f"has not ended after {self.now() - began:.1f} s")
            return None
        self.journal.power(self.now(), node, on=False)
        return self.now() - began

    async def read_blocks(self, node: str, device: str, blocks: Iterable[int]) -> list[str]:
        """What is in these blocks of a device: ``number.tag``, ``-`` for an empty one, ``?`` for anything else."""
        wanted = list(blocks)
        found = await self._read_blocks(node, device, wanted)
        shown = ", ".join(f"{block}: {text}" for block, text in zip(wanted, found, strict=True))
        self.journal.tell(self.now(), node, f"blocks of {device}: {shown}")
        return found

    async def start_writer(self, node: str, device: str, tag: str, *, first: int, pause: float, sync: bool) -> Writer:
        """Begin to write blocks from ``first`` on, directly; with ``sync`` each flushed (O_DSYNC). Stop it."""
        said = await self._start(node, "drbdsetup status --json").wait(30 * self.patience)
        resources = msgspec.json.decode(said.output) if said.exit == 0 else []
        minors = {device["minor"]: each["name"] for each in resources for device in each["devices"]}
        resource = minors.get(int(device.removeprefix("/dev/drbd")), "")
        self.journal.writer(self.now(), node, resource, first, pause)
        writer = await self._start_writer(node, device, tag, first=first, pause=pause, sync=sync)
        end = writer.stop
        ended: list[bool] = []

        async def stop() -> None:
            await end()
            if not ended:
                ended.append(True)
                rows = [(each.block, each.began, each.ended, each.result) for each in writer.writes]
                self.journal.writes(self.now(), node, resource, rows)

        writer.stop = stop
        return writer

    async def until(
        self, what: str, check: Callable[[], Awaitable[object]], seconds: float, every: float = 0.5
    ) -> float:
        """Wait for something; how long it took. Raises Failed."""
        began = self.now()
        while not await check():
            if self.now() - began > seconds * self.patience:
                raise Failed(f"{what}: not within {seconds * self.patience:.0f} s")
            await self.sleep(every)
        took = self.now() - began
        self.journal.tell(self.now(), "", f"after {took:.1f} s: {what}")
        return took


def block_text(number: int, tag: str) -> bytes:
    """What a writer puts into a block."""
    return f"{number}.{tag}\n".encode().ljust(BLOCK, b"\0")


def block_name(data: bytes) -> str:
    """What a block holds, for people."""
    if not data.strip(b"\0"):
        return "-"
    head = data.partition(b"\n")[0]
    return head.decode() if len(head) <= 40 and head.isascii() and b"." in head else "?"
