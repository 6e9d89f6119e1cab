"""A copy of 2D that a person gives up: the other one goes on, also where there is no node for a third."""

from __future__ import annotations

from quorate.api import annotation_keys
from quorate.api.storage import ReplicatedVolume
from quorate.api.storage.configuration import Replication
from quorate.api.storage.drbd import ReplicaType
from quorate.engine.simulation import Simulation, run
from quorate.lab import faults
from quorate.lab.kernel.io import IoState
from quorate.lab.layout import Layout
from tests.volumes.attach.stories import Story
from tests.volumes.laboratory import volume_lab

D = ReplicaType.DISKFUL
SAID = {annotation_keys.FORCE_REMOVE: "v-1", annotation_keys.ACCEPT_DATA_LOSS: "true"}


async def _give_up(story: Story) -> None:
    await story.lab.store.patch(ReplicatedVolume, "v", patch={"metadata": {"annotations": SAID}})


def test_the_survivor_counts_anew_and_the_write_that_waits_is_done() -> None:
    """The kernel does not count when it forgets a member: the agent has it do so (decision 0004)."""

    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, Layout(nodes=2, zones=1, drives=1)) as lab:
            story = await Story.of(lab, Replication.CONSISTENCY)
            here, lost = await story.nodes(D)
            await story.attach(here)
            await story.until_primary(here)
            lab.cluster.inject(faults.NodeDown(lost))
            await lab.sleep(60)
            waiting = story.begin_write(here, "waits")
            await lab.sleep(5)
            assert waiting.state is not IoState.DONE
            await _give_up(story)

            async def served() -> bool:
                lab.cluster.driver.catch_up()
                return waiting.state is IoState.DONE

            await lab.until("the write is done", served, 60)
            assert await story.write(here, "goes on")
            await story.until_calm()

    run(main, seed=1)


def test_the_copy_that_was_given_up_goes_when_its_node_is_back_and_makes_room_for_another_there() -> None:
    """The word that removed it holds for its disk too: there may be no other node for the copy that is promised."""

    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, Layout(nodes=2, zones=1, drives=1)) as lab:
            story = await Story.of(lab, Replication.CONSISTENCY)
            _, lost = await story.nodes(D)
            lab.cluster.inject(faults.NodeDown(lost))
            await lab.sleep(60)
            await _give_up(story)

            async def spent() -> bool:
                return not SAID.keys() & (await story.volume()).metadata.annotations.keys()

            await lab.until("the word is taken back", spent, 60)
            lab.cluster.inject(faults.NodeUp(lost))

            async def replaced() -> bool:
                members = (await story.volume()).status.datamesh.members
                return [each.name for each in members if not each.hidden] == ["v-0", "v-2"]

            await lab.until("there is another copy", replaced, 120)
            await lab.until_ready()
            assert await story.replica_on(lost) is not None

    run(main, seed=2)
