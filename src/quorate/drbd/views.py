"""What the quorum rule needs to know of a member, from what the API knows: its config, its report, the others'."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Final

from quorate.api.storage.drbd import (
    ConnectionState,
    DiskState,
    DrbdConfig,
    DrbdStatus,
    ReplicationState,
    ReplicaType,
)
from quorate.drbd.quorum import MemberView, PeerView, Setting
from quorate.drbd.resource_file import linked_peers, own_quorum

#: Nothing flows over such a link.
_CUT: Final = ("", ReplicationState.OFF)
_NO_REPORTS: Final[Mapping[int, DrbdStatus]] = MappingProxyType({})


def view_of(
    config: DrbdConfig,
    status: DrbdStatus,
    *,
    had_quorum: bool,
    reports: Mapping[int, DrbdStatus] = _NO_REPORTS,
    remembered: Collection[int] | None = None,
    heard_of: Collection[int] = (),
) -> MemberView:
    """What a member sees.

    ``reports`` are the members' own, by node id: they tell which peers are quorate, and who is still reachable through
    whom. Without them no peer is taken for quorate, and whoever is not connected for departed.
    ``remembered`` are the diskful peers in this member's metadata, also those that its files no longer name; by default
    the ones that they name. ``heard_of`` are members that only its peers' metadata know.
    """
    diskful = config.type is ReplicaType.DISKFUL
    links = {link.peer_node_id: link for link in status.connections}
    peers: dict[int, PeerView] = {}
    for peer in linked_peers(config):
        node_id = peer.node_id
        link, report = links.get(node_id), reports.get(node_id)
        device = link.peer_devices[0] if link is not None and link.peer_devices else None
        connected = device is not None and device.replication_state not in _CUT
        peers[node_id] = PeerView(
            node_id=node_id,
            diskful=peer.type is ReplicaType.DISKFUL,
            connected=connected,
            disk_state=device.peer_disk_state if device is not None else DiskState.UNKNOWN,
            hidden=peer.hidden and diskful,
            remembered=connected or remembered is None or node_id in remembered,
            departed=not connected and not _is_reachable(node_id, status, reports),
            quorate=connected and report is not None and has_quorum(report),
        )
    for node_id in (*(remembered or ()), *heard_of):
        if node_id not in peers:
            departed = not _is_reachable(node_id, status, reports)
            peers[node_id] = PeerView(node_id, node_id not in heard_of, False, departed=departed)
    own_number = own_quorum(config)
    return MemberView(
        node_id=status.node_id,
        diskful=diskful,
        disk_state=status.devices[0].disk_state if status.devices else DiskState.DISKLESS,
        quorum=Setting.MAJORITY if own_number is None else own_number,
        minimum_redundancy=config.quorum_minimum_redundancy or 0,
        peers=tuple([peers[node_id] for node_id in sorted(peers)]),
        had_quorum=had_quorum,
    )


def has_quorum(report: DrbdStatus) -> bool:
    """Whether a member says that it has quorum."""
    return any(device.quorum for device in report.devices)


def _is_reachable(wanted: int, status: DrbdStatus, reports: Mapping[int, DrbdStatus]) -> bool:
    """Whether this member's connections lead to another, over any number of others."""
    found: set[int] = set()
    ahead = _connected(status)
    while ahead:
        node_id = ahead.pop()
        if node_id == wanted:
            return True
        if node_id not in found:
            found.add(node_id)
            if node_id in reports:
                ahead |= _connected(reports[node_id])
    return False


def _connected(status: DrbdStatus) -> set[int]:
    return {link.peer_node_id for link in status.connections if link.connection_state == ConnectionState.CONNECTED}
