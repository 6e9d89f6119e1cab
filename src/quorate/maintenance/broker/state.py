"""The cluster as anybody may see it."""

from __future__ import annotations

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
    hosts = tuple(_node(model, node, core.book, now) for node in nodes.values())
    return ClusterStateResponse(status=OK, hosts=hosts, timestamp=now)


def _node(model: ClusterModel, node: NodeInfo, book: Book, now: int) -> NodeState:
    state = _state(model, node)
    found: tuple[DriveInfo | VDiskInfo, ...] = (*model.drives_of(node.id), *model.vdisks_of(node.id))
    devices = tuple(
        DeviceState(
            name=str(device.id),
            title=device.title,
            state=device.state,
            timestamp=now,
            markers=_of_device(device, node_item(node.id), book),
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
        markers=_both(node.markers, _of_item(book, node_item(node.id))),
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


def _of_device(device: DriveInfo | VDiskInfo, node: str, book: Book) -> tuple[Marker, ...]:
    """A node that is marked by hand has all its drives marked so, but for those that a person has spoken of."""
    own = _both(device.markers, _of_item(book, str(device.id)))
    of_node = book.markers.get((node, False))
    if of_node is None or not isinstance(device, DriveInfo) or (str(device.id), False) in book.markers:
        return own
    return _both((of_node.marker,), own)


def _of_item(book: Book, item: str) -> tuple[Marker, ...]:
    """The one set by hand first."""
    found = (book.markers.get((item, by_monitor)) for by_monitor in (False, True))
    return tuple(dict.fromkeys(entry.marker for entry in found if entry is not None))


def _both(known: tuple[Marker, ...], more: tuple[Marker, ...]) -> tuple[Marker, ...]:
    return (*known, *(marker for marker in more if marker not in known)) if more else known
