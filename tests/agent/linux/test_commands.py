"""The real machine: what it does with commands that are slow, silent, loud or stuck, and with their output."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path

import pytest

from quorate.agent.linux import LinuxMachine, child
from quorate.agent.linux.output import Lines, Output
from quorate.agent.machine import CommandHung, CommandNotFound, Completed
from tests.agent.linux.helpers import LONG, PYTHON, nothing_is_left, soon

# Commands.


async def test_a_command_tells_its_exit_code_and_both_its_streams(machine: LinuxMachine) -> None:
    with nothing_is_left():
        code = "import sys; print('out'); print('err', file=sys.stderr); sys.exit(7)"
        completed = await machine.run(*PYTHON, code, silence=LONG)
        assert completed == Completed(7, "out\n", "err\n")
        assert completed.output == "out\nerr"


async def test_a_command_finds_our_environment_and_nothing_to_read(machine: LinuxMachine) -> None:
    code = "import os, sys; print(sorted(os.environ.items())); print(repr(sys.stdin.read())); print(os.getcwd())"
    environment, read, directory = (await machine.run(*PYTHON, code, silence=LONG)).stdout.splitlines()
    assert "('LC_ALL', 'C')" in environment
    assert "/usr/sbin" in environment
    assert "PYTEST_CURRENT_TEST" not in environment
    assert (read, directory) == ("''", "/")


async def test_no_shell_looks_at_arguments(machine: LinuxMachine) -> None:
    assert (await machine.run("echo", "$HOME; false `x`", "*", silence=LONG)).stdout == "$HOME; false `x` *\n"


async def test_a_prefix_goes_before_every_command() -> None:
    machine = LinuxMachine(prefix=("env", "GREETING=hello"))
    assert (await machine.run("sh", "-c", "echo $GREETING", silence=LONG)).stdout == "hello\n"
    with pytest.raises(CommandNotFound, match="quorate-has-no-such-program cannot be run"):
        await machine.run("quorate-has-no-such-program", silence=LONG)


@pytest.mark.parametrize(
    ("argv", "problem"),
    [
        (("quorate-has-no-such-program",), "No such file"),
        (("/etc/passwd",), "Permission denied"),
        (("echo", "x" * 4_000_000), "Argument list too long"),
        (("echo", "a\0b"), "null"),
    ],
)
async def test_a_command_that_cannot_be_started_says_why(
    machine: LinuxMachine, argv: tuple[str, ...], problem: str
) -> None:
    with nothing_is_left():
        with pytest.raises(CommandNotFound, match=problem) as refused:
            await machine.run(*argv, silence=LONG)
        assert len(str(refused.value)) < 400


async def test_a_command_that_talks_on_either_stream_is_never_hung_however_long_it_takes(
    machine: LinuxMachine,
) -> None:
    script = "for _ in 1 2 3 4 5 6 7 8; do echo o; sleep 0.1; echo e >&2; sleep 0.1; done"
    started = asyncio.get_running_loop().time()
    assert (await machine.run("sh", "-c", script, silence=1.0)) == Completed(0, "o\n" * 8, "e\n" * 8)
    assert asyncio.get_running_loop().time() - started > 1.0


async def test_a_silent_command_is_killed_with_all_that_it_started_though_it_ignores_sigterm(
    machine: LinuxMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quorate.agent.linux.machine._ENDING", 0.1)
    with nothing_is_left():
        script = "trap '' TERM; sleep 1000 & echo $!; wait"
        with pytest.raises(CommandHung, match=r"said nothing for 0\.3 s") as hung:
            await machine.run("sh", "-c", script, silence=0.3)
        await soon(hung.value.still_there)
        await machine.close()


async def test_a_command_is_there_for_as_long_as_anything_of_its_group_is(
    machine: LinuxMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when ``drbdadm`` dies of its SIGKILL and the ``drbdsetup`` it has started hangs in the kernel."""
    real, leaders, script = os.killpg, list[int](), "sleep 1000 & echo; wait"

    def only_the_leader(group: int, number: int) -> None:
        if number in (signal.SIGTERM, signal.SIGKILL):
            leaders.append(group)
            os.kill(group, number)
        else:
            real(group, number)

    monkeypatch.setattr(os, "killpg", only_the_leader)
    with pytest.raises(CommandHung) as hung:
        await machine.run("sh", "-c", script, silence=0.3)
    await soon(lambda: machine._children)  # the leader was reaped
    assert hung.value.still_there()
    real(leaders[0], signal.SIGKILL)
    await soon(hung.value.still_there)


async def test_a_command_is_not_over_before_what_it_has_started_is(machine: LinuxMachine) -> None:
    """``drbdadm`` gives its ``drbdsetup`` five seconds and ends; that one may hang in the kernel for ever."""
    started = asyncio.get_running_loop().time()
    script = "(exec >&- 2>&-; sleep 0.4) & echo gave up; exit 20"
    assert await machine.run("sh", "-c", script, silence=LONG) == Completed(20, "gave up\n", "")
    assert asyncio.get_running_loop().time() - started >= 0.4
    with pytest.raises(CommandHung, match="what it has started") as hung:
        await machine.run("sh", "-c", script.replace("0.4", "1000"), silence=0.3)
    await soon(hung.value.still_there)


async def test_a_silent_command_may_end_in_order_before_it_is_killed(machine: LinuxMachine, tmp_path: Path) -> None:
    """LVM puts off its end until no device is suspended: killed there, it would leave them suspended."""
    ended = tmp_path / "ended"
    script = f"trap 'sleep 0.2; echo resumed > {ended}; exit 5' TERM; sleep 1000 & wait; wait"
    with pytest.raises(CommandHung) as hung:
        await machine.run("sh", "-c", script, silence=0.3)
    await soon(hung.value.still_there)
    assert ended.read_text() == "resumed\n"


@pytest.mark.parametrize("prefix", [(), ("env", "A=B")])
def test_no_command_outlives_an_agent_that_is_killed(prefix: tuple[str, ...], tmp_path: Path) -> None:
    """A dd that goes on would overwrite what the next agent makes."""
    pid = tmp_path / "pid"
    code = (
        "import asyncio, os\nfrom quorate.agent.linux import LinuxMachine\n"
        f"asyncio.run(LinuxMachine(prefix={prefix!r}).run('sh', '-c', "
        f"'echo $$ > {pid}.new; mv {pid}.new {pid}; exec sleep 1000', silence=1000))"
    )
    agent = subprocess.Popen([sys.executable, "-c", code])
    wait_until(pid.exists)
    command = int(pid.read_text())
    assert Path(f"/proc/{command}/comm").read_text() in ("sh\n", "sleep\n")
    agent.kill()
    agent.wait(LONG)
    wait_until(lambda: not lives(command))


def lives(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def wait_until(happened: Callable[[], object]) -> None:
    """For what happens in other processes only."""
    limit = time.monotonic() + LONG
    while not happened():
        assert time.monotonic() < limit
        time.sleep(0.005)


async def test_a_command_that_cannot_be_killed_is_left_behind_at_once(
    machine: LinuxMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.killpg
    monkeypatch.setattr(os, "killpg", lambda group, number: None)
    async with asyncio.timeout(LONG):
        with pytest.raises(CommandHung) as hung:
            await machine.run("sleep", "1000", silence=0.2)
    assert hung.value.still_there()
    assert (await machine.run("echo", "others go on", silence=LONG)).exit_code == 0
    (stuck,) = machine._children
    real(stuck._process.pid, signal.SIGKILL)
    monkeypatch.undo()
    await soon(hung.value.still_there)


async def test_closing_leaves_behind_what_does_not_die(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = LinuxMachine()
    real = os.killpg
    monkeypatch.setattr(os, "killpg", lambda group, number: None)
    monkeypatch.setattr("quorate.agent.linux.machine._DYING", 0.05)
    with pytest.raises(CommandHung):
        await machine.run("sleep", "1000", silence=0.1)
    (stuck,) = machine._children
    async with asyncio.timeout(LONG):
        await machine.close()
    assert not machine._children
    real(stuck._process.pid, signal.SIGKILL)
    stuck._process.wait()


async def test_a_daemon_that_keeps_the_output_open_does_not_hold_the_command_up(machine: LinuxMachine) -> None:
    completed = await machine.run("sh", "-c", "setsid sleep 1000 & echo $!", silence=LONG)
    os.kill(int(completed.stdout), signal.SIGKILL)
    assert completed.exit_code == 0


async def test_what_is_still_in_the_pipe_when_a_command_ends_is_not_lost(
    machine: LinuxMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child, "_CHUNK", 1024)  # so that its end is noticed long before the end of its output
    code = "import os, sys; os.write(1, b'x\\n' * 8000); os.write(2, b'e' * 9000)"
    running = asyncio.create_task(machine.run(*PYTHON, code, silence=LONG))
    await soon(lambda: not machine._children)
    (started,) = machine._children
    os.waitid(os.P_PID, started._process.pid, os.WEXITED | os.WNOWAIT)  # noqa: ASYNC222 - the loop stands still
    assert await running == Completed(0, "x\n" * 8000, "e" * 9000)
    async with aclosing(machine.lines(*PYTHON, code)) as lines:
        await anext(lines)
        await soon(lambda: machine._children)
        assert [line async for line in lines] == ["x"] * 7999


async def test_the_dead_whom_nobody_buries_do_not_count(machine: LinuxMachine, tmp_path: Path) -> None:
    """A grandchild dies with its group; its parent, which has left the group, never asks after it."""
    note = tmp_path / "parent"
    code = (
        "import os, time\n"
        "if os.fork() == 0:\n"
        "    if os.fork() == 0: time.sleep(1000)\n"
        f"    os.setsid(); open({str(note)!r}, 'w').write(str(os.getpid())); print(flush=True)\n"
        "time.sleep(1000)"
    )
    try:
        with pytest.raises(CommandHung) as hung:
            await machine.run(*PYTHON, code, silence=1.0)
        await soon(hung.value.still_there)
    finally:
        os.kill(int(note.read_text()), signal.SIGKILL)


async def test_a_flood_is_kept_in_bounds(machine: LinuxMachine) -> None:
    """Its beginning and its end are there, and the memory that it takes does not grow with it."""
    code = (
        "import sys\nout = sys.stdout.buffer\nout.write(b'first\\n')\n"
        "for _ in range(640): out.write(b'x' * 65536)\nout.write(b'last\\n')"
    )
    said = (await machine.run(*PYTHON, code, silence=LONG)).stdout
    assert said.startswith("first\nxxx")
    assert said.endswith("xxxlast\n")
    assert "bytes left out …" in said
    assert len(said) < 17 * 1024 * 1024


async def test_what_is_not_utf8_is_replaced(machine: LinuxMachine) -> None:
    code = r"import sys; sys.stdout.buffer.write(b'a\xffb\n')"
    assert (await machine.run(*PYTHON, code, silence=LONG)).stdout == "a\ufffdb\n"


async def test_a_cancelled_command_is_killed_and_reaped(machine: LinuxMachine) -> None:
    with nothing_is_left():
        running = asyncio.create_task(machine.run("sleep", "1000", silence=LONG))
        await soon(lambda: not machine._children)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        await soon(lambda: machine._children)


async def test_many_commands_leave_nothing_behind(machine: LinuxMachine) -> None:
    with nothing_is_left():
        done = await asyncio.gather(*(machine.run("echo", str(number), silence=LONG) for number in range(50)))
        assert [one.stdout for one in done] == [f"{number}\n" for number in range(50)]


async def test_running_commands_takes_no_threads(machine: LinuxMachine) -> None:
    before = threading.active_count()
    running = asyncio.create_task(machine.run("sleep", "1000", silence=LONG))
    await soon(lambda: not machine._children)
    assert threading.active_count() == before
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


# Streams.


async def test_lines_come_as_they_are_said_and_end_with_the_command(machine: LinuxMachine) -> None:
    with nothing_is_left():
        async with aclosing(machine.lines("sh", "-c", "echo a; echo; echo b; printf c")) as lines:
            assert [line async for line in lines] == ["a", "", "b", "c"]


async def test_a_stream_that_is_closed_kills_its_command(machine: LinuxMachine) -> None:
    with nothing_is_left():
        async with aclosing(machine.lines("sh", "-c", "trap '' TERM; while :; do echo x; done")) as lines:
            assert await anext(lines) == "x"


async def test_a_stream_whose_reader_is_cancelled_kills_its_command(machine: LinuxMachine) -> None:
    async def read() -> None:
        async with aclosing(machine.lines("sleep", "1000")) as lines:
            async for _ in lines:
                pass

    with nothing_is_left():
        reading = asyncio.create_task(read())
        await soon(lambda: not machine._children)
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
        assert not machine._children


async def test_a_stream_is_read_no_faster_than_it_is_used(machine: LinuxMachine, tmp_path: Path) -> None:
    """The command is stopped by its full pipe, rather than our memory filled."""
    written = tmp_path / "written"
    code = (
        "import sys\nfor number in range(10**6):\n"
        f"    sys.stdout.write('x' * 1023 + '\\n'); open({str(written)!r}, 'w').write(str(number))"
    )
    async with aclosing(machine.lines(*PYTHON, code)) as lines:
        await anext(lines)
        last = ""
        while not last or written.read_text() != last:  # until it has come to a standstill
            last = written.read_text()
            await asyncio.sleep(0.2)
        assert 0 < int(last or "0") < 1000


async def test_a_stream_that_fails_ends(machine: LinuxMachine) -> None:
    async with aclosing(machine.lines("sh", "-c", "echo no such resource >&2; exit 10")) as lines:
        assert [line async for line in lines] == []


async def test_a_stream_of_a_missing_program_says_so(machine: LinuxMachine) -> None:
    with pytest.raises(CommandNotFound):
        async with aclosing(machine.lines("quorate-has-no-such-program")) as lines:
            await anext(lines)


# What is kept.


def test_output_keeps_the_beginning_and_the_end() -> None:
    output = Output(head=4, tail=3)
    for part in (b"ab", b"cdef", b"g" * 50, b"xyz"):
        output.add(part)
    assert output.text() == "abcd\n… 52 bytes left out …\nxyz"


@pytest.mark.parametrize("parts", [(b"abcdefg",), (b"abcd", b"efg"), (b"a", b"b", b"cdefg"), (b"abcdef", b"g")])
def test_output_that_fits_is_whole(parts: tuple[bytes, ...]) -> None:
    output = Output(head=4, tail=3)
    for part in parts:
        output.add(part)
    assert output.text() == "abcdefg"


def test_a_line_that_is_too_long_is_cut_and_the_next_is_whole() -> None:
    lines = Lines(longest=4)
    assert lines.add(b"abc") == []
    assert lines.add(b"def") == []
    assert lines.add(b"ghi\nxy\n\nz") == ["abcd", "xy", ""]
    assert lines.last() == "z"
