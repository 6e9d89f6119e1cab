"""What it costs to make many logical volumes on one node: no more for each than for one alone."""

from __future__ import annotations

from collections import Counter

import pytest

from quorate.api.quantity import Quantity
from quorate.api.storage import LVMLogicalVolume, LVMVolumeGroup
from quorate.api.storage.llv import LogicalVolumePhase
from quorate.engine.simulation import Simulation, run
from tests.agent.lvm.fake import EXTENT, FakeMachine
from tests.agent.lvm.rig import Rig, llv, lvg

FREE = 1000


async def _begun(sim: Simulation) -> tuple[Rig, FakeMachine]:
    machine = FakeMachine(free={"vg0": FREE})
    rig = await Rig.begin(sim, machine)
    await rig.store.create(lvg())
    rig.start()
    await sim.clock.sleep(30)
    machine.ran.clear()
    return rig, machine


async def _all_created(rig: Rig) -> bool:
    found = (await rig.store.list(LVMLogicalVolume)).items
    return all(each.status.phase is LogicalVolumePhase.CREATED for each in found)


@pytest.mark.parametrize("count", [10, 60, 120])
def test_many_that_are_asked_for_at_once_need_few_looks_each_and_are_made_soon(count: int) -> None:
    async def main(sim: Simulation) -> None:
        rig, machine = await _begun(sim)
        for number in range(count):
            await rig.store.create(llv(f"pvc-{number}-0-0123abcd", mib=4))
        await sim.clock.sleep(5)
        assert await _all_created(rig)
        ran = Counter(argv[0] for argv in machine.ran)
        assert ran["lvcreate"] == count
        assert ran["lvs"] <= 2 * count
        assert ran["vgs"] <= 2

    run(main, seed=1)


def test_while_volumes_come_one_after_the_other_groups_are_looked_at_now_and_then_and_told_of_rightly() -> None:
    async def main(sim: Simulation) -> None:
        rig, machine = await _begun(sim)
        for number in range(40):
            await rig.store.create(llv(f"pvc-{number}-0-0123abcd", mib=4))
            await sim.clock.sleep(1)
        assert await _all_created(rig)
        assert sum(argv[0] == "vgs" for argv in machine.ran) <= 23
        await sim.clock.sleep(60)
        told = (await rig.store.get(LVMVolumeGroup, "disk-1")).status
        assert told.vg_free == Quantity.of_bytes((FREE - 40) * EXTENT)

    run(main, seed=1)
