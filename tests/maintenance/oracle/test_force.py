"""By force at least all is allowed that KEEP_AVAILABLE allows, for whatever is locked; and there is always a way."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace as fields_replaced
from random import Random

import pytest

from quorate.api.maintenance.action import ActionType, AvailabilityMode, HostState, StatusCode, TenantPolicy
from quorate.api.struct import replace
from quorate.maintenance.entries import RequestEntry
from quorate.maintenance.messages import Action
from quorate.maintenance.model import ClusterModel
from quorate.maintenance.rules import evaluate, may_extend
from tests.maintenance.oracle import clusters
from tests.maintenance.oracle.clusters import BEGIN
from tests.maintenance.oracle.product import fill
from tests.maintenance.oracle.test_rules import decide_at_random, model_by_events, request
from tests.maintenance.oracle.world import World

BATCH = 200
BATCHES = 100 if os.environ.get("QUORATE_ORACLE") == "full" else 5
KEEP, FORCE = AvailabilityMode.KEEP_AVAILABLE, AvailabilityMode.FORCE_RESTART


@pytest.mark.parametrize("batch", range(BATCHES))
def test_force_allows_whatever_keeps_all_available(batch: int) -> None:
    kept = 0
    for seed in range(batch * BATCH, (batch + 1) * BATCH):
        pick = Random(seed).choice
        world = clusters.cluster(pick)
        decide_at_random(pick, world)
        model = model_by_events(pick, world)
        for asked in (*map(alone, hosts(world)), *world.requests, request(pick, world, 99)):
            by_keep = evaluate(model, replace(asked, availability_mode=KEEP), BEGIN)
            by_force = evaluate(model, replace(asked, availability_mode=FORCE), BEGIN)
            kept += len(by_keep.grants)
            story = f"seed {seed}: {asked}\n{by_keep}\n{by_force}\n{world!r}\n{world.permissions}"
            missing = Counter(one.action for one in by_keep.grants) - Counter(one.action for one in by_force.grants)
            assert not missing, story
            assert by_keep.code is not StatusCode.ALLOW or by_force.code is StatusCode.ALLOW, story
            # Nothing is spoilt unseen.
            assert all(one.cost for one in by_force.grants if one not in by_keep.grants) or asked.id != "alone", story
        for permission in world.permissions:
            longer = permission.deadline + 1
            if may_extend(model, permission, longer, BEGIN, mode=KEEP) is None:
                assert may_extend(model, permission, longer, BEGIN, mode=FORCE) is None, f"seed {seed}: {permission}"
    assert kept


@pytest.mark.parametrize("batch", range(BATCHES))
def test_by_force_there_is_a_way_for_every_host_that_nobody_holds(batch: int) -> None:
    forced = 0
    for seed in range(batch * BATCH, (batch + 1) * BATCH):
        pick = Random(seed).choice
        world = settled(clusters.cluster(pick))
        model = ClusterModel(world.settings)
        fill(model, world)
        for host in hosts(world):
            answer = evaluate(model, replace(alone(host), availability_mode=FORCE), BEGIN)
            needed = evaluate(model, replace(alone(host), availability_mode=KEEP), BEGIN).code is not StatusCode.ALLOW
            story = f"seed {seed}: {host}\n{answer}\n{world!r}"
            assert answer.code is StatusCode.ALLOW, story
            assert bool(answer.grants[0].cost) == needed, story
            assert answer.grants[0].cost[:500] in answer.reason, story
            forced += needed
    assert forced


def alone(host: str) -> RequestEntry:
    """One host, for a minute."""
    return RequestEntry(
        id="alone",
        order=100,
        owner="alice",
        actions=(Action(type=ActionType.SHUTDOWN_HOST, host=host, duration=60_000_000),),
        partial_permission_allowed=False,
        reason="",
        duration=None,
        tenant_policy=TenantPolicy.DEFAULT,
        availability_mode=KEEP,
        priority=0,
        stored_at=0,
        renewed_at=0,
        last_deadline=0,
    )


def hosts(world: World) -> list[str]:
    return sorted({node.host for node in world.nodes.values()})


def settled(world: World) -> World:
    """Whatever is broken, nobody is changing a volume's members, and of each node it is known whether it is up."""
    for number, group in world.groups.items():
        if group.volume is not None:
            volume = fields_replaced(group.volume, unconfirmed_step="")
            world.groups[number] = fields_replaced(group, volume=volume)
    assert all(node.state in (HostState.UP, HostState.DOWN) for node in world.nodes.values())
    return world
