"""Volumes grow on simulated nodes: detached and attached, thick and thin, with power lost at any moment."""

from __future__ import annotations

import pytest

from quorate.api import conditions
from quorate.api.conditions.rv import DiskAllocation
from quorate.api.longhorn import DiskSchedule
from quorate.api.storage import LVMLogicalVolume, ReplicatedVolumeReplica
from quorate.api.storage.configuration import Replication
from quorate.api.storage.drbd import ReplicaType
from quorate.engine.simulation import Simulation, run
from quorate.errors import Invalid
from quorate.explain.listing import fetch
from quorate.explain.story import tell
from quorate.lab import faults
from tests.volumes.attach.stories import ALL, FIVE, NAMES, Story
from tests.volumes.laboratory import HOUSEKEEPING, VolumeLab, volume_lab

D = ReplicaType.DISKFUL
LEVELS = [pytest.param(each, id=NAMES[each]) for each in ALL]
MIB = 1024 * 1024
BLOCK = 4096
SMALL, LARGE = 64 * MIB, 128 * MIB


async def until_grown(story: Story, size: int = LARGE, patience: float = 300.0) -> None:
    async def check() -> bool:
        status = (await story.volume()).status
        return status.actual_size is not None and int(status.actual_size) >= size

    await story.lab.until(f"the volume has {size} bytes", check, patience)
    await story.until_calm(patience)


def blocks_that_differ(story: Story) -> list[int]:
    """Places of the volume at which copies differ."""
    return [at for at in range(0, LARGE, BLOCK) if len(set(story.copies(at).values())) > 1]


@pytest.mark.parametrize("thin", [False, True], ids=["thick", "thin"])
@pytest.mark.parametrize("replication", LEVELS)
def test_a_volume_that_nobody_uses_grows_and_its_copies_are_alike(replication: Replication, thin: bool) -> None:
    """M20: nothing is copied, and the former metadata is overwritten."""

    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, FIVE) as lab:
            story = await Story.of(lab, replication, thin=thin)
            first = (await story.nodes(D))[0]
            await story.attach(first)
            await story.until_primary(first)
            assert await story.write(first, "kept", 60 * MIB)
            await story.detach(first)
            await story.until_primary()
            await story.resize("128Mi")
            await until_grown(story)
            assert blocks_that_differ(story) == []
            assert set(story.copies(60 * MIB).values()) == {"kept"}
            assert all(
                not isinstance(tag, tuple) for at in range(60 * MIB, LARGE, BLOCK) for tag in story.copies(at).values()
            )
            await story.attach(first)
            await story.until_primary(first)
            assert await story.write(first, "new", 120 * MIB)
            assert set(story.copies(120 * MIB).values()) == {"new"}
            await lab.sleep(30)

    run(main, seed=1)


@pytest.mark.parametrize("thin", [False, True], ids=["thick", "thin"])
@pytest.mark.parametrize("replication", LEVELS)
def test_a_volume_in_use_grows_without_a_pause_or_waits_until_it_is_not(replication: Replication, thin: bool) -> None:
    """2D waits: every copy is needed, and one is behind for a moment."""

    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, FIVE) as lab:
            story = await Story.of(lab, replication, thin=thin)
            first = (await story.nodes(D))[0]
            await story.attach(first)
            await story.until_primary(first)
            await story.resize("128Mi")
            if replication is Replication.CONSISTENCY:
                await lab.sleep(60)
                volume = await story.volume()
                assert volume.status.actual_size is not None
                assert int(volume.status.actual_size) < LARGE
                assert "detach it first" in volume.status.message
                await story.detach(first)
            await until_grown(story)
            assert blocks_that_differ(story) == []
            if replication is not Replication.CONSISTENCY:
                assert await story.write(first, "new", 120 * MIB)
                assert set(story.copies(120 * MIB).values()) == {"new"}

    run(main, seed=2)


def test_what_a_user_writes_where_the_old_metadata_was_is_never_overwritten() -> None:
    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, FIVE) as lab:
            story = await Story.of(lab, Replication.CONSISTENCY_AND_AVAILABILITY)
            first = (await story.nodes(D))[0]
            await story.attach(first)
            await story.until_primary(first)
            await story.resize("128Mi")

            async def larger() -> bool:
                kernel = lab.cluster.node(first).host.kernel
                return int(kernel.status("v")[0]["devices"][0]["size"]) * 1024 >= LARGE

            await lab.until("the device is larger", larger)
            places = range(67 * MIB, 68 * MIB, 64 * 1024)
            for at in places:
                assert await story.write(first, f"mine {at}", at, seconds=0.2)
            await until_grown(story)
            assert [set(story.copies(at).values()) for at in places] == [{f"mine {at}"} for at in places]

    run(main, seed=3)


async def reserved(story: Story) -> dict[str, object]:
    ledgers = (await story.lab.store.list(DiskSchedule)).items
    return {each.name: (each.spec.replicas, each.status.storage_scheduled) for each in ledgers}


def test_a_disk_without_room_returns_what_the_others_granted() -> None:
    """M13."""

    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, FIVE) as lab:
            story = await Story.of(lab, Replication.CONSISTENCY_AND_AVAILABILITY)
            before = await reserved(story)
            await story.resize("100Ti")
            await lab.sleep(60)
            assert await reserved(story) == before
            volume = await story.volume()
            found = conditions.find(volume.status.conditions, DiskAllocation)
            assert found is not None
            assert found.reason == "Rejected"
            written = volume.metadata.resource_version
            await lab.sleep(600)
            assert (await story.volume()).metadata.resource_version == written

    run(main, seed=4)


def test_a_size_typed_wrong_is_a_wait_with_its_words_and_can_be_taken_back() -> None:
    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, FIVE) as lab:
            story = await Story.of(lab, Replication.CONSISTENCY_AND_AVAILABILITY)
            had = (await story.volume()).status.actual_size
            await story.resize("100Pi")
            await lab.sleep(60)
            volume = await story.volume()
            assert "no room to grow to 100Pi" in volume.status.message
            assert "can be lowered again, to 64Mi" in volume.status.message
            told = tell(await fetch(lab.store, sim.clock.now()), "v", sim.clock.now())
            assert told is not None
            assert told.size == f"{had}, 100Pi asked for"
            assert [wait.reason for wait in told.waits] == ["NoSpace"]
            with pytest.raises(Invalid, match="a volume cannot shrink"):
                await story.resize("63Mi")
            await story.resize("64Mi")
            await lab.sleep(60)
            volume = await story.volume()
            assert (volume.status.message, volume.status.actual_size) == ("", had)
            found = conditions.find(volume.status.conditions, DiskAllocation)
            assert found is not None
            assert found.reason == "Allocated"
            await story.resize("128Mi")
            await until_grown(story)
            assert (await story.volume()).status.growing_to is None

    run(main, seed=6)


def test_no_disk_grows_while_one_has_been_deleted_by_hand() -> None:
    """The others would grow without it as soon as its drive is away, and it would never fit again."""

    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, FIVE) as lab:
            story = await Story.of(lab, Replication.CONSISTENCY_AND_AVAILABILITY)
            first = (await story.nodes(D))[0]
            had = (await story.volume()).status.actual_size
            replica = await story.replica_on(first)
            assert replica is not None
            piece = replica.status.lvm_logical_volume_name
            await lab.store.delete(LVMLogicalVolume, piece)
            await story.resize("128Mi")
            await lab.sleep(60)
            volume = await story.volume()
            assert f"the logical volume of {replica.name} on {first} is gone or being deleted" in volume.status.message
            sizes = {each.status.actual_size for each in (await lab.store.list(LVMLogicalVolume)).items}
            assert len(sizes) == 1
            lab.cluster.inject(faults.DriveFail(first, "1"))
            await lab.sleep(60)
            assert (await story.volume()).status.actual_size == had
            lab.cluster.inject(faults.DriveMend(first, "1"))
            # The way out that is told of: another copy, and then there is room to grow.
            await lab.store.delete(ReplicatedVolumeReplica, replica.name)
            await until_grown(story, patience=900)

    run(main, seed=8)


def test_what_waits_for_its_users_has_grown_nothing_and_can_be_taken_back() -> None:
    """2D grows only detached; its disks wait with it, and what they had promised is given back."""

    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, FIVE) as lab:
            story = await Story.of(lab, Replication.CONSISTENCY)
            first = (await story.nodes(D))[0]
            await story.attach(first)
            await story.until_primary(first)
            before = await reserved(story)
            await story.resize("128Mi")
            await lab.sleep(60)
            volume = await story.volume()
            assert "detach it first" in volume.status.message
            assert volume.status.growing_to is None
            sizes = {each.name: each.status.actual_size for each in (await lab.store.list(LVMLogicalVolume)).items}
            assert await reserved(story) != before
            await story.resize("64Mi")
            await lab.sleep(60)
            assert await reserved(story) == before
            await story.detach(first)
            await story.until_primary()
            await lab.sleep(60)
            assert sizes == {
                each.name: each.status.actual_size for each in (await lab.store.list(LVMLogicalVolume)).items
            }

    run(main, seed=7)


@pytest.mark.parametrize("seed", range(8))
def test_a_size_that_is_taken_back_at_any_moment_is_refused_or_the_volume_stays_as_it_is(seed: int) -> None:
    """Once a disk has been told to grow, the volume grows to the end; before that, nothing has happened."""

    async def main(sim: Simulation) -> None:
        chance = sim.random("people")
        async with volume_lab(sim, FIVE) as lab:
            story = await Story.of(lab, Replication.CONSISTENCY_AND_AVAILABILITY)
            lab.faults.latency = lab.faults.watch_latency = 0.2
            await story.resize("128Mi")
            await lab.sleep(chance.random() * 3)
            try:
                await story.resize("64Mi")
                taken_back = True
            except Invalid:
                taken_back = False
            await lab.sleep(120)
            await story.until_calm()
            volume, pieces = await story.volume(), (await lab.store.list(LVMLogicalVolume)).items
            grown = {int(each.status.actual_size or 0) > LARGE for each in pieces}
            assert volume.status.actual_size is not None
            assert grown == {not taken_back}
            assert (int(volume.status.actual_size) >= LARGE) is not taken_back
            assert volume.status.growing_to is None
            assert blocks_that_differ(story) == [] or taken_back

    run(main, seed=seed)


@pytest.mark.parametrize("attached", [False, True], ids=["detached", "attached"])
@pytest.mark.parametrize("replication", LEVELS)
def test_power_that_is_lost_after_any_write_of_a_growth_costs_nothing(replication: Replication, attached: bool) -> None:
    """After each write to the API, in turn of one node and of all; so between any two steps of the growth."""
    if attached and replication is Replication.CONSISTENCY:
        pytest.skip("waits until it is detached")

    async def main(sim: Simulation, after: int) -> int:
        async with volume_lab(sim, FIVE) as lab:
            story = await Story.of(lab, replication)
            nodes = await story.nodes(D)
            await story.attach(nodes[0])
            await story.until_primary(nodes[0])
            assert await story.write(nodes[0], "kept", 60 * MIB)
            if not attached:
                await story.detach(nodes[0])
                await story.until_primary()
            await lab.sleep(30)
            first = len(lab.sent)
            await story.resize("128Mi")
            for _ in range(4000):
                if writes(lab, first) >= after:
                    break
                await lab.sleep(0.01)
            else:
                return writes(lab, first)
            lost = nodes if after % 3 == 0 else [nodes[after % len(nodes)]]
            for node in lost:
                lab.cluster.inject(faults.NodeDown(node))
            await lab.sleep(20)
            for node in lost:
                lab.cluster.inject(faults.NodeUp(node))
            await until_grown(story, patience=900.0)
            # Who was away is given what it missed.
            await lab.until_ready(patience=900.0)
            await lab.sleep(60)
            assert blocks_that_differ(story) == []
            assert set(story.copies(60 * MIB).values()) == {"kept"}
            return after

    after = 0
    while run(lambda sim: main(sim, after), seed=after) == after:  # noqa: B023 - called at once
        after += 5
    assert after > 8


def writes(lab: VolumeLab, first: int) -> int:
    """How many writes there were since, housekeeping apart."""
    return sum(write.kind not in HOUSEKEEPING for write in lab.sent[first:])


def test_every_logical_volume_has_the_size_that_was_granted() -> None:
    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, FIVE) as lab:
            story = await Story.of(lab, Replication.AVAILABILITY)
            await story.resize("128Mi")
            await until_grown(story)
            for volume in (await lab.store.list(LVMLogicalVolume)).items:
                assert volume.status.actual_size == volume.spec.size

    run(main, seed=5)
