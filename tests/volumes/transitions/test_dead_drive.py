"""A member whose drive is gone while its agent lives: it can do nothing it is told, and must not hold up the volume."""

from __future__ import annotations

from quorate.api import annotation_keys
from quorate.api.storage import ReplicatedVolume
from quorate.api.storage.configuration import Replication
from quorate.api.storage.drbd import ReplicaType
from quorate.engine.simulation import Simulation, run
from quorate.lab import faults
from tests.volumes.attach.stories import FIVE, Story
from tests.volumes.laboratory import VolumeLab, volume_lab

D = ReplicaType.DISKFUL


async def without_a_drive(lab: VolumeLab) -> tuple[Story, list[str]]:
    """A volume of three copies in use on the first node; the third has lost its drive, and has been started anew."""
    story = await Story.of(lab, Replication.CONSISTENCY_AND_AVAILABILITY)
    nodes = await story.nodes(D)
    await story.attach(nodes[0])
    await story.until_primary(nodes[0])
    drive, _ = next(iter(lab.cluster.node(nodes[2]).host.bays.items()))
    lab.cluster.inject(faults.DrivePull(node=nodes[2], drive=drive))
    lab.cluster.inject(faults.Reboot(node=nodes[2]))
    await lab.sleep(90)
    return story, nodes


def test_the_volume_is_moved_and_nobody_waits_for_it() -> None:
    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, FIVE) as lab:
            story, nodes = await without_a_drive(lab)
            await story.detach(nodes[0])
            await story.attach(nodes[1])
            await story.until_primary(nodes[1], patience=30)
            assert await story.write(nodes[1], "moved")
            await story.until_calm()
            assert [each.name for each in (await story.volume()).status.datamesh.members if each.excused] == ["v-2"]

    run(main, seed=5)


def test_a_person_has_it_removed_by_force() -> None:
    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, FIVE) as lab:
            story, nodes = await without_a_drive(lab)
            said = {annotation_keys.FORCE_REMOVE: "v-2", annotation_keys.ACCEPT_DATA_LOSS: "true"}
            await lab.store.patch(ReplicatedVolume, "v", patch={"metadata": {"annotations": said}})

            async def replaced() -> bool:
                copies = await story.nodes(D)
                return nodes[2] not in copies and len(copies) == 3

            await lab.until("the copy is elsewhere", replaced, 60)
            await lab.until_ready()

    run(main, seed=5)
