"""``make bench``: every benchmark, then bench/RESULTS.md and bench/growth.svg with today's figures."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from bench import (
    agent_start,
    embedded,
    kubernetes,
    maintenance_http,
    maintenance_plan,
    maintenance_rules,
    placement,
    volumes,
)
from bench.harness import RUNS, Report, machine

HERE = Path(__file__).parent

Parts = Mapping[str, Mapping[str, float]]


def main() -> int:
    reports: list[Report] = []
    print("Embedded engine", flush=True)
    reports.append(embedded.run())
    print("Kubernetes engine and its peers", flush=True)
    reports.append(kubernetes.run())
    print("Placement", flush=True)
    reports.append(placement.run())
    print("Volumes", flush=True)
    reports.append(volumes.run())
    print("Maintenance", flush=True)
    reports += [maintenance_rules.run(), maintenance_plan.run(), maintenance_http.run()]
    print("Agent", flush=True)
    reports.append(agent_start.run())
    print("Growth", flush=True)
    grown = embedded.growth()
    data = HERE / "growth.json"
    data.write_text(json.dumps(grown, indent=1) + "\n")
    if kubernetes.KOPF_PYTHON.exists():
        subprocess.run([kubernetes.KOPF_PYTHON, HERE / "picture.py", data, HERE / "growth.svg"], check=True)
    _record(reports, grown)
    missed = [row for report in reports for row in report.rows if row.met is False]
    print(f"\n{len(missed)} of {sum(len(report.rows) for report in reports)} figures missed their reach")
    return 0


def _record(reports: list[Report], grown: Mapping[int, Parts]) -> None:
    today = datetime.now(UTC).date()
    lines = [
        "# Benchmark results",
        "",
        f"Written by `make bench` on {today}: {machine()}. Medians of {RUNS} alternating runs; every ratio is between",
        "figures of this run. The workload is `bench/sample.py`; what each line does is in the docstrings beside it.",
        "",
        *(report.markdown() for report in reports),
        "### Growth",
        "",
        "![growth](growth.svg)",
        "",
        "| objects | writes/s | p99 loaded | p99 idle | no-op | memory per object | cold start |",
        "|---|---|---|---|---|---|---|",
        *(_growth_row(size, parts) for size, parts in grown.items()),
        "",
    ]
    (HERE / "RESULTS.md").write_text("\n".join(lines))


def _growth_row(size: int, parts: Parts) -> str:
    writes, no_op, memory, start = (parts[name] for name in ("writes", "no_op", "memory", "cold_start"))
    return (
        f"| {size:,} | {writes['writes_per_second']:,.0f} | {writes['loaded_p99_ms']:.1f} ms"
        f" | {writes['idle_p99_ms']:.2f} ms | {no_op['cpu_us_per_pass']:.1f} us"
        f" | {memory['cache_bytes'] / 1000:.1f} KB | {start['wall_seconds']:.2f} s |"
    )


if __name__ == "__main__":
    sys.exit(main())
