"""``drbdsetup status --json``, read leniently: unknown fields are ignored, missing ones have their defaults.

What is there must be of the right type and within the schema's bounds; otherwise the whole output is unreadable, since
half a report is worse than an error. ``paths`` and ``tls`` come only from newer tools.

The shapes below are the tool's, with its spelling; decoding into them is msgspec's, in C. 500 resources take about
five milliseconds, and an agent reads them all whenever it starts.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta, field

from quorate.api.scalars import MAX_MEMBERS, Count, NodeId
from quorate.api.storage.drbd import Connection, Device, DrbdStatus, Host, Path, PeerDevice, State
from quorate.drbd.errors import UnreadableOutput

Text = Annotated[str, Meta(max_length=253)]
Small = Annotated[int, Meta(ge=0, le=2**31 - 1)]
InSync = Annotated[float, Meta(ge=0, le=100)]


class _Wire(msgspec.Struct, gc=False, rename="kebab"):
    """The tool's spelling."""


class _Host(_Wire):
    address: Text = ""
    port: Annotated[int, Meta(ge=0, le=65535)] = 0
    family: State = ""


class _Path(_Wire):
    this_host: _Host = field(default_factory=_Host, name="this_host")
    remote_host: _Host = field(default_factory=_Host, name="remote_host")
    established: bool = False


class _PeerDevice(_Wire):
    volume: Small = 0
    replication_state: State = ""
    peer_disk_state: State = ""
    peer_client: bool = False
    resync_suspended: Annotated[str, Meta(max_length=64)] = ""
    out_of_sync: Count = 0
    pending: Count = 0
    unacked: Count = 0
    has_sync_details: bool = False
    has_online_verify_details: bool = False
    percent_in_sync: InSync = 0.0


class _Connection(_Wire):
    peer_node_id: NodeId
    name: Text = ""
    connection_state: State = ""
    congested: bool = False
    peer_role: State = ""
    tls: bool = False
    ap_in_flight: Count = 0
    rs_in_flight: Count = 0
    paths: Annotated[tuple[_Path, ...], Meta(max_length=16)] = ()
    peer_devices: Annotated[tuple[_PeerDevice, ...], Meta(max_length=4)] = field(default=(), name="peer_devices")


class _Device(_Wire):
    volume: Small = 0
    minor: Small = 0
    disk_state: State = ""
    client: bool = False
    open: bool = False
    quorum: bool = False
    size: Count = 0
    read: Count = 0
    written: Count = 0
    al_writes: Count = 0
    bm_writes: Count = 0
    upper_pending: Count = 0
    lower_pending: Count = 0


class _Resource(_Wire):
    name: Text
    node_id: Annotated[int, Meta(ge=0, le=31)] = 0
    role: State = ""
    suspended: bool = False
    suspended_user: bool = False
    suspended_no_data: bool = False
    suspended_fencing: bool = False
    suspended_quorum: bool = False
    force_io_failures: bool = False
    write_ordering: State = ""
    devices: Annotated[tuple[_Device, ...], Meta(max_length=4)] = ()
    connections: Annotated[tuple[_Connection, ...], Meta(max_length=MAX_MEMBERS)] = ()


_DECODER = msgspec.json.Decoder(tuple[_Resource, ...])


def parse_status(output: str | bytes) -> tuple[DrbdStatus, ...]:
    """Every resource that the output names, in its order. Raises UnreadableOutput and nothing else."""
    try:
        resources = _DECODER.decode(output)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as problem:
        raise UnreadableOutput(f"drbdsetup status --json printed something else: {problem}") from problem
    return tuple(map(_status, resources))


def _status(found: _Resource) -> DrbdStatus:
    if len({connection.peer_node_id for connection in found.connections}) < len(found.connections):
        raise UnreadableOutput(f"drbdsetup status --json names a peer of {found.name} twice")
    return DrbdStatus(
        name=found.name,
        node_id=found.node_id,
        role=found.role,
        suspended=found.suspended,
        suspended_user=found.suspended_user,
        suspended_no_data=found.suspended_no_data,
        suspended_fencing=found.suspended_fencing,
        suspended_quorum=found.suspended_quorum,
        force_io_failures=found.force_io_failures,
        write_ordering=found.write_ordering,
        devices=tuple([_device(device) for device in found.devices]),
        connections=tuple([_connection(connection) for connection in found.connections]),
    )


def _device(found: _Device) -> Device:
    return Device(
        volume=found.volume,
        minor=found.minor,
        disk_state=found.disk_state,
        client=found.client,
        open=found.open,
        quorum=found.quorum,
        size=found.size,
        read=found.read,
        written=found.written,
        al_writes=found.al_writes,
        bm_writes=found.bm_writes,
        upper_pending=found.upper_pending,
        lower_pending=found.lower_pending,
    )


def _connection(found: _Connection) -> Connection:
    return Connection(
        peer_node_id=found.peer_node_id,
        name=found.name,
        connection_state=found.connection_state,
        congested=found.congested,
        peer_role=found.peer_role,
        tls=found.tls,
        ap_in_flight=found.ap_in_flight,
        rs_in_flight=found.rs_in_flight,
        paths=tuple([_path(path) for path in found.paths]),
        peer_devices=tuple([_peer_device(device) for device in found.peer_devices]),
    )


def _peer_device(found: _PeerDevice) -> PeerDevice:
    return PeerDevice(
        volume=found.volume,
        replication_state=found.replication_state,
        peer_disk_state=found.peer_disk_state,
        peer_client=found.peer_client,
        resync_suspended=found.resync_suspended,
        out_of_sync=found.out_of_sync,
        pending=found.pending,
        unacked=found.unacked,
        has_sync_details=found.has_sync_details,
        has_online_verify_details=found.has_online_verify_details,
        percent_in_sync=int(found.percent_in_sync),
    )


def _path(found: _Path) -> Path:
    return Path(this_host=_host(found.this_host), remote_host=_host(found.remote_host), established=found.established)


def _host(found: _Host) -> Host:
    return Host(address=found.address, port=found.port, family=found.family)
