"""Volumes are attached, moved and detached on simulated nodes: real controllers, real agents, the kernel's model."""

from __future__ import annotations

import pytest

from quorate.api import annotation_keys, conditions, core
from quorate.api.conditions.rv import PublishSucceeded
from quorate.api.conditions.rva import Attached
from quorate.api.storage import ReplicatedVolumeAttachment
from quorate.api.storage.configuration import Replication
from quorate.api.storage.drbd import ReplicaType
from quorate.engine.simulation import Simulation, run
from quorate.lab import faults
from tests.volumes.attach.stories import ALL, FIVE, NAMES, Story
from tests.volumes.laboratory import volume_lab

D, A, TB = ReplicaType.DISKFUL, ReplicaType.ACCESS, ReplicaType.TIE_BREAKER
LEVELS = [pytest.param(each, id=NAMES[each]) for each in ALL]


@pytest.mark.parametrize("thin", [False, True], ids=["thick", "thin"])
@pytest.mark.parametrize("replication", LEVELS)
def test_a_volume_is_attached_where_a_copy_is_written_to_and_detached(replication: Replication, thin: bool) -> None:
    """M1, M23."""

    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, FIVE) as lab:
            story = await Story.of(lab, replication, thin=thin)
            first = (await story.nodes(D))[0]
            await story.attach(first)
            await story.until_primary(first)
            assert await story.write(first, "one")
            assert set(story.copies().values()) == {"one"}
            await story.detach(first)
            await story.until_primary()
            await story.until_calm()
            assert (await story.volume()).status.attach_requests == ()

    run(main, seed=1)


@pytest.mark.parametrize("replication", LEVELS)
def test_a_volume_is_attached_where_no_copy_is_and_the_access_replica_goes_afterwards(replication: Replication) -> None:
    """M25, M27: with a tie-breaker the diskless member that serves is the tie-breaker."""

    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, FIVE) as lab:
            story = await Story.of(lab, replication)
            node = await story.free_node()
            await story.attach(node)
            await story.until_primary(node)
            assert await story.write(node, "one")
            assert await story.nodes(A) == [node]
            assert await story.nodes(TB) == []
            shown = [m for m in (await story.volume()).status.datamesh.members if m.type is not D and not m.hidden]
            assert len(shown) == (1 if replication is Replication.AVAILABILITY else 0)
            await story.detach(node)
            await story.until_primary()
            await lab.until("the replica is what it was", lambda: settled(story, replication, node))

    async def settled(story: Story, replication: Replication, node: str) -> bool:
        if replication is Replication.AVAILABILITY:
            return await story.nodes(TB) == [node] and await story.nodes(A) == []
        return await story.nodes(A) == []

    run(main, seed=2)


def test_on_the_tie_breakers_own_node_it_becomes_an_access_replica_and_stays_shown() -> None:
    """M27."""

    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, FIVE) as lab:
            story = await Story.of(lab, Replication.AVAILABILITY)
            node = (await story.nodes(TB))[0]
            before = await story.replica_on(node)
            await story.attach(node)
            await story.until_primary(node)
            after = await story.replica_on(node)
            assert before is not None
            assert after is not None
            assert (after.name, after.spec.type) == (before.name, A)
            member = next(m for m in (await story.volume()).status.datamesh.members if m.name == after.name)
            assert not member.hidden
            await story.detach(node)
            await lab.until("it is a tie-breaker again", lambda: is_tie_breaker(story, node))

    async def is_tie_breaker(story: Story, node: str) -> bool:
        return await story.nodes(TB) == [node]

    run(main, seed=3)


@pytest.mark.parametrize("replication", LEVELS)
def test_a_volume_moves_from_node_to_node(replication: Replication) -> None:
    """With two primaries where the layout allows it, and detached before it is attached elsewhere where not."""

    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, FIVE) as lab:
            story = await Story.of(lab, replication)
            copies = await story.nodes(D)
            first, second = (copies[0], copies[1]) if len(copies) > 1 else (copies[0], await story.free_node())
            await story.attach(first)
            await story.until_primary(first)
            assert await story.write(first, "one")
            await story.attach(second)
            if replication is Replication.AVAILABILITY:
                await lab.sleep(60)
                assert story.primaries() == [first]
                waiting = await lab.store.get(ReplicatedVolumeAttachment, f"on-{second}")
                found = conditions.find(waiting.status.conditions, Attached)
                assert found is not None
                assert found.reason == "TwoPrimariesNotAllowed"
            else:
                await story.until_primary(first, second)
                assert await story.write(second, "two", 4096)
                assert await story.write(first, "three", 8192)
            await story.detach(first)
            await story.until_primary(second)
            await story.until_calm()
            assert not (await story.volume()).status.drbd.config.allow_two_primaries
            assert await story.write(second, "four")
            assert set(story.copies().values()) == {"four"}

    run(main, seed=4)


def test_the_third_waits_for_its_turn_and_the_queue_is_kept_in_order() -> None:
    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, FIVE) as lab:
            story = await Story.of(lab, Replication.CONSISTENCY_AND_AVAILABILITY)
            one, two, three = await story.nodes(D)
            await story.publish(one)
            await story.until_primary(one)
            await story.attach(three)
            await story.until_primary(one, three)
            await story.attach(two)
            await lab.sleep(60)
            assert sorted(story.primaries()) == sorted([one, three])
            waiting = await lab.store.get(ReplicatedVolumeAttachment, f"on-{two}")
            found = conditions.find(waiting.status.conditions, Attached)
            assert found is not None
            assert found.reason == "Pending"
            queue = (await story.volume()).status.attach_requests
            assert [each.node_name for each in queue] == [one, three, two]
            await story.publish()
            await story.until_primary(two, three)

    run(main, seed=5)


def test_a_detachment_waits_while_the_device_is_open_and_says_by_whom() -> None:
    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, FIVE) as lab:
            story = await Story.of(lab, Replication.CONSISTENCY_AND_AVAILABILITY)
            node = (await story.nodes(D))[0]
            await story.publish(node)
            await story.until_primary(node)
            close = story.hold_open(node)
            await story.publish()
            await lab.sleep(60)
            assert story.primaries() == [node]
            found = conditions.find((await story.volume()).status.conditions, PublishSucceeded)
            assert found is not None
            assert found.reason == "DeviceInUse"
            assert "qemu" in found.message
            close()
            await story.until_primary()

    run(main, seed=6)


@pytest.mark.parametrize("replication", LEVELS)
def test_an_attachment_on_a_node_that_there_is_not_is_refused_once_and_keeps_nobody_waiting(
    replication: Replication,
) -> None:
    """M10: no replica is made there only to be deleted again."""

    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, FIVE) as lab:
            story = await Story.of(lab, replication)
            await lab.sleep(20)
            await story.attach("no-such-node")
            await lab.sleep(5)
            refused = await lab.store.get(ReplicatedVolumeAttachment, "on-no-such-node")
            assert "no node no-such-node" in refused.status.message
            since = len(lab.sent)
            await lab.sleep(30)
            assert [each for each in lab.writes(since) if each[2].startswith("ReplicatedVolume")] == []
            node = await story.free_node()
            await story.attach(node)
            await story.until_primary(node)

    run(main, seed=1)


def test_an_access_replica_is_primary_again_after_it_and_one_of_two_copies_lost_their_power() -> None:
    """It is back first: its peer is up to date then, and becomes quorate with the other copy, unheard."""

    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, FIVE) as lab:
            story = await Story.of(lab, Replication.CONSISTENCY)
            copy, user = (await story.nodes(ReplicaType.DISKFUL))[1], await story.free_node()
            await story.attach(user)
            await story.until_primary(user)
            for node in (copy, user):
                lab.cluster.inject(faults.NodeDown(node))
            await lab.sleep(200)
            for node in (user, copy):
                lab.cluster.inject(faults.NodeUp(node))
                await lab.sleep(30)
            await story.until_primary(user)
            assert await story.write(user, "after")

    run(main, seed=1)


def test_a_node_that_is_not_to_be_emptied_after_all_gets_the_volume_that_it_has_asked_for() -> None:
    """Nothing of the volume is there yet that could tell of the node."""

    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, FIVE) as lab:
            story = await Story.of(lab, Replication.NONE)
            node = await story.free_node()
            for emptied in ("true", None):
                said = {"metadata": {"annotations": {annotation_keys.EVACUATE: emptied}}}
                await lab.store.patch(core.Node, node, patch=said)
                if emptied:
                    await lab.sleep(5)
                    await story.attach(node)
                    await lab.sleep(60)
                    assert await story.replica_on(node) is None
            await story.until_primary(node, patience=60)

    run(main, seed=1)
