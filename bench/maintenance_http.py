"""The broker over HTTP: dry runs per second, one process, on a cluster of the size that is asked for.

``python -m bench.maintenance_http`` starts ``quorate broker`` on a described cluster and asks it from this process over
keep-alive connections: may this host be shut down? QUORATE_BENCH_NODES makes the cluster smaller.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.harness import RUNS, Report, machine

NODES = int(os.environ.get("QUORATE_BENCH_NODES", "5000"))
DRIVES = 10
#: Replicas on a drive.
SLOTS = 4
#: Nodes that share groups.
BLOCK = 8
CONNECTIONS = 16
REQUESTS = 8000
WARM_UP = 1000
REACH = 2000


def run() -> Report:
    """Everything; the report's figures are medians."""
    report = Report(
        f"Broker over HTTP: {NODES:,} nodes, {NODES * DRIVES:,} drives, {NODES * DRIVES * SLOTS:,} replicas"
    )
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "cluster.json"
        file.write_text(json.dumps(described()))
        with running(file) as (process, port):
            asyncio.run(ask(port, WARM_UP))
            before = cpu_of(process)
            rates = sorted(asyncio.run(ask(port, REQUESTS)) for _ in range(RUNS))
            spent = (cpu_of(process) - before) / (REQUESTS * RUNS)
    median = rates[len(rates) // 2]
    spread = f"{rates[0]:,.0f} to {rates[-1]:,.0f} in {RUNS} runs; the asking process shares the machine"
    report.add("dry runs per second, one process", f"{median:,.0f}/s", f"at least {REACH:,}/s", median >= REACH, spread)
    note = f"of the broker's process: room for {1 / spent:,.0f}/s on a core of its own"
    report.add("CPU time of one", f"{spent * 1e6:,.0f} us", f"at most {1e6 / REACH:,.0f} us", spent <= 1 / REACH, note)
    return report


def cpu_of(process: int) -> float:
    """User and system time that it has spent."""
    with open(f"/proc/{process}/stat") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def described() -> dict[str, Any]:
    """Blocks of eight nodes; every drive has a part of four block-4-2 groups of its block."""
    groups: list[dict[str, Any]] = []
    for first in range(1, NODES - BLOCK + 2, BLOCK):
        for drive in range(1, DRIVES + 1):
            for _ in range(SLOTS):
                parts = [
                    {"realm": 0, "domain": place, "vdisk": 0, "node": first + place, "drive": drive}
                    for place in range(BLOCK)
                ]
                groups.append({"id": len(groups), "erasure": "block-4-2", "generation": 1, "vdisks": parts})
    return {
        "nodes": [{"id": node, "host": f"h{node}", "services": ["storage"]} for node in range(1, NODES + 1)],
        "drives": [
            {"node": node, "id": drive, "path": f"/dev/sd{chr(97 + drive)}"}
            for node in range(1, NODES + 1)
            for drive in range(1, DRIVES + 1)
        ],
        "groups": groups,
    }


@contextmanager
def running(file: Path) -> Iterator[tuple[int, int]]:
    """``quorate broker``; its process id and its HTTP port."""
    command = [sys.executable, "-m", "quorate", "broker", "--cluster", str(file), "--log-level", "error"]
    command += ["--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            ready = process.stdout.readline()
            found = re.search(r"http://127\.0\.0\.1:(\d+)", ready)
            assert found is not None, ready
            yield process.pid, int(found[1])
        finally:
            process.terminate()


async def ask(port: int, requests: int) -> float:
    """Requests per second over all connections."""
    started = time.perf_counter()
    each = requests // CONNECTIONS
    await asyncio.gather(*(_connection(port, number, each) for number in range(CONNECTIONS)))
    return each * CONNECTIONS / (time.perf_counter() - started)


async def _connection(port: int, number: int, requests: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for turn in range(requests):
        writer.write(_request(port, 1 + (number * 7919 + turn) % NODES))
        head = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"(?i)content-length: (\d+)", head)
        assert head.startswith(b"HTTP/1.1 200"), head
        assert length is not None, head
        body = await reader.readexactly(int(length[1]))
        assert body.startswith(b'{"Status":{"Code":"ALLOW"}'), body
    writer.close()
    await writer.wait_closed()


def _request(port: int, node: int) -> bytes:
    action = {"Type": "SHUTDOWN_HOST", "Host": f"h{node}", "Duration": 60_000_000}
    body = json.dumps({"User": "bench", "Actions": [action], "DryRun": True}).encode()
    head = f"POST /cms/api/permissionrequest HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


if __name__ == "__main__":
    print(machine())
    run()
