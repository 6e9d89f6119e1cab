"""What there is: nodes, drives, replicas, groups and rings, linked and indexed.

Events may come in any order: what a replica refers to before it is known is held as an empty place, which counts as
away. An event costs what it touches; nothing here walks over all nodes.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import Final

from quorate.api.maintenance.action import HostState
from quorate.maintenance.model.counters import UNTOUCHED, NodeCounter
from quorate.maintenance.model.items import DriveItem, GroupItem, Item, NodeItem, VDiskItem
from quorate.maintenance.nouns import DriveId, DriveInfo, GroupInfo, NodeInfo, Rings, VDiskId, VDiskInfo

#: Digits of the largest node id that is looked up: a longer number is no id.
_ID_DIGITS: Final = 19


class Inventory:
    """The cluster without anybody's claims on it."""

    def __init__(self) -> None:
        #: Grows with everything that may change an answer.
        self.version = 0
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

    # Who builds on it may want to know.

    def _stand(self, items: Iterable[Item]) -> None:
        """The states or locks of these changed."""
        raise NotImplementedError

    def _renew(self, names: Iterable[Hashable]) -> None:
        """What these names stand for changed."""
        raise NotImplementedError

    # Events.

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
        vdisk.group.learn(_with_parts(group, parts))
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
        group.learn(info)
        parts = {vdisk.id for vdisk in info.vdisks}
        for member in info.volume.members if info.volume is not None else ():
            if member.vdisk not in parts:
                self._node(member.node).guests[info.id] = group

    def _unhost_guests(self, group: GroupItem) -> None:
        for member in group.info.volume.members if group.info.volume is not None else ():
            node = self._nodes.get(member.node)
            if node is not None and node.guests.pop(group.info.id, None) is not None:
                self._forget_node(node)

    def _names_of(self, info: NodeInfo | None) -> set[Hashable]:
        """What a claim may know a node by: its host, its id, or a tenant with a node on its host."""
        if info is None:
            return set()
        neighbours = (node.info for node in self._hosts.get(info.host, {}).values())
        tenants = {info.tenant, *(neighbour.tenant for neighbour in neighbours if neighbour is not None)} - {""}
        return {("host", info.host), ("host", str(info.id)), *(("tenant", tenant) for tenant in tenants)}


def _with_parts(group: GroupInfo, parts: tuple[VDiskInfo, ...]) -> GroupInfo:
    return GroupInfo(id=group.id, generation=group.generation, species=group.species, volume=group.volume, vdisks=parts)
