"""A member whose drive is gone while its agent lives: it can do nothing it is told, and must not hold up the volume."""

from __future__ import annotations

import pytest

from quorate.api import annotation_keys, core
from quorate.api.storage import ReplicatedStorageClass, ReplicatedVolume
from quorate.api.storage.configuration import Replication
from quorate.api.storage.drbd import ReplicaType
from quorate.engine.simulation import Simulation, run
from quorate.lab import faults
from quorate.lab.layout import Layout
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


async def used_without_its_drive(lab: VolumeLab) -> tuple[Story, list[str]]:
    """A volume of two copies in use on the first node, whose drive is dead."""
    story = await Story.of(lab, Replication.CONSISTENCY)
    nodes = await story.nodes(D)
    await story.attach(nodes[0])
    await story.until_primary(nodes[0])
    assert await story.write(nodes[0], "before")
    lab.cluster.inject(faults.DriveFail(node=nodes[0], drive="1"))
    story.begin_write(nodes[0], "finds out")
    await lab.sleep(20)
    return story, nodes


async def evacuate(lab: VolumeLab, node: str) -> None:
    said = {annotation_keys.EVACUATE: "true"}
    await lab.store.patch(core.Node, node, patch={"metadata": {"annotations": said}})


@pytest.mark.parametrize("which", [0, 1], ids=["the one without a drive", "the other one"])
def test_a_replacement_beside_a_user_without_its_drive_gives_the_volume_its_copies_back(which: int) -> None:
    """The user's kernel holds on to a quorum that it would not get again, and refuses the link to the new copy."""

    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, FIVE) as lab:
            story, nodes = await used_without_its_drive(lab)
            await evacuate(lab, nodes[which])

            async def good() -> bool:
                return (await story.volume()).status.effective_layout.up_to_date_voters == 2

            await lab.until("two copies are good", good, 120)
            await lab.sleep(60)
            assert await story.write(nodes[0], "after", seconds=10)
            assert story.primaries() == [nodes[0]]
            held = [node for node, tag in story.copies().items() if tag == "after"]
            assert len(held) == 2
            assert nodes[0] not in held

    run(main, seed=1)


def test_a_drive_that_is_back_is_used_again_although_links_were_refused_meanwhile() -> None:
    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, FIVE) as lab:
            story, nodes = await used_without_its_drive(lab)
            # Nowhere to copy to: the newcomer's agent is slow, and the link to it is all that there is of it.
            for node in lab.cluster.nodes:
                if node not in nodes:
                    lab.cluster.inject(faults.Hang(node, "drbdadm"))
            await evacuate(lab, nodes[1])
            await lab.sleep(300)
            lab.cluster.inject(faults.DriveMend(node=nodes[0], drive="1"))

            async def whole() -> bool:
                replica = await story.replica_on(nodes[0])
                shown = replica.status.drbd.status if replica is not None else None
                return shown is not None and shown.devices[0].disk_state == "UpToDate"

            await lab.until("the disk is used again", whole, 120)
            assert await story.write(nodes[0], "after", seconds=10)
            assert story.copies()[nodes[0]] == story.copies()[nodes[1]] == "after"

    run(main, seed=1)


@pytest.mark.parametrize("leaves", [False, True], ids=["both stay", "one is detached"])
def test_both_users_of_a_single_copy_go_on_when_its_drive_is_back(leaves: bool) -> None:
    """The first to write begins a generation that the other, who stands still, has never seen: it has to meet it."""

    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, FIVE) as lab:
            story = await Story.of(lab, Replication.NONE)
            (copy,) = await story.nodes(D)
            users = [node for node in lab.cluster.nodes if node != copy][:2]
            for number, node in enumerate(users):
                await story.attach(node)
                await story.until_primary(*users[: number + 1])
            assert await story.write(users[0], "before")
            lab.cluster.inject(faults.DriveFail(node=copy, drive="1"))
            await lab.sleep(30)
            for node in users:
                story.begin_write(node, f"{node} waits")
            await lab.sleep(30)
            if leaves:
                await story.detach(users[1])
            lab.cluster.inject(faults.DriveMend(node=copy, drive="1"))
            staying = users[:1] if leaves else users
            await lab.sleep(120)
            await story.until_primary(*staying, patience=300)
            for node in staying:
                assert await story.write(node, f"{node} after", seconds=10)
                assert story.copies() == {copy: f"{node} after"}

    run(main, seed=1)


def test_whoever_left_meanwhile_has_no_vote_on_the_drive_that_comes_back() -> None:
    """Three copies survive the loss of one, also for the member whose metadata slept through a removal."""

    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, Layout(nodes=6)) as lab:
            story = await Story.of(lab, Replication.CONSISTENCY_AND_AVAILABILITY)
            keeping = {"spec": {"eligibleNodesPolicy": {"removeLostReplica": False}}}
            for each in (await lab.store.list(ReplicatedStorageClass)).items:
                await lab.store.patch(ReplicatedStorageClass, each.name, patch=keeping)
            nodes = await story.nodes(D)
            await story.attach(nodes[1])
            await story.until_primary(nodes[1])
            lab.cluster.inject(faults.NodeDown(nodes[2]))
            await lab.sleep(900)
            drive, _ = next(iter(lab.cluster.node(nodes[0]).host.bays.items()))
            lab.cluster.inject(faults.DrivePull(node=nodes[0], drive=drive))
            assert await story.write(nodes[1], "one", seconds=20)
            await lab.store.delete(core.Node, nodes[2])
            await lab.sleep(120)
            mesh, without_disk = (await story.volume()).status.datamesh, await story.replica_on(nodes[0])
            assert "v-2" not in [each.name for each in mesh.members]
            assert without_disk is not None
            assert (mesh.forget, without_disk.status.drbd.actual.forgotten) == ((2,), ())
            lab.cluster.inject(faults.DriveInsert(node=nodes[0]))
            await lab.sleep(120)
            assert (await story.volume()).status.datamesh.forget == ()
            await story.detach(nodes[1])
            await story.attach(nodes[0])
            await story.until_primary(nodes[0])
            (other,) = set(await story.nodes(D)) - set(nodes)
            lab.cluster.inject(faults.NodeDown(other))
            assert await story.write(nodes[0], "two", 4096, seconds=30)

    run(main, seed=1)
