"""Primary and Secondary (M1 the right way round, M22, M23).

Never by force. A demotion is always allowed, also while the kernel is not yet what the file says. A promotion needs
data that was once good here, quorum now, and for the second of two primaries every link and a note of its duty.
"""

from __future__ import annotations

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
