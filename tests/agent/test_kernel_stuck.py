"""Commands that hang in the kernel (D state): one in the air for each resource, others go on, the node is told of."""

from __future__ import annotations

import pytest

from quorate.api import conditions, longhorn, names
from quorate.api.conditions.disks import Schedulable
from quorate.api.conditions.inventory import KernelStuck
from quorate.api.storage import ReplicatedStoragePool
from quorate.api.storage.configuration import Replication
from quorate.api.storage.rv import ReplicatedVolume
from quorate.engine.simulation import Simulation, run
from quorate.lab import faults
from quorate.lab.layout import Layout
from tests.agent.replica.test_life import spied
from tests.volumes.attach.stories import Story
from tests.volumes.laboratory import VolumeLab, volume_lab


async def inventory(lab: VolumeLab, node: str) -> longhorn.Node:
    return await lab.store.get(longhorn.Node, node, names.NAMESPACE)


@pytest.mark.parametrize("hanging", ["drbdsetup down", "lvremove"])
def test_a_node_whose_commands_hang_takes_nothing_new_and_says_so(
    monkeypatch: pytest.MonkeyPatch, hanging: str
) -> None:
    async def main(sim: Simulation) -> None:
        with spied(monkeypatch) as commands:
            async with volume_lab(sim, Layout(nodes=3, zones=1, drives=1)) as lab:
                story = await Story.of(lab, Replication.CONSISTENCY)
                node = min(story.copies())
                lab.cluster.inject(faults.Hang(node, hanging))
                await lab.store.delete(ReplicatedVolume, "v")
                await lab.sleep(62)
                found = await inventory(lab, node)
                assert [each.command.startswith(hanging) for each in found.status.stuck_commands] == [True]
                stuck = conditions.find(found.status.conditions, KernelStuck)
                assert stuck is not None
                assert stuck.reason == "CommandsHang"
                assert hanging in stuck.message
                assert conditions.find(found.status.conditions, Schedulable).reason == "KernelStuck"  # type: ignore[union-attr]
                pool = (await lab.store.list(ReplicatedStoragePool)).items[0]
                assert [each.node_name for each in pool.status.eligible_nodes if each.kernel_stuck] == [node]
                await lab.sleep(900)
                assert sum(said.startswith(hanging) for where, said in commands.ran if where == node) == 1
                lab.cluster.inject(faults.Release(node))
                await lab.sleep(30)
                found = await inventory(lab, node)
                assert found.status.stuck_commands == ()
                assert conditions.find(found.status.conditions, KernelStuck).reason == "NothingHangs"  # type: ignore[union-attr]

    run(main, seed=1)
