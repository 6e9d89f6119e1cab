"""One process of ours, together with all that it starts.

A child leads a process group of its own, so that ``drbdadm`` and the ``drbdsetup`` it has started are killed together,
and so that one of them that is left, stuck in the kernel, is noticed: a command is gone when its whole group is.

It is asked to end (SIGTERM) before it is killed: LVM defers that while devices are suspended, and killed there it
would leave them so, with all I/O to them. For the same reason it is SIGTERM that a command gets when the agent itself
is killed (``setpriv --pdeathsig``): no ``dd`` or ``drbdmeta`` may go on beside the work of the next agent.

asyncio has subprocesses too. We do not use them: on Python 3.11 each takes a thread that waits for its end, one that
hangs never gives it back, and ``communicate`` waits for the end of the output rather than of the process, which a
daemon that inherited the pipe may hold open for ever. A pidfd tells of the end and needs neither thread nor signal.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import suppress
from typing import IO

from quorate.agent.linux.output import Lines, Output

#: Seconds between two looks at whether the last of a group is gone.
_POLL = 0.1
_CHUNK = 64 * 1024
#: Reads that empty a pipe after its process has ended; more would serve somebody else who still writes into it.
_LAST_READS = 32


class Child:
    """A running command. Made inside a running loop; raises OSError or ValueError if it cannot be started."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        environment: Mapping[str, str],
        ended: Callable[[Child], None],
        stdin: int = subprocess.DEVNULL,
    ) -> None:
        """Start it, with this input. ``ended`` is called once, when the process has ended and was reaped."""
        self._loop = asyncio.get_running_loop()
        self._on_end = ended
        self._process = subprocess.Popen(  # noqa: S603 - arguments, never a shell's
            argv,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            cwd="/",
            start_new_session=True,
        )
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._stdout, self._stderr = self._process.stdout, self._process.stderr
        self._group_left = True
        #: Its exit code, once it has one; negative: the signal that ended it.
        self.exit_code: asyncio.Future[int] = self._loop.create_future()
        try:
            self._pidfd = os.pidfd_open(self._process.pid)
        except OSError:
            self.kill()
            self.close_pipes()
            raise
        self._loop.add_reader(self._pidfd, self._reap)
        for pipe in (self._stdout, self._stderr):
            os.set_blocking(pipe.fileno(), False)

    async def collect(self, silence: float) -> tuple[str, str] | None:
        """Everything it says until it ends, on either stream; None once it has said nothing for too long."""
        outputs = (Output(), Output())
        streams = tuple(zip((self._stdout, self._stderr), outputs, strict=True))
        heard_at = self._loop.time()

        def take(pipe: IO[bytes], output: Output) -> None:
            nonlocal heard_at
            heard_at = self._loop.time()
            data = _read(pipe)
            if data:
                output.add(data)
            elif data is not None:
                self._loop.remove_reader(pipe.fileno())

        for pipe, output in streams:
            self._loop.add_reader(pipe.fileno(), take, pipe, output)
        try:
            while not self.exit_code.done():
                left = heard_at + silence - self._loop.time()
                if left <= 0:
                    return None
                await asyncio.wait((self.exit_code,), timeout=left)
            for pipe, output in streams:
                _drain(pipe, output.add)
        finally:
            self.close_pipes()
        return outputs[0].text(), outputs[1].text()

    async def lines(self, errors: Output) -> AsyncGenerator[str, None]:
        """Its lines, read only as fast as they are used, until it ends; what it complains of goes to ``errors``."""
        lines = Lines()
        waiting: list[str] = []
        self._loop.add_reader(self._stderr.fileno(), self._complain, errors)
        try:
            while not self.exit_code.done():
                await self._readable_or_ended()
                data = _read(self._stdout)
                if data == b"":  # it has closed its output, and may go on living
                    await asyncio.wait((self.exit_code,))
                for line in lines.add(data or b""):
                    yield line
            _drain(self._stdout, lambda data: waiting.extend(lines.add(data)))
            _drain(self._stderr, errors.add)
            last = lines.last()
            for line in (*waiting, *((last,) if last is not None else ())):
                yield line
        finally:
            self.close_pipes()

    def end(self, patience: float) -> None:
        """Ask all of the group to end, and kill what is left of it after so many seconds."""
        self._signal(signal.SIGTERM)
        self._loop.call_later(patience, self._kill_if_there)

    def kill(self) -> None:
        """Kill all of the group. One that hangs in the kernel dies when it comes out of it."""
        self._signal(signal.SIGKILL)

    def _kill_if_there(self) -> None:
        if self.still_there():
            self.kill()

    def _signal(self, number: int) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    def still_there(self) -> bool:
        """Whether anything of its group is left."""
        if self._process.poll() is None:
            return True
        # Only once its leader was reaped: before, waiting for the group could take the leader's exit code away.
        self._group_left = self._group_left and _group_exists(self._process.pid)
        return self._group_left

    async def leaves_behind(self, patience: float) -> bool:
        """Whether something that it has started outlives it by so many seconds."""
        until = self._loop.time() + patience
        while self.still_there():
            if self._loop.time() >= until:
                return True
            await asyncio.sleep(_POLL)
        return False

    def close_pipes(self) -> None:
        """Listen no more."""
        for pipe in (self._stdout, self._stderr):
            if not pipe.closed:
                self._loop.remove_reader(pipe.fileno())
                pipe.close()

    def abandon(self) -> None:
        """Stop waiting for its end: the loop is about to close."""
        self.close_pipes()
        if not self.exit_code.done():
            self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
            self.exit_code.cancel()

    def _reap(self) -> None:
        exit_code = self._process.poll()
        if exit_code is None:
            return
        self._loop.remove_reader(self._pidfd)
        os.close(self._pidfd)
        self.exit_code.set_result(exit_code)
        self._on_end(self)

    def _complain(self, errors: Output) -> None:
        data = _read(self._stderr)
        if data:
            errors.add(data)
        elif data is not None:
            self._loop.remove_reader(self._stderr.fileno())

    async def _readable_or_ended(self) -> None:
        readable = self._loop.create_future()
        self._loop.add_reader(self._stdout.fileno(), _set_once, readable)
        try:
            await asyncio.wait((readable, self.exit_code), return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._loop.remove_reader(self._stdout.fileno())
            readable.cancel()


def _read(pipe: IO[bytes]) -> bytes | None:
    """What can be read now: empty at the end, None when there is nothing yet."""
    try:
        return os.read(pipe.fileno(), _CHUNK)
    except BlockingIOError:
        return None


def _drain(pipe: IO[bytes], take: Callable[[bytes], object]) -> None:
    """Take what is left in the pipe of a process that has ended."""
    for _ in range(_LAST_READS):
        data = _read(pipe)
        if not data:
            return
        take(data)


def _set_once(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _group_exists(group: int) -> bool:
    # As the first process of a container we are given the orphans, and nobody else reaps them.
    with suppress(ChildProcessError):
        while os.waitpid(-group, os.WNOHANG)[0]:
            pass
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    # The dead count there too, until whoever inherited them has reaped them, which may be never.
    return any(_lives_in(group, process) for process in os.listdir("/proc") if process.isdigit())


def _lives_in(group: int, process: str) -> bool:
    try:
        with open(f"/proc/{process}/stat", "rb") as file:
            # The name, in parentheses, may hold anything; the state, the parent and the group follow it.
            state, _, its_group, *_ = file.read().rpartition(b")")[2].split()
    except OSError:
        return False  # it has just ended
    return int(its_group) == group and state not in (b"Z", b"X")
