"""Births and deaths of volumes when not all goes well: no room, lost nodes, lost status, a bad network."""

from __future__ import annotations

import pytest

from quorate.api import conditions, core
from quorate.api.conditions.rv import Ready, Resilient, SharedSecretAlgorithmSelected, StatusLost
from quorate.api.storage import DRBDResourceOperation, ReplicatedVolume
from quorate.api.storage.configuration import Replication
from quorate.api.storage.datamesh import FormationPhase
from quorate.api.storage.drbd import SharedSecretAlgorithm
from quorate.api.storage.rv import VolumePhase
from quorate.engine.simulation import Simulation, for_each_seed, run
from quorate.lab import faults
from quorate.volumes.settling import is_copying
from tests.support.faults import bad
from tests.volumes.attach.stories import FIVE
from tests.volumes.backups import Birth
from tests.volumes.laboratory import VolumeLab, volume_lab
from tests.volumes.test_formation_in_the_lab import nothing_left, provided


def writes_about_volumes(lab: VolumeLab, since: int) -> list[str]:
    kinds = ("ReplicatedVolume", "ReplicatedVolumeReplica", "DiskSchedule", "LVMLogicalVolume", "DRBDResourceOperation")
    return [f"{each.verb} {each.kind} {each.name} at {each.at}" for each in lab.sent[since:] if each.kind in kinds]


def test_a_volume_without_room_waits_without_a_write_and_is_formed_once_there_is() -> None:
    """M10: the seed tore an unschedulable volume down and built it up again every 30 s."""

    async def main(sim: Simulation) -> None:
        async with volume_lab(sim) as lab:
            class_name = await provided(lab, Replication.CONSISTENCY_AND_AVAILABILITY)
            await lab.store.patch(core.Node, "node-3", patch={"spec": {"unschedulable": True}})
            await lab.sleep(5)
            await lab.create("v", class_name)
            await lab.sleep(60)
            volume = await lab.volume()
            assert "scheduling failed" in volume.status.message
            since = len(lab.sent)
            await lab.sleep(3600)
            assert writes_about_volumes(lab, since) == []
            await lab.store.patch(core.Node, "node-3", patch={"spec": {"unschedulable": None}})
            await lab.until_ready(patience=60)
            assert {each.name for each in await lab.replicas()} == {"v-0", "v-1", "v-2"}

    run(main, seed=1)


@pytest.mark.parametrize("seconds", [0.0, 0.01, 0.03, 0.07, 0.5, 1.2, 2.0])
def test_a_volume_that_is_deleted_while_it_forms_leaves_nothing(seconds: float) -> None:
    async def main(sim: Simulation) -> None:
        async with volume_lab(sim) as lab:
            await lab.create("v", await provided(lab, Replication.AVAILABILITY))
            await lab.sleep(seconds)
            await lab.store.delete(ReplicatedVolume, "v")
            await lab.until_gone(patience=60)
            await lab.sleep(5)
            await nothing_left(lab)

    run(main, seed=2)


def test_a_node_that_is_down_holds_a_deletion_and_is_named_until_it_is_back() -> None:
    async def main(sim: Simulation) -> None:
        async with volume_lab(sim) as lab:
            await lab.create("v", await provided(lab, Replication.CONSISTENCY))
            await lab.until_ready()
            lost = (await lab.replicas())[1].spec.node_name or ""
            lab.cluster.inject(faults.NodeDown(lost))
            await lab.sleep(120)
            await lab.store.delete(ReplicatedVolume, "v")
            await lab.sleep(60)
            volume = await lab.volume()
            assert volume.status.phase is VolumePhase.TERMINATING
            found = conditions.find(volume.status.conditions, Ready)
            assert found is not None
            assert found.reason == "NodeDown"
            assert lost in found.message
            lab.cluster.inject(faults.NodeUp(lost))
            await lab.until_gone()
            await lab.sleep(5)
            await nothing_left(lab)

    run(main, seed=1)


def test_a_machine_that_is_gone_for_good_does_not_hold_a_deletion() -> None:
    async def main(sim: Simulation) -> None:
        async with volume_lab(sim) as lab:
            await lab.create("v", await provided(lab, Replication.CONSISTENCY))
            await lab.until_ready()
            lost = (await lab.replicas())[1].spec.node_name or ""
            lab.cluster.inject(faults.NodeDown(lost))
            await lab.sleep(120)
            await lab.store.delete(ReplicatedVolume, "v")
            await lab.sleep(60)
            await lab.store.delete(core.Node, lost)
            await lab.until_gone()

    run(main, seed=1)


def test_a_volume_that_loses_its_status_loses_nothing_else() -> None:
    async def main(sim: Simulation) -> None:
        async with volume_lab(sim) as lab:
            await lab.create("v", await provided(lab, Replication.CONSISTENCY_AND_AVAILABILITY))
            before = await lab.until_ready()
            replicas = {each.name: each.metadata.uid for each in await lab.replicas()}
            gone = dict.fromkeys(
                ("datamesh", "datameshRevision", "configuration", "configurationGeneration", "drbd", "conditions")
            )
            await lab.store.patch_status(ReplicatedVolume, "v", patch=gone)
            await lab.sleep(3600)
            volume = await lab.volume()
            assert conditions.is_true(volume.status.conditions, StatusLost)
            assert {each.name: each.metadata.uid for each in await lab.replicas()} == replicas
            for node in lab.cluster.nodes.values():
                assert len(node.host.kernel.resources()) == 1
            assert before.status.datamesh.members

    run(main, seed=1)


def test_a_volume_is_formed_and_deleted_whatever_the_network_does() -> None:
    async def main(sim: Simulation) -> None:
        async with volume_lab(sim) as lab:
            class_name = await provided(lab, Replication.AVAILABILITY)
            worst = bad()
            lab.faults.__dict__.update(worst.__dict__)
            await lab.create("v", class_name)
            await lab.sleep(120)
            lab.faults.end()
            await lab.until_ready(patience=900)
            lab.faults.__dict__.update(bad().__dict__)
            await lab.store.delete(ReplicatedVolume, "v")
            await lab.sleep(60)
            lab.faults.end()
            await lab.until_gone(patience=900)
            await lab.sleep(60)
            await nothing_left(lab)

    for_each_seed(main, range(4))


def test_kernels_without_sha256_get_the_next_algorithm(monkeypatch: pytest.MonkeyPatch) -> None:
    """M19."""
    monkeypatch.setattr("quorate.lab.host.KNOWN_ALGORITHMS", frozenset({"sha1", "crc32c"}))

    async def main(sim: Simulation) -> None:
        async with volume_lab(sim) as lab:
            await lab.create("v", await provided(lab, Replication.AVAILABILITY))
            volume = await lab.until_ready()
            assert volume.status.drbd.config.shared_secret_alg is SharedSecretAlgorithm.SHA1
            assert volume.status.datamesh_revision == 3

    run(main, seed=1)


def test_kernels_without_any_algorithm_are_named_and_nothing_churns(monkeypatch: pytest.MonkeyPatch) -> None:
    """M19."""
    monkeypatch.setattr("quorate.lab.host.KNOWN_ALGORITHMS", frozenset({"crc32c"}))

    async def main(sim: Simulation) -> None:
        async with volume_lab(sim) as lab:
            await lab.create("v", await provided(lab, Replication.CONSISTENCY))
            await lab.sleep(300)
            found = conditions.find((await lab.volume()).status.conditions, SharedSecretAlgorithmSelected)
            assert found is not None
            assert found.reason == "UnableToSelectSharedSecretAlgorithm"
            assert "node-1" in found.message
            since = len(lab.sent)
            await lab.sleep(3600)
            assert writes_about_volumes(lab, since) == []

    run(main, seed=1)


def test_the_silence_of_an_agent_is_noticed_and_so_is_its_return() -> None:
    """Nothing is written when a Lease is not renewed: somebody must look at the clock for every volume there."""

    async def main(sim: Simulation) -> None:
        async with volume_lab(sim) as lab:
            await lab.create("v", await provided(lab, Replication.CONSISTENCY_AND_AVAILABILITY))
            await lab.until_ready()
            await lab.until_condition(Resilient)
            lab.cluster.inject(faults.CutApi("node-2"))
            await lab.sleep(50)
            volume = await lab.volume()
            assert volume.status.effective_layout.stale_agents == 1
            # Its peers still see it: nothing is lost but its word.
            assert conditions.is_true(volume.status.conditions, Resilient)
            lab.cluster.inject(faults.NodeDown("node-2"))
            await lab.sleep(30)
            volume = await lab.volume()
            assert not conditions.is_true(volume.status.conditions, Resilient)
            assert volume.status.phase is VolumePhase.DEGRADED
            lab.cluster.inject(faults.Heal("node-2", ""))
            lab.cluster.inject(faults.NodeUp("node-2"))
            await lab.until_condition(Resilient)
            await lab.until_ready()

    run(main, seed=1)


def test_members_that_cannot_reach_each_other_and_have_nothing_are_given_up_and_formed_anew() -> None:
    async def main(sim: Simulation) -> None:
        async with volume_lab(sim) as lab:
            class_name, birth = await provided(lab, Replication.CONSISTENCY_AND_AVAILABILITY), Birth(lab)
            lab.cluster.inject(faults.Cut("node-1", "node-2"))
            birth.watch()
            await lab.create("v", class_name)

            async def given_up() -> bool:
                return FormationPhase.RESTARTING in birth.first

            await lab.until("it starts again", given_up, 120)
            lab.cluster.inject(faults.Heal("", ""))
            await lab.until_ready()

    run(main, seed=1)


def test_a_volume_that_loses_a_node_for_good_in_its_first_copy_lives_and_gets_another() -> None:
    """What was copied is not thrown away: nobody can tell it from what users write."""

    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, FIVE) as lab:
            class_name = await provided(lab, Replication.CONSISTENCY_AND_AVAILABILITY)
            await lab.create("v", class_name, "4Gi")

            async def copying() -> bool:
                return any(is_copying(each) for each in (await lab.store.list(DRBDResourceOperation)).items)

            await lab.until("its first copy is under way", copying)
            lost = (await lab.replicas())[2].spec.node_name or ""
            lab.cluster.inject(faults.NodeDown(lost))
            volume = await lab.until_condition(Resilient, patience=3600)
            assert lost not in {each.node_name for each in volume.status.datamesh.members}
            events = {each.reason for each in (await lab.store.list(core.Event)).items}
            assert "FoundFormed" in events
            assert "FormationRestarted" not in events

    run(main, seed=1)
