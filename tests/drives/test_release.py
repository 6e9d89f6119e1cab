"""How what is on a drive is released: by Quorate, politely or at once; by outside operators; by people."""

from __future__ import annotations

import pytest

from quorate.api import annotation_keys, conditions, labels, names
from quorate.api.baremetal import Volume
from quorate.api.baremetal.drive import OperationalStatus
from quorate.api.conditions.drive import Released
from quorate.api.core import Event, PersistentVolumeClaim
from quorate.api.core.claim import ClaimSpec
from quorate.api.longhorn import BackingImage
from quorate.api.longhorn.backing_image import BackingImageSpec
from quorate.api.meta import ObjectMeta
from quorate.api.quantity import Quantity
from quorate.api.storage import LVMLogicalVolume, LVMVolumeGroup, ReplicatedVolume
from quorate.api.storage.configuration import Replication
from quorate.api.storage.llv import LogicalVolumeType, LVMLogicalVolumeSpec
from quorate.engine.simulation import Simulation, run
from quorate.lab import faults
from quorate.lab.layout import Layout

from .laboratory import DriveLab, drive_lab, in_use

BOTH = Replication.CONSISTENCY_AND_AVAILABILITY
FIVE = Layout(nodes=5)
OPERATIVE, RELEASING, RELEASED, FAILED, REMOVING, REMOVED = OperationalStatus


async def annotate_volume(lab: DriveLab, volume: str, **said: str) -> None:
    """What an operator, or a person, puts on the csi-baremetal Volume of a replicated volume."""
    for each in (await lab.store.list(Volume)).items:
        if each.metadata.labels.get(labels.REPLICATED_VOLUME) == volume:
            words = {f"volumerelease.csi-baremetal/{key}": value for key, value in said.items()}
            await lab.store.patch(Volume, each.name, names.NAMESPACE, patch={"metadata": {"annotations": words}})


def test_a_suspect_drive_waits_while_a_volume_is_not_whole_and_a_bad_one_does_not() -> None:
    async def main(sim: Simulation) -> None:
        async with drive_lab(sim, FIVE) as lab:
            await lab.volumes(1, BOTH)
            drive = await lab.drive(await lab.node_of("v-0"))
            away = await lab.node_of("v-2")
            lab.lab.cluster.inject(faults.NodeDown(node=away))
            await lab.sleep(60)
            await lab.annotate(drive, health="SUSPECT")
            await lab.until_phase(drive, RELEASING)
            await lab.sleep(120)
            found = await lab.again(drive)
            assert "not whole" in found.status.message
            assert len(await lab.lab.replicas()) == 3
            assert "release" not in await lab.said("v")
            # That nothing is known any more is no reason for haste.
            await lab.annotate(drive, health="UNKNOWN")
            await lab.sleep(60)
            assert "release" not in await lab.said("v")
            assert len(await lab.lab.replicas()) == 3
            # Required is not the same as recommended.
            await lab.annotate(drive, health="BAD")
            await lab.sleep(30)
            assert (await lab.said("v"))["release"] == "processing"
            lab.lab.cluster.inject(faults.NodeUp(node=away))
            await lab.until_phase(drive, RELEASED, patience=900)

    run(main, seed=31)


def test_a_suspect_drive_goes_on_when_the_volume_is_whole_again() -> None:
    async def main(sim: Simulation) -> None:
        async with drive_lab(sim, FIVE) as lab:
            await lab.volumes(1, BOTH)
            drive = await lab.drive(await lab.node_of("v-0"))
            away = await lab.node_of("v-2")
            lab.lab.cluster.inject(faults.NodeDown(node=away))
            await lab.annotate(drive, health="SUSPECT")
            await lab.sleep(120)
            assert (await lab.again(drive)).status.operational_status is RELEASING
            lab.lab.cluster.inject(faults.NodeUp(node=away))
            await lab.until_phase(drive, RELEASED, patience=900)
            await lab.until_copies("v")

    run(main, seed=32)


def test_the_last_up_to_date_copy_is_never_released() -> None:
    async def main(sim: Simulation) -> None:
        async with drive_lab(sim, FIVE) as lab:
            await lab.volumes(1, Replication.AVAILABILITY)
            node, other = await lab.node_of("v-0"), await lab.node_of("v-1")
            lab.lab.cluster.inject(faults.NodeDown(node=other))
            # Nothing can be copied: the only good copy is cut off from everybody else.
            for name in lab.lab.cluster.nodes:
                if name not in (node, other):
                    lab.lab.cluster.inject(faults.Cut(node=node, peer=name))
            drive = await lab.drive(node)
            await lab.annotate(drive, health="BAD", replacement="ready")
            await lab.sleep(1800)
            assert (await lab.again(drive)).status.operational_status is RELEASING
            host = lab.lab.cluster.node(node).host
            assert any(name.startswith("replica-v-0") for name in host.lvm.groups["quorate-1"].volumes)
            lab.lab.cluster.inject(faults.Heal())
            lab.lab.cluster.inject(faults.NodeUp(node=other))
            await lab.until_phase(drive, REMOVED, patience=3600)
            await lab.until_copies("v", 2)

    run(main, seed=33)


def test_a_person_pauses_a_release_and_lets_it_go_on() -> None:
    async def main(sim: Simulation) -> None:
        async with drive_lab(sim, FIVE) as lab:
            await lab.volumes(2, BOTH, size="2Gi")
            drive = await lab.drive(await lab.node_of("v-0"))
            await lab.annotate(drive, health="BAD")

            async def begun() -> bool:
                return (await lab.said("v")).get("release") == "processing"

            await lab.until("it has its turn", begun)
            await annotate_volume(lab, "v", process="pause")
            await lab.sleep(400)
            found = await lab.again(drive)
            assert found.status.operational_status is RELEASING
            assert not any(each.deleting for each in await lab.lab.replicas() if each.name == "v-0")
            assert len((await lab.lab.volume("v")).status.datamesh.members) in (3, 4)
            await annotate_volume(lab, "v", process="start")
            await lab.until_phase(drive, RELEASED)
            await lab.until_copies("v")

    run(main, seed=34)


def test_a_person_stops_a_release_and_everything_is_as_before() -> None:
    async def main(sim: Simulation) -> None:
        async with drive_lab(sim, FIVE) as lab:
            await lab.volumes(1, BOTH, size="2Gi")
            drive = await lab.drive(await lab.node_of("v-0"))
            await lab.annotate(drive, health="BAD")

            async def begun() -> bool:
                return (await lab.said("v")).get("release") == "processing"

            await lab.until("it has its turn", begun)
            await annotate_volume(lab, "v", process="stop")

            async def back() -> bool:
                return len(await lab.lab.replicas()) == 3

            await lab.until("the replacement is gone again", back)
            await lab.sleep(60)
            found = await lab.again(drive)
            assert found.status.operational_status is RELEASING
            assert "stopped" in found.status.message
            await annotate_volume(lab, "v", process="start")
            await lab.until_phase(drive, RELEASED)

    run(main, seed=35)


def test_an_outside_operator_is_waited_for_and_its_words_are_taken() -> None:
    async def main(sim: Simulation) -> None:
        async with drive_lab(sim, FIVE) as lab:
            await lab.volumes(2, BOTH)
            drive = await lab.drive(await lab.node_of("v-0"))
            said = {annotation_keys.RELEASE_SUPPORT: "yes"}
            claim = PersistentVolumeClaim(
                metadata=ObjectMeta(namespace="default", name="data-db-0", annotations=said),
                spec=ClaimSpec(volume_name="v"),
            )
            await lab.store.create(claim)
            await lab.annotate(drive, health="BAD")
            await lab.until_phase(drive, RELEASING)
            await lab.sleep(300)
            assert (await lab.said("v"))["process"] == "start"
            assert (await lab.said("v"))["health"] == "bad"
            assert "release" not in await lab.said("v")
            assert sorted(each.name for each in await lab.lab.replicas() if each.name.startswith("v-")) == [
                "v-0",
                "v-1",
                "v-2",
            ]
            await annotate_volume(lab, "v", release="processing", recovery="40")
            await lab.sleep(15)
            found = await lab.again(drive)
            assert found.status.operational_status is RELEASING
            await annotate_volume(lab, "v", release="failed", recovery="50", status="recovery failed by timeout")
            found = await lab.until_phase(drive, FAILED)
            assert "recovery failed by timeout" in found.status.message
            await annotate_volume(lab, "v", release="completed", recovery="100", status="")
            await lab.until_phase(drive, RELEASED)
            # "Operator deletes PV(s)": until it has, nothing of the volume is destroyed.
            await lab.annotate(drive, replacement="ready")
            await lab.sleep(300)
            assert (await lab.again(drive)).status.operational_status is REMOVING
            assert len(lab.up_to_date("v")) == 3
            await lab.store.delete(ReplicatedVolume, "v")
            await lab.until_phase(drive, REMOVED)

    run(main, seed=36)


def test_a_copy_of_an_image_is_made_elsewhere_and_the_old_one_stays_until_a_person_is_ready() -> None:
    async def main(sim: Simulation) -> None:
        async with drive_lab(sim, FIVE) as lab:
            await lab.sleep(30)
            spec = BackingImageSpec(min_number_of_copies=2, size=Quantity("64Mi"))
            image = BackingImage(metadata=ObjectMeta(namespace=names.NAMESPACE, name="debian"), spec=spec)
            await lab.store.create(image)

            async def copies() -> int:
                found = await lab.store.get(BackingImage, "debian", names.NAMESPACE)
                return found.status.ready_copies

            async def two() -> bool:
                return await copies() == 2

            await lab.until("two copies", two)
            piece = (await lab.store.list(LVMLogicalVolume)).items[0]
            group = await lab.store.get(LVMVolumeGroup, piece.spec.lvm_volume_group_name)
            slot = int(group.name.rpartition("-")[2])
            drive = await lab.drive(group.spec.local.node_name, slot)
            await lab.annotate(drive, health="BAD")
            await lab.until_phase(drive, RELEASED)
            assert await copies() == 2
            assert len((await lab.store.list(LVMLogicalVolume)).items) == 3
            volume = await lab.store.get(Volume, piece.name, names.NAMESPACE)
            assert volume.metadata.annotations[annotation_keys.RELEASE] == "completed"
            # Whoever deletes its Volume does not say that it may go: copies enough elsewhere or not.
            await lab.store.delete(Volume, piece.name, names.NAMESPACE)
            await lab.sleep(120)
            assert len((await lab.store.list(LVMLogicalVolume)).items) == 3
            assert (await lab.again(drive)).status.operational_status is RELEASED
            await lab.annotate(drive, replacement="ready")
            await lab.until_phase(drive, REMOVED)
            assert await copies() == 2
            assert len((await lab.store.list(LVMLogicalVolume)).items) == 2

    run(main, seed=37)


def test_foreign_data_is_released_by_whoever_deletes_its_volume_object() -> None:
    async def main(sim: Simulation) -> None:
        async with drive_lab(sim, FIVE) as lab:
            await lab.sleep(30)
            drive = await lab.drive("node-1", 2)
            spec = LVMLogicalVolumeSpec(
                actual_lv_name_on_the_node="theirs",
                type=LogicalVolumeType.THICK,
                size=Quantity("64Mi"),
                lvm_volume_group_name="node-1-disk-2",
            )
            metadata = ObjectMeta(name="theirs", labels={labels.NODE: "node-1"})
            await lab.store.create(LVMLogicalVolume(metadata=metadata, spec=spec))
            await lab.sleep(10)
            await lab.annotate(drive, health="BAD", replacement="ready")
            await lab.sleep(120)
            found = await lab.again(drive)
            assert found.status.operational_status is RELEASING
            assert "theirs" in found.status.message
            await lab.store.delete(Volume, "theirs", names.NAMESPACE)
            await lab.until_phase(drive, REMOVED)
            assert not (await lab.store.list(LVMLogicalVolume)).items

    run(main, seed=38)


def test_a_group_on_several_drives_drains_as_a_whole() -> None:
    async def main(sim: Simulation) -> None:
        async with drive_lab(sim, Layout(nodes=5, drives=3)) as lab:
            await lab.volumes(3, BOTH)
            node = await lab.node_of("v-0")
            host = lab.lab.cluster.node(node).host
            host.execute(["vgremove", "quorate-3"])
            third = next(name for name, each in host.bays.items() if each.slot == "3")
            host.execute(["pvremove", f"/dev/{third}"])
            host.execute(["vgextend", "quorate-1", f"/dev/{third}"])

            async def both() -> bool:
                group = await lab.store.get(LVMVolumeGroup, f"{node}-disk-1")
                return len(group.status.devices) == 2

            await lab.until("the group has two drives", both, patience=700)
            drive = await lab.drive(node, 3)
            await lab.annotate(drive, health="BAD", replacement="ready")
            await lab.until_phase(drive, REMOVED, patience=900)
            assert host.lvm.member(host.bays.by_serial(drive.spec.serial_number)) is None
            assert len(host.lvm.groups["quorate-1"].members) == 1
            for name in ("v", "v1", "v2"):
                await lab.until_copies(name)
            assert (await lab.drive(node, 1)).status.operational_status is OPERATIVE

    run(main, seed=39)


def test_the_promised_copies_are_looked_at_again_before_anything_is_destroyed() -> None:
    async def main(sim: Simulation) -> None:
        async with drive_lab(sim, FIVE) as lab:
            await lab.volumes(1, BOTH)
            node = await lab.node_of("v-0")
            drive = await lab.drive(node)
            await lab.annotate(drive, health="BAD")
            await lab.until_phase(drive, RELEASED)
            away = await lab.node_of("v-1")
            lab.lab.cluster.inject(faults.NodeDown(node=away))
            await lab.sleep(60)
            await lab.annotate(drive, replacement="ready")
            await lab.sleep(200)
            found = await lab.again(drive)
            assert found.status.operational_status is REMOVING
            assert "promised copies" in found.status.message
            host = lab.lab.cluster.node(node).host
            assert any(name.startswith("replica-v-0") for name in host.lvm.groups["quorate-1"].volumes)
            lab.lab.cluster.inject(faults.NodeUp(node=away))
            await lab.until_phase(drive, REMOVED, patience=900)

    run(main, seed=40)


def test_deleting_a_volume_object_destroys_nothing_before_a_person_is_ready() -> None:
    async def main(sim: Simulation) -> None:
        async with drive_lab(sim, FIVE) as lab:
            await lab.volumes(1, BOTH)
            drive = await lab.drive(await lab.node_of("v-0"))
            await lab.annotate(drive, health="BAD")
            await lab.until_phase(drive, RELEASED)

            async def pieces() -> int:
                return len((await lab.store.list(LVMLogicalVolume)).items)

            for each in (await lab.store.list(Volume)).items:
                await lab.store.delete(Volume, each.name, names.NAMESPACE)
            await lab.sleep(60)
            assert await pieces() == 4
            await lab.annotate(drive, replacement="ready")
            await lab.until_phase(drive, REMOVED)
            assert await pieces() == 3

    run(main, seed=43)


def test_a_replica_in_use_stays_until_its_user_is_gone_and_nothing_is_asked_of_it_before() -> None:
    async def main(sim: Simulation) -> None:
        async with drive_lab(sim, FIVE) as lab:
            await lab.volumes(1, BOTH)
            node = await lab.node_of("v-0")
            story = await in_use(lab, node)
            drive = await lab.drive(node)
            await lab.annotate(drive, health="BAD")
            await lab.sleep(300)
            found = await lab.again(drive)
            assert found.status.operational_status is RELEASING
            assert f"in use on {node}" in found.status.message
            assert len(lab.up_to_date("v")) == 4, "a copy in its place is there already"
            assert not any(each.deleting for each in await lab.lab.replicas())
            assert await story.write(node, "mine")
            await story.detach(node)
            await lab.until_phase(drive, RELEASED)
            await lab.until_copies("v")
            assert {tag for name, tag in story.copies().items() if name in lab.up_to_date("v")} == {"mine"}

    run(main, seed=41)


async def told_of(lab: DriveLab, reason: str) -> list[tuple[str, str]]:
    found = (each for each in (await lab.store.list(Event)).items if each.reason == reason)
    return [(each.involved_object.kind, each.message) for each in found]


def test_a_word_that_means_nothing_is_told_of_at_the_object_and_stops_what_it_is_about() -> None:
    async def main(sim: Simulation) -> None:
        async with drive_lab(sim, FIVE) as lab:
            await lab.volumes(1, BOTH)
            drive = await lab.drive(await lab.node_of("v-0"))
            await lab.annotate(drive, health="BAD", replacement="raedy")

            async def begun() -> bool:
                return bool(await lab.said("v"))

            await lab.until("it has its Volume", begun)
            await annotate_volume(lab, "v", process="strat")
            await lab.sleep(120)
            (volume,) = (await lab.store.list(Volume)).items
            said = conditions.find(volume.status.conditions, Released)
            assert said is not None
            assert said.reason == "Misunderstood"
            assert "process is 'strat': allowed are start, pause, stop" in said.message
            found = await lab.again(drive)
            assert found.status.operational_status is RELEASING
            assert "'strat'" in found.status.message
            assert len(await told_of(lab, "VolumeAnnotationMisunderstood")) == 1
            ((kind, words),) = await told_of(lab, "DriveAnnotationMisunderstood")
            assert (kind, "'raedy': allowed are ready, restart" in words) == ("Drive", True)
            await annotate_volume(lab, "v", process="Start")
            await lab.until_phase(drive, RELEASED)

    run(main, seed=46)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"release": "done"}, "release is 'done': allowed are processing, completed, failed"),
        ({"release": "processing", "recovery": "lots"}, "recovery is 'lots': allowed are 0 to 100"),
    ],
)
def test_what_an_outside_operator_says_and_nobody_understands_is_told_of(said: dict[str, str], words: str) -> None:
    async def main(sim: Simulation) -> None:
        async with drive_lab(sim, FIVE) as lab:
            await lab.volumes(1, BOTH)
            drive = await lab.drive(await lab.node_of("v-0"))
            claim = PersistentVolumeClaim(
                metadata=ObjectMeta(
                    namespace="default", name="data-db-0", annotations={annotation_keys.RELEASE_SUPPORT: "Yes"}
                ),
                spec=ClaimSpec(volume_name="v"),
            )
            await lab.store.create(claim)
            await lab.annotate(drive, health="BAD")
            await lab.until_phase(drive, RELEASING)
            await lab.sleep(30)
            await annotate_volume(lab, "v", **said)
            await lab.sleep(30)
            (volume,) = (await lab.store.list(Volume)).items
            found = conditions.find(volume.status.conditions, Released)
            assert found is not None
            assert (found.reason, words in found.message) == ("Misunderstood", True)
            ((kind, told),) = await told_of(lab, "VolumeAnnotationMisunderstood")
            assert (kind, words in told) == ("Volume", True)
            assert (await lab.again(drive)).status.operational_status is RELEASING

    run(main, seed=47)


def test_a_promise_that_nobody_understands_is_told_of_at_the_claim_and_keeps_nobody_waiting() -> None:
    async def main(sim: Simulation) -> None:
        async with drive_lab(sim, FIVE) as lab:
            await lab.volumes(1, BOTH)
            drive = await lab.drive(await lab.node_of("v-0"))
            said = {annotation_keys.RELEASE_SUPPORT: "true"}
            metadata = ObjectMeta(namespace="default", name="data-db-0", annotations=said)
            await lab.store.create(PersistentVolumeClaim(metadata=metadata, spec=ClaimSpec(volume_name="v")))
            await lab.annotate(drive, health="BAD")
            await lab.until_phase(drive, RELEASED)
            ((kind, words),) = await told_of(lab, "VolumeAnnotationMisunderstood")
            assert (kind, "support is 'true': allowed are yes, no" in words) == ("PersistentVolumeClaim", True)

    run(main, seed=49)
