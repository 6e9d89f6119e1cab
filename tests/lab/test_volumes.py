"""Volumes on simulated nodes, their objects made by hand: agents bring them to life, and through what happens."""

from __future__ import annotations

import pytest

from quorate.api.storage.drbd import ReplicaType
from quorate.engine.simulation import Simulation, run
from quorate.lab import faults
from quorate.lab.truth import truth_of
from tests.lab.handmade import TB, D, HandMadeVolume
from tests.lab.laboratory import Laboratory, laboratory

Members = tuple[tuple[str, ReplicaType], ...]

ONE: Members = (("node-1", D),)
TWO_AND_TIE_BREAKER: Members = (("node-1", D), ("node-2", D), ("node-3", TB))
THREE: Members = (("node-1", D), ("node-2", D), ("node-3", D))


def nothing_left(lab: Laboratory) -> None:
    """No resource, no logical volume, no file of a volume anywhere."""
    for node in lab.cluster.nodes.values():
        if node.host.powered:
            assert node.host.kernel.resources() == []
        assert [name for group in node.host.lvm.groups.values() for name in group.volumes] == []
        assert [path for path in node.host.files if path.endswith((".res", ".res_tmp"))] == []


@pytest.mark.parametrize("members", [ONE, TWO_AND_TIE_BREAKER, THREE], ids=["1D", "2D+1TB", "3D"])
@pytest.mark.parametrize("force_resync", [False, True], ids=["clear-bitmap", "force-resync"])
def test_a_volume_is_formed_attached_detached_and_deleted(members: Members, force_resync: bool) -> None:
    async def main(sim: Simulation) -> None:
        async with laboratory(sim) as lab:
            redundancy = 2 if members == THREE else 1
            volume = lab.volume("pvc-1", *members, redundancy=redundancy)
            await volume.form(force_resync=force_resync)
            await volume.promote(0)
            await volume.promote(0, primary=False)
            await volume.delete()
            nothing_left(lab)

    run(main, seed=1)


async def write(volume: HandMadeVolume, lab: Laboratory, number: int, tag: str) -> bool:
    """Write through the device of a member; whether it was acknowledged."""
    host = lab.cluster.node(volume.members[number][0]).host
    lab.cluster.driver.catch_up()
    assert host.kernel.open(volume.minor, "test", 1)
    io = host.kernel.write(volume.minor, 0, 4096, tag)
    lab.cluster.driver.touch()
    await lab.sleep(5)
    lab.cluster.driver.catch_up()
    done = not io.blocked
    host.kernel.close(volume.minor, 1)
    return done


@pytest.mark.parametrize("members", [TWO_AND_TIE_BREAKER, THREE], ids=["2D+1TB", "3D"])
def test_an_attached_volume_outlives_the_loss_of_another_node_and_takes_it_back(members: Members) -> None:
    async def main(sim: Simulation) -> None:
        async with laboratory(sim) as lab:
            volume = lab.volume("pvc-1", *members, redundancy=2 if members == THREE else 1)
            await volume.form()
            await volume.promote(0)
            assert await write(volume, lab, 0, "first")
            lab.cluster.inject(faults.NodeDown("node-2"))
            await lab.sleep(60)
            assert await write(volume, lab, 0, "second")
            lab.cluster.inject(faults.NodeUp("node-2"))
            await volume.until_healthy()
            disk = lab.cluster.node("node-2").host.lvm.find(f"quorate-1/{volume.logical_volume_name(1)}")
            assert disk is not None
            assert disk[1].device.read(0) == "second"
            await volume.promote(0, primary=False)
            await volume.delete()
            nothing_left(lab)

    run(main, seed=2)


def test_a_volume_whose_primary_is_lost_can_be_attached_elsewhere() -> None:
    async def main(sim: Simulation) -> None:
        async with laboratory(sim) as lab:
            volume = lab.volume("pvc-1", *THREE, redundancy=2)
            await volume.form()
            await volume.promote(0)
            assert await write(volume, lab, 0, "first")
            lab.cluster.inject(faults.NodeDown("node-1"))
            await lab.sleep(30)
            await volume.promote(1)
            assert await write(volume, lab, 1, "second")
            await volume.store.patch_status(
                type(await volume.replica(0)), volume.replica_name(0), patch={"drbd": {"config": {"primary": False}}}
            )
            lab.cluster.inject(faults.NodeUp("node-1"))
            await volume.until_healthy()
            disk = lab.cluster.node("node-1").host.lvm.find(f"quorate-1/{volume.logical_volume_name(0)}")
            assert disk is not None
            assert disk[1].device.read(0) == "second"

    run(main, seed=3)


def test_a_node_that_is_cut_off_stops_and_the_others_go_on() -> None:
    async def main(sim: Simulation) -> None:
        async with laboratory(sim) as lab:
            volume = lab.volume("pvc-1", *THREE, redundancy=2)
            await volume.form()
            await volume.promote(0)
            lab.cluster.inject(faults.Isolate("node-1"))
            await lab.sleep(60)
            truth = {node.name: node for node in truth_of(lab.cluster).nodes}
            assert not truth["node-1"].replicas[0].quorum
            assert truth["node-2"].replicas[0].quorum
            lab.cluster.inject(faults.Heal())
            await volume.until_healthy()

    run(main, seed=4)


def test_agents_that_are_killed_again_and_again_form_the_volume_all_the_same() -> None:
    async def main(sim: Simulation) -> None:
        async with laboratory(sim) as lab:
            volume = lab.volume("pvc-1", *TWO_AND_TIE_BREAKER)
            forming = sim.loop.create_task(volume.form())
            chance = sim.random("killer")
            while not forming.done():
                await lab.sleep(chance.uniform(0.2, 4.0))
                lab.cluster.inject(faults.AgentKill(chance.choice(list(lab.cluster.nodes))))
            await forming
            await volume.delete()
            nothing_left(lab)

    for seed in range(3):
        run(main, seed=seed)


def test_nodes_that_reboot_while_a_volume_is_formed_lose_nothing() -> None:
    async def main(sim: Simulation) -> None:
        async with laboratory(sim) as lab:
            volume = lab.volume("pvc-1", *TWO_AND_TIE_BREAKER)
            forming = sim.loop.create_task(volume.form())
            chance = sim.random("killer")
            for _ in range(4):
                await lab.sleep(chance.uniform(0.5, 6.0))
                if not forming.done():
                    lab.cluster.inject(faults.Reboot(chance.choice(list(lab.cluster.nodes))))
            await forming
            await volume.until_healthy()
            await volume.delete()
            nothing_left(lab)

    for seed in range(3):
        run(main, seed=seed)


def test_two_volumes_on_the_same_nodes_have_ports_of_their_own() -> None:
    async def main(sim: Simulation) -> None:
        async with laboratory(sim) as lab:
            volumes = [lab.volume(f"pvc-{number}", *THREE, minor=1000 + number) for number in range(3)]
            for volume in volumes:
                await volume.form()
            for number in range(3):
                replicas = [await volume.replica(number) for volume in volumes]
                ports = [one.status.drbd.config.address.port for one in replicas if one.status.drbd.config.address]
                assert len(set(ports)) == 3

    run(main, seed=5)


def test_a_settled_volume_costs_no_writes() -> None:
    async def main(sim: Simulation) -> None:
        async with laboratory(sim) as lab:
            volume = lab.volume("pvc-1", *THREE)
            await volume.form()
            await lab.sleep(60)
            before = [(await volume.replica(number)).metadata.resource_version for number in range(3)]
            await lab.sleep(1800)
            assert [(await volume.replica(number)).metadata.resource_version for number in range(3)] == before

    run(main, seed=6)


def test_a_port_that_drbd_listens_on_is_not_free_and_another_is() -> None:
    async def main(sim: Simulation) -> None:
        async with laboratory(sim) as lab:
            volume = lab.volume("pvc-1", *THREE)
            await volume.form()
            address = (await volume.replica(0)).status.drbd.config.address
            agent = lab.cluster.node("node-1").agent
            assert address is not None
            assert agent is not None
            assert not await agent.node.machine.port_is_free(address.ipv4, address.port)
            assert await agent.node.machine.port_is_free(address.ipv4, address.port + 1)

    run(main, seed=7)
