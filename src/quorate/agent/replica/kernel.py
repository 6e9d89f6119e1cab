"""Questions about what the kernel shows of a resource, compared with what its config says."""

from __future__ import annotations

from quorate.agent.kernel_watch import NO_DISK
from quorate.api.storage.drbd import (
    Connection,
    ConnectionState,
    Device,
    DiskState,
    DrbdConfig,
    DrbdStatus,
    Peer,
    ReplicationState,
    ReplicaType,
    Role,
)
from quorate.drbd.resource_file import linked_peers


def device(status: DrbdStatus | None) -> Device | None:
    """The one volume of a resource."""
    return status.devices[0] if status is not None and status.devices else None


def disk_state(status: DrbdStatus | None) -> str:
    """The local disk's state; Diskless also where there is no device."""
    found = device(status)
    return found.disk_state if found is not None else DiskState.DISKLESS


def holds_disk(status: DrbdStatus | None) -> bool:
    """Whether the kernel holds a backing device, be it one that it is still about to take into use."""
    return disk_state(status) not in (DiskState.DISKLESS, "")


def has_disk(status: DrbdStatus | None) -> bool:
    """Whether the kernel has taken a backing device into use: one of which it asks its peers is none yet."""
    return disk_state(status) not in (DiskState.DISKLESS, DiskState.ATTACHING, DiskState.NEGOTIATING, "")


def keeps_a_copy(status: DrbdStatus | None) -> bool:
    """Whether what is written here goes to a disk of this node, and the kernel counts by that disk's metadata."""
    return has_disk(status) and disk_state(status) not in NO_DISK


def is_primary(status: DrbdStatus | None) -> bool:
    """Whether this node may write."""
    return status is not None and status.role == Role.PRIMARY


def is_diskful(config: DrbdConfig) -> bool:
    """Whether this member is to have a disk."""
    return config.type is ReplicaType.DISKFUL


def connection_to(status: DrbdStatus, peer: Peer) -> Connection | None:
    """The link to a peer."""
    return next((link for link in status.connections if link.peer_node_id == peer.node_id), None)


def all_connected(config: DrbdConfig, status: DrbdStatus) -> bool:
    """Whether every link that there should be is up."""
    return all(_is_connected(status, peer) for peer in linked_peers(config))


def _is_connected(status: DrbdStatus, peer: Peer) -> bool:
    link = connection_to(status, peer)
    return link is not None and link.connection_state == ConnectionState.CONNECTED


def all_established(config: DrbdConfig, status: DrbdStatus) -> bool:
    """Whether every link is up and nothing is being synchronised over any of them."""
    return all_connected(config, status) and all(
        volume.replication_state == ReplicationState.ESTABLISHED
        for link in status.connections
        for volume in link.peer_devices
    )


def good_copies(status: DrbdStatus, peers: frozenset[int] | None = None) -> int:
    """How many members in touch have a good copy that gets every write; of these, or of all."""
    counted = (link for link in status.connections if peers is None or link.peer_node_id in peers)
    return sum(link.connection_state == ConnectionState.CONNECTED and has_good_copy(link) for link in counted)


def has_good_copy(link: Connection) -> bool:
    """Whether the disk at the other end is up to date, as far as is known here."""
    return any(volume.peer_disk_state == DiskState.UP_TO_DATE for volume in link.peer_devices)


def anyone_primary(status: DrbdStatus) -> bool:
    """Whether some member may write, as far as this one sees."""
    return is_primary(status) or any(link.peer_role == Role.PRIMARY for link in status.connections)


def difference(config: DrbdConfig, status: DrbdStatus) -> str:
    """How the kernel differs from the config in a way that ``adjust`` repairs; "" if it does not."""
    if device(status) is None:
        return "no device"
    if is_diskful(config) != holds_disk(status):
        return "no disk" if is_diskful(config) else "a disk"
    return link_difference(config, status)


def link_difference(config: DrbdConfig, status: DrbdStatus) -> str:
    """The same, of links alone."""
    intended = {peer.node_id for peer in linked_peers(config)}
    shown = {link.peer_node_id for link in status.connections}
    if missing := sorted(intended - shown):
        return f"peers missing: {missing}"
    if extra := sorted(shown - intended):
        return f"peers too many: {extra}"
    return ""


def stand_alone(status: DrbdStatus | None) -> list[int]:
    """The peers to which the kernel does not even try to connect."""
    links = status.connections if status is not None else ()
    return sorted(link.peer_node_id for link in links if link.connection_state == ConnectionState.STAND_ALONE)


def is_responsible(config: DrbdConfig) -> bool:
    """Whether it resizes for all: the counted diskful member with the lowest node id."""
    if config.hidden or config.node_id is None or not is_diskful(config):
        return False
    return all(config.node_id < other for other in counted_copies(config))


def counted_copies(config: DrbdConfig) -> list[int]:
    """The node ids of the other members with a copy that counts."""
    return [peer.node_id for peer in config.peers if peer.type is ReplicaType.DISKFUL and not peer.hidden]
