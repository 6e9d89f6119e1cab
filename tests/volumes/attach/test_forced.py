"""F4, with real agents: a user that is cut off from its peers, and heard, is detached by force by a person's word."""

from __future__ import annotations

import pytest

from quorate.api.core import Event
from quorate.api.storage import ReplicatedVolume
from quorate.api.storage.configuration import Replication
from quorate.api.storage.datamesh import TransitionType
from quorate.engine.simulation import Simulation, run
from quorate.lab import faults
from quorate.lab.kernel.io import IoState
from tests.volumes.attach.stories import FIVE, Story
from tests.volumes.laboratory import VolumeLab, volume_lab

FORCE, CONSENT = "storage.deckhouse.io/force-detach", "storage.deckhouse.io/accept-data-loss"


async def cut_off_and_asked_to_let_go(lab: VolumeLab, replication: Replication) -> tuple[Story, str, str]:
    """As it was seen: the replication network of the user is cut, a write waits, and the attachment is deleted."""
    story = await Story.of(lab, replication)
    old, new, *_ = story.roles()
    await story.attach(old)
    await story.until_primary(old)
    assert await story.write(old, "before")
    for other in lab.cluster.nodes:
        if other != old:
            lab.cluster.inject(faults.Cut(node=old, peer=other))
    await lab.sleep(20)
    await story.detach(old)
    await story.attach(new)
    return story, old, new


async def say(lab: VolumeLab, **words: str | None) -> None:
    said = {FORCE: words.get("force"), CONSENT: words.get("consent")}
    await lab.store.patch(ReplicatedVolume, "v", patch={"metadata": {"annotations": said}})


@pytest.mark.parametrize("replication", [Replication.CONSISTENCY_AND_AVAILABILITY, Replication.AVAILABILITY])
def test_a_cut_off_user_whose_process_waits_is_forced_and_the_volume_used_elsewhere(replication: Replication) -> None:
    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, FIVE) as lab:
            story, old, new = await cut_off_and_asked_to_let_go(lab, replication)
            io = story.begin_write(old, "in flight", 8192)
            close = story.hold_open(old)
            await lab.sleep(60)
            assert story.primaries() == [old]
            under_way = (await story.volume()).status.datamesh_transitions
            assert [each.type for each in under_way] == [TransitionType.DETACH]
            await say(lab, force=old, consent="true")
            await story.until_primary(new)
            assert story.roles()[old] == "Secondary"
            assert io.state is not IoState.BLOCKED
            assert await story.write(new, "after")

            async def forgotten() -> bool:
                volume = await story.volume()
                return not {FORCE, CONSENT} & volume.metadata.annotations.keys()

            await lab.until("the words are taken off", forgotten, 60)
            events = [each for each in (await lab.store.list(Event)).items if each.reason == "IOFails"]
            assert [each.involved_object.name for each in events] == ["v"]
            assert old in events[0].message
            close()
            lab.cluster.inject(faults.Heal())
            await story.until_calm()
            await lab.sleep(60)
            assert set(story.copies().values()) == {"after"}
            assert not any(each.force_secondary for each in (await story.volume()).status.datamesh.members)

    run(main, seed=1)


@pytest.mark.parametrize("trouble", ["killed", "hangs"])
def test_an_agent_that_dies_or_whose_command_hangs_forces_all_the_same(trouble: str) -> None:
    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, FIVE) as lab:
            story, old, new = await cut_off_and_asked_to_let_go(lab, Replication.CONSISTENCY_AND_AVAILABILITY)
            story.hold_open(old)
            await lab.sleep(30)
            if trouble == "hangs":
                lab.cluster.inject(faults.Hang(node=old, command="drbdsetup secondary"))
            else:
                lab.cluster.inject(faults.AgentKill(node=old))
            await say(lab, force=old, consent="true")
            if trouble == "hangs":
                await lab.sleep(90)
                replica = await story.replica_on(old)
                assert replica is not None
                error = replica.status.drbd.errors.last_promotion_error
                assert error is not None
                assert (error.reason, "--force" in error.command) == ("CommandHung", True)
                assert story.primaries() == [old]
                lab.cluster.inject(faults.Release(node=old))
            await story.until_primary(new)

    run(main, seed=1)


def test_one_that_was_out_of_reach_is_forced_when_it_is_back() -> None:
    """Nobody used it elsewhere, so nothing but the person's word demotes it."""

    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, FIVE) as lab:
            story = await Story.of(lab, Replication.CONSISTENCY_AND_AVAILABILITY)
            old, *_ = story.roles()
            await story.attach(old)
            await story.until_primary(old)
            story.hold_open(old)
            lab.cluster.inject(faults.Isolate(node=old))
            await lab.sleep(90)
            await say(lab, force=old, consent="true")
            await story.detach(old)

            async def taken_for_detached() -> bool:
                volume = await story.volume()
                return FORCE not in volume.metadata.annotations and not volume.status.datamesh_transitions

            await lab.until("it is taken for detached", taken_for_detached, 120)
            assert story.primaries() == [old]
            lab.cluster.inject(faults.Heal())

            async def demoted() -> bool:
                return story.primaries() == []

            await lab.until("it is Secondary", demoted, 120)

            async def forgotten() -> bool:
                return not any(each.force_secondary for each in (await story.volume()).status.datamesh.members)

            await lab.until("the word is forgotten", forgotten, 60)
            await story.until_calm()

    run(main, seed=1)


def test_a_held_user_without_a_disk_is_forced_and_not_held_any_more() -> None:
    """On 2D one copy goes under an access replica: its agent suspends its I/O, and a person has it detached."""

    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, FIVE) as lab:
            story = await Story.of(lab, Replication.CONSISTENCY)
            first, second = story.roles()
            far = await story.free_node()
            await story.attach(far)
            await story.until_primary(far)
            story.hold_open(far)
            lab.cluster.inject(faults.NodeDown(node=second))
            await lab.sleep(30)
            await story.detach(far)
            await lab.sleep(30)
            assert story.primaries() == [far]
            await say(lab, force=far, consent="true")

            async def demoted() -> bool:
                return story.primaries() == []

            await lab.until("it is Secondary", demoted, 120)
            lab.cluster.inject(faults.NodeUp(node=second))
            await story.attach(first)
            await story.until_primary(first)
            assert await story.write(first, "after")

    run(main, seed=1)
