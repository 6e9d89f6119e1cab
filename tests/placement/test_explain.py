"""What people read about a choice: every candidate, in figures and words."""

from __future__ import annotations

import pytest

from quorate.api.storage.configuration import Topology
from quorate.placement.choose import choose
from quorate.placement.explain import amount, fates
from quorate.placement.objections import Objection
from quorate.placement.request import Placement, Room
from tests.placement.builders import MIB, node, nodes, replica, request, rooms


def test_the_table_has_every_disk_with_its_fate() -> None:
    listed = [
        node("a1", "a", disks=["full", "roomy", "said-no", "shut", "unknown"]),
        node("a2", "a", node_ready=False),
        node("b1", "b"),
        node("b2", "b", disks=[]),
    ]
    free = {**rooms(listed, full=1), "shut": Room(100 * MIB, 4 * MIB, closed="Unhealthy: drive d is BAD")}
    del free["unknown"]
    asked = request(
        "2D", listed, [replica(0, "D", "b1"), replica(1)], rooms=free, refused={"said-no": "DiskFull: 3Mi free"}
    )
    placement = choose(asked)
    told = [(fate.node, fate.disk, fate.message) for fate in fates(asked, placement, asked.replicas[1])]
    assert told == [
        ("a1", "full", "no room: 1Mi free, 12Mi needed"),
        ("a1", "roomy", "chosen: 88Mi would be left"),
        ("a1", "said-no", "disk said no: DiskFull: 3Mi free"),
        ("a1", "shut", "disk takes nothing new: Unhealthy: drive d is BAD"),
        ("a1", "unknown", "disk has no DiskSchedule yet"),
        ("a2", "", "not ready"),
        ("b1", "", "taken by a replica of this volume"),
        ("b2", "", "no volume group of the pool (add one to the pool's spec.lvmVolumeGroups)"),
    ]


def test_candidates_are_judged_with_the_others_where_they_would_be() -> None:
    asked = request("2D", "a1 a2 b1 b2", topology=Topology.TRANS_ZONAL)
    placement = choose(asked)
    told = {fate.node: fate.message for fate in fates(asked, placement, asked.replicas[1])}
    assert told == {
        "a1": "taken by a replica of this volume",
        "a2": "the topology rules its zone out",
        "b1": "chosen: 88Mi would be left",
        "b2": "possible: 88Mi would be left",
    }


def test_members_without_a_disk_are_judged_by_node() -> None:
    fixed = [replica(0, "D", "a1"), replica(1, "D", "a2")]
    asked = request("2D+1TB", "a1 a2 a3 a4", [*fixed, replica(2, "T"), replica(3, "A")], access=["a3"])
    placement = choose(asked)
    taken = "taken by a replica of this volume"
    for_tie_breaker = {fate.node: fate.message for fate in fates(asked, placement, asked.replicas[2])}
    assert for_tie_breaker == {"a1": taken, "a2": taken, "a3": taken, "a4": "chosen"}
    elsewhere = "not a node that is to use the volume"
    for_access = {fate.node: fate.message for fate in fates(asked, placement, asked.replicas[3])}
    assert for_access == {"a1": elsewhere, "a2": elsewhere, "a3": "chosen", "a4": elsewhere}
    alone = {fate.node: fate.message for fate in fates(asked, Placement({}, {}), asked.replicas[2])}
    assert alone == {"a1": taken, "a2": taken, "a3": "kept for an access replica", "a4": "possible"}


def test_a_replica_bound_to_a_node_has_no_other_candidates() -> None:
    bound = replica(0, "D", "a2", disk="")
    asked = request("1D", "a1 a2", [bound])
    told = {fate.node: fate.message for fate in fates(asked, choose(asked), bound)}
    assert told == {"a1": "not the node that the replica is bound to", "a2": "chosen: 88Mi would be left"}


def test_a_short_text_names_few_nodes_and_counts_the_rest() -> None:
    listed = [*nodes("a1 a2 a3 a4 a5"), node("b1", "b", node_ready=False)]
    asked = request("1D", listed, free={name.node_name: 1 for name in listed})
    (refusal,) = choose(asked).refusals.values()
    assert refusal.message == "it needs 10.1Mi of a disk: b1: not ready; a1, a2, a3 and 2 more: no room"


def test_every_objection_has_words_of_its_own() -> None:
    words = [objection.words for objection in Objection]
    assert len(set(words)) == len(words)


@pytest.mark.parametrize(
    ("size", "down", "up"),
    [
        (0, "0", "0"),
        (1023, "1023", "1023"),
        (1024, "1Ki", "1Ki"),
        (1025, "1Ki", "1.1Ki"),
        (1536, "1.5Ki", "1.5Ki"),
        (10 * MIB + 1, "10Mi", "10.1Mi"),
        (3 * 1024**4, "3Ti", "3Ti"),
    ],
)
def test_what_is_free_is_never_overstated_and_what_is_needed_never_understated(size: int, down: str, up: str) -> None:
    assert (amount(size), amount(size, up=True)) == (down, up)
