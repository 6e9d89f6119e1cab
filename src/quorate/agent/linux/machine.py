"""The machine that this process runs on, or the one whose container it runs in."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import socket
import subprocess
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from quorate.agent.linux import files
from quorate.agent.linux.aside import Aside
from quorate.agent.linux.child import Child
from quorate.agent.linux.output import Output
from quorate.agent.linux.roots import Roots
from quorate.agent.machine import CommandHung, CommandNotFound, Completed, FileBeneath
from quorate.engine.logs import get_logger

_log = get_logger(__name__)

#: All that a command finds in its environment: the same words in the same language wherever the agent was started.
ENVIRONMENT = {
    "LC_ALL": "C",
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/",
    "TERM": "dumb",
    "NO_COLOR": "1",
    "TZ": "UTC",
    # LVM warns of every descriptor that it was not told of, on the stream that we report.
    "LVM_SUPPRESS_FD_WARNINGS": "1",
}

#: Has the kernel end a command when the process that started it ends, however that ends.
END_WITH_US = ("setpriv", "--pdeathsig", "TERM", "--")
_NOT_EXECUTED = "setpriv: failed to execute"
#: Exit codes of setpriv, nsenter, chroot and their like for a program that they cannot run.
_NOT_RUN = (126, 127)
#: Seconds for a hung command to end by itself once it is asked to. LVM ends when no device is suspended any more.
_ENDING = 30.0
#: Seconds for a killed process to be gone. One that takes longer hangs.
_DYING = 2.0
_SHOWN = 200


class LinuxMachine:
    """Implements :class:`quorate.agent.machine.Machine`. Close it when the loop is about to end."""

    def __init__(self, *, prefix: Sequence[str] = (), roots: Roots | None = None) -> None:
        """``prefix`` is put before every command, ``nsenter`` say; ``roots`` says where we find the node's files.

        Commands are given the node's own paths: a prefix takes them to where these are.
        """
        self._prefix = tuple(prefix)
        self._roots = roots or Roots()
        #: By topmost directory of the node: a /sys that hangs must not keep a configuration from being written.
        self._asides: dict[str, Aside] = {}
        self._children: set[Child] = set()
        self._end_with_us = END_WITH_US if shutil.which(END_WITH_US[0], path=ENVIRONMENT["PATH"]) else ()
        if not self._end_with_us:
            _log.warning("commands under way will outlive an agent that is killed: there is no setpriv (util-linux)")

    async def run(self, *argv: str, silence: float, stdin: FileBeneath | None = None) -> Completed:
        child = self._start(argv) if stdin is None else await self._start_on(stdin, argv)
        try:
            said = await child.collect(silence)
        except BaseException:
            child.end(_DYING)
            raise
        if said is None:
            child.end(_ENDING)
            raise CommandHung(
                f"{_shown(argv)} said nothing for {silence:g} s and was ended", still_there=child.still_there
            )
        if await child.leaves_behind(silence):
            # As drbdadm does, which gives its drbdsetup five seconds: the next one would only hang beside it.
            child.end(_ENDING)
            raise CommandHung(
                f"{_shown(argv)} ended, and what it has started is there {silence:g} s later: {said[1][-_SHOWN:]}",
                still_there=child.still_there,
            )
        completed = Completed(child.exit_code.result(), *said)
        if self._could_not_run(completed.exit_code, completed.stderr):
            raise CommandNotFound(f"{argv[0]} cannot be run: {completed.output}")
        return completed

    async def lines(self, *argv: str) -> AsyncGenerator[str, None]:
        child = self._start(argv)
        errors = Output(head=4096, tail=4096)
        try:
            async with aclosing(child.lines(errors)) as lines:
                async for line in lines:
                    yield line
            exit_code, said = child.exit_code.result(), errors.text()
            if self._could_not_run(exit_code, said):
                raise CommandNotFound(f"{argv[0]} cannot be run: {said}")
            if exit_code:
                _log.warning("stream ended", command=_shown(argv), exit_code=exit_code, output=said)
        finally:
            child.kill()
            await asyncio.wait((child.exit_code,), timeout=_DYING)

    async def read_file(self, path: str) -> bytes:
        return await self._beside(path).call(files.read, self._roots.locate(path))

    async def write_file(self, path: str, content: bytes) -> None:
        await self._beside(path).call(files.write, self._roots.locate(path), content)

    async def move_file(self, source: str, destination: str) -> None:
        await self._beside(source).call(files.move, self._roots.locate(source), self._roots.locate(destination))

    async def remove_file(self, path: str) -> None:
        await self._beside(path).call(files.remove, self._roots.locate(path))

    async def list_directory(self, path: str) -> tuple[str, ...]:
        return await self._beside(path).call(files.names_in, self._roots.locate(path))

    async def port_is_free(self, address: str, port: int) -> bool:
        # No SO_REUSEADDR: with it, a port whose connections have not quite ended would look free.
        try:
            with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as probe:
                probe.bind((address, port))
        except OSError:
            return False  # also where the kernel has no IPv6 at all
        return True

    async def close(self) -> None:
        """End what is left, and leave behind what does not die."""
        left = tuple(self._children)
        for child in left:
            child.end(_DYING)
        if left:
            await asyncio.wait([child.exit_code for child in left], timeout=2 * _DYING)
        for child in left:
            child.abandon()
        self._children.clear()

    async def _start_on(self, file: FileBeneath, argv: Sequence[str]) -> Child:
        directory = self._roots.locate(file.directory)
        opened: int = await self._beside(file.directory).call(files.open_beneath, directory, file.path)
        try:
            return self._start(argv, opened)
        finally:
            os.close(opened)

    def _start(self, argv: Sequence[str], stdin: int = subprocess.DEVNULL) -> Child:
        try:
            command = (*self._end_with_us, *self._prefix, *argv)
            child = Child(command, environment=ENVIRONMENT, ended=self._children.discard, stdin=stdin)
        except (OSError, ValueError) as error:
            # ValueError: there is a null character in an argument.
            reason = error.strerror if isinstance(error, OSError) else error
            raise CommandNotFound(f"{_shown((*self._prefix, *argv))} cannot be started: {reason}") from None
        self._children.add(child)
        return child

    def _could_not_run(self, exit_code: int, said: str) -> bool:
        """Whether the command was never begun: what put it to work could not run it."""
        return exit_code in _NOT_RUN and (bool(self._prefix) or said.startswith(_NOT_EXECUTED))

    def _beside(self, path: str) -> Aside:
        top = path.split("/", 2)[1] if path.startswith("/") else ""
        return self._asides.setdefault(top, Aside())


def _shown(argv: Sequence[str]) -> str:
    text = shlex.join(argv)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
