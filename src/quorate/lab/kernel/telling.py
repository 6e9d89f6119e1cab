"""Telling connected peers what changed here.

What is told can be refused: by a primary that would lose its quorum or its data by it. It hangs up on the teller for
good (``e4_hidden_primary_detach``: "error receiving P_STATE, e: -5"): StandAlone at the primary, while the teller goes
on looking for it. What the primary wanted to keep is lost by that all the same, if the link held it up.
"""

from __future__ import annotations

from quorate.lab.kernel.change import Change
from quorate.lab.kernel.links import alive
from quorate.lab.kernel.reply import Reply
from quorate.lab.kernel.resource import Connection, PeerDevice, Resource
from quorate.lab.kernel.states import Conn, Disk, Role


def tell_peers(resource: Resource) -> None:
    """Bring every connected peer's picture of this node up to date."""
    for connection in list(resource.connections.values()):
        if connection.now.conn is Conn.CONNECTED and alive(connection):
            _tell(connection)


def _tell(connection: Connection) -> None:
    other = connection.other
    if other is None or other.now.conn is not Conn.CONNECTED or other.other is not connection:
        return
    pairs = [
        (mine, other.peer_devices[volume])
        for volume, mine in connection.peer_devices.items()
        if volume in other.peer_devices
    ]
    for mine, theirs in pairs:
        exchange(mine, theirs)
    role = connection.resource.now.role
    if other.now.peer_role is role and all(
        theirs.now.disk is mine.device.now.disk and theirs.now.paused_by_peer == _pauses(mine) for mine, theirs in pairs
    ):
        return
    change = Change(other.resource, "peer-state")
    other.new.peer_role = role
    for mine, theirs in pairs:
        theirs.new.disk = mine.device.now.disk
        theirs.new.paused_by_peer = _pauses(mine)
    reply = change.commit()
    if not reply.ok:
        _hang_up(other, reply)


def _hang_up(end: Connection, reply: Reply) -> None:
    resource = end.resource
    for line in (
        f"drbd {resource.name}: {reply.text}",
        f"drbd {resource.name}: State change failed: {reply.message} ({reply.code})",
        f"drbd {resource.name} {end.name}: error receiving P_STATE, e: -5 l: 0!",
    ):
        resource.kernel.log(line)
    change = Change(resource, "peer-state", hard=True)
    end.new.conn = Conn.DISCONNECTING
    change.commit()


def exchange(mine: PeerDevice, theirs: PeerDevice) -> None:
    """What travels along without being a change of state: data generation, and whether the teller is quorate.

    A peer that loses its quorum does not by itself make a follower count again; its next change does.
    """
    metadata, device = mine.device.metadata, theirs.device
    theirs.peer_uuid = metadata.current_uuid if metadata else mine.device.exposed_uuid
    theirs.peer_quorate = mine.device.now.quorum
    follows = device.backing is None and device.resource.now.role is not Role.PRIMARY
    if follows and metadata is not None and mine.device.now.disk is Disk.UP_TO_DATE:
        device.exposed_uuid = metadata.current_uuid


def _pauses(mine: PeerDevice) -> bool:
    return mine.now.paused_by_user or mine.now.paused_by_other
