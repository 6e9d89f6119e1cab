"""What is left on a node and belongs to no object is told of, keeps a volume of its name from being formed, and goes
only at a person's word."""

from __future__ import annotations

import pytest

from quorate.api import annotation_keys, conditions, core, names
from quorate.api.conditions.inventory import Orphans
from quorate.api.longhorn import Node
from quorate.api.longhorn.node import Orphan, OrphanType
from quorate.api.meta import Condition, ConditionStatus
from quorate.api.storage import ReplicatedVolume
from quorate.api.storage.configuration import Replication
from quorate.api.storage.drbd import ReplicaType
from quorate.engine.simulation import Simulation, run
from quorate.lab import faults
from tests.volumes.attach.stories import FIVE, SETTLED, Story
from tests.volumes.backups import copy_of, restore
from tests.volumes.laboratory import VolumeLab, volume_lab

D = ReplicaType.DISKFUL


async def inventory(lab: VolumeLab, node: str) -> Node:
    return await lab.store.get(Node, node, names.NAMESPACE)


async def orphans(lab: VolumeLab, node: str) -> tuple[Orphan, ...]:
    return (await inventory(lab, node)).status.orphans


async def told(lab: VolumeLab, node: str) -> Condition:
    found = conditions.find((await inventory(lab, node)).status.conditions, Orphans)
    assert found is not None
    return found


async def until_told(lab: VolumeLab, node: str, *sorts: OrphanType) -> tuple[Orphan, ...]:
    async def are_told() -> bool:
        return sorted(each.type for each in await orphans(lab, node)) == sorted(sorts)

    await lab.until(f"{node} tells of {sorts}", are_told, 180)
    return await orphans(lab, node)


async def remove(lab: VolumeLab, node: str, *found: Orphan) -> None:
    """What ``quorate orphan remove`` does."""
    said = {annotation_keys.REMOVE_ORPHANS: ",".join(each.id for each in found)}
    await lab.store.patch(Node, node, names.NAMESPACE, patch={"metadata": {"annotations": said}})


def volumes_on(lab: VolumeLab, node: str) -> list[str]:
    groups = lab.cluster.node(node).host.lvm.groups.values()
    return [name for group in groups for name in group.volumes if name.startswith("replica-v-")]


async def gone(lab: VolumeLab, name: str) -> None:
    async def is_gone() -> bool:
        return all(each.name != name for each in await lab.replicas())

    await lab.until(f"{name} is gone", is_gone)


def test_a_logical_volume_whose_drive_was_out_while_its_replica_left_is_told_of_when_the_drive_is_back() -> None:
    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, FIVE) as lab:
            story = await Story.of(lab, Replication.CONSISTENCY_AND_AVAILABILITY)
            node = (await story.nodes(D))[2]
            bay, _ = next(iter(lab.cluster.node(node).host.bays.items()))
            lab.cluster.inject(faults.DrivePull(node=node, drive=bay))
            lab.cluster.inject(faults.Reboot(node=node))
            await lab.sleep(90)
            said = {annotation_keys.FORCE_REMOVE: "v-2", annotation_keys.ACCEPT_DATA_LOSS: "true"}
            await lab.store.patch(ReplicatedVolume, "v", patch={"metadata": {"annotations": said}})
            await gone(lab, "v-2")
            await lab.until_ready()
            assert await orphans(lab, node) == ()
            assert (await told(lab, node)).status is ConditionStatus.FALSE
            lab.cluster.inject(faults.DriveInsert(node=node))
            (left,) = await until_told(lab, node, OrphanType.LOGICAL_VOLUME)
            assert (left.volume_name, left.holds_data) == ("v", True)
            await lab.sleep(1)
            condition = await told(lab, node)
            assert condition.reason == Orphans.ORPHANS_FOUND.code
            assert f"{left.name} of volume v" in condition.message
            # It is left alone, through the agent's next lives too.
            lab.cluster.inject(faults.Reboot(node=node))
            await lab.sleep(1200)
            assert await orphans(lab, node) == (left,)
            assert volumes_on(lab, node) == [left.name.partition("/")[2]]
            await remove(lab, node, left)
            await until_told(lab, node)
            await lab.sleep(1)
            assert volumes_on(lab, node) == []
            assert (await told(lab, node)).status is ConditionStatus.FALSE
            assert annotation_keys.REMOVE_ORPHANS not in (await inventory(lab, node)).metadata.annotations

    run(main, seed=5)


def test_a_machine_that_was_cut_off_while_its_node_was_deleted_tells_of_its_resource_and_its_disk() -> None:
    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, FIVE) as lab:
            story = await Story.of(lab, Replication.CONSISTENCY_AND_AVAILABILITY)
            node = (await story.nodes(D))[1]
            lab.cluster.inject(faults.Isolate(node=node))
            lab.cluster.inject(faults.CutApi(node=node))
            await lab.sleep(60)
            await lab.store.delete(core.Node, node)
            await gone(lab, "v-1")
            lab.cluster.inject(faults.Heal())
            resource, disk = sorted(
                await until_told(lab, node, OrphanType.RESOURCE, OrphanType.LOGICAL_VOLUME),
                key=lambda each: each.type is OrphanType.LOGICAL_VOLUME,
            )
            assert (resource.name, resource.volume_name, resource.holds_data) == ("v", "v", True)
            assert (disk.volume_name, disk.holds_data) == ("v", True)
            # The disk is open while DRBD has it: it stays, whatever is said of it.
            await remove(lab, node, disk)
            await lab.sleep(120)
            kept = {each.id: each.message for each in await orphans(lab, node)}
            assert "is open" in kept[disk.id]
            await remove(lab, node, disk, resource)
            await until_told(lab, node)
            assert volumes_on(lab, node) == []
            assert "v" not in lab.cluster.node(node).host.kernel.resources()

    run(main, seed=5)


def test_a_replica_that_is_there_is_no_orphan_whatever_a_person_says() -> None:
    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, FIVE) as lab:
            story = await Story.of(lab, Replication.CONSISTENCY)
            node = (await story.nodes(D))[0]
            group = next(iter(lab.cluster.node(node).host.lvm.groups.values()))
            uuids = [volume.uuid for volume in group.volumes.values()]
            said = {annotation_keys.REMOVE_ORPHANS: ",".join([*uuids, "drbd/v"])}
            await lab.store.patch(Node, node, names.NAMESPACE, patch={"metadata": {"annotations": said}})
            await lab.sleep(120)
            assert len(volumes_on(lab, node)) == 1
            assert len(await story.nodes(D)) == 2
            assert annotation_keys.REMOVE_ORPHANS not in (await inventory(lab, node)).metadata.annotations

    run(main, seed=5)


@pytest.mark.parametrize("agents", ["start again", "go on"])
def test_a_volume_that_a_restored_store_knows_without_its_disks_is_not_formed_beside_its_data(agents: str) -> None:
    """Its old nodes are cordoned, so it would find its places elsewhere."""

    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, FIVE) as lab:
            name = await lab.provide(Replication.CONSISTENCY)
            await lab.sleep(SETTLED)
            lab.kill()
            await lab.create("v", name)
            before = copy_of(lab.store)
            lab.start()
            await lab.until_ready()
            story = Story(lab)
            old = await story.nodes(D)
            await story.attach(old[0])
            await story.until_primary(old[0])
            assert await story.write(old[0], "kept")
            await story.detach(old[0])
            await story.until_primary()
            lab.kill()
            restarted = lab.cluster.nodes if agents == "start again" else ()
            for node in restarted:
                lab.cluster.inject(faults.NodeDown(node))
            await restore(lab, before)
            for node in old:
                await lab.store.patch(core.Node, node, patch={"spec": {"unschedulable": True}})
            for node in restarted:
                lab.cluster.inject(faults.NodeUp(node))
            lab.start()
            await lab.sleep(600)
            assert set(story.copies()) == set(old)
            assert set(story.copies().values()) == {"kept"}
            message = (await lab.volume()).status.message
            for node in old:
                left = [each.name for each in await orphans(lab, node)]
                # A machine that went down has no resource up any more.
                assert len(left) == (1 if restarted else 2)
                assert all(f"{node}/{each}" in message for each in left)
            assert await lab.replicas() == ()
            # A person gives the old data up: then, and only then, it is formed.
            for node in old:
                await remove(lab, node, *await orphans(lab, node))
            await lab.until_ready()
            assert set(await story.nodes(D)).isdisjoint(old)

    run(main, seed=1)


def test_what_a_volume_left_without_data_keeps_nobody_from_being_formed() -> None:
    """A logical volume on which DRBD's metadata were never made, of a formation that was given up, say."""

    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, FIVE) as lab:
            name = await lab.provide(Replication.NONE)
            await lab.sleep(SETTLED)
            agent, group = lab.cluster.node("node-3").agent, next(iter(lab.cluster.node("node-3").host.lvm.groups))
            assert agent is not None
            what = ("--addtag", "quorate.llv=lost", "--name", "replica-v-4-01234567", "--size", f"{8 << 20}b", group)
            made = await agent.node.machine.run("lvcreate", "--yes", *what, silence=10.0)
            assert made.exit_code == 0, made
            (left,) = await until_told(lab, "node-3", OrphanType.LOGICAL_VOLUME)
            assert (left.volume_name, left.holds_data) == ("v", False)
            await lab.create("v", name)
            await lab.until_ready()
            assert await orphans(lab, "node-3") == (left,)

    run(main, seed=1)
