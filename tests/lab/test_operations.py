"""Operations of agents on simulated nodes: what differs is made equal, and a range is overwritten everywhere."""

from __future__ import annotations

import pytest

from quorate.api import labels
from quorate.api.meta import NodeName, ObjectMeta
from quorate.api.storage import DRBDResourceOperation
from quorate.api.storage.drbdrop import ByteRange, DRBDResourceOperationSpec, OperationPhase, OperationType
from quorate.engine.simulation import Simulation, run
from quorate.lab import faults
from quorate.lab.kernel import BlockDevice
from tests.lab.handmade import D, HandMadeVolume
from tests.lab.laboratory import Laboratory, laboratory

BLOCK = 4096
MIB = 1024 * 1024
THREE = (("node-1", D), ("node-2", D), ("node-3", D))
PHASES = (OperationPhase.SUCCEEDED, OperationPhase.FAILED)


def backing(lab: Laboratory, volume: HandMadeVolume, number: int) -> BlockDevice:
    found = lab.cluster.node(volume.members[number][0]).host.lvm.find(f"quorate-1/{volume.logical_volume_name(number)}")
    assert found is not None
    return found[1].device


async def operate(volume: HandMadeVolume, kind: OperationType, part: ByteRange | None = None) -> DRBDResourceOperation:
    """Run one on the first member, to its end."""
    made = DRBDResourceOperation(
        metadata=ObjectMeta(name="work", labels={labels.NODE: "node-1", labels.REPLICATED_VOLUME: volume.name}),
        spec=DRBDResourceOperationSpec(
            node_name=NodeName("node-1"), drbd_resource_name=volume.replica_name(0), type=kind, range=part
        ),
    )
    await volume.store.create(made)

    async def over() -> bool:
        return (await volume.store.get(DRBDResourceOperation, "work")).status.phase in PHASES

    await volume.until("the operation is over", over)
    done = await volume.store.get(DRBDResourceOperation, "work")
    await volume.store.delete(DRBDResourceOperation, "work")
    return done


@pytest.mark.parametrize("attached", [False, True], ids=["detached", "attached"])
def test_what_differs_is_found_and_made_equal_to_the_copy_that_is_compared_with(attached: bool) -> None:
    async def main(sim: Simulation) -> None:
        async with laboratory(sim) as lab:
            volume = lab.volume("pvc-1", *THREE, redundancy=2)
            await volume.form()
            if attached:
                await volume.promote(0)
            backing(lab, volume, 0).write(7 * BLOCK, BLOCK, "good")
            backing(lab, volume, 1).write(7 * BLOCK, BLOCK, "bad")
            backing(lab, volume, 2).write(9 * BLOCK, 3 * BLOCK, "bad")
            done = await operate(volume, OperationType.VERIFY)
            assert done.status.phase is OperationPhase.SUCCEEDED
            assert done.status.message == "2 of 2 copies differed and were made equal"
            for number in range(3):
                assert backing(lab, volume, number).read(7 * BLOCK) == "good"
                assert backing(lab, volume, number).read(10 * BLOCK) is None
            await volume.until_healthy()
            again = await operate(volume, OperationType.VERIFY)
            assert again.status.message == "0 of 2 copies differed and were made equal"

    run(main, seed=1)


def test_only_the_range_is_compared() -> None:
    async def main(sim: Simulation) -> None:
        async with laboratory(sim) as lab:
            volume = lab.volume("pvc-1", *THREE, redundancy=2)
            await volume.form()
            for place in (4, 40):
                backing(lab, volume, 1).write(place * MIB, BLOCK, "bad")
            await operate(volume, OperationType.VERIFY, ByteRange(start=32 * MIB, end=48 * MIB))
            assert backing(lab, volume, 1).read(40 * MIB) is None
            assert backing(lab, volume, 1).read(4 * MIB) == "bad"

    run(main, seed=1)


def test_a_comparison_whose_link_is_lost_on_the_way_begins_again() -> None:
    async def main(sim: Simulation) -> None:
        async with laboratory(sim) as lab:
            volume = lab.volume("pvc-1", *THREE, redundancy=2)
            await volume.form()
            backing(lab, volume, 1).write(120 * MIB, BLOCK, "bad")
            working = sim.loop.create_task(operate(volume, OperationType.VERIFY))
            await lab.sleep(3)
            lab.cluster.inject(faults.Cut("node-1", "node-2"))
            await lab.sleep(20)
            assert not working.done()
            lab.cluster.inject(faults.Heal())
            assert (await working).status.phase is OperationPhase.SUCCEEDED
            assert backing(lab, volume, 1).read(120 * MIB) is None

    run(main, seed=2)


def test_a_range_is_overwritten_everywhere_and_nobody_is_left_primary() -> None:
    async def main(sim: Simulation) -> None:
        async with laboratory(sim) as lab:
            volume = lab.volume("pvc-1", *THREE, redundancy=2)
            await volume.form()
            for number in range(3):
                backing(lab, volume, number).write(32 * MIB, 2 * MIB, f"old metadata of {number}")
            done = await operate(volume, OperationType.ZERO_RANGE, ByteRange(start=32 * MIB, end=33 * MIB))
            assert done.status.phase is OperationPhase.SUCCEEDED
            for number in range(3):
                assert backing(lab, volume, number).read(32 * MIB + BLOCK) is None
                assert backing(lab, volume, number).read(33 * MIB) == f"old metadata of {number}"
                status = (await volume.replica(number)).status.drbd.status
                assert status is not None
                assert status.role == "Secondary"
            await volume.promote(1)

    run(main, seed=3)


def test_nothing_is_overwritten_while_the_volume_is_attached_and_it_goes_on_when_it_is_not() -> None:
    async def main(sim: Simulation) -> None:
        async with laboratory(sim) as lab:
            volume = lab.volume("pvc-1", *THREE, redundancy=2)
            await volume.form()
            backing(lab, volume, 0).write(32 * MIB, MIB, "a user's")
            await volume.promote(1)
            working = sim.loop.create_task(
                operate(volume, OperationType.ZERO_RANGE, ByteRange(start=32 * MIB, end=33 * MIB))
            )
            await lab.sleep(60)
            assert backing(lab, volume, 0).read(32 * MIB) == "a user's"
            await volume.promote(1, primary=False)
            assert (await working).status.phase is OperationPhase.SUCCEEDED

    run(main, seed=4)
