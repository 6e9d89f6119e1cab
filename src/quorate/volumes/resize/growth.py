"""ResizeVolume: one revision that says the new size; ``transitions.catalogue`` makes a step of it.

It begins when every disk has grown, all members are connected and nothing is being copied or compared; alone. Whether
the new space may be assumed clean is decided here, of all disks: each agent knows only its own (``copyGrowth``).
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from quorate.api.quantity import Quantity
from quorate.api.storage.datamesh import Transition, TransitionType
from quorate.api.storage.drbd import ReplicaType
from quorate.api.storage.rv import Comparison, ComparisonReason, ReplicatedVolumeStatus
from quorate.api.struct import replace
from quorate.disks.expansion import Expansion
from quorate.disks.requests import State
from quorate.volumes.attach.comparison import added
from quorate.volumes.attach.turns import using
from quorate.volumes.attach.two_primaries import restless
from quorate.volumes.naming import named
from quorate.volumes.patience import left_of
from quorate.volumes.resize import activity_log
from quorate.volumes.resize.activity_log import unproven
from quorate.volumes.resize.space import asked_size
from quorate.volumes.sizes import BLOCK, backing_size, in_blocks, is_last
from quorate.volumes.view import ReplicaView, VolumeView
from quorate.volumes.waits import Blocker, Wait

#: How long all members may take to show the new size before it is taken back.
PATIENCE: Final = timedelta(seconds=120)


def begun(view: VolumeView, room: Expansion) -> ReplicatedVolumeStatus | None:
    """The status in which disks begin to grow, or in which that is over; None: neither.

    It is written before any disk is told: until then the size can be taken back, and afterwards it cannot. Disks that
    have grown may make the volume grow by itself, whenever its members meet again.
    """
    status, asked = view.volume.status, asked_size(view)
    known, under_way = int(view.datamesh.size or 0), view.transition(TransitionType.RESIZE_VOLUME)
    if status.growing_to is not None:
        is_over = known >= int(status.growing_to) and under_way is None and not unproven(view)
        return replace(status, growing_to=None) if is_over else None
    if asked is None or room.state is not State.GRANTED:
        return None
    if not _is_under_way(view) and (stops_users(view) or _cannot_follow(view)) is not None:
        return None
    return replace(status, growing_to=Quantity.of_bytes(asked))


def _is_under_way(view: VolumeView) -> bool:
    """Whether some disk has been told to grow already, by a version that did not note it."""
    known = view.datamesh.size
    return known is not None and any(
        each.logical_volume is not None and int(each.logical_volume.spec.size) > backing_size(view, each, int(known))
        for each in _with_copy(view)
    )


def hindrance(view: VolumeView, room: Expansion) -> Wait | None:
    """Why a volume that is to grow does not; None: it does, or is not to."""
    asked = asked_size(view)
    if asked is None:
        return activity_log.hindrance(view)
    if view.volume.status.growing_to is not None:
        small = _grown(view)
        return (_cannot_follow(view) or small) if small is not None else None
    size = Quantity.of_bytes(asked)
    if room.state is State.REJECTED:
        back = f"spec.size can be lowered again, to {view.datamesh.size}"
        return Wait("NoSpace", f"no room to grow to {size}: {room.message}; {back}")
    if room.state is State.GRANTED:
        return stops_users(view) or _cannot_follow(view)
    return Wait("WaitingForSpace", f"room to grow to {size} is asked for")


def _cannot_follow(view: VolumeView) -> Wait | None:
    """Copies whose logical volume somebody has deleted: it is kept, and never told anything again.

    Without it the others would grow as soon as its drive is away, and it could not be attached again.
    """
    stay = [each for each in _with_copy(view) if each.logical_volume is None or each.logical_volume.deleting]
    if not stay:
        return None
    names = named(view, (each.name for each in stay))
    told = f"the logical volume of {names} is gone or being deleted, and does not grow: delete that replica, and"
    return Wait("DiskDeleted", f"{told} another one takes its place", tuple(Blocker.of(each.replica) for each in stay))


def is_due(view: VolumeView) -> bool:
    """Whether a growth is asked for, and every disk is large enough for it."""
    begun = view.volume.status.growing_to is not None
    return begun and asked_size(view) is not None and _grown(view) is None


def may_grow(view: VolumeView, transition: Transition) -> Wait | None:
    """Before the new size is said."""
    others = [each for each in view.volume.status.datamesh_transitions if each.type is not transition.type]
    if others:
        return Wait("AnotherTransition", f"{others[0].type} is under way, and a volume grows alone")
    if any(not _is_beyond(view, each) for each in view.volume.status.comparisons):
        return Wait("WaitingForComparison", "copies may differ since the last growth or cut, and are compared first")
    joining = [member.name for member in view.members if member.type is ReplicaType.DISKFUL and member.hidden]
    if joining:
        return Wait("AnotherTransition", f"the copy of {named(view, joining)} is being made")
    return _grown(view) or restless(view) or _in_use(view)


def grow(view: VolumeView, transition: Transition) -> ReplicatedVolumeStatus:
    """The new size, whether it has to be copied, and what is to be made equal afterwards."""
    status, asked = view.volume.status, asked_size(view)
    if asked is None:
        return status
    copied = not _is_zero_everywhere(view)
    datamesh = replace(status.datamesh, size=Quantity.of_bytes(asked), copy_growth=copied)
    # One of a growth that came to nothing is made anew: nobody can have used what was never there.
    kept = tuple(each for each in status.comparisons if not _is_beyond(view, each))
    grown = replace(status, datamesh=datamesh, comparisons=kept)
    remains = None if copied else _former_metadata(view, transition, asked)
    return grown if remains is None else added(grown, remains)


def is_smaller(view: VolumeView, transition: Transition) -> Wait | None:
    """Whether DRBD does not show the new size everywhere yet; success is the size, not an exit code."""
    intended = int(view.datamesh.size or 0)
    small = [member.name for member in view.diskful_members if _shown(view, member.name) < intended]
    if not small:
        return restless(view) if view.datamesh.copy_growth else None
    said = "; ".join(filter(None, (_last_error(view, name) for name in small)))
    message = f"not {intended} bytes yet: {named(view, small)}{f': {said}' if said else ''}"
    return Wait("Resizing", message, tuple(Blocker("ReplicatedVolumeReplica", name) for name in small))


def given_up(view: VolumeView, transition: Transition, now: datetime) -> ReplicatedVolumeStatus | None:
    """The status with the former size, when a member is away and DRBD has not grown; None: it goes on.

    DRBD grows only with everybody there. The disks stay as large as they are, and it is tried again later. What was to
    be made equal stays noted: an agent may just now be telling DRBD to grow.
    """
    if transition.type is not TransitionType.RESIZE_VOLUME or is_smaller(view, transition) is None:
        return None
    away = restless(view)
    late = patience_left(transition, now) is None
    shown = [size for member in view.diskful_members if (size := _shown(view, member.name))]
    intended = int(view.datamesh.size or 0)
    if not late or away is None or not shown or max(shown) >= intended:
        return None
    status = view.volume.status
    datamesh = replace(status.datamesh, size=Quantity.of_bytes(max(shown) // BLOCK * BLOCK), copy_growth=False)
    rest = tuple(each for each in status.datamesh_transitions if each.type is not TransitionType.RESIZE_VOLUME)
    return replace(status, datamesh=datamesh, datamesh_revision=status.datamesh_revision + 1, datamesh_transitions=rest)


def patience_left(transition: Transition, now: datetime) -> float | None:
    """Seconds until a growth that is under way may be given up; None: it may be now, or it is none."""
    if transition.type is not TransitionType.RESIZE_VOLUME:
        return None
    return left_of(PATIENCE.total_seconds(), transition.started_at, now) or None


def _grown(view: VolumeView) -> Wait | None:
    """Whether some disk is not as large as it has to be, but for the last: that one grows when DRBD is told."""
    asked = asked_size(view)
    if asked is None:
        return None
    small = [
        replica.name
        for replica in _with_copy(view)
        if replica.logical_volume is None or (not is_last(view, replica) and _is_small(view, replica, asked))
    ]
    if not small:
        return None
    blockers = tuple(Blocker("ReplicatedVolumeReplica", name) for name in small)
    return Wait("WaitingForDisks", f"the disks of {named(view, small)} have not grown yet", blockers)


def _is_small(view: VolumeView, replica: ReplicaView, asked: int) -> bool:
    assert replica.logical_volume is not None
    return int(replica.logical_volume.status.actual_size or 0) < backing_size(view, replica, asked)


def stops_users(view: VolumeView) -> Wait | None:
    """Where growing would stop whoever uses the volume, however its disks grow."""
    if not 1 < len(view.diskful_members) <= (view.volume.status.drbd.config.quorum_minimum_redundancy or 1):
        return None
    return _detached_first(view, "every copy is needed for I/O, and one is behind for a moment while they are compared")


def _in_use(view: VolumeView) -> Wait | None:
    """The same, now that it is known how they have grown."""
    if not _is_zero_everywhere(view) and len(view.diskful_members) > 1:
        return _detached_first(view, "the new space is not known to be zero, so it is copied, which stops I/O")
    return stops_users(view)


def _detached_first(view: VolumeView, why: str) -> Wait | None:
    users = using(view)
    if not users:
        return None
    where = ", ".join(member.node_name for member in users)
    blockers = tuple(Blocker("ReplicatedVolumeReplica", member.name) for member in users)
    return Wait("WaitingForDetach", f"{why}: detach it first on {where}", blockers)


def _former_metadata(view: VolumeView, transition: Transition, asked: int) -> Comparison | None:
    """The range that held the old metadata, from the end of what could be used to the end of the old disks."""
    start: int = max(in_blocks(_shown(view, member.name)) for member in view.diskful_members)
    end: int = max(in_blocks(_former_size(replica)) for replica in _with_copy(view))
    users, overwrite = using(view), not using(view)
    alone = len(view.diskful_members) == 1
    if alone and users:
        return None
    if start >= min(end, asked):
        # It has grown by itself, when a connection came up, and may have been used since. DRBD copies then, but not to
        # a member whose link was not at rest at that moment: all that is new is compared.
        start, end, overwrite = int(view.datamesh.size or 0), asked, False
        if alone:
            return None
    return Comparison(
        revision=view.volume.status.datamesh_revision + 1,
        reason=ComparisonReason.RESIZE,
        since=transition.started_at,
        reference=view.diskful_members[0].name,
        start=start,
        end=end,
        overwrite=overwrite,
    )


def _is_beyond(view: VolumeView, comparison: Comparison) -> bool:
    """Whether a comparison is about a part that the volume does not have yet."""
    largest = max((_shown(view, member.name) for member in view.diskful_members), default=0)
    return comparison.reason is ComparisonReason.RESIZE and comparison.start >= largest > 0


def _former_size(replica: ReplicaView) -> int:
    """Of the backing device: what was written ahead before it grew; if nothing was, it has not grown."""
    former, volume = replica.replica.status.drbd.actual.backing_size, replica.logical_volume
    known = volume.status.actual_size if volume is not None else None
    return int(former if former is not None else known or 0)


def _is_zero_everywhere(view: VolumeView) -> bool:
    volumes = [replica.logical_volume for replica in _with_copy(view)]
    return all(volume is not None and (volume.status.known_zero or volume.status.grown_zero) for volume in volumes)


def _with_copy(view: VolumeView) -> list[ReplicaView]:
    found = (view.replica(member.name) for member in view.diskful_members)
    return [replica for replica in found if replica is not None]


def _shown(view: VolumeView, name: str) -> int:
    """The usable size that a member's kernel shows, in bytes."""
    replica = next((each for each in view.replicas if each.name == name), None)
    report = replica.report if replica is not None else None
    return report.devices[0].size * 1024 if report is not None and report.devices else 0


def _last_error(view: VolumeView, name: str) -> str:
    replica = next((each for each in view.replicas if each.name == name), None)
    error = replica.replica.status.drbd.errors.last_resize_error if replica is not None else None
    return " ".join(error.output.split()) if error is not None else ""
