"""The arithmetic of replication levels, held to the kernel's quorum rule."""

from __future__ import annotations

from itertools import combinations, permutations

import pytest
from msgspec.structs import replace

from quorate.api.storage.configuration import Configuration, Replication, Topology, VolumeAccess
from quorate.api.storage.drbd import DiskState
from quorate.drbd.quorum import MemberView, PeerView, Setting, Verdict, after_losing, verdict
from quorate.placement.layout import LEVELS, Layout, layout_of, text

#: Every promise that the schema allows and that can be kept.
LAYOUTS = [Layout(ftt, gmdr) for ftt in range(3) for gmdr in range(3) if ftt <= gmdr + 1]


def seen_by(layout: Layout, member: int) -> MemberView:
    """What one member of a whole and healthy volume sees; the tie-breaker has the last id."""
    others = tuple(
        PeerView(
            other,
            diskful=other < layout.diskful,
            connected=True,
            disk_state=DiskState.UP_TO_DATE if other < layout.diskful else DiskState.DISKLESS,
            quorate=True,
        )
        for other in range(layout.members)
        if other != member and (member < layout.diskful or other < layout.diskful)
    )
    diskful = member < layout.diskful
    return MemberView(
        member,
        diskful,
        DiskState.UP_TO_DATE if diskful else DiskState.DISKLESS,
        Setting.MAJORITY if diskful else 32,
        layout.minimum_redundancy,
        others,
        had_quorum=True,
    )


def left_after(layout: Layout, lost: tuple[int, ...]) -> dict[int, Verdict]:
    """The verdict of every voter that is left when these are lost at once."""
    return {
        member: after_losing(seen_by(layout, member), lost) for member in range(layout.diskful) if member not in lost
    }


def subsets(layout: Layout, size: int) -> list[tuple[int, ...]]:
    return list(combinations(range(layout.members), size))


@pytest.mark.parametrize(
    ("replication", "written", "diskful", "tie_breakers", "majority", "redundancy", "nodes"),
    [
        (Replication.NONE, "1D", 1, 0, 1, 1, 1),
        (Replication.AVAILABILITY, "2D+1TB", 2, 1, 2, 1, 3),
        (Replication.CONSISTENCY, "2D", 2, 0, 2, 2, 2),
        (Replication.CONSISTENCY_AND_AVAILABILITY, "3D", 3, 0, 2, 2, 3),
    ],
)
def test_the_named_levels_have_the_layout_of_the_table(
    replication: Replication, written: str, diskful: int, tie_breakers: int, majority: int, redundancy: int, nodes: int
) -> None:
    """M4: voters are the diskful ones alone, and qmr follows the promise instead of the number of copies."""
    layout = LEVELS[replication]
    assert str(layout) == written
    assert (layout.diskful, layout.tie_breakers, layout.members) == (diskful, tie_breakers, nodes)
    assert (layout.majority, layout.minimum_redundancy) == (majority, redundancy)


def test_every_level_of_the_wire_has_a_layout() -> None:
    assert set(LEVELS) == set(Replication)


@pytest.mark.parametrize(
    ("ftt", "gmdr", "written", "majority"),
    [(2, 1, "4D+1TB", 3), (1, 2, "4D", 3), (2, 2, "5D", 3), (0, 2, "3D", 2), (3, 3, "7D", 4)],
)
def test_further_levels_follow_from_the_same_formula(ftt: int, gmdr: int, written: str, majority: int) -> None:
    layout = Layout(ftt, gmdr)
    assert (str(layout), layout.majority, layout.minimum_redundancy) == (written, majority, gmdr + 1)


@pytest.mark.parametrize(
    ("ftt", "gmdr", "why"),
    [(2, 0, "a minority cannot have quorum"), (-1, 0, "below zero"), (0, -1, "below zero"), (4, 4, "room for 8")],
)
def test_a_promise_that_no_layout_keeps_is_refused(ftt: int, gmdr: int, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Layout(ftt, gmdr)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_whichever_ftt_members_are_lost_at_once_the_rest_is_quorate(layout: Layout) -> None:
    """M4, M25: with the seed's numbers, one loss of 2D+1TB would stop I/O."""
    for lost in subsets(layout, layout.failures_to_tolerate):
        after = left_after(layout, lost)
        assert after
        assert all(said.quorate for said in after.values()), (lost, after)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_whichever_ftt_members_are_lost_one_by_one_in_any_order_the_rest_is_quorate(layout: Layout) -> None:
    for lost in permutations(range(layout.members), layout.failures_to_tolerate):
        for member in set(range(layout.diskful)) - set(lost):
            view = seen_by(layout, member)
            for number in range(len(lost)):
                said = after_losing(_without(view, lost[:number]), lost[number : number + 1])
                assert said.quorate, (lost[: number + 1], member, said)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_no_side_of_a_partition_is_quorate_with_fewer_copies_than_promised(layout: Layout) -> None:
    for size in range(layout.members + 1):
        for lost in subsets(layout, size):
            copies = sum(member not in lost for member in range(layout.diskful))
            if any(said.quorate for said in left_after(layout, lost).values()):
                assert copies >= layout.data_redundancy + 1, lost


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_at_most_one_side_of_a_partition_is_quorate(layout: Layout) -> None:
    everybody = set(range(layout.members))
    for size in range(layout.members + 1):
        for lost in subsets(layout, size):
            others = tuple(everybody - set(lost))
            here = any(said.quorate for said in left_after(layout, lost).values())
            there = any(said.quorate for said in left_after(layout, others).values())
            assert not (here and there), lost


@pytest.mark.parametrize("layout", [layout for layout in LAYOUTS if layout.failures_to_tolerate], ids=str)
def test_any_one_member_lost_keeps_quorum_and_a_majority_lost_loses_it(layout: Layout) -> None:
    """M25: the seed's two goals, with at most one tie-breaker instead of one per failure domain."""
    assert layout.tie_breakers <= 1
    assert all(said.quorate for lost in subsets(layout, 1) for said in left_after(layout, lost).values())
    for lost in subsets(layout, layout.members // 2 + 1):
        assert not any(said.quorate for said in left_after(layout, lost).values()), lost


def test_a_layout_is_what_the_configuration_promises() -> None:
    configuration = Configuration(
        replicated_storage_pool_name="pool",
        replication=Replication.AVAILABILITY,
        topology=Topology.IGNORED,
        volume_access=VolumeAccess.ANY,
        failures_to_tolerate=1,
        guaranteed_minimum_data_redundancy=0,
    )
    assert layout_of(configuration) == LEVELS[Replication.AVAILABILITY]


def test_members_are_written_as_people_write_them() -> None:
    assert [text(3, 0), text(2, 1), text(0, 1)] == ["3D", "2D+1TB", "0D+1TB"]


def test_a_healthy_volume_is_quorate() -> None:
    assert all(verdict(seen_by(layout, 0)).quorate for layout in LAYOUTS)


def _without(view: MemberView, lost: tuple[int, ...]) -> MemberView:
    """What a member sees long after it lost these and kept quorum."""
    peers = tuple(
        replace(peer, connected=False, disk_state=DiskState.UNKNOWN, quorate=False, departed=True)
        if peer.node_id in lost
        else peer
        for peer in view.peers
    )
    return replace(view, peers=peers)
