"""Places and space: from a replica without a node to one whose disk has granted what it needs.

Placement is a pure answer (``quorate.placement.choose``); the disks' ledgers decide. A replica that needs a disk goes
through

    no place -> chosen -> asked -> granted -> spec.{nodeName, lvmVolumeGroupName, lvmVolumeGroupThinPoolName}
                  ^          |
                  +- refused +   withdrawn; the disk is left out, and the next best is asked

and one without a disk from chosen to placed. What a ledger holds is the only memory: after a crash the next pass reads
on from there. While a volume forms it is all or none: nothing is asked for unless everybody has a place, and nobody is
placed before everybody's space is granted, because a part of a volume is of no use and would keep space from others.
When no place is left, nothing is asked and nothing churns (M10): ``refusals`` say why, replica by replica.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace as changed
from typing import Final

import msgspec

from quorate.api import annotation_keys, labels, names
from quorate.api.longhorn import DiskSchedule
from quorate.api.meta import Bytes, NodeName
from quorate.api.scalars import ReplicaName
from quorate.api.storage import LVMLogicalVolume
from quorate.api.storage.configuration import Configuration
from quorate.api.storage.datamesh import TransitionType
from quorate.api.storage.drbd import ReplicaType
from quorate.api.struct import replace
from quorate.disks import requests
from quorate.disks.entries import replica as entry_of
from quorate.disks.entries import requested, with_request
from quorate.disks.requests import State
from quorate.drbd.metadata import lower_size
from quorate.engine import Patch
from quorate.placement.choose import choose
from quorate.placement.layout import layout_of
from quorate.placement.request import Choice, Placement, Refusal, Replica, Request
from quorate.volumes.sizes import usable_size
from quorate.volumes.view import ReplicaView, VolumeView

_NOWHERE: Final = Placement({}, {})
_LEAVING: Final = (TransitionType.REMOVE_REPLICA, TransitionType.FORCE_REMOVE_REPLICA)


class Places(msgspec.Struct, frozen=True, gc=False):
    """How far each replica without a place is."""

    #: Asked, and granted: by replica, the ledger.
    granted: Mapping[ReplicaName, DiskSchedule]
    #: Asked, and not answered yet.
    pending: Mapping[ReplicaName, DiskSchedule]
    #: Asked, and refused, or of no use any more: to be withdrawn.
    rejected: Mapping[ReplicaName, DiskSchedule]
    #: Where the others go, and why some have no place.
    placement: Placement = _NOWHERE
    #: What placement was asked, for those who explain its answer; None: it was not.
    request: Request | None = None

    @property
    def refusals(self) -> Mapping[ReplicaName, Refusal]:
        """Why there is no place."""
        return self.placement.refusals

    @property
    def settled(self) -> bool:
        """Whether every replica's place is certain: nothing to ask for, nothing to wait for."""
        asks = any(choice.group is not None for choice in self.placement.choices.values())
        return not (self.pending or self.rejected or self.refusals or asks)


#: Everybody has a place.
_NOBODY: Final = Places({}, {}, {})


def find_places(view: VolumeView) -> Places:
    """Everybody who has no place, from one snapshot. The same view gives the same answer."""
    configuration = view.rv.status.configuration if view.rv is not None else None
    homeless = [replica for replica in view.replicas if not replica.scheduled and not replica.replica.deleting]
    if configuration is None or not homeless:
        return _NOBODY
    granted: dict[ReplicaName, DiskSchedule] = {}
    pending: dict[ReplicaName, DiskSchedule] = {}
    rejected: dict[ReplicaName, DiskSchedule] = {}
    lower = needed(view)
    for replica in homeless:
        for ledger in replica.ledgers:
            size = requested(ledger, entry_of(replica.name))
            if not replica.diskful or size is None:
                continue
            useless = size < lower or _is_taken(view, ledger.spec.node_id, replica)
            state = State.REJECTED if useless else requests.read(ledger, entry_of(replica.name), size).state
            known = replica.name in granted or replica.name in pending
            if state is State.GRANTED and replica.name not in granted:
                granted[replica.name] = ledger
                pending.pop(replica.name, None)
            elif state is State.PENDING and not known:
                pending[replica.name] = ledger
            elif state is State.REJECTED:
                rejected[replica.name] = ledger
    asked = {**pending, **granted}
    request = _request(view, configuration, asked, rejected)
    return Places(granted, pending, rejected, choose(request), request)


def _is_taken(view: VolumeView, node: str, replica: ReplicaView) -> bool:
    """Whether another one is on the node by now: somebody who is to use the volume there does not wait for space."""
    return any(each.node_name == node and each is not replica for each in view.replicas)


def needed(view: VolumeView) -> Bytes:
    """What a replica takes of a disk, before rounding to extents: the usable size and DRBD's metadata."""
    return lower_size(Bytes(usable_size(view) or 0), view.config.drbd.max_peers)


def writes(view: VolumeView, places: Places) -> tuple[Patch, ...]:
    """The next step for everybody: withdraw, ask, or take the place that is granted."""
    asking = _Ledgers()
    for name, ledger in places.rejected.items():
        asking.change(ledger, name, None)
    held = {**places.pending, **places.granted}
    if view.forming and places.refusals:
        for name, ledger in held.items():
            asking.change(ledger, name, None)
        return tuple(asking.patches())
    for name, choice in places.placement.choices.items():
        if choice.group is not None:
            asking.change(view.disks[choice.disk].ledger, name, choice.size)
    placed: list[Patch] = []
    if places.settled or not view.forming:
        homeless = {each.name: each for each in view.replicas if not each.scheduled and not each.replica.deleting}
        placed = [_placed_on(homeless[name], ledger) for name, ledger in places.granted.items()]
        placed += [
            _placed(homeless[name], choice) for name, choice in places.placement.choices.items() if not choice.group
        ]
    return (*asking.patches(), *placed)


def give_back(view: VolumeView) -> Iterator[tuple[DiskSchedule, ReplicaName]]:
    """Entries that nobody has a use for: of a replica that is gone, or on another disk, and without bytes (M31)."""
    for ledger in view.ledgers:
        group, _, pool = ledger.spec.name.partition("/")
        # A ledger may have a thousand entries, and a volume eight.
        for name in view.possible_names:
            if name not in ledger.spec.replicas:
                continue
            replica = view.replica(name)
            if replica is not None and not _is_elsewhere(replica, group, pool):
                continue
            if not _exists(view.pieces, names.logical_volume(name, group, pool)):
                yield ledger, name


def withdrawals(view: VolumeView) -> tuple[Patch, ...]:
    """The writes that give back."""
    asking = _Ledgers()
    for ledger, name in give_back(view):
        asking.change(ledger, name, None)
    return tuple(asking.patches())


class GivingWay(msgspec.Struct, frozen=True, gc=False):
    """A tie-breaker on the only node that would do for a copy."""

    tie_breaker: ReplicaView
    #: The copy that has no place.
    copy: ReplicaName
    #: Whether there is another node for the tie-breaker.
    possible: bool


def giving_way(view: VolumeView) -> GivingWay | None:
    """The tie-breaker that has to move first, so that a copy finds a place; None: that would not help, or need not be.

    Asked of placement itself: with the tie-breaker on no node yet, would the copy be on its node, and it on another?
    """
    homeless = [each for each in view.replicas if each.diskful and not each.scheduled and not each.replica.deleting]
    if view.forming or not homeless:
        return None
    found = find_places(view)
    refused = next((each.name for each in homeless if each.name in found.refusals), None)
    if refused is None or found.request is None:
        return None
    for replica in view.replicas:
        if replica.type is not ReplicaType.TIE_BREAKER or replica.member is None or replica.replica.deleting:
            continue
        rest = tuple(each for each in found.request.replicas if each.name != replica.name)
        if not _goes_to(replica, refused, changed(found.request, replicas=rest)):
            continue
        others = [each for each in rest if each.type is ReplicaType.TIE_BREAKER and not each.leaving]
        if not others:
            others = [Replica(name=replica.name, type=ReplicaType.TIE_BREAKER)]
            rest = (*rest, *others)
        asked = changed(found.request, replicas=rest)
        elsewhere = all(each.node is not None or each.name in choose(asked).choices for each in others)
        return GivingWay(replica, refused, elsewhere and _goes_to(replica, refused, asked))
    return None


def _goes_to(replica: ReplicaView, copy: ReplicaName, asked: Request) -> bool:
    """Whether a copy would be where a replica is."""
    choice = choose(asked).choices.get(copy)
    return choice is not None and choice.node == replica.node_name


def in_the_way(view: VolumeView) -> str:
    """Nodes that would do for a copy but for who is there, and what becomes of that.

    A replica cannot get a disk while it is in use. A tie-breaker moves first, if there is a node for it.
    """
    giving = giving_way(view)
    if giving is not None:
        name, node = giving.tie_breaker.name, giving.tie_breaker.node_name
        there = f"; {node} has a disk for it and is taken by the tie-breaker {name}"
        if giving.possible:
            return f"{there}, which moves to another node first"
        return f"{there}, for which there is no other node: add a node, which needs no disk, or a disk on another one"
    taken = [
        f"{each.node_name} is taken by {each.name}, through which the volume is in use there"
        for each in view.replicas
        if each.type is ReplicaType.ACCESS
        and each.member is not None
        and each.member.attached
        and (listed := view.eligible(each.node_name)) is not None
        and listed.lvm_volume_groups
    ]
    return f"; {'; '.join(taken)}: once it is detached, a copy can be there" if taken else ""


def _is_elsewhere(replica: ReplicaView, group: str, pool: str) -> bool:
    spec = replica.replica.spec
    if replica.replica.deleting:
        return False  # ``replica.disk`` gives back what a leaving replica has.
    if not replica.diskful:
        # What was diskful keeps its entry until its logical volume is gone; the caller has looked.
        return True
    if spec.lvm_volume_group_name is None:
        return False
    return (spec.lvm_volume_group_name, spec.lvm_volume_group_thin_pool_name or "") != (group, pool)


def _exists(pieces: tuple[LVMLogicalVolume, ...], name: str) -> bool:
    return any(piece.name == name for piece in pieces)


def _request(
    view: VolumeView,
    configuration: Configuration,
    asked: Mapping[ReplicaName, DiskSchedule],
    rejected: Mapping[ReplicaName, DiskSchedule],
) -> Request:
    outgoing = _outgoing(view, configuration)
    return Request(
        configuration=configuration,
        size=Bytes(usable_size(view) or 0),
        replicas=tuple(_replica(replica, asked, outgoing) for replica in view.replicas),
        nodes=view.rsp.status.eligible_nodes if view.rsp is not None else None,
        rooms={name: disk.room for name, disk in view.disks.items()},
        access=view.access_nodes,
        refused={
            ledger.spec.name: answer.refusal.message
            for name, ledger in rejected.items()
            if (answer := requests.read(ledger, entry_of(name), requested(ledger, entry_of(name)) or 0)).refusal
        },
        together=view.forming,
        max_peers=view.config.drbd.max_peers,
    )


def _replica(
    replica: ReplicaView, asked: Mapping[ReplicaName, DiskSchedule], outgoing: frozenset[ReplicaName]
) -> Replica:
    spec, member, ledger = replica.replica.spec, replica.member, asked.get(replica.name)
    node, disk = spec.node_name, ""
    if spec.lvm_volume_group_name is not None:
        disk = names.disk(spec.lvm_volume_group_name, spec.lvm_volume_group_thin_pool_name or "")
    elif ledger is not None:
        node, disk = ledger.spec.node_id, ledger.spec.name
    shown_access = member is not None and member.type is ReplicaType.ACCESS and not member.hidden
    return Replica(
        name=replica.name,
        type=ReplicaType.TIE_BREAKER if shown_access else spec.type,
        node=node,
        disk=disk,
        zone=member.zone if member is not None else "",
        leaving=replica.name in outgoing,
    )


def _outgoing(view: VolumeView, configuration: Configuration) -> frozenset[ReplicaName]:
    """Those that others are placed without regard to: deleted, being removed, or with a replacement on its way."""
    leaving = {replica.name for replica in view.replicas if replica.replica.deleting}
    if view.rv is not None:
        leaving |= {
            each.replica_name
            for each in view.rv.status.datamesh_transitions
            if each.type in _LEAVING and each.replica_name is not None
        }
    diskful = [replica for replica in view.replicas if replica.diskful and replica.name not in leaving]
    if not view.forming and len(diskful) > layout_of(configuration).diskful:
        leaving |= {replica.name for replica in diskful if replica.scheduled and _is_to_be_replaced(view, replica)}
    return frozenset(leaving)


def _is_to_be_replaced(view: VolumeView, replica: ReplicaView) -> bool:
    node = replica.node
    if node is None or node.machine is None or not node.fresh or replica.evacuation is not None:
        return True
    if view.is_misplaced(replica):
        return True
    return node.machine.metadata.annotations.get(annotation_keys.EVACUATE) == "true"


def _placed_on(replica: ReplicaView, ledger: DiskSchedule) -> Patch:
    group, _, pool = ledger.spec.name.partition("/")
    return _patched(replica, ledger.spec.node_id, group, pool or None)


def _placed(replica: ReplicaView, choice: Choice) -> Patch:
    return _patched(replica, choice.node, None, None)


def _patched(replica: ReplicaView, node: NodeName, group: str | None, pool: str | None) -> Patch:
    """Node and disk in one write, with the labels that agents and people find it by."""
    observed = replica.replica
    found = {**observed.metadata.labels, labels.NODE: node}
    if group is not None:
        found[labels.LVM_VOLUME_GROUP] = labels.value(group)
    spec = replace(observed.spec, node_name=node, lvm_volume_group_name=group, lvm_volume_group_thin_pool_name=pool)
    # Not with the resourceVersion: agents and conditions write the object all the time, and only we write its spec.
    return Patch(observed, replace(observed, metadata=replace(observed.metadata, labels=found), spec=spec))


class _Ledgers:
    """Changes of several entries, gathered into one write for each ledger."""

    def __init__(self) -> None:
        self._changes: dict[str, tuple[DiskSchedule, dict[ReplicaName, Bytes | None]]] = {}

    def change(self, ledger: DiskSchedule, name: ReplicaName, size: Bytes | None) -> None:
        """Ask for so much in all; None: for nothing any more."""
        self._changes.setdefault(ledger.name, (ledger, {}))[1][name] = size

    def patches(self) -> Iterator[Patch]:
        """One for each."""
        for ledger, changes in self._changes.values():
            spec = ledger.spec
            for name, size in changes.items():
                spec = with_request(spec, entry_of(name), size)
            # An empty map is none at all on the wire, and removing it must not remove a key that we have not seen.
            yield Patch(ledger, replace(ledger, spec=spec), if_unchanged=not spec.replicas)
