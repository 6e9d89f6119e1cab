"""Commands that hang in the kernel (D state): one in the air for each resource, others go on, the node is told of."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from quorate.agent.hands import UnderWay
from quorate.agent.kernel_stuck import PATIENCE, StuckView, decide
from quorate.api import conditions, longhorn, names
from quorate.api.conditions.disks import Schedulable
from quorate.api.conditions.inventory import KernelStuck
from quorate.api.meta import ObjectMeta
from quorate.api.storage import ReplicatedStoragePool
from quorate.api.storage.configuration import Replication
from quorate.api.storage.rv import ReplicatedVolume
from quorate.engine.simulation import Simulation, run
from quorate.explain.listing import fetch
from quorate.explain.story import tell
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
                story_told = tell(await fetch(lab.store, lab.sim.clock.now()), "v", lab.sim.clock.now())
                assert story_told is not None
                troubled = {
                    each.node for each in story_told.replicas for one in each.troubles if "reboot it" in one.remedy
                }
                assert troubled == ({node} if hanging == "drbdsetup down" else set())  # else its replica is gone by now
                await lab.sleep(900)
                assert sum(said.startswith(hanging) for where, said in commands.ran if where == node) == 1
                lab.cluster.inject(faults.Release(node))
                await lab.sleep(30)
                found = await inventory(lab, node)
                assert found.status.stuck_commands == ()
                assert conditions.find(found.status.conditions, KernelStuck).reason == "NothingHangs"  # type: ignore[union-attr]

    run(main, seed=1)


@pytest.mark.parametrize(
    ("command", "stuck"),
    [
        ("drbdadm -c /var/lib/quorate/drbd.d/v.res adjust v", True),
        ("drbdsetup down v", True),
        ("drbdadm -c /var/lib/quorate/drbd.d/v.res create-md --max-peers=7 --force v", False),
        ("blkdiscard /dev/vg0/v", False),
        ("", False),
    ],
)
def test_what_hangs_in_the_kernel_and_what_takes_its_time(command: str, stuck: bool) -> None:
    now = datetime(2030, 1, 1, tzinfo=UTC)
    node = longhorn.Node(metadata=ObjectMeta(name="n1", namespace=names.NAMESPACE))
    running = {"resource v": UnderWay(command, now - timedelta(seconds=PATIENCE))}
    plan = decide(StuckView(node, running), now, Random(1))
    assert (plan.requeue_after is not None) is stuck
