"""Many volumes asked for at once: so many are formed at a time, the oldest first, and none is kept waiting for ever."""

from __future__ import annotations

from dataclasses import replace as changed
from datetime import timedelta
from typing import Any

import pytest

from quorate.api import labels
from quorate.api.storage import ReplicatedVolume
from quorate.api.storage.configuration import Replication
from quorate.api.storage.datamesh import FormationPhase
from quorate.api.struct import replace
from quorate.engine.simulation import Simulation, run
from quorate.volumes import births
from quorate.volumes.births import AT_ONCE, BUSY, LOOK, PATIENCE, TOGETHER
from quorate.volumes.observe import observe
from quorate.volumes.view import VolumeView
from tests.volumes.laboratory import volume_lab
from tests.volumes.test_observe import FixedReader, fanned_out, formed_world, heard
from tests.volumes.volume.making import NOW, ago, decided, phase_of, picture, status, volume, written


def called(name: str, found: ReplicatedVolume, **metadata: Any) -> ReplicatedVolume:
    return replace(found, metadata=replace(found.metadata, name=name, **metadata))


def unborn(number: int, *, age: float = 0.0, **metadata: Any) -> ReplicatedVolume:
    return called(f"unborn-{number}", volume(), creation_timestamp=ago(age), **metadata)


def forming(number: int, *, since: float = 1.0) -> ReplicatedVolume:
    return called(f"forming-{number}", volume(status(FormationPhase.PRECONFIGURE, since=since)))


def waiting(phases: int, *, lasting: float = 1.0, age: float = 0.0) -> VolumeView:
    """A volume that could begin, beside others whose phases last so long."""
    labelled = {labels.REPLICATED_STORAGE_CLASS: "class"}
    view = picture(called("v", volume(), creation_timestamp=ago(age), labels=labelled))
    return changed(view, others_forming=(ago(lasting),) * phases)


@pytest.mark.parametrize(
    ("view", "begins"),
    [
        (waiting(0), True),
        (waiting(AT_ONCE - 1), True),
        (waiting(AT_ONCE), False),
        (waiting(AT_ONCE, lasting=BUSY - 0.1), False),
        # Those that have waited for long, for space or for a node, keep nobody waiting.
        (waiting(AT_ONCE, lasting=BUSY + 0.1), True),
    ],
)
def test_a_formation_begins_while_fewer_than_so_many_are_moving(view: VolumeView, begins: bool) -> None:
    plan = decided(view)
    assert (plan.transition is not None) is begins
    if begins:
        assert phase_of(plan) is FormationPhase.PRECONFIGURE
    else:
        assert plan.steps == ()
        assert plan.requeue_after == pytest.approx(LOOK)


def test_that_a_volume_waits_for_its_turn_is_said_once_it_has_lasted() -> None:
    plan = decided(waiting(AT_ONCE, age=PATIENCE + 1))
    assert "volumes are being formed" in written(plan).message
    told = waiting(AT_ONCE, age=PATIENCE + 1).with_status(written(plan))
    later = NOW + timedelta(seconds=LOOK)
    assert decided(changed(told, others_forming=(later,) * (AT_ONCE + 7)), later).steps == ()


def test_only_a_volume_that_has_yet_to_begin_looks_at_the_others() -> None:
    world = formed_world()
    world.objects += [forming(number) for number in range(3)]
    found = observe(FixedReader([*world.objects, unborn(0)], world.silent), "unborn-0")
    assert found is not None
    assert len(found.others_forming) == 3
    for name in ("v", "forming-0"):
        other = observe(world.reader(), name)
        assert other is not None
        assert other.others_forming == ()


def test_the_oldest_are_called_as_many_as_there_are_places() -> None:
    world = formed_world()
    world.objects += [forming(number) for number in range(AT_ONCE - TOGETHER)]
    world.objects += [unborn(number, age=number) for number in range(3 * TOGETHER)]
    expected = {f"unborn-{number}" for number in range(2 * TOGETHER, 3 * TOGETHER)}
    assert fanned_out(world, "turn", "") == expected


def test_nobody_is_called_for_a_few_places_or_when_nobody_waits() -> None:
    world = formed_world()
    assert fanned_out(world, "turn", "") == set()
    world.objects += [forming(number) for number in range(AT_ONCE - TOGETHER + 1)]
    world.objects += [unborn(number) for number in range(5)]
    assert fanned_out(world, "turn", "") == set()


def test_a_volume_that_is_being_deleted_does_not_wait_for_a_turn() -> None:
    world = formed_world()
    world.objects += [unborn(1), unborn(2, deletion_timestamp=NOW)]
    assert fanned_out(world, "turn", "") == {"unborn-1"}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (forming(1), volume(status(None)), True),
        (forming(1), None, True),
        (forming(1), forming(1, since=0.0), False),
        (unborn(1), forming(1), False),
        (volume(status(None)), None, False),
        (None, unborn(1), False),
    ],
)
def test_the_next_are_called_when_a_formation_is_over(
    before: ReplicatedVolume | None, after: ReplicatedVolume | None, expected: bool
) -> None:
    assert heard(before, after) is expected


def test_those_who_are_called_find_a_place_unless_others_were_faster() -> None:
    """Who is called looks again: the places may have been taken meanwhile, by a phase that moves again say."""
    assert not births.is_full((ago(BUSY * 2),) * (2 * AT_ONCE), NOW)
    assert births.is_full((*(ago(BUSY * 2),) * 7, *(ago(1),) * AT_ONCE), NOW)


def test_more_volumes_than_have_a_turn_are_formed_one_after_the_other_and_none_starts_again() -> None:
    volumes = AT_ONCE + 2 * TOGETHER

    async def main(sim: Simulation) -> None:
        async with volume_lab(sim) as lab:
            class_name = await lab.provide(Replication.CONSISTENCY_AND_AVAILABILITY)
            await lab.sleep(30)
            for number in range(volumes):
                await lab.create(f"v{number}", class_name)
            for number in range(volumes):
                await lab.until_ready(f"v{number}")
            created = lab.writes()["controller", "create", "ReplicatedVolumeReplica"]
            assert created == 3 * volumes

    run(main, seed=1)
