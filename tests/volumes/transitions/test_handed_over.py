"""The last copy with a vote loses its disk, or its node, when its replacement is good and has no vote yet."""

from __future__ import annotations

import pytest

from quorate.api import annotation_keys
from quorate.api.annotation_keys import EVACUATE
from quorate.api.core import Node
from quorate.api.storage import ReplicatedVolume, ReplicatedVolumeReplica
from quorate.api.storage.configuration import Replication
from quorate.api.storage.drbd import ReplicaType
from quorate.engine.simulation import Simulation, run
from quorate.lab import faults
from quorate.lab.layout import Layout
from tests.support.faults import Sent
from tests.volumes.attach.stories import Story
from tests.volumes.laboratory import VolumeLab, volume_lab

D = ReplicaType.DISKFUL


async def until_good_without_a_vote(lab: VolumeLab, story: Story, old: str) -> str:
    """The node is to be emptied; the controllers die as soon as the other copy comes up, and it becomes good."""

    def die(write: Sent) -> None:
        [volume] = [record.typed for record in lab.store.read_page(ReplicatedVolume.KIND).records]
        replicas = [record.typed for record in lab.store.read_page(ReplicatedVolumeReplica.KIND).records]
        assert isinstance(volume, ReplicatedVolume)
        steps = [step for each in volume.status.datamesh_transitions for step in each.steps]
        connects = any(step.name == "Connect" and step.status.value == "Active" for step in steps)
        told = {
            each.status.drbd.config.datamesh_revision for each in replicas if isinstance(each, ReplicatedVolumeReplica)
        }
        if connects and told == {volume.status.datamesh_revision} and lab.controller is not None:
            lab.kill()

    lab.watcher = die
    await lab.store.patch(Node, old, patch={"metadata": {"annotations": {EVACUATE: "true"}}})
    await lab.sleep(120)
    lab.watcher = None
    assert lab.controller is None
    [new] = [node for node in await story.nodes(D) if node != old]
    lab.cluster.driver.catch_up()
    [seen] = lab.cluster.node(new).host.kernel.status("v")
    assert seen["devices"][0]["disk-state"] == "UpToDate"
    return new


@pytest.mark.parametrize("used", [False, True], ids=["unused", "in use"])
@pytest.mark.parametrize("lost", ["its disk", "its node"])
def test_a_person_hands_the_last_vote_over_and_nothing_that_was_written_is_lost(lost: str, used: bool) -> None:
    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, Layout(nodes=3)) as lab:
            story = await Story.of(lab, Replication.NONE)
            [old] = await story.nodes(D)
            await story.attach(old)
            await story.until_primary(old)
            assert await story.write(old, "kept")
            if not used:
                await story.detach(old)
                await story.until_primary()
            new = await until_good_without_a_vote(lab, story, old)
            if used:
                assert await story.write(old, "kept later", 4096)
            if lost == "its node":
                lab.cluster.inject(faults.NodeDown(old))
            else:
                lab.cluster.inject(faults.DriveFail(old, "1"))
                # DRBD lets go of a disk that fails when it next asks something of it.
                lab.cluster.node(old).host.kernel.detach(story.minor(old), force=True)
                lab.cluster.driver.touch()
            lab.start()
            await lab.sleep(120)
            status = (await story.volume()).status
            assert [each.node_name for each in status.datamesh.members if not each.hidden] == [old]
            assert "force-remove" in status.message
            if used:
                await story.detach(old)
            said = {annotation_keys.FORCE_REMOVE: "v-0", annotation_keys.ACCEPT_DATA_LOSS: "true"}
            if used and lost == "its node":
                said[annotation_keys.FORCE_DETACH] = old
            await lab.store.patch(ReplicatedVolume, "v", patch={"metadata": {"annotations": said}})

            async def handed_over() -> bool:
                volume = await story.volume()
                votes = [each.node_name for each in volume.status.datamesh.members if not each.hidden]
                return votes == [new] and not said.keys() & volume.metadata.annotations.keys()

            await lab.until("the other copy has the vote", handed_over, 600)
            await story.attach(new)
            await story.until_primary(new)
            assert await story.write(new, "goes on", 8192)
            assert story.copies()[new] == "kept"
            if used:
                assert story.copies(4096)[new] == "kept later"
            # The other one comes back, has no say, and goes.
            lab.cluster.inject(faults.DriveMend(old, "1") if lost == "its disk" else faults.NodeUp(old))
            await lab.sleep(120)
            assert story.primaries() == [new]
            assert await story.write(new, "still goes on", 8192)

    run(main, seed=1)


def test_the_last_vote_is_handed_over_when_the_successor_is_heard_again() -> None:
    """Its agent is silent at the moment at which it would get the vote: that is waited for, and said."""

    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, Layout(nodes=3)) as lab:
            story = await Story.of(lab, Replication.NONE)
            [old] = await story.nodes(D)
            await story.attach(old)
            await story.until_primary(old)
            assert await story.write(old, "kept")
            await story.detach(old)
            await story.until_primary()
            new = await until_good_without_a_vote(lab, story, old)
            lab.cluster.inject(faults.DriveFail(old, "1"))
            lab.cluster.node(old).host.kernel.detach(story.minor(old), force=True)
            lab.cluster.driver.touch()
            lab.start()
            await lab.sleep(120)
            silent = False

            def silence(write: Sent) -> None:
                nonlocal silent
                [volume] = [record.typed for record in lab.store.read_page(ReplicatedVolume.KIND).records]
                assert isinstance(volume, ReplicatedVolume)
                steps = [step for each in volume.status.datamesh_transitions for step in each.steps]
                if not silent and any(step.name == "GiveWay" and step.status.value == "Active" for step in steps):
                    silent = True
                    lab.cluster.inject(faults.CutApi(new))

            lab.watcher = silence
            said = {annotation_keys.FORCE_REMOVE: "v-0", annotation_keys.ACCEPT_DATA_LOSS: "true"}
            await lab.store.patch(ReplicatedVolume, "v", patch={"metadata": {"annotations": said}})
            await lab.sleep(90)
            lab.watcher = None
            assert silent
            status = (await story.volume()).status
            assert [each.node_name for each in status.datamesh.members if not each.hidden] == [old]
            told = [each.message for each in status.datamesh_transitions if each.replica_name == "v-0"]
            assert told == [
                "v-0 on node-1 is the last copy that has a vote; it is given up when v-1 on node-2 is here and UpToDate"
            ]
            lab.cluster.inject(faults.Heal())

            async def handed_over() -> bool:
                volume = await story.volume()
                votes = [each.node_name for each in volume.status.datamesh.members if not each.hidden]
                return votes == [new] and not said.keys() & volume.metadata.annotations.keys()

            await lab.until("the other copy has the vote", handed_over, 600)
            await story.attach(new)
            await story.until_primary(new)
            assert story.copies()[new] == "kept"

    run(main, seed=1)
