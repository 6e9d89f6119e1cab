"""Bits that are set while all is well: a peer that is UpToDate and Established, and lacks something all the same.

When a primary has lost quorum and gets it back, a write that was blocked can be acknowledged without the peer that came
second (``facts/drbd9-races``, E2). What is left of it is a mark (``out-of-sync``), shown by any of the members, between
two that are UpToDate and Established. The next meeting of the two erases it without a copy, because their generations
are equal. So whoever wants to part members asks here first.

The counter may be nonsense: it has been seen to run below nothing (F5), and is printed as a huge number then. More than
the device has is never meant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from quorate.api.storage.drbd import Connection, ConnectionState, DiskState, DrbdStatus, PeerDevice, ReplicationState

#: What makes or breaks links, of either tool. ``adjust`` is among them: it makes a link anew whose options changed.
_PARTING: Final = frozenset({"up", "adjust", "down", "connect", "disconnect", "del-peer", "new-peer"})
_TOOLS: Final = frozenset({"drbdadm", "drbdsetup"})


def amount(device: PeerDevice, size: int) -> int:
    """How much is marked against a peer, in KiB: never less than nothing, nor more than a device of ``size`` KiB."""
    return max(0, min(device.out_of_sync, size) if size else device.out_of_sync)


def is_marked(status: DrbdStatus, link: Connection, device: PeerDevice) -> bool:
    """Whether a peer that is as good as this member lacks something, by this member's bits."""
    return (
        device.out_of_sync > 0
        and bool(status.devices)
        and status.devices[0].disk_state == DiskState.UP_TO_DATE
        and link.connection_state == ConnectionState.CONNECTED
        and device.replication_state == ReplicationState.ESTABLISHED
        and device.peer_disk_state == DiskState.UP_TO_DATE
    )


def marked_peers(status: DrbdStatus | None) -> Mapping[int, int]:
    """By node id, whom this member's bits are against although all is well, and how much in KiB."""
    if status is None:
        return {}
    size = status.devices[0].size if status.devices else 0
    return {
        link.peer_node_id: amount(device, size)
        for link in status.connections
        for device in link.peer_devices
        if is_marked(status, link, device)
    }


def marks_forbid_parting(status: DrbdStatus | None, *, keep_links: bool = False) -> bool:
    """Whether no link of this resource may be made or broken by us: what is marked would be forgotten.

    ``keep_links``: what the config says, since another member may be the one that shows the marks.
    """
    return keep_links or bool(marked_peers(status))


def parts_members(argv: Sequence[str]) -> bool:
    """Whether a command makes or breaks links."""
    return bool(argv) and argv[0] in _TOOLS and not _PARTING.isdisjoint(argv[1:])
