"""Plays scenarios: on the lab, in virtual time, and on machines; compares, and tells what came of it."""

from __future__ import annotations

import asyncio
import contextlib
import time
import traceback
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from metal.errors import Failed
from metal.journal import Journal
from metal.lab import lab_machines
from metal.machines import Machines
from metal.stage import Scenario, Stage
from quorate.engine import logs
from quorate.engine.simulation import Simulation
from quorate.engine.simulation import run as simulate

#: Virtual seconds that a scenario may take on the lab.
_LAB = 7200.0


@dataclass
class Playing:
    """What came of a scenario on one kind of machines."""

    seen: dict[str, Any] = field(default_factory=dict)
    answers: dict[str, Any] = field(default_factory=dict)
    checks: int = 0
    #: Why it failed; empty: it did not.
    failure: str = ""
    seconds: float = 0.0
    recording: Path | None = None


async def play(
    scenario: Scenario, machines: AbstractAsyncContextManager[Machines], journal: Journal, seconds: float
) -> Playing:
    """Play it once; what goes wrong is told, never raised."""
    playing = Playing()
    began = time.monotonic()
    stage: Stage | None = None
    try:
        async with machines as rack:
            stage = Stage(rack)
            try:
                async with asyncio.timeout(seconds):
                    await scenario.play(stage)
            except TimeoutError:
                raise Failed(f"it did not end within {seconds:.0f} s") from None
            except BaseException:
                await _aftermath(scenario, rack)
                raise
    except Failed as error:
        playing.failure = str(error)
    except Exception as error:  # of the suite itself, or of a tool that it uses: told, and the next one is played
        playing.failure = f"{type(error).__name__}: {error}"
        (journal.directory / "traceback.txt").write_text(traceback.format_exc())
    if stage is not None:
        playing.seen, playing.answers, playing.checks = stage.seen, stage.answers, stage.checks
    if playing.failure:
        journal.tell(0.0, "", f"FAILED: {playing.failure}")
    playing.recording = journal.close()
    playing.seconds = time.monotonic() - began
    return playing


async def _aftermath(scenario: Scenario, machines: Machines) -> None:
    """How everything was when it failed, for whoever reads it."""
    commands = ["lvs -a -o +devices,tags", "lsblk", "dmsetup info -c", "drbdsetup status --verbose --statistics"]
    for node in machines.nodes:
        for command in commands if machines.kind != "lab" else commands[-1:]:
            with contextlib.suppress(Exception):
                await asyncio.wait_for(machines.run(node, command, seconds=5), 60)


def predict(scenario: Scenario, directory: Path, *, seed: int = 7) -> Playing:
    """Play it on the lab."""
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / "agents.log").open("w") as log:
        before = logs.configuration()
        logs.configure(json=False, level="info", stream=log)
        try:
            return simulate(lambda sim: _predict(sim, scenario, directory), seed=seed)
        finally:
            logs.use(before)


async def _predict(sim: Simulation, scenario: Scenario, directory: Path) -> Playing:
    journal = Journal(directory, scenario.name, scenario.about, kernel="lab", utils="lab")
    rack = lab_machines(sim, journal, nodes=scenario.nodes, drives=scenario.drives, agents=scenario.agents)
    return await play(scenario, rack, journal, _LAB)
