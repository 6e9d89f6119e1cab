"""Bits between members that are both good."""

from __future__ import annotations

from typing import Any

import pytest

from quorate.api.storage.drbd import Connection, Device, DrbdStatus, PeerDevice
from quorate.drbd.marks import marked_peers, marks_forbid_parting, parts_members


def shown(
    marks: int,
    *,
    disk: str = "UpToDate",
    peer: str = "UpToDate",
    link: str = "Connected",
    flow: str = "Established",
) -> DrbdStatus:
    """One member of 32 MiB, with one peer."""
    theirs = PeerDevice(replication_state=flow, peer_disk_state=peer, out_of_sync=marks)
    return DrbdStatus(
        name="pvc-1",
        devices=(Device(disk_state=disk, size=32768),),
        connections=(Connection(peer_node_id=2, connection_state=link, peer_devices=(theirs,)),),
    )


@pytest.mark.parametrize(
    ("status", "marks"),
    [
        (shown(4), {2: 4}),
        (shown(0), {}),
        # What is being copied, or will be when the link is back, is what bits are for.
        (shown(4, flow="SyncSource"), {}),
        (shown(4, flow="VerifyS"), {}),
        (shown(4, link="Connecting", flow="Off", peer="DUnknown"), {}),
        (shown(4, peer="Outdated"), {}),
        (shown(4, disk="Inconsistent"), {}),
        # A counter that ran below nothing (F5).
        (shown(2**63 - 1), {2: 32768}),
        (None, {}),
    ],
)
def test_bits_count_only_between_members_that_are_both_good(status: DrbdStatus | None, marks: dict[int, int]) -> None:
    assert marked_peers(status) == marks


@pytest.mark.parametrize(("marks", "told", "forbidden"), [(0, False, False), (4, False, True), (0, True, True)])
def test_no_link_is_touched_while_somebody_shows_bits(marks: int, told: bool, forbidden: bool) -> None:
    assert marks_forbid_parting(shown(marks), keep_links=told) is forbidden


@pytest.mark.parametrize(
    ("argv", "parts"),
    [
        (("drbdadm", "-c", "/etc/drbd.d/pvc-1.res", "adjust", "pvc-1"), True),
        (("drbdadm", "-c", "/etc/drbd.d/pvc-1.res", "adjust", "--skip-disk", "pvc-1"), True),
        (("drbdadm", "-c", "/etc/drbd.d/pvc-1.res", "up", "pvc-1"), True),
        (("drbdsetup", "disconnect", "pvc-1", "1"), True),
        (("drbdsetup", "down", "pvc-1"), True),
        (("drbdadm", "-c", "/etc/drbd.d/pvc-1.res", "primary", "pvc-1"), False),
        (("drbdsetup", "verify", "pvc-1", "1", "0"), False),
        (("drbdsetup", "invalidate-remote", "pvc-1", "1", "0", "--reset-bitmap=no"), False),
        (("lvcreate", "up"), False),
    ],
)
def test_what_makes_or_breaks_links_is_known(argv: tuple[str, ...], parts: Any) -> None:
    assert parts_members(argv) is parts
