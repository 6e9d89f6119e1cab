"""``python -m metal``: plays scenarios on machines that it boots, and says what came of each."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from metal.errors import CannotRun
from metal.journal import Journal
from metal.qemu import image
from metal.qemu.machines import qemu_machines, slowness
from metal.run import Playing, play, predict
from metal.scenarios import chosen
from metal.stage import Scenario, differences

OK, FAILED, SKIPPED = "ok", "FAILED", "skipped"


@dataclass
class Outcome:
    """One line of the summary."""

    scenario: str
    outcome: str
    seconds: float
    where: str
    why: str = ""
    differences: list[str] = field(default_factory=list)
    answers: dict[str, object] = field(default_factory=dict)
    predicted_answers: dict[str, object] = field(default_factory=dict)


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m metal", description=__doc__)
    parser.add_argument("scenarios", nargs="*", help="names or patterns such as 'grow*'; all without any")
    parser.add_argument("--list", action="store_true", help="say which scenarios there are, and play none")
    parser.add_argument("--lab", action="store_true", help="play them on the lab only: nothing is booted")
    parser.add_argument("--logs", type=Path, default=Path("build/metal"), help="where everything is told")
    parser.add_argument("--machines", type=int, default=os.cpu_count() or 1, help="how many may run at once")
    given = parser.parse_args()
    scenarios = chosen(" ".join(given.scenarios))
    if given.list:
        for each in scenarios:
            needs = (
                _machines(each.nodes)
                + (", DRBD's modules" if each.drbd else "")
                + (", no agents" if not each.agents else "")
            )
            print(f"{each.name:34} {each.about} ({needs})")
        return 0
    if not scenarios:
        print(
            f"metal: no scenario is called {' '.join(given.scenarios)!r}; --list says which there are", file=sys.stderr
        )
        return 2
    logs = (given.logs / time.strftime("%Y%m%d-%H%M%S")).absolute()
    logs.mkdir(parents=True)
    say = image.Say()
    signal.signal(signal.SIGTERM, lambda *_: os.kill(os.getpid(), signal.SIGINT))  # ended, and machines with us
    try:
        system = None if given.lab else image.made(say)
    except CannotRun as error:
        print(f"metal: {error}", file=sys.stderr)
        return 2
    try:
        predicted = {
            each.name: predict(each, logs / each.name / "lab") for each in scenarios if _is_predicted(each, system)
        }
        if system is None:
            outcomes = [
                _outcome(each, predicted[each.name], logs / each.name / "lab") for each in scenarios if each.predicted
            ]
        else:
            outcomes = asyncio.run(_all(scenarios, predicted, system, logs, say, given.machines))
    finally:
        if system is not None:
            system.forget()
    return _tell(outcomes, logs, say)


def _is_predicted(scenario: Scenario, system: image.System | None) -> bool:
    return scenario.predicted and not _lacks_drbd(scenario, system)


def _lacks_drbd(scenario: Scenario, system: image.System | None) -> bool:
    return scenario.drbd and system is not None and image.modules_directory() is None


async def _all(
    scenarios: Sequence[Scenario],
    predicted: dict[str, Playing],
    system: image.System,
    logs: Path,
    say: image.Say,
    machines: int,
) -> list[Outcome]:
    """Play them, several at once as long as not more machines run than may."""
    places = Places(machines)

    async def one(scenario: Scenario) -> Outcome:
        if _lacks_drbd(scenario, system):
            say(f"{scenario.name}: SKIPPED: it needs DRBD 9: QUORATE_DRBD_MODULES=DIR")
            return Outcome(scenario.name, SKIPPED, 0.0, "", "needs DRBD 9 (QUORATE_DRBD_MODULES=DIR)")
        async with places.taken(scenario.nodes):
            say(f"{scenario.name}: {scenario.about} ({_machines(scenario.nodes)})")
            real = await _real(scenario, system, logs / scenario.name / "machines")
        return _compared(scenario, real, predicted.get(scenario.name), logs, say)

    return list(await asyncio.gather(*(one(each) for each in scenarios)))


def _compared(scenario: Scenario, real: Playing, lab: Playing | None, logs: Path, say: image.Say) -> Outcome:
    outcome = _outcome(scenario, real, logs / scenario.name / "machines")
    if lab is not None:
        outcome.differences = differences(real.seen, lab.seen)
        outcome.predicted_answers = lab.answers
        if lab.failure:
            outcome.differences.append(f"on the lab it fails: {lab.failure.splitlines()[0]}")
    why = f": {outcome.why.splitlines()[0]}" if outcome.why else ""
    say(f"{scenario.name}: {outcome.outcome} in {real.seconds:.0f} s, {real.checks} checks{why}")
    for line in outcome.differences:
        say(f"{scenario.name}: DIFFERS FROM THE LAB: {line}")
    return outcome


def _machines(count: int) -> str:
    return "1 machine" if count == 1 else f"{count} machines"


class Places:
    """So many machines may run at once; a scenario that needs more runs alone."""

    def __init__(self, count: int) -> None:
        self._count = self._free = max(1, count)
        self._changed = asyncio.Condition()

    @asynccontextmanager
    async def taken(self, wanted: int) -> AsyncIterator[None]:
        """Wait for places, first come, first served."""
        count = min(wanted, self._count)
        async with self._changed:
            await self._changed.wait_for(lambda: self._free >= count)
            self._free -= count
        try:
            yield
        finally:
            async with self._changed:
                self._free += count
                self._changed.notify_all()


async def _real(scenario: Scenario, system: image.System, directory: Path) -> Playing:
    modules = image.modules_directory() is not None
    journal = Journal(
        directory, scenario.name, scenario.about, kernel=system.kernel_version, utils="drbd-utils of bookworm"
    )
    rack = qemu_machines(
        system, journal, nodes=scenario.nodes, drives=scenario.drives, agents=scenario.agents, drbd=modules
    )
    return await play(scenario, rack, journal, (scenario.seconds + 60) * slowness(system))


def _outcome(scenario: Scenario, playing: Playing, directory: Path) -> Outcome:
    outcome = FAILED if playing.failure else OK
    return Outcome(scenario.name, outcome, playing.seconds, str(directory), playing.failure, answers=playing.answers)


def _tell(outcomes: list[Outcome], logs: Path, say: image.Say) -> int:
    lines = [f"| {'scenario':34} | outcome | time | what | where to look |", "|---|---|---|---|---|"]
    for each in outcomes:
        said = (each.why.splitlines() or [""])[0]
        if each.differences:
            said = f"{said} {len(each.differences)} differences from the lab".strip()
        lines.append(f"| {each.scenario:34} | {each.outcome:7} | {each.seconds:4.0f} s | {said} | {each.where} |")
    for each in outcomes:
        lines += [f"- {each.scenario} differs from the lab: {line}" for line in each.differences]
        for question, answer in each.answers.items():
            lab = f" (the lab: {each.predicted_answers[question]})" if question in each.predicted_answers else ""
            lines.append(f"- {each.scenario}, answered: {question}: {answer}{lab}")
    failed = [each for each in outcomes if each.outcome == FAILED]
    skipped = [each for each in outcomes if each.outcome == SKIPPED]
    passed = len(outcomes) - len(failed) - len(skipped)
    lines.append("")
    lines.append(f"{passed} passed, {len(failed)} failed, {len(skipped)} skipped")
    if skipped:
        lines.insert(-1, f"{len(skipped)} SCENARIOS WERE SKIPPED: give DRBD 9's modules with QUORATE_DRBD_MODULES=DIR")
    (logs / "summary.md").write_text("\n".join(lines) + "\n")
    (logs / "summary.json").write_text(json.dumps([asdict(each) for each in outcomes], indent=1, default=str) + "\n")
    print("\n".join(line for line in lines if ", answered: " not in line or "the lab: " in line), flush=True)
    say(f"everything is told in {logs}; recordings for `quorate lab recordings DIR` are the .json files there")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
