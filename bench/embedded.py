"""The embedded engine: durable writes, how soon a controller decides, no-ops, memory, cold start; and how they grow."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from bench.harness import RUNS, Report, alternate

ROOT = Path(__file__).parents[1]
OBJECTS = 10_000
SIZES = tuple(int(size) for size in os.environ.get("QUORATE_BENCH_SIZES", "1000,10000,50000").split(","))


def run() -> Report:
    """All figures at OBJECTS objects, held against what they are to reach."""
    report = Report(f"Embedded engine ({OBJECTS:,} objects of 3 KB, 64 writers, 25 controllers woken by every write)")
    with tempfile.TemporaryDirectory(dir=_disk()) as directory:
        figures = _measure(OBJECTS, Path(directory), RUNS)
    bare, writes = figures["bare"], figures["writes"]
    ratio = bare["writes_per_second"] / writes["writes_per_second"]
    report.add(
        "durable writes per second, against bare SQLite group commit",
        f"{writes['writes_per_second']:,.0f} / {bare['writes_per_second']:,.0f} = 1/{ratio:.2f}",
        "within 2x",
        ratio <= 2,
        f"(bare append without a table of objects: {bare['append_only_per_second']:,.0f})",
    )
    alone = f"(a lone commit of bare SQLite: p50 {bare['lone_p50_ms']:.2f} ms, p99 {bare['lone_p99_ms']:.2f} ms)"
    for name, limit, note in (("loaded", 20, ""), ("idle", 1, alone)):
        p99 = writes[f"{name}_p99_ms"]
        report.add(
            f"write to decide(), {name}",
            f"p50 {writes[f'{name}_p50_ms']:.2f} ms, p99 {p99:.2f} ms",
            f"p99 under {limit} ms",
            p99 < limit,
            note,
        )
    used = figures["no_op"]["cpu_us_per_pass"]
    report.add("no-op reconcile, whole engine path", f"{used:.1f} us of CPU, no write", "under 50 us", used < 50)
    memory, together = figures["memory"], figures["store_memory"]["store_and_cache_bytes"]
    report.add(
        f"memory per cached object of {memory['wire_bytes'] / 1000:.1f} KB JSON",
        f"{memory['cache_bytes'] / 1000:.1f} KB",
        "under 12 KB",
        memory["cache_bytes"] < 12_000,
        f"(embedded store and cache together: {together / 1000:.1f} KB)",
    )
    start = figures["cold_start"]
    report.add(
        "cold start to synced caches", f"{start['wall_seconds']:.2f} s", "under 1.5 s", start["wall_seconds"] < 1.5
    )
    return report


def growth() -> dict[int, dict[str, Mapping[str, float]]]:
    """The same figures at several sizes."""
    figures: dict[int, dict[str, Mapping[str, float]]] = {}
    for size in SIZES:
        print(f"  {size:,} objects", flush=True)
        with tempfile.TemporaryDirectory(dir=_disk()) as directory:
            figures[size] = dict(_measure(size, Path(directory), runs=1))
    return figures


def _measure(objects: int, directory: Path, runs: int) -> dict[str, dict[str, float]]:
    _part("fill", objects, directory)
    names = ("bare", "writes", "no_op", "memory", "store_memory", "cold_start")
    return alternate({name: lambda name=name: _part(name, objects, directory) for name in names}, runs)  # type: ignore[misc]


def _part(name: str, objects: int, directory: Path) -> dict[str, float]:
    command = [sys.executable, "-m", "bench.embedded_parts", name, str(objects), str(directory)]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def _disk() -> Path:
    """A directory on a real disk: /tmp may be memory, where durability costs nothing."""
    place = Path.home() / ".cache" / "quorate"
    place.mkdir(parents=True, exist_ok=True)
    return place


if __name__ == "__main__":
    print(run().markdown())
