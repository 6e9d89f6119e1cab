"""The quorum rule by itself: tables for what it says, properties for what can never happen."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from quorate.api.meta import NodeName
from quorate.api.scalars import ReplicaName
from quorate.api.storage.drbd import (
    Address,
    Connection,
    Device,
    DiskState,
    DrbdConfig,
    DrbdStatus,
    Peer,
    PeerDevice,
    ReplicaType,
)
from quorate.drbd.quorum import MemberView, PeerView, Setting, after_losing, verdict
from quorate.drbd.views import view_of


def diskful(node_id: int, *, disk_state: str = DiskState.UP_TO_DATE, hidden: bool = False) -> PeerView:
    return PeerView(node_id, diskful=True, connected=True, disk_state=disk_state, hidden=hidden, quorate=True)


def diskless(node_id: int, *, hidden: bool = False) -> PeerView:
    return PeerView(node_id, diskful=False, connected=True, disk_state=DiskState.DISKLESS, hidden=hidden)


def member(*peers: PeerView, redundancy: int = 1, quorum: Setting | int = Setting.MAJORITY) -> MemberView:
    return MemberView(0, True, DiskState.UP_TO_DATE, quorum, redundancy, peers, had_quorum=True)


def without_disk(*peers: PeerView) -> MemberView:
    return MemberView(0, False, DiskState.DISKLESS, 32, 1, peers, had_quorum=True)


@pytest.mark.parametrize(
    ("layout", "view", "lost", "kept"),
    [
        ("1D", member(), [], True),
        ("2D", member(diskful(1)), [1], False),
        ("2D+1TB", member(diskful(1), diskless(2)), [1], True),
        ("2D+1TB", member(diskful(1), diskless(2)), [2], True),
        ("2D+1TB", member(diskful(1), diskless(2)), [1, 2], False),
        ("2D+1TB, TB hidden", member(diskful(1), diskless(2, hidden=True)), [1], False),
        ("2D+1TB, numeric", member(diskful(1), diskless(2), quorum=2), [1], False),
        ("2D+1TB+A", member(diskful(1), diskless(2), diskless(3, hidden=True)), [1, 3], True),
        ("2D and a newcomer", member(diskful(1), diskful(2, hidden=True)), [2], True),
        ("2D and a newcomer", member(diskful(1), diskful(2, hidden=True)), [1], False),
        ("3D", member(diskful(1), diskful(2), redundancy=2), [1], True),
        ("3D", member(diskful(1), diskful(2), redundancy=2), [1, 2], False),
        ("3D, one behind", member(diskful(1, disk_state="Inconsistent"), diskful(2), redundancy=2), [1], True),
        ("3D, one behind", member(diskful(1, disk_state="Inconsistent"), diskful(2), redundancy=2), [2], False),
        ("4D+1TB", member(*map(diskful, (1, 2, 3)), diskless(4), redundancy=2), [1, 2], True),
        ("4D", member(*map(diskful, (1, 2, 3)), redundancy=2), [1, 2], False),
        ("TB of 2D", without_disk(diskful(1), diskful(2)), [1], True),
        ("TB of 2D", without_disk(diskful(1), diskful(2)), [1, 2], False),
    ],
)
def test_what_a_further_loss_does(layout: str, view: MemberView, lost: list[int], kept: bool) -> None:
    assert after_losing(view, lost).quorate is kept


def test_a_tie_is_not_broken_for_a_member_that_had_lost_quorum() -> None:
    alone_with_tie_breaker = member(replace(diskful(1), connected=False, disk_state="DUnknown"), diskless(2))
    assert verdict(alone_with_tie_breaker).by_tie_breaker
    said = verdict(replace(alone_with_tie_breaker, had_quorum=False))
    assert not said.quorate
    assert said.explanation == (
        "1 of 2 voters here, 2 needed; the tie is not broken for a member that had lost quorum before"
    )


@pytest.mark.parametrize(
    ("view", "explanation"),
    [
        (member(quorum=Setting.OFF), "quorum is off"),
        (member(diskful(1), diskful(2)), "3 of 3 voters here, 2 needed"),
        (without_disk(diskful(5)), "without a disk, and its UpToDate peer 5 has quorum"),
        (
            member(replace(diskful(1), connected=False, disk_state="DUnknown"), diskless(2)),
            "1 of 2 voters here, 2 needed; kept through 1 of 1 members without a disk",
        ),
        (
            member(diskful(1, disk_state="Inconsistent"), redundancy=2),
            "2 of 2 voters here, 2 needed; 1 of them up to date, 2 needed",
        ),
        (
            member(replace(diskful(1), connected=False, disk_state="DUnknown"), replace(diskless(2), connected=False)),
            "1 of 2 voters here, 2 needed; the tie is not broken: 0 of 1 members without a disk here",
        ),
        (member(quorum=32), "1 of 1 voters here; not counted yet, or no longer: it never has quorum by itself"),
    ],
)
def test_the_verdict_says_why(view: MemberView, explanation: str) -> None:
    assert verdict(view).explanation == explanation


def test_a_peer_that_was_never_met_has_no_vote() -> None:
    newcomer = PeerView(1, diskful=True, connected=False, remembered=False)
    assert verdict(member(newcomer)).voters == 1
    assert verdict(member(replace(newcomer, remembered=True))).voters == 2


def test_absent_peers_known_to_be_outdated_have_no_vote() -> None:
    outdated = replace(diskful(1), connected=False, disk_state=DiskState.OUTDATED)
    assert verdict(member(outdated)).voters == 1


def test_those_that_left_are_feared_again_when_the_absent_could_be_a_quorum() -> None:
    gone = replace(diskful(1), connected=False, disk_state=DiskState.UNKNOWN, departed=True)
    just_lost = replace(diskful(2), connected=False, disk_state=DiskState.UNKNOWN)
    assert verdict(member(gone, diskful(2))).voters == 2
    assert verdict(member(gone, just_lost)).voters == 3
    assert verdict(member(gone, replace(just_lost, departed=True))).voters == 3


def test_a_member_that_lost_its_disk_is_not_counted_as_being_without_one_on_purpose() -> None:
    sceptical = replace(diskful(1), quorate=False)
    lost_disk = MemberView(0, True, DiskState.DISKLESS, Setting.MAJORITY, 1, (sceptical,), had_quorum=True)
    said = verdict(lost_disk)
    assert (said.quorate, said.voters, said.present) == (False, 2, 1)


@pytest.mark.parametrize(
    ("peer", "quorate"),
    [
        (diskful(1), True),
        (replace(diskful(1), quorate=False), False),
        (replace(diskful(1), connected=False), False),
        (diskful(1, disk_state=DiskState.CONSISTENT), False),
        (diskful(1, hidden=True), False),
    ],
)
def test_without_a_disk_quorum_comes_from_a_connected_up_to_date_peer_that_has_it(
    peer: PeerView, quorate: bool
) -> None:
    assert verdict(without_disk(peer)).quorate is quorate


# Properties: D diskful members, an optional shown tie-breaker, everybody up to date and quorate; then a partition.


def seen_by(node_id: int, diskful_count: int, tie_breaker: bool, redundancy: int) -> MemberView:
    members = [diskful(other) for other in range(diskful_count)]
    members += [diskless(diskful_count)] if tie_breaker else []
    peers = tuple(peer for peer in members if peer.node_id != node_id)
    return replace(member(*peers, redundancy=redundancy), node_id=node_id)


@pytest.mark.parametrize("tie_breaker", [False, True])
@pytest.mark.parametrize("diskful_count", range(1, 8))
def test_at_most_one_side_of_any_partition_is_quorate(diskful_count: int, tie_breaker: bool) -> None:
    everybody = range(diskful_count + tie_breaker)
    for size in range(1, len(everybody)):
        for side in map(set, combinations(everybody, size)):
            other = set(everybody) - side
            quorate = [
                any(
                    after_losing(seen_by(node_id, diskful_count, tie_breaker, 1), away).quorate
                    for node_id in here
                    if node_id < diskful_count
                )
                for here, away in ((side, other), (other, side))
            ]
            assert not all(quorate), (side, other)


@pytest.mark.parametrize("diskful_count", range(1, 8))
def test_losing_more_never_gives_quorum_back(diskful_count: int) -> None:
    view = seen_by(0, diskful_count, tie_breaker=diskful_count % 2 == 0, redundancy=1)
    others = [peer.node_id for peer in view.peers]
    for size in range(len(others)):
        for lost in combinations(others, size):
            if not after_losing(view, lost).quorate:
                assert not any(after_losing(view, {*lost, one_more}).quorate for one_more in others)


peer_views = st.builds(
    PeerView,
    node_id=st.integers(0, 7),
    diskful=st.booleans(),
    connected=st.booleans(),
    disk_state=st.sampled_from([*DiskState, "Newfangled"]),
    hidden=st.booleans(),
    remembered=st.booleans(),
    departed=st.booleans(),
    quorate=st.booleans(),
)
member_views = st.builds(
    MemberView,
    node_id=st.integers(0, 7),
    diskful=st.booleans(),
    disk_state=st.sampled_from([*DiskState, "Newfangled"]),
    quorum=st.one_of(st.sampled_from(Setting), st.integers(1, 32)),
    minimum_redundancy=st.integers(0, 8),
    peers=st.lists(peer_views, max_size=7).map(tuple),
    had_quorum=st.booleans(),
)


@given(member_views)
def test_hidden_peers_make_no_difference(view: MemberView) -> None:
    shown = tuple(peer for peer in view.peers if not peer.hidden)
    assert verdict(view) == verdict(replace(view, peers=shown))


@given(member_views)
def test_a_member_with_a_disk_never_relies_on_a_peers_quorum(view: MemberView) -> None:
    with_disk = replace(view, disk_state=DiskState.OUTDATED)
    sceptical = tuple(replace(peer, quorate=False) for peer in view.peers)
    assert verdict(with_disk) == verdict(replace(with_disk, peers=sceptical))


@given(member_views)
def test_having_had_quorum_never_hurts_under_majority(view: MemberView) -> None:
    view = replace(view, quorum=Setting.MAJORITY)
    if verdict(replace(view, had_quorum=False)).quorate:
        assert verdict(replace(view, had_quorum=True)).quorate


# Building a view.


def config(**changes: object) -> DrbdConfig:
    kinds = {1: ReplicaType.DISKFUL, 2: ReplicaType.TIE_BREAKER}
    peers = tuple(
        Peer(
            name=ReplicaName(f"pvc-1-{node_id}"),
            node_name=NodeName(f"n{node_id}"),
            node_id=node_id,
            type=kind,
            address=Address(ipv4="10.0.0.1", port=7000),
        )
        for node_id, kind in kinds.items()
    )
    given_fields = {"node_id": 0, "type": ReplicaType.DISKFUL, "peers": peers, "quorum_minimum_redundancy": 1}
    return DrbdConfig(**{**given_fields, **changes})  # type: ignore[arg-type]


def report(node_id: int, disk_state: str, links: dict[int, str], *, quorum: bool = True) -> DrbdStatus:
    """A member's own, with the disk states of those it is connected to."""
    return DrbdStatus(
        name="pvc-1",
        node_id=node_id,
        devices=(Device(disk_state=disk_state, quorum=quorum),),
        connections=tuple(
            Connection(
                peer_node_id=peer,
                connection_state="Connected" if peer_disk_state != "DUnknown" else "Connecting",
                peer_devices=(
                    PeerDevice(
                        replication_state="Established" if peer_disk_state != "DUnknown" else "Off",
                        peer_disk_state=peer_disk_state,
                    ),
                ),
            )
            for peer, peer_disk_state in links.items()
        ),
    )


def test_a_view_is_what_config_and_status_say() -> None:
    view = view_of(config(), report(0, "UpToDate", {1: "UpToDate", 2: "Diskless"}), had_quorum=True)
    assert view == MemberView(
        node_id=0,
        diskful=True,
        disk_state="UpToDate",
        quorum=Setting.MAJORITY,
        minimum_redundancy=1,
        peers=(replace(diskful(1), quorate=False), diskless(2)),
        had_quorum=True,
    )


def test_one_without_a_disk_relies_on_what_its_peers_report_of_themselves() -> None:
    own = report(2, "Diskless", {1: "UpToDate"})
    diskless_config = config(node_id=2, type=ReplicaType.ACCESS)
    for quorum in (True, False):
        reports = {1: report(1, "UpToDate", {2: "Diskless"}, quorum=quorum)}
        assert verdict(view_of(diskless_config, own, had_quorum=True, reports=reports)).quorate is quorum
    assert not verdict(view_of(diskless_config, own, had_quorum=True)).quorate


def test_who_is_reachable_through_another_has_not_departed() -> None:
    own = report(0, "UpToDate", {1: "DUnknown", 2: "Diskless"})
    through = {2: report(2, "Diskless", {0: "UpToDate", 1: "UpToDate"})}
    assert [peer.departed for peer in view_of(config(), own, had_quorum=True, reports=through).peers] == [False, False]
    assert [peer.departed for peer in view_of(config(), own, had_quorum=True).peers] == [True, False]


@given(st.lists(st.sampled_from(("UpToDate", "Diskless", "DUnknown")), min_size=6, max_size=6))
def test_a_members_own_report_among_the_others_changes_nothing(seen: list[str]) -> None:
    """Whoever asks about all members gives each the same reports."""
    others = ((1, 2), (0, 2), (0, 1))
    reports = {
        node_id: report(node_id, "UpToDate", dict(zip(others[node_id], seen[2 * node_id :], strict=False)))
        for node_id in range(3)
    }
    without = {node_id: found for node_id, found in reports.items() if node_id != 0}
    own = view_of(config(), reports[0], had_quorum=True, reports=reports)
    assert own == view_of(config(), reports[0], had_quorum=True, reports=without)


def test_whom_the_metadata_remembers_is_counted_whatever_the_files_say() -> None:
    alone = report(0, "UpToDate", {})
    remembering = view_of(config(peers=()), alone, had_quorum=False, remembered={5})
    assert verdict(remembering).voters == 2
    assert verdict(view_of(config(peers=()), alone, had_quorum=False)).voters == 1


def test_a_member_that_is_only_heard_of_spoils_the_tie_breaker() -> None:
    own = report(0, "UpToDate", {1: "UpToDate", 2: "Diskless"})
    assert after_losing(view_of(config(), own, had_quorum=True), [1]).quorate
    assert not after_losing(view_of(config(), own, had_quorum=True, heard_of={3}), [1]).quorate
