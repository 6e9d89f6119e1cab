"""The API's store is restored from a copy of the time when a volume was being formed; the volume has lived since."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from quorate.api import core
from quorate.api.storage import ReplicatedVolume
from quorate.api.storage.configuration import Replication
from quorate.api.storage.datamesh import FormationPhase
from quorate.api.storage.drbd import ReplicaType
from quorate.engine.simulation import Simulation, run
from quorate.lab import faults
from tests.volumes.attach.stories import FIVE, SETTLED, Story
from tests.volumes.backups import Birth, copy_of, restore
from tests.volumes.laboratory import VolumeLab, volume_lab

PRECONFIGURE = FormationPhase.PRECONFIGURE
CONNECTING = FormationPhase.ESTABLISH_CONNECTIVITY
BOOTSTRAPPING = FormationPhase.BOOTSTRAP_DATA
C = Replication.CONSISTENCY_AND_AVAILABILITY

#: How the machines come back after the restore; the controllers are started in it.
Return = Callable[[VolumeLab, list[str]], Awaitable[None]]


async def all_at_once(lab: VolumeLab, nodes: list[str]) -> None:
    for node in nodes:
        lab.cluster.inject(faults.NodeUp(node))
    lab.start()


async def after_the_leader(lab: VolumeLab, nodes: list[str]) -> None:
    """It has led for a while, and by its Lease every agent still counts as heard."""
    lab.start()
    await lab.sleep(20)
    for node in nodes:
        lab.cluster.inject(faults.NodeUp(node))


async def one_by_one(lab: VolumeLab, nodes: list[str]) -> None:
    lab.start()
    for node in nodes:
        await lab.sleep(400)
        lab.cluster.inject(faults.NodeUp(node))


async def one_much_later(lab: VolumeLab, nodes: list[str]) -> None:
    await all_at_once(lab, nodes[1:])
    await lab.sleep(1200)
    lab.cluster.inject(faults.NodeUp(nodes[0]))


async def formed_and_written(lab: VolumeLab, replication: Replication) -> tuple[Story, Birth]:
    """A volume with something on it, and copies of the time when it was formed."""
    name, birth = await lab.provide(replication), Birth(lab)
    await lab.sleep(SETTLED)
    birth.watch()
    await lab.create("v", name)
    await lab.until_ready()
    story = Story(lab)
    await write(story, "kept")
    return story, birth


async def write(story: Story, text: str) -> None:
    user = (await story.nodes(ReplicaType.DISKFUL))[0]
    await story.attach(user)
    await story.until_primary(user)
    assert await story.write(user, text)
    await story.detach(user)
    await story.until_primary()


def switched_off(lab: VolumeLab, nodes: list[str]) -> None:
    lab.kill()
    for node in nodes:
        lab.cluster.inject(faults.NodeDown(node))


@pytest.mark.parametrize(
    ("replication", "phase", "moment", "back"),
    [
        (C, PRECONFIGURE, "last", one_by_one),
        (C, PRECONFIGURE, "last", one_much_later),
        *((C, CONNECTING, "first", back) for back in (all_at_once, after_the_leader, one_by_one, one_much_later)),
        (C, CONNECTING, "last", after_the_leader),
        *((C, BOOTSTRAPPING, "first", back) for back in (all_at_once, after_the_leader, one_by_one, one_much_later)),
        (C, BOOTSTRAPPING, "last", one_by_one),
        (Replication.NONE, CONNECTING, "first", after_the_leader),
        (Replication.CONSISTENCY, BOOTSTRAPPING, "first", one_by_one),
        (Replication.AVAILABILITY, CONNECTING, "last", one_by_one),
    ],
)
def test_a_volume_that_was_being_formed_in_the_copy_comes_back_with_all_that_was_written_since(
    replication: Replication, phase: FormationPhase, moment: str, back: Return
) -> None:
    """All nodes were off at the restore."""

    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, FIVE) as lab:
            story, birth = await formed_and_written(lab, replication)
            written, nodes = story.copies(), list(lab.cluster.nodes)
            switched_off(lab, nodes)
            await restore(lab, getattr(birth, moment)[phase])
            await back(lab, nodes)
            await lab.until_ready(patience=900)
            kept = story.copies()
            assert len(kept) >= len(written)
            assert set(kept.values()) == {"kept"}
            await write(story, "more")
            assert "more" in story.copies().values()

    run(main, seed=1)


def test_the_logical_volumes_of_a_volume_that_a_restored_store_does_not_know_stay() -> None:
    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, FIVE) as lab:
            name = await lab.provide(C)
            await lab.sleep(SETTLED)
            before, nodes = copy_of(lab.store), list(lab.cluster.nodes)
            await lab.create("v", name)
            await lab.until_ready()
            story = Story(lab)
            await write(story, "kept")
            switched_off(lab, nodes)
            await restore(lab, before)
            await all_at_once(lab, nodes)
            await lab.sleep(1200)
            assert (await lab.store.list(ReplicatedVolume)).items == ()
            assert set(story.copies().values()) == {"kept"}
            assert len(story.copies()) == 3

    run(main, seed=1)


def test_a_new_volume_one_of_whose_nodes_never_comes_back_says_so_and_can_be_deleted() -> None:
    """Nothing tells it from an old one: it waits, and a person who knows better deletes it, and the machine's Node."""

    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, FIVE) as lab:
            name, birth = await lab.provide(C), Birth(lab)
            await lab.sleep(SETTLED)
            birth.watch()
            await lab.create("v", name)

            async def connecting() -> bool:
                return CONNECTING in birth.first

            await lab.until("connecting", connecting)
            lost = (await Story(lab).nodes(ReplicaType.DISKFUL))[1]
            lab.cluster.inject(faults.NodeDown(lost))
            await lab.sleep(900)
            message = (await lab.volume()).status.message
            assert f"{lost} is not heard" in message
            assert "If v never held data, delete it" in message
            since = len(lab.sent)
            await lab.sleep(3600)
            assert [each for each in lab.sent[since:] if each.kind.startswith("ReplicatedVolume")] == []
            await lab.store.delete(ReplicatedVolume, "v")
            await lab.sleep(60)
            await lab.store.delete(core.Node, lost)
            await lab.until_gone()

    run(main, seed=1)
