"""The guard of a second primary, which DRBD does not protect from the first.

When only the link between the two is cut, both go on writing (recordings two_primaries_2dtb_link_cut,
two_primaries_3d_disconnect).

So the younger one yields: when any of its links goes, it cuts the others too, loses quorum and suspends. This is a
controller of its own, which writes nothing and looks for itself: the cut that it acts upon may well have cut this node
off the API, or the work on the resource may hang. It stays cut off until its config no longer says that it yields;
then the usual ``adjust`` connects it again and the kernel demotes it by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from quorate.agent.backoff import Patience
from quorate.agent.memory import Outcome
from quorate.agent.replica.kernel import all_connected, is_primary
from quorate.agent.replica.verdict import FINE, Verdict
from quorate.agent.steps import KERNEL, Look, Run, kernel_of
from quorate.api.storage.drbd import ConnectionState, DrbdConfig, DrbdStatus

PATIENCE = Patience(first=0.5, longest=5.0)
CUT = "cut"


@dataclass(frozen=True, slots=True)
class Guarded:
    """What the guard sees."""

    resource: str
    file: str
    config: DrbdConfig
    current: bool
    status: DrbdStatus | None
    looked: Outcome | None = None
    cut: Outcome | None = None


def guard_work(resource: str) -> str:
    """The name under which the guard acts: not behind other work on the resource."""
    return f"guard/{resource}"


def must_yield(config: DrbdConfig, status: DrbdStatus | None) -> bool:
    """Whether this member is the younger primary and one of its links is gone."""
    return config.yields and status is not None and is_primary(status) and not all_connected(config, status)


def guard(view: Guarded, now: datetime) -> Verdict:
    """Look, and if a link is gone cut the others."""
    if not view.config.yields:
        return FINE
    if not view.current:
        failed = view.looked is not None and not view.looked.succeeded
        wait = PATIENCE.left(view.looked, "", now) if failed else 0.0
        return Verdict(steps=() if wait > 0 else (Look(KERNEL, view.resource),), again=wait or None)
    if view.status is None or not must_yield(view.config, view.status):
        return FINE
    if all(link.connection_state == ConnectionState.STAND_ALONE for link in view.status.connections):
        return FINE
    wait = PATIENCE.left(view.cut, "", now)
    argv = ("drbdadm", "-c", view.file, "disconnect", "--force", view.resource)
    step = Run(argv, CUT, changes=(kernel_of(view.resource),))
    return Verdict(steps=() if wait > 0 else (step,), again=wait or None)
