"""RenewActivityLog: a disk that grew gets the activity log that DRBD did not write (``replica.activity_log``).

Links down, disk detached, attached, links up, in this order: attaching writes a new log (k4_c 9, k4_d 11, 13). Never
``detach`` while connected to a Primary: without a log the disk cannot be attached again (k4_a, k4_d). A Primary can do
none of that: the next write of its user makes its log.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from quorate.agent.operations.case import PURPOSE, Case, Ruling, failed, failed_command, pending, running, succeeded
from quorate.agent.replica.commands import UP_SILENCE
from quorate.agent.replica.kernel import all_established, device, disk_state, is_primary
from quorate.agent.replica.report import peer_devices
from quorate.agent.steps import Run, kernel_of
from quorate.api.storage.drbd import DiskState
from quorate.drbd.resource_file import linked_peers

RENEW: Final = f"{PURPOSE} renew"
BACK: Final = f"{PURPOSE} back"


def begin(case: Case, now: datetime) -> Ruling:
    """Whether it may run."""
    if obstacle := _obstacle(case):
        return pending(case, f"waiting: {obstacle}")
    return running(case, now)


def go_on(case: Case, now: datetime) -> Ruling:
    """Do it; done when every command has succeeded. Whether it helped is seen on the disk."""
    for purpose in (RENEW, BACK):
        last = case.outcomes.get(purpose)
        if last is not None and not last.succeeded:
            return failed_command(case, now, last)
    if BACK in case.outcomes:
        return succeeded(case, now)
    if not case.begun:
        return failed(case, now, "interrupted: how far it came is not known")
    if obstacle := _obstacle(case):
        return failed(case, now, f"not run: {obstacle}")
    return Ruling(case.operation.status, steps=commands(case))


def commands(case: Case) -> tuple[Run, ...]:
    """In one piece of work: nothing else is done to the resource meanwhile."""
    minor = case.config.device_minor
    parting = (_drbdsetup(case, RENEW, "disconnect", case.resource, peer.node_id) for peer in linked_peers(case.config))
    attach = ("drbdadm", "-c", case.file, "adjust", case.resource)
    return (
        *parting,
        _drbdsetup(case, RENEW, "detach", minor),
        Run(attach, BACK, case.about, silence=UP_SILENCE, changes=(kernel_of(case.resource),)),
    )


def _drbdsetup(case: Case, purpose: str, *words: object) -> Run:
    argv = ("drbdsetup", *map(str, words))
    return Run(argv, purpose, case.about, silence=UP_SILENCE, changes=(kernel_of(case.resource),))


def _obstacle(case: Case) -> str:
    status, shown = case.status, device(case.status)
    if status is None or shown is None:
        return "the resource is not up"
    if case.config.primary or is_primary(status):
        return "it is in use here, or about to be"
    if disk_state(status) != DiskState.UP_TO_DATE or not shown.quorum or status.suspended:
        return f"the own disk is {disk_state(status)}, with{'' if shown.quorum else 'out'} quorum"
    if not all_established(case.config, status):
        return "not every link is up and at rest"
    if any(each.out_of_sync for each in peer_devices(status)):
        return "copies differ, and a link that is cycled would hide it"
    return ""
