"""Whether a class makes sense and its pool has enough: table by table."""

from __future__ import annotations

import pytest

from quorate.api.storage.configuration import Replication, Topology, VolumeAccess
from quorate.api.storage.rsp import EligibleNode
from quorate.placement.sufficiency import configuration_of, contradiction, shortage
from tests.placement.builders import LAYOUT, configuration, node, nodes
from tests.placement.objects import pool, storage_class

ACROSS, ONE_ZONE, IGNORED = Topology.TRANS_ZONAL, Topology.ZONAL, Topology.IGNORED

TWO_AND_ONE = "2D+1TB needs 2 nodes with a volume group and one more"


def bare(names: str) -> tuple[EligibleNode, ...]:
    """Nodes without a disk."""
    return tuple(node(name, name[0], disks=[]) for name in names.split())


@pytest.mark.parametrize("replication", list(Replication))
def test_a_volume_copies_what_its_class_promises(replication: Replication) -> None:
    made = storage_class(replication, zones=("b", "a"), volume_access=VolumeAccess.LOCAL)
    copied = configuration_of(made.spec)
    assert (copied.replicated_storage_pool_name, copied.replication) == ("pool", replication)
    assert (copied.volume_access, copied.zones) == (VolumeAccess.LOCAL, ("a", "b"))


def test_two_spellings_of_one_topology_make_one_configuration() -> None:
    """M7: a class whose spelling is changed makes no volume outdated."""
    spelled = [configuration_of(storage_class(topology=topology).spec) for topology in (Topology.ANY, IGNORED)]
    assert spelled[0] == spelled[1]
    assert spelled[0].topology is IGNORED


@pytest.mark.parametrize(
    ("layout", "topology", "zones", "pool_zones", "words"),
    [
        ("3D", IGNORED, (), (), None),
        ("3D", ACROSS, (), (), None),
        ("3D", ACROSS, ("a", "b", "c"), (), None),
        ("3D", ACROSS, ("a", "b"), (), "3D with topology TransZonal needs more zones than a, b"),
        ("2D+1TB", ACROSS, ("a", "b"), (), "2D+1TB with topology TransZonal needs more zones than a, b"),
        ("2D", ACROSS, ("a", "b"), (), None),
        ("3D", ACROSS, (), ("b", "a"), "3D with topology TransZonal needs more zones than a, b"),
        ("3D", ONE_ZONE, ("a",), (), None),
        ("3D", ACROSS, ("a", "b", "z"), ("a", "b", "c"), "spec.zones has z: the pool has only a, b, c"),
        ("1D", ONE_ZONE, (), (), "spec.topology is Zonal: a single copy has none, it must be Ignored"),
        ("1D", ACROSS, (), (), "spec.topology is TransZonal: a single copy has none, it must be Ignored"),
    ],
)
def test_a_class_that_contradicts_itself_or_its_pool_is_told_how(
    layout: str, topology: Topology, zones: tuple[str, ...], pool_zones: tuple[str, ...], words: str | None
) -> None:
    made = configuration(LAYOUT[layout], topology, zones=zones)
    assert contradiction(made, pool("g", zones=pool_zones).spec) == words
    if not pool_zones:
        assert contradiction(made, None) == words


@pytest.mark.parametrize(
    ("layout", "topology", "listed", "words"),
    [
        ("1D", IGNORED, nodes("a1"), None),
        ("1D", IGNORED, (), "1D needs 1 node with a volume group; the pool has none"),
        ("3D", IGNORED, nodes("a1 a2 a3"), None),
        (
            "3D",
            IGNORED,
            (*nodes("a1 a2"), *bare("a3")),
            "3D needs 3 nodes with a volume group; the pool has 2 and 1 bare",
        ),
        ("2D+1TB", IGNORED, (*nodes("a1 a2"), *bare("a3")), None),
        (
            "2D+1TB",
            IGNORED,
            nodes("a1 b1"),
            f"{TWO_AND_ONE}; the pool has 2",
        ),
        ("2D+1TB", ACROSS, (*nodes("a1 b1"), *bare("c1")), None),
        (
            "2D+1TB",
            ACROSS,
            (*nodes("a1 b1"), *bare("b2")),
            f"{TWO_AND_ONE}, spread over zones; the pool has 1 in a, 1 and 1 bare in b",
        ),
        ("3D", ONE_ZONE, nodes("a1 b1 b2 b3"), None),
        (
            "3D",
            ONE_ZONE,
            nodes("a1 a2 b1 b2"),
            "3D needs 3 nodes with a volume group in one zone; the pool has 2 in a, 2 in b",
        ),
        (
            "2D",
            ACROSS,
            (*nodes("a1"), node("n", "")),
            "2D needs 2 nodes with a volume group, spread over zones; the pool has 1 in no zone, 1 in a",
        ),
        ("4D+1TB", ACROSS, nodes("a1 a2 b1 b2 c1"), None),
    ],
    ids=range(12),
)
def test_a_pool_that_has_too_little_is_told_what(
    layout: str, topology: Topology, listed: tuple[EligibleNode, ...], words: str | None
) -> None:
    assert shortage(configuration(LAYOUT[layout], topology), listed) == words


def test_nodes_outside_the_zones_of_the_class_do_not_count() -> None:
    made = configuration(LAYOUT["2D"], zones=("a",))
    assert shortage(made, nodes("a1 b1")) == "2D needs 2 nodes with a volume group; the pool has 1"
    assert shortage(made, nodes("a1 a2")) is None


def test_a_node_that_is_away_for_a_while_still_counts() -> None:
    away = node("a1", "a", node_ready=False, agent_ready=False, unschedulable=True)
    assert shortage(configuration(LAYOUT["1D"]), [away]) is None
