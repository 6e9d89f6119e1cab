"""DRBD as the API shows it: what an agent must realise, what it has realised, what the kernel says, what failed.

``config`` is complete: an agent needs no other object to write its ``.res`` file. Everything in it but ``address``,
which the agent chooses, is rendered by the volume controller and stamped with the datamesh revision it belongs to.

States are text as the kernel spells them, not enumerations of the schema: a newer kernel's new state must not make an
agent's whole report unwelcome. The enumerations here are for comparing with.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from msgspec import Meta, field

from quorate.api.quantity import Quantity
from quorate.api.scalars import (
    MAX_MEMBERS,
    Count,
    DeviceMinor,
    DevicePath,
    NodeId,
    NodeRef,
    Percent,
    Port,
    ReasonCode,
    ReplicaRef,
)
from quorate.api.secret import Secret
from quorate.api.struct import Struct, list_map, list_set

_OCTET = "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
#: Four numbers up to 255, without leading zeros: some read those as octal.
IPV4_PATTERN = rf"^({_OCTET}\.){{3}}{_OCTET}$"
State = Annotated[str, Meta(max_length=32)]
SharedSecret = Annotated[
    Secret,
    # drbdadm refuses more than 63 characters (recording bad_config); the name of a Secret may have more.
    Meta(
        description="Authenticates the members to one another: the name of a Secret (quorate-drbd- and the volume's),"
        " or the secret itself (ClusterConfig: drbd.sharedSecrets).",
        extra_json_schema={"minLength": 1, "maxLength": 253},
    ),
]
NodeIds = Annotated[tuple[NodeId, ...], Meta(max_length=MAX_MEMBERS), list_set()]
#: DRBD's largest; a member that must never be quorate by its own count is given 32.
QuorumCount = Annotated[int, Meta(ge=0, le=32)]


class ReplicaType(StrEnum):
    """What a replica is for."""

    DISKFUL = "Diskful"
    ACCESS = "Access"
    TIE_BREAKER = "TieBreaker"


class SharedSecretAlgorithm(StrEnum):
    """In the order in which they are tried."""

    SHA256 = "sha256"
    SHA1 = "sha1"


class Role(StrEnum):
    """What a node may do with the device."""

    PRIMARY = "Primary"
    SECONDARY = "Secondary"
    UNKNOWN = "Unknown"


class DiskState(StrEnum):
    """How good a member's copy is."""

    DISKLESS = "Diskless"
    ATTACHING = "Attaching"
    DETACHING = "Detaching"
    FAILED = "Failed"
    NEGOTIATING = "Negotiating"
    INCONSISTENT = "Inconsistent"
    OUTDATED = "Outdated"
    UNKNOWN = "DUnknown"
    CONSISTENT = "Consistent"
    UP_TO_DATE = "UpToDate"


class ConnectionState(StrEnum):
    """How a link is."""

    STAND_ALONE = "StandAlone"
    DISCONNECTING = "Disconnecting"
    UNCONNECTED = "Unconnected"
    TIMEOUT = "Timeout"
    BROKEN_PIPE = "BrokenPipe"
    NETWORK_FAILURE = "NetworkFailure"
    PROTOCOL_ERROR = "ProtocolError"
    CONNECTING = "Connecting"
    TEAR_DOWN = "TearDown"
    CONNECTED = "Connected"


class ReplicationState(StrEnum):
    """What flows over a link."""

    OFF = "Off"
    ESTABLISHED = "Established"
    STARTING_SYNC_SOURCE = "StartingSyncS"
    STARTING_SYNC_TARGET = "StartingSyncT"
    WAITING_BITMAP_SOURCE = "WFBitMapS"
    WAITING_BITMAP_TARGET = "WFBitMapT"
    WAITING_SYNC_UUID = "WFSyncUUID"
    SYNC_SOURCE = "SyncSource"
    SYNC_TARGET = "SyncTarget"
    PAUSED_SYNC_SOURCE = "PausedSyncS"
    PAUSED_SYNC_TARGET = "PausedSyncT"
    VERIFY_SOURCE = "VerifyS"
    VERIFY_TARGET = "VerifyT"
    AHEAD = "Ahead"
    BEHIND = "Behind"


class Address(Struct):
    """Where a member listens."""

    ipv4: Annotated[str, Meta(max_length=15, pattern=IPV4_PATTERN, description="An IPv4 address of its node.")]
    port: Port


class Peer(Struct):
    """Another member, as this one's files must name it."""

    name: ReplicaRef
    node_name: NodeRef
    node_id: NodeId
    type: ReplicaType
    address: Address
    hidden: Annotated[bool, Meta(description="Not counted: this member sets allow-remote-read no toward it.")] = False


class DrbdConfig(Struct):
    """What this replica's agent must realise."""

    datamesh_revision: Annotated[int, Meta(ge=0, description="The revision of the datamesh that this renders.")] = 0
    node_id: NodeId | None = None
    type: Annotated[ReplicaType, Meta(description="What the replica is in that revision.")] | None = None
    address: Annotated[Address, Meta(description="Where this member listens; chosen by the agent.")] | None = None
    peers: Annotated[
        tuple[Peer, ...], Meta(max_length=MAX_MEMBERS - 1, description="The other members."), list_map("name")
    ] = ()
    peers_initialized: Annotated[bool, Meta(description="peers is meant as it is, even when empty.")] = False
    device_minor: DeviceMinor | None = None
    disk: Annotated[DevicePath, Meta(description="/dev/<group>/<volume>; absent: diskless.")] | None = None
    size: Annotated[Quantity, Meta(description="The usable size the device should have.")] | None = None
    copy_growth: Annotated[
        bool, Meta(description="Somebody's new space may hold old bytes: growing must copy it, never assume it clean.")
    ] = False
    shared_secret: SharedSecret | None = None
    shared_secret_alg: SharedSecretAlgorithm | None = None
    quorum: Annotated[QuorumCount, Meta(description="For people: the files say majority, or 32 (M21).")] | None = None
    quorum_minimum_redundancy: (
        Annotated[QuorumCount, Meta(description="How many up-to-date copies every write needs.")] | None
    ) = None
    allow_two_primaries: Annotated[bool, Meta(description="Two nodes may use the volume at once, for a migration.")] = (
        False
    )
    primary: Annotated[bool, Meta(description="Whether this member is to be Primary.")] = False
    force_secondary: Annotated[
        bool, Meta(description="By a person's word: it is made Secondary by force, and what its users write fails.")
    ] = False
    hidden: Annotated[bool, Meta(description="Not counted by the others; its own files say quorum 32.")] = False
    down: Annotated[bool, Meta(description="The resource is to be down; files are kept.")] = False
    forget: Annotated[NodeIds, Meta(description="Node ids to forget after adjusting.")] = ()
    yields: Annotated[
        bool, Meta(description="The younger of two primaries: disconnects at once when any of its links goes.")
    ] = False
    keep_links: Annotated[
        bool,
        Meta(
            description="Copies may differ although DRBD says that they do not: no link between good copies is broken"
            " or made anew, because that erases the only trace of it."
        ),
    ] = False
    compared: Annotated[
        NodeIds, Meta(description="Peers that this copy was found equal to: bits against them mean nothing.")
    ] = ()


class DrbdActual(Struct):
    """What the agent has realised."""

    disk: Annotated[str, Meta(max_length=512, description="The path of the disk that the kernel was given.")] = ""
    allow_two_primaries: Annotated[bool, Meta(description="Whether the kernel allows two primaries.")] = False
    initial_sync_completed: Annotated[
        bool, Meta(description="The local disk has been seen UpToDate; diskless: the first adjust is done (M3).")
    ] = False
    metadata_created: Annotated[
        str, Meta(max_length=253, description="The LVMLogicalVolume whose metadata was created: never again.")
    ] = ""
    backing_size: (
        Annotated[Quantity, Meta(description="Written ahead: the size before the backing device grew.")] | None
    ) = None
    activity_log_at: (
        Annotated[
            Quantity,
            Meta(description="The device's size at which the disk's log was last seen; diskless: was last written to."),
        ]
        | None
    ) = None
    activity_log_missing: Annotated[
        bool, Meta(description="The disk grew, and has no activity log yet: it would not survive a power loss.")
    ] = False
    forgotten: Annotated[NodeIds, Meta(description="Of config.forget, the done ones.")] = ()
    held_for_copies: Annotated[
        bool,
        Meta(description="The agent suspends I/O: in use without a disk, and too few good copies are connected."),
    ] = False
    quorum_lost_at: (
        Annotated[datetime, Meta(description="When it last lost quorum while in use here, by this node's clock.")]
        | None
    ) = None
    quorum_loss_prevented: Annotated[
        bool,
        Meta(description="It was given a new generation before it could go on, so that who meets it again copies."),
    ] = False
    met_unsure_at: (
        Annotated[
            datetime,
            Meta(description="When a link was last made anew by which marks against a copy may have been lost."),
        ]
        | None
    ) = None
    met_unsure: Annotated[NodeId, Meta(description="The node id of the member whose copy that is.")] | None = None


class CommandError(Struct):
    """A command that failed, with secrets masked."""

    command: Annotated[str, Meta(max_length=1024, description="The command.")] = ""
    exit_code: Annotated[int, Meta(description="How it ended.")] = 0
    output: Annotated[str, Meta(max_length=1024, description="What it said; secrets are masked.")] = ""
    reason: Annotated[ReasonCode, Meta(description="A code where the cause is known, such as MetadataMissing.")] = ""


class AlgorithmError(CommandError):
    """The kernel has not got the algorithm."""

    unsupported_alg: Annotated[
        str, Meta(max_length=32, description="The algorithm that the node's kernel does not have.")
    ] = ""


class DrbdErrors(Struct):
    """What failed last, per task; cleared by the next success."""

    last_adjustment_error: CommandError | None = None
    last_promotion_error: CommandError | None = None
    last_resize_error: CommandError | None = None
    last_config_error: CommandError | None = None
    last_metadata_error: CommandError | None = None
    last_status_error: CommandError | None = None
    shared_secret_alg_selection_error: AlgorithmError | None = None


class Standstill(Struct):
    """Something of this replica's DRBD that should move and does not."""

    WHOLE = True

    reason: Annotated[ReasonCode, Meta(description="What stands still, as the condition DRBDMoving names it.")]
    since: Annotated[datetime, Meta(description="Since when, as far as the agent has seen it.")]
    peers: Annotated[NodeIds, Meta(description="Node ids of the peers that it is about.")] = ()
    attempts: Annotated[Count, Meta(description="How often the agent has tried its cure.")] = 0
    message: Annotated[str, Meta(max_length=512, description="What, why, and what is done about it.")] = ""


class Host(Struct):
    """One end of a path."""

    WHOLE = True

    address: Annotated[str, Meta(description="The address.")] = ""
    port: Annotated[int, Meta(description="The port.")] = 0
    family: Annotated[State, Meta(description="The family of the address, such as ipv4.")] = ""


class Path(Struct):
    """A way between two members."""

    WHOLE = True

    this_host: Host = Host()
    remote_host: Host = Host()
    established: Annotated[bool, Meta(description="Whether the link uses it.")] = False


class PeerDevice(Struct):
    """A volume as one of the peers has it."""

    WHOLE = True

    volume: Annotated[int, Meta(description="The number of the volume in its resource: 0.")] = 0
    replication_state: Annotated[State, Meta(description="What flows over the link, as DRBD names it.")] = ""
    peer_disk_state: Annotated[State, Meta(description="The state of the peer's disk, as DRBD names it.")] = ""
    peer_client: Annotated[bool, Meta(description="Diskless on purpose.")] = False
    resync_suspended: Annotated[str, Meta(max_length=64, description="Why a resync stands still; no: it does not.")] = (
        ""
    )
    out_of_sync: Annotated[Count, Meta(description="KiB.")] = 0
    pending: Annotated[Count, Meta(description="Requests sent to the peer and not answered.")] = 0
    unacked: Annotated[Count, Meta(description="Requests of the peer that are not answered.")] = 0
    has_sync_details: Annotated[bool, Meta(description="A resync is under way.")] = False
    has_online_verify_details: Annotated[bool, Meta(description="A comparison is under way.")] = False
    percent_in_sync: Annotated[Percent, Meta(description="Whole steps, rounded down.")] = 0


class Connection(Struct):
    """A link to a peer."""

    WHOLE = True

    peer_node_id: NodeId
    name: Annotated[str, Meta(description="The peer's host name.")] = ""
    connection_state: Annotated[State, Meta(description="The state of the link, as DRBD names it.")] = ""
    congested: Annotated[bool, Meta(description="The link is slower than what is written.")] = False
    peer_role: Annotated[State, Meta(description="Whether the peer is Primary or Secondary.")] = ""
    tls: Annotated[bool, Meta(description="The link is encrypted.")] = False
    ap_in_flight: Annotated[Count, Meta(description="Sectors of users' writes under way to the peer.")] = 0
    rs_in_flight: Annotated[Count, Meta(description="Sectors of a resync under way to the peer.")] = 0
    paths: Annotated[tuple[Path, ...], Meta(max_length=16, description="The ways to the peer.")] = ()
    peer_devices: Annotated[
        tuple[PeerDevice, ...], Meta(max_length=4, description="The resource's volumes, as the peer has them: one.")
    ] = ()


class Device(Struct):
    """The local device. Counters are of when something else last changed."""

    WHOLE = True

    volume: Annotated[int, Meta(description="The number of the volume in its resource: 0.")] = 0
    minor: Annotated[int, Meta(description="The number of its device, /dev/drbd<minor>.")] = 0
    disk_state: Annotated[State, Meta(description="The state of the disk, as DRBD names it.")] = ""
    client: Annotated[bool, Meta(description="Diskless on purpose.")] = False
    open: Annotated[bool, Meta(description="Somebody holds the device open.")] = False
    quorum: Annotated[bool, Meta(description="Whether it has quorum: without, it does not serve.")] = False
    size: Annotated[Count, Meta(description="KiB.")] = 0
    read: Annotated[Count, Meta(description="KiB read from the disk.")] = 0
    written: Annotated[Count, Meta(description="KiB written to the disk.")] = 0
    al_writes: Annotated[Count, Meta(description="Writes to the activity log.")] = 0
    bm_writes: Annotated[Count, Meta(description="Writes to the bitmap.")] = 0
    upper_pending: Annotated[Count, Meta(description="Requests of users that are under way.")] = 0
    lower_pending: Annotated[Count, Meta(description="Requests to the disk that are under way.")] = 0


class DrbdStatus(Struct):
    """What ``drbdsetup status --json`` says, field by field."""

    WHOLE = True

    name: Annotated[str, Meta(description="The resource.")] = ""
    node_id: Annotated[int, Meta(description="This member's DRBD node id.")] = 0
    role: Annotated[State, Meta(description="Primary: in use here. Secondary: not.")] = ""
    suspended: Annotated[bool, Meta(description="I/O stands still, for any of the reasons below.")] = False
    suspended_user: Annotated[bool, Meta(description="I/O stands still because somebody said so.")] = False
    suspended_no_data: Annotated[bool, Meta(description="I/O stands still because no copy can be reached.")] = False
    suspended_fencing: Annotated[bool, Meta(description="I/O stands still until a peer is fenced.")] = False
    suspended_quorum: Annotated[bool, Meta(description="I/O stands still because there is no quorum.")] = False
    force_io_failures: Annotated[bool, Meta(description="I/O fails at once, because somebody said so.")] = field(
        default=False, name="forceIOFailures"
    )
    write_ordering: Annotated[State, Meta(description="How writes are kept in order on the disk.")] = ""
    devices: Annotated[tuple[Device, ...], Meta(max_length=4, description="The resource's volumes: one.")] = ()
    connections: Annotated[
        tuple[Connection, ...],
        Meta(max_length=MAX_MEMBERS, description="The links to the other members."),
        list_map("peerNodeId"),
    ] = ()


class ReplicaDrbd(Struct):
    """Intended, realised, observed, failed."""

    config: DrbdConfig = DrbdConfig()
    actual: DrbdActual = DrbdActual()
    status: DrbdStatus | None = None
    errors: DrbdErrors = DrbdErrors()
    standstills: Annotated[
        tuple[Standstill, ...],
        Meta(max_length=8, description="What should move and does not, as the agent sees it."),
        list_map("reason"),
    ] = ()
