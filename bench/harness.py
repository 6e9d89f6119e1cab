"""How we measure: several programs, alternating, medians, and ratios against a named baseline of the same run.

Alternating runs share whatever the machine was doing at the time, so a ratio means more than either figure. CPU
time is preferred to wall time wherever both exist: other work on the machine does not count in it.
"""

from __future__ import annotations

import os
import platform
import resource
import statistics
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

RUNS = int(os.environ.get("QUORATE_BENCH_RUNS", "5"))


def cpu_seconds() -> float:
    """User and system time of this process, threads included."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def resident_bytes() -> int:
    """Memory of this process that is in RAM now."""
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * resource.getpagesize()


@dataclass
class Row:
    """One line of the results: what was measured, the figure, and what it is held against."""

    what: str
    value: str
    reach: str
    met: bool | None = None
    note: str = ""


@dataclass
class Report:
    """All lines of one benchmark."""

    title: str
    rows: list[Row] = field(default_factory=list)

    def add(self, what: str, value: str, reach: str, met: bool | None = None, note: str = "") -> None:
        """Add a line and show it at once: a benchmark that is cut short has still said something."""
        self.rows.append(Row(what, value, reach, met, note))
        verdict = {True: "reached", False: "MISSED", None: ""}[met]
        print(f"  {what:<58} {value:<34} reach: {reach:<28} {verdict} {note}".rstrip(), flush=True)

    def markdown(self) -> str:
        """The table for bench/RESULTS.md."""
        lines = [f"### {self.title}", "", "| what | measured | reach | |", "|---|---|---|---|"]
        for row in self.rows:
            verdict = {True: "reached", False: "**missed**", None: ""}[row.met]
            lines.append(f"| {row.what} | {row.value} | {row.reach} | {' '.join((verdict, row.note)).strip()} |")
        return "\n".join([*lines, ""])


def alternate(
    programs: Mapping[str, Callable[[], Mapping[str, float]]], runs: int = RUNS
) -> dict[str, dict[str, float]]:
    """Run every program ``runs`` times, taking turns; the median of each figure by program."""
    figures: dict[str, list[Mapping[str, float]]] = {name: [] for name in programs}
    for turn in range(runs):
        for name, program in programs.items():
            figures[name].append(program())
            print(f"    {turn + 1}/{runs} {name}: {_brief(figures[name][-1])}", flush=True)
    return {
        name: {key: statistics.median(run[key] for run in results) for key in results[0]}
        for name, results in figures.items()
    }


def machine() -> str:
    """What this ran on, for the record. The same Python differs by a third in speed, by who built it."""
    python = f"Python {platform.python_version()} ({Path(sys.executable).resolve()})"
    return f"{os.cpu_count()} cores, {platform.machine()}, Linux {platform.release()}, {python}"


def _brief(figures: Mapping[str, float]) -> str:
    return ", ".join(f"{key} {value:.4g}" for key, value in figures.items())
