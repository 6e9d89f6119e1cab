"""A cluster grows and shrinks: volume groups are added to a pool, and taken out of it (F8)."""

from __future__ import annotations

import pytest

from quorate.api import conditions
from quorate.api.conditions.rsp import VolumeGroupsLeft
from quorate.api.core import Event
from quorate.api.storage import ReplicatedStoragePool
from quorate.api.storage.configuration import Replication, Topology
from quorate.engine.simulation import Simulation, run
from quorate.lab import faults
from quorate.lab.layout import Layout
from tests.support.faults import Sent
from tests.volumes.attach.stories import Story
from tests.volumes.laboratory import POOL, VolumeLab, volume_lab

#: Until agents have reported their disks and the pool lists its nodes.
SETTLED = 30.0


async def groups_are(lab: VolumeLab, *nodes: int, slot: int = 1) -> None:
    """``kubectl edit rsp``."""
    members = [{"name": f"node-{number}-disk-{slot}"} for number in nodes]
    await lab.store.patch(ReplicatedStoragePool, POOL, patch={"spec": {"lvmVolumeGroups": members}})


async def copies_are_on(lab: VolumeLab, *nodes: int, names: tuple[str, ...] = ("v",)) -> None:
    wanted = {f"node-{number}" for number in nodes}

    async def check() -> bool:
        for name in names:
            status = (await lab.volume(name)).status
            members = [each for each in status.datamesh.members if each.type == "Diskful"]
            on = {str(each.node_name) for each in members}
            if on != wanted or status.effective_layout.up_to_date_voters != len(wanted) or status.datamesh_transitions:
                return False
        return True

    await lab.until(f"the copies of {names} are on {wanted}", check, 600)
    for name in names:
        await lab.until_ready(name)


async def left(lab: VolumeLab) -> bool:
    pool = await lab.store.get(ReplicatedStoragePool, POOL)
    return conditions.is_true(pool.status.conditions, VolumeGroupsLeft) and not pool.status.leaving_volume_groups


@pytest.mark.parametrize("replication", [Replication.CONSISTENCY_AND_AVAILABILITY, Replication.CONSISTENCY])
def test_a_pool_grows_by_a_node_and_one_that_is_taken_out_is_emptied(replication: Replication) -> None:
    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, Layout(nodes=4)) as lab:
            most: list[int] = []
            class_name = await lab.provide(replication)
            await groups_are(lab, 1, 2, 3)
            await lab.sleep(SETTLED)
            await lab.create("v", class_name)
            await lab.create("w", class_name)
            for name in ("v", "w"):
                await lab.until_ready(name)
            before = {name: _copies(await lab.volume(name)) for name in ("v", "w")}
            size = len(before["v"])
            story = Story(lab)
            out = next(number for number in (1, 2, 3) if f"node-{number}" in before["v"])
            used = next(node for node in sorted(before["v"]) if node != f"node-{out}")
            await story.attach(used)
            await story.until_primary(used)
            assert await story.write(used, "before")

            def watch(_: Sent) -> None:
                pieces = [
                    name
                    for node in lab.cluster.nodes.values()
                    for group in node.host.lvm.groups.values()
                    for name in group.volumes
                    if name.startswith("replica-v-")
                ]
                most.append(len(pieces))

            lab.watcher = watch
            staying = [number for number in (1, 2, 3, 4) if number != out]
            await groups_are(lab, *staying)
            await lab.until("the pool says that something leaves", lambda: _is_leaving(lab), 60)
            pool = await lab.store.get(ReplicatedStoragePool, POOL)
            assert f"node-{out}-disk-1" in pool.status.message
            assert [each.name for each in pool.status.leaving_volume_groups] == [f"node-{out}-disk-1"]
            await lab.until("nothing is left where it should not be", lambda: left(lab), 600)
            for name in ("v", "w"):
                volume = await lab.until_ready(name)
                assert f"node-{out}" not in _copies(volume)
                assert len(_copies(volume)) == size
            assert max(most) <= size + 1
            assert await story.write(used, "after")
            told = [event.reason for event in (await lab.store.list(Event)).items if event.involved_object.name == POOL]
            assert {"Leaving", "Left"} <= set(told)

    run(main, seed=1)


def test_a_copy_without_another_place_stays_and_the_pool_and_the_volume_say_so() -> None:
    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, Layout(nodes=4)) as lab:
            class_name = await lab.provide(Replication.CONSISTENCY_AND_AVAILABILITY)
            await groups_are(lab, 1, 2, 3)
            await lab.sleep(SETTLED)
            await lab.create("v", class_name)
            await lab.until_ready()
            await groups_are(lab, 1, 2)
            await lab.sleep(300)
            assert len(_copies(await lab.volume())) == 3
            pool = await lab.store.get(ReplicatedStoragePool, POOL)
            assert [(each.name, each.replicas) for each in pool.status.leaving_volume_groups] == [("node-3-disk-1", 1)]
            waiting = [each for each in await lab.replicas() if each.spec.node_name is None]
            assert len(waiting) == 1
            words = " ".join(each.message for each in waiting[0].status.conditions)
            assert "node-4: no volume group of the pool (add one to the pool's spec.lvmVolumeGroups)" in words
            # The cluster grows: it goes on by itself.
            await groups_are(lab, 1, 2, 4)
            await copies_are_on(lab, 1, 2, 4)
            await lab.until("nothing is left where it should not be", lambda: left(lab), 60)

    run(main, seed=2)


def test_a_copy_that_is_to_leave_keeps_no_zone_for_itself() -> None:
    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, Layout(nodes=4, zones=3)) as lab:
            both = Replication.CONSISTENCY_AND_AVAILABILITY
            class_name = await lab.provide(both, topology=Topology.TRANS_ZONAL)
            await groups_are(lab, 1, 2, 3)
            await lab.sleep(SETTLED)
            await lab.create("v", class_name)
            await lab.until_ready()
            # node-4 is in the zone of node-1.
            await groups_are(lab, 4, 2, 3)
            await copies_are_on(lab, 4, 2, 3)

    run(main, seed=4)


def test_a_group_that_is_taken_in_again_keeps_what_it_has() -> None:
    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, Layout(nodes=4)) as lab:
            class_name = await lab.provide(Replication.CONSISTENCY_AND_AVAILABILITY)
            await groups_are(lab, 1, 2, 3)
            await lab.sleep(SETTLED)
            await lab.create("v", class_name)
            await lab.until_ready()
            await groups_are(lab, 1, 2)
            await lab.until("the pool says that something leaves", lambda: _is_leaving(lab), 60)
            await groups_are(lab, 1, 2, 3)
            await copies_are_on(lab, 1, 2, 3)
            await lab.until("nothing leaves", lambda: left(lab), 60)
            assert len(await lab.replicas()) == 3

    run(main, seed=3)


def test_a_group_that_is_taken_out_while_its_node_is_away_is_not_called_left() -> None:
    """A node that is away for long is not listed, and its groups with it: its copy is there all the same."""

    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, Layout(nodes=3)) as lab:
            class_name = await lab.provide(Replication.CONSISTENCY_AND_AVAILABILITY)
            await lab.sleep(SETTLED)
            await lab.create("v", class_name)
            await lab.until_ready("v")
            lab.cluster.inject(faults.NodeDown(node="node-3"))

            async def unlisted() -> bool:
                pool = await lab.store.get(ReplicatedStoragePool, POOL)
                return "node-3" not in {each.node_name for each in pool.status.eligible_nodes}

            await lab.until("the node is not listed", unlisted, 3600)
            await groups_are(lab, 1, 2)
            await lab.sleep(30)
            assert await _is_leaving(lab)
            lab.cluster.inject(faults.NodeUp(node="node-3"))
            await lab.sleep(60)
            pool = await lab.store.get(ReplicatedStoragePool, POOL)
            assert [(each.name, each.replicas) for each in pool.status.leaving_volume_groups] == [("node-3-disk-1", 1)]

    run(main, seed=5)


async def _is_leaving(lab: VolumeLab) -> bool:
    return bool((await lab.store.get(ReplicatedStoragePool, POOL)).status.leaving_volume_groups)


def _copies(volume: object) -> set[str]:
    members = volume.status.datamesh.members  # type: ignore[attr-defined]
    return {str(each.node_name) for each in members if each.type == "Diskful"}
