"""The recorder's writer: one block after another on a DRBD device, one in flight, each with its number in it.

It was no program of the recorded machines that a shell here could run, so that the replay is the writer, at the moments
at which the recording says that each write was begun.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from quorate.lab.host import Host
from quorate.lab.kernel.block import BLOCK
from quorate.lab.kernel.io import Io, IoState
from quorate.lab.recordings.compare_status import Difference
from quorate.lab.recordings.recording import Blocks, Command, File, Network, Recording, Writes

_COMMAND = re.compile(r"writer (?P<resource>\S+) from block (?P<first>\d+) every (?P<pause>[\d.]+) s$")
_WAIT = re.compile(r"\bwpid\d")
_READ = re.compile(r"python3 -S -E /opt/blocks\.py (?P<device>\S+) (?P<count>\d+) \| tr ' ' '\\n' \| tail -n 1$")
_AGAIN = re.compile(
    r"python3 -S -E /opt/writer\.py /dev/drbd(?P<minor>\d+) \S+ \S+ (?P<first>\d+) (?P<pause>[\d.]+) 1; sync$"
)
_MINOR = re.compile(r"\bdevice minor (\d+);")
_DISK = re.compile(r"\bon (?P<node>\S+) \{.*?\bdisk (?P<disk>\S+);", re.DOTALL)
_START = 0.3
_IN_FLIGHT = 0.001
_UNTIL_BLOCKED = 10_000


@dataclass
class Order:
    """What one writer is to do: blocks, and when each is begun, in seconds of the recording."""

    node: str
    resource: str
    begins: list[tuple[int, float]]


def order(recording: Recording, index: int) -> Order | None:
    """What the command at that place asks for; None if it is not a writer's."""
    step = recording.steps[index]
    match = _COMMAND.match(step.command) if isinstance(step, Command) else None
    if match is None:
        return None
    assert isinstance(step, Command)
    resource, first = match["resource"], int(match["first"])
    later = [
        other
        for other in recording.steps[index:]
        if isinstance(other, Writes) and (other.node, other.resource) == (step.node, resource)
    ]
    cuts = [other.at for other in recording.steps if isinstance(other, Network) and other.cut and other.at is not None]
    begins = [
        (block, _after_the_cut(at, ended, cuts))
        for block, at, ended, _ in (later[-1].writes if later else ())
        if at is not None and block >= first
    ]
    if not begins:
        start, pause = (step.at or 0.0) + _START, float(match["pause"])
        begins = [(first + count, start + count * pause) for count in range(_UNTIL_BLOCKED)]
    return Order(step.node, resource, begins)


def _after_the_cut(begun: float, ended: float | None, cuts: list[float]) -> float:
    """When a write is begun here, where it takes no time: one that a cut caught in flight, just after the cut."""
    caught = [cut for cut in cuts if begun <= cut and (ended is None or cut <= ended)]
    return caught[0] + _IN_FLIGHT if caught else begun


@dataclass
class RecordedWriter:
    """A writer at work. One whose moments are not recorded ends with the first write that has to wait."""

    host: Host
    order: Order
    minor: int
    began: float
    scripted: bool
    writes: list[tuple[int, Io]] = field(default_factory=list)
    _pid: int = 0

    def start(self) -> None:
        """Open the device, and begin when it is time."""
        self._pid = 50_000 + self.minor
        if self.host.kernel.open(self.minor, "writer", self._pid):
            self._next(0)

    def _next(self, number: int) -> None:
        world = self.host.world
        if number == len(self.order.begins):
            self.host.kernel.close(self.minor, self._pid)
            return
        world.at(self.began + self.order.begins[number][1], lambda: self._write(number))

    def _write(self, number: int) -> None:
        if not self.host.powered:
            return
        block = self.order.begins[number][0]
        tag = f"{block}.{self.host.name.removeprefix('n')}"
        io = self.host.kernel.write(self.minor, block * BLOCK, BLOCK, tag)
        self.writes.append((block, io))
        following = number + 1 if self.scripted or not io.blocked else len(self.order.begins)
        if io.blocked:
            io.when_settled = lambda _io: self.host.world.soon(lambda: self._next(following))
        else:
            self._next(following)


def minor_of(recording: Recording, resource: str) -> int:
    """The device of a resource."""
    return int(_MINOR.findall(_text(recording, resource))[0])


def _text(recording: Recording, resource: str) -> str:
    files = (step for step in recording.steps if isinstance(step, File))
    return next((step.text for step in files if step.path.endswith(f"/{resource}.res")), "")


def compare_writes(step: Writes, writers: list[RecordedWriter]) -> Iterator[Difference]:
    """Whether the same writes were acknowledged by then."""
    told = {block for block, _, _, how in step.writes if how == "ok"}
    first = min((block for block, _, _, _ in step.writes), default=0)
    seen = {
        block
        for writer in writers
        if (writer.order.node, writer.order.resource) == (step.node, step.resource)
        for block, io in writer.writes
        if io.state is IoState.DONE and block >= first
    }
    if told != seen:
        yield Difference("acknowledged, and only there", sorted(told - seen), sorted(seen - told))


def compare_blocks(step: Blocks, recording: Recording, host: Host) -> Iterator[Difference]:
    """Whether the backing device holds the same, block by block."""
    disks = {match["node"]: match["disk"] for match in _DISK.finditer(_text(recording, step.resource))}
    device = host.block_device(disks.get(step.node, ""))
    if device is None:
        yield Difference("backing device", "there", "none")
        return
    tags = [device.read(number * BLOCK) for number in range(len(step.blocks))]
    seen = ["-" if tag is None else str(tag) for tag in tags]
    different = [(told, has) for told, has in zip(step.blocks, seen, strict=True) if told != has]
    if different:
        yield Difference("blocks", [told for told, _ in different], [has for _, has in different])


def own_program(step: Command, host: Host) -> list[Difference] | None:
    """Do what a command of the recorder's own programs does; None if it is not one of them."""
    if _WAIT.search(step.command):
        return []  # until the writers have ended: nobody has to wait for them here
    if match := _READ.search(step.command):
        return list(_read(step, host, match["device"], int(match["count"]) - 1))
    if match := _AGAIN.search(step.command):
        kernel, minor = host.kernel, int(match["minor"])
        if kernel.open(minor, "writer", 60_000 + minor):
            for number in range(round(1 / float(match["pause"]))):
                block = int(match["first"]) + number
                kernel.write(minor, block * BLOCK, BLOCK, f"{block}.1")
            kernel.close(minor, 60_000 + minor)
        return []
    return None


def _read(step: Command, host: Host, path: str, block: int) -> Iterator[Difference]:
    minor, device = host.minor(path), host.block_device(path)
    if minor is not None:
        tag = host.kernel.read(minor, block * BLOCK).result
    else:
        tag = device.read(block * BLOCK) if device is not None else None
    seen = "-" if tag is None else str(tag)
    if step.output.strip() != seen:
        yield Difference("block", step.output.strip(), seen)
