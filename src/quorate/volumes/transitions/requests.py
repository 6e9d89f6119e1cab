"""Why replicas should come, go or change: the actors of 000, as reasons.

| actor                 | asks                                                                                     |
|-----------------------|------------------------------------------------------------------------------------------|
| rvr-diskful-count     | as many diskful replicas as the layout has, not counting those on their way out          |
| rvr-tie-breaker-count | one where the layout has one, unless an access replica is it (M25)                       |
| rvr-access-count      | one on each node whose turn it is and that has no replica (not Local), while it is       |
| rvr-missing-node      | none on a node without a core Node whose agent is silent                                 |
| a lost node           | NotReady past its grace: replaced, and removed once the replacement is in sync           |
| rvr-node-cordon       | moved away from a node with the annotation ``evacuate`` (M29)                            |
| misplaced             | moved away from a node, or a volume group, that is not in the pool any more              |
| a drive that leaves   | moved away from it when its turn has come (``quorate.volumes.evacuation``)               |
| the broker's marker   | moved: BROKEN or FAULTY, on the replica itself                                           |
| unusable metadata     | a disk that grew and lost its power too early: removed while all other copies serve      |
| a copy without place  | the tie-breaker moves from the only node with a disk for it, if there is one for itself  |

What is deleted cannot be taken back, and whoever is in use cannot leave. So a replica that is to be moved stays until
it is detached, and an access replica, where it breaks no ties, for as long as it is asked for. A node that comes back,
or is not to be emptied after all, finds it as it was.

Replacement is create first, remove after. However often and by however many it is asked for, there is never more than
one replica beyond the layout: members, and those that are to become one. (A copy that waits for the tie-breaker to make
room has no place, so it is none of these: the tie-breaker's replacement may come before it.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Final

from quorate.api import annotation_keys
from quorate.api.conditions.lvm import LogicalVolumeFailure
from quorate.api.conditions.rvr import ConfigurationAdjusted
from quorate.api.maintenance.action import Marker
from quorate.api.meta import NodeName
from quorate.api.scalars import ReplicaName
from quorate.api.storage.configuration import VolumeAccess
from quorate.api.storage.drbd import ReplicaType
from quorate.placement.layout import Layout
from quorate.volumes import places
from quorate.volumes.attach.turns import served
from quorate.volumes.life import NewReplica
from quorate.volumes.transitions.members import (
    good_copies,
    has_lost_its_disk,
    is_serving,
    is_up,
    is_whole,
    out_of_touch,
    promise_of,
)
from quorate.volumes.transitions.nodes import is_gone, is_past_grace, is_to_be_emptied, left_of_grace, removes_lost
from quorate.volumes.transitions.proposals import forced_replica
from quorate.volumes.view import ReplicaView, VolumeView
from quorate.volumes.waits import Blocker, Wait


class Deed(Enum):
    """What is asked for."""

    CREATE = "Create"
    DELETE = "Delete"
    RETYPE = "Retype"


@dataclass(frozen=True, slots=True)
class Request:
    """One replica to come, go or change, and why."""

    deed: Deed
    #: A CamelCase code: the actor's.
    reason: str
    message: str
    type: ReplicaType
    #: None: it does not exist yet.
    replica: ReplicaName | None = None
    #: Where a new one must be; None: placement chooses.
    node: NodeName | None = None


class Fate(Enum):
    """Why a replica should not stay."""

    DELETED = "Deleted"
    NODE_GONE = "NodeGone"
    NODE_LOST = "NodeLost"
    EVACUATED = "Evacuated"
    MISPLACED = "Misplaced"
    DRIVE_LEAVES = "DriveLeaves"
    MARKED = "Marked"
    METADATA_UNUSABLE = "MetadataUnusable"
    GIVES_WAY = "GivesWay"


#: Moved to another place, and removed once it is not needed.
_MOVED: Final = (
    Fate.NODE_LOST,
    Fate.EVACUATED,
    Fate.MISPLACED,
    Fate.DRIVE_LEAVES,
    Fate.MARKED,
    Fate.METADATA_UNUSABLE,
)
_BAD_MARKERS: Final = (Marker.DISK_BROKEN, Marker.DISK_FAULTY)


def requested(view: VolumeView, now: datetime) -> tuple[Request, ...]:
    """Everything that should be asked for now. The same view gives the same answer."""
    promise = promise_of(view)
    if view.rv is None or promise is None or view.forming or view.rv.deleting:
        return ()
    fates = {replica.name: fate for replica in view.replicas if (fate := fate_of(view, replica, now)) is not None}
    diskful = tuple(_diskful(view, promise, fates))
    coming = sum(each.deed is Deed.CREATE for each in diskful)
    return (
        *_by_force(view),
        *_missing_nodes(view, fates),
        *diskful,
        *_diskless(view, promise, fates, coming, now),
    )


def creations(asked: Iterable[Request]) -> tuple[NewReplica, ...]:
    """The replicas to be made."""
    return tuple(NewReplica(each.type, each.node) for each in asked if each.deed is Deed.CREATE)


def deletions(asked: Iterable[Request]) -> Mapping[ReplicaName, str]:
    """The replicas to be deleted, each with the first reason."""
    found: dict[ReplicaName, str] = {}
    for each in asked:
        if each.deed is Deed.DELETE and each.replica is not None:
            found.setdefault(each.replica, f"{each.reason}: {each.message}")
    return found


def new_types(asked: Iterable[Request]) -> Mapping[ReplicaName, ReplicaType]:
    """The replicas to be changed."""
    return {each.replica: each.type for each in asked if each.deed is Deed.RETYPE and each.replica is not None}


def _lives(view: VolumeView) -> bool:
    """Whether it has been formed, with a promise to keep, and is not on its way out."""
    return promise_of(view) is not None and not view.forming and not view.volume.deleting


def waits(view: VolumeView, now: datetime) -> Iterator[Wait]:
    """Whoever should be moved away and is in use: nothing is done about it before it is detached."""
    if not _lives(view):
        return
    for replica in view.replicas:
        fate = fate_of(view, replica, now) if _is_in_use(view, replica) else None
        if fate in _MOVED and fate is not Fate.NODE_LOST:
            words = f"{replica.name} on {replica.node_name} is to be moved away, and stays until it is detached there"
            yield Wait("InUse", words, (Blocker.of(replica.replica),))


def graces(view: VolumeView, now: datetime) -> Iterator[Wait]:
    """Whoever is on a node that is not ready and not yet lost: until when nothing is done about it."""
    if not _lives(view):
        return
    for member in view.members:
        left = left_of_grace(view, member.node_name, now)
        if left:
            until = (now + timedelta(seconds=left)).strftime("%H:%M:%S")
            fate = "is replaced" if is_serving(view) else "counts as lost, but is replaced only once there is quorum,"
            words = f"{member.node_name} is not ready; {member.name} {fate} if it is not back by {until} UTC"
            yield Wait("NodeNotReady", words, (Blocker("Node", member.node_name),))


def look_again(view: VolumeView, now: datetime) -> float | None:
    """Seconds until the next grace of a node with a member, or with a replica that is to become one, runs out."""
    nodes = {member.node_name for member in view.members} | {replica.node_name for replica in view.replicas}
    left = (left_of_grace(view, node, now) for node in nodes if node is not None)
    return min((seconds for seconds in left if seconds), default=None)


def fate_of(view: VolumeView, replica: ReplicaView, now: datetime) -> Fate | None:
    """Why a replica should not stay; None: it should."""
    node = replica.node_name
    if replica.replica.deleting:
        return Fate.DELETED
    if node is None:
        return None
    if is_gone(view, node):
        return Fate.NODE_GONE
    if left_of_grace(view, node, now) == 0.0:
        return Fate.NODE_LOST
    if is_to_be_emptied(view, node):
        return Fate.EVACUATED
    if replica.evacuation is not None:
        return Fate.DRIVE_LEAVES
    if replica.replica.metadata.annotations.get(annotation_keys.MARKER) in _BAD_MARKERS:
        return Fate.MARKED
    if _is_refused(view, replica):
        return Fate.METADATA_UNUSABLE
    if view.is_misplaced(replica):
        return Fate.MISPLACED
    return Fate.GIVES_WAY if replica.type is ReplicaType.TIE_BREAKER and _gives_way(view, replica) else None


def _gives_way(view: VolumeView, replica: ReplicaView) -> bool:
    """Whether a tie-breaker has the only node with a disk for a copy, and another node could have the tie-breaker."""
    giving = places.giving_way(view)
    return giving is not None and giving.possible and giving.tie_breaker.name == replica.name


def _by_force(view: VolumeView) -> Iterator[Request]:
    forced = forced_replica(view)
    if forced is not None and not forced.replica.deleting:
        yield _deletion(forced, "ForceRemove", "a person accepts that data may be lost")


def _missing_nodes(view: VolumeView, fates: Mapping[ReplicaName, Fate]) -> Iterator[Request]:
    """``rvr-missing-node-controller``: no core Node, and an agent that is silent (decision 0008)."""
    for replica in view.replicas:
        if fates.get(replica.name) is Fate.NODE_GONE:
            yield _deletion(replica, "MissingNode", f"there is no node {replica.node_name} any more")


def _diskful(view: VolumeView, promise: Layout, fates: Mapping[ReplicaName, Fate]) -> Iterator[Request]:
    """``rvr-diskful-count-controller``, and whoever is replaced."""
    counted = [replica for replica in view.replicas if replica.diskful and _counts(replica)]
    staying = [replica for replica in counted if replica.name not in fates]
    waiting = [replica for replica in counted if _is_paused(replica)]
    missing = len(staying) + len(waiting) < promise.diskful
    if missing and len(counted) <= promise.diskful and _has_room(view, promise):
        why = f"{len(staying)} of {promise.diskful} diskful replicas are to stay"
        yield Request(Deed.CREATE, "DiskfulCount", why, ReplicaType.DISKFUL)
    if not missing:
        yield from _barred(view)
    yield from _useless(view, counted, fates)
    yield from _refused(view, counted, fates)
    yield from _moved(view, promise, counted, fates)
    if len(staying) > promise.diskful and all(replica.name not in fates for replica in counted):
        spare = _spare(view, staying, promise.diskful)
        if spare is not None:
            yield _deletion(spare, "DiskfulCount", f"{len(staying)} diskful replicas, {promise.diskful} are enough")


def _moved(
    view: VolumeView, promise: Layout, counted: list[ReplicaView], fates: Mapping[ReplicaName, Fate]
) -> Iterator[Request]:
    """Of several that should go, some may have to stay until there are more: each leaves the promised copies behind."""
    moved = [(replica, fate) for replica in counted if (fate := fates.get(replica.name)) in _MOVED]
    if not moved:
        return
    ready = {name for name in good_copies(view) if fates.get(name) is not Fate.DELETED}
    for replica, fate in moved:
        kept = (fate is Fate.NODE_LOST and not removes_lost(view)) or _is_kept_waiting(view, replica)
        kept = kept or _is_in_use(view, replica) or replica.member is None
        if not kept and len(ready - {replica.name}) >= promise.diskful:
            ready.discard(replica.name)
            yield _deletion(replica, fate.value, f"{len(ready)} copies are up to date without it")


def _barred(view: VolumeView) -> Iterator[Request]:
    """Those that found another's logical volume where theirs was to be, once somebody else is on its way.

    A drive that comes back may bring the logical volume of a replica that is gone, which had the same number. What is
    on it is for a person to judge. Another replica has another number, and may lie beside it.
    """
    for replica in view.replicas:
        if _is_barred(replica) and not replica.replica.deleting:
            yield _deletion(replica, "LVExists", "another one takes its place, under another number")


def _is_barred(replica: ReplicaView) -> bool:
    if replica.member is not None or replica.replica.status.drbd.actual.initial_sync_completed:
        return False
    return any(volume.status.reason == LogicalVolumeFailure.LV_EXISTS.code for volume in replica.volumes)


def _useless(view: VolumeView, counted: list[ReplicaView], fates: Mapping[ReplicaName, Fate]) -> Iterator[Request]:
    """Those that nobody misses: on their way in, to where nobody stays; and those with nothing on a dead drive."""
    busy = {each.replica_name for each in view.volume.status.datamesh_transitions}
    for replica in counted:
        fate, evacuation = fates.get(replica.name), replica.evacuation
        if fate not in _MOVED or replica.name in busy:
            continue
        if replica.member is None:
            yield _deletion(replica, fate.value, "it is on its way to where it could not stay")
            continue
        # A drive that is back is heard of before the word that it is lost is taken back.
        lost = evacuation is not None and evacuation.lost and has_lost_its_disk(view, replica.name)
        if lost and not _is_kept_waiting(view, replica):
            yield _deletion(replica, fate.value, "its drive gives nothing any more, and there is no other place")


def _is_refused(view: VolumeView, replica: ReplicaView) -> bool:
    """Whether its disk cannot be attached any more, because it grew and lost its power too early."""
    error = replica.replica.status.drbd.errors.last_adjustment_error
    refused = error is not None and error.reason == ConfigurationAdjusted.METADATA_UNUSABLE.code
    return refused and replica.fresh and replica.member is not None and has_lost_its_disk(view, replica.name)


def _refused(view: VolumeView, counted: list[ReplicaView], fates: Mapping[ReplicaName, Fate]) -> Iterator[Request]:
    """Those that are of no use where they are, and would be in their successor's way: while all other copies serve."""
    good = set(good_copies(view))
    for replica in counted:
        if fates.get(replica.name) is not Fate.METADATA_UNUSABLE or _is_in_use(view, replica):
            continue
        others = {each.name for each in counted if each is not replica and each.member is not None}
        if others and others <= good and is_serving(view):
            yield _deletion(replica, "MetadataUnusable", "its metadata cannot be used, and all other copies are good")


def _is_paused(replica: ReplicaView) -> bool:
    return replica.evacuation is not None and replica.evacuation.paused


def _is_kept_waiting(view: VolumeView, replica: ReplicaView) -> bool:
    """Whether nothing further is done for a drive now: a person has paused it, it is not that bad, or it is in use.

    What is deleted cannot be taken back, and the drive may turn out to be good before its user is gone.
    """
    evacuation = replica.evacuation
    if evacuation is None:
        return False
    return evacuation.paused or (evacuation.polite and not is_whole(view)) or _is_in_use(view, replica)


def _spare(view: VolumeView, staying: list[ReplicaView], enough: int) -> ReplicaView | None:
    """Of too many, the one that is missed least: not in use, the youngest in the mesh, the highest id."""
    good = good_copies(view)
    unused = [each for each in staying if each.member is None or not each.member.attached]
    spare = max(unused, key=lambda each: (each.member is None, each.name not in good, each.id), default=None)
    if spare is None or len([name for name in good if name != spare.name]) < enough:
        return None
    return spare


def _diskless(
    view: VolumeView, promise: Layout, fates: Mapping[ReplicaName, Fate], coming: int, now: datetime
) -> Iterator[Request]:
    """``rvr-tie-breaker-count-controller`` (M25) and ``rvr-access-count-controller``."""
    counted = [replica for replica in view.replicas if not replica.diskful and _counts(replica)]
    staying = [replica for replica in counted if replica.name not in fates]
    users = _users(view, now)
    yield from _access(view, staying, users)
    if promise.tie_breakers:
        room = _has_room(view, promise, coming, without=_homeless(view, fates))
        yield from _tie_breaker(view, counted, staying, users, room=room)
    moving = {name: fate for name, fate in fates.items() if fate is not Fate.NODE_GONE}
    for replica in counted:
        if replica.replica.deleting or _is_in_use(view, replica):
            continue
        if promise.tie_breakers:
            if replica.name in moving and any(_is_ready(view, other) for other in staying):
                yield _deletion(replica, moving[replica.name].value, "another one is ready")
        elif replica.type is ReplicaType.TIE_BREAKER:
            yield _deletion(replica, "TieBreakerCount", "the layout has no tie-breaker")
        elif replica.node_name not in users:
            yield _deletion(replica, "AccessCount", f"nobody is to use the volume on {replica.node_name}")


def _access(view: VolumeView, staying: list[ReplicaView], users: tuple[NodeName, ...]) -> Iterator[Request]:
    for node in users:
        there = view.on_node(node)
        if there is None:
            yield Request(Deed.CREATE, "AccessCount", f"{node} is to use the volume", ReplicaType.ACCESS, node=node)
        elif there in staying and there.type is ReplicaType.TIE_BREAKER:
            yield Request(Deed.RETYPE, "AccessCount", f"{node} is to use the volume", ReplicaType.ACCESS, there.name)


def _tie_breaker(
    view: VolumeView,
    counted: list[ReplicaView],
    staying: list[ReplicaView],
    users: tuple[NodeName, ...],
    *,
    room: bool,
) -> Iterator[Request]:
    """One member without a disk: whoever serves, else a tie-breaker."""
    serving = [replica for replica in staying if replica.node_name in users or _is_in_use(view, replica)]
    coming = any(view.on_node(node) is None for node in users)
    if not staying and not coming and len(counted) <= 1 and room:
        yield Request(Deed.CREATE, "TieBreakerCount", "the layout has a tie-breaker", ReplicaType.TIE_BREAKER)
    for replica in staying:
        if serving and replica not in serving and _is_ready(view, serving[0]):
            yield _deletion(replica, "TieBreakerCount", f"{serving[0].name} serves, and breaks the tie")
    if serving or not staying:
        return
    # Nobody serves: one of them is the tie-breaker, and nobody else is needed.
    first = min(staying, key=lambda each: (each.member is None or each.member.hidden, each.id))
    if first.type is ReplicaType.ACCESS:
        yield Request(Deed.RETYPE, "TieBreakerCount", "nobody uses it", ReplicaType.TIE_BREAKER, first.name)
    for replica in staying:
        if replica is not first and _is_ready(view, first):
            yield _deletion(replica, "TieBreakerCount", f"{first.name} breaks the tie")


def _users(view: VolumeView, now: datetime) -> tuple[NodeName, ...]:
    """Nodes that need a replica to use the volume: those whose turn it is, and where one could stay."""
    if view.configuration.volume_access is VolumeAccess.LOCAL:
        return ()
    found = ((node, view.on_node(node)) for node in served(view))
    return tuple(node for node, there in found if (_may_come(view, node, now) if there is None else not there.diskful))


def _may_come(view: VolumeView, node: NodeName, now: datetime) -> bool:
    """Whether a new replica would not have to go again at once."""
    return not (is_past_grace(view, node, now) or is_to_be_emptied(view, node))


def _counts(replica: ReplicaView) -> bool:
    """A replica that has left and is only kept for a drive's sake does not count, nor one that cannot be made."""
    return replica.member is not None or not (replica.replica.deleting or _is_barred(replica))


def _homeless(view: VolumeView, fates: Mapping[ReplicaName, Fate]) -> frozenset[ReplicaName]:
    """Copies that wait until a tie-breaker has given way."""
    if Fate.GIVES_WAY not in fates.values():
        return frozenset()
    return frozenset(each.name for each in view.replicas if each.diskful and each.member is None and not each.scheduled)


def _has_room(
    view: VolumeView, promise: Layout, coming: int = 0, without: frozenset[ReplicaName] = frozenset()
) -> bool:
    """Never more than one beyond the layout; access replicas come and go with their users."""
    counted = [replica for replica in view.replicas if _counts(replica) and replica.name not in without]
    held = [replica for replica in counted if replica.diskful or promise.tie_breakers]
    return len(held) + coming <= promise.members


def _is_ready(view: VolumeView, replica: ReplicaView) -> bool:
    return replica.member is not None and is_up(view, replica.name) and not out_of_touch(view, replica.name)


def _is_in_use(view: VolumeView, replica: ReplicaView) -> bool:
    published = replica.node_name in view.volume.status.published_on
    return published or (replica.member is not None and replica.member.attached)


def _deletion(replica: ReplicaView, reason: str, message: str) -> Request:
    return Request(Deed.DELETE, reason, message, replica.type, replica.name, replica.node_name)
