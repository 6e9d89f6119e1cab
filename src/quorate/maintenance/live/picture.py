"""As much of a volume's picture as the broker needs: its members, and whose word counts. It is taken often."""

from __future__ import annotations

from collections.abc import Mapping

from quorate.api import core
from quorate.api.cluster_config import ClusterConfigSpec
from quorate.api.meta import NodeName, VolumeName
from quorate.api.scalars import ReplicaName
from quorate.api.storage import LVMLogicalVolume, LVMVolumeGroup, ReplicatedVolume, ReplicatedVolumeReplica
from quorate.engine import Reader
from quorate.volumes.observe import LOGICAL_VOLUMES_OF, REPLICAS_OF
from quorate.volumes.view import NodeView, ReplicaView, VolumeView, piece_of


def picture(
    reader: Reader, rv: ReplicatedVolume, config: ClusterConfigSpec, fresh: Mapping[NodeName, bool]
) -> VolumeView:
    """The volume and its replicas. ``fresh``: nodes whose agent's word counts."""
    name = VolumeName(rv.name)
    members = {member.name: member for member in rv.status.datamesh.members}
    found = reader.find(ReplicatedVolumeReplica, REPLICAS_OF, name)
    nodes = {member.node_name: None for member in members.values()}
    nodes.update({replica.spec.node_name: None for replica in found if replica.spec.node_name is not None})
    views = {node: NodeView(node, reader.get(core.Node, node), fresh.get(node, False)) for node in nodes}
    replicas = tuple(
        ReplicaView(
            replica=replica,
            member=members.get(ReplicaName(replica.name)),
            node=views[replica.spec.node_name] if replica.spec.node_name is not None else None,
        )
        for replica in found
    )
    return VolumeView(name=name, rv=rv, replicas=replicas, nodes=views, config=config)


def drives_under(reader: Reader, replica: ReplicatedVolumeReplica) -> tuple[str, ...]:
    """The Drives that a replica lies on: those of its logical volume, or, until that says, all of its group."""
    pieces = reader.find(LVMLogicalVolume, LOGICAL_VOLUMES_OF, replica.spec.replicated_volume_name)
    wanted = piece_of(replica)
    piece = next((each for each in pieces if each.name == wanted), None)
    devices = piece.status.devices if piece is not None else ()
    if not devices and replica.spec.lvm_volume_group_name is not None:
        group = reader.get(LVMVolumeGroup, replica.spec.lvm_volume_group_name)
        devices = group.status.devices if group is not None else ()
    return tuple(dict.fromkeys(device.drive_uuid for device in devices if device.drive_uuid))
