"""``drbdsetup status --json``, read leniently: unknown fields are ignored, missing ones have their defaults.

What is there must be of the right type, and say of whom it speaks within the schema's bounds; otherwise the output is
unreadable, since half a report is worse than an error. Other numbers and words are put within bounds: the tool prints
differences that can be less than nothing, newer kernels may have longer words, and a resource that nobody can look at
for such a thing is worse still. ``paths`` and ``tls`` come only from newer tools.

The shapes below are the tool's, with its spelling; the API's types, which they are then converted to, have the bounds.
Both steps are msgspec's, in C: 500 resources take about four milliseconds.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta, field

from quorate.api.storage.drbd import DrbdStatus
from quorate.drbd.errors import UnreadableOutput

# Bounds that the API leaves open.
Name = Annotated[str, Meta(max_length=253)]
Number = Annotated[int, Meta(ge=0, le=2**31 - 1)]

#: By these a resource, a peer or a device is known.
_SAYS_WHO = frozenset({"name", "node-id", "peer-node-id", "volume", "minor", "address", "port"})
_LARGEST = 2**63 - 1
_LONGEST = 32
Counter = Annotated[int, Meta(ge=0, le=_LARGEST)]


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
    out_of_sync: Counter = 0
    pending: Counter = 0
    unacked: Counter = 0
    has_sync_details: bool = False
    has_online_verify_details: bool = False
    exact_percentage: float = field(default=0.0, name="percent-in-sync")

    @property
    def percent_in_sync(self) -> int:
        """Rounded down: a sync that is nearly done is not done. Bits set meanwhile can make it less than nothing."""
        return int(min(100.0, max(0.0, self.exact_percentage)))


class _Connection(_Wire):
    peer_node_id: int
    name: Name = ""
    connection_state: str = ""
    congested: bool = False
    peer_role: str = ""
    tls: bool = False
    ap_in_flight: Counter = 0
    rs_in_flight: Counter = 0
    paths: tuple[_Path, ...] = ()
    peer_devices: tuple[_PeerDevice, ...] = field(default=(), name="peer_devices")


class _Device(_Wire):
    volume: Number = 0
    minor: Number = 0
    disk_state: str = ""
    client: bool = False
    open: bool = False
    quorum: bool = False
    size: Counter = 0
    read: Counter = 0
    written: Counter = 0
    al_writes: Counter = 0
    bm_writes: Counter = 0
    upper_pending: Counter = 0
    lower_pending: Counter = 0


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
        statuses = _read(output)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as problem:
        raise UnreadableOutput(f"drbdsetup status --json printed something else: {problem}") from problem
    for status in statuses:
        if len({connection.peer_node_id for connection in status.connections}) < len(status.connections):
            raise UnreadableOutput(f"drbdsetup status --json names a peer of {status.name} twice")
    return statuses


def _read(output: str | bytes) -> tuple[DrbdStatus, ...]:
    try:
        return _converted(_DECODER.decode(output))
    except msgspec.ValidationError:
        return _converted(msgspec.convert(_bounded(msgspec.json.decode(output)), tuple[_Resource, ...]))


def _converted(found: tuple[_Resource, ...]) -> tuple[DrbdStatus, ...]:
    return msgspec.convert(found, tuple[DrbdStatus, ...], from_attributes=True)


def _bounded(found: Any) -> Any:
    """What counts, or only describes, put within bounds."""
    if isinstance(found, list):
        return [_bounded(each) for each in found]
    if isinstance(found, dict):
        return {name: value if name in _SAYS_WHO else _bounded(value) for name, value in found.items()}
    if isinstance(found, int) and not isinstance(found, bool):
        return min(_LARGEST, max(0, found))
    return found[:_LONGEST] if isinstance(found, str) else found
