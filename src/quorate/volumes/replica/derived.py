"""What 002 shows of a replica beside its conditions: addresses, peers, backing volume, size. As last reported.

The last report stays in ``drbd.status`` when an agent falls silent, and so does what follows from it; that it may be
old is what the conditions say.
"""

from __future__ import annotations

from typing import Final

from quorate.api.meta import Bytes
from quorate.api.quantity import Quantity
from quorate.api.storage.datamesh import NetworkAddress
from quorate.api.storage.drbd import Address, Connection, ConnectionState, Device, DrbdStatus, Peer, Role
from quorate.api.storage.rvr import BackingVolume, ObservedPeer
from quorate.volumes.view import ReplicaView, VolumeView, link_to

#: The network of a node's InternalIP.
INTERNAL: Final = "Internal"


def addresses(view: VolumeView, address: Address | None) -> tuple[NetworkAddress, ...]:
    """Where the replica listens. Its agent listens in one network, the first."""
    if address is None:
        return ()
    named = view.datamesh.system_network_names
    return (NetworkAddress(system_network_name=named[0] if named else INTERNAL, address=address),)


def peers(view: VolumeView, replica: ReplicaView, linked: tuple[Peer, ...]) -> tuple[ObservedPeer, ...]:
    """The other members that it has links to, as this one sees them."""
    report, networks = replica.replica.status.drbd.status, view.datamesh.system_network_names[:1] or (INTERNAL,)
    return tuple([_peer(peer, link_to(report, peer.node_id), networks) for peer in linked])


def backing_volume(replica: ReplicaView) -> BackingVolume | None:
    """The replica's piece of a disk; None: it has none."""
    volume = replica.logical_volume
    if volume is None:
        return None
    device = _device(replica.replica.status.drbd.status)
    return BackingVolume(
        size=volume.status.actual_size,
        state=device.disk_state if device is not None else "",
        lvm_volume_group_name=volume.spec.lvm_volume_group_name,
        lvm_volume_group_thin_pool_name=volume.spec.thin.pool_name if volume.spec.thin is not None else "",
    )


def size(replica: ReplicaView) -> Quantity | None:
    """The usable size of the device; None: there is none, or it has no size yet."""
    device = _device(replica.replica.status.drbd.status)
    if device is None or not device.size:
        return None
    counted = Bytes(device.size * 1024)
    known = replica.replica.status.size
    return known if known is not None and int(known) == counted else Quantity.of_bytes(counted)


def _peer(peer: Peer, link: Connection | None, networks: tuple[str, ...]) -> ObservedPeer:
    if link is None:
        return ObservedPeer(name=peer.name, type=peer.type)
    device = link.peer_devices[0] if link.peer_devices else None
    return ObservedPeer(
        name=peer.name,
        type=peer.type,
        attached=link.peer_role == Role.PRIMARY,
        connection_state=link.connection_state,
        connection_established_on=networks if link.connection_state == ConnectionState.CONNECTED else (),
        backing_volume_state=device.peer_disk_state if device is not None else "",
        replication_state=device.replication_state if device is not None else "",
    )


def _device(report: DrbdStatus | None) -> Device | None:
    return report.devices[0] if report is not None and report.devices else None
