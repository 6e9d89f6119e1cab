"""A replica as a member of the datamesh."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from quorate.api.storage.datamesh import Member, NetworkAddress
from quorate.api.storage.drbd import Address
from quorate.volumes.view import ReplicaView, VolumeView

#: The network of a node's InternalIP, which is where agents listen.
INTERNAL: Final = "Internal"


def addresses(replica: ReplicaView) -> Mapping[str, Address]:
    """Where a replica listens, by network."""
    return {INTERNAL: replica.address} if replica.address is not None else {}


def addresses_of(replica: ReplicaView) -> tuple[NetworkAddress, ...]:
    """The same, as the datamesh has it."""
    if replica.address is None:
        return ()
    return (NetworkAddress(system_network_name=INTERNAL, address=replica.address),)


def member_of(view: VolumeView, replica: ReplicaView, *, hidden: bool = False) -> Member:
    """As it joins. It must have a node."""
    spec = replica.replica.spec
    assert spec.node_name is not None
    node = view.eligible(spec.node_name)
    return Member(
        name=replica.name,
        type=spec.type,
        node_name=spec.node_name,
        node_id=replica.id,
        zone=node.zone_name if node is not None else "",
        addresses=addresses_of(replica),
        lvm_volume_group_name=spec.lvm_volume_group_name or "",
        lvm_volume_group_thin_pool_name=spec.lvm_volume_group_thin_pool_name or "",
        hidden=hidden,
    )
