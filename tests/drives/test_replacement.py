"""A drive is replaced, from the first bad word of it to a new one in its slot, in the lab."""

from __future__ import annotations

import pytest

from quorate.api import annotation_keys, core
from quorate.api.baremetal import Volume
from quorate.api.baremetal.drive import DriveHealth, OperationalStatus
from quorate.api.longhorn import DiskSchedule
from quorate.api.maintenance import PermissionRequest
from quorate.api.maintenance.action import Marker
from quorate.api.storage import LVMVolumeGroup, ReplicatedVolumeReplica
from quorate.api.storage.configuration import Replication
from quorate.engine.simulation import Simulation, run
from quorate.lab import faults
from quorate.lab.layout import Layout

from .laboratory import drive_lab, in_use

BOTH = Replication.CONSISTENCY_AND_AVAILABILITY
FIVE = Layout(nodes=5)
OPERATIVE, RELEASING, RELEASED, FAILED, REMOVING, REMOVED = OperationalStatus


def test_a_drive_that_says_it_fails_is_emptied_removed_and_replaced() -> None:
    async def main(sim: Simulation) -> None:
        async with drive_lab(sim, FIVE) as lab:
            await lab.volumes(3, BOTH)
            nodes = [await lab.node_of(f"v-{number}") for number in range(3)]
            story = await in_use(lab, nodes[1])
            assert await story.write(nodes[1], "before")
            drive = await lab.drive(nodes[0])
            lab.lab.cluster.inject(faults.Smart(node=nodes[0], drive="1", says="failing"))
            await lab.until_phase(drive, RELEASED, patience=1200)
            # Everything is elsewhere, and nothing has been destroyed.
            for name in ("v", "v1", "v2"):
                await lab.until_copies(name)
                assert nodes[0] not in lab.up_to_date(name)
            kept = [each for each in await lab.lab.replicas() if each.spec.node_name == nodes[0]]
            assert kept
            assert all(each.deleting and each.status.drbd.config.down for each in kept)
            assert {each.status.usage for each in (await lab.store.list(Volume)).items} == {"RELEASED"}
            assert (await lab.said("v"))["release"] == "completed"
            assert (await lab.said("v"))["recovery"] == "100"
            assert not lab.permitted
            # Nothing happens before a person says so.
            await lab.sleep(900)
            assert (await lab.again(drive)).status.operational_status is RELEASED
            assert await story.write(nodes[1], "while it waits")
            new = await lab.replace(drive)
            assert lab.permitted == [f"drive-{drive.name}"]
            assert not (await lab.store.list(PermissionRequest)).items
            assert not (await lab.store.list(Volume)).items
            assert not [each for each in await lab.lab.replicas() if each.deleting]
            name = f"{nodes[0]}-disk-1"

            async def joined() -> bool:
                group = await lab.store.get(LVMVolumeGroup, name)
                return [device.drive_uuid for device in group.status.devices] == [new.name]

            await lab.until("the new drive is in its group", joined)
            await lab.sleep(5)
            # Its ledger went with it: the new one begins with nothing.
            ledgers = [each for each in (await lab.store.list(DiskSchedule)).items if each.spec.name == name]
            assert [dict(each.spec.replicas) for each in ledgers] == [{}]
            copies = {name: tag for name, tag in story.copies().items() if name in lab.up_to_date("v")}
            assert set(copies.values()) == {"while it waits"}
            assert lab.history[drive.spec.serial_number] == [OPERATIVE, RELEASING, RELEASED, REMOVING, REMOVED]
            told = await lab.events(drive)
            for reason in (
                "DriveHealthFailure",
                "DriveReleasing",
                "DriveReadyForRemoval",
                "DriveRemoving",
                "DriveReadyForPhysicalRemoval",
                "DriveSuccessfullyRemoved",
            ):
                assert told.count(reason) == 1, told

    run(main, seed=1)


def test_the_device_is_out_of_its_group_wiped_and_lit_when_it_may_be_pulled() -> None:
    async def main(sim: Simulation) -> None:
        async with drive_lab(sim, FIVE) as lab:
            await lab.volumes(1, BOTH)
            node = await lab.node_of("v-0")
            drive = await lab.drive(node)
            await lab.annotate(drive, health="BAD")
            await lab.until_phase(drive, RELEASED)
            host = lab.lab.cluster.node(node).host
            assert "quorate-1" in host.lvm.groups
            await lab.annotate(drive, replacement="ready")
            await lab.until_phase(drive, REMOVED)
            device = host.bays.by_serial(drive.spec.serial_number)
            assert "quorate-1" not in host.lvm.groups
            assert host.lvm.member(device) is None
            assert device.locate_light
            # Pulled now, nobody misses it (7).
            story = await in_use(lab, await lab.node_of("v-1"))
            lab.lab.cluster.inject(faults.DrivePull(node=node, drive="1"))
            assert await story.write(await lab.node_of("v-1"), "after")
            await lab.until_copies("v")

    run(main, seed=2)


@pytest.mark.parametrize("on", ["drive", "node", "replica", "monitor"])
def test_the_brokers_marker_starts_it(on: str) -> None:
    async def main(sim: Simulation) -> None:
        async with drive_lab(sim, FIVE) as lab:
            await lab.volumes(1, BOTH)
            node = await lab.node_of("v-0")
            drive = await lab.drive(node)
            said = {"metadata": {"annotations": {annotation_keys.MARKER: str(Marker.DISK_BROKEN)}}}
            match on:
                case "drive":
                    await lab.annotate(drive, marker=Marker.DISK_BROKEN)
                case "monitor":
                    await lab.annotate(drive, **{annotation_keys.MONITOR: Marker.DISK_BROKEN})
                case "node":
                    await lab.store.patch(core.Node, node, patch=said)
                case "replica":
                    await lab.store.patch(ReplicatedVolumeReplica, "v-0", patch=said)
            if on == "replica":

                async def moved() -> bool:
                    names = {each.name for each in await lab.lab.replicas()}
                    return "v-0" not in names and len(names) == 3

                await lab.until("v-0 is moved", moved)
                assert (await lab.again(drive)).status.operational_status is OPERATIVE
            else:
                await lab.until_phase(drive, RELEASED)
                other = await lab.drive(node, 2)
                assert other.status.operational_status is (RELEASED if on == "node" else OPERATIVE)
            await lab.until_copies("v")

    run(main, seed=3)


def test_without_permission_it_waits_and_says_why_and_ready_can_be_taken_back() -> None:
    async def main(sim: Simulation) -> None:
        async with drive_lab(sim, FIVE) as lab:
            await lab.volumes(1, BOTH)
            drive = await lab.drive(await lab.node_of("v-0"))
            lab.refusal = "host node-9 is restarted by alice"
            await lab.annotate(drive, health="BAD", replacement="ready")
            await lab.until_phase(drive, REMOVING)
            await lab.sleep(120)
            found = await lab.again(drive)
            assert found.status.operational_status is REMOVING
            assert "restarted by alice" in found.status.message
            assert not found.status.detach
            assert any(each.deleting for each in await lab.lab.replicas())
            await lab.annotate(drive, replacement=None)
            await lab.until_phase(drive, RELEASED)
            await lab.sleep(10)
            assert not (await lab.store.list(PermissionRequest)).items
            lab.refusal = ""
            await lab.annotate(drive, replacement="ready")
            await lab.until_phase(drive, REMOVED)

    run(main, seed=4)


def test_a_drive_that_the_node_runs_from_only_alerts() -> None:
    async def main(sim: Simulation) -> None:
        async with drive_lab(sim, FIVE) as lab:
            await lab.volumes(1, BOTH)
            drive = await lab.drive("node-1", 2)
            host = lab.lab.cluster.node("node-1").host
            host.execute(["vgremove", "quorate-2"])
            host.bays.by_serial(drive.spec.serial_number).system = True

            async def known() -> bool:
                return (await lab.again(drive)).spec.is_system

            await lab.until("the agent sees it", known)
            lab.lab.cluster.inject(faults.Smart(node="node-1", drive="2", says="failing"))
            await lab.sleep(1500)
            found = await lab.again(drive)
            assert found.status.health is DriveHealth.BAD
            assert found.status.operational_status is OPERATIVE
            assert "runs from it" in found.status.message
            assert "DriveHealthFailure" in await lab.events(drive)
            assert not (await lab.store.list(Volume)).items

    run(main, seed=5)


def test_what_cannot_be_removed_fails_the_removal_and_says_which_step() -> None:
    async def main(sim: Simulation) -> None:
        async with drive_lab(sim, FIVE) as lab:
            await lab.volumes(1, BOTH)
            node = await lab.node_of("v-0")
            drive, host = await lab.drive(node), lab.lab.cluster.node(node).host
            host.execute(["lvcreate", "--yes", "--name", "somebodys", "--size", "8m", "quorate-1"])
            await lab.annotate(drive, health="BAD", replacement="ready")
            found = await lab.until_phase(drive, FAILED, patience=600)
            assert "somebodys" in found.status.message
            assert "DriveRemovalFailed" in await lab.events(drive)
            assert "quorate-1" in host.lvm.groups
            # Once that is gone it goes on by itself.
            host.execute(["lvremove", "--yes", "quorate-1/somebodys"])
            await lab.until_phase(drive, REMOVED, patience=900)

    run(main, seed=6)


def test_without_a_light_it_is_removed_all_the_same() -> None:
    async def main(sim: Simulation) -> None:
        async with drive_lab(sim, FIVE) as lab:
            await lab.volumes(1, BOTH)
            node = await lab.node_of("v-0")
            drive = await lab.drive(node)
            lab.lab.cluster.inject(faults.Hang(node=node, command="ledctl"))
            await lab.annotate(drive, health="BAD", replacement="ready")
            found = await lab.until_phase(drive, REMOVED, patience=600)
            assert "not available" in found.status.message
            assert "DriveLocateLEDFailed" in await lab.events(drive)

    run(main, seed=7)


def test_a_controller_that_is_killed_all_the_time_loses_nothing() -> None:
    async def main(sim: Simulation) -> None:
        async with drive_lab(sim, FIVE) as lab:
            await lab.volumes(2, BOTH)
            node = await lab.node_of("v-0")
            user = await lab.node_of("v-1")
            story = await in_use(lab, user)
            assert await story.write(user, "kept")
            drive, random = await lab.drive(node), sim.random("killer")
            await lab.annotate(drive, health="BAD", replacement="ready")
            for _ in range(200):
                await lab.sleep(random.uniform(0.1, 8))
                if (await lab.again(drive)).status.operational_status is REMOVED:
                    break
                lab.lab.kill()
                await lab.sleep(random.uniform(0, 2))
                lab.lab.start()
            await lab.until_phase(drive, REMOVED, patience=900)
            for name in ("v", "v1"):
                await lab.until_copies(name)
            assert len(await lab.lab.replicas()) == 6
            assert {tag for name, tag in story.copies().items() if name in lab.up_to_date("v")} == {"kept"}

    run(main, seed=8)


def test_a_bad_network_makes_it_slower_and_nothing_else() -> None:
    async def main(sim: Simulation) -> None:
        async with drive_lab(sim, FIVE) as lab:
            await lab.volumes(2, BOTH)
            drive = await lab.drive(await lab.node_of("v-0"))
            network = lab.lab.faults
            network.latency, network.watch_latency, network.conflict = 0.3, 1.0, 0.05
            network.lost_answer = network.lost_request = network.unreachable = 0.02
            await lab.annotate(drive, health="BAD", replacement="ready")
            await lab.until_phase(drive, REMOVED, patience=3600)
            for name in ("v", "v1"):
                await lab.until_copies(name, patience=1800)
            assert len([each for each in await lab.lab.replicas() if not each.deleting]) == 6

    run(main, seed=9)


def test_ready_taken_back_in_the_middle_stops_it_where_it_is_and_says_where() -> None:
    async def main(sim: Simulation) -> None:
        async with drive_lab(sim, FIVE) as lab:
            await lab.volumes(1, BOTH)
            node = await lab.node_of("v-0")
            drive, host = await lab.drive(node), lab.lab.cluster.node(node).host
            await lab.annotate(drive, health="BAD")
            await lab.until_phase(drive, RELEASED)
            away = await lab.node_of("v-1")
            lab.lab.cluster.inject(faults.NodeDown(node=away))
            await lab.sleep(60)
            await lab.annotate(drive, replacement="ready")
            # The last look finds a copy missing: what is on the drive is given up, and waits.
            await lab.sleep(60)
            assert (await lab.again(drive)).status.operational_status is REMOVING
            await lab.annotate(drive, replacement=None)
            found = await lab.until_phase(drive, FAILED, patience=30)
            assert "taken back in the middle of the removal, at this step: removing v." in found.status.message
            lab.lab.cluster.inject(faults.NodeUp(node=away))
            await lab.sleep(600)
            found = await lab.again(drive)
            assert found.status.operational_status is FAILED
            assert "removing v." in found.status.message
            assert any(name.startswith("replica-v-0") for name in host.lvm.groups["quorate-1"].volumes)
            await lab.annotate(drive, replacement="ready")
            await lab.until_phase(drive, REMOVED, patience=900)

    run(main, seed=44)


@pytest.mark.parametrize("then", ["ready", "restart"])
def test_ready_taken_back_while_the_device_is_taken_apart_stops_the_agent(then: str) -> None:
    async def main(sim: Simulation) -> None:
        async with drive_lab(sim, FIVE) as lab:
            await lab.volumes(1, BOTH)
            node = await lab.node_of("v-0")
            drive, host = await lab.drive(node), lab.lab.cluster.node(node).host
            lab.lab.cluster.inject(faults.Slow(node=node, command="wipefs", seconds=60))
            await lab.annotate(drive, health="BAD", replacement="ready")

            async def wiping() -> bool:
                return "wipe" in (await lab.again(drive)).status.message

            await lab.until("the step is named", wiping)
            await lab.annotate(drive, replacement=None)
            found = await lab.until_phase(drive, FAILED, patience=30)
            assert "at this step: wipe signatures." in found.status.message
            assert not found.status.detach
            await lab.sleep(600)
            device = host.bays.by_serial(drive.spec.serial_number)
            assert not device.locate_light
            assert (await lab.again(drive)).status.operational_status is FAILED
            assert (await lab.store.list(PermissionRequest)).items, "it is half apart: the broker still knows"
            lab.lab.cluster.inject(faults.Release())
            if then == "ready":
                await lab.annotate(drive, replacement="ready")
                await lab.until_phase(drive, REMOVED, patience=900)
                assert device.locate_light
            else:
                await lab.annotate(drive, replacement="restart", health="GOOD")
                await lab.until_phase(drive, OPERATIVE)
                await lab.sleep(60)
                assert "quorate-1" in host.lvm.groups

    run(main, seed=45)
