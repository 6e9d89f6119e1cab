"""Agreement among all nodes that can be reached: the two-phase commit, here in one step of virtual time.

Requests are passed on from node to node. A link that is dead without anybody having noticed yet makes everybody wait
until it is noticed, which a request hastens: it comes with a ping.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from quorate.lab.kernel import links
from quorate.lab.kernel.change import Change
from quorate.lab.kernel.metadata import PeerFlag
from quorate.lab.kernel.resource import Connection, Resource
from quorate.lab.kernel.sanitize import data_accessible
from quorate.lab.kernel.states import Conn, Disk, Role


@dataclass(slots=True)
class Reach:
    """Who takes part."""

    participants: list[Resource]
    dead: list[Connection]
    """Connections whose peer does not answer, though this end has not noticed."""

    @property
    def node_ids(self) -> set[int]:
        """The participants' node ids."""
        return {resource.node_id for resource in self.participants}

    def primaries(self) -> list[Resource]:
        """Participants that are Primary."""
        return [resource for resource in self.participants if resource.now.role is Role.PRIMARY]


def explore(*starts: Resource) -> Reach:
    """Everybody who can be reached over connections, from node to node."""
    found = list(starts)
    seen = {id(resource) for resource in starts}
    dead: list[Connection] = []
    for resource in found:
        for connection in resource.connections.values():
            if connection.now.conn is not Conn.CONNECTED:
                continue
            if not links.alive(connection):
                dead.append(connection)
                continue
            assert connection.other is not None
            other = connection.other.resource
            if id(other) not in seen:
                seen.add(id(other))
                found.append(other)
    return Reach(found, dead)


def explore_now(*starts: Resource) -> Reach:
    """As ``explore``, for a caller that waits: dead links are noticed first."""
    reach = explore(*starts)
    while reach.dead:
        for connection in reach.dead:
            links.lose(connection)
        reach = explore(*starts)
    return reach


def directly_connected(resource: Resource) -> set[int]:
    """The node ids of direct neighbours, and the own."""
    return {c.peer_id for c in resource.connected()} | {resource.node_id}


def far_primary(resource: Resource, primaries: list[Resource], neighbours: set[int]) -> bool:
    """Whether a primary with data exists that this node has no direct connection to, nor to any other primary.

    Such a node misses writes and must not take itself for up to date.
    """
    if resource.now.role is Role.PRIMARY or any(primary.node_id in neighbours for primary in primaries):
        return False
    return any(all(data_accessible(device, new=False) for device in primary.devices.values()) for primary in primaries)


def outdate(resource: Resource) -> None:
    """Within a change: give up the claim to be up to date."""
    for device in resource.devices.values():
        if device.now.disk > Disk.OUTDATED:
            device.new.disk = Disk.OUTDATED


def agree_on_members(reach: Reach) -> None:
    """Everybody now knows who is here, and remembers that those nodes exist."""
    ids = reach.node_ids
    for resource in reach.participants:
        resource.members = set(ids)
        for device in resource.devices.values():
            metadata = device.metadata
            if metadata is not None:
                for node_id in ids - {resource.node_id}:
                    metadata.peer(node_id).flags |= PeerFlag.NODE_EXISTS
        links.retry_stuck(resource)
    _begin_generations(reach)


def _begin_generations(reach: Reach) -> None:
    """A primary's next write begins a generation if a member with a disk is here that will not get it.

    That member is connected to others that do. It may have been up to date a moment ago, and the bitmap alone would
    not tell it from one that still is: its generation has to be an older one than theirs.
    """
    for primary in reach.primaries():
        neighbours = directly_connected(primary)
        far = [resource for resource in reach.participants if resource.node_id not in neighbours]
        for volume, device in primary.devices.items():
            if device.generation_spent:
                continue
            if any(volume in other.devices and other.devices[volume].backing is not None for other in far):
                device.new_uuid_due = True


def call_for_count(resource: Resource) -> None:
    """After losing a peer: agree with those who are left on who is left. Until then nobody tries to reconnect."""
    if resource.counting:
        return
    resource.counting = True
    world = resource.world
    hint = world.count_hint(resource.name, resource.kernel.name)
    if hint is None:
        world.soon(partial(_count_members, resource))
    else:
        world.at(hint, partial(_count_members, resource))


def _count_members(resource: Resource) -> None:
    if resource.gone or not resource.kernel.powered or not resource.counting:
        return
    reach, world = explore(resource), resource.world
    if reach.dead:
        for connection in reach.dead:
            links.hasten_loss(connection)
        # Whoever asks at the same time gets in the way of each other, and tries again a little later.
        last = max(connection.loss_at or world.now for connection in reach.dead)
        wait = world.jitter(0.002, 0.02) if world.random.random() < 0.5 else world.jitter(0.02, 0.2)
        again = max(last, min(last + wait, world.count_limit(resource.name, resource.kernel.name)))
        world.at(again, partial(_count_members, resource))
        return
    resource.counting = False
    change = Change(resource, "lost-peer")
    if far_primary(resource, reach.primaries(), directly_connected(resource)):
        outdate(resource)
    else:
        for device in resource.devices.values():
            if device.now.disk is Disk.CONSISTENT:
                device.new.disk = Disk.UP_TO_DATE
    change.commit()
    agree_on_members(reach)
    resource.kernel.members_counted(resource, reach)
