"""ZeroRange: a part of a volume that nobody uses is overwritten with zeros, alike on all members.

The member is Primary for just as long as the writing takes, in one piece of work: nothing else is done to the resource
meanwhile, and if the agent dies, the replica's own part makes it Secondary again. It runs only while all members are in
touch and none is Primary, nor meant to be: whoever used the volume might have written there.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from quorate.agent.lvm.commands import zeros
from quorate.agent.operations.case import (
    PURPOSE,
    Case,
    Ruling,
    failed,
    failed_command,
    pending,
    running,
    succeeded,
    waiting,
)
from quorate.agent.replica.kernel import all_established, anyone_primary, device, disk_state, is_primary
from quorate.agent.steps import Run, kernel_of
from quorate.api.storage.drbd import DiskState

PROMOTE: Final = f"{PURPOSE} promote"
ZERO: Final = f"{PURPOSE} zero"
DEMOTE: Final = f"{PURPOSE} demote"


def begin(case: Case, now: datetime) -> Ruling:
    """Whether it may run."""
    if obstacle := _obstacle(case):
        return pending(case, f"waiting: {obstacle}")
    return running(case, now)


def go_on(case: Case, now: datetime) -> Ruling:
    """Write; done when it is written and nobody is Primary any more."""
    written = case.outcomes.get(ZERO)
    if written is not None and written.succeeded:
        if is_primary(case.status):
            return waiting(case, "written; waiting to be Secondary again")
        return succeeded(case, now)
    for purpose in (PROMOTE, ZERO):
        last = case.outcomes.get(purpose)
        if last is not None and not last.succeeded:
            return failed_command(case, now, last)
    if not case.begun:
        # Another agent began, and may have written all of it; whoever has used the volume since then wrote there too.
        return failed(case, now, "interrupted: whether anything was written is not known")
    if obstacle := _obstacle(case):
        # Not kept for later: whoever uses the volume meanwhile may write there.
        return failed(case, now, f"not run: {obstacle}")
    steps = commands(case)
    return Ruling(case.operation.status, steps=steps) if steps else succeeded(case, now, "nothing lies in that range")


def commands(case: Case) -> tuple[Run, ...]:
    """Take it, write, give it back. Empty: the range is beyond the end."""
    shown, part = device(case.status), case.operation.spec.range
    assert shown is not None
    assert part is not None
    end = min(part.end, shown.size * 1024)
    if end <= part.start:
        return ()
    path = f"/dev/drbd{case.config.device_minor}"
    return (
        _role(case, "primary", PROMOTE),
        zeros(path, part.start, end - part.start, ZERO, about=case.about),
        _role(case, "secondary", DEMOTE),
    )


def _role(case: Case, verb: str, purpose: str) -> Run:
    argv = ("drbdadm", "-c", case.file, verb, case.resource)
    return Run(argv, purpose, case.about, changes=(kernel_of(case.resource),))


def _obstacle(case: Case) -> str:
    status, shown = case.status, device(case.status)
    if status is None or shown is None:
        return "the resource is not up"
    if case.config.primary or anyone_primary(status):
        return "the volume is in use"
    if disk_state(status) != DiskState.UP_TO_DATE or not shown.quorum:
        return f"the own disk is {disk_state(status)}, with{'' if shown.quorum else 'out'} quorum"
    if not all_established(case.config, status):
        return "not every link is up and at rest"
    return ""
