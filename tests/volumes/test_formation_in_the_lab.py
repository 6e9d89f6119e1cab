"""Volumes are born, and die, on simulated nodes: the controllers and agents that really run, and the kernel's model."""

from __future__ import annotations

from collections import Counter

import pytest

from quorate.api.conditions.rv import Resilient
from quorate.api.longhorn import DiskSchedule
from quorate.api.storage import DRBDResourceOperation, LVMLogicalVolume, ReplicatedVolume, ReplicatedVolumeReplica
from quorate.api.storage.configuration import Replication
from quorate.api.storage.drbd import DiskState
from quorate.api.storage.rv import VolumePhase
from quorate.engine.simulation import Simulation, run
from quorate.lab import faults
from tests.support.faults import Sent
from tests.volumes.laboratory import VolumeLab, volume_lab

LEVELS = [
    pytest.param(Replication.NONE, "1D", id="1D"),
    pytest.param(Replication.AVAILABILITY, "2D+1TB", id="2D+1TB"),
    pytest.param(Replication.CONSISTENCY, "2D", id="2D"),
    pytest.param(Replication.CONSISTENCY_AND_AVAILABILITY, "3D", id="3D"),
]
#: Until agents have reported their disks and the pool lists its nodes.
SETTLED = 30.0
#: Until what is only counted now and then has been: volumes of a class, bytes of a group.
COUNTED = 60.0


async def provided(lab: VolumeLab, replication: Replication, *, thin: bool = False) -> str:
    name = await lab.provide(replication, thin=thin)
    await lab.sleep(SETTLED)
    return name


async def nothing_left(lab: VolumeLab) -> None:
    """No object, no entry in a ledger, no resource, logical volume or file on any node."""
    for kind in (ReplicatedVolume, ReplicatedVolumeReplica, LVMLogicalVolume, DRBDResourceOperation):
        assert (await lab.store.list(kind)).items == ()
    for ledger in (await lab.store.list(DiskSchedule)).items:
        assert not ledger.spec.replicas
        assert not ledger.status.replicas
    for node in lab.cluster.nodes.values():
        if node.host.powered:
            assert node.host.kernel.resources() == []
        volumes = [name for group in node.host.lvm.groups.values() for name in group.volumes]
        assert [name for name in volumes if name.startswith("replica-v-")] == []
        kept = (".res", ".res_tmp", ".res_new", ".lkbd")
        assert [path for path in node.host.files if path.endswith(kept)] == []


@pytest.mark.parametrize("thin", [False, True], ids=["thick", "thin"])
@pytest.mark.parametrize(("replication", "layout"), LEVELS)
def test_a_volume_is_formed_comes_to_rest_and_is_deleted_without_a_trace(
    replication: Replication, layout: str, thin: bool
) -> None:
    async def main(sim: Simulation) -> None:
        async with volume_lab(sim) as lab:
            await lab.create("v", await provided(lab, replication, thin=thin))
            volume = await lab.until_ready()
            assert volume.status.membership_layout == layout
            assert volume.status.phase is VolumePhase.READY
            assert volume.status.datamesh_transitions == ()
            await lab.until_condition(Resilient)
            for replica in await lab.replicas():
                shown = replica.status.drbd.status
                assert shown is not None
                expected = DiskState.UP_TO_DATE if replica.spec.lvm_volume_group_name else DiskState.DISKLESS
                assert shown.devices[0].disk_state == expected
            await lab.sleep(COUNTED)
            since = len(lab.sent)
            await lab.sleep(600)
            quiet = [write for write in lab.sent[since:] if write.kind.startswith("Replicated")]
            assert quiet == []
            await lab.store.delete(ReplicatedVolume, "v")
            await lab.until_gone()
            await lab.sleep(5)
            await nothing_left(lab)

    run(main, seed=1)


def lives_with_a_crash_after(write_number: int, replication: Replication) -> bool:
    """Whether there was a write of that number; the controllers are killed right after it, and started again."""
    reached = False

    async def main(sim: Simulation) -> None:
        nonlocal reached
        async with volume_lab(sim) as lab:
            class_name = await provided(lab, replication)
            count = 0

            def kill(_: Sent) -> None:
                nonlocal count, reached
                count += 1
                if count == write_number:
                    reached, lab.watcher = True, None
                    sim.loop.call_soon(crash)

            def crash() -> None:
                lab.kill()
                lab.start()

            lab.watcher = kill
            await lab.create("v", class_name)
            await lab.until_ready()
            await lab.store.delete(ReplicatedVolume, "v")
            await lab.until_gone()
            lab.watcher = None
            await lab.sleep(5)
            await nothing_left(lab)

    run(main, seed=write_number)
    return reached


@pytest.mark.parametrize(
    ("replication", "stride"),
    [
        pytest.param(Replication.NONE, 1, id="1D, after every write"),
        pytest.param(Replication.AVAILABILITY, 5, id="2D+1TB, after every fifth"),
    ],
)
def test_a_crash_of_the_controllers_between_two_writes_of_a_volumes_life_leaves_nothing_stuck(
    replication: Replication, stride: int
) -> None:
    number = 1
    while lives_with_a_crash_after(number, replication):
        number += stride
    assert number > 30


def test_a_node_that_is_lost_while_the_volume_forms_holds_it_until_it_is_back() -> None:
    async def main(sim: Simulation) -> None:
        async with volume_lab(sim) as lab:
            class_name = await provided(lab, Replication.CONSISTENCY_AND_AVAILABILITY)
            await lab.create("v", class_name)
            await lab.sleep(0.05)
            lab.cluster.inject(faults.NodeDown("node-2"))
            await lab.sleep(300)
            volume = await lab.volume()
            assert volume.status.phase is VolumePhase.FORMING
            assert "node-2" in volume.status.message
            lab.cluster.inject(faults.NodeUp("node-2"))
            await lab.until_ready()

    run(main, seed=3)


def test_a_formation_of_three_copies_writes_no_object_twice_where_once_would_do() -> None:
    """Prints the table (with -s). At most 48, and 3 for the secret; each is the least that can be decided upon."""
    table: Counter[tuple[str, str, str]] = Counter()

    async def main(sim: Simulation) -> None:
        async with volume_lab(sim) as lab:
            class_name = await provided(lab, Replication.CONSISTENCY_AND_AVAILABILITY)
            since = len(lab.sent)
            await lab.create("v", class_name)
            await lab.until_ready()
            table.update(lab.writes(since))

    run(main, seed=1)
    print()
    for (writer, verb, kind), count in sorted(table.items()):
        print(f"{count:4}  {writer:10}  {verb:12}  {kind}")
    print(f"{sum(table.values()):4}  in all")

    def of(verb: str, kind: str, writer: str = "controller") -> int:
        return table[writer, verb, kind]

    assert of("patch", "ReplicatedVolume") == 1  # its finalizer and its label
    assert of("patch_status", "ReplicatedVolume") == 5  # minor; three phases begin; formed and ready
    assert of("create", "ReplicatedVolumeReplica") == 3
    assert of("patch", "ReplicatedVolumeReplica") == 3  # node and disk
    assert of("patch_status", "ReplicatedVolumeReplica") <= 9  # asks to join; config; ready
    assert of("patch", "DiskSchedule") == of("patch_status", "DiskSchedule") == 3  # asked, granted
    assert of("create", "LVMLogicalVolume") == 3
    assert of("create", "DRBDResourceOperation") == 1
    assert of("patch_status", "LVMLogicalVolume", "agents") == 3  # made
    assert of("patch_status", "ReplicatedVolumeReplica", "agents") <= 12  # address; metadata; connected; up to date
    assert of("patch_status", "DRBDResourceOperation", "agents") == 2  # written before it is done, and after
    assert [of("create", kind) for kind in ("Secret", "Role", "RoleBinding")] == [1, 1, 1]  # who may read its secret
    assert sum(table.values()) <= 51
