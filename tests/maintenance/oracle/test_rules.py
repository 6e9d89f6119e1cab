"""Thousands of random situations, each weighed by the oracle and by the rules over a model that got there by events."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest

from quorate.api.maintenance.action import AvailabilityMode, HostState, StatusCode, TenantPolicy
from quorate.maintenance.entries import NotificationEntry, PermissionEntry, RequestEntry
from quorate.maintenance.model import ClusterModel
from quorate.maintenance.moments import SECOND, later
from quorate.maintenance.rules import evaluate, is_down, may_extend
from tests.maintenance.oracle import clusters
from tests.maintenance.oracle.asking import unfair, weigh
from tests.maintenance.oracle.clusters import BEGIN, Pick
from tests.maintenance.oracle.life import Life, bare
from tests.maintenance.oracle.world import World

#: Seeds in one test: a hundred take about a second.
BATCH = 100
BATCHES = 200 if os.environ.get("QUORATE_ORACLE") == "full" else 10
#: Around now, in seconds.
OFFSETS = (-100_000, -3600, -601, -1, 0, 1, 60, 601, 100_000)


def request(pick: Pick, world: World, number: int) -> RequestEntry:
    """Stored as number so and so, or about to be."""
    asked = (BEGIN + pick(OFFSETS) * SECOND, BEGIN + pick(OFFSETS) * SECOND)
    return RequestEntry(
        id=f"alice-r-{number}",
        order=number,
        owner="alice",
        actions=clusters.actions(pick, world, 5),
        partial_permission_allowed=pick((False, True)),
        reason="",
        duration=pick(clusters.DURATIONS),
        tenant_policy=pick((*TenantPolicy,)),
        availability_mode=pick((*AvailabilityMode,)),
        priority=pick((0, 0, 0, -10, 20)),
        stored_at=0,
        renewed_at=asked[0],
        last_deadline=asked[1],
    )


def decide_at_random(pick: Pick, world: World) -> None:
    """Permissions, announcements and a queue, as if somebody had decided without any rules."""
    for number in range(1, pick(range(5)) + 1):
        action, deadline = clusters.action(pick, world), BEGIN + pick(OFFSETS) * SECOND
        if world.items_if_known(action):
            world.permissions.append(
                PermissionEntry(
                    id=f"bob-p-{number}", order=number, owner="bob", action=action, deadline=deadline, granted_at=0
                )
            )
    for number in range(1, pick(range(3)) + 1):
        time = BEGIN + pick(OFFSETS) * SECOND
        # What is over is forgotten before anybody asks.
        coming = (one for one in clusters.actions(pick, world, 2) if later(time, one.duration or 0) > BEGIN)
        announced = tuple(one for one in coming if world.items_if_known(one))
        world.notifications.append(
            NotificationEntry(id=f"bob-n-{number}", order=number, owner="bob", actions=announced, time=time, reason="")
        )
    world.requests = [request(pick, world, number) for number in range(1, pick(range(4)) + 1)]


def model_by_events(pick: Pick, world: World) -> ClusterModel:
    """The same cluster, arrived at by detours: other states first, then the true ones, in any order, amid locks."""
    model = ClusterModel(clusters.settings(pick))
    for node in world.nodes.values():
        model.put_node(replace(node, state=pick(clusters.STATES)))
    for drive in world.drives.values():
        model.put_drive(replace(drive, state=pick(clusters.STATES)))
    for group in world.groups.values():
        vdisks = tuple(replace(vdisk, state=pick(clusters.STATES)) for vdisk in group.vdisks)
        model.put_group(replace(group, vdisks=vdisks))
    model.set_rings(clusters.rings(pick, list(world.nodes)))
    events: list[Callable[[], None]] = [
        lambda: model.configure(world.settings),
        lambda: model.set_rings(world.rings),
        *(lambda one=one: model.put_node(one) for one in world.nodes.values()),
        *(lambda one=one: model.put_drive(one) for one in world.drives.values()),
        *(lambda one=one: model.put_vdisk(one) for one in world.vdisks()),
        *(lambda one=one: model.put_group(one) for one in world.groups.values()),
        *(lambda one=one: model.announce(one) for one in world.notifications),
        *(lambda one=one: model.queue(one, blocking=world.blocks_until(one) > BEGIN) for one in world.requests),
        *(lambda one=one: model.hold(one) for one in world.permissions),
        # What comes and goes leaves nothing behind.
        *(lambda one=one: come_and_go(model, one) for one in world.permissions),
    ]
    for event in clusters.some(pick, events, len(events), least=len(events)):
        event()
    for permission in world.permissions:
        model.hold(permission)
    return model


def come_and_go(model: ClusterModel, permission: PermissionEntry) -> None:
    model.hold(permission)
    model.release(permission.id)


@pytest.mark.parametrize("batch", range(BATCHES))
def test_rules_and_oracle_say_the_same(batch: int) -> None:
    for seed in range(batch * BATCH, (batch + 1) * BATCH):
        pick = Random(seed).choice
        world = clusters.cluster(pick)
        decide_at_random(pick, world)
        model = model_by_events(pick, world)
        for asked in (*world.requests, request(pick, world, 99)):
            decided = f"{world.permissions}\n{world.notifications}\n{world.requests}"
            compare(world, model, asked, f"seed {seed}, {asked}\n{world!r}\n{decided}")
        extend(pick, world, model, seed)


def compare(world: World, model: ClusterModel, asked: RequestEntry, story: str) -> None:
    """One question to both."""
    version = model.version
    expected, got = weigh(world, asked, BEGIN), evaluate(model, asked, BEGIN)
    assert evaluate(model, asked, BEGIN) == got, f"asked twice, answered differently\n{story}"
    assert model.version == version, story
    granted = tuple((one.action, later(BEGIN, one.permission_duration)) for one in got.grants)
    assert got.code is expected.code, f"{got.code} instead of {expected.code} {expected.refused}\n{got}\n{story}"
    if got.code not in (StatusCode.ALLOW, StatusCode.ALLOW_PARTIAL):
        granted = ()
    assert granted == tuple((one.action, one.deadline) for one in expected.granted), story
    refused = tuple((bare(one.action), one.issue.type) for one in got.refusals)
    assert refused == tuple((one.action, one.issue) for one in expected.refused), f"{got}\n{story}"
    assert tuple(map(bare, got.left)) == expected.left, story
    if got.code is StatusCode.DISALLOW_TEMP:
        assert unfair(world, asked, BEGIN, got.deadline) == "", f"{got}\n{story}"


def extend(pick: Pick, world: World, model: ClusterModel, seed: int) -> None:
    """May each permission last longer, and does it outlive its deadline?"""
    life = Life(world, BEGIN)
    for permission in world.permissions:
        longer = permission.deadline + pick((1, 3600 * SECOND))
        mode, policy = pick((*AvailabilityMode,)), pick((*TenantPolicy,))
        life.granted_under[permission.id] = (mode, policy)
        refusal = may_extend(model, permission, longer, BEGIN, mode=mode, tenant_policy=policy)
        assert (refusal is None) == life.may_last(permission, longer), f"seed {seed}: {permission} {refusal}\n{world!r}"
        down = any(world.state(item) is not HostState.UP for item in world.items_if_known(permission.action))
        assert is_down(model, permission) == down
