"""What else happens to drives, and what must not come of it: each situation of the issue, in the lab."""

from __future__ import annotations

import pytest

from quorate.api import annotation_keys
from quorate.api.baremetal import Volume
from quorate.api.baremetal.drive import DriveHealth, OperationalStatus
from quorate.api.core import Event
from quorate.api.storage import LVMVolumeGroup, ReplicatedVolume
from quorate.api.storage.configuration import Replication
from quorate.engine.simulation import Simulation, run
from quorate.lab import faults
from quorate.lab.layout import Layout

from .laboratory import drive_lab, in_use

BOTH, AVAILABILITY, NONE = Replication.CONSISTENCY_AND_AVAILABILITY, Replication.AVAILABILITY, Replication.NONE
FIVE = Layout(nodes=5)
OPERATIVE, RELEASING, RELEASED, FAILED, REMOVING, REMOVED = OperationalStatus


def test_several_drives_of_one_node() -> None:
    async def main(sim: Simulation) -> None:
        async with drive_lab(sim, Layout(nodes=5, drives=3)) as lab:
            await lab.volumes(8, BOTH, slots=(1, 2, 3))
            drives = [await lab.drive("node-2", slot) for slot in (1, 2, 3)]
            for drive in drives:
                await lab.annotate(drive, health="BAD")
            for slot, drive in enumerate(drives, 1):
                await lab.replace(drive, slot)
            for number in range(8):
                await lab.until_copies("v" if not number else f"v{number}")
            assert len(await lab.lab.replicas()) == 24

    run(main, seed=11)


def test_drives_of_several_nodes_at_once() -> None:
    async def main(sim: Simulation) -> None:
        async with drive_lab(sim, Layout(nodes=6)) as lab:
            await lab.volumes(6, BOTH)
            nodes = [await lab.node_of(f"v-{number}") for number in range(3)]
            user = await in_use(lab, nodes[2])
            assert await user.write(nodes[2], "kept")
            drives = [await lab.drive(node) for node in nodes[:2]]
            for drive in drives:
                await lab.annotate(drive, health="BAD")
            for drive in drives:
                await lab.replace(drive)
            for number in range(6):
                await lab.until_copies("v" if not number else f"v{number}")
            assert {tag for name, tag in user.copies().items() if name in lab.up_to_date("v")} == {"kept"}

    run(main, seed=12)


def test_every_copy_of_a_volume_is_on_a_drive_that_leaves() -> None:
    async def main(sim: Simulation) -> None:
        async with drive_lab(sim, Layout(nodes=6)) as lab:
            await lab.volumes(1, BOTH)
            nodes = [await lab.node_of(f"v-{number}") for number in range(3)]
            drives = [await lab.drive(node) for node in nodes]
            for drive in drives:
                await lab.annotate(drive, health="BAD")
            for drive in drives:
                await lab.until_phase(drive, RELEASED, patience=900)
            await lab.until_copies("v")
            assert not set(lab.up_to_date("v")) & set(nodes)

    run(main, seed=13)


@pytest.mark.parametrize("replication", [BOTH, AVAILABILITY])
def test_a_drive_lost_without_warning(replication: Replication) -> None:
    async def main(sim: Simulation) -> None:
        async with drive_lab(sim, FIVE) as lab:
            await lab.volumes(2, replication)
            node, user = await lab.node_of("v-0"), await lab.node_of("v-1")
            story = await in_use(lab, user)
            assert await story.write(user, "before")
            drive = await lab.drive(node)
            lab.lab.cluster.inject(faults.DrivePull(node=node, drive="1"))
            assert await story.write(user, "after")
            await lab.sleep(240)
            assert (await lab.again(drive)).status.operational_status is OPERATIVE
            await lab.until_phase(drive, RELEASED, patience=900)
            found = await lab.again(drive)
            assert found.status.health is DriveHealth.BAD
            told = await lab.events(drive)
            assert "DriveStatusOffline" in told
            assert "MissingDriveReplacementInitiated" in told
            await lab.annotate(drive, replacement="ready")
            found = await lab.until_phase(drive, REMOVED)
            assert "nothing left to wipe" in found.status.message
            copies = 3 if replication is BOTH else 2
            for name in ("v", "v1"):
                await lab.until_copies(name, copies)
            assert {tag for name, tag in story.copies().items() if name in lab.up_to_date("v")} == {"after"}

    run(main, seed=14)


def test_the_node_with_the_drive_is_lost_in_the_middle_and_comes_back() -> None:
    async def main(sim: Simulation) -> None:
        async with drive_lab(sim, FIVE) as lab:
            await lab.volumes(3, BOTH, size="4Gi")
            node = await lab.node_of("v-0")
            drive = await lab.drive(node)
            await lab.annotate(drive, health="BAD")
            await lab.until_phase(drive, RELEASING)
            await lab.sleep(5)
            lab.lab.cluster.inject(faults.NodeDown(node=node))
            await lab.sleep(300)
            lab.lab.cluster.inject(faults.NodeUp(node=node))
            await lab.replace(drive, patience=1500)
            for name in ("v", "v1", "v2"):
                await lab.until_copies(name)

    run(main, seed=15)


def test_the_node_that_takes_over_is_lost_in_the_middle() -> None:
    async def main(sim: Simulation) -> None:
        async with drive_lab(sim, Layout(nodes=6)) as lab:
            await lab.volumes(1, BOTH, size="4Gi")
            drive = await lab.drive(await lab.node_of("v-0"))
            await lab.annotate(drive, health="BAD")

            async def placed() -> bool:
                return any(each.name == "v-3" and each.spec.node_name for each in await lab.lab.replicas())

            await lab.until("the replacement has a place", placed)
            await lab.sleep(3)
            lost = await lab.node_of("v-3")
            lab.lab.cluster.inject(faults.NodeDown(node=lost))
            await lab.until_phase(drive, RELEASED, patience=3600)
            await lab.until_copies("v")
            assert lost not in lab.up_to_date("v")

    run(main, seed=16)


def test_health_that_flaps_moves_nothing_for_good_and_leaves_nothing_behind() -> None:
    async def main(sim: Simulation) -> None:
        async with drive_lab(sim, FIVE) as lab:
            await lab.volumes(2, BOTH, size="4Gi")
            drive = await lab.drive(await lab.node_of("v-0"))
            random = sim.random("flapping")
            for _ in range(12):
                await lab.annotate(drive, health="BAD")
                await lab.sleep(random.uniform(0.1, 4))
                await lab.annotate(drive, health="GOOD")
                await lab.sleep(random.uniform(0.1, 4))
            await lab.annotate(drive, health=None)
            found = await lab.until_phase(drive, OPERATIVE, RELEASED)
            if found.status.operational_status is RELEASED:
                await lab.annotate(drive, replacement="restart")
                found = await lab.until_phase(drive, OPERATIVE)

            async def clear() -> bool:
                replicas = await lab.lab.replicas()
                return not (await lab.store.list(Volume)).items and len(replicas) == 6

            await lab.until("nothing is left behind", clear, 900)
            for name in ("v", "v1"):
                await lab.until_copies(name)
            assert "DriveReleaseCancelled" in await lab.events(drive)

    run(main, seed=17)


def test_the_only_copy_on_a_drive_that_is_lost_fails_and_works_again_when_the_drive_is_put_back() -> None:
    async def main(sim: Simulation) -> None:
        async with drive_lab(sim, FIVE) as lab:
            await lab.volumes(1, NONE)
            node = await lab.node_of("v-0")
            story = await in_use(lab, node)
            assert await story.write(node, "mine")
            await story.detach(node)
            await story.until_primary()
            drive = await lab.drive(node)
            lab.lab.cluster.inject(faults.DrivePull(node=node, drive="1"))
            lab.lab.cluster.inject(faults.Reboot(node=node))
            found = await lab.until_phase(drive, FAILED, patience=900)
            assert "volume v" in found.status.message
            # Nobody can talk it into throwing that away.
            await lab.annotate(drive, replacement="ready")
            await lab.sleep(120)
            assert (await lab.again(drive)).status.operational_status is FAILED
            lab.lab.cluster.inject(faults.DriveInsert(node=node))
            lab.lab.cluster.inject(faults.Reboot(node=node))
            await lab.annotate(drive, replacement="restart")
            await lab.until_phase(drive, OPERATIVE, RELEASING, RELEASED, patience=600)
            await lab.lab.until_ready("v", patience=600)
            assert "mine" in story.copies().values()
            assert lab.up_to_date("v")

    run(main, seed=18)


def test_a_drive_pulled_while_it_is_being_emptied() -> None:
    async def main(sim: Simulation) -> None:
        async with drive_lab(sim, FIVE) as lab:
            await lab.volumes(3, BOTH, size="4Gi")
            node = await lab.node_of("v-0")
            drive = await lab.drive(node)
            await lab.annotate(drive, health="BAD")
            await lab.until_phase(drive, RELEASING)
            await lab.sleep(6)
            lab.lab.cluster.inject(faults.DrivePull(node=node, drive="1"))
            await lab.until_phase(drive, RELEASED, patience=1500)
            await lab.annotate(drive, replacement="ready")
            await lab.until_phase(drive, REMOVED)
            for name in ("v", "v1", "v2"):
                await lab.until_copies(name)

    run(main, seed=19)


def test_the_wrong_drive_is_pulled_and_put_back() -> None:
    async def main(sim: Simulation) -> None:
        async with drive_lab(sim, FIVE) as lab:
            await lab.volumes(4, BOTH, slots=(1, 2))
            drive, other = await lab.drive("node-1", 1), await lab.drive("node-1", 2)
            await lab.annotate(drive, health="BAD", replacement="ready")
            await lab.until_phase(drive, REMOVED)
            lab.lab.cluster.inject(faults.DrivePull(node="node-1", drive="2"))
            await lab.sleep(100)
            told = [
                each
                for each in (await lab.store.list(Event)).items
                if each.involved_object.name == other.name and each.reason == "DriveStatusOffline"
            ]
            assert drive.spec.serial_number in told[0].message
            lab.lab.cluster.inject(faults.DriveInsert(node="node-1"))
            await lab.sleep(600)
            assert lab.history[other.spec.serial_number] == [OPERATIVE]
            for number in range(4):
                await lab.until_copies("v" if not number else f"v{number}", patience=900)

    run(main, seed=20)


def test_the_same_drive_put_back_in_time_is_as_before() -> None:
    async def main(sim: Simulation) -> None:
        async with drive_lab(sim, FIVE) as lab:
            await lab.volumes(1, BOTH)
            node, user = await lab.node_of("v-0"), await lab.node_of("v-1")
            story = await in_use(lab, user)
            drive = await lab.drive(node)
            lab.lab.cluster.inject(faults.DrivePull(node=node, drive="1"))
            assert await story.write(user, "meanwhile")
            await lab.sleep(120)
            lab.lab.cluster.inject(faults.DriveInsert(node=node))
            await lab.sleep(900)
            assert lab.history[drive.spec.serial_number] == [OPERATIVE]
            assert sorted(each.name for each in await lab.lab.replicas()) == ["v-0", "v-1", "v-2"]

    run(main, seed=21)


def test_the_same_drive_put_back_too_late_is_taken_back_by_a_person() -> None:
    async def main(sim: Simulation) -> None:
        async with drive_lab(sim, FIVE) as lab:
            await lab.volumes(1, BOTH)
            node = await lab.node_of("v-0")
            drive = await lab.drive(node)
            lab.lab.cluster.inject(faults.DrivePull(node=node, drive="1"))
            await lab.until_phase(drive, RELEASED, patience=900)
            lab.lab.cluster.inject(faults.DriveInsert(node=node))
            await lab.sleep(300)
            assert (await lab.again(drive)).status.operational_status is RELEASED
            await lab.annotate(drive, replacement="restart")
            await lab.until_phase(drive, OPERATIVE)

            async def clear() -> bool:
                found = await lab.again(drive)
                return len(await lab.lab.replicas()) == 3 and annotation_keys.DRIVE_REPLACEMENT[0] not in (
                    found.metadata.annotations
                )

            await lab.until("what was kept is gone, and the word is spent", clear)
            await lab.until_copies("v")
            assert "DriveRestarted" in await lab.events(drive)

    run(main, seed=22)


def test_a_small_cluster_has_no_other_place_than_the_one_that_the_new_drive_gives() -> None:
    """Three copies on three nodes: a dead drive's replica goes first, and comes back on the new drive."""

    async def main(sim: Simulation) -> None:
        async with drive_lab(sim, Layout(nodes=3)) as lab:
            await lab.volumes(2, BOTH)
            node, user = await lab.node_of("v-0"), await lab.node_of("v-1")
            story = await in_use(lab, user)
            drive = await lab.drive(node)
            lab.lab.cluster.inject(faults.DrivePull(node=node, drive="1"))
            assert await story.write(user, "kept")
            await lab.replace(drive, patience=1200)
            for name in ("v", "v1"):
                await lab.until_copies(name, patience=900)
            assert sorted(lab.up_to_date("v")) == ["node-1", "node-2", "node-3"]
            assert set(story.copies().values()) == {"kept"}

    run(main, seed=23)


def test_a_small_cluster_keeps_a_bad_drive_that_still_gives_its_promised_copy() -> None:
    async def main(sim: Simulation) -> None:
        async with drive_lab(sim, Layout(nodes=3)) as lab:
            await lab.volumes(1, BOTH)
            drive = await lab.drive("node-1")
            await lab.annotate(drive, health="BAD", replacement="ready")
            await lab.sleep(900)
            found = await lab.again(drive)
            assert found.status.operational_status is RELEASING
            assert "no place" in found.status.message
            assert len(lab.up_to_date("v")) == 3

    run(main, seed=24)


def test_a_volume_that_is_deleted_needs_no_release() -> None:
    async def main(sim: Simulation) -> None:
        async with drive_lab(sim, FIVE) as lab:
            await lab.volumes(2, BOTH)
            drive = await lab.drive(await lab.node_of("v-0"))
            await lab.annotate(drive, health="BAD")
            await lab.until_phase(drive, RELEASED)
            await lab.store.delete(ReplicatedVolume, "v")
            await lab.lab.until_gone("v")
            await lab.replace(drive)
            await lab.until_copies("v1")

    run(main, seed=25)


def test_the_drive_that_takes_over_goes_bad_as_well() -> None:
    async def main(sim: Simulation) -> None:
        async with drive_lab(sim, Layout(nodes=6)) as lab:
            await lab.volumes(1, BOTH, size="4Gi")
            first = await lab.drive(await lab.node_of("v-0"))
            await lab.annotate(first, health="BAD")

            async def placed() -> bool:
                return any(each.name == "v-3" and each.spec.node_name for each in await lab.lab.replicas())

            await lab.until("the replacement has a place", placed)
            await lab.sleep(4)
            second = await lab.drive(await lab.node_of("v-3"))
            await lab.annotate(second, health="BAD")
            for drive in (first, second):
                await lab.until_phase(drive, RELEASED, patience=1500)
            await lab.until_copies("v")
            assert not {first.spec.node_id, second.spec.node_id} & set(lab.up_to_date("v"))

    run(main, seed=26)


def test_a_volume_that_is_just_being_made_is_made_elsewhere_or_moved() -> None:
    async def main(sim: Simulation) -> None:
        async with drive_lab(sim, Layout(nodes=6)) as lab:
            name = await lab.provide(BOTH)
            await lab.sleep(30)
            for number, patience in enumerate((0.2, 0.6, 1.2)):
                volume = f"young{number}"
                await lab.lab.create(volume, name)
                await lab.sleep(patience)
                drive = await lab.drive(f"node-{number + 1}")
                lab.lab.cluster.inject(faults.DriveFail(node=drive.spec.node_id, drive="1"))
                await lab.annotate(drive, health="BAD")
            for number in range(3):
                await lab.until_phase(await lab.drive(f"node-{number + 1}"), RELEASED, patience=1800)
                await lab.until_copies(f"young{number}", patience=1800)
                assert not {"node-1", "node-2", "node-3"} & set(lab.up_to_date(f"young{number}"))

    run(main, seed=27)


def test_a_suspect_drive_that_comes_back_after_its_grace_takes_no_copy_with_it() -> None:
    async def main(sim: Simulation) -> None:
        async with drive_lab(sim, Layout(nodes=3)) as lab:
            await lab.volumes(1, BOTH)
            node = await lab.node_of("v-0")
            drive = await lab.drive(node)
            await lab.annotate(drive, health="SUSPECT")
            await lab.until_phase(drive, RELEASING)
            await lab.sleep(60)
            lab.lab.cluster.inject(faults.DrivePull(node=node, drive="1"))

            async def seen() -> bool:
                return (await lab.said("v")).get("copy-lost") == "true"

            await lab.until("it is known that the drive gives nothing", seen, patience=600)
            await lab.sleep(3)
            lab.lab.cluster.inject(faults.DriveInsert(node=node))

            async def whole() -> bool:
                return len(lab.up_to_date("v")) == 3

            await lab.until("its copy is good again", whole)
            await lab.sleep(60)
            assert "v-0" in [each.name for each in await lab.lab.replicas() if not each.deleting]

            async def forgotten() -> bool:
                return "copy-lost" not in await lab.said("v")

            await lab.until("what was said of the drive is taken back", forgotten)

    run(main, seed=5)


def test_a_good_copy_stays_when_another_drive_of_its_group_is_lost() -> None:
    async def main(sim: Simulation) -> None:
        async with drive_lab(sim, Layout(nodes=3, drives=3)) as lab:
            await lab.volumes(1, BOTH)
            node = await lab.node_of("v-0")
            host = lab.lab.cluster.node(node).host
            third = next(name for name, each in host.bays.items() if each.slot == "3")
            host.execute(["vgremove", "quorate-3"])
            host.execute(["pvremove", f"/dev/{third}"])
            host.execute(["vgextend", "quorate-1", f"/dev/{third}"])

            async def joined() -> bool:
                return len((await lab.store.get(LVMVolumeGroup, f"{node}-disk-1")).status.devices) == 2

            await lab.until("the group is on two drives", joined, patience=700)
            drive = await lab.drive(node, 3)
            lab.lab.cluster.inject(faults.DrivePull(node=node, drive="3"))
            await lab.until_phase(drive, RELEASING, patience=600)
            await lab.sleep(60)
            assert len(lab.up_to_date("v")) == 3
            assert not any(each.deleting for each in await lab.lab.replicas())

    run(main, seed=39)


def test_what_is_being_copied_counts_although_somebody_deletes_its_volume_object() -> None:
    async def main(sim: Simulation) -> None:
        async with drive_lab(sim, Layout(nodes=4)) as lab:
            await lab.volumes(5, AVAILABILITY, size="4Gi")
            await lab.annotate(await lab.drive(await lab.node_of("v-0")), health="BAD")
            most, deleted = 0, False
            for _ in range(120):
                await lab.sleep(0.5)
                found = (await lab.store.list(ReplicatedVolume)).items
                members = [member for each in found for member in each.status.datamesh.members]
                copying = sum(member.hidden and member.type == "Diskful" for member in members)
                most = max(most, copying)
                if copying == 2 and not deleted:
                    deleted = True
                    for each in (await lab.store.list(Volume)).items:
                        if annotation_keys.MOVE_TO in each.metadata.annotations:
                            await lab.store.delete(Volume, each.name, each.metadata.namespace)
            assert deleted
            assert most == 2, "no more than maxMovesPerNode"

    run(main, seed=3)


def test_a_drive_that_is_out_and_is_set_bad_by_a_person_has_its_events_too() -> None:
    async def main(sim: Simulation) -> None:
        async with drive_lab(sim, FIVE) as lab:
            await lab.volumes(1, BOTH)
            node = await lab.node_of("v-0")
            drive = await lab.drive(node)
            lab.lab.cluster.inject(faults.DrivePull(node=node, drive="1"))
            await lab.sleep(60)
            # Within its grace nobody has given it up yet.
            assert (await lab.again(drive)).status.operational_status is OPERATIVE
            await lab.annotate(drive, health="BAD")
            await lab.until_phase(drive, RELEASED)
            told = await lab.events(drive)
            for reason in ("DriveStatusOffline", "DriveHealthOverridden", "MissingDriveReplacementInitiated"):
                assert told.count(reason) == 1, told

    run(main, seed=52)
