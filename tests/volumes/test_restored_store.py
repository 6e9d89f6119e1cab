"""The API's store is restored from a copy of the time when a volume was being formed; the volume has lived since."""

from __future__ import annotations

import json
from typing import Any

import pytest

from quorate.api import labels
from quorate.api.codec import encode
from quorate.api.storage import LVMLogicalVolume, ReplicatedVolume, ReplicatedVolumeReplica
from quorate.api.storage.configuration import Replication
from quorate.api.storage.datamesh import FormationPhase
from quorate.engine.simulation import Simulation, run
from quorate.lab import faults
from tests.volumes.attach.stories import FIVE, Story
from tests.volumes.laboratory import VolumeLab, volume_lab

KINDS: tuple[type[Any], ...] = (ReplicatedVolume, ReplicatedVolumeReplica, LVMLogicalVolume)


def status_of(obj: object) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(encode(obj)).get("status", {})
    return found


def back(now: dict[str, Any], then: dict[str, Any]) -> dict[str, Any]:
    """The merge patch that undoes what has happened since."""
    pairs = {key: (now.get(key), then.get(key)) for key in {**now, **then}}
    return {
        key: back(new, old) if isinstance(new, dict) and isinstance(old, dict) else old
        for key, (new, old) in pairs.items()
        if new != old
    }


async def preconfigured(lab: VolumeLab) -> list[Any]:
    """Every object, in the first phase of formation, with the last node's disk not made yet."""

    async def check() -> bool:
        transitions = (await lab.volume()).status.datamesh_transitions
        forming = transitions[0].formation if transitions else None
        made = (await lab.store.list(LVMLogicalVolume)).items
        first = forming is not None and forming.phase is FormationPhase.PRECONFIGURE
        return first and len(made) == 3 and all(each.status.actual_size is not None for each in made)

    await lab.until("preconfigured", check)
    return [each for kind in KINDS for each in (await lab.store.list(kind)).items]


@pytest.mark.parametrize("back_soon", [2, 0])
def test_what_was_written_since_is_not_thrown_away_though_formation_is_given_up(back_soon: int) -> None:
    """All nodes were off, and not all are back: formation waits in vain, and nothing is up that shows data."""

    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, FIVE) as lab:
            name = await lab.provide(Replication.CONSISTENCY_AND_AVAILABILITY)
            await lab.sleep(30)
            await lab.create("v", name)
            copy = await preconfigured(lab)
            await lab.until_ready()
            story, nodes = Story(lab), [str(each.spec.node_name) for each in await lab.replicas()]
            await story.attach(nodes[0])
            await story.until_primary(nodes[0])
            assert await story.write(nodes[0], "kept")
            await story.detach(nodes[0])
            await story.until_primary()
            lab.kill()
            for node in nodes:
                lab.cluster.inject(faults.NodeDown(node))
            for obj in copy:
                unmade = type(obj) is LVMLogicalVolume and obj.metadata.labels[labels.NODE] == nodes[2]
                patch = back(status_of(await lab.store.get(type(obj), obj.name)), {} if unmade else status_of(obj))
                await lab.store.patch_status(type(obj), obj.name, patch=patch)
            for node in nodes[:back_soon]:
                lab.cluster.inject(faults.NodeUp(node))
            lab.start()
            await lab.sleep(600)
            for node in nodes[back_soon:]:
                lab.cluster.inject(faults.NodeUp(node))
            await lab.sleep(300)
            assert story.copies() == dict.fromkeys(nodes, "kept")

    run(main, seed=1)
