"""The machine that an agent works on: commands, files, and whether a port is free. All of an agent's hardware is here.

Two implementations: ``agent.linux`` is this machine, ``lab`` has simulated ones. Paths are those that the node itself
would use (``/etc/drbd.d/…``); where they really are, in a container say, is the implementation's business. So is a
prefix such as ``nsenter``. No command is ever a shell's: arguments are passed as they are.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from typing import Protocol

from quorate.errors import QuorateError


@dataclass(frozen=True, slots=True)
class Completed:
    """A command that has ended, whatever it says."""

    exit_code: int
    stdout: str
    stderr: str = ""

    @property
    def output(self) -> str:
        """Everything it said, as a person at a terminal would see it."""
        return "\n".join(part.rstrip("\n") for part in (self.stdout, self.stderr) if part.strip())


class CommandHung(QuorateError):
    """A command was silent for too long. It was told to end; if it hangs in the kernel, it is still there."""

    def __init__(self, message: str, *, still_there: Callable[[], bool]) -> None:
        super().__init__(message)
        #: Whether the process has not ended yet: until then nothing more may be tried on what it works on.
        self.still_there = still_there


class CommandNotFound(QuorateError):
    """There is no such program on the machine, or it cannot be started: it may not be, or the system refuses."""


@dataclass(frozen=True, slots=True)
class FileBeneath:
    """A regular file beneath a directory, with no symbolic link on the way from there."""

    directory: str
    #: From there; ``..`` is no part of it.
    path: str

    def __str__(self) -> str:
        return f"{self.directory}/{self.path}"


class Machine(Protocol):
    """What an agent can do to its node. File errors are ``OSError``s, as Python's own."""

    async def run(self, *argv: str, silence: float, stdin: FileBeneath | None = None) -> Completed:
        """Run a command to its end. Raises CommandHung after ``silence`` seconds without a byte of output.

        What it reads from its input is that file. It is opened here, and never by its name again: whoever puts another
        in its place meanwhile changes nothing. Raises OSError when it is not there, or is something else.

        The call never waits for a killed command to die: one in D state does not. Very long output is kept in part.
        """
        ...

    def lines(self, *argv: str) -> AsyncGenerator[str, None]:
        """Run a command for as long as the generator is used; yields its lines, without their ends.

        Ends when the command ends. Close it with ``contextlib.aclosing``.
        """
        ...

    async def read_file(self, path: str) -> bytes:
        """The contents of a file."""
        ...

    async def write_file(self, path: str, content: bytes) -> None:
        """Write a file, readable only by its owner, and make it durable before returning."""
        ...

    async def move_file(self, source: str, destination: str) -> None:
        """Put a file in another's place, at once and durably."""
        ...

    async def remove_file(self, path: str) -> None:
        """Remove a file durably; one that is not there is fine."""
        ...

    async def list_directory(self, path: str) -> tuple[str, ...]:
        """The names in a directory, sorted; empty when there is none."""
        ...

    async def port_is_free(self, address: str, port: int) -> bool:
        """Whether the port could be listened on at this moment. None could at an address that is not the machine's."""
        ...
