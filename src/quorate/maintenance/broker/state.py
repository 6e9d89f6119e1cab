"""The cluster as anybody may see it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from quorate.api.maintenance.action import HostState, Marker, StatusCode
from quorate.maintenance.broker.answers import OK
from quorate.maintenance.broker.book import Book
from quorate.maintenance.broker.core import Core
from quorate.maintenance.broker.declined import Declined
from quorate.maintenance.broker.markers import node_item
from quorate.maintenance.messages import (
    ClusterStateRequest,
    ClusterStateResponse,
    DeviceState,
    NodeState,
    ServiceState,
)
from quorate.maintenance.model import ClusterModel
from quorate.maintenance.nouns import DriveInfo, NodeInfo, VDiskInfo

Markers = Mapping[str, tuple[Marker, ...]]

_NONE: Final[tuple[Marker, ...]] = ()


def cluster_state(core: Core, asked: ClusterStateRequest) -> ClusterStateResponse:
    """One entry for each node of the hosts asked for, or of all."""
    now = core.open()
    model = core.model
    nodes: dict[int, NodeInfo] = {}
    for host in asked.hosts:
        found = model.nodes_of(host)
        if not found:
            raise Declined(StatusCode.NO_SUCH_HOST, f"there is no host {host!r}: expected a host name or a node id")
        nodes.update((node.id, node) for node in found)
    if not asked.hosts:
        nodes.update((node.id, node) for node in model.nodes())
    markers = _markers(core.book)
    return ClusterStateResponse(
        status=OK, hosts=tuple(_node(model, node, markers, now) for node in nodes.values()), timestamp=now
    )


def _node(model: ClusterModel, node: NodeInfo, markers: Markers, now: int) -> NodeState:
    state = _state(model, node)
    found: tuple[DriveInfo | VDiskInfo, ...] = (*model.drives_of(node.id), *model.vdisks_of(node.id))
    devices = tuple(
        DeviceState(
            name=str(device.id),
            state=device.state,
            timestamp=now,
            markers=_both(device.markers, markers.get(str(device.id), _NONE)),
        )
        for device in found
    )
    return NodeState(
        name=node.host,
        state=state,
        node_id=node.id,
        timestamp=now,
        interconnect_port=node.interconnect_port,
        start_time_seconds=node.start_time // 1_000_000,
        tenant=node.tenant,
        data_center=node.data_center,
        room=node.room,
        rack=node.rack,
        markers=_both(node.markers, markers.get(node_item(node.id), _NONE)),
        services=tuple(ServiceState(name=service, state=state, timestamp=now) for service in node.services),
        devices=devices,
    )


def _state(model: ClusterModel, node: NodeInfo) -> HostState:
    """A node that is down with a permission is restarting."""
    if node.state is HostState.DOWN:
        locks = model.known_node(node.id).locks
        if locks is not None and locks.held:
            return HostState.RESTART
    return node.state


def _markers(book: Book) -> Markers:
    """By item; the one set by hand first."""
    found: dict[str, tuple[Marker, ...]] = {}
    for (item, _), entry in sorted(book.markers.items()):
        found[item] = _both(found.get(item, _NONE), (entry.marker,))
    return found


def _both(known: tuple[Marker, ...], more: tuple[Marker, ...]) -> tuple[Marker, ...]:
    return (*known, *(marker for marker in more if marker not in known)) if more else known
