"""The peer for bench/kubernetes.py: kopf doing one event, one decision, one status write per object.

Run by a Python that has ``requirements/bench.txt`` installed. Speaks the same protocol as the other programs:
prints "ready", then one JSON line with the CPU it used.
"""

from __future__ import annotations

import asyncio
import json
import logging
import resource
import sys
import time

import aiohttp
import kopf

WRITES = 0
SETTLED: set[str] = set()


def cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_: object) -> None:
    settings.posting.enabled = False
    settings.scanning.disabled = True


@kopf.on.create("bench.quorate.io", "v1", "samples")
@kopf.on.update("bench.quorate.io", "v1", "samples")
@kopf.on.resume("bench.quorate.io", "v1", "samples")
def settle(status: kopf.Status, patch: kopf.Patch, meta: kopf.Meta, **_: object) -> None:
    if status.get("phase") == "Ready":
        return
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "Settled",
        "message": "every replica is up to date",
        "lastTransitionTime": "2026-11-16T00:00:00Z",
        "observedGeneration": meta["generation"],
    }
    patch.status["phase"] = "Ready"
    patch.status["conditions"] = [ready]


@kopf.on.delete("bench.quorate.io", "v1", "samples")
def let_go(**_: object) -> None:
    """A controller that owns something outside needs a finalizer; for kopf that is a delete handler."""


@kopf.on.event("bench.quorate.io", "v1", "samples")
def watch(name: str, status: kopf.Status, **_: object) -> None:
    if status.get("phase") == "Ready":
        SETTLED.add(name)


async def main(objects: int) -> None:
    ready = asyncio.Event()
    stop = asyncio.Event()
    operator = asyncio.create_task(
        kopf.operator(clusterwide=True, standalone=True, ready_flag=ready, stop_flag=stop, priority=0)
    )
    await ready.wait()
    await asyncio.sleep(1)
    started, cpu = time.monotonic(), cpu_seconds()
    print("ready", flush=True)
    while len(SETTLED) < objects and not operator.done():
        if time.monotonic() - started > 300:
            sys.exit(f"settled {len(SETTLED)} of {objects}")
        await asyncio.sleep(0.02)
    used, wall = cpu_seconds() - cpu, time.monotonic() - started
    # Its own bookkeeping writes (annotations) may trail behind: count them, but not the wait.
    await asyncio.sleep(2)
    print(json.dumps({"cpu_seconds": used, "wall_seconds": wall, "writes": WRITES}), flush=True)
    stop.set()
    await operator


def count_writes() -> None:
    original = aiohttp.ClientSession._request

    async def counting(self: aiohttp.ClientSession, method: str, *args: object, **kwargs: object) -> object:
        global WRITES
        WRITES += method.upper() != "GET"
        return await original(self, method, *args, **kwargs)  # type: ignore[arg-type]

    aiohttp.ClientSession._request = counting  # type: ignore[method-assign, assignment]


if __name__ == "__main__":
    logging.getLogger("kopf").setLevel(logging.ERROR)
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)
    count_writes()
    asyncio.run(main(int(sys.argv[1])))
