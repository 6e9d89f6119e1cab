"""Bits that are set while all is well: a peer that is UpToDate and Established, and lacks something all the same.

When a primary has lost quorum and gets it back, a write that was blocked can be acknowledged without the peer that came
second (``facts/drbd9-races``, E2). What is left of it is a mark (``out-of-sync``), shown by any of the members, between
two that are UpToDate and Established. The next meeting of the two erases it without a copy, because their generations
are equal. So whoever wants to part members, even for a moment, asks here first.

The counter may be nonsense: it has been seen to run below nothing (F5), and is printed as a huge number then. More than
the device has is never meant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from quorate.api.storage.drbd import (
    Connection,
    ConnectionState,
    DiskState,
    DrbdConfig,
    DrbdStatus,
    PeerDevice,
    ReplicationState,
)

_PARTING: Final = frozenset({"down", "disconnect", "del-peer"})
_TOOLS: Final = frozenset({"drbdadm", "drbdsetup"})


@dataclass(frozen=True, slots=True)
class LinkRules:
    """What a config says of links: another member may be the one that shows marks, or they may mean nothing."""

    keep_links: bool = False
    compared: frozenset[int] = frozenset()

    @classmethod
    def of(cls, config: DrbdConfig) -> LinkRules:
        """What a config says."""
        return cls(config.keep_links, frozenset(config.compared))


_NO_RULES: Final = LinkRules()


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


def kept_links(status: DrbdStatus | None, rules: LinkRules = _NO_RULES) -> frozenset[int]:
    """The peers, by node id, from whom nobody may part this member: what is marked between good copies would go.

    A copy that is not good has nothing to forget: whoever meets it anew copies by its bits.
    """
    if status is None or not status.devices or status.devices[0].disk_state != DiskState.UP_TO_DATE:
        return frozenset()
    if not rules.keep_links and rules.compared.issuperset(marked_peers(status)):
        return frozenset()
    return frozenset(
        link.peer_node_id
        for link in status.connections
        if link.connection_state == ConnectionState.CONNECTED
        and any(device.peer_disk_state == DiskState.UP_TO_DATE for device in link.peer_devices)
    )


def would_part(argv: Sequence[str], status: DrbdStatus | None, rules: LinkRules = _NO_RULES) -> bool:
    """Whether a command would part members that must not be.

    ``adjust`` makes links anew whose options have changed. It may run while some link is down: it is what brings that
    back, and without it nothing would ever be compared.
    """
    kept = kept_links(status, rules)
    if status is None or not kept or not argv or argv[0] not in _TOOLS:
        return False
    words = argv[1:]
    if "adjust" in words:
        return all(link.connection_state == ConnectionState.CONNECTED for link in status.connections)
    if not _PARTING.isdisjoint(words):
        return "down" in words or not kept.isdisjoint(int(word) for word in words if word.isdecimal())
    return False
