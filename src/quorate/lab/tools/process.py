"""Processes of a simulated node: programs that end at once, sleep, or hang in the kernel, in virtual time.

A program is a generator of ``Wait``s that returns its exit code. A Wait is a function that is given what to call when
it is over, so a process needs no loop of its own: the world's events carry it on. Most programs never wait, and have
ended when ``start`` returns.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from quorate.lab.host import Host

Resume = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Wait:
    """Something a program waits for. Not ``interruptible`` is what hangs in the kernel: a signal does not help."""

    subscribe: Callable[[Resume], None]
    interruptible: bool = True
    child: Process | None = None
    """The process whose end it is, if that is what is waited for."""


Program = Generator[Wait, None, int]

TERMINATED = 143  # 128 + SIGTERM


class Descriptor(Protocol):
    """What an open file number stands for."""

    terminal: bool
    """Whether people read it: tools are more talkative, and colourful, to them."""

    def write(self, data: bytes) -> None: ...

    def read(self) -> bytes: ...

    def close(self) -> None: ...


class Nothing:
    """/dev/null."""

    terminal = False

    def write(self, data: bytes) -> None:
        pass

    def read(self) -> bytes:
        return b""

    def close(self) -> None:
        pass


class Data(Nothing):
    """An input that is there already: the other end of a pipe, or a file."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def read(self) -> bytes:
        data, self._data = self._data, b""
        return data


@dataclass(frozen=True, slots=True)
class Result:
    """A command that has ended: what it said on each channel, and on both together in the order it was said."""

    exit_code: int
    stdout: str
    stderr: str
    output: str


class Transcript:
    """What a process and its children say: two channels, and their order. It is a terminal, or the end of a pipe."""

    def __init__(self, *, terminal: bool = True) -> None:
        self.terminal = terminal
        self._said: list[tuple[int, str]] = []
        self._listener: Callable[[str], None] | None = None

    def channel(self, number: int) -> Descriptor:
        return _Channel(self, number)

    def listen(self, listener: Callable[[str], None]) -> None:
        """Have everything said on standard output from now on, as it is said, instead of it being kept."""
        self._listener = listener

    def say(self, number: int, text: str) -> None:
        if number == 1 and self._listener is not None:
            self._listener(text)
        else:
            self._said.append((number, text))

    def text(self, number: int | None = None) -> str:
        return "".join(text for channel, text in self._said if number is None or channel == number)

    def result(self, exit_code: int) -> Result:
        return Result(exit_code, self.text(1), self.text(2), self.text())


class _Channel(Nothing):
    def __init__(self, transcript: Transcript, number: int) -> None:
        self._transcript = transcript
        self._number = number
        self.terminal = transcript.terminal

    def write(self, data: bytes) -> None:
        self._transcript.say(self._number, data.decode(errors="replace"))


class Process:
    """One program on a host, with its open files."""

    def __init__(self, host: Host, name: str, pid: int, descriptors: dict[int, Descriptor]) -> None:
        self.host = host
        self.name = name
        self.pid = pid
        self.descriptors = descriptors
        self.exit_code: int | None = None
        self._owned: set[int] = set()
        self._program: Program | None = None
        self._waiting: Wait | None = None
        self._killed = False
        self._advancing = False
        self._may_go_on = False
        self._on_exit: list[Resume] = []

    # --- what a program does ---

    def out(self, text: str) -> None:
        self.descriptors[1].write(text.encode())

    def err(self, text: str) -> None:
        self.descriptors[2].write(text.encode())

    def stdin(self) -> bytes:
        return self.descriptors[0].read()

    def own(self, number: int, descriptor: Descriptor) -> None:
        """Put an open file in a number's place; it is closed when the process ends."""
        if number in self._owned:
            self.descriptors[number].close()
        self.descriptors[number] = descriptor
        self._owned.add(number)

    # --- what others do with it ---

    def start(self, program: Program) -> None:
        self._program = program
        self._advance()

    def abandon(self, exit_code: int) -> None:
        """End a process that was never started."""
        self._end(exit_code)

    def kill(self) -> None:
        """Terminate it: at once, or when what it waits for in the kernel is over."""
        self._killed = True
        if self._waiting is not None and self._waiting.interruptible:
            self._end(TERMINATED)

    def kill_job(self) -> None:
        """Terminate a shell and what it waits for: a job in the background has a shell of its own here."""
        if self._waiting is not None and self._waiting.child is not None:
            self._waiting.child.kill_job()
        self.kill()

    def vanish(self, exit_code: int) -> None:
        """It is gone with its kernel: nothing is closed, nobody inside is asked; only those who waited for it hear."""
        if self.exit_code is None:
            self._owned.clear()
            self._end(exit_code)

    def exited(self) -> Wait:
        return Wait(self._when_exited, child=self)

    def on_exit(self, callback: Resume) -> None:
        self._when_exited(callback)

    def _when_exited(self, callback: Resume) -> None:
        if self.exit_code is not None:
            callback()
        else:
            self._on_exit.append(callback)

    def _advance(self) -> None:
        """Go on until there is something to wait for. What is over at once is gone on from here, not from within."""
        if self._advancing:
            self._may_go_on = True
            return
        self._advancing = self._may_go_on = True
        try:
            while self._may_go_on:
                self._may_go_on = False
                self._step()
        finally:
            self._advancing = False

    def _step(self) -> None:
        if self.exit_code is not None or self._program is None:
            return
        self._waiting = None
        if self._killed:
            self._end(TERMINATED)
            return
        try:
            wait = next(self._program)
        except StopIteration as end:
            self._end(end.value)
            return
        self._waiting = wait
        wait.subscribe(self._resumer(wait))

    def _resumer(self, wait: Wait) -> Resume:
        def resume() -> None:
            if self._waiting is wait:  # a second call, or one after a kill, is for nobody
                self._advance()

        return resume

    def _end(self, exit_code: int) -> None:
        self.exit_code, self._waiting = exit_code, None
        if self._program is not None:
            self._program.close()
        for number in sorted(self._owned):
            self.descriptors[number].close()
        self.host.forget_process(self)
        callbacks, self._on_exit = self._on_exit, []
        for callback in callbacks:
            callback()
