"""Volumes through broken drives, hanging commands, bad links and a distant API."""

from __future__ import annotations

from quorate.api.storage import LVMLogicalVolume, LVMVolumeGroup
from quorate.api.storage.llv import LogicalVolumePhase
from quorate.cli.fault import troubles
from quorate.engine.simulation import Simulation, run
from quorate.lab import faults
from quorate.lab.truth import ReplicaTruth, truth_of
from tests.lab.handmade import TB, D, Replica
from tests.lab.laboratory import Laboratory, laboratory
from tests.lab.test_volumes import THREE, TWO_AND_TIE_BREAKER, write


def replica_on(lab: Laboratory, node: str, resource: str = "pvc-1") -> ReplicaTruth:
    """How a node's kernel really has a resource."""
    (found,) = (one for one in truth_of(lab.cluster).nodes if one.name == node)
    return next(one for one in found.replicas if one.resource == resource)


def disk_state(replica: Replica) -> str:
    status = replica.status.drbd.status
    return status.devices[0].disk_state if status is not None and status.devices else ""


def test_a_drive_that_fails_under_a_primary_is_let_go_while_writes_go_on_and_taken_back_when_mended() -> None:
    async def main(sim: Simulation) -> None:
        async with laboratory(sim) as lab:
            volume = lab.volume("pvc-1", *THREE)
            await volume.form()
            await volume.promote(0)
            lab.cluster.inject(faults.DriveFail("node-1", "1"))
            assert await write(volume, lab, 0, "through the others")
            await volume.until_replica(0, "its disk is gone", lambda one: disk_state(one) in ("Diskless", "Failed"))
            assert replica_on(lab, "node-1").role == "Primary"
            lab.cluster.inject(faults.DriveMend("node-1", "1"))
            await volume.until_healthy()
            disk = lab.cluster.node("node-1").host.lvm.find(f"quorate-1/{volume.logical_volume_name(0)}")
            assert disk is not None
            assert disk[1].device.read(0) == "through the others"

    run(main, seed=1)


def test_a_drive_that_is_pulled_makes_its_group_not_ready_and_spares_the_other() -> None:
    async def main(sim: Simulation) -> None:
        async with laboratory(sim) as lab:
            await lab.sleep(30)
            lab.cluster.inject(faults.DrivePull("node-1", "1"))
            await lab.sleep(120)
            groups = {group.name: group for group in (await lab.store.list(LVMVolumeGroup)).items}
            assert groups["node-1-disk-1"].status.phase != "Ready"
            assert groups["node-1-disk-2"].status.phase == "Ready"
            lab.cluster.inject(faults.DriveInsert("node-1"))
            await lab.sleep(120)
            assert (await lab.store.get(LVMVolumeGroup, "node-1-disk-1")).status.phase == "Ready"

    run(main, seed=2)


def test_a_hanging_command_blocks_its_own_volume_and_no_other() -> None:
    async def main(sim: Simulation) -> None:
        async with laboratory(sim) as lab:
            stuck = lab.volume("pvc-1", *THREE)
            free = lab.volume("pvc-2", *THREE, minor=1001)
            await stuck.form()
            await free.form()
            lab.cluster.inject(faults.Hang("node-1", "drbdsetup primary pvc-1"))
            lab.cluster.inject(faults.Hang("node-1", "drbdadm -c /var/lib/quorate/drbd.d/pvc-1.res primary pvc-1"))
            promoting = sim.loop.create_task(stuck.promote(0))
            await lab.sleep(30)
            await free.promote(0)
            await free.promote(0, primary=False)
            assert not promoting.done(), "the command did not hang: see how the agent promotes"
            error = (await stuck.replica(0)).status.drbd.errors.last_promotion_error
            assert error is not None
            assert "silent" in error.output
            lab.cluster.inject(faults.Release("node-1"))
            await promoting
            assert (await stuck.replica(0)).status.drbd.errors.last_promotion_error is None

    run(main, seed=3)


def test_lvm_that_hangs_on_one_node_keeps_only_that_node_from_making_volumes() -> None:
    async def main(sim: Simulation) -> None:
        async with laboratory(sim) as lab:
            await lab.sleep(30)
            lab.cluster.inject(faults.Hang("node-1", "lvcreate"))
            volume = lab.volume("pvc-1", *TWO_AND_TIE_BREAKER)
            forming = sim.loop.create_task(volume.form())
            await lab.sleep(60)
            phases = {
                found.metadata.labels["quorate.io/node"]: found.status.phase
                for found in (await lab.store.list(LVMLogicalVolume)).items
            }
            assert phases["node-2"] is LogicalVolumePhase.CREATED
            assert phases["node-1"] is not LogicalVolumePhase.CREATED
            lab.cluster.inject(faults.Release("node-1"))
            await forming

    run(main, seed=4)


def test_slow_commands_make_things_late_and_break_nothing() -> None:
    async def main(sim: Simulation) -> None:
        async with laboratory(sim) as lab:
            for node in lab.cluster.nodes:
                for command in ("drbdadm", "drbdsetup", "lvcreate", "lvs"):
                    lab.cluster.inject(faults.Slow(node, command, 3.0))
            volume = lab.volume("pvc-1", *TWO_AND_TIE_BREAKER)
            await volume.form()
            await volume.promote(1)

    run(main, seed=5)


def test_a_one_way_cut_ends_the_connection_and_heals() -> None:
    async def main(sim: Simulation) -> None:
        async with laboratory(sim) as lab:
            volume = lab.volume("pvc-1", *THREE)
            await volume.form()
            await volume.promote(0)
            lab.cluster.inject(faults.Cut("node-2", "node-1", one_way=True))
            await lab.sleep(60)
            assert replica_on(lab, "node-1").trouble
            assert await write(volume, lab, 0, "to two of three")
            lab.cluster.inject(faults.Heal())
            await volume.until_healthy()

    run(main, seed=6)


def test_what_happens_while_the_api_is_away_is_reported_when_it_is_back() -> None:
    async def main(sim: Simulation) -> None:
        async with laboratory(sim) as lab:
            volume = lab.volume("pvc-1", *THREE)
            await volume.form()
            await volume.promote(0)
            for node in lab.cluster.nodes:
                lab.cluster.inject(faults.CutApi(node))
            lab.cluster.inject(faults.NodeDown("node-3"))
            await lab.sleep(300)
            assert await write(volume, lab, 0, "unseen")
            lab.cluster.inject(faults.NodeUp("node-3"))
            await lab.sleep(300)
            # It has read no API since it booted, so it brought nothing up.
            assert [node.replicas for node in truth_of(lab.cluster).nodes if node.name == "node-3"] == [()]
            lab.cluster.inject(faults.Heal())
            await volume.until_healthy()

    run(main, seed=7)


def test_a_replica_on_a_node_without_power_is_deleted_when_it_is_back() -> None:
    async def main(sim: Simulation) -> None:
        async with laboratory(sim) as lab:
            volume = lab.volume("pvc-1", ("node-1", D), ("node-2", D), ("node-3", TB))
            await volume.form()
            lab.cluster.inject(faults.NodeDown("node-2"))
            deleting = sim.loop.create_task(volume.delete())
            await lab.sleep(90)
            assert not deleting.done()
            lab.cluster.inject(faults.NodeUp("node-2"))
            await deleting

    run(main, seed=8)


def test_what_is_held_up_is_named_and_released_on_all_nodes_at_once() -> None:
    async def main(sim: Simulation) -> None:
        async with laboratory(sim) as lab:
            lab.cluster.inject(faults.Hang("node-1", "drbdadm"))
            lab.cluster.inject(faults.Slow("node-2", "lvs", 2.5))
            assert troubles(truth_of(lab.cluster)) == [
                "node-1: 'drbdadm' hangs",
                "node-2: 'lvs' takes 2.5 s longer",
            ]
            assert lab.cluster.inject(faults.Release()) == "on all nodes, commands run as they should"
            assert troubles(truth_of(lab.cluster)) == []

    run(main, seed=6)
