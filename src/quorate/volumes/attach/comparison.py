"""Copies that may differ although DRBD says that they do not: compared, or overwritten where nobody has used them.

``rv.status.comparisons`` is the memory of it; each is done by one DRBDResourceOperation, the oldest first:

| open                                    | done by     | when                                                         |
|-----------------------------------------|-------------|--------------------------------------------------------------|
| a part that nobody has used (overwrite) | `ZeroRange` | nobody uses the volume, all are connected, nothing is copied |
| any other                               | `Verify`    | all are connected, nothing is copied; after a growth, where  |
|                                         |             | a copy less stops the volume (2D), only while nobody uses it |

Copies are made from the one in use, while one is: what is written to it while another member copies from elsewhere is
sent to nobody and missing afterwards (``facts/drbd9-races``, G: 3 of 4). Where that one may be the stale one, or has no
disk, nothing is copied before it is detached.

Whoever begins to use the volume ends the first row: what was never used may be used from then on, and is compared
instead of overwritten. An operation that was begun ends first (``guards``); one that was not is taken back.
An operation that fails is made anew, ever more rarely. Those that hold others back come first. When it has succeeded
the comparison is struck off the list, and then the operation goes: a crash in between strikes nothing off twice,
because the operation carries the comparison's revision.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from quorate.api import labels, names
from quorate.api.meta import ObjectMeta
from quorate.api.storage import DRBDResourceOperation
from quorate.api.storage.drbd import DiskState, ReplicaType, Role
from quorate.api.storage.drbdrop import (
    ByteRange,
    DRBDResourceOperationSpec,
    OperationPhase,
    OperationType,
)
from quorate.api.storage.rv import Comparison, ComparisonReason, ReplicatedVolumeStatus
from quorate.api.struct import replace
from quorate.engine import Create, Delete, Write
from quorate.volumes.attach.doubts import compared
from quorate.volumes.attach.turns import served, using
from quorate.volumes.attach.two_primaries import restless
from quorate.volumes.naming import named
from quorate.volumes.patience import left_of
from quorate.volumes.stale import DOUBTS, binding, compared_later
from quorate.volumes.view import ReplicaView, VolumeView
from quorate.volumes.waits import Blocker, Wait

_TYPES = (OperationType.VERIFY, OperationType.ZERO_RANGE)
#: Seconds between attempts: from the second failure on, ever more, up to an hour.
FIRST, LONGEST = 60.0, 3600.0
#: The end of a volume whose size is not known; the agent leaves out what is beyond the device's end.
_EVERYWHERE = 2**62


def finished(view: VolumeView, now: datetime) -> ReplicatedVolumeStatus | None:
    """The status without the comparison that has been done; None: none has."""
    first, operation = _first(view), _operation(view)
    if first is None or operation is None or operation.status.phase is not OperationPhase.SUCCEEDED:
        return None
    status = view.volume.status
    left = tuple(each for each in status.comparisons if each.revision != first.revision)
    whole = first.start == 0 and first.end is None
    if not whole:
        return replace(status, comparisons=left)
    return replace(status, comparisons=left, compared_marks=compared(view, now), compared_at=now)


def failed(view: VolumeView) -> ReplicatedVolumeStatus | None:
    """The status in which one more attempt was in vain; None: none was, or it is counted."""
    first, operation = _first(view), _operation(view)
    if first is None or operation is None or operation.status.phase is not OperationPhase.FAILED:
        return None
    ended = operation.status.completed_at
    if ended is None or (first.tried_at is not None and ended <= first.tried_at):
        return None
    tried = replace(first, attempts=first.attempts + 1, tried_at=ended)
    status = view.volume.status
    return replace(status, comparisons=tuple(tried if each is first else each for each in status.comparisons))


def look_again(view: VolumeView, now: datetime) -> float | None:
    """Seconds until the next attempt; None: none is waited for."""
    first = _first(view)
    left = _patience(first, now) if first is not None else 0.0
    return left if left > 0 else None


def _patience(comparison: Comparison, now: datetime) -> float:
    if comparison.tried_at is None:
        return 0.0
    # One that failed by chance is repeated at once; what cannot be done is not done over and over.
    wait = 0.0 if comparison.attempts <= 1 else min(LONGEST, FIRST * 2.0 ** (comparison.attempts - 2))
    return left_of(wait, comparison.tried_at, now)


def writes(view: VolumeView, now: datetime) -> Iterator[Write]:
    """Operations that should be made, and those that have had their time."""
    first, current = _first(view), _operation(view)
    known = [each for each in view.comparisons if each.spec.type in _TYPES]
    for operation in known:
        if not operation.deleting and (operation is not current or _is_over(view, operation)):
            yield Delete(operation)
    if first is None or known or view.volume.deleting:
        return
    replica = reference(view, first)
    if _patience(first, now) > 0 or replica is None or replica.node_name is None:
        return
    if hindrance(view, first) is None:
        yield Create(_made(view, first, replica))


def hindrance(view: VolumeView, comparison: Comparison) -> Wait | None:
    """Why a comparison cannot be done now; None: it can."""
    if not comparison.overwrite and (wait := _elsewhere(view, comparison)) is not None:
        return wait
    replica = reference(view, comparison)
    if replica is None or not replica.fresh or view.state_of(replica.name).disk != DiskState.UP_TO_DATE:
        who = comparison.reference if replica is None else replica.name
        return Wait("WaitingForReference", f"{who} is to be compared with, and is not up to date")
    report = replica.report
    shown = report.devices[0].size * 1024 if report is not None and report.devices else 0
    if shown <= comparison.start:
        return Wait("WaitingForGrowth", f"{replica.name} has not grown to where copies may differ")
    stops = comparison.reason is ComparisonReason.RESIZE and _needs_both(view)
    if (comparison.overwrite or stops) and (users := using(view)):
        where = ", ".join(member.node_name for member in users)
        blockers = tuple(Blocker("ReplicatedVolumeReplica", member.name) for member in users)
        return Wait("WaitingForDetach", f"it is in use on {where}", blockers)
    return restless(view, without=compared_later(view, comparison))


def _elsewhere(view: VolumeView, comparison: Comparison) -> Wait | None:
    """Whether somebody uses the volume with another copy than the one that counts, or with none."""
    if comparison.undecided:
        return Wait("WaitingForPerson", "nobody but a person can say whose copy counts")
    users = [member for member in using(view) if view.state_of(member.name).role == Role.PRIMARY]
    if not users or any(member.name == comparison.reference for member in users):
        return None
    if any(member.type is ReplicaType.DISKFUL for member in users) and not _is_strict(view, comparison):
        return None
    told = f"it is in use on {', '.join(member.node_name for member in users)}"
    why = f"copies are made from {named(view, [comparison.reference])} only while nobody writes elsewhere"
    blockers = tuple(Blocker("ReplicatedVolumeReplica", member.name) for member in users)
    return Wait("WaitingForDetach", f"{told}, and {why}", blockers)


def _is_strict(view: VolumeView, comparison: Comparison) -> bool:
    """Whether the copy in use may lack what the reference has: it was not weighed, or marks are against it."""
    if comparison.reason is ComparisonReason.RESIZE:
        return False
    if comparison.reason not in DOUBTS:
        return True
    return any(view.state_of(name).role == Role.PRIMARY for name in comparison.stale if name in view.members_by_name)


def reference(view: VolumeView, comparison: Comparison) -> ReplicaView | None:
    """Whose copy counts: the one in use, else the one that is named; without it any good copy will do."""
    users = [
        member
        for member in using(view)
        if member.type is ReplicaType.DISKFUL and view.state_of(member.name).role == Role.PRIMARY
    ]
    if len(users) == 1 and not _is_strict(view, comparison):
        return view.replica(users[0].name)
    named = view.replica(comparison.reference)
    if named is not None and named.member is not None and named.member.type is ReplicaType.DISKFUL:
        return named
    good = [
        member
        for member in view.diskful_members
        if not member.hidden
        and member.name not in comparison.stale
        and view.state_of(member.name).disk == DiskState.UP_TO_DATE
    ]
    return view.replica(good[0].name) if good else None


def used(status: ReplicatedVolumeStatus) -> ReplicatedVolumeStatus:
    """Somebody is about to use the volume: nothing may be overwritten any more."""
    if not any(each.overwrite for each in status.comparisons):
        return status
    return replace(status, comparisons=tuple(replace(each, overwrite=False) for each in status.comparisons))


def added(status: ReplicatedVolumeStatus, comparison: Comparison) -> ReplicatedVolumeStatus:
    """The status with one more; of two that are about everything the first is enough."""
    known = any(each.end is None and each.start == 0 and not each.overwrite for each in status.comparisons)
    whole = comparison.end is None and comparison.start == 0
    if known and whole:
        # What differs since then must be found too: the one that may be half done begins anew.
        rest = tuple(each for each in status.comparisons if each.end is not None or each.start)
        return replace(status, comparisons=(*rest, comparison))
    return replace(status, comparisons=(*status.comparisons, comparison))


def _first(view: VolumeView) -> Comparison | None:
    """What is begun is ended; then what holds others back, then the oldest."""
    found = view.volume.status.comparisons
    made = {each.name for each in view.comparisons}
    begun = [each for each in found if names.comparison_operation(view.name, each.revision) in made]
    return next(iter((*begun, *binding(view), *found)), None)


def _operation(view: VolumeView) -> DRBDResourceOperation | None:
    """The operation of the first comparison."""
    first = _first(view)
    if first is None:
        return None
    name = names.comparison_operation(view.name, first.revision)
    return next((each for each in view.comparisons if each.name == name), None)


def _is_over(view: VolumeView, operation: DRBDResourceOperation) -> bool:
    """Whether the first comparison's operation has failed, or is of no use before it has begun."""
    first, phase = _first(view), operation.status.phase
    assert first is not None
    if phase is OperationPhase.FAILED:
        return True
    not_begun = phase is not OperationPhase.RUNNING and phase is not OperationPhase.SUCCEEDED
    wrong = (operation.spec.type is OperationType.ZERO_RANGE) != first.overwrite
    return not_begun and (wrong or (first.overwrite and bool(served(view)) and hindrance(view, first) is not None))


def _made(view: VolumeView, comparison: Comparison, replica: ReplicaView) -> DRBDResourceOperation:
    assert replica.node_name is not None
    whole = comparison.start == 0 and comparison.end is None
    end = comparison.end if comparison.end is not None else _EVERYWHERE
    return DRBDResourceOperation(
        metadata=ObjectMeta(
            name=names.comparison_operation(view.name, comparison.revision),
            labels={labels.NODE: replica.node_name, labels.REPLICATED_VOLUME: labels.value(view.name)},
        ),
        spec=DRBDResourceOperationSpec(
            node_name=replica.node_name,
            drbd_resource_name=replica.name,
            type=OperationType.ZERO_RANGE if comparison.overwrite else OperationType.VERIFY,
            range=None if whole else ByteRange(start=comparison.start, end=end),
        ),
    )


def _needs_both(view: VolumeView) -> bool:
    """Whether a copy that is behind for a moment would stop the volume."""
    copies = [member for member in view.diskful_members if not member.hidden]
    return len(copies) <= (view.volume.status.drbd.config.quorum_minimum_redundancy or 1)
