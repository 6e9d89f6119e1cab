"""Taking the resource out of the kernel: because its config says so, because it is another's, or at its end."""

from __future__ import annotations

from datetime import datetime

from quorate.agent.backoff import Patience
from quorate.agent.replica import commands
from quorate.agent.replica.kernel import device
from quorate.agent.replica.looking import look_at_files
from quorate.agent.replica.verdict import FINE, Verdict, attempt, own_error
from quorate.agent.replica.view import View

#: Whoever holds the device open may close it any moment.
PATIENCE = Patience(first=1.0, longest=10.0)
FOREIGN = "ForeignResource"


def is_foreign(view: View) -> bool:
    """Whether a resource of our name is somebody else's: no file of ours is there, and its device is not ours."""
    shown = device(view.status)
    return view.without_files and shown is not None and shown.minor != view.config.device_minor


def leave_foreign(view: View, now: datetime, settled: bool) -> Verdict:
    """What is somebody else's is neither taken down nor adjusted: data may be on it."""
    shown = device(view.status)
    if shown is None or shown.minor == view.config.device_minor:
        return FINE
    if not view.files_current:
        return look_at_files(view, now, settled)
    if not is_foreign(view):
        return FINE
    message = (
        f"the kernel has a resource {view.resource} with minor {shown.minor}, which no file of ours describes: "
        "it is somebody else's and is left as it is; take it down, or choose another name for the volume"
    )
    return Verdict(errors={"last_adjustment_error": own_error(FOREIGN, message)}, stop=True, unsettled=True)


def take_down(view: View, now: datetime, settled: bool) -> Verdict:
    """``config.down``: the resource is down, its files are kept."""
    if not view.config.down:
        return FINE
    if view.status is None:
        return Verdict(stop=True, errors={"last_adjustment_error": None, "last_promotion_error": None})
    return _end(attempt(view, now, commands.DOWN, "down", (commands.down(view, "down"),), patience=PATIENCE))


def take_down_other_member(view: View, now: datetime, settled: bool) -> Verdict:
    """A resource of our name with another node id is a former replica of the volume. ``adjust`` cannot change that."""
    status, node_id = view.status, view.config.node_id
    if status is None or status.node_id == node_id:
        return FINE
    about = f"node id {status.node_id}"
    return _end(attempt(view, now, commands.DOWN, about, (commands.down(view, about),), patience=PATIENCE))


def _end(verdict: Verdict) -> Verdict:
    """Nothing but this is to be done to the resource."""
    return Verdict(steps=verdict.steps, again=verdict.again, stop=True, unsettled=True)
