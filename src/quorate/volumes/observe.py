"""How the picture of a volume is gathered from the caches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from quorate.api import conditions, core, labels, longhorn, names
from quorate.api.cluster_config import ClusterConfig, ClusterConfigSpec
from quorate.api.conditions.inventory import Orphans
from quorate.api.core import Lease
from quorate.api.longhorn import DiskSchedule
from quorate.api.longhorn.node import Orphan
from quorate.api.meta import NodeName, VolumeName
from quorate.api.names import owner_of_logical_volume, replica_id
from quorate.api.scalars import ReplicaName
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
from quorate.api.storage.datamesh import Member
from quorate.engine import Index, Reader
from quorate.volumes import births, evacuation
from quorate.volumes.disks import LEDGER_OF_DISK, disks_of
from quorate.volumes.view import NodeView, ReplicaView, VolumeView, piece_of

REPLICAS_OF: Final = "replicas of a volume"
ATTACHMENTS_OF: Final = "attachments of a volume"
LOGICAL_VOLUMES_OF: Final = "logical volumes of a volume"
OPERATIONS_OF: Final = "operations on a volume"
LEDGERS_OF: Final = "ledgers with an entry of a volume"
NODES_WITH_ORPHANS_OF: Final = "nodes with orphans of a volume"
NODES_NOT_LOOKED_AT: Final = "nodes whose agent has not looked for orphans"
#: The one value of that.
_SOME: Final = "some"


def _entries(schedule: DiskSchedule) -> Iterable[str]:
    return {_volume_in(name): None for asked in (schedule.spec.replicas, schedule.status.replicas) for name in asked}


def _volume_in(replica: str) -> str:
    return replica[:-2]


def _volumes_of_orphans(node: longhorn.Node) -> Iterable[str]:
    return {each.volume_name: None for each in node.status.orphans if each.volume_name}


def _if_not_looked_at(node: longhorn.Node) -> Iterable[str]:
    found = conditions.find(node.status.conditions, Orphans)
    return (_SOME,) if found is not None and found.reason == Orphans.NOT_REPORTED.code else ()


REPLICAS_INDEX: Final = Index(
    ReplicatedVolumeReplica, REPLICAS_OF, lambda replica: (replica.spec.replicated_volume_name,)
)
INDEXES: Final[tuple[Index[Any], ...]] = (
    REPLICAS_INDEX,
    Index(ReplicatedVolumeAttachment, ATTACHMENTS_OF, lambda wish: (wish.spec.replicated_volume_name,)),
    Index(
        LVMLogicalVolume,
        LOGICAL_VOLUMES_OF,
        lambda piece: filter(None, (piece.volume_name,)),
    ),
    Index(
        DRBDResourceOperation,
        OPERATIONS_OF,
        lambda operation: (names.volume_of_replica(operation.spec.drbd_resource_name),),
    ),
    Index(DiskSchedule, LEDGERS_OF, _entries),
    Index(DiskSchedule, LEDGER_OF_DISK, lambda ledger: filter(None, (ledger.spec.name,))),
    Index(longhorn.Node, NODES_WITH_ORPHANS_OF, _volumes_of_orphans),
    Index(longhorn.Node, NODES_NOT_LOOKED_AT, _if_not_looked_at),
    *births.INDEXES,
)


def observe(reader: Reader, name: str) -> VolumeView | None:
    """Everything that matters for a volume; None when neither it nor anything of it is left."""
    volume = VolumeName(name)
    rv = reader.get(ReplicatedVolume, volume)
    replicas = reader.find(ReplicatedVolumeReplica, REPLICAS_OF, volume)
    attachments = reader.find(ReplicatedVolumeAttachment, ATTACHMENTS_OF, volume)
    pieces = reader.find(LVMLogicalVolume, LOGICAL_VOLUMES_OF, volume)
    if rv is None and not replicas and not attachments and not pieces:
        return None
    found = reader.get(ClusterConfig, names.CLUSTER)
    config = ClusterConfigSpec() if found is None else found.spec
    rsc = reader.get(ReplicatedStorageClass, rv.spec.replicated_storage_class_name) if rv is not None else None
    nodes = _nodes(reader, config, _node_names(rv, replicas, attachments, pieces))
    pool = _pool(reader, rv, rsc)
    operations = reader.find(DRBDResourceOperation, OPERATIONS_OF, volume)
    ledgers = reader.find(DiskSchedule, LEDGERS_OF, volume)
    procedures = evacuation.observe(reader, pieces)
    views = _replicas(reader, rv, replicas, nodes, pieces, ledgers, procedures.evacuations)
    unborn = rv is not None and births.is_unborn(rv)
    forming = unborn or (rv is not None and births.is_forming(rv))
    homeless = rv is not None and any(not each.scheduled and not each.replica.deleting for each in views)
    return VolumeView(
        name=volume,
        rv=rv,
        rsc=rsc,
        rsp=pool,
        replicas=views,
        attachments=attachments,
        operation=next((each for each in operations if each.name == names.formation_operation(volume)), None),
        comparisons=tuple(each for each in operations if each.name != names.formation_operation(volume)),
        pieces=pieces,
        kept=procedures.kept,
        ledgers=ledgers,
        disks=disks_of(reader, pool) if homeless and pool is not None else {},
        nodes=nodes,
        config=config,
        others_forming=births.under_way(reader) if unborn else (),
        orphans=_orphans(reader, config, volume) if forming else (),
        not_looked_at=_not_looked_at(reader) if unborn else {},
    )


def _orphans(reader: Reader, config: ClusterConfigSpec, volume: VolumeName) -> tuple[tuple[NodeName, Orphan], ...]:
    """What holds data of a volume of this name and belongs to no object, but on machines that have left the cluster."""
    found: list[tuple[NodeName, Orphan]] = []
    for inventory in reader.find(longhorn.Node, NODES_WITH_ORPHANS_OF, volume):
        node = NodeName(inventory.name)
        if NodeView(node, reader.get(core.Node, node), agent_is_fresh(reader, config, node)).gone:
            continue
        mine = (each for each in inventory.status.orphans if each.volume_name == volume and each.holds_data)
        found += [(node, each) for each in mine]
    return tuple(found)


def _not_looked_at(reader: Reader) -> Mapping[NodeName, datetime]:
    """Nodes whose agent has not said yet whether there is anything on them without an object, and since when."""
    found: dict[NodeName, datetime] = {}
    for inventory in reader.find(longhorn.Node, NODES_NOT_LOOKED_AT, _SOME):
        condition = conditions.find(inventory.status.conditions, Orphans)
        if condition is not None:
            found[NodeName(inventory.name)] = condition.last_transition_time
    return found


def agent_is_fresh(reader: Reader, config: ClusterConfigSpec, node: NodeName) -> bool:
    """Whether what a node's agent reports counts. Whoever let go of the Lease has said that it does not."""
    name = names.agent_lease(node)
    silence = reader.silent_for(Lease, name, names.NAMESPACE)
    if silence is None or silence > config.agent.lease_duration.seconds:
        return False
    lease = reader.get(Lease, name, names.NAMESPACE)
    return lease is not None and bool(lease.spec.holder_identity)


def _pool(
    reader: Reader, rv: ReplicatedVolume | None, rsc: ReplicatedStorageClass | None
) -> ReplicatedStoragePool | None:
    if rv is not None and rv.status.configuration is not None:
        return reader.get(ReplicatedStoragePool, rv.status.configuration.replicated_storage_pool_name)
    return reader.get(ReplicatedStoragePool, rsc.spec.storage_pool) if rsc is not None else None


def _node_names(
    rv: ReplicatedVolume | None,
    replicas: Iterable[ReplicatedVolumeReplica],
    attachments: Iterable[ReplicatedVolumeAttachment],
    pieces: Iterable[LVMLogicalVolume],
) -> Iterable[NodeName]:
    asked = [replica.spec.node_name for replica in replicas if replica.spec.node_name is not None]
    asked += [attachment.spec.node_name for attachment in attachments]
    asked += [NodeName(piece.metadata.labels.get(labels.NODE, "")) for piece in pieces]
    if rv is not None:
        asked += rv.spec.publish_on
        asked += [member.node_name for member in rv.status.datamesh.members]
    return dict.fromkeys(asked)


def _nodes(reader: Reader, config: ClusterConfigSpec, wanted: Iterable[NodeName]) -> Mapping[NodeName, NodeView]:
    return {name: NodeView(name, reader.get(core.Node, name), agent_is_fresh(reader, config, name)) for name in wanted}


def _unasked(reader: Reader, replica: ReplicatedVolumeReplica) -> DiskSchedule | None:
    """The ledger of the disk that a person has chosen for a replica, if it knows nothing of it."""
    if replica.status.lvm_logical_volume_name:
        return None  # It has its space.
    group, pool = replica.spec.lvm_volume_group_name or "", replica.spec.lvm_volume_group_thin_pool_name or ""
    found = reader.find(DiskSchedule, LEDGER_OF_DISK, names.disk(group, pool))
    ledger = next((each for each in found if each.spec.node_id == replica.spec.node_name), None)
    known = ledger is not None and (replica.name in ledger.spec.replicas or replica.name in ledger.status.replicas)
    return None if known else ledger


def _replicas(
    reader: Reader,
    rv: ReplicatedVolume | None,
    replicas: Iterable[ReplicatedVolumeReplica],
    nodes: Mapping[NodeName, NodeView],
    pieces: tuple[LVMLogicalVolume, ...],
    ledgers: tuple[DiskSchedule, ...],
    evacuations: Mapping[str, evacuation.Evacuation],
) -> tuple[ReplicaView, ...]:
    members: Mapping[ReplicaName, Member] = (
        {member.name: member for member in rv.status.datamesh.members} if rv is not None else {}
    )
    views = []
    for replica in replicas:
        spec, name = replica.spec, ReplicaName(replica.name)
        group = spec.lvm_volume_group_name
        views.append(
            ReplicaView(
                replica=replica,
                member=members.get(name),
                node=nodes.get(spec.node_name) if spec.node_name is not None else None,
                volumes=tuple([piece for piece in pieces if owner_of_logical_volume(piece.name) == name]),
                group=reader.get(LVMVolumeGroup, group) if group is not None else None,
                ledgers=tuple([each for each in ledgers if name in each.spec.replicas or name in each.status.replicas]),
                unasked=_unasked(reader, replica) if group is not None else None,
                evacuation=evacuations.get(piece_of(replica) or ""),
            )
        )
    views.sort(key=lambda view: replica_id(view.name))
    return tuple(views)
