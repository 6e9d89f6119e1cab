"""A simulated cluster with its agents: it reports what it has, and survives what is done to it."""

from __future__ import annotations

import pytest

from quorate.api import labels
from quorate.api.baremetal import Drive
from quorate.api.baremetal.drive import Presence
from quorate.api.core import Node
from quorate.api.meta import Resource
from quorate.api.storage import LVMVolumeGroup
from quorate.api.storage.lvg import VolumeGroupPhase
from quorate.engine.simulation import Simulation, run
from quorate.lab import faults
from quorate.lab.errors import FaultRefused
from quorate.lab.layout import Layout
from quorate.lab.truth import truth_of
from tests.lab.laboratory import laboratory


def test_nodes_drives_and_volume_groups_appear() -> None:
    async def main(sim: Simulation) -> None:
        async with laboratory(sim, Layout(nodes=4, zones=2, drives=3)) as lab:
            await lab.sleep(60)
            found = (await lab.store.list(Node)).items
            assert {node.name: node.metadata.labels[labels.ZONE] for node in found} == {
                "node-1": "zone-a",
                "node-2": "zone-b",
                "node-3": "zone-a",
                "node-4": "zone-b",
            }
            assert await lab.readiness() == dict.fromkeys(lab.cluster.nodes, "True")
            drives = (await lab.store.list(Drive)).items
            assert sorted((drive.spec.node_id, drive.spec.slot) for drive in drives) == sorted(
                (name, slot) for name in lab.cluster.nodes for slot in "123"
            )
            assert {drive.status.presence for drive in drives} == {Presence.ONLINE}
            assert len({drive.spec.serial_number for drive in drives}) == 12
            groups = (await lab.store.list(LVMVolumeGroup)).items
            assert len(groups) == 12
            assert {group.status.phase for group in groups} == {VolumeGroupPhase.READY}
            assert all(group.status.devices[0].drive_uuid for group in groups)

    run(main, seed=1)


def test_a_node_without_power_becomes_unknown_and_comes_back() -> None:
    async def main(sim: Simulation) -> None:
        async with laboratory(sim) as lab:
            await lab.sleep(30)
            before = (await lab.store.get(Node, "node-2")).status.node_info
            lab.cluster.inject(faults.NodeDown("node-2"))
            await lab.sleep(90)
            assert await lab.readiness() == {"node-1": "True", "node-2": "Unknown", "node-3": "True"}
            lab.cluster.inject(faults.NodeUp("node-2"))
            await lab.sleep(30)
            assert await lab.readiness() == dict.fromkeys(lab.cluster.nodes, "True")
            after = (await lab.store.get(Node, "node-2")).status.node_info
            assert before is not None
            assert after is not None
            assert before.boot_id != after.boot_id

    run(main, seed=2)


def test_a_node_that_is_cut_off_from_the_api_becomes_unknown_though_it_works() -> None:
    async def main(sim: Simulation) -> None:
        async with laboratory(sim) as lab:
            await lab.sleep(30)
            lab.cluster.inject(faults.CutApi("node-1"))
            await lab.sleep(90)
            assert (await lab.readiness())["node-1"] == "Unknown"
            lab.cluster.inject(faults.Heal("node-1"))
            await lab.sleep(60)
            assert (await lab.readiness())["node-1"] == "True"

    run(main, seed=3)


def test_a_killed_agent_is_started_again_and_nobody_notices() -> None:
    async def main(sim: Simulation) -> None:
        async with laboratory(sim) as lab:
            await lab.sleep(30)
            for _ in range(5):
                lab.cluster.inject(faults.AgentKill("node-1"))
                await lab.sleep(20)
                assert (await lab.readiness())["node-1"] == "True"

    run(main, seed=4)


def test_a_pulled_drive_is_missed_and_found_again_and_a_new_one_is_discovered() -> None:
    async def main(sim: Simulation) -> None:
        async with laboratory(sim, Layout(nodes=1, drives=2)) as lab:
            await lab.sleep(60)
            pulled = lab.cluster.node("node-1").drive("1")
            lab.cluster.inject(faults.DrivePull("node-1", "1"))
            await lab.sleep(120)
            assert await presence(lab.store) == {
                pulled.serial: "OFFLINE",
                lab.cluster.node("node-1").drive("2").serial: "ONLINE",
            }
            lab.cluster.inject(faults.DriveInsert("node-1"))
            await lab.sleep(120)
            assert set((await presence(lab.store)).values()) == {"ONLINE"}
            lab.cluster.inject(faults.DriveSwap("node-1", "1"))
            await lab.sleep(120)
            new = lab.cluster.node("node-1").drive("1")
            found = await presence(lab.store)
            assert found[new.serial] == "ONLINE"
            assert found[pulled.serial] == "OFFLINE"

    async def presence(store: object) -> dict[str, str]:
        drives = (await store.list(Drive)).items  # type: ignore[attr-defined]
        return {drive.spec.serial_number: str(drive.status.presence) for drive in drives}

    run(main, seed=5)


def test_a_failing_drive_says_so() -> None:
    async def main(sim: Simulation) -> None:
        async with laboratory(sim, Layout(nodes=1, drives=1)) as lab:
            await lab.sleep(60)
            lab.cluster.inject(faults.Smart("node-1", "1", "failing"))
            await lab.sleep(900)
            (drive,) = (await lab.store.list(Drive)).items
            assert drive.status.smart is not None
            assert drive.status.smart.health == "BAD"

    run(main, seed=6)


@pytest.mark.parametrize(
    ("fault", "problem"),
    [
        (faults.NodeDown("node-9"), "no simulated node 'node-9'; there are: node-1, node-2, node-3"),
        (faults.NodeUp("node-1"), "has power already"),
        (faults.Cut("node-1", "node-1"), "no link to itself"),
        (faults.Cut("node-1", "node-7"), "no simulated node 'node-7'"),
        (faults.DriveFail("node-1", "sdz"), "node-1 has no drive 'sdz'; it has: "),
        (faults.DriveInsert("node-1"), "pulled out are: none"),
        (faults.Heal("", "node-1"), "name both nodes"),
    ],
)
def test_what_cannot_be_is_refused_with_what_there_is(fault: faults.Fault, problem: str) -> None:
    async def main(sim: Simulation) -> None:
        async with laboratory(sim) as lab:
            with pytest.raises(FaultRefused, match=problem):
                lab.cluster.inject(fault)

    run(main, seed=7)


def test_links_are_cut_in_one_direction_or_both_and_healed() -> None:
    async def main(sim: Simulation) -> None:
        async with laboratory(sim) as lab:
            lab.cluster.inject(faults.Cut("node-1", "node-2"))
            lab.cluster.inject(faults.Cut("node-3", "node-1", one_way=True))
            assert truth_of(lab.cluster).cut == ("node-1 <-> node-2", "node-3 -> node-1")
            lab.cluster.inject(faults.Isolate("node-2"))
            assert truth_of(lab.cluster).cut == ("node-1 <-> node-2", "node-3 -> node-1", "node-2 <-> node-3")
            lab.cluster.inject(faults.Heal("node-1", "node-3"))
            assert truth_of(lab.cluster).cut == ("node-1 <-> node-2", "node-2 <-> node-3")
            lab.cluster.inject(faults.Heal())
            assert truth_of(lab.cluster).cut == ()

    run(main, seed=8)


def test_the_same_seed_is_the_same_history() -> None:
    async def main(sim: Simulation) -> tuple[str, int]:
        async with laboratory(sim) as lab:
            await lab.sleep(45)
            lab.cluster.inject(faults.Reboot("node-3"))
            await lab.sleep(45)
            return sim.fingerprint(), lab.store.resource_version

    assert run(main, seed=9) == run(main, seed=9)
    assert run(main, seed=9) != run(main, seed=10)


def test_with_nothing_changing_nothing_but_leases_is_written() -> None:
    async def main(sim: Simulation) -> None:
        async with laboratory(sim) as lab:
            await lab.sleep(120)
            kinds: list[type[Resource]] = [Node, Drive, LVMVolumeGroup]
            before = [(await lab.store.list(cls)).items for cls in kinds]
            await lab.sleep(1800)
            assert [(await lab.store.list(cls)).items for cls in kinds] == before

    run(main, seed=11)
