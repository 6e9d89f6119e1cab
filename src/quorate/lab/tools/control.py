"""Commands about commands: sh, echo, true, false, sleep, timeout, kill."""

from __future__ import annotations

from quorate.lab.tools import durations
from quorate.lab.tools.process import Process, Program, Resume, Wait
from quorate.lab.tools.shell import interpreter

_TIMED_OUT, _CANNOT_RUN = 124, 125


def sh(process: Process, argv: list[str]) -> Program:
    """``sh -c COMMAND``."""
    if len(argv) >= 3 and argv[1] == "-c":
        return (yield from interpreter.run(process, argv[2]))
    process.err("sh: only -c COMMAND is known here\n")
    return 2


def echo(process: Process, argv: list[str]) -> int:
    """Say the words."""
    words, end = (argv[2:], "") if argv[1:2] == ["-n"] else (argv[1:], "\n")
    process.out(" ".join(words) + end)
    return 0


def true(_process: Process, _argv: list[str]) -> int:
    """Succeed."""
    return 0


def false(_process: Process, _argv: list[str]) -> int:
    """Fail."""
    return 1


def sleep(process: Process, argv: list[str]) -> Program:
    """Wait in virtual time."""
    try:
        pause = sum(durations.seconds(word) for word in argv[1:])
    except ValueError:
        process.err(f"sleep: invalid number '{argv[1]}'\n")
        return 1
    yield process.host.after(pause)
    return 0


def timeout(process: Process, argv: list[str]) -> Program:
    """Run a command, and terminate it after a while. One that hangs in the kernel is waited for none the less."""
    words = argv[1:]
    while words and words[0].startswith("-"):
        words = words[2:] if words[0] in ("-k", "-s", "--kill-after", "--signal") else words[1:]
    if len(words) < 2:
        process.err("timeout: a duration and a command are needed\n")
        return _CANNOT_RUN
    try:
        pause = durations.seconds(words[0])
    except ValueError:
        process.err(f"timeout: invalid number '{words[0]}'\n")
        return _CANNOT_RUN
    command = words[1:]
    child = process.host.fork(command[0].rpartition("/")[2], dict(process.descriptors))
    child.start(process.host.program(child, command))
    alarm = process.host.after(pause)

    def either(resume: Resume) -> None:
        child.on_exit(resume)
        alarm.subscribe(resume)

    if child.exit_code is None:
        yield Wait(either)
    if child.exit_code is not None:
        return child.exit_code
    child.kill()
    yield child.exited()
    return _TIMED_OUT


def kill(process: Process, argv: list[str]) -> int:
    """Terminate processes, whatever the signal; ``-0`` only asks whether they are there."""
    exit_code, asks = 0, "-0" in argv
    for word in [word for word in argv[1:] if not word.startswith("-")]:
        found = process.host.find_process(int(word)) if word.isdecimal() else None
        if found is None:
            process.err(f"kill: can't kill pid {word}: No such process\n")
            exit_code = 1
        elif not asks:
            found.kill_job()
    return exit_code
