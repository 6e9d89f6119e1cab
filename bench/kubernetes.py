"""One event, one decision, one status write per object on a real API server: ours, controller-runtime's, kopf's.

Each program starts with an empty cluster and says "ready"; then the objects are created by a fourth process' worth of
plain requests, and the program settles them. Each reports the CPU it used from ready to settled.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import aiohttp

from bench.harness import Report, alternate
from bench.sample import Sample, sample_json
from tests.support.apiserver import ApiServer, running_apiserver

OBJECTS = int(os.environ.get("QUORATE_BENCH_OBJECTS", "1000"))
ROOT = Path(__file__).parents[1]
CACHE = Path.home() / ".cache" / "quorate"
KOPF_PYTHON = CACHE / "bench-venv" / "bin" / "python"
GO_PEER = CACHE / "bench-controller-runtime"
COLLECTION = "/apis/bench.quorate.io/v1/samples"


def run() -> Report:
    """Measure, and compare."""
    with tempfile.TemporaryDirectory() as directory, running_apiserver(Path(directory)) as server:
        server.install_crds([Sample.KIND])
        programs = {"quorate": _program(server, _ours(server))}
        if peer := _go_peer():
            command = [str(peer), "-kubeconfig", str(server.kubeconfig), "-objects", str(OBJECTS)]
            programs["controller-runtime"] = _program(server, command)
        if KOPF_PYTHON.exists():
            command = [str(KOPF_PYTHON), "-W", "ignore", str(ROOT / "bench" / "peers" / "kopf_peer.py"), str(OBJECTS)]
            programs["kopf"] = _program(server, command)
        return _compare(alternate(programs))


def _ours(server: ApiServer) -> list[str]:
    return [sys.executable, "-m", "bench.peers.quorate_peer", str(OBJECTS), str(server.kubeconfig)]


def _go_peer() -> Path | None:
    """Built once and again when its source is newer; None where there is no Go."""
    source = ROOT / "bench" / "peers" / "controller_runtime"
    newest = max(file.stat().st_mtime for file in source.iterdir())
    if GO_PEER.exists() and GO_PEER.stat().st_mtime > newest:
        return GO_PEER
    print("  building the controller-runtime peer (two minutes the first time)", flush=True)
    try:
        subprocess.run(["go", "build", "-o", str(GO_PEER), "."], cwd=source, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"  NOT COMPARED with controller-runtime: {error}", flush=True)
        return None
    return GO_PEER


def _program(server: ApiServer, command: list[str]) -> Callable[[], Mapping[str, float]]:
    def run_once() -> Mapping[str, float]:
        server.clear(Sample.KIND)
        environment = os.environ | {"KUBECONFIG": str(server.kubeconfig), "PYTHONPATH": str(ROOT)}
        with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True, cwd=ROOT) as process:
            assert process.stdout is not None
            if process.stdout.readline().strip() != "ready":
                raise RuntimeError(f"{command[0]} did not become ready")
            asyncio.run(_create_all(server))
            result = json.loads(process.stdout.readline())
        return {
            "cpu_ms_per_object": 1000 * result["cpu_seconds"] / OBJECTS,
            "writes_per_object": result["writes"] / OBJECTS,
            "objects_per_second": OBJECTS / result["wall_seconds"],
        }

    return run_once


async def _create_all(server: ApiServer) -> None:
    numbers = iter(range(OBJECTS))
    headers = {"Authorization": f"Bearer {server.token}", "Content-Type": "application/json"}
    async with aiohttp.ClientSession(headers=headers, connector=aiohttp.TCPConnector(ssl=False)) as session:

        async def create() -> None:
            for number in numbers:
                async with session.post(server.url + COLLECTION, data=sample_json(number)) as response:
                    response.raise_for_status()

        await asyncio.gather(*(create() for _ in range(8)))


def _compare(figures: Mapping[str, Mapping[str, float]]) -> Report:
    report = Report(f"One event, one decision, one status write on a real API server ({OBJECTS} objects)")
    ours = figures["quorate"]
    for name, reach in (("kopf", 0.1), ("controller-runtime", 1.2)):
        if name not in figures:
            report.add(f"CPU per object, against {name}", "not measured: no peer", f"at most {reach}x")
            continue
        theirs = figures[name]
        ratio = ours["cpu_ms_per_object"] / theirs["cpu_ms_per_object"]
        measured = f"{ours['cpu_ms_per_object']:.2f} ms / {theirs['cpu_ms_per_object']:.2f} ms = {ratio:.2f}x"
        report.add(f"CPU per object, against {name}", measured, f"at most {reach}x", ratio <= reach)
    writes = ours["writes_per_object"]
    others = ", ".join(f"{name} {run['writes_per_object']:.2f}" for name, run in figures.items() if name != "quorate")
    report.add("writes per settled object", f"{writes:.2f}", "1", round(writes, 2) == 1.0, f"({others})")
    return report


if __name__ == "__main__":
    print(run().markdown())
