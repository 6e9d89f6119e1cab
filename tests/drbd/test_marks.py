"""Bits between members that are both good."""

from __future__ import annotations

import pytest

from quorate.api.storage.drbd import Connection, Device, DrbdStatus, PeerDevice
from quorate.api.struct import replace
from quorate.drbd.marks import LinkRules, kept_links, marked_peers, would_part


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


@pytest.mark.parametrize(("marks", "told", "kept"), [(0, False, set()), (4, False, {2}), (0, True, {2})])
def test_links_of_good_copies_are_kept_while_somebody_shows_bits(marks: int, told: bool, kept: set[int]) -> None:
    assert kept_links(shown(marks), LinkRules(keep_links=told)) == kept


def test_bits_that_were_compared_keep_no_link() -> None:
    assert kept_links(shown(4), LinkRules(compared=frozenset({2}))) == frozenset()
    assert kept_links(shown(4), LinkRules(keep_links=True, compared=frozenset({2}))) == {2}


@pytest.mark.parametrize("state", [{"disk": "Outdated"}, {"peer": "Inconsistent"}, {"link": "Connecting"}])
def test_who_has_no_good_copy_to_lose_may_be_met_anew(state: dict[str, str]) -> None:
    assert kept_links(shown(0, **state), LinkRules(keep_links=True)) == frozenset()


FILE = ("drbdadm", "-c", "/etc/drbd.d/pvc-1.res")


@pytest.mark.parametrize(
    ("argv", "parts"),
    [
        ((*FILE, "adjust", "pvc-1"), True),
        ((*FILE, "adjust", "--skip-disk", "pvc-1"), True),
        (("drbdsetup", "disconnect", "pvc-1", "2", "--force"), True),
        (("drbdsetup", "disconnect", "pvc-1", "1"), False),
        (("drbdsetup", "down", "pvc-1"), True),
        ((*FILE, "primary", "pvc-1"), False),
        (("drbdsetup", "verify", "pvc-1", "2", "0"), False),
        (("drbdsetup", "invalidate-remote", "pvc-1", "2", "0", "--reset-bitmap=no"), False),
        (("lvremove", "down"), False),
    ],
)
def test_only_what_parts_good_copies_is_forbidden(argv: tuple[str, ...], parts: bool) -> None:
    assert would_part(argv, shown(4)) is parts
    assert not would_part(argv, shown(0))
    assert not would_part(argv, None, LinkRules(keep_links=True))


def test_a_link_that_is_down_is_brought_back_in_spite_of_bits() -> None:
    status = shown(4)
    alone = Connection(peer_node_id=1, connection_state="StandAlone")
    assert not would_part((*FILE, "adjust", "pvc-1"), replace(status, connections=(*status.connections, alone)))
