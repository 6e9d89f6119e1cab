"""Plans of a cluster: every round is one that the rules grant whole, and who cannot go is told why."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from random import Random

import pytest

from quorate.api.maintenance.action import ActionType, AvailabilityMode, HostState, LockKind, TenantPolicy
from quorate.api.maintenance.broker_config import BrokerConfigSpec, Limits
from quorate.maintenance.entries import PermissionEntry
from quorate.maintenance.messages import Action
from quorate.maintenance.model import ClusterModel
from quorate.maintenance.nouns import DriveId, DriveInfo, GroupInfo, NodeInfo, Ring, Rings, Species, VDiskId, VDiskInfo
from quorate.maintenance.planner.plan import Planned, Question, ok_to_stop, plan
from quorate.maintenance.rules import evaluate

NOW = 10**15
UNLIMITED = Limits(disabled_nodes_limit=0, disabled_nodes_ratio_limit=0)


def model(
    nodes: int, groups: Sequence[Sequence[int]] = (), *, limits: Limits = UNLIMITED, tenants: Sequence[str] = ()
) -> ClusterModel:
    """Hosts h1, h2, … of one node with one drive each; groups as their nodes, mirror-3 or block-4-2 by their size."""
    built = ClusterModel(BrokerConfigSpec(cluster_limits=limits, tenant_limits=limits))
    for node in range(1, nodes + 1):
        tenant = tenants[(node - 1) % len(tenants)] if tenants else ""
        built.put_node(NodeInfo(id=node, host=f"h{node}", rack=f"k{node % 8}", tenant=tenant))
        built.put_drive(DriveInfo(id=DriveId(node, 1)))
    for number, members in enumerate(groups):
        built.put_group(
            GroupInfo(
                id=number,
                species=Species.MIRROR_3 if len(members) == 3 else Species.BLOCK_4_2,
                vdisks=tuple(
                    VDiskInfo(id=VDiskId(number, 1, 0, domain, 0), node=node, drives=(DriveId(node, 1),))
                    for domain, node in enumerate(members)
                ),
            )
        )
    return built


def question(built: ClusterModel, *hosts: str, mode: AvailabilityMode = AvailabilityMode.MAX_AVAILABILITY) -> Question:
    every = tuple(dict.fromkeys(node.host for node in built.nodes()))
    return Question(hosts or every, mode, TenantPolicy.DEFAULT, duration=60_000_000, order=10)


def planned(built: ClusterModel, *hosts: str) -> Planned:
    asked = question(built, *hosts)
    found = asyncio.run(plan(built, asked, NOW))
    for each in found.rounds:
        assert not evaluate(built, asked.request(each), NOW).refusals
    told = [host for each in found.rounds for host in each] + [refusal.action.host for refusal in found.blocked]
    assert sorted(told) == sorted(asked.hosts)
    return found


def test_blocks_take_as_many_rounds_as_they_have_hosts() -> None:
    blocks = [range(8 * block + 1, 8 * block + 9) for block in range(6)]
    found = planned(model(48, blocks))
    assert len(found.rounds) == 8 == found.bound.rounds
    assert all(len(each) == 6 for each in found.rounds)


def test_limits_make_more_rounds_and_the_bound_says_so() -> None:
    blocks = [range(8 * block + 1, 8 * block + 9) for block in range(6)]
    found = planned(model(48, blocks, limits=Limits(disabled_nodes_limit=4, disabled_nodes_ratio_limit=0)))
    assert len(found.rounds) == 12 == found.bound.rounds
    assert found.bound.reason == "at most 4 of 48 hosts go at once"


def test_tenants_have_limits_of_their_own() -> None:
    built = model(12, tenants=("a", "b"))
    built.configure(
        BrokerConfigSpec(
            cluster_limits=UNLIMITED, tenant_limits=Limits(disabled_nodes_limit=2, disabled_nodes_ratio_limit=0)
        )
    )
    found = planned(built)
    assert len(found.rounds) == 3 == found.bound.rounds
    assert all(len(each) == 4 for each in found.rounds)


def test_rings_are_served_one_after_the_other() -> None:
    built = model(9)
    built.set_rings(Rings(5, tuple(Ring((ring, ring + 3, ring + 6)) for ring in (1, 2, 3))))
    found = planned(built)
    assert sorted(map(sorted, found.rounds)) == [["h1", "h4", "h7"], ["h2", "h5", "h8"], ["h3", "h6", "h9"]]


def test_who_meets_a_broken_neighbour_cannot_go_and_the_rest_can() -> None:
    built = model(6, [(1, 2, 3), (4, 5, 6)])
    built.put_drive(DriveInfo(id=DriveId(1, 1), state=HostState.DOWN))
    found = planned(built)
    assert {refusal.action.host for refusal in found.blocked} == {"h2", "h3"}
    assert len(found.rounds) == 3


def test_who_meets_somebodys_permission_is_told_whose_it_is() -> None:
    built = model(3, [(1, 2, 3)])
    entry = PermissionEntry(
        id="bob-p-1",
        order=1,
        owner="bob",
        action=Action(host="h1", type=ActionType.SHUTDOWN_HOST),
        deadline=NOW + 600_000_000,
        granted_at=NOW,
    )
    built.hold(entry)
    found = planned(built, "h2")
    (refusal,) = found.blocked
    assert [(blocker.owner, blocker.lock) for blocker in refusal.issue.blockers] == [("bob", LockKind.PERMISSION)]
    assert found.rounds == ()


def test_several_nodes_of_a_host_go_together() -> None:
    built = model(4, [(1, 2, 3)])
    built.put_node(NodeInfo(id=5, host="h4"))
    found = planned(built)
    assert len(found.rounds) == 3
    assert sum("h4" in each for each in found.rounds) == 1


def test_groups_over_racks_are_planned_rack_by_rack() -> None:
    random = Random(5)
    groups = [[8 * random.randrange(20) + rack for rack in range(1, 9)] for _ in range(300)]
    found = planned(model(160, groups))
    assert len(found.rounds) == 8 == found.bound.rounds


@pytest.mark.parametrize("seed", range(5))
def test_any_cluster_is_planned_and_each_round_granted(seed: int) -> None:
    random = Random(seed)
    groups = [random.sample(range(1, 31), random.choice((3, 8))) for _ in range(25)]
    limits = Limits(disabled_nodes_limit=random.choice((0, 3)), disabled_nodes_ratio_limit=random.choice((0, 20)))
    built = model(30, groups, limits=limits, tenants=("", "a"))
    for node in random.sample(range(1, 31), 2):
        built.put_drive(DriveInfo(id=DriveId(node, 1), state=HostState.DOWN))
    found = planned(built)
    assert len(found.rounds) >= found.bound.rounds


def test_the_largest_set_is_granted_whole() -> None:
    blocks = [range(8 * block + 1, 8 * block + 9) for block in range(6)]
    built = model(48, blocks)
    asked = question(built)
    found = asyncio.run(ok_to_stop(built, asked, NOW))
    assert len(found.hosts) == 6 == found.at_most
    assert not evaluate(built, asked.request(found.hosts), NOW).refusals


def test_of_those_named_the_ones_that_may_not_stop_are_told() -> None:
    built = model(3, [(1, 2, 3)])
    built.put_node(NodeInfo(id=3, host="h3", rack="k3", state=HostState.DOWN, surely_down=True))
    found = asyncio.run(ok_to_stop(built, question(built, "h1", "h2", "h9"), NOW))
    assert found.hosts == ()
    assert [refusal.action.host for refusal in found.refused] == ["h1", "h2", "h9"]
