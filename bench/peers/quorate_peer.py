"""Our side of bench/kubernetes.py: the whole engine doing one event, one decision, one status write per object.

Speaks the same protocol as the other programs: prints "ready", then one JSON line with the CPU it used. Nothing is
switched off: caches, queue, metrics, logs and the writer with its checks are those of a real controller.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from datetime import datetime
from pathlib import Path
from random import Random

from bench.harness import cpu_seconds
from bench.sample import Sample, settled
from quorate.engine.clock import SystemClock
from quorate.engine.controller import Controller, Watch
from quorate.engine.keys import Key
from quorate.engine.kubernetes import KubernetesStore, load_connection
from quorate.engine.manager import Manager
from quorate.engine.plan import NOTHING, PatchStatus, Plan
from quorate.engine.reader import Reader

SETTLED: set[str] = set()


def observe(reader: Reader, key: Key) -> Sample | None:
    return reader.get(Sample, key.name)


def decide(sample: Sample, _now: datetime, _random: Random) -> Plan:
    if sample.status.phase == "Ready":
        SETTLED.add(sample.name)
        return NOTHING
    return Plan(status=PatchStatus(sample, settled(sample)))


async def main(objects: int, kubeconfig: Path) -> None:
    clock, random = SystemClock(), Random(1)
    writes = 0

    def count(verb: str, _host: str, _code: str, _seconds: float) -> None:
        nonlocal writes
        writes += verb not in ("GET", "WATCH")

    store = KubernetesStore(
        load_connection(environ=os.environ, kubeconfig=kubeconfig, clock=clock),
        clock=clock,
        random=random,
        observe=count,
    )
    controller = Controller(name="settle", watches=(Watch(Sample),), observe=observe, decide=decide, workers=16)
    manager = Manager(store, [controller], clock=clock, random=random, identity="bench", freeze_gc=True)
    running = asyncio.create_task(manager.run())
    while not manager.leading:
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.5)
    started, cpu = time.monotonic(), cpu_seconds()
    print("ready", flush=True)
    while len(SETTLED) < objects and not running.done():
        if time.monotonic() - started > 300:
            sys.exit(f"settled {len(SETTLED)} of {objects}")
        await asyncio.sleep(0.02)
    used, wall = cpu_seconds() - cpu, time.monotonic() - started
    print(json.dumps({"cpu_seconds": used, "wall_seconds": wall, "writes": writes}), flush=True)
    manager.stop()
    await running
    await store.close()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), Path(sys.argv[2])))
