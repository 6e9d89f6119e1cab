"""Whose turn it is: one pass over everything in the cluster that is to leave a drive, by one worker.

Turns are given on the Volume objects: ``release: processing`` to prepare a move, ``move-to`` to copy. BAD drives go
before SUSPECT ones, whose volumes must be whole; then whoever waits longest. ``limits`` has the numbers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from random import Random
from typing import Any, Final

from quorate.api import annotation_keys, core, labels, names
from quorate.api.annotation_keys import Process, Release
from quorate.api.baremetal import Volume
from quorate.api.baremetal.drive import DriveHealth
from quorate.api.baremetal.volume import VolumeUsage
from quorate.api.cluster_config import ClusterConfig, ClusterConfigSpec, DrainLimits
from quorate.api.core import Lease, PersistentVolumeClaim
from quorate.api.meta import NodeName, Resource, VolumeName
from quorate.api.scalars import ReplicaName
from quorate.api.struct import replace
from quorate.drives import progress
from quorate.drives.limits import Move, Place, to_copy, to_prepare
from quorate.drives.view import CLAIM_INDEX, is_released_outside
from quorate.engine import Controller, Key, Patch, Plan, Reader, Watch, no_keys
from quorate.volumes import evacuation
from quorate.volumes import observe as volumes
from quorate.volumes.transitions.members import good_copies
from quorate.volumes.view import ReplicaView, VolumeView
from quorate.volumes.watches import WATCHES

THE_TURNS: Final = Key("", "turns")
#: While somebody waits, turns are given so often, in seconds, whoever wakes us.
_LOOK: Final = 5.0
_OVER: Final = (VolumeUsage.RELEASED, VolumeUsage.FAILED)


@dataclass(frozen=True)
class Waiting:
    """A Volume that has not been released, and where its move stands."""

    volume: Volume
    #: The replica that has found its place and may be copied to, if it is let.
    successor: ReplicaName | None
    #: Who was let, and is not there any more.
    stale: bool = False


@dataclass(frozen=True)
class Turns:
    """Everybody."""

    limits: DrainLimits
    moves: tuple[Move, ...]
    #: By the move's name.
    waiting: dict[str, Waiting]


def observe(reader: Reader, _: Key) -> Turns | None:
    """Gather everybody who is on the way, and who could be next; None: nobody waits.

    Looking at a volume costs more than looking at its Volume: of those that wait, no more are looked at than a node
    could have on the move at once.
    """
    config = reader.get(ClusterConfig, names.CLUSTER)
    limits = (ClusterConfigSpec() if config is None else config.spec).drain
    found = _Gathering(reader)
    waiting: list[Volume] = []
    for volume in reader.list(Volume, names.NAMESPACE):
        if volume.status.usage in _OVER or volume.status.usage is None:
            continue
        if volume.metadata.annotations.get(annotation_keys.RELEASE) == Release.PROCESSING:
            found.look_at(volume)
        elif not volume.deleting:
            waiting.append(volume)
    next_ones: Counter[str] = Counter()
    for volume in sorted(waiting, key=lambda each: (_rank(each), each.name)):
        node = volume.spec.node_id
        if next_ones[node] < limits.max_moves_per_node and found.look_at(volume):
            next_ones[node] += 1
    return Turns(limits, tuple(found.moves), found.waiting) if found.moves else None


class _Gathering:
    """Looks at volumes, each once."""

    def __init__(self, reader: Reader) -> None:
        self.moves: list[Move] = []
        self.waiting: dict[str, Waiting] = {}
        self._reader = reader
        self._views: dict[str, VolumeView | None] = {}

    def look_at(self, volume: Volume) -> bool:
        """Whether it is ours to move, and could be."""
        name = volume.metadata.labels.get(labels.REPLICATED_VOLUME, "")
        view = self._view(name) if name else None
        replica = view.replica(ReplicaName(names.owner_of_logical_volume(volume.name))) if view is not None else None
        if view is None or view.rv is None or replica is None or progress.has_left(view, replica):
            return False
        found = _move(self._reader, view, replica, volume)
        if found is None:
            return False
        self.moves.append(found[0])
        self.waiting[volume.name] = found[1]
        return True

    def _view(self, name: str) -> VolumeView | None:
        if name not in self._views:
            outside = is_released_outside(self._reader, name)
            self._views[name] = None if outside else volumes.observe(self._reader, VolumeName(name))
        return self._views[name]


def decide(turns: Turns, now: datetime, _: Random) -> Plan:
    """Give turns to as many as the limits allow; one word for each Volume in a pass."""
    spoken = {name: _unsaid(each.volume) for name, each in turns.waiting.items() if each.stale}
    for move in to_prepare(turns.moves, turns.limits, now):
        said = {annotation_keys.RELEASE: Release.PROCESSING, annotation_keys.RELEASE_RECOVERY: "0"}
        spoken.setdefault(move.name, _said(turns.waiting[move.name].volume, said))
    let: set[ReplicaName] = set()
    for move in to_copy(turns.moves, turns.limits):
        each = turns.waiting[move.name]
        # Whoever takes over from several of a volume needs to be let only once.
        if each.successor is not None and each.successor not in let:
            let.add(each.successor)
            spoken.setdefault(move.name, _said(each.volume, {annotation_keys.MOVE_TO: each.successor}))
    return Plan(writes=tuple(spoken.values()), requeue_after=_LOOK)


def _move(reader: Reader, view: VolumeView, replica: ReplicaView, volume: Volume) -> tuple[Move, Waiting] | None:
    """How far it is; None: it does not want a turn now."""
    said = volume.metadata.annotations
    process = evacuation.process_of(volume)
    begun = said.get(annotation_keys.RELEASE) == Release.PROCESSING
    may_go_on = replica.member is None or progress.may_go_on(view, volume)
    if not begun and (process is not Process.START or not may_go_on):
        return None
    let = view.replica(ReplicaName(said.get(annotation_keys.MOVE_TO, "")))
    stale = annotation_keys.MOVE_TO in said and (let is None or let.replica.deleting)
    good = let is not None and let.name in good_copies(view)
    copying = let is not None and not stale and not good and process is not Process.STOP
    # Whoever deletes the Volume of a copy on its way stops nothing: it is counted to its end, and let no further.
    going = process is not Process.START or replica.replica.deleting or volume.deleting
    following = None if going else progress.successor(view)
    homeless = following is not None and not following.scheduled
    successor = following if following is not None and may_go_on and _may_be_let(view, following) else None
    goal = let if copying else successor
    move = Move(
        name=volume.name,
        source=_place(reader, volume.spec.node_id),
        target=_place(reader, goal.node_name) if goal is not None and goal.node_name is not None else None,
        begun=begun,
        busy=copying or (process is Process.START and (not good or successor is not None)),
        copying=copying,
        homeless_since=following.replica.metadata.creation_timestamp if homeless and following is not None else None,
        rank=_rank(volume),
    )
    return move, Waiting(volume, successor.name if successor is not None else None, stale and not volume.deleting)


def _may_be_let(view: VolumeView, following: ReplicaView) -> bool:
    """Whether one that is to take over has its place, and nobody has let it yet."""
    members = (each.evacuation for each in view.replicas if each.member is not None)
    asked = any(evacuation is not None and evacuation.to == following.name for evacuation in members)
    return following.scheduled and following.member is None and not asked


def _rank(volume: Volume) -> tuple[object, ...]:
    """BAD before the others; then by age."""
    bad = volume.metadata.annotations.get(annotation_keys.VOLUME_HEALTH) == DriveHealth.BAD.lower()
    return (not bad, volume.metadata.creation_timestamp or datetime.max.replace(tzinfo=UTC))


def _place(reader: Reader, node: NodeName) -> Place:
    machine = reader.get(core.Node, node)
    return Place(node, machine.metadata.labels.get(labels.RACK, "") if machine is not None else "")


def _said(volume: Volume, words: dict[str, str]) -> Patch:
    said = {**volume.metadata.annotations, **words}
    return Patch(volume, replace(volume, metadata=replace(volume.metadata, annotations=said)))


def _unsaid(volume: Volume) -> Patch:
    said = {key: value for key, value in volume.metadata.annotations.items() if key != annotation_keys.MOVE_TO}
    return Patch(volume, replace(volume, metadata=replace(volume.metadata, annotations=said)))


def _the_turns(_: Resource) -> Iterable[Key]:
    return (THE_TURNS,)


TURNS_CONTROLLER: Final[Controller[Any]] = Controller(
    name="drive-turns",
    watches=(
        Watch(Volume, _the_turns),
        Watch(PersistentVolumeClaim, no_keys),
        *(Watch(watch.cls, no_keys) for watch in WATCHES if watch.cls is not Volume),
    ),
    observe=observe,
    decide=decide,
    indexes=(*volumes.INDEXES, CLAIM_INDEX),
    freshness=(Lease,),
    workers=1,
)
