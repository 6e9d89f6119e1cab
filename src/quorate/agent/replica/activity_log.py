"""The activity log of a disk that grew: without it the disk cannot be attached after a power loss.

When DRBD grows it takes its superblock and bitmaps to the new end of the disk. It writes a log there only when an
extent of the volume becomes active: until then a member that loses its power while somebody is Primary is refused ("No
usable activity log found"), and with it every copy, if all lose it (facts: drbd9-races, R and k4).

So a copy of the log is there before DRBD grows (``lvm.growing``). It is as old as the growth of that disk: what has
become active since is not in it. As soon as this agent sees the new size it has DRBD take no extent for active any
more (``renew_log``), and from then on the log at the new place is whole: every write is noted there first.

Then the log is read, from the disk itself, whenever the device has another size than it was last read at. What was
found is reported (``activityLogAt``, ``activityLogMissing``), and the growth is told to nobody before every member has
its log (``volumes.resize``). Where there is none, as on members that grew under older versions, the log is renewed as
well: the next write of the volume's user, wherever it is, makes one on every member whose log was renewed. A Secondary
need not wait for it: an operation attaches its disk anew.

Nothing is ever written to the volume for this, not even what was read there just before: its users see the new size at
once, and a write of theirs in between would be lost.
"""

from __future__ import annotations

from dataclasses import replace as changed
from datetime import datetime
from typing import Final

from quorate.agent.backoff import Patience
from quorate.agent.replica import commands
from quorate.agent.replica.kernel import device, has_disk, is_diskful
from quorate.agent.replica.looking import look_at_volumes
from quorate.agent.replica.verdict import FINE, Verdict
from quorate.agent.replica.view import View
from quorate.api.meta import Bytes
from quorate.api.quantity import Quantity
from quorate.drbd.metadata import usable_size

PATIENCE: Final = Patience(first=1.0, longest=30.0)
#: How often DRBD may say that it cannot now, in a row: it does so under load (k4_d, 14), and then extents come and go.
TRIES: Final = 6
#: What every block of a log begins with, as text: what is not UTF-8 shows as replacement characters.
LOG_MAGIC: Final = bytes.fromhex("69cb65a2").decode(errors="replace")


def keep_log(view: View, now: datetime, settled: bool) -> Verdict:
    """Know that the disk has its log, or see to it."""
    status, shown = view.status, device(view.status)
    if not settled or status is None or shown is None or not shown.size:
        return FINE
    size, known = shown.size * 1024, view.actual.activity_log_at
    if not is_diskful(view.config):
        return FINE if known is not None and int(known) == size else _seen(size)
    if not has_disk(status) or _is_still_at_former_end(view, size):
        return FINE
    if known is None and not view.actual.initial_sync_completed:
        # Its metadata are as `create-md` and the first `up` made them: with a log, which needs no look and no report.
        return _seen(size)
    if known is not None and int(known) == size:
        restored = _restored(view, now, size)
        found = view.actual.activity_log_missing
        return changed(restored, actual={"activity_log_missing": False}) if found else restored
    if (known is not None or view.actual.activity_log_missing) and (renewal := _renewed(view, now, size)) is not None:
        return renewal
    if not view.volumes_current:
        return look_at_volumes(view, now)
    return FINE if view.volume is None else _read(view, now, size, view.volume.size)


def _renewed(view: View, now: datetime, size: int) -> Verdict | None:
    """Have what is written from now on noted in the log; None: that is done, or DRBD cannot."""
    about, last = str(size), view.outcomes.get(commands.RENEW_LOG)
    if last is not None and last.about == about and (last.succeeded or last.failures >= TRIES):
        return None
    if view.status is None or view.status.suspended:
        return FINE
    wait = PATIENCE.left(last, about, now)
    steps = (commands.renew_log(view, about), commands.restore_log(view, about))
    return Verdict(steps=() if wait > 0 else steps, again=wait or None)


def _restored(view: View, now: datetime, size: int) -> Verdict:
    """See that the log has as many extents as before: DRBD may have refused the way back."""
    about, last = str(size), view.outcomes.get(commands.RESTORE_LOG)
    if last is None or last.succeeded or last.about != about or view.status is None or view.status.suspended:
        return FINE
    wait = PATIENCE.left(last, about, now)
    return Verdict(steps=() if wait > 0 else (commands.restore_log(view, about),), again=wait or None)


def _read(view: View, now: datetime, size: int, backing_size: int) -> Verdict:
    """Look for the log. What is not there is looked for again: it comes with the next write."""
    about = f"{size}@{backing_size}"
    last, renewed = view.outcomes.get(commands.READ_LOG), view.outcomes.get(commands.RENEW_LOG)
    read = last if last is not None and last.succeeded and last.about == about else None
    if read is not None and LOG_MAGIC in read.output:
        return _seen(size)
    is_news = read is None or (renewed is not None and renewed.at > read.at)
    wait = 0.0 if is_news and (last is None or last.succeeded) else PATIENCE.left(last, about, now)
    steps = commands.read_log(view, backing_size, about) if wait <= 0 else ()
    missing = {"activity_log_missing": True} if read is not None else {}
    return Verdict(steps=steps, again=wait or None, actual=missing)


def _seen(size: int) -> Verdict:
    return Verdict(
        actual={"activity_log_at": Quantity.of_bytes(size), "activity_log_missing": False},
        drop=(commands.READ_LOG, commands.NOTE_PLACE),
    )


def _is_still_at_former_end(view: View, size: int) -> bool:
    """Whether the disk has grown and DRBD has not yet: its metadata, log included, are where they were."""
    former = view.actual.backing_size
    return former is not None and size <= usable_size(Bytes(int(former)), view.max_peers)
