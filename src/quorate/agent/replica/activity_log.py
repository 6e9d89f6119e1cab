"""The activity log of a disk that grew: without it the disk cannot be attached after a power loss.

When DRBD grows it takes its superblock and bitmaps to the new end of the disk. It writes a log there only when an
extent of the volume becomes active: until then a member that loses its power while somebody is Primary is refused ("No
usable activity log found"), and with it every copy, if all lose it (facts: drbd9-races, R and k4).

So the log is read, from the disk itself, each time the device has another size than it was last read at. What was
found is reported (``activityLogAt``, ``activityLogMissing``), and the growth is told to nobody before every member has
its log (``volumes.resize``). A write into the new space makes one, on all members at once; attaching a disk anew, too:

| this member is Primary | its last block is read and written back, while nobody was told of the new space |
| another one is         | that does; if this one still has none, an operation attaches its disk anew      |
| nobody is              | an operation attaches its disk anew                                             |

The block is written back in one command, and only while this agent knows the size from before the growth: a volume
that grew under another version is in use, and nothing is written there beside its users.
"""

from __future__ import annotations

from dataclasses import replace as changed
from datetime import datetime
from typing import Any, Final

from quorate.agent.backoff import Patience
from quorate.agent.memory import Outcome
from quorate.agent.replica import commands
from quorate.agent.replica.kernel import device, has_disk, is_diskful, is_primary
from quorate.agent.replica.looking import look_at_volumes
from quorate.agent.replica.verdict import FINE, Verdict
from quorate.agent.replica.view import View
from quorate.api.meta import Bytes
from quorate.api.quantity import Quantity
from quorate.drbd.metadata import usable_size

PATIENCE: Final = Patience(first=1.0, longest=30.0)
#: What every block of a log begins with, as text: what is not UTF-8 shows as replacement characters.
LOG_MAGIC: Final = bytes.fromhex("69cb65a2").decode(errors="replace")


def log_work(resource: str) -> str:
    """The name under which a block is written back: I/O may stand still, and nothing else may wait for it."""
    return f"log/{resource}"


def keep_log(view: View, now: datetime, settled: bool) -> Verdict:
    """Know that the disk has its log, or see to it."""
    status, shown = view.status, device(view.status)
    if not settled or status is None or shown is None or not shown.size:
        return FINE
    size, known = shown.size * 1024, view.actual.activity_log_at
    if known is not None and int(known) == size:
        return Verdict(actual={"activity_log_missing": False}) if view.actual.activity_log_missing else FINE
    writes = known is not None and int(known) < size and is_primary(status)
    if not is_diskful(view.config):
        return _write_back(view, now, size) if writes and _written(view, size) is None else _seen(size)
    if not has_disk(status) or _is_still_at_former_end(view, size):
        return FINE
    if known is None and not view.actual.initial_sync_completed:
        # Its metadata are as `create-md` and the first `up` made them: with a log, which needs no look and no report.
        return _seen(size)
    if writes and _written(view, size) is None:
        return _write_back(view, now, size)
    if not view.volumes_current:
        return look_at_volumes(view, now)
    return FINE if view.volume is None else _read(view, now, size, view.volume.size, writes=writes)


def _read(view: View, now: datetime, size: int, backing_size: int, *, writes: bool) -> Verdict:
    """Look for the log. What is not there is looked for again: it comes with the next write to the new space."""
    about = f"{size}@{backing_size}"
    last, written = view.outcomes.get(commands.READ_LOG), _written(view, size)
    read = last if last is not None and last.succeeded and last.about == about else None
    if read is not None and LOG_MAGIC in read.output:
        return _seen(size)
    missing: dict[str, Any] = {"activity_log_missing": True} if read is not None else {}
    is_news = read is None or (written is not None and written.at > read.at)
    if writes and not is_news and (again := _write_back(view, now, size)).steps:
        return changed(again, actual=missing)
    wait = 0.0 if is_news and (last is None or last.succeeded) else PATIENCE.left(last, about, now)
    steps = commands.read_log(view, backing_size, about)
    return Verdict(steps=() if wait > 0 else steps, again=wait or None, actual=missing)


def _written(view: View, size: int) -> Outcome | None:
    """The last block of this size, written back."""
    last = view.outcomes.get(commands.WRITE_BACK)
    return last if last is not None and last.succeeded and last.about == str(size) else None


def _write_back(view: View, now: datetime, size: int) -> Verdict:
    minor, about = view.config.device_minor, str(size)
    assert view.status is not None
    assert minor is not None
    if view.status.suspended:
        return FINE
    wait = PATIENCE.left(view.outcomes.get(commands.WRITE_BACK), about, now)
    if wait > 0:
        return Verdict(again=wait)
    step = commands.write_back(minor, size, commands.WRITE_BACK, about)
    return Verdict(steps=(step,), work=log_work(view.resource))


def _seen(size: int) -> Verdict:
    return Verdict(
        actual={"activity_log_at": Quantity.of_bytes(size), "activity_log_missing": False},
        drop=(commands.READ_LOG, commands.NOTE_PLACE),
    )


def _is_still_at_former_end(view: View, size: int) -> bool:
    """Whether the disk has grown and DRBD has not yet: its metadata, log included, are where they were."""
    former = view.actual.backing_size
    return former is not None and size <= usable_size(Bytes(int(former)), view.max_peers)
