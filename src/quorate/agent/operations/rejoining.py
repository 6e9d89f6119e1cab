"""Rejoin: a member that has yielded to another primary gives up what it wrote since they lost touch, and connects.

Both may have written meanwhile, so their histories have forked and they would not meet by themselves: each keeps
connecting in vain. Only a Secondary can give up its own; a Primary is waited for.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from quorate.agent.operations.case import PURPOSE, Case, Ruling, failed_command, pending, running, succeeded, waiting
from quorate.agent.replica.kernel import is_primary
from quorate.agent.steps import Run, kernel_of
from quorate.api.storage.drbd import ConnectionState

LEAVE: Final = f"{PURPOSE} leave"
JOIN: Final = f"{PURPOSE} join"


def begin(case: Case, now: datetime) -> Ruling:
    """Whether it may run."""
    if case.status is None or is_primary(case.status):
        return pending(case, "waiting: the replica is not up, or still Primary")
    return running(case, now)


def go_on(case: Case, now: datetime) -> Ruling:
    """Leave, and join again; done when they are connected."""
    if _state(case) == ConnectionState.CONNECTED:
        return succeeded(case, now)
    if case.status is None or is_primary(case.status) or not _state(case):
        return waiting(case, "waiting: the replica is not up, still Primary, or not linked to that peer")
    joined = case.outcomes.get(JOIN)
    if joined is None:
        return Ruling(case.operation.status, steps=commands(case))
    if not joined.succeeded:
        return failed_command(case, now, joined)
    return waiting(case, "connecting")


def commands(case: Case) -> tuple[Run, ...]:
    """A link has to be given up before it can be made in another way."""
    assert case.operation.spec.rejoin is not None
    peer = str(case.operation.spec.rejoin.peer_node_id)
    changes = (kernel_of(case.resource),)
    leave = Run(("drbdsetup", "disconnect", case.resource, peer, "--force"), LEAVE, case.about, changes=changes)
    join = Run(("drbdsetup", "connect", case.resource, peer, "--discard-my-data"), JOIN, case.about, changes=changes)
    return (leave, join)


def _state(case: Case) -> str:
    """Of the link; empty: there is none."""
    assert case.operation.spec.rejoin is not None
    peer = case.operation.spec.rejoin.peer_node_id
    links = case.status.connections if case.status is not None else ()
    return next((link.connection_state for link in links if link.peer_node_id == peer), "")
