"""Which objects wake which volumes. All three reconcilers have the volume's name as their key, and similar watches.

An object that names its volume wakes it directly (``WATCHES``). One that concerns many volumes does not know them:
a class, a pool, a node, a disk. For those ``fan_out`` is a controller whose pass looks the volumes up, by index, and
wakes them through a Signal; it writes nothing. Each is heard only when something changes that a volume cares about:

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

A ledger wakes a volume directly while the volume's request and its answer differ; so it does, with both asked, in the
moment when the answer comes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from random import Random
from typing import Any, Final

from quorate.api import conditions, core, labels, longhorn, names
from quorate.api.baremetal import Volume
from quorate.api.cluster_config import ClusterConfig
from quorate.api.conditions.disks import Schedulable
from quorate.api.conditions.inventory import Ready
from quorate.api.conditions.rvr import Ready as ReplicaReady
from quorate.api.conditions.rvr import SatisfyEligibleNodes
from quorate.api.core import Lease
from quorate.api.longhorn import DiskSchedule
from quorate.api.longhorn.disk_schedule import DiskScheduledResourcesStatus, EntryState
from quorate.api.meta import ConditionStatus, NodeName, ObjectMeta, Resource
from quorate.api.names import volume_of_replica
from quorate.api.storage import (
    DRBDResourceOperation,
    LVMLogicalVolume,
    LVMVolumeGroup,
    ReplicatedStorageClass,
    ReplicatedStoragePool,
    ReplicatedVolume,
    ReplicatedVolumeAttachment,
    ReplicatedVolumeReplica,
)
from quorate.api.storage.drbd import ConnectionState
from quorate.api.storage.rsp import EligibleNode
from quorate.api.storage.rv import ReplicatedVolumeStatus
from quorate.api.storage.rvr import ReplicatedVolumeReplicaStatus
from quorate.api.struct import replace
from quorate.engine import Controller, Index, Key, Plan, Reader, Signal, Watch, no_keys, own_key
from quorate.locks import Sort
from quorate.volumes import births, evacuation

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

#: What happens to a volume comes in bursts: three replicas, three agents. One pass is for all that came within so many
#: seconds of the first, or of a pass that found nothing to do.
BURST: Final = 0.1
REST: Final = 0.15
#: A link that is lost goes through several states, and its peers do not notice together: so many seconds pass before
#: anybody looks. The kernels have acted already, and nobody can do anything about it but say so.
UNTIL_LOST: Final = 2.0
#: A node that comes or goes is told of by its machine, by its agent and by the pool; its volumes look once.
UNTIL_KNOWN: Final = 1.0

_LEASE_PREFIX: Final = names.agent_lease(NodeName(""))


def key(volume: str) -> Key:
    """The key of a volume."""
    return Key("", volume)


def _of_replica(replica: ReplicatedVolumeReplica) -> Iterable[Key]:
    return (key(replica.spec.replicated_volume_name),)


def _of_attachment(attachment: ReplicatedVolumeAttachment) -> Iterable[Key]:
    return (key(attachment.spec.replicated_volume_name),)


def _of_operation(operation: DRBDResourceOperation) -> Iterable[Key]:
    return (key(volume_of_replica(operation.spec.drbd_resource_name)),)


def _of_labelled(obj: Resource) -> Iterable[Key]:
    volume = obj.metadata.labels.get(labels.REPLICATED_VOLUME)
    return (key(volume),) if volume else ()


def _of_open_entries(schedule: DiskSchedule) -> Iterable[Key]:
    """Volumes whose request this ledger has not answered as asked."""
    asked, told = schedule.spec.replicas, schedule.status.replicas
    unanswered = [name for name, size in asked.items() if not _settled(told.get(name), size)]
    returned = [name for name in told if name not in asked]
    return [key(volume) for volume in dict.fromkeys(name[:-2] for name in (*unanswered, *returned))]


def _settled(answer: DiskScheduledResourcesStatus | None, size: int) -> bool:
    return answer is not None and answer.requested_size == size and answer.state is EntryState.SCHEDULED


#: What is only said of a volume, or of a replica: for people, and for whoever asks how it is. Nothing is decided by it.
_WORDS_OF_A_VOLUME: Final = ("observed_generation", "phase", "message", "conditions", "effective_layout")
_WORDS_OF_A_REPLICA: Final = (
    "observed_generation",
    "phase",
    "message",
    "conditions",
    "addresses",
    "backing_volume",
    "size",
    "peers",
)
_OF_METADATA: Final = tuple(name for name in ObjectMeta.__struct_fields__ if name != "resource_version")
_OF_A_VOLUME: Final = tuple(name for name in ReplicatedVolumeStatus.__struct_fields__ if name not in _WORDS_OF_A_VOLUME)
_OF_A_REPLICA: Final = tuple(
    name for name in ReplicatedVolumeReplicaStatus.__struct_fields__ if name not in _WORDS_OF_A_REPLICA
)


def _volume_changed(before: ReplicatedVolume | None, after: ReplicatedVolume | None) -> bool:
    """Whether a volume changes in more than words."""
    return before is None or after is None or _differ(before, after, _OF_A_VOLUME)


def _replica_changed(before: ReplicatedVolumeReplica | None, after: ReplicatedVolumeReplica | None) -> bool:
    """Whether a replica changes in more than words."""
    return before is None or after is None or _differ(before, after, _OF_A_REPLICA)


def _matters_to_its_volume(before: ReplicatedVolumeReplica | None, after: ReplicatedVolumeReplica | None) -> bool:
    """The same; of the words its volume looks at Ready alone."""
    return _replica_changed(before, after) or _is_ready(before) != _is_ready(after)


def _until_settled(before: ReplicatedVolumeReplica | None, after: ReplicatedVolumeReplica | None) -> float:
    """Seconds that a change of a replica can wait: what its agent says of it, for what the other agents say."""
    if before is None or after is None or before.metadata.generation != after.metadata.generation:
        return 0.0
    return UNTIL_LOST if _only_loses_links(before, after) else BURST


def _only_loses_links(before: ReplicatedVolumeReplica, after: ReplicatedVolumeReplica) -> bool:
    old, new = before.status.drbd.status, after.status.drbd.status
    if old is None or new is None or len(old.connections) != len(new.connections):
        return False
    if old.connections == new.connections:
        return False
    for one, other in zip(old.connections, new.connections, strict=True):
        if one != other and (
            one.peer_node_id != other.peer_node_id or other.connection_state == ConnectionState.CONNECTED
        ):
            return False
    same = replace(after.status.drbd, status=replace(new, connections=old.connections))
    return not _differ(before, replace(after, status=replace(after.status, drbd=same)), _OF_A_REPLICA)


def _until_numbered(before: ReplicatedVolume | None, after: ReplicatedVolume | None) -> float:
    """Seconds that a change of a volume can wait: a new one is about to get its minor."""
    return BURST if before is None and after is not None and after.status.drbd.config.device_minor is None else 0.0


def _a_moment(before: Resource | None, after: Resource | None) -> float:
    """Seconds that it can wait for others of its sort."""
    return BURST


def _is_ready(replica: ReplicatedVolumeReplica | None) -> bool:
    return replica is not None and conditions.is_true(replica.status.conditions, ReplicaReady)


def _differ(before: Any, after: Any, fields: tuple[str, ...]) -> bool:
    """Whether two states of an object differ in its spec, in these fields of its status, or in its metadata."""
    old, new = before.status, after.status
    if any(getattr(old, name) != getattr(new, name) for name in fields) or before.spec != after.spec:
        return True
    was, is_now = before.metadata, after.metadata
    return any(getattr(was, name) != getattr(is_now, name) for name in _OF_METADATA)


#: For every reconciler of this package, beside its own signal from ``fan_out``.
WATCHES: Final[tuple[Watch[Any], ...]] = (
    Watch(ReplicatedVolume),
    Watch(ReplicatedVolumeReplica, _of_replica),
    Watch(ReplicatedVolumeAttachment, _of_attachment),
    Watch(DRBDResourceOperation, _of_operation, patience=_a_moment),
    Watch(LVMLogicalVolume, _of_labelled, patience=_a_moment),
    Watch(Volume, evacuation.of_volume),
    Watch(DiskSchedule, _of_open_entries),
    Watch(ReplicatedStorageClass, no_keys),
    Watch(ReplicatedStoragePool, no_keys),
    Watch(LVMVolumeGroup, no_keys),
    Watch(core.Node, no_keys),
    Watch(Lease, no_keys),
    Watch(ClusterConfig, no_keys),
)


#: The same for the reconcilers of volumes and of replicas, who look at all of a volume: what either only says of its
#: objects wakes neither. The pass that said it would say the same again.
OF_VOLUMES: Final[tuple[Watch[Any], ...]] = (
    Watch(ReplicatedVolume, own_key, _volume_changed, _until_numbered),
    Watch(ReplicatedVolumeReplica, _of_replica, _matters_to_its_volume, _until_settled),
    *WATCHES[2:],
)
OF_REPLICAS: Final[tuple[Watch[Any], ...]] = (
    Watch(ReplicatedVolume, own_key, _volume_changed),
    Watch(ReplicatedVolumeReplica, _of_replica, _replica_changed, _until_settled),
    *WATCHES[2:],
)


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


def _node_if_any(replica: ReplicatedVolumeReplica) -> Iterable[str]:
    return (replica.spec.node_name,) if replica.spec.node_name is not None else ()


def _if_to_grow(volume: ReplicatedVolume) -> Iterable[str]:
    size = volume.status.datamesh.size
    return (WAITING,) if size is not None and volume.spec.size > size else ()


def _if_without_place(replica: ReplicatedVolumeReplica) -> Iterable[str]:
    return (WAITING,) if replica.spec.node_name is None else ()


_INDEXES: Final[tuple[Index[Any], ...]] = (
    Index(ReplicatedVolume, VOLUMES_OF_CLASS, lambda volume: (volume.spec.replicated_storage_class_name,)),
    Index(ReplicatedVolume, VOLUMES_OF_POOL, _of_pool),
    Index(ReplicatedVolume, UNSETTLED_OF_POOL, _unsettled_of_pool),
    Index(ReplicatedVolume, VOLUMES_FOR_NODE, lambda volume: volume.spec.publish_on),
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
