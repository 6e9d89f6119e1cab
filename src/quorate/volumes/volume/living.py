"""The life of a formed volume: what transitions ask for, carried out.

The steps themselves are decided in ``quorate.volumes.transitions``; here replicas are made and deleted for them, find
their places, and what is left behind is cleared away. A deleting volume gets nothing new: it only lets go.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from quorate.api import annotation_keys, labels
from quorate.api.storage import ReplicatedVolumeReplica
from quorate.api.storage.drbd import ReplicaType
from quorate.api.struct import replace
from quorate.engine import Create, Delete, Patch, PlanEvent, Write
from quorate.volumes import attach, locking, places, resize, transitions
from quorate.volumes.attach import comparison, doubts, yielding
from quorate.volumes.life import Advance
from quorate.volumes.naming import named
from quorate.volumes.places import Places
from quorate.volumes.replica.leaving import accepts_data_loss
from quorate.volumes.resize import activity_log
from quorate.volumes.settling import young
from quorate.volumes.view import VolumeView
from quorate.volumes.volume import leftovers
from quorate.volumes.volume.addresses import with_new_addresses
from quorate.volumes.volume.outcome import Outcome
from quorate.volumes.volume.replicas import free_ids, new_replica
from quorate.volumes.waits import Wait


def live(view: VolumeView, found: Places, now: datetime) -> Outcome:
    """One pass over a volume that has been formed."""
    moved = with_new_addresses(view)
    if moved is not None:
        return Outcome(moved, advances=True)
    status = view.volume.status
    queue = attach.requests(view, now)
    if queue != status.attach_requests:
        status = replace(status, attach_requests=queue)
        view = view.with_status(status)
    settled = (
        yielding.yielded(view, now)
        or doubts.noticed(view, now)
        or comparison.finished(view, now)
        or comparison.failed(view)
    )
    if settled is not None:
        return Outcome(settled, advances=True)
    asked = transitions.advance(view, now, locking.locks_of(view)) or Advance()
    if asked.status is not None:
        return Outcome(asked.status, advances=True, again=asked.again)
    room = resize.reserve(view)
    growing = resize.begun(view, room)
    if growing is not None:
        return Outcome(growing, advances=True)
    tidying = _tidying(view, now)
    consent = tuple(_consent(view, asked))
    writes = (
        *consent,
        *(_ended_formation(view) if tidying is None else ()),
        *_replicas(view, asked),
        *_places(view, found, asked),
        *leftovers.clear(view),
        *room.writes,
        *(comparison.writes(view, now) if not _has_log_to_come(view) else ()),
        *yielding.writes(view),
        *activity_log.writes(view, now, locking.locks_of(view)),
    )
    wait = _no_free_id(view, asked) or next(iter(asked.waits), None) or _no_place(found) or resize.hindrance(view, room)
    later = (asked.again, tidying, *_look_again(view, now))
    return Outcome(
        asked.waiting or status,
        writes=_one_per_object(writes),
        wait=wait,
        again=min((each for each in later if each), default=None),
        spent_annotations=() if consent else asked.spent_annotations,
        event=_meant_for_nobody(view, asked),
        told=tuple(_deleted(view, asked)),
    )


def _look_again(view: VolumeView, now: datetime) -> tuple[float | None, ...]:
    """Seconds until something is due by time alone."""
    asked = (yielding, comparison, doubts, activity_log)
    return tuple(each.look_again(view, now) for each in asked)


def _has_log_to_come(view: VolumeView) -> bool:
    """Whether new space is to be overwritten, by a Primary, on disks that would not survive a power loss under one."""
    first = next(iter(view.volume.status.comparisons), None)
    return first is not None and first.overwrite and bool(activity_log.unproven(view))


def _deleted(view: VolumeView, asked: Advance) -> Iterator[PlanEvent]:
    """Whoever made a replica, or looks after the volume, is told that it goes and why: by both objects."""
    for name, why in asked.delete.items():
        replica = view.replica(name)
        if replica is not None and not replica.replica.deleting:
            for told in (replica.replica, view.volume):
                yield PlanEvent(told, "ReplicaDeleted", f"{named(view, [name])} is deleted: {why}")


def _consent(view: VolumeView, asked: Advance) -> Iterator[Write]:
    """A person's word, handed on to the replica that it has removed: the word is taken back before its disk can go."""
    replica = view.by_name[asked.given_up].replica if asked.given_up is not None else None
    if replica is not None and not accepts_data_loss(replica):
        said = {**replica.metadata.annotations, annotation_keys.ACCEPT_DATA_LOSS: "true"}
        yield Patch(replica, replace(replica, metadata=replace(replica.metadata, annotations=said)))


def _meant_for_nobody(view: VolumeView, asked: Advance) -> tuple[str, str] | None:
    """A person's word about a replica that this volume cannot even have, or a node without one: it is taken back."""
    said, spent = view.volume.metadata.annotations, asked.spent_annotations
    meant = said.get(annotation_keys.FORCE_REMOVE)
    if annotation_keys.FORCE_REMOVE in spent and meant not in view.possible_names:
        return "ForceRemoveRefused", f"{annotation_keys.FORCE_REMOVE}: {view.name} has no replica {meant}"
    node = view.forced_off
    if annotation_keys.FORCE_DETACH in spent and node is not None and view.on_node(node) is None:
        return "ForceDetachRefused", f"{annotation_keys.FORCE_DETACH}: {view.name} has no replica on {node}"
    return None


def _no_place(found: Places) -> Wait | None:
    """Why somebody who is to join has no place."""
    refusal = next(iter(found.refusals.values()), None)
    return Wait(refusal.reason.code, f"no place for {refusal.replica}: {refusal.message}") if refusal else None


def _tidying(view: VolumeView, now: datetime) -> float | None:
    """Seconds that tidying up can wait, for a volume that has just been born has people waiting for it."""
    if view.operation is None or view.operation.deleting:
        return None
    return young(max((each.last_transition_time for each in view.volume.status.conditions), default=None), now)


def _ended_formation(view: VolumeView) -> Iterator[Write]:
    """The operation has done its work."""
    if view.operation is not None and not view.operation.deleting:
        yield Delete(view.operation)


def _replicas(view: VolumeView, asked: Advance) -> Iterator[Write]:
    if asked.create and not view.volume.deleting:
        for number, new in zip(free_ids(view), asked.create, strict=False):
            yield Create(new_replica(view.volume, number, new.type, new.node))
    for name in asked.delete:
        replica = view.replica(name)
        if replica is not None and not replica.replica.deleting:
            yield Delete(replica.replica)
    for name, new_type in asked.retype.items():
        replica = view.replica(name)
        if replica is not None and replica.type is not new_type:
            yield _retyped(replica.replica, new_type)


def _retyped(replica: ReplicatedVolumeReplica, new_type: ReplicaType) -> Patch:
    """A replica that loses its disk loses the choice of it as well; one that gets a disk is given one by placement."""
    spec = replace(replica.spec, type=new_type, lvm_volume_group_name=None, lvm_volume_group_thin_pool_name=None)
    found = {key: value for key, value in replica.metadata.labels.items() if key != labels.LVM_VOLUME_GROUP}
    return Patch(replica, replace(replica, metadata=replace(replica.metadata, labels=found), spec=spec))


def _places(view: VolumeView, found: Places, asked: Advance) -> tuple[Write, ...]:
    """Not for those of whom something else is wanted; and nobody takes a node on which one is made in this pass."""
    if view.volume.deleting:
        return ()
    coming = {new.node for new in asked.create if new.node is not None}
    return tuple(
        write
        for write in places.writes(view, found)
        if write.target.name not in asked.delete
        and write.target.name not in asked.retype
        and not (isinstance(write.intended, ReplicatedVolumeReplica) and write.intended.spec.node_name in coming)
    )


def _one_per_object(writes: tuple[Write, ...]) -> tuple[Write, ...]:
    """The first write to an object of its kind; what else there is to do with it follows in the next pass."""
    seen: dict[tuple[str, str], None] = {}
    kept = []
    for write in writes:
        key = (write.target.KIND.name, write.target.name)
        if key not in seen:
            seen[key] = None
            kept.append(write)
    return tuple(kept)


def _no_free_id(view: VolumeView, asked: Advance) -> Wait | None:
    """The ninth member is refused, and it is said why (M18)."""
    if not asked.create or len(asked.create) <= len(free_ids(view)):
        return None
    return Wait("NoFreeNodeId", "all eight ids are taken: by replicas, or by members that are not forgotten yet")
