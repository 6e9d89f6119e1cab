"""What one request was granted may be used in any order, together or one after another, and users come back with hosts.

A history of hosts that go down and come up again passes through nothing but subsets of what was granted. So all of them
are taken down, whatever the order: whoever uses a volume on a host that is up can write to it, if that was so before.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace as fields_replaced
from itertools import chain, combinations
from random import Random

import pytest

from quorate.api.maintenance.action import AvailabilityMode, HostState
from quorate.api.maintenance.broker_config import BrokerConfigSpec
from quorate.api.struct import replace
from quorate.maintenance.messages import Action
from quorate.maintenance.model import ClusterModel
from quorate.maintenance.nouns import DriveId, DriveInfo, GroupInfo, VDiskId, VolumeFacts
from quorate.maintenance.rules import evaluate
from tests.maintenance.oracle import clusters
from tests.maintenance.oracle.clusters import BEGIN
from tests.maintenance.oracle.product import fill
from tests.maintenance.oracle.safety import away
from tests.maintenance.oracle.test_examples import UNLIMITED
from tests.maintenance.oracle.test_rules import request
from tests.maintenance.oracle.world import Item, World

BATCH = 200
BATCHES = 100 if os.environ.get("QUORATE_ORACLE") == "full" else 6
MODES = (AvailabilityMode.MAX_AVAILABILITY, AvailabilityMode.KEEP_AVAILABLE)


@pytest.mark.parametrize("batch", range(BATCHES))
def test_what_is_granted_is_good_in_any_order(batch: int) -> None:
    several = 0
    for seed in range(batch * BATCH, (batch + 1) * BATCH):
        pick = Random(seed).choice
        world = volumes_in_use(pick)
        model = ClusterModel(world.settings)
        fill(model, world)
        asked = replace(request(pick, world, 1), availability_mode=pick(MODES))
        granted = [grant.action for grant in evaluate(model, asked, BEGIN).grants]
        several += len(granted) > 1
        for down in subsets(granted):
            gone = {item for action in down for item in world.items(action)}
            stopped = [number for number, group in world.groups.items() if stops(world, group, gone)]
            story = f"seed {seed}: {asked}\n{world!r}\ngranted {granted}, down {down}"
            assert stopped == [], story
    assert several, "nothing was granted together: this proves nothing"


def volumes_in_use(pick: clusters.Pick) -> World:
    """Volumes on nodes that are up; most of them are whole, and in use somewhere."""
    world = World(settings=BrokerConfigSpec(cluster_limits=UNLIMITED, tenant_limits=UNLIMITED))
    for number in range(1, pick(range(4, 8)) + 1):
        # Now and then two nodes share a host.
        host = world.nodes[number - 1].host if number > 1 and pick(range(6)) == 5 else f"h{number}"
        world.nodes[number] = clusters.node(number, host, "", HostState.UP)
        world.drives[DriveId(number, 1)] = DriveInfo(id=DriveId(number, 1), path="/dev/sda")
    for number in range(pick(range(1, 4))):
        group = clusters.volume(pick, world, number)
        world.groups[number] = group if pick(range(4)) == 3 else whole(group)
    return world


def whole(group: GroupInfo) -> GroupInfo:
    """With every member there, and nothing under way."""
    facts = group.volume
    assert facts is not None
    members = tuple(fields_replaced(one, connected=True, up_to_date=one.voter) for one in facts.members)
    quiet = fields_replaced(facts, members=members, unconfirmed_step="", synchronizing="")
    parts = tuple(fields_replaced(vdisk, state=HostState.UP) for vdisk in group.vdisks)
    return fields_replaced(group, volume=quiet, vdisks=parts)


def subsets(actions: list[Action]) -> Iterator[tuple[Action, ...]]:
    """Every state that hosts going down and coming up again can lead through."""
    return chain.from_iterable(combinations(actions, number) for number in range(1, len(actions) + 1))


def stops(world: World, group: GroupInfo, gone: set[Item]) -> bool:
    """Whether somebody who is there cannot write any more."""
    facts = group.volume
    if facts is None or not any(node not in gone for node in facts.attached_on):
        return False
    before = {vdisk.id for vdisk in group.vdisks if away(world, vdisk)}
    now = before | {vdisk.id for vdisk in group.vdisks if {vdisk.id, vdisk.node, *vdisk.drives} & gone}
    return is_served(facts, before) and not is_served(facts, now)


def is_served(facts: VolumeFacts, lost: set[VDiskId]) -> bool:
    """More than half of the voters are there, or half of them and who breaks the tie; and as many copies as needed."""
    here = [member for member in facts.members if member.connected and member.vdisk not in lost]
    votes, voters = sum(member.voter for member in here), sum(member.voter for member in facts.members)
    tied = votes * 2 == voters and any(member.tie_breaker for member in here)
    copies = sum(member.voter and member.up_to_date for member in here)
    return (votes * 2 > voters or tied) and copies >= max(1, facts.quorum_minimum_redundancy)
