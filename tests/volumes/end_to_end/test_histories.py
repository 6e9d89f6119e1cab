"""Whatever happens to a volume, one thing on top of the other: when it is over, it serves, and can be taken away."""

from __future__ import annotations

import os

import pytest

from quorate.api.storage.configuration import Replication
from quorate.engine.simulation import Simulation, run
from quorate.lab.layout import Layout
from tests.volumes.attach.stories import ALL, NAMES, Story
from tests.volumes.laboratory import volume_lab

from .history import History

#: ``QUORATE_HISTORIES=1000:1200`` plays others, and more of them.
FIRST, _, END = os.environ.get("QUORATE_HISTORIES", "1:2").partition(":")


@pytest.mark.parametrize("seed", range(int(FIRST), int(END)))
@pytest.mark.parametrize("level", ALL, ids=[NAMES[level] for level in ALL])
def test_a_history_ends_well(level: Replication, seed: int) -> None:
    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, Layout(nodes=5, zones=1, drives=1)) as lab:
            story = await Story.of(lab, level)
            history = History(lab, sim.random("history"), story)
            await history.play(history.chance.randint(10, 14))
            await history.mend()
            await history.expect_well()

    run(main, seed=seed)
