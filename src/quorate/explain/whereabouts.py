"""Why a replica is where it is, or nowhere: placement asked once more, with the replica's own place given back.

The candidates are judged as things are now, by the functions that choose. So the table of a replica that has its place
tells where else it could be; of one that has none, why it has none.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from quorate.api import names
from quorate.api.scalars import ReplicaName
from quorate.api.struct import Struct, replace
from quorate.disks.entries import replica as entry_of
from quorate.disks.requests import granted_size
from quorate.placement import Fate, fates
from quorate.volumes.disks import Disk
from quorate.volumes.places import find_places
from quorate.volumes.view import ReplicaView, VolumeView


class Candidate(Struct):
    """A node, or a disk of it, and what became of it."""

    node: str
    zone: str
    #: Empty where no disk is looked at.
    disk: str
    #: The replica is here.
    here: bool
    possible: bool
    message: str


def candidates(view: VolumeView, name: ReplicaName, disks: Mapping[str, Disk]) -> tuple[Candidate, ...]:
    """Every node and disk of the volume's pool. ``disks``: all of the pool, whoever needs one."""
    replica = view.by_name[name]
    asked = find_places(_homeless(view, replica, disks))
    if asked.request is None:
        return ()
    wanted = next((each for each in asked.request.replicas if each.name == name), None)
    if wanted is None:
        return ()
    place = _disk_of(replica)
    return tuple(_candidate(fate, replica, place) for fate in fates(asked.request, asked.placement, wanted))


def _candidate(fate: Fate, replica: ReplicaView, place: str) -> Candidate:
    here = fate.node == replica.node_name and (not place or not fate.disk or fate.disk == place)
    message = fate.message
    if here and fate.objection is None:
        message = "is here"
    elif here:
        message = f"is here, and would not be put here now: {message}"
    return Candidate(
        node=fate.node,
        zone=fate.zone,
        disk=fate.disk,
        here=here,
        possible=fate.objection is None,
        message=message.replace("chosen", "possible, and the next to be asked", 1) if not here else message,
    )


def _disk_of(replica: ReplicaView) -> str:
    spec = replica.replica.spec
    if spec.lvm_volume_group_name is None:
        return ""
    return names.disk(spec.lvm_volume_group_name, spec.lvm_volume_group_thin_pool_name or "")


def _homeless(view: VolumeView, replica: ReplicaView, disks: Mapping[str, Disk]) -> VolumeView:
    """The volume as if the replica had no place yet, and its disk had what it holds."""
    if not replica.scheduled:
        return dataclasses.replace(view, disks=disks)
    spec = replace(
        replica.replica.spec, node_name=None, lvm_volume_group_name=None, lvm_volume_group_thin_pool_name=None
    )
    without = dataclasses.replace(
        replica, replica=replace(replica.replica, spec=spec), node=None, group=None, ledgers=()
    )
    # Others without a place are left out: they would be given this one.
    placed = (each for each in view.replicas if each.scheduled)
    others = tuple(without if each.name == replica.name else each for each in placed)
    freed = {name: _freed(disk, replica.name) for name, disk in disks.items()}
    return dataclasses.replace(view, replicas=others, disks=freed)


def _freed(disk: Disk, name: ReplicaName) -> Disk:
    held = granted_size(disk.ledger, entry_of(name))
    if not held:
        return disk
    status = replace(disk.ledger.status, storage_scheduled=disk.ledger.status.storage_scheduled - held)
    return dataclasses.replace(disk, ledger=replace(disk.ledger, status=status))
