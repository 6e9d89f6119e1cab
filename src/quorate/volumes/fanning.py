"""Objects that concern many volumes and do not know them: a class, a pool, a node, a disk.

``fan_out`` is a controller whose pass looks the volumes up, by index, and wakes them through a Signal; it writes
nothing. Each object is heard only when something changes that a volume cares about:

| object                 | heard when                                          | wakes                                 |
|------------------------|-----------------------------------------------------|---------------------------------------|
| ReplicatedStorageClass | its configuration changes, or it comes or goes      | volumes of the class                  |
| ReplicatedStoragePool  | eligible nodes change                               | its volumes that wait, are changing   |
|                        |                                                     | or have a member that it concerns     |
| Node, core             | it comes, goes, is (not) ready, cordoned, evacuated | volumes that are, or are to be, there |
| Node, longhorn; Lease  | its agent falls silent, speaks again or ends        | the same                              |
| DiskSchedule           | it can give more than before                        | volumes that wait for space there     |
| node, drive or replica | a permission begins or ends (``quorate.locks``)     | volumes that are there                |
| ReplicatedVolume       | its formation is over                               | those whose turn it is (``births``)   |
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from random import Random
from typing import Any, Final

from quorate.api import conditions, core, longhorn, names
from quorate.api.conditions.disks import Schedulable
from quorate.api.conditions.inventory import Ready
from quorate.api.conditions.rvr import SatisfyEligibleNodes
from quorate.api.core import Lease
from quorate.api.longhorn import DiskSchedule
from quorate.api.meta import ConditionStatus, NodeName, Resource
from quorate.api.storage import (
    LVMVolumeGroup,
    ReplicatedStorageClass,
    ReplicatedStoragePool,
    ReplicatedVolume,
    ReplicatedVolumeReplica,
)
from quorate.api.storage.drbd import ReplicaType
from quorate.api.storage.rsp import EligibleNode
from quorate.engine import Controller, Index, Key, Plan, Reader, Signal, Watch, no_keys
from quorate.locks import Sort
from quorate.volumes import births
from quorate.volumes.watches import key

VOLUMES_OF_CLASS: Final = "volumes of a class"
VOLUMES_OF_POOL: Final = "volumes of a pool"
UNSETTLED_OF_POOL: Final = "volumes of a pool that are changing"
VOLUMES_FOR_NODE: Final = "volumes to be used on a node"
REPLICAS_ON: Final = "replicas on a node"
WITHOUT_PLACE: Final = "replicas without a place"
TO_GROW: Final = "volumes smaller than asked for"
GROUPS_ON_DRIVE: Final = "groups with a part on a drive"
#: The one value of ``WITHOUT_PLACE`` and of ``TO_GROW``.
WAITING: Final = "waiting"

#: The fan-out's own keys for what permissions hold: which sort of thing it is.
TOPICS: Final[Mapping[Sort, str]] = {Sort.NODE: "node", Sort.DRIVE: "drive", Sort.REPLICA: "replica"}


#: A node that comes or goes is told of by its machine, by its agent and by the pool; its volumes look once.
UNTIL_KNOWN: Final = 1.0

_LEASE_PREFIX: Final = names.agent_lease(NodeName(""))


@dataclass(frozen=True, slots=True)
class Concerned:
    """Volumes that something has changed for."""

    volumes: tuple[str, ...]


def fan_out(signal: Signal, held: Signal | None = None) -> Controller[Any]:
    """Wakes, through the signal, the volumes that a class, a pool, a node or a disk concerns.

    ``held`` tells of what permissions begin or end for.
    """

    def decide(concerned: Concerned, _: datetime, __: Random) -> Plan:
        return Plan(effects=tuple(partial(signal.wake, key(volume)) for volume in concerned.volumes))

    return Controller(
        name="volume-fan-out",
        watches=(
            Watch(ReplicatedStorageClass, _topic("class"), when=_configuration_changed),
            Watch(ReplicatedStoragePool, _topic("pool"), _nodes_changed, _until_known),
            Watch(core.Node, _topic("node"), _machine_changed, _until_known),
            Watch(longhorn.Node, _topic("node"), _agent_changed, _until_known),
            Watch(Lease, _of_lease, _holder_changed, _until_known),
            Watch(DiskSchedule, _of_disk, when=_can_give_more),
            Watch(ReplicatedVolume, _next_turn, when=births.ended),
            Watch(ReplicatedVolumeReplica, no_keys),
            Watch(LVMVolumeGroup, no_keys),
        ),
        observe=_concerned,
        decide=decide,
        indexes=_INDEXES,
        signals=(held,) if held is not None else (),
        workers=1,
    )


def _topic(topic: str) -> Callable[[Resource], Iterable[Key]]:
    return lambda obj: (Key(topic, obj.name),)


def _of_lease(lease: Lease) -> Iterable[Key]:
    if lease.namespace == names.NAMESPACE and lease.name.startswith(_LEASE_PREFIX):
        return (Key("node", lease.name.removeprefix(_LEASE_PREFIX)),)
    return ()


def _of_disk(schedule: DiskSchedule) -> Iterable[Key]:
    return (Key("disk", schedule.spec.name),)


def _next_turn(_: ReplicatedVolume) -> Iterable[Key]:
    return (Key("turn", ""),)


def _concerned(reader: Reader, subject: Key) -> Concerned | None:
    found = dict.fromkeys(_SUBJECTS[subject.namespace](reader, subject.name))
    return Concerned(tuple(found)) if found else None


def _volumes_of_class(reader: Reader, name: str) -> Iterable[str]:
    return (volume.name for volume in reader.find(ReplicatedVolume, VOLUMES_OF_CLASS, name))


def _volumes_of_pool(reader: Reader, name: str) -> Iterable[str]:
    changing = [volume.name for volume in reader.find(ReplicatedVolume, UNSETTLED_OF_POOL, name)]
    return (*changing, *_waiting_for_place(reader, {name}), *_told_otherwise(reader, name))


def _told_otherwise(reader: Reader, name: str) -> Iterable[str]:
    """Volumes with a member whose SatisfyEligibleNodes says the opposite of what the pool lists now."""
    pool = reader.get(ReplicatedStoragePool, name)
    listed = {node.node_name: node for node in pool.status.eligible_nodes} if pool is not None else {}
    for volume in reader.find(ReplicatedVolume, VOLUMES_OF_POOL, name):
        for member in volume.status.datamesh.members:
            replica = reader.get(ReplicatedVolumeReplica, member.name)
            said = conditions.find(replica.status.conditions, SatisfyEligibleNodes) if replica is not None else None
            if replica is None or said is None:
                continue
            if (said.status is ConditionStatus.TRUE) != _fits(replica, listed.get(member.node_name)):
                yield volume.name
                break


def _fits(replica: ReplicatedVolumeReplica, node: EligibleNode | None) -> bool:
    if node is None or replica.spec.lvm_volume_group_name is None:
        return node is not None
    return any(names.disk(each.name, each.thin_pool_name or "") == _disk_of(replica) for each in node.lvm_volume_groups)


def _volumes_on_node(reader: Reader, name: str) -> Iterable[str]:
    here = [replica.spec.replicated_volume_name for replica in reader.find(ReplicatedVolumeReplica, REPLICAS_ON, name)]
    return (*here, *(volume.name for volume in reader.find(ReplicatedVolume, VOLUMES_FOR_NODE, name)))


def _volumes_on_drive(reader: Reader, drive: str) -> Iterable[str]:
    nodes = {group.spec.local.node_name: None for group in reader.find(LVMVolumeGroup, GROUPS_ON_DRIVE, drive)}
    return [volume for node in nodes for volume in _volumes_on_node(reader, node)]


def _volume_of(reader: Reader, replica: str) -> Iterable[str]:
    found = reader.get(ReplicatedVolumeReplica, replica)
    return (found.spec.replicated_volume_name,) if found is not None else ()


def _volumes_for_disk(reader: Reader, disk: str) -> Iterable[str]:
    group, _, thin_pool = disk.partition("/")
    pools = {
        pool.name
        for pool in reader.list(ReplicatedStoragePool)
        if any((each.name, each.thin_pool_name or "") == (group, thin_pool) for each in pool.spec.lvm_volume_groups)
    }
    return (*_waiting_for_place(reader, pools), *_to_grow_on(reader, disk))


def _to_grow_on(reader: Reader, disk: str) -> Iterable[str]:
    """Volumes that are smaller than asked for, and have a copy on a disk."""
    for volume in reader.find(ReplicatedVolume, TO_GROW, WAITING):
        members = (reader.get(ReplicatedVolumeReplica, each.name) for each in volume.status.datamesh.members)
        if any(replica is not None and _disk_of(replica) == disk for replica in members):
            yield volume.name


def _disk_of(replica: ReplicatedVolumeReplica) -> str:
    return names.disk(replica.spec.lvm_volume_group_name or "", replica.spec.lvm_volume_group_thin_pool_name or "")


def _waiting_for_place(reader: Reader, pools: set[str]) -> Iterable[str]:
    for replica in reader.find(ReplicatedVolumeReplica, WITHOUT_PLACE, WAITING):
        volume = reader.get(ReplicatedVolume, replica.spec.replicated_volume_name)
        configuration = volume.status.configuration if volume is not None else None
        if configuration is not None and configuration.replicated_storage_pool_name in pools:
            yield replica.spec.replicated_volume_name


_SUBJECTS: Final[Mapping[str, Callable[[Reader, str], Iterable[str]]]] = {
    "class": _volumes_of_class,
    "pool": _volumes_of_pool,
    "node": _volumes_on_node,
    "disk": _volumes_for_disk,
    "drive": _volumes_on_drive,
    "replica": _volume_of,
    "turn": lambda reader, _: births.called(reader),
}


def _of_pool(volume: ReplicatedVolume) -> Iterable[str]:
    configuration = volume.status.configuration
    return (configuration.replicated_storage_pool_name,) if configuration is not None else ()


def _unsettled_of_pool(volume: ReplicatedVolume) -> Iterable[str]:
    status = volume.status
    if status.configuration is None or (status.datamesh_revision and not status.datamesh_transitions):
        return ()
    return (status.configuration.replicated_storage_pool_name,)


def _to_be_used_on(volume: ReplicatedVolume) -> Iterable[str]:
    """Also by attachments: where none of its replicas is yet, nothing else tells it of the node."""
    return {*volume.spec.publish_on, *(each.node_name for each in volume.status.attach_requests)}


def _node_if_any(replica: ReplicatedVolumeReplica) -> Iterable[str]:
    return (replica.spec.node_name,) if replica.spec.node_name is not None else ()


def _if_to_grow(volume: ReplicatedVolume) -> Iterable[str]:
    size = volume.status.datamesh.size
    return (WAITING,) if size is not None and volume.spec.size > size else ()


def _if_without_place(replica: ReplicatedVolumeReplica) -> Iterable[str]:
    """No node yet; or one that a person has chosen, and no disk or no space there."""
    spec, status = replica.spec, replica.status
    without_space = not status.lvm_logical_volume_name and status.datamesh_pending_transition is None
    waits = spec.node_name is None or (spec.type is ReplicaType.DISKFUL and without_space)
    return (WAITING,) if waits else ()


_INDEXES: Final[tuple[Index[Any], ...]] = (
    Index(ReplicatedVolume, VOLUMES_OF_CLASS, lambda volume: (volume.spec.replicated_storage_class_name,)),
    Index(ReplicatedVolume, VOLUMES_OF_POOL, _of_pool),
    Index(ReplicatedVolume, UNSETTLED_OF_POOL, _unsettled_of_pool),
    Index(ReplicatedVolume, VOLUMES_FOR_NODE, _to_be_used_on),
    Index(ReplicatedVolume, TO_GROW, _if_to_grow),
    Index(ReplicatedVolumeReplica, REPLICAS_ON, _node_if_any),
    Index(
        LVMVolumeGroup,
        GROUPS_ON_DRIVE,
        lambda group: (device.drive_uuid for device in group.status.devices if device.drive_uuid),
    ),
    Index(ReplicatedVolumeReplica, WITHOUT_PLACE, _if_without_place),
    *births.INDEXES,
)


# What of a change matters.


def _until_known(before: Resource | None, after: Resource | None) -> float:
    """Seconds that a change of a node or a pool can wait; what is new has nobody to be told together with."""
    return UNTIL_KNOWN if before is not None else 0.0


def _configuration_changed(before: ReplicatedStorageClass | None, after: ReplicatedStorageClass | None) -> bool:
    if before is None or after is None:
        return True
    old, new = before.status, after.status
    return (old.configuration_generation, old.configuration) != (new.configuration_generation, new.configuration)


def _nodes_changed(before: ReplicatedStoragePool | None, after: ReplicatedStoragePool | None) -> bool:
    return before is None or after is None or before.status.eligible_nodes != after.status.eligible_nodes


def _machine_changed(before: core.Node | None, after: core.Node | None) -> bool:
    return before is None or after is None or _of_machine(before) != _of_machine(after)


def _of_machine(node: core.Node) -> tuple[object, ...]:
    ready = next((each.status for each in node.status.conditions if each.type == "Ready"), "")
    metadata = node.metadata
    return ready, node.spec.unschedulable, metadata.annotations, metadata.labels, metadata.deletion_timestamp is None


def _agent_changed(before: longhorn.Node | None, after: longhorn.Node | None) -> bool:
    return before is None or after is None or _reason(before) != _reason(after)


def _reason(node: longhorn.Node) -> str:
    found = conditions.find(node.status.conditions, Ready)
    return found.reason if found is not None else ""


def _holder_changed(before: Lease | None, after: Lease | None) -> bool:
    return before is None or after is None or bool(before.spec.holder_identity) != bool(after.spec.holder_identity)


def _can_give_more(before: DiskSchedule | None, after: DiskSchedule | None) -> bool:
    if before is None or after is None:
        return after is not None
    old, new = before.status, after.status
    return (
        new.storage_scheduled < old.storage_scheduled
        or new.storage_available > old.storage_available
        or (_takes_more(after) and not _takes_more(before))
    )


def _takes_more(schedule: DiskSchedule) -> bool:
    found = conditions.find(schedule.status.conditions, Schedulable)
    return found is not None and found.status is ConditionStatus.TRUE
