"""The growth curves as a picture. Run in the environment of requirements/bench.txt, which has matplotlib."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot

CURVES = (
    ("writes", "writes_per_second", "durable writes per second\n(64 writers, 25 controllers)"),
    ("writes", "loaded_p99_ms", "write to decide(), p99 under load, ms"),
    ("writes", "idle_p99_ms", "write to decide(), p99 idle, ms"),
    ("no_op", "cpu_us_per_pass", "no-op reconcile, µs of CPU"),
    ("memory", "cache_bytes", "memory per cached object, bytes"),
    ("cold_start", "wall_seconds", "cold start, s (grows with the objects)"),
)


def main(source: Path, target: Path) -> None:
    figures = {int(size): parts for size, parts in json.loads(source.read_text()).items()}
    sizes = sorted(figures)
    pyplot.rcParams["svg.hashsalt"] = "quorate"
    figure, axes = pyplot.subplots(2, 3, figsize=(13, 6.5))
    for axis, (part, key, title) in zip(axes.flat, CURVES, strict=True):
        axis.plot(sizes, [figures[size][part][key] for size in sizes], marker="o", color="#1f5fa8")
        axis.set_xscale("log")
        axis.set_xticks(sizes, [f"{size:,}" for size in sizes])
        axis.minorticks_off()
        axis.set_ylim(bottom=0)
        axis.set_title(title, fontsize=10)
        axis.grid(alpha=0.3)
    figure.suptitle("How the engine's costs grow with the number of objects")
    figure.tight_layout()
    figure.savefig(target, metadata={"Date": None})


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
