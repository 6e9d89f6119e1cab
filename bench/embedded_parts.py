"""The measurements of bench/embedded.py, each in a process of its own.

``python -m bench.embedded_parts NAME OBJECTS DIR`` prints one JSON line of figures.
"""

from __future__ import annotations

import asyncio
import gc
import itertools
import json
import queue
import sqlite3
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from random import Random
from typing import Any

from bench.harness import cpu_seconds, resident_bytes
from bench.sample import Sample, sample, sample_json
from quorate.api.codec import decoder, encode, to_dict
from quorate.engine.cache import Cache
from quorate.engine.clock import SystemClock
from quorate.engine.controller import Controller, Watch
from quorate.engine.embedded import EmbeddedStore
from quorate.engine.keys import Key
from quorate.engine.manager import Manager
from quorate.engine.plan import NOTHING, Plan
from quorate.engine.reader import Reader
from quorate.engine.store import ObjectList

WRITERS = 64
CONTROLLERS = 25
SECONDS = 4.0

Decide = Callable[[Sample, datetime, Random], Plan]


def observe(reader: Reader, key: Key) -> Sample | None:
    return reader.get(Sample, key.name)


def do_nothing(_sample: Sample, _now: datetime, _random: Random) -> Plan:
    return NOTHING


@asynccontextmanager
async def opened(directory: Path) -> AsyncIterator[EmbeddedStore]:
    store = await EmbeddedStore.open(
        directory / "quorate.db", kinds=[Sample.KIND], clock=SystemClock(), random=Random(1)
    )
    try:
        yield store
    finally:
        await store.close()


@asynccontextmanager
async def managed(store: EmbeddedStore, decides: list[Decide]) -> AsyncIterator[Manager]:
    controllers = [
        Controller(name=f"controller-{number}", watches=(Watch(Sample),), observe=observe, decide=decide, workers=1)
        for number, decide in enumerate(decides)
    ]
    manager = Manager(store, controllers, clock=SystemClock(), random=Random(2), identity="bench", freeze_gc=True)
    running = asyncio.create_task(manager.run())
    while not manager.leading:
        await asyncio.sleep(0)
    try:
        yield manager
    finally:
        manager.stop()
        await running


async def fill(objects: int, directory: Path) -> dict[str, float]:
    async with opened(directory) as store:
        numbers = iter(range(objects))

        async def create() -> None:
            for number in numbers:
                await store.create(sample(number))

        await asyncio.gather(*(create() for _ in range(WRITERS)))
    return {"objects": objects}


async def load(write: Callable[[int], Awaitable[object]], objects: int) -> float:
    """WRITERS writers, each as fast as it can, for SECONDS; writes per second."""
    end = time.monotonic() + SECONDS
    done = 0

    async def writer(first: int) -> None:
        nonlocal done
        for number in itertools.count(first, WRITERS):
            await write(number % objects)
            done += 1
            if time.monotonic() > end:
                return

    started = time.monotonic()
    await asyncio.gather(*(writer(first) for first in range(WRITERS)))
    return done / (time.monotonic() - started)


async def bare(objects: int, directory: Path) -> dict[str, float]:
    """The named baseline: SQLite with group commit and nothing else.

    Each write upserts the current object and appends to the history, which is what an engine with a history needs to
    do when it is written down plainly. ``append_only`` is the same without the table of current objects: the least
    that could be written at all. ``lone`` is a write that nobody shares the commit with: the disk's own time.
    """
    rate, lone = await _bare(objects, directory / "bare.db", upsert=True)
    append_only, _ = await _bare(objects, directory / "append.db", upsert=False)
    return {
        "writes_per_second": rate,
        "append_only_per_second": append_only,
        "lone_p50_ms": 1000 * quantile(lone, 0.5),
        "lone_p99_ms": 1000 * quantile(lone, 0.99),
    }


async def _bare(objects: int, path: Path, *, upsert: bool) -> tuple[float, list[float]]:
    """Writes per second of many writers, and how long each of a lone writer's took, sorted."""
    committer = BareCommitter(path, upsert=upsert)
    raw = sample_json(1)
    versions = itertools.count(1)

    async def write(number: int) -> None:
        await committer.write((next(versions), "samples", "", f"volume-{number:06}", "MODIFIED", 0.0, 0, raw))

    rate = await load(write, objects)
    lone = []
    async for number in lone_writes(objects):
        begun = time.monotonic()
        await write(number)
        lone.append(time.monotonic() - begun)
    committer.stop()
    return rate, sorted(lone)


async def lone_writes(objects: int) -> AsyncIterator[int]:
    """What to write when nobody else writes: one after the other, with a pause between."""
    await asyncio.sleep(0.5)
    for number in range(1000):
        yield number % objects
        await asyncio.sleep(0.002)


class BareCommitter:
    """One thread; everything that waits while it commits is the next transaction."""

    def __init__(self, path: Path, *, upsert: bool) -> None:
        path.unlink(missing_ok=True)
        self._upsert = upsert
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = FULL")
        self._connection.execute(
            "CREATE TABLE log (version INTEGER PRIMARY KEY, kind, namespace, name, type, at, crc, raw)"
        )
        self._connection.execute(
            "CREATE TABLE objects (kind, namespace, name, version, raw, PRIMARY KEY (kind, namespace, name))"
        )
        self._queue: queue.SimpleQueue[tuple[Any, asyncio.Future[None]] | None] = queue.SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    async def write(self, row: tuple[object, ...]) -> None:
        done: asyncio.Future[None] = self._loop.create_future()
        self._queue.put((row, done))
        await done

    def stop(self) -> None:
        self._queue.put(None)
        self._thread.join()
        self._connection.close()

    def _run(self) -> None:
        for batch in self._batches():
            self._connection.execute("BEGIN")
            self._connection.executemany("INSERT INTO log VALUES (?,?,?,?,?,?,?,?)", [row for row, _ in batch])
            if self._upsert:
                current = [
                    (kind, namespace, name, version, raw) for (version, kind, namespace, name, *_, raw), _ in batch
                ]
                self._connection.executemany("INSERT OR REPLACE INTO objects VALUES (?,?,?,?,?)", current)
            self._connection.execute("COMMIT")
            self._loop.call_soon_threadsafe(_resolve, [done for _, done in batch])

    def _batches(self) -> Iterator[list[tuple[Any, asyncio.Future[None]]]]:
        while (first := self._queue.get()) is not None:
            batch = [first]
            while not self._queue.empty():
                following = self._queue.get()
                if following is None:
                    yield batch
                    return
                batch.append(following)
            yield batch


def _resolve(futures: list[asyncio.Future[None]]) -> None:
    for future in futures:
        future.set_result(None)


async def writes(objects: int, directory: Path) -> dict[str, float]:
    """Durable status writes with validation, CONTROLLERS controllers woken by each; and how soon one decides."""
    latencies: list[float] = []
    sent: dict[str, float] = {}

    def probe(seen: Sample, _now: datetime, _random: Random) -> Plan:
        begun = sent.pop(seen.status.phase, None)
        if begun is not None:
            latencies.append(time.monotonic() - begun)
        return NOTHING

    async with opened(directory) as store, managed(store, [probe, *[do_nothing] * (CONTROLLERS - 1)]):
        versions = itertools.count()

        async def write(number: int) -> None:
            mark = f"phase-{next(versions)}"
            sent[mark] = time.monotonic()
            await store.patch_status(Sample, f"volume-{number:06}", patch={"phase": mark})

        await settle()
        rate = await load(write, objects)
        await asyncio.sleep(0.5)
        loaded, latencies[:] = sorted(latencies), []
        async for number in lone_writes(objects):
            await write(number)
        await asyncio.sleep(0.1)
        idle = sorted(latencies)
    return {
        "writes_per_second": rate,
        "loaded_p50_ms": 1000 * quantile(loaded, 0.5),
        "loaded_p99_ms": 1000 * quantile(loaded, 0.99),
        "idle_p50_ms": 1000 * quantile(idle, 0.5),
        "idle_p99_ms": 1000 * quantile(idle, 0.99),
    }


async def settle() -> None:
    """Let the passes of the start be over."""
    before = cpu_seconds()
    while True:
        await asyncio.sleep(0.2)
        now = cpu_seconds()
        if now - before < 0.02:
            return
        before = now


async def no_op(objects: int, directory: Path) -> dict[str, float]:
    """CPU of a pass that finds nothing to do: queue, observe, decide, apply, metrics."""
    passes = 0

    def count(_sample: Sample, _now: datetime, _random: Random) -> Plan:
        nonlocal passes
        passes += 1
        return NOTHING

    async with opened(directory) as store, managed(store, [count]) as manager:
        while passes < objects:
            await asyncio.sleep(0.01)
        rounds = max(1, 20_000 // objects)
        version = store.read_page(Sample.KIND, limit=1).resource_version
        started, begun = cpu_seconds(), passes
        for _ in range(rounds):
            aim = passes + objects
            for worker in manager._workers:  # what happens every 20 hours by itself
                worker.resync()
            while passes < aim:
                await asyncio.sleep(0.01)
        used = cpu_seconds() - started
        assert store.read_page(Sample.KIND, limit=1).resource_version == version, "a no-op pass wrote something"
    return {"cpu_us_per_pass": 1e6 * used / (passes - begun)}


async def memory(objects: int, _directory: Path) -> dict[str, float]:
    """What a cache costs per object."""
    bodies = [stored_json(number) for number in range(objects)]
    gc.collect()
    before = resident_bytes()
    cache = Cache(Sample)
    decode = decoder(Sample).decode
    cache.replace(ObjectList(tuple(decode(body) for body in bodies), str(objects)))
    gc.collect()
    alone = (resident_bytes() - before) / objects
    return {"wire_bytes": sum(map(len, bodies)) / objects, "cache_bytes": alone}


async def store_memory(objects: int, directory: Path) -> dict[str, float]:
    """What the embedded store and a cache of it cost together."""
    gc.collect()
    before = resident_bytes()
    async with opened(directory) as store:
        cache = Cache(Sample)
        cache.replace(await store.list(Sample))
        gc.collect()
        assert len(cache) == objects
        return {"store_and_cache_bytes": (resident_bytes() - before) / objects}


def stored_json(number: int) -> bytes:
    """The object as a server returns it: with the metadata that servers add, managedFields included."""
    body = to_dict(sample(number))
    body["metadata"] |= {
        "uid": f"00000000-0000-4000-8000-{number:012}",
        "resourceVersion": str(number + 1),
        "generation": 1,
        "creationTimestamp": "2026-11-16T00:00:00Z",
        "managedFields": [{"manager": "bench", "operation": "Update", "fieldsV1": {f"f:{n}": {} for n in range(40)}}],
    }
    return encode(body)


async def cold_start(objects: int, directory: Path) -> dict[str, float]:
    """From nothing but the file to synced caches."""
    started, cpu = time.monotonic(), cpu_seconds()
    async with opened(directory) as store, managed(store, [do_nothing]) as manager:
        wall = time.monotonic() - started
        assert len(manager.caches[Sample]) == objects
        used = cpu_seconds() - cpu
    return {"wall_seconds": wall, "cpu_seconds": used}


def quantile(values: list[float], share: float) -> float:
    return values[min(len(values) - 1, int(len(values) * share))]


PARTS = {
    "fill": fill,
    "bare": bare,
    "writes": writes,
    "no_op": no_op,
    "memory": memory,
    "store_memory": store_memory,
    "cold_start": cold_start,
}

if __name__ == "__main__":
    print(json.dumps(asyncio.run(PARTS[sys.argv[1]](int(sys.argv[2]), Path(sys.argv[3])))))
