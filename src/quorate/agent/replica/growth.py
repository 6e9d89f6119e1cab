"""Growing: the disk is grown by LVM's part, and then DRBD takes it into use.

LVM's part zeroes the new extents before they are the disk's, so DRBD may take them into use at any moment, as it does
by itself when a link comes back. And it writes the disk's size ahead (``actual.backingSize``): until DRBD has used the
new space its metadata are still at the end of that size. Here it is cleared, once DRBD shows more than would fit on it.

The disk of the member that resizes grows last, and only with everybody connected (``lvm.growing``): while some disk has
not grown DRBD does not either, whatever its links do. ``disk { size …; }`` in the file is no way to hold it: every
``adjust`` that finds another size in the kernel resizes to the file's, by copying or by cutting off (decision 0023).

``resize`` runs on one member, with all connected and nothing being synchronised. Without ``--assume-clean`` the peers
become Inconsistent for the new area and a volume that needs two copies stops meanwhile (M20, recording resize), so it
is used only while nobody is primary; with it, differences between the members' old bytes are hidden
(assume_clean_verify), so it is used only where the new space is known to be zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from quorate.agent.lvm.seen import growing_tag
from quorate.agent.replica import commands
from quorate.agent.replica.kernel import all_established, anyone_primary, device, has_disk, is_responsible
from quorate.agent.replica.looking import look_at_volumes
from quorate.agent.replica.verdict import FINE, Verdict, attempt, cleared, own_error
from quorate.agent.replica.view import View
from quorate.api.meta import Bytes
from quorate.api.storage.drbd import CommandError
from quorate.drbd.metadata import lower_size, usable_size
from quorate.drbd.outcomes import Outcome as Meaning
from quorate.drbd.outcomes import understand

_MUST_BE_COPIED = own_error(
    "WaitingForDetach",
    "the new space is not known to be zero, so it must be copied, which stops I/O: detach the volume first",
)


def clear_former_size(view: View, now: datetime, settled: bool) -> Verdict:
    """``actual.backingSize`` has served once DRBD shows more than would fit on it."""
    shown, former = device(view.status), view.actual.backing_size
    if former is None or shown is None or not has_disk(view.status):
        return FINE
    if shown.size * 1024 > usable_size(Bytes(int(former)), view.max_peers):
        return Verdict(actual={"backing_size": None})
    return FINE


def resize(view: View, now: datetime, settled: bool) -> Verdict:
    """Take a grown disk into use. Success is the new size, not the exit code."""
    config, status, shown = view.config, view.status, device(view.status)
    if status is None or shown is None or config.size is None or not has_disk(status):
        return FINE
    if shown.size * 1024 >= int(config.size):
        return cleared("last_resize_error")
    if not settled or not is_responsible(config) or not all_established(config, status):
        return FINE
    if not view.volumes_current:
        return look_at_volumes(view, now)
    needed = lower_size(Bytes(int(config.size)), view.max_peers)
    if view.volume is None or view.volume.size < needed or not _is_judged(view, view.volume.size):
        return FINE  # the disk has not grown yet
    known_zero = _is_new_space_zero(view) and not config.copy_growth
    if not known_zero and config.peers and anyone_primary(status):
        return Verdict(errors={"last_resize_error": _MUST_BE_COPIED})
    about = str(int(config.size))
    step = commands.resize(view, about, assume_clean=known_zero)
    verdict = attempt(view, now, commands.RESIZE, about, (step,))
    return Verdict(steps=verdict.steps, again=verdict.again, errors=_result(view, about, shown.size), disk=True)


def _is_judged(view: View, size: int) -> bool:
    """Whether LVM's part has reported this size, or says on the disk that it made it so large.

    Only then its word on what the disk grew by is about all of it. The API is not waited for: the disk that grows last
    is this one, and until DRBD is told, a link that breaks and comes back would make it grow by itself.
    """
    assert view.volume is not None
    if growing_tag(size) in view.volume.tags:
        return True
    known = None if view.logical_volume is None else view.logical_volume.status.actual_size
    return known is not None and int(known) >= size


def _is_new_space_zero(view: View) -> bool:
    """Of this member's disk. Of the others' ``config.copyGrowth`` tells."""
    if view.logical_volume is None:
        return False
    status = view.logical_volume.status
    return status.known_zero or status.grown_zero


def _result(view: View, about: str, size: int) -> Mapping[str, CommandError | None]:
    """What to say of an attempt that has not made it larger."""
    last = view.outcomes.get(commands.RESIZE)
    if last is None or last.about != about or last.exit_code is None:
        return {}
    if last.succeeded:
        message = f"it ended without an error and the size is still {size} KiB"
        return {"last_resize_error": own_error("SizeUnchanged", message, last.command)}
    if understand(last.exit_code, last.output).outcome is Meaning.BACKING_TOO_SMALL:
        return {"last_resize_error": None}  # (111): some member's disk has not grown yet, a matter of time
    return {}
