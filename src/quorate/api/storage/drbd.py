"""DRBD as the API shows it: what an agent must realise, what it has realised, what the kernel says, what failed.

``config`` is complete: an agent needs no other object to write its ``.res`` file. Everything in it but ``address``,
which the agent chooses, is rendered by the volume controller and stamped with the datamesh revision it belongs to.

States are text as the kernel spells them, not enumerations of the schema: a newer kernel's new state must not make an
agent's whole report unwelcome. The enumerations here are for comparing with.
"""

from __future__ import annotations

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

    ipv4: Annotated[str, Meta(max_length=15, pattern=IPV4_PATTERN)]
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
    peers: Annotated[tuple[Peer, ...], Meta(max_length=MAX_MEMBERS - 1), list_map("name")] = ()
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
    quorum_minimum_redundancy: QuorumCount | None = None
    allow_two_primaries: bool = False
    primary: Annotated[bool, Meta(description="Whether this member is to be Primary.")] = False
    hidden: Annotated[bool, Meta(description="Not counted by the others; its own files say quorum 32.")] = False
    down: Annotated[bool, Meta(description="The resource is to be down; files are kept.")] = False
    forget: Annotated[NodeIds, Meta(description="Node ids to forget after adjusting.")] = ()
    yields: Annotated[
        bool, Meta(description="The younger of two primaries: disconnects at once when any of its links goes.")
    ] = False


class DrbdActual(Struct):
    """What the agent has realised."""

    disk: Annotated[str, Meta(max_length=512)] = ""
    allow_two_primaries: bool = False
    initial_sync_completed: Annotated[
        bool, Meta(description="The local disk has been seen UpToDate; diskless: the first adjust is done (M3).")
    ] = False
    metadata_created: Annotated[
        str, Meta(max_length=253, description="The LVMLogicalVolume whose metadata was created: never again.")
    ] = ""
    backing_size: (
        Annotated[Quantity, Meta(description="Written ahead: the size before the backing device grew.")] | None
    ) = None
    forgotten: Annotated[NodeIds, Meta(description="Of config.forget, the done ones.")] = ()


class CommandError(Struct):
    """A command that failed, with secrets masked."""

    command: Annotated[str, Meta(max_length=1024)] = ""
    exit_code: int = 0
    output: Annotated[str, Meta(max_length=1024)] = ""
    reason: Annotated[ReasonCode, Meta(description="A code where the cause is known, such as MetadataMissing.")] = ""


class AlgorithmError(CommandError):
    """The kernel has not got the algorithm."""

    unsupported_alg: Annotated[str, Meta(max_length=32)] = ""


class DrbdErrors(Struct):
    """What failed last, per task; cleared by the next success."""

    last_adjustment_error: CommandError | None = None
    last_promotion_error: CommandError | None = None
    last_resize_error: CommandError | None = None
    last_config_error: CommandError | None = None
    last_metadata_error: CommandError | None = None
    last_status_error: CommandError | None = None
    shared_secret_alg_selection_error: AlgorithmError | None = None


class Host(Struct):
    """One end of a path."""

    WHOLE = True

    address: str = ""
    port: int = 0
    family: State = ""


class Path(Struct):
    """A way between two members."""

    WHOLE = True

    this_host: Host = Host()
    remote_host: Host = Host()
    established: bool = False


class PeerDevice(Struct):
    """A volume as one of the peers has it."""

    WHOLE = True

    volume: int = 0
    replication_state: State = ""
    peer_disk_state: State = ""
    peer_client: Annotated[bool, Meta(description="Diskless on purpose.")] = False
    resync_suspended: Annotated[str, Meta(max_length=64)] = ""
    out_of_sync: Annotated[Count, Meta(description="KiB.")] = 0
    pending: Count = 0
    unacked: Count = 0
    has_sync_details: bool = False
    has_online_verify_details: bool = False
    percent_in_sync: Annotated[Percent, Meta(description="Whole steps, rounded down.")] = 0


class Connection(Struct):
    """A link to a peer."""

    WHOLE = True

    peer_node_id: NodeId
    name: str = ""
    connection_state: State = ""
    congested: bool = False
    peer_role: State = ""
    tls: bool = False
    ap_in_flight: Count = 0
    rs_in_flight: Count = 0
    paths: Annotated[tuple[Path, ...], Meta(max_length=16)] = ()
    peer_devices: Annotated[tuple[PeerDevice, ...], Meta(max_length=4)] = ()


class Device(Struct):
    """The local device. Counters are of when something else last changed."""

    WHOLE = True

    volume: int = 0
    minor: int = 0
    disk_state: State = ""
    client: Annotated[bool, Meta(description="Diskless on purpose.")] = False
    open: Annotated[bool, Meta(description="Somebody holds the device open.")] = False
    quorum: bool = False
    size: Annotated[Count, Meta(description="KiB.")] = 0
    read: Count = 0
    written: Count = 0
    al_writes: Count = 0
    bm_writes: Count = 0
    upper_pending: Count = 0
    lower_pending: Count = 0


class DrbdStatus(Struct):
    """What ``drbdsetup status --json`` says, field by field."""

    WHOLE = True

    name: str = ""
    node_id: int = 0
    role: State = ""
    suspended: bool = False
    suspended_user: bool = False
    suspended_no_data: bool = False
    suspended_fencing: bool = False
    suspended_quorum: bool = False
    force_io_failures: bool = field(default=False, name="forceIOFailures")
    write_ordering: State = ""
    devices: Annotated[tuple[Device, ...], Meta(max_length=4)] = ()
    connections: Annotated[tuple[Connection, ...], Meta(max_length=MAX_MEMBERS), list_map("peerNodeId")] = ()


class ReplicaDrbd(Struct):
    """Intended, realised, observed, failed."""

    config: DrbdConfig = DrbdConfig()
    actual: DrbdActual = DrbdActual()
    status: DrbdStatus | None = None
    errors: DrbdErrors = DrbdErrors()
