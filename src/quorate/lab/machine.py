"""A simulated node as its agent sees it: :class:`quorate.agent.machine.Machine` over a lab host.

Commands take a moment, before and after they act: others act meanwhile, and power may go when a command has done its
work and nobody has heard of it yet. The lengths come from a seed. ``Interference`` makes commands slow, or lets them
hang in the kernel.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import suppress
from random import Random
from typing import Any, TypeVar

from quorate.agent.machine import CommandHung, CommandNotFound, Completed, FileBeneath
from quorate.lab import sysfs
from quorate.lab.driver import Driver
from quorate.lab.host import Host, HostDown, Running

T = TypeVar("T")

#: Seconds that a command takes at most before it acts, and as much again before its caller hears of it.
_MOMENT = 0.005


class Interference:
    """What keeps a node's commands from running as they should."""

    def __init__(self) -> None:
        #: By the beginning of a command, the seconds by which it is late.
        self.slow: dict[str, float] = {}
        #: Beginnings of commands that hang.
        self.hanging: set[str] = set()
        self._released = asyncio.Event()

    def lateness(self, argv: Sequence[str]) -> float:
        """The seconds by which a command is late."""
        return max((seconds for words, seconds in self.slow.items() if _begins(argv, words)), default=0.0)

    def hold(self, argv: tuple[str, ...]) -> asyncio.Event | None:
        """What a command that hangs waits for; None: it does not hang."""
        return self._released if any(_begins(argv, words) for words in self.hanging) else None

    def release(self) -> None:
        """Nothing hangs and nothing is slow any more."""
        self.slow.clear()
        self.hanging.clear()
        self._released.set()
        self._released = asyncio.Event()


def _begins(argv: Sequence[str], words: str) -> bool:
    said = " ".join((argv[0].rpartition("/")[2], *argv[1:]))
    return said == words or said.startswith(f"{words} ")


class LabMachine:
    """One boot of a host, for one agent process. After :meth:`disconnect` nothing it is asked for happens."""

    def __init__(self, host: Host, driver: Driver, interference: Interference, random: Random) -> None:
        self._host = host
        self._driver = driver
        self._interference = interference
        self._random = random
        self._gone = False
        #: What somebody waits for, in the order in which they came.
        self._awaited: dict[asyncio.Future[None], None] = {}

    def disconnect(self) -> None:
        """The agent that has this machine is no more: whatever it waits for ends."""
        self._gone = True
        for awaited in self._awaited:
            _release(awaited)

    async def run(self, *argv: str, silence: float, stdin: FileBeneath | None = None) -> Completed:
        if not self._host.has_program(argv[0]):
            raise CommandNotFound(f"{argv[0]}: there is no such program on node {self._host.name}")
        late, held = self._interference.lateness(argv), self._interference.hold(argv)
        if held is not None or late >= silence:
            await self._hang(argv, silence, held.wait() if held is not None else self._driver.clock.sleep(late))
        await self._moment(late)
        given = b"" if stdin is None else self._act(lambda: _read(self._host, str(stdin)))
        running = self._act(lambda: self._host.start(argv, given))
        if not running.ended and not await self._within(silence, running.on_exit):
            running.kill()
            self._driver.touch()
            raise _hung(argv, silence, lambda: not running.ended)
        await self._moment()
        result = running.result
        assert result is not None
        return Completed(result.exit_code, result.stdout, result.stderr)

    async def lines(self, *argv: str) -> AsyncGenerator[str, None]:
        if not self._host.has_program(argv[0]):
            raise CommandNotFound(f"{argv[0]}: there is no such program on node {self._host.name}")
        heard: list[str] = []
        told: list[Callable[[], None]] = []

        def hear(said: str) -> None:
            heard.append(said)
            while told:
                told.pop()()

        running = self._act(lambda: self._host.start(argv, listener=hear))
        running.on_exit(lambda: hear(""))
        rest = ""
        try:
            while heard or not running.ended:
                if not heard:
                    await self._unless_gone(told.append)
                # All that was said at one moment is heard at once.
                *whole, rest = (rest + "".join(heard)).split("\n")
                heard.clear()
                for line in whole:
                    yield line
            if rest:
                yield rest
        finally:
            self._end(running)

    async def read_file(self, path: str) -> bytes:
        await self._moment()
        return self._act(lambda: _read(self._host, path))

    async def write_file(self, path: str, content: bytes) -> None:
        await self._moment()
        self._act(lambda: _write(self._host, path, content))

    async def move_file(self, source: str, destination: str) -> None:
        await self._moment()
        self._act(lambda: _move(self._host, source, destination))

    async def remove_file(self, path: str) -> None:
        await self._moment()
        self._act(lambda: self._host.files.pop(path, None))

    async def list_directory(self, path: str) -> tuple[str, ...]:
        await self._moment()
        return self._act(lambda: _names(self._host, path))

    async def port_is_free(self, address: str, port: int) -> bool:
        await self._moment()
        return self._act(
            lambda: f"{address}:{port}" not in _listening(self._host) and port not in self._host.kernel.strangers
        )

    # What every call goes through.

    def _act(self, action: Callable[[], T]) -> T:
        """Do something to the host, at this very moment of its time."""
        self._check()
        self._driver.catch_up()
        try:
            return action()
        finally:
            self._driver.touch()

    def _check(self) -> None:
        if self._gone or not self._host.powered:
            raise self._down()

    def _down(self) -> HostDown:
        return HostDown(f"node {self._host.name} has no power, or its agent was killed")

    async def _moment(self, more: float = 0.0) -> None:
        self._check()
        await self._driver.clock.sleep(more + self._random.uniform(0, _MOMENT))
        self._check()

    async def _hang(self, argv: tuple[str, ...], silence: float, end: Coroutine[Any, Any, object]) -> None:
        """Wait as a caller does for a command that hangs. It goes on at the end of that, unless it was killed."""
        ending = asyncio.ensure_future(end)
        if not await self._within(silence, lambda ended: ending.add_done_callback(lambda _: ended())):
            raise _hung(argv, silence, lambda: not ending.done())

    async def _within(self, seconds: float, subscribe: Callable[[Callable[[], None]], None]) -> bool:
        """Whether something comes about in time; raises HostDown when the machine goes first."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._unless_gone(subscribe)
                return True
        return False

    async def _unless_gone(self, subscribe: Callable[[Callable[[], None]], None]) -> None:
        """Wait for something, which calls what it is given when it comes about."""
        if not self._gone:
            awaited: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._awaited[awaited] = None
            try:
                subscribe(lambda: _release(awaited))
                await awaited
            finally:
                del self._awaited[awaited]
        if self._gone:
            raise self._down()

    def _end(self, running: Running) -> None:
        if not running.ended and self._host.powered:
            self._driver.catch_up()
            running.kill()
            self._driver.touch()


def _release(awaited: asyncio.Future[None]) -> None:
    if not awaited.done():
        awaited.set_result(None)


def _hung(argv: tuple[str, ...], silence: float, still_there: Callable[[], bool]) -> CommandHung:
    return CommandHung(f"{' '.join(argv)}: silent for {silence:g} s, killed", still_there=still_there)


def _read(host: Host, path: str) -> bytes:
    return (sysfs.files(host).get(path) if sysfs.covers(path) else None) or host.read(path)


def _write(host: Host, path: str, content: bytes) -> None:
    if sysfs.covers(path):
        sysfs.write(host, path, content)
    else:
        host.files[path] = content


def _names(host: Host, path: str) -> tuple[str, ...]:
    if not sysfs.covers(path):
        return host.list_directory(path) or ()
    inside = path.rstrip("/") + "/"
    return tuple(
        sorted({file[len(inside) :].partition("/")[0] for file in sysfs.files(host) if file.startswith(inside)})
    )


def _move(host: Host, source: str, destination: str) -> None:
    host.files[destination] = host.read(source)
    del host.files[source]


def _listening(host: Host) -> set[str]:
    """Where DRBD listens on this node."""
    return {address.removeprefix("ipv4:") for address in host.kernel.listening()}
