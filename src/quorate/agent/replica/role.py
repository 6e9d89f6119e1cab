"""Primary and Secondary (M1 the right way round, M22, M23).

A promotion is never forced. It needs data that was once good here, quorum now, and for the second of two primaries
every link and a note of its duty. A demotion is always allowed, also while the kernel is not yet what the file says.

A demotion is forced by a person's word alone (``config.forceSecondary``), and then it comes before all else, by a name
of its own: other work on the resource may hang, waiting for a write that stands still. The kernel ends what its users
have under way, and fails what comes, until the last of them has closed the device. Of what was in flight a plain
direct write may return success and be on no copy (E1): the person accepts that, and an event tells it (``IOFails``).
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from quorate.agent.backoff import Patience
from quorate.agent.replica import commands
from quorate.agent.replica.kernel import all_established, device, has_disk, is_diskful, is_primary
from quorate.agent.replica.verdict import FINE, Verdict, attempt, cleared, failed
from quorate.agent.replica.view import View
from quorate.api.storage.drbd import DiskState, DrbdStatus
from quorate.drbd.outcomes import Outcome as Meaning
from quorate.drbd.outcomes import understand

PATIENCE = Patience(first=1.0, longest=10.0)


def change_role(view: View, now: datetime, settled: bool) -> Verdict:
    """Make the role what it is to be."""
    status = view.status
    if status is None:
        return FINE
    if view.config.primary == is_primary(status):
        return cleared("last_promotion_error")
    if not view.config.primary:
        return attempt(view, now, commands.ROLE, "secondary", (commands.demote(view, "secondary"),), patience=PATIENCE)
    if not settled or not may_promote(view, status):
        return FINE
    if _fails_for_nobody(view, status):
        return attempt(view, now, commands.DOWN, "anew", (commands.down(view, "anew"),), patience=PATIENCE)
    return attempt(view, now, commands.ROLE, "primary", (commands.promote(view, "primary"),), patience=PATIENCE)


def force_work(resource: str) -> str:
    """The name under which a demotion is forced: not behind other work on the resource."""
    return f"force/{resource}"


def step_down_by_force(view: View, now: datetime, settled: bool) -> Verdict:
    """Make a user Secondary whoever holds its device open, if a person says so; until then nothing else is done."""
    shown = device(view.status)
    if not view.config.force_secondary or view.config.primary or not is_primary(view.status):
        return FINE
    if shown is None or shown.minor != view.config.device_minor:
        return FINE  # somebody else's, as far as is known
    tried = attempt(view, now, commands.FORCE, "", (commands.demote_by_force(view),), patience=PATIENCE)
    return replace(tried, work=force_work(view.resource), stop=True)


def may_promote(view: View, status: DrbdStatus) -> bool:
    """Whether it is worth asking the kernel, which decides."""
    shown = device(status)
    if shown is None or not shown.quorum:
        return False
    if is_diskful(view.config) and not (view.actual.initial_sync_completed and has_disk(status)):
        # Its file says majority: without its disk it would count itself (diskless_own_quorum_majority).
        return False
    if view.config.yields:
        good = not is_diskful(view.config) or shown.disk_state == DiskState.UP_TO_DATE
        return good and view.duty_noted and all_established(view.config, status)
    return True


def _fails_for_nobody(view: View, status: DrbdStatus) -> bool:
    """Whether a member without a disk fails I/O until its last user is gone, and there is none: it has to start anew.

    So it is with one that was overtaken while it stood still (``majority_3d``), if nobody had the device open just
    then: nobody can open it either, so nobody ever closes it. One with a disk is left as it is: taken down and up it
    would meet its peers anew, and marks that tell of what they lack may be lost by that.
    """
    last = failed(view, commands.ROLE)
    if not status.force_io_failures or has_disk(status) or last is None or last.exit_code is None:
        return False
    answer = understand(last.exit_code, last.output)
    return last.about == "primary" and answer.outcome is Meaning.HELD_OPEN and not answer.holders
