"""``drbdsetup status --json``, read leniently: unknown fields are ignored, missing ones have their defaults.

What is there must be of the right type and within the schema's bounds; otherwise the whole output is unreadable, since
half a report is worse than an error. ``paths`` and ``tls`` come only from newer tools.

The shapes below are the tool's, with its spelling; the API's types, which they are then converted to, have the bounds.
Both steps are msgspec's, in C: 500 resources take about four milliseconds.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta, field

from quorate.api.storage.drbd import DrbdStatus
from quorate.drbd.errors import UnreadableOutput

# Bounds that the API leaves open.
Name = Annotated[str, Meta(max_length=253)]
Number = Annotated[int, Meta(ge=0, le=2**31 - 1)]


class _Wire(msgspec.Struct, gc=False, rename="kebab"):
    """The tool's spelling."""


class _Host(_Wire):
    address: Name = ""
    port: Number = 0
    family: str = ""


class _Path(_Wire):
    this_host: _Host = field(default_factory=_Host, name="this_host")
    remote_host: _Host = field(default_factory=_Host, name="remote_host")
    established: bool = False


class _PeerDevice(_Wire):
    volume: Number = 0
    replication_state: str = ""
    peer_disk_state: str = ""
    peer_client: bool = False
    resync_suspended: str = ""
    out_of_sync: int = 0
    pending: int = 0
    unacked: int = 0
    has_sync_details: bool = False
    has_online_verify_details: bool = False
    exact_percentage: Annotated[float, Meta(ge=0, le=100)] = field(default=0.0, name="percent-in-sync")

    @property
    def percent_in_sync(self) -> int:
        """Rounded down: a sync that is nearly done is not done."""
        return int(self.exact_percentage)


class _Connection(_Wire):
    peer_node_id: int
    name: Name = ""
    connection_state: str = ""
    congested: bool = False
    peer_role: str = ""
    tls: bool = False
    ap_in_flight: int = 0
    rs_in_flight: int = 0
    paths: tuple[_Path, ...] = ()
    peer_devices: tuple[_PeerDevice, ...] = field(default=(), name="peer_devices")


class _Device(_Wire):
    volume: Number = 0
    minor: Number = 0
    disk_state: str = ""
    client: bool = False
    open: bool = False
    quorum: bool = False
    size: int = 0
    read: int = 0
    written: int = 0
    al_writes: int = 0
    bm_writes: int = 0
    upper_pending: int = 0
    lower_pending: int = 0


class _Resource(_Wire):
    name: Name
    node_id: Number = 0
    role: str = ""
    suspended: bool = False
    suspended_user: bool = False
    suspended_no_data: bool = False
    suspended_fencing: bool = False
    suspended_quorum: bool = False
    force_io_failures: bool = False
    write_ordering: str = ""
    devices: tuple[_Device, ...] = ()
    connections: tuple[_Connection, ...] = ()


_DECODER = msgspec.json.Decoder(tuple[_Resource, ...])


def parse_status(output: str | bytes) -> tuple[DrbdStatus, ...]:
    """Every resource that the output names, in its order. Raises UnreadableOutput and nothing else."""
    try:
        statuses = msgspec.convert(_DECODER.decode(output), tuple[DrbdStatus, ...], from_attributes=True)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as problem:
        raise UnreadableOutput(f"drbdsetup status --json printed something else: {problem}") from problem
    for status in statuses:
        if len({connection.peer_node_id for connection in status.connections}) < len(status.connections):
            raise UnreadableOutput(f"drbdsetup status --json names a peer of {status.name} twice")
    return statuses
