"""The objects of one node's configuration: a resource, its devices, its connections, and one pair of each.

Every object has its present state (``now``) and, while a change is being made, the state it is to have (``new``).
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from quorate.lab.kernel.block import BLOCK, BlockDevice
from quorate.lab.kernel.extents import BlockSet
from quorate.lab.kernel.metadata import Metadata, PeerMetadata
from quorate.lab.kernel.options import Options
from quorate.lab.kernel.states import Conn, Disk, Repl, Role

if TYPE_CHECKING:
    from collections.abc import Iterator

    from quorate.lab.kernel.io import Io
    from quorate.lab.kernel.module import Module
    from quorate.lab.kernel.resync import Copying
    from quorate.lab.kernel.status import Look
    from quorate.lab.kernel.world import World


class ResourceState(msgspec.Struct, gc=False):
    """Role and the reasons to hold back I/O."""

    role: Role = Role.SECONDARY
    suspended_user: bool = False
    suspended_no_data: bool = False
    suspended_quorum: bool = False
    fail_io: bool = False

    @property
    def suspended(self) -> bool:
        """Whether I/O is held back."""
        return self.suspended_user or self.overtakable

    @property
    def overtakable(self) -> bool:
        """Whether it is held back for want of quorum or data, so that others may have gone on meanwhile."""
        return self.suspended_no_data or self.suspended_quorum


class DeviceState(msgspec.Struct, gc=False):
    """The local replica."""

    disk: Disk = Disk.DISKLESS
    quorum: bool = False


class ConnectionState(msgspec.Struct, gc=False):
    """The connection, and what the peer is."""

    conn: Conn = Conn.STANDALONE
    peer_role: Role = Role.UNKNOWN


class PeerDeviceState(msgspec.Struct, gc=False):
    """A peer's replica as this node sees it."""

    disk: Disk = Disk.UNKNOWN
    repl: Repl = Repl.OFF
    paused_by_user: bool = False
    paused_by_peer: bool = False
    paused_by_other: bool = False
    """Another connection's resync goes first."""


@dataclass(slots=True)
class Opener:
    """A process that has the device open."""

    process: str
    pid: int
    at: float
    writable: bool


@dataclass(slots=True)
class Backing:
    """An attached backing device."""

    device: BlockDevice
    path: str
    metadata: Metadata
    active: BlockSet = field(default_factory=BlockSet)
    """Extents of the activity log as the kernel has them in mind: the log is written when another one comes to them."""


class PeerDevice:
    """One volume toward one peer."""

    __slots__ = (
        "connection",
        "copying",
        "device",
        "new",
        "now",
        "old",
        "options",
        "peer_quorate",
        "peer_uuid",
        "received",
        "sent",
        "stands",
    )

    def __init__(self, connection: Connection, device: Device, options: Options) -> None:
        self.connection = connection
        self.device = device
        self.options = options
        self.now = PeerDeviceState()
        self.new = self.now
        self.old = self.now
        self.peer_uuid = 0
        """The peer's data generation as last told."""
        self.peer_quorate = False
        self.copying: Copying | None = None
        self.stands = False
        """A resync over this connection went wrong (``Slip``), and stands still until the connection is made anew."""
        self.sent = 0
        self.received = 0

    @property
    def wants_bitmap(self) -> bool:
        """Whether the peer is meant to have a disk; one that is not is a client, and at best a tie-breaker."""
        return self.options.yes("bitmap")

    @property
    def slot(self) -> PeerMetadata | None:
        """The peer's slot in the local metadata, if there is a disk."""
        backing = self.device.backing
        return None if backing is None else backing.metadata.peer(self.connection.peer_id)

    @property
    def out_of_sync(self) -> int:
        """Bytes that the peer lacks, as the local bitmap says."""
        slot = self.slot
        return 0 if slot is None or slot.bitmap_index == -1 else slot.bitmap.count * BLOCK

    @property
    def is_left_out(self) -> bool:
        """Whether the peer's copy stands still on its way to being good: it is not written to, only marked."""
        other = self.peer
        if other is None or other.device.now.disk >= Disk.CONSISTENT:
            return False
        return any(each.stands for each in other.device.peer_devices)

    @property
    def peer(self) -> PeerDevice | None:
        """The other end, if the session is up at both."""
        other = self.connection.other
        if other is None or other.other is not self.connection:
            return None
        return other.peer_devices.get(self.device.volume)


class Connection:
    """This node's end of the connection to one peer."""

    __slots__ = (
        "discard_my_data",
        "established",
        "fresh",
        "graceful",
        "looping",
        "loss_at",
        "meeting",
        "new",
        "now",
        "old",
        "options",
        "other",
        "paths",
        "peer_devices",
        "peer_id",
        "resource",
        "retrying",
        "since",
        "stuck",
    )

    def __init__(self, resource: Resource, peer_id: int, options: Options) -> None:
        self.resource = resource
        self.peer_id = peer_id
        self.options = options
        self.paths: list[tuple[str, str]] = []
        self.now = ConnectionState()
        self.new = self.now
        self.old = self.now
        self.peer_devices: dict[int, PeerDevice] = {}
        self.other: Connection | None = None
        """The peer's end while a session is up, alive or not."""
        self.established = False
        """What events2 says of the path."""
        self.discard_my_data = False
        self.graceful = False
        """The peer said that it goes."""
        self.stuck = False
        """Cleaning up after a lost peer was refused, and is tried again."""
        self.retrying = False
        self.since = 0.0
        """When it was last connected."""
        self.fresh = True
        """Never connected since it was configured."""
        self.looping = False
        """Each session is over before it began (``Slip``), until this end is configured anew."""
        self.loss_at: float | None = None
        """When this end will notice that the peer is gone."""
        self.meeting: object | None = None
        """The meeting with the peer's end that is planned."""

    @property
    def name(self) -> str:
        """The peer's name, as the configuration gives it."""
        return self.options["_name"]


class Device:
    """One volume of a resource on this node."""

    __slots__ = (
        "asking",
        "backing",
        "counted_quorate",
        "crashed_primary",
        "exposed_uuid",
        "generation_spent",
        "held_since",
        "held_until",
        "intended_diskless",
        "minor",
        "new",
        "new_uuid_due",
        "now",
        "old",
        "openers",
        "options",
        "read",
        "resource",
        "restore_quorum",
        "size",
        "tie_broken",
        "volume",
        "waiting",
        "written",
    )

    def __init__(self, resource: Resource, minor: int, volume: int, *, diskless: bool) -> None:
        self.resource = resource
        self.minor = minor
        self.volume = volume
        self.intended_diskless = diskless
        self.options: Options | None = None
        self.now = DeviceState()
        self.new = self.now
        self.old = self.now
        self.backing: Backing | None = None
        self.size = 0
        """What users see, in bytes."""
        self.exposed_uuid = 0
        self.openers: list[Opener] = []
        self.waiting: list[Io] = []
        self.new_uuid_due = False
        """The next write starts a new data generation."""
        self.asking = False
        """A write that starts one waits for the peers to answer a ping first."""
        self.generation_spent = False
        """It was to start one, and the quorum was lost over the asking: it goes out later in the old generation."""
        self.held_since = 0.0
        self.held_until = 0.0
        """Quorate again, and slow to make the new generation: writes wait until then (`races`)."""
        self.crashed_primary = False
        self.restore_quorum = False
        """Quorate alone when last attached: it still is, until the members in sight make it so or its data ages."""
        self.counted_quorate = False
        """What the members in sight say, whatever is remembered."""
        self.tie_broken = False
        self.read = 0
        self.written = 0

    @property
    def peer_devices(self) -> list[PeerDevice]:
        """This volume toward each peer."""
        volume = self.volume
        return [c.peer_devices[volume] for c in self.resource.connections.values() if volume in c.peer_devices]

    @property
    def metadata(self) -> Metadata | None:
        """The metadata, if a disk is attached."""
        return None if self.backing is None else self.backing.metadata

    @property
    def blocks(self) -> int:
        """The size in blocks."""
        return self.size // BLOCK


class Resource:
    """One resource on one node."""

    __slots__ = (
        "connections",
        "counting",
        "devices",
        "gone",
        "kernel",
        "last_look",
        "members",
        "name",
        "new",
        "node_id",
        "now",
        "old",
        "options",
        "weak",
    )

    def __init__(self, kernel: Module, name: str, node_id: int, options: Options) -> None:
        self.kernel = kernel
        self.name = name
        self.node_id = node_id
        self.options = options
        self.now = ResourceState()
        self.new = self.now
        self.old = self.now
        self.devices: dict[int, Device] = {}
        self.connections: dict[int, Connection] = {}
        self.members: set[int] = {node_id}
        """Node ids that took part in the last two-phase commit: who is surely not in another partition."""
        self.weak = False
        """A primary exists that this node is not connected to: see `twopc.far_primary`."""
        self.counting = False
        """A peer was lost, and those who are left have not yet agreed on who is left."""
        self.gone = False
        self.last_look: Look | None = None
        """See `status.look`."""

    @property
    def world(self) -> World:
        """The stage."""
        return self.kernel.world

    def parts(self) -> Iterator[Resource | Device | Connection | PeerDevice]:
        """Everything that has a state."""
        yield self
        yield from self.devices.values()
        for connection in self.connections.values():
            yield connection
            yield from connection.peer_devices.values()

    def begin(self) -> None:
        """Put a copy of the present state beside it, to be altered."""
        for part in self.parts():
            part.new = copy(part.now)

    def connected(self) -> list[Connection]:
        """The connections in use."""
        return [c for c in self.connections.values() if c.now.conn is Conn.CONNECTED]
