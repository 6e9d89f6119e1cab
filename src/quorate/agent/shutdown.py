"""Taking a node's DRBD devices down in order, when the machine powers off or boots again.

Nobody else does it: the agent leaves devices alone when it ends, so that an update of it touches nothing, and
drbd.service is off. Without it peers learn by a silence of seconds that the node is gone, and a machine may never end:
the last sync of all file systems waits for dirty pages of a device whose I/O is suspended, and that waits for a quorum
which does not come back once the network is down (measured: a reboot was killed after 40 s of it, drbd9-races E5).

So, without the API, by ``drbdsetup`` alone, each resource apart from the others:

1. a primary that is suspended is made secondary by force: what waits on it fails. Nothing that was acknowledged before
   is among that; of what waits, a plain direct write that is on the local disk may be told as success (drbd9-races
   E1), to whoever is left to hear it: processes have been ended by then, a server in the kernel has not;
2. a primary that works is unmounted and made secondary. If somebody has it open still, it is flushed, and forced then:
   once the network is gone it would be suspended too. If one of that hangs, it is suspended already, and is forced
   at once: peers may power off at the same time;
3. every resource is taken down. Where a peer refuses that, its links are cut first.

What does not end in time is left alone and told of. ``plan`` is pure; ``shut_down`` runs it, on any Machine.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from quorate.agent.machine import CommandHung, CommandNotFound, Machine
from quorate.errors import QuorateError

#: Seconds for all of it; a machine that powers off is given half a minute, and what hangs is waited for once more.
DEADLINE: Final = 20.0
#: Seconds for one command. The last of a resource's must have their turn before the deadline.
_SILENCE: Final = 5.0
#: Resources at one time.
_AT_ONCE: Final = 32
#: Of all block devices of the kernel, DRBD's.
_MAJOR: Final = "147"
_ESCAPE: Final = re.compile(r"\\([0-7]{3})")

_MOUNTS: Final = "/proc/self/mountinfo"


@dataclass(frozen=True, slots=True)
class Command:
    """One command, and what is done instead of what follows it if it fails."""

    argv: tuple[str, ...]
    #: Tried in their order, if it fails; and then what follows it.
    otherwise: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Leave:
    """How one resource leaves the node."""

    resource: str
    is_suspended: bool
    is_primary: bool
    commands: tuple[Command, ...]


def plan(status: Sequence[Mapping[str, Any]], mountinfo: str) -> tuple[Leave, ...]:
    """What to do of what ``drbdsetup status --json`` shows; those that could keep the machine from ending first."""
    mounts = mounted(mountinfo)
    leaves = [_leave(resource, mounts) for resource in status]
    return tuple(sorted(leaves, key=lambda one: (not one.is_suspended, not one.is_primary, one.resource)))


def _leave(resource: Mapping[str, Any], mounts: Mapping[int, tuple[str, ...]]) -> Leave:
    name = str(resource["name"])
    is_primary = resource.get("role") == "Primary"
    is_suspended = is_primary and bool(resource.get("suspended"))
    minors = [int(device["minor"]) for device in resource.get("devices", ())]
    peers = [str(connection["peer-node-id"]) for connection in resource.get("connections", ())]
    unmount = [Command(("umount", path)) for minor in minors for path in mounts.get(minor, ())]
    commands: list[Command] = []
    if is_suspended:
        commands += [Command(force(name)), *unmount]
    elif is_primary:
        flush = tuple(("blockdev", "--flushbufs", f"/dev/drbd{minor}") for minor in minors)
        commands += [*unmount, Command(("drbdsetup", "secondary", name), (*flush, force(name)))]
    cut = tuple(("drbdsetup", "disconnect", "--force", name, peer) for peer in peers)
    down = ("drbdsetup", "down", name)
    commands.append(Command(down, (*cut, down)))
    return Leave(name, is_suspended, is_primary, tuple(commands))


def force(resource: str) -> tuple[str, ...]:
    """Make a primary secondary, whoever has it open: their I/O fails."""
    return ("drbdsetup", "secondary", "--force", resource)


def mounted(mountinfo: str) -> dict[int, tuple[str, ...]]:
    """Where each minor of DRBD is mounted, what was mounted last first."""
    found: dict[int, tuple[str, ...]] = {}
    for line in mountinfo.splitlines():
        words = line.split(" ")
        if len(words) < 5:
            continue
        major, _, minor = words[2].partition(":")
        if major == _MAJOR:
            path = _ESCAPE.sub(lambda code: chr(int(code[1], 8)), words[4])
            found[int(minor)] = (path, *found.get(int(minor), ()))
    return found


async def shut_down(machine: Machine, tell: Callable[[str], None], *, deadline: float = DEADLINE) -> bool:
    """Take everything down; whether all of it is. ``tell`` gets a line for each that somebody should know of."""
    try:
        status = await machine.run("drbdsetup", "status", "--json", silence=_SILENCE)
    except CommandNotFound:
        return True  # no DRBD on this machine
    except CommandHung as error:
        tell(f"nothing is taken down: {error}")
        return False
    if status.exit_code != 0:
        tell(f"nothing is taken down: drbdsetup status ends with {status.exit_code}: {status.output}")
        return False
    try:
        shown = json.loads(status.stdout or "[]")
    except ValueError as error:
        tell(f"nothing is taken down: what drbdsetup status says cannot be read: {error}")
        return False
    try:
        mountinfo = (await machine.read_file(_MOUNTS)).decode(errors="surrogateescape")
    except OSError:
        mountinfo = ""
    leaves = plan(shown, mountinfo)
    suspended = [one.resource for one in leaves if one.is_suspended]
    if suspended:
        tell(f"suspended, and failed so that the machine can end: {', '.join(suspended)}")
    if not leaves:
        return True
    turns = asyncio.Semaphore(_AT_ONCE)
    running = {asyncio.create_task(_run(machine, one, turns)): one for one in leaves}
    done, late = await asyncio.wait(running, timeout=deadline)
    problems = {running[task].resource: problem for task in done if (problem := task.result())}
    problems |= {running[task].resource: f"is not down after {deadline:g} s, and is left as it is" for task in late}
    for task in late:
        task.cancel()
    await asyncio.gather(*late, return_exceptions=True)
    for name, problem in sorted(problems.items()):
        tell(f"{name}: {problem}")
    tell(f"{len(leaves) - len(problems)} of {len(leaves)} DRBD resources are down")
    return not problems


async def _run(machine: Machine, leave: Leave, turns: asyncio.Semaphore) -> str:
    """Take one resource down; what is wrong at the end, or nothing."""
    *before, down = leave.commands
    async with turns:
        for command in before:
            _, has_hung = await _carry_out(machine, command)
            if has_hung:
                # Its I/O stands, whatever it was at first. Everything else would wait in vain for the same.
                await _try(machine, force(leave.resource))
                break
        # Of the last command alone: that a file system was busy does not matter where the resource is down.
        problem, _ = await _carry_out(machine, down)
    return problem


async def _carry_out(machine: Machine, command: Command) -> tuple[str, bool]:
    """What is wrong at the end of it, or nothing; and whether any of it hung."""
    problem, has_hung = await _try(machine, command.argv)
    if problem:
        for argv in command.otherwise:
            problem, hung_too = await _try(machine, argv)
            has_hung = has_hung or hung_too
    return problem, has_hung


async def _try(machine: Machine, argv: tuple[str, ...]) -> tuple[str, bool]:
    try:
        done = await machine.run(*argv, silence=_SILENCE)
    except QuorateError as error:
        return str(error), isinstance(error, CommandHung)
    return f"{' '.join(argv)} ends with {done.exit_code}: {done.output}" if done.exit_code else "", False
