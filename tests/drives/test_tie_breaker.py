"""A copy whose only place is the tie-breaker's node: the tie-breaker moves first, if it can."""

from __future__ import annotations

import pytest

from quorate.api.baremetal.drive import OperationalStatus
from quorate.api.meta import ObjectMeta
from quorate.api.storage import ReplicatedStorageClass, ReplicatedStoragePool
from quorate.api.storage.configuration import Replication
from quorate.api.storage.rsc import ReplicatedStorageClassSpec
from quorate.api.storage.rsp import PoolType, PoolVolumeGroup, ReplicatedStoragePoolSpec
from quorate.engine.simulation import Simulation, run
from quorate.lab.layout import Layout

from .laboratory import SETTLED, DriveLab, drive_lab, in_use

RELEASING, RELEASED, REMOVED = OperationalStatus.RELEASING, OperationalStatus.RELEASED, OperationalStatus.REMOVED


async def three_disks(lab: DriveLab) -> None:
    """A volume of two copies and a tie-breaker, on a pool with one disk on each of the first three nodes."""
    members = tuple(PoolVolumeGroup(name=f"node-{number}-disk-1") for number in (1, 2, 3))
    spec = ReplicatedStoragePoolSpec(type=PoolType.LVM, lvm_volume_groups=members)
    await lab.store.create(ReplicatedStoragePool(metadata=ObjectMeta(name="pool"), spec=spec))
    made = ReplicatedStorageClassSpec(storage_pool="pool", replication=Replication.AVAILABILITY)
    await lab.store.create(ReplicatedStorageClass(metadata=ObjectMeta(name="two"), spec=made))
    await lab.sleep(SETTLED)
    await lab.lab.create("v", "two", "64Mi")
    await lab.lab.until_ready("v")


async def members(lab: DriveLab) -> dict[str, str]:
    """Types by node, of those that count."""
    status = (await lab.lab.volume("v")).status
    return {str(each.node_name): str(each.type) for each in status.datamesh.members if not each.hidden}


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_tie_breaker_moves_first_when_its_node_has_the_only_free_disk(seed: int) -> None:
    async def main(sim: Simulation) -> None:
        async with drive_lab(sim, Layout(nodes=4)) as lab:
            await three_disks(lab)
            before = await members(lab)
            tie_breaker = next(node for node, kind in before.items() if kind == "TieBreaker")
            assert tie_breaker != "node-4", "it has the third disk's node"
            bad, good = sorted(node for node, kind in before.items() if kind == "Diskful")
            story = await in_use(lab, good)
            assert await story.write(good, "before")
            drive = await lab.drive(bad)
            await lab.annotate(drive, health="BAD")
            most = 0

            async def released() -> bool:
                nonlocal most
                status = (await lab.lab.volume("v")).status
                most = max(most, len(status.datamesh.members))
                return (await lab.again(drive)).status.operational_status is RELEASED

            await lab.until("the copy is made on the former tie-breaker's node", released, patience=900)
            assert await members(lab) == {good: "Diskful", tie_breaker: "Diskful", "node-4": "TieBreaker"}
            assert most <= 4, "never more than one beyond the layout"
            assert await story.write(good, "after")
            assert set(lab.up_to_date("v")) == {good, tie_breaker}
            assert not lab.violations

    run(main, seed=seed)


def test_where_there_is_no_other_node_for_the_tie_breaker_that_is_said() -> None:
    async def main(sim: Simulation) -> None:
        async with drive_lab(sim, Layout(nodes=3)) as lab:
            await three_disks(lab)
            before = await members(lab)
            tie_breaker = next(node for node, kind in before.items() if kind == "TieBreaker")
            drive = await lab.drive(min(node for node, kind in before.items() if kind == "Diskful"))
            await lab.annotate(drive, health="BAD")
            await lab.sleep(300)
            found = await lab.again(drive)
            assert found.status.operational_status is RELEASING
            assert f"{tie_breaker} has a disk for it and is taken by the tie-breaker" in found.status.message
            assert "no other node: add a node" in found.status.message
            assert await members(lab) == before

    run(main, seed=4)
