"""The cluster, as the broker decides on it.

Events change it, locks are laid on it, and both cost what they touch: nothing here walks over all nodes. Time enters
through ``advance`` only, and may be moved back as well as forth: a permission's deadline decides where its nodes stand.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final

from quorate.api.maintenance.action import HostState
from quorate.api.maintenance.broker_config import BrokerConfigSpec
from quorate.maintenance.entries import NotificationEntry, PermissionEntry, RequestEntry
from quorate.maintenance.messages import Action
from quorate.maintenance.model.claims import Claims, Entry, rank
from quorate.maintenance.model.counters import UNTOUCHED, NodeCounter
from quorate.maintenance.model.items import DriveItem, GroupItem, Item, NodeItem, VDiskItem
from quorate.maintenance.model.locks import Rank
from quorate.maintenance.model.lookup import claimed
from quorate.maintenance.nouns import DriveId, DriveInfo, GroupInfo, NodeInfo, Rings, VDiskId, VDiskInfo

#: Digits of the largest node id that is looked up: a longer number is no id.
_ID_DIGITS: Final = 19


class ClusterModel:
    """Nodes, drives, replicas, groups and rings, with everybody's locks on them."""

    def __init__(self, settings: BrokerConfigSpec) -> None:
        #: Grows with every event and every lock: an answer given at another version may be another today.
        self.version = 0
        self.settings = settings
        self.rings: Rings | None = None
        #: All nodes, counted; and those of each tenant.
        self.cluster = NodeCounter()
        self._tenants: dict[str, NodeCounter] = {}
        self._tenant_nodes: dict[str, dict[int, NodeItem]] = {}
        self._nodes: dict[int, NodeItem] = {}
        self._hosts: dict[str, dict[int, NodeItem]] = {}
        self._drives: dict[DriveId, DriveItem] = {}
        self._vdisks: dict[VDiskId, VDiskItem] = {}
        self._groups: dict[int, GroupItem] = {}
        self._claims = Claims()
        self._now = 0
        #: Of permissions, by when they end; and places in the queue, the first one first.
        self._deadlines: list[tuple[int, str]] = []
        self._queue: list[tuple[Rank, str]] = []
        self._ranks: dict[str, Rank] = {}

    # What is known of the cluster.

    def configure(self, settings: BrokerConfigSpec) -> None:
        """Other limits and durations."""
        self.settings = settings
        self.version += 1

    def put_node(self, info: NodeInfo) -> None:
        """A node is new, or changed."""
        node = self._node(info.id)
        before = node.info
        moved = before is None or (before.host, before.tenant, before.services) != (
            info.host,
            info.tenant,
            info.services,
        )
        if moved and before is not None:
            self._uncount(node, before)
        node.info = info
        node.set_state(info.state)
        if moved:
            self._count(node, info)
        self._stand([node])
        if moved:
            self._renew(self._names_of(before) | self._names_of(info))
        self.version += 1

    def remove_node(self, node_id: int) -> None:
        """A node is not there any more. Replicas that are said to be on it are away."""
        node = self._nodes.get(node_id)
        if node is None or node.info is None:
            return
        before, node.info = node.info, None
        self._uncount(node, before)
        node.set_state(HostState.UNKNOWN)
        self._renew(self._names_of(before))
        self._forget_node(node)
        self.version += 1

    def put_drive(self, info: DriveInfo) -> None:
        """A drive is new, or changed."""
        drive = self._drive(info.id)
        moved = drive.info is None or drive.info.path != info.path
        drive.info = info
        drive.set_state(info.state)
        if moved:
            self._renew({info.id, *self._names_of(drive.node.info)})
        self.version += 1

    def remove_drive(self, drive_id: DriveId) -> None:
        """A drive is not there any more."""
        drive = self._drives.get(drive_id)
        if drive is None or drive.info is None:
            return
        drive.info = None
        drive.set_state(HostState.UNKNOWN)
        self._renew({drive_id, *self._names_of(drive.node.info)})
        self._forget_drive(drive)
        self.version += 1

    def put_group(self, info: GroupInfo) -> None:
        """A group is new, or its members or what is known of it changed."""
        if (info.species is None) == (info.volume is None):
            raise ValueError(f"group {info.id} must be either of an erasure species or a volume")
        before = self._groups.get(info.id)
        if before is not None and before.info.vdisks == info.vdisks:
            self._host_guests(before, info)
        else:
            self._replace_group(before, info)
        self.version += 1

    def remove_group(self, group_id: int) -> None:
        """A group is not there any more."""
        group = self._groups.pop(group_id, None)
        if group is not None:
            self._empty(group)
            self._renew(vdisk.id for vdisk in group.members)
            self.version += 1

    def put_vdisk(self, info: VDiskInfo) -> None:
        """A replica of a group that is known changed."""
        vdisk = self._vdisks.get(info.id)
        if vdisk is None:
            raise KeyError(f"{info.id} is of no known group")
        group = vdisk.group.info
        parts = tuple(info if part.id == info.id else part for part in group.vdisks)
        if (info.node, info.drives) != (vdisk.info.node, vdisk.info.drives):
            self.put_group(_with_parts(group, parts))
            return
        vdisk.group.info = _with_parts(group, parts)
        vdisk.info = info
        vdisk.set_state(info.state)
        self.version += 1

    def set_rings(self, rings: Rings | None) -> None:
        """The state storage is elsewhere."""
        for node in {node for ring in (self.rings.rings if self.rings else ()) for node in ring.nodes}:
            self._nodes[node].rings = ()
            self._forget_node(self._nodes[node])
        self.rings = rings
        for number, ring in enumerate(rings.rings if rings else ()):
            for node in dict.fromkeys(ring.nodes):
                self._node(node).rings += (number,)
        self.version += 1

    # Who has what.

    def hold(self, permission: PermissionEntry) -> None:
        """A permission was granted, or changed."""
        self._untime(permission.id)
        insort(self._deadlines, (permission.deadline, permission.id))
        self._claim(permission)

    def release(self, permission_id: str) -> None:
        """A permission is over."""
        self._untime(permission_id)
        self._unclaim(permission_id)

    def announce(self, notification: NotificationEntry) -> None:
        """Work was announced."""
        self._claim(notification)

    def withdraw(self, notification_id: str) -> None:
        """And withdrawn, or is over."""
        self._unclaim(notification_id)

    def queue(self, request: RequestEntry, *, blocking: bool) -> None:
        """A request is stored, or changed. One that nobody asks about any more keeps its place, but blocks nobody."""
        self._unrank(request.id)
        if not blocking:
            self._unclaim(request.id)
            return
        self._ranks[request.id] = rank(request)
        insort(self._queue, (rank(request), request.id))
        self._claim(request)

    def dequeue(self, request_id: str) -> None:
        """A request is not stored any more."""
        self._unrank(request_id)
        self._unclaim(request_id)

    def advance(self, now: int) -> None:
        """It is now then."""
        if now == self._now:
            return
        low, high = min(now, self._now), max(now, self._now)
        self._now = now
        first, last = (bisect_right(self._deadlines, moment, key=_deadline) for moment in (low, high))
        for _, permission_id in self._deadlines[first:last]:
            if (claim := self._claims.get(permission_id)) is not None:
                self._stand(item for item, _ in claim.locks)

    @contextmanager
    def without(self, permission_id: str) -> Iterator[None]:
        """As if a permission were not there, for a moment."""
        claim, version = self._claims.get(permission_id), self.version
        if claim is None or not isinstance(claim.entry, PermissionEntry):
            yield
            return
        self.release(permission_id)
        try:
            yield
        finally:
            self.hold(claim.entry)
            self.version = version

    def ends_after(self, now: int) -> Iterator[tuple[int, tuple[NodeItem, ...]]]:
        """When permissions end, the next one first, and the nodes that they hold."""
        for position in range(bisect_right(self._deadlines, now, key=_deadline), len(self._deadlines)):
            deadline, permission_id = self._deadlines[position]
            claim = self._claims.get(permission_id)
            locks = () if claim is None else claim.locks
            yield deadline, tuple(item for item, _ in locks if isinstance(item, NodeItem))

    def queue_before(self, place: Rank) -> bool:
        """Somebody is in the queue who goes first."""
        return bool(self._queue) and self._queue[0][0] < place

    def rank_of(self, request_id: str) -> Rank:
        """A blocking request's place in the queue."""
        return self._ranks[request_id]

    # Reading.

    def node(self, node_id: int) -> NodeInfo | None:
        """A node."""
        node = self._nodes.get(node_id)
        return None if node is None else node.info

    def nodes(self) -> Iterator[NodeInfo]:
        """All nodes, in the order in which they became known."""
        return (node.info for node in self._nodes.values() if node.info is not None)

    def nodes_of(self, host: str) -> tuple[NodeInfo, ...]:
        """The nodes of a host, which is named or is a node's id in decimal."""
        return tuple(node.info for node in self.node_items(host) if node.info is not None)

    def drive(self, drive_id: DriveId) -> DriveInfo | None:
        """A drive."""
        drive = self._drives.get(drive_id)
        return None if drive is None else drive.info

    def drives_of(self, node_id: int) -> tuple[DriveInfo, ...]:
        """The drives of a node."""
        node = self._nodes.get(node_id)
        drives = () if node is None else node.drives.values()
        return tuple(drive.info for drive in drives if drive.info is not None)

    def vdisk(self, vdisk_id: VDiskId) -> VDiskInfo | None:
        """A replica."""
        vdisk = self._vdisks.get(vdisk_id)
        return None if vdisk is None else vdisk.info

    def vdisks_of(self, place: int | DriveId) -> tuple[VDiskInfo, ...]:
        """The replicas on a node, or on a drive."""
        item = self._drives.get(place) if isinstance(place, DriveId) else self._nodes.get(place)
        return () if item is None else tuple(vdisk.info for vdisk in item.replicas)

    def group(self, group_id: int) -> GroupInfo | None:
        """A group."""
        group = self._groups.get(group_id)
        return None if group is None else group.info

    def groups(self) -> Iterator[GroupInfo]:
        """All groups."""
        return (group.info for group in self._groups.values())

    def hosts_of_tenant(self, tenant: str) -> tuple[str, ...]:
        """The hosts of a tenant's nodes, each once."""
        nodes = self._tenant_nodes.get(tenant, {}).values()
        return tuple(dict.fromkeys(node.info.host for node in nodes if node.info is not None))

    # The same, with their locks and links: for the rules.

    def known_node(self, node_id: int) -> NodeItem:
        """A node that something refers to."""
        return self._nodes[node_id]

    def node_items(self, host: str) -> tuple[NodeItem, ...]:
        """The nodes of a host: by its name, or else by a node's id."""
        if (named := self._hosts.get(host)) is not None:
            return tuple(sorted(named.values(), key=lambda node: node.id))
        if host.isascii() and host.isdecimal() and len(host) <= _ID_DIGITS and str(int(host)) == host:
            node = self._nodes.get(int(host))
            return () if node is None or node.info is None else (node,)
        return ()

    def drive_item(self, drive_id: DriveId) -> DriveItem | None:
        """A drive that is there."""
        drive = self._drives.get(drive_id)
        return None if drive is None or drive.info is None else drive

    def vdisk_item(self, vdisk_id: VDiskId) -> VDiskItem | None:
        """A replica."""
        return self._vdisks.get(vdisk_id)

    def counter_of(self, tenant: str) -> NodeCounter | None:
        """A tenant's nodes, counted."""
        return self._tenants.get(tenant)

    def group_items(self) -> Iterable[GroupItem]:
        """All groups."""
        return self._groups.values()

    # Keeping it together.

    def _node(self, node_id: int) -> NodeItem:
        node = self._nodes.get(node_id)
        if node is None:
            node = self._nodes[node_id] = NodeItem(node_id)
        return node

    def _drive(self, drive_id: DriveId) -> DriveItem:
        drive = self._drives.get(drive_id)
        if drive is None:
            node = self._node(drive_id.node)
            drive = self._drives[drive_id] = node.drives[drive_id.drive] = DriveItem(drive_id, node)
        return drive

    def _forget_node(self, node: NodeItem) -> None:
        if node.info is None and not (node.drives or node.vdisks or node.guests or node.rings):
            del self._nodes[node.id]

    def _forget_drive(self, drive: DriveItem) -> None:
        if drive.info is None and not drive.vdisks:
            del self._drives[drive.id], drive.node.drives[drive.id.drive]
            self._forget_node(drive.node)

    def _count(self, node: NodeItem, info: NodeInfo) -> None:
        self._hosts.setdefault(info.host, {})[node.id] = node
        node.counters = (self.cluster,)
        if info.tenant:
            tenant = self._tenants.setdefault(info.tenant, NodeCounter(info.tenant))
            self._tenant_nodes.setdefault(info.tenant, {})[node.id] = node
            node.counters += (tenant,)
        for counter in node.counters:
            counter.enter(node.id, node.standing)

    def _uncount(self, node: NodeItem, info: NodeInfo) -> None:
        for counter in node.counters:
            counter.leave(node.id, node.standing)
        node.counters = ()
        for index, name in ((self._hosts, info.host), (self._tenant_nodes, info.tenant)):
            if name in index:
                del index[name][node.id]
                if not index[name]:
                    del index[name]
        if info.tenant and info.tenant not in self._tenant_nodes:
            del self._tenants[info.tenant]
        node.standing = UNTOUCHED

    def _replace_group(self, before: GroupItem | None, info: GroupInfo) -> None:
        group = self._groups[info.id] = GroupItem(info)
        old = [] if before is None else before.members
        if before is not None:
            self._empty(before)
        for part in info.vdisks:
            vdisk = VDiskItem(part, group, self._node(part.node), tuple(self._drive(drive) for drive in part.drives))
            group.members.append(vdisk)
            self._vdisks[part.id] = vdisk
            vdisk.link()
        self._host_guests(group, info)
        self._renew([vdisk.id for vdisk in (*old, *group.members)])

    def _empty(self, group: GroupItem) -> None:
        self._unhost_guests(group)
        for vdisk in group.members:
            del self._vdisks[vdisk.id]
            vdisk.unlink()
            for drive in vdisk.drives:
                self._forget_drive(drive)
            if vdisk.node.id in self._nodes:
                self._forget_node(vdisk.node)

    def _host_guests(self, group: GroupItem, info: GroupInfo) -> None:
        """Let nodes know of members that are no parts of the group: a step that is not confirmed concerns them too."""
        self._unhost_guests(group)
        group.info = info
        parts = {vdisk.id for vdisk in info.vdisks}
        for member in info.volume.members if info.volume is not None else ():
            if member.vdisk not in parts:
                self._node(member.node).guests[info.id] = group

    def _unhost_guests(self, group: GroupItem) -> None:
        for member in group.info.volume.members if group.info.volume is not None else ():
            node = self._nodes.get(member.node)
            if node is not None and node.guests.pop(group.info.id, None) is not None:
                self._forget_node(node)

    def _claim(self, entry: Entry) -> None:
        self._stand(self._claims.put(entry, self._find))
        self.version += 1

    def _unclaim(self, identity: str) -> None:
        self._stand(self._claims.remove(identity))
        self.version += 1

    def _renew(self, names: Iterable[object]) -> None:
        if self._claims:
            self._stand(self._claims.renew(names, self._find))

    def _find(self, action: Action) -> tuple[Item, ...]:
        return claimed(self, action)

    def _names_of(self, info: NodeInfo | None) -> set[object]:
        """What a claim may know a node by: its host, its id, or a tenant with a node on its host."""
        if info is None:
            return set()
        neighbours = (node.info for node in self._hosts.get(info.host, {}).values())
        tenants = {info.tenant, *(neighbour.tenant for neighbour in neighbours if neighbour is not None)} - {""}
        return {("host", info.host), ("host", str(info.id)), *(("tenant", tenant) for tenant in tenants)}

    def _stand(self, items: Iterable[Item]) -> None:
        for item in items:
            if isinstance(item, NodeItem):
                item.stand(item.standing_at(self._now))

    def _untime(self, permission_id: str) -> None:
        claim = self._claims.get(permission_id)
        if claim is not None and isinstance(claim.entry, PermissionEntry):
            self._deadlines.remove((claim.entry.deadline, permission_id))

    def _unrank(self, request_id: str) -> None:
        if (place := self._ranks.pop(request_id, None)) is not None:
            self._queue.remove((place, request_id))


def _deadline(entry: tuple[int, str]) -> int:
    return entry[0]


def _with_parts(group: GroupInfo, parts: tuple[VDiskInfo, ...]) -> GroupInfo:
    return GroupInfo(id=group.id, generation=group.generation, species=group.species, volume=group.volume, vdisks=parts)
