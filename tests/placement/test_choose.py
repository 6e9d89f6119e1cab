"""Where replicas go and why not, rule by rule."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import pytest

from quorate.api.meta import ConditionStatus
from quorate.api.storage.configuration import Topology, VolumeAccess
from quorate.api.storage.rsp import EligibleNode, EligibleVolumeGroup
from quorate.api.struct import replace
from quorate.drbd.metadata import lower_size, usable_size
from quorate.placement.choose import choose
from quorate.placement.request import Room
from tests.placement.builders import MIB, SIZE, TAKEN, node, nodes, replica, replicas, request, rooms, where, why

ACROSS, ONE_ZONE = Topology.TRANS_ZONAL, Topology.ZONAL
LOCAL = VolumeAccess.LOCAL


@pytest.mark.parametrize(
    ("layout", "listed", "topology", "places"),
    [
        ("1D", "a1 b1", Topology.IGNORED, ["a1"]),
        ("2D", "a1 a2 b1", Topology.IGNORED, ["a1", "a2"]),
        ("2D", "a1 a2 b1", ACROSS, ["a1", "b1"]),
        ("3D", "a1 a2 b1 c1", ACROSS, ["a1", "b1", "c1"]),
        ("3D", "a1 a2 b1 b2 b3", ONE_ZONE, ["b1", "b2", "b3"]),
        ("2D+1TB", "a1 a2 b1 c1", ACROSS, ["a1", "b1", "c1"]),
        ("2D+1TB", "a1 a2 b1 b2 b3", ONE_ZONE, ["b1", "b2", "b3"]),
        ("2D+1TB", "a1 a2 a3", Topology.ANY, ["a1", "a2", "a3"]),
        ("4D+1TB", "a1 a2 b1 b2 c1", ACROSS, ["a1", "b1", "c1", "a2", "b2"]),
        ("4D+1TB", "a1 a2 b1 c1 c2", ACROSS, ["a1", "b1", "c1", "a2", "c2"]),
        ("4D", "a1 a2 b1 c1 d1", ACROSS, ["a1", "b1", "c1", "d1"]),
        ("5D", "a1 a2 b1 b2 c1", ACROSS, ["a1", "b1", "c1", "a2", "b2"]),
    ],
)
def test_every_layout_finds_its_places(layout: str, listed: str, topology: Topology, places: Sequence[str]) -> None:
    placement = choose(request(layout, listed, topology=topology))
    assert list(where(placement).values()) == places
    assert not placement.refusals


def test_a_voter_goes_where_most_is_left_and_among_equals_by_name() -> None:
    asked = request("3D", "a1 a2 a3 a4", free={"a2": 300, "a4": 200, "a1": 150, "a3": 150})
    assert list(where(choose(asked)).values()) == ["a2", "a4", "a1"]


def test_what_others_have_asked_for_is_avoided_but_forbids_nothing() -> None:
    asked = request("2D", "a1 a2 a3", free={"a1": 200})
    waiting = {**asked.rooms, "a1": dataclasses.replace(asked.rooms["a1"], asked=190 * MIB)}
    assert list(where(choose(dataclasses.replace(asked, rooms=waiting))).values()) == ["a2", "a3"]
    overrun = {name: dataclasses.replace(room, asked=300 * MIB) for name, room in waiting.items()}
    assert list(where(choose(dataclasses.replace(asked, rooms=overrun))).values()) == ["a1", "a2"]


def test_of_a_nodes_disks_the_emptiest_is_taken_and_among_equals_the_first_by_name() -> None:
    listed = [node("n", disks=["x", "y/thin", "y", "z"])]
    choice = choose(request("1D", listed, free={"y_thin": 200, "y": 200})).choices
    assert choice[replicas("D")[0].name].disk == "y"


def test_the_choice_says_how_much_to_ask_the_disk_for() -> None:
    """Usable size and DRBD's metadata, in whole extents; nothing for a member without a disk."""
    placed = choose(request("2D+1TB", "a1 a2 a3"))
    first, _, tie_breaker = placed.choices.values()
    assert lower_size(SIZE) < first.size == TAKEN
    assert first.size % (4 * MIB) == 0
    assert usable_size(first.size) >= SIZE
    assert (first.left, tie_breaker.size, tie_breaker.group, tie_breaker.disk) == (100 * MIB - TAKEN, 0, None, "")


def test_a_disk_that_has_room_for_the_data_but_not_for_the_metadata_is_not_taken() -> None:
    asked = request("1D", "a1", rooms={"a1": Room(SIZE, 0)})
    assert why(choose(asked)) == {"v-0": "NoSpace"}
    exactly = lower_size(SIZE)
    assert where(choose(request("1D", "a1", rooms={"a1": Room(exactly, 0)}))) == {"v-0": "a1"}
    # Rounded up to an extent it does not fit any more.
    assert why(choose(request("1D", "a1", rooms={"a1": Room(exactly, 4 * MIB)}))) == {"v-0": "NoSpace"}


def test_nodes_that_are_to_use_the_volume_come_before_emptier_ones() -> None:
    asked = request("2D", "a1 a2 a3", free={"a1": 300, "a2": 200}, access=["a3"])
    placement = choose(asked)
    assert list(where(placement).values()) == ["a3", "a1"]
    assert [choice.preferred for choice in placement.choices.values()] == [True, False]


def test_a_preferred_node_that_cannot_take_a_disk_is_passed_over() -> None:
    assert list(where(choose(request("2D", "a1 a2 a3", free={"a3": 1}, access=["a3"]))).values()) == ["a1", "a2"]


def test_a_preference_never_costs_the_others_their_place() -> None:
    """The zone of a1 has room for one voter only, so all go to the other zone."""
    asked = request("3D", "a1 b1 b2 b3", topology=ONE_ZONE, access=["a1"], together=True)
    assert list(where(choose(asked)).values()) == ["b1", "b2", "b3"]


def test_the_emptiest_node_is_left_alone_where_it_would_cost_another_its_place() -> None:
    """2D+1TB across zones a, b, c: the one node of c has no disk, so no voter may crowd the tie-breaker out of c."""
    listed = [*nodes("a1 b1"), node("c1", "c", disks=[]), node("d1", "d", disks=[], node_ready=False)]
    assert where(choose(request("2D+1TB", listed, topology=ACROSS))) == {"v-0": "a1", "v-1": "b1", "v-2": "c1"}


# Local access.


def test_with_local_access_a_voter_is_on_every_node_that_uses_the_volume() -> None:
    asked = request("2D", "a1 a2 a3", free={"a1": 300}, access=["a3", "a2"], volume_access=LOCAL)
    assert where(choose(asked)) == {"v-0": "a3", "v-1": "a2"}


@pytest.mark.parametrize(
    ("listed", "topology", "told"),
    [
        (
            [*nodes("a1 a2"), node("a3", "a", disks=[])],
            Topology.IGNORED,
            "a3: no volume group of the pool (add one to the pool's spec.lvmVolumeGroups)",
        ),
        ([*nodes("a1 a2"), node("a3", "a", node_ready=False)], Topology.IGNORED, "a3: not ready"),
        (nodes("a1 a2"), Topology.IGNORED, "a3: not among the pool's eligible nodes"),
        (nodes("b1 b2 a3"), ONE_ZONE, "a3: the topology rules its zone out"),
    ],
)
def test_with_local_access_nobody_is_placed_when_a_node_that_uses_the_volume_cannot_take_a_voter(
    listed: Sequence[EligibleNode], topology: Topology, told: str
) -> None:
    asked = request("2D", listed, topology=topology, access=["a3"], volume_access=LOCAL)
    placement = choose(asked)
    assert not placement.choices
    assert why(placement) == {"v-0": "PublishNodeUnavailable", "v-1": "WaitingForAnotherReplica"}
    assert placement.refusals[asked.replicas[0].name].message == f"access is Local, so it must be on a3: {told}"


def test_with_local_access_the_tie_breaker_waits_for_the_voters() -> None:
    asked = request("2D+1TB", "a1 a2 a3 a4", free={"a4": 1}, access=["a4"], volume_access=LOCAL)
    assert why(choose(asked)) == {
        "v-0": "PublishNodeUnavailable",
        "v-1": "WaitingForAnotherReplica",
        "v-2": "WaitingForAnotherReplica",
    }


def test_with_local_access_a_node_that_has_a_replica_asks_for_no_other() -> None:
    asked = request("2D", "a1 a2 a3", [replica(0, "D", "a3"), replica(1)], access=["a3"], volume_access=LOCAL)
    assert where(choose(asked)) == {"v-1": "a1"}


# Access replicas.


def test_access_replicas_go_where_the_volume_is_used_whatever_zone_space_and_cordon() -> None:
    listed = [*nodes("a1 b1 c1"), node("z1", "z", disks=[], unschedulable=True)]
    fixed = [replica(0, "D", "a1"), replica(1, "D", "b1"), replica(2, "D", "c1")]
    asked = request("3D", listed, [*fixed, replica(3, "A")], topology=ACROSS, zones="abc", access=["b1", "z1"])
    assert where(choose(asked)) == {"v-3": "z1"}


@pytest.mark.parametrize(
    ("access", "told"),
    [
        ([], "there are none"),
        (["a1"], "a1: taken by a replica of this volume"),
        (["a2"], "a2: not ready"),
        (["a3"], "a3: its agent is silent"),
        (["gone"], "gone: not among the pool's eligible nodes"),
    ],
)
def test_an_access_replica_without_a_node_that_asks_for_it_stays_unplaced(access: list[str], told: str) -> None:
    listed = [node("a1"), node("a2", node_ready=False), node("a3", agent_ready=False)]
    asked = request("1D", listed, [replica(0, "D", "a1"), replica(1, "A")], access=access)
    placement = choose(asked)
    assert why(placement) == {"v-1": "NoAvailableNodes"}
    assert placement.refusals[asked.replicas[1].name].message == f"no node is left that is to use the volume: {told}"


def test_access_replicas_are_placed_even_if_voters_cannot_be() -> None:
    asked = request("2D", "a1 a2", [replica(0, "D", "a1"), replica(1), replica(2, "A")], free={"a2": 1}, access=["a2"])
    placement = choose(asked)
    assert where(placement) == {"v-2": "a2"}
    assert why(placement) == {"v-1": "NoSpace"}


def test_the_tie_breaker_leaves_nodes_that_use_the_volume_to_access_replicas_that_have_no_place_yet() -> None:
    fixed = [replica(0, "D", "a1"), replica(1, "D", "a2")]
    asked = request("2D+1TB", "a1 a2 a3 a4", [*fixed, replica(2, "T"), replica(3, "A")], access=["a3"])
    assert where(choose(asked)) == {"v-2": "a4", "v-3": "a3"}
    asked = request("2D+1TB", "a1 a2 a3", [*fixed, replica(2, "T"), replica(3, "A")], access=["a3"])
    assert why(choose(asked)) == {"v-2": "NoAvailableNodes"}


def test_voters_take_nodes_that_the_tie_breaker_may_not_have_and_leave_it_the_one_that_it_may() -> None:
    asked = request("2D+1TB", "a1 a2 a3", "DDTA", access=["a2", "a3"], free={"a1": 500}, together=True)
    assert where(choose(asked)) == {"v-0": "a2", "v-1": "a3", "v-2": "a1"}


# The tie-breaker.


def test_without_access_replicas_the_tie_breaker_goes_where_the_volume_is_used() -> None:
    """M25: it is the access replica then."""
    fixed = [replica(0, "D", "a1"), replica(1, "D", "a2")]
    asked = request("2D+1TB", "a1 a2 a3 a4", [*fixed, replica(2, "T")], access=["a4"])
    assert where(choose(asked)) == {"v-2": "a4"}


def test_the_tie_breaker_goes_where_most_is_free_and_needs_no_disk() -> None:
    fixed = [replica(0, "D", "a1"), replica(1, "D", "a2")]
    listed = [*nodes("a1 a2 a3 a4"), node("a5", "a", disks=[])]
    asked = request("2D+1TB", listed, [*fixed, replica(2, "T")], free={"a4": 200})
    assert where(choose(asked)) == {"v-2": "a4"}
    asked = request("2D+1TB", [*nodes("a1 a2"), node("a5", "a", disks=[])], [*fixed, replica(2, "T")])
    assert where(choose(asked)) == {"v-2": "a5"}


def test_across_zones_the_tie_breaker_goes_to_the_zone_with_the_fewest() -> None:
    fixed = [replica(number, "D", name) for number, name in enumerate(["a1", "a2", "b1", "c1"])]
    asked = request("4D+1TB", "a1 a2 a3 b1 b2 c1 d1", [*fixed, replica(4, "T")], topology=ACROSS, free={"b2": 300})
    assert where(choose(asked)) == {"v-4": "d1"}
    asked = request("4D+1TB", "a1 a2 a3 b1 b2 c1", [*fixed, replica(4, "T")], topology=ACROSS, free={"a3": 300})
    assert where(choose(asked)) == {"v-4": "b2"}


def test_only_one_tie_breaker_is_placed() -> None:
    """M25"""
    fixed = [replica(0, "D", "a1"), replica(1, "D", "a2")]
    asked = request("2D+1TB", "a1 a2 a3 a4", [*fixed, replica(2, "T"), replica(3, "T")])
    placement = choose(asked)
    assert (where(placement), why(placement)) == ({"v-2": "a3"}, {"v-3": "WaitingForAnotherReplica"})


def test_a_new_tie_breaker_goes_by_the_voters_and_not_by_the_one_it_replaces() -> None:
    fixed = [replica(0, "D", "a1"), replica(1, "D", "b1"), replica(2, "T", "c1", leaving=True)]
    asked = request("2D+1TB", "a1 a2 b1 b2 c1 c2", [*fixed, replica(3, "T")], topology=ACROSS)
    assert where(choose(asked)) == {"v-3": "c2"}


# Replicas that are there.


def test_a_node_with_a_leaving_replica_is_taken_but_its_zone_is_free_again() -> None:
    fixed = [replica(0, "D", "a1"), replica(1, "D", "b1"), replica(2, "D", "c1", leaving=True)]
    asked = request("3D", "a1 a2 b1 b2 c1 c2", [*fixed, replica(3)], topology=ACROSS, free={"c1": 500})
    assert where(choose(asked)) == {"v-3": "c2"}
    asked = request("3D", "a1 a2 b1 b2 c1", [*fixed, replica(3)], topology=ACROSS)
    assert why(choose(asked)) == {"v-3": "TopologyConstraintsFailed"}


def test_a_member_on_a_node_that_the_pool_no_longer_lists_counts_in_the_zone_it_was_in() -> None:
    fixed = [replica(0, "D", "a9", zone="a"), replica(1, "D", "b1")]
    assert where(choose(request("3D", "a1 b1 b2 c1", [*fixed, replica(2)], topology=ACROSS))) == {"v-2": "c1"}


def test_a_replica_with_a_node_and_without_a_disk_gets_the_best_disk_there() -> None:
    listed = [node("a1", disks=["x", "y"]), node("a2")]
    pinned = replica(0, "D", "a1", disk="")
    placement = choose(request("1D", listed, [pinned], free={"y": 200, "a2": 300}))
    assert (where(placement), placement.choices[pinned.name].disk) == ({"v-0": "a1"}, "y")


@pytest.mark.parametrize(
    ("listed", "reason", "told"),
    [
        ([node("a2")], "NoAvailableNodes", "its node cannot take it: a1: not among the pool's eligible nodes"),
        ([node("a1", agent_ready=False)], "NoAvailableNodes", "its node cannot take it: a1: its agent is silent"),
        (
            [node("a1", disks=["full"])],
            "NoSpace",
            "it needs 10.1Mi of a disk: a1: no room",
        ),
        (
            [node("a1", disks=[])],
            "NoAvailableNodes",
            "its node cannot take it: a1: no volume group of the pool (add one to the pool's spec.lvmVolumeGroups)",
        ),
    ],
)
def test_a_replica_bound_to_a_node_that_cannot_take_it_is_refused(
    listed: list[EligibleNode], reason: str, told: str
) -> None:
    pinned = replica(0, "D", "a1", disk="")
    placement = choose(request("1D", listed, [pinned], free={"full": 1}))
    assert why(placement) == {"v-0": reason}
    assert placement.refusals[pinned.name].message == told


def test_a_volume_with_nothing_to_place_is_not_looked_at() -> None:
    placement = choose(request("1D", "a1", [replica(0, "D", "gone"), replica(1, leaving=True)]))
    assert (placement.choices, placement.refusals) == ({}, {})


# Refusals.


def test_a_pool_that_lists_no_nodes_yet_refuses_everybody() -> None:
    placement = choose(request("2D", "a1", nodes=None))
    assert why(placement) == {"v-0": "StoragePoolNotReady", "v-1": "StoragePoolNotReady"}


def test_a_refusal_is_a_verdict_about_scheduled() -> None:
    (refusal,) = choose(request("1D", [])).refusals.values()
    verdict = refusal.verdict()
    assert (verdict.type, verdict.status, verdict.reason) == ("Scheduled", ConditionStatus.FALSE, "NoAvailableNodes")
    assert verdict.message == "no node with a disk of the pool is left: the pool has no eligible nodes"


def group(*, ready: bool = True, unschedulable: bool = False) -> EligibleVolumeGroup:
    return EligibleVolumeGroup(name="x", ready=ready, unschedulable=unschedulable)


@pytest.mark.parametrize(
    ("candidate", "room", "reason", "told"),
    [
        (node("x", node_ready=False), Room(TAKEN), "NoAvailableNodes", "not ready"),
        (node("x", agent_ready=False), Room(TAKEN), "NoAvailableNodes", "its agent is silent"),
        (node("x", unschedulable=True), Room(TAKEN), "NoAvailableNodes", "cordoned or to be evacuated"),
        (node("x", "z"), Room(TAKEN), "NoAvailableNodes", "outside the zones of the class"),
        (
            node("x", disks=[]),
            Room(TAKEN),
            "NoAvailableNodes",
            "no volume group of the pool (add one to the pool's spec.lvmVolumeGroups)",
        ),
        (
            node("x", lvm_volume_groups=(group(ready=False),)),
            Room(TAKEN),
            "NoAvailableNodes",
            "volume group not ready",
        ),
        (
            node("x", lvm_volume_groups=(group(unschedulable=True),)),
            Room(TAKEN),
            "NoAvailableNodes",
            "volume group takes nothing new",
        ),
        (node("x"), None, "NoSpace", "disk has no DiskSchedule yet"),
        (node("x"), Room(TAKEN, closed="Unhealthy"), "NoSpace", "disk takes nothing new"),
        (node("x"), Room(1), "NoSpace", "no room"),
    ],
)
def test_a_candidate_falls_out_for_its_own_reason(
    candidate: EligibleNode, room: Room | None, reason: str, told: str
) -> None:
    listed = replace(candidate, zone_name=candidate.zone_name or "a")
    asked = request("1D", [listed], zones=["a"], rooms={} if room is None else {"x": room})
    placement = choose(asked)
    assert why(placement) == {"v-0": reason}
    assert placement.refusals[asked.replicas[0].name].message.endswith(f": x: {told}")
    well = request("1D", [node("x", "a")], zones=["a"], rooms={"x": Room(TAKEN)})
    assert where(choose(well)) == {"v-0": "x"}


def test_a_disk_that_said_no_is_not_asked_again() -> None:
    asked = request("1D", "a1 a2", free={"a1": 300}, refused={"a1": "DiskFull: 3Mi free"})
    assert where(choose(asked)) == {"v-0": "a2"}
    asked = request("1D", "a1", refused={"a1": "DiskFull: 3Mi free"})
    placement = choose(asked)
    assert why(placement) == {"v-0": "NoSpace"}
    assert placement.refusals[asked.replicas[0].name].message == "it needs 10.1Mi of a disk: a1: disk said no"


@pytest.mark.parametrize(
    ("layout", "listed", "topology", "free", "reason"),
    [
        ("3D", "a1 b1", ACROSS, {}, "NoAvailableNodes"),
        ("3D", "a1 a2 b1", ACROSS, {}, "TopologyConstraintsFailed"),
        ("3D", "a1 a2 b1 c1", ACROSS, {"c1": 1}, "NoSpace"),
        ("2D", "a1 a2 a3", ACROSS, {}, "TopologyConstraintsFailed"),
        ("3D", "a1 a2 b1 b2", ONE_ZONE, {}, "TopologyConstraintsFailed"),
        ("3D", "a1 a2 a3 b1", ONE_ZONE, {"a3": 1}, "NoSpace"),
        ("3D", "a1 a2 b1", Topology.IGNORED, {"b1": 1}, "NoSpace"),
    ],
)
def test_the_reason_is_nodes_before_topology_before_space(
    layout: str, listed: str, topology: Topology, free: dict[str, int], reason: str
) -> None:
    placement = choose(request(layout, listed, topology=topology, free=free, together=True))
    assert reason in why(placement).values()
    assert set(why(placement).values()) == {reason, "WaitingForAnotherReplica"}


def test_where_zones_matter_a_node_in_none_is_of_no_use() -> None:
    asked = request("2D", [node("n1"), node("n2")], topology=ACROSS)
    placement = choose(asked)
    assert why(placement) == {"v-0": "TopologyConstraintsFailed", "v-1": "WaitingForAnotherReplica"}
    message = placement.refusals[asked.replicas[0].name].message
    assert message == "TransZonal 2D leaves it no zone: n1, n2: in no zone"


def test_members_that_break_the_topology_already_are_named() -> None:
    fixed = [replica(0, "D", "a1"), replica(1, "D", "a2")]
    asked = request("3D", "a1 a2 b1 c1", [*fixed, replica(2)], topology=ACROSS)
    placement = choose(asked)
    assert why(placement) == {"v-2": "TopologyConstraintsFailed"}
    message = placement.refusals[asked.replicas[2].name].message
    assert message.startswith("TransZonal 3D is broken already: 2 diskful in zone a: ")


@pytest.mark.parametrize(
    ("listed", "reason"), [("a1 b1", "NoAvailableNodes"), ("a1 b1 b2", "TopologyConstraintsFailed")]
)
def test_a_tie_breaker_without_a_place_keeps_a_forming_volume_waiting(listed: str, reason: str) -> None:
    placement = choose(request("2D+1TB", listed, topology=ACROSS, together=True))
    waiting = "WaitingForAnotherReplica"
    assert why(placement) == {"v-0": waiting, "v-1": waiting, "v-2": reason}


def test_a_tie_breaker_that_only_finds_nodes_in_no_zone_is_refused_for_the_topology() -> None:
    placement = choose(request("2D+1TB", [*nodes("a1 b1"), node("n", disks=[])], topology=ACROSS))
    assert why(placement) == {"v-2": "TopologyConstraintsFailed"}
    (refusal,) = placement.refusals.values()
    assert refusal.message.endswith("n: in no zone")


def test_those_that_wait_do_not_wait_for_an_access_replica() -> None:
    asked = request("2D", "a1", [replica(0, "A"), replica(1), replica(2)], together=True)
    placement = choose(asked)
    assert why(placement) == {"v-0": "NoAvailableNodes", "v-1": "WaitingForAnotherReplica", "v-2": "NoAvailableNodes"}
    assert placement.refusals[asked.replicas[1].name].message == "v-2 must find its place first"


def test_those_that_wait_say_for_whom() -> None:
    asked = request("3D", "a1 a2", together=True)
    placement = choose(asked)
    messages = [refusal.message for refusal in placement.refusals.values()]
    assert messages[0] == messages[1] == "v-2 must find its place first"
    assert messages[2] == ("no node with a disk of the pool is left: a1, a2: taken by a replica of this volume")


def test_a_volume_that_lives_gets_what_can_be_placed() -> None:
    fixed = [replica(0, "D", "a1")]
    asked = request("3D", "a1 a2", [*fixed, replica(1), replica(2), replica(3)])
    placement = choose(asked)
    assert where(placement) == {"v-1": "a2"}
    assert why(placement) == {"v-2": "NoAvailableNodes", "v-3": "WaitingForAnotherReplica"}


def test_a_voter_comes_before_the_tie_breaker_when_there_is_a_node_for_one() -> None:
    fixed = [replica(0, "D", "a1")]
    placement = choose(request("2D+1TB", "a1 a2", [*fixed, replica(1, "T"), replica(2, "D")]))
    assert (where(placement), why(placement)) == ({"v-2": "a2"}, {"v-1": "NoAvailableNodes"})


def test_the_order_of_nodes_and_replicas_changes_nothing() -> None:
    asked = request("4D+1TB", "a1 a2 b1 b2 c1 c2 d1", topology=ACROSS, access=["c2"])
    turned = dataclasses.replace(
        asked,
        nodes=tuple(reversed(asked.nodes or ())),
        replicas=tuple(reversed(asked.replicas)),
        rooms=dict(reversed(tuple(asked.rooms.items()))),
    )
    assert choose(turned) == choose(asked)


def test_many_volumes_fill_nodes_and_disks_evenly() -> None:
    listed = [node(f"n{number}", disks=[f"n{number}-{disk}" for disk in range(3)]) for number in range(6)]
    left = rooms(listed)
    voters: dict[str, int] = {}
    tie_breakers: dict[str, int] = {}
    for _ in range(30):
        for choice in choose(request("2D+1TB", listed, rooms=left)).choices.values():
            if choice.group is None:
                tie_breakers[choice.node] = tie_breakers.get(choice.node, 0) + 1
            else:
                voters[choice.node] = voters.get(choice.node, 0) + 1
                left[choice.disk] = Room(left[choice.disk].free - choice.size, 4 * MIB)
    assert set(voters.values()) == {10}
    assert max(room.free for room in left.values()) - min(room.free for room in left.values()) <= TAKEN
    assert max(tie_breakers.values()) <= 10
