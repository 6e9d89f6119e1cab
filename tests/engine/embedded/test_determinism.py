"""Inline, the same seed makes the same history, byte for byte, whatever the interpreter hashes."""

from __future__ import annotations

import asyncio
import hashlib
import os
import random
import subprocess
import sys
from pathlib import Path

from quorate.engine.embedded import EmbeddedStore
from quorate.errors import ApiError
from tests.engine.embedded.support import WIDGET, ManualClock, open_store, widget
from tests.support.kinds import Widget

ROOT = Path(__file__).parents[3]


async def write(store: EmbeddedStore, choices: random.Random) -> None:
    name = choices.choice("abc")
    match choices.randrange(4):
        case 0:
            labels = {f"k{choices.randrange(9)}": "v" for _ in range(4)}
            await store.create_raw(WIDGET, {**widget(), "metadata": {"generateName": name, "labels": labels}})
        case 1:
            await store.create_raw(WIDGET, widget(name, metadata={"finalizers": ["x.io/b", "x.io/a"]}))
        case 2:
            await store.patch(Widget, name, patch={"spec": {"low": choices.randrange(9)}})
        case 3:
            await store.delete(Widget, name)


async def history(seed: int) -> str:
    """A digest of everything that several watchers were told, in the order in which they were."""
    clock, choices = ManualClock(), random.Random(seed)
    store = await open_store(clock=clock, seed=seed)
    digest = hashlib.sha256()

    async def watch(name: str) -> None:
        async for change in store.subscribe(WIDGET, resource_version=None):
            assert change.record is not None
            digest.update(f"{name} {change.type} {change.version} ".encode() + change.record.raw)

    watchers = [asyncio.create_task(watch(name)) for name in ("first", "second", "third")]
    for _ in range(60):
        clock.advance(choices.random())
        try:
            await write(store, choices)
        except ApiError as error:
            digest.update(str(error).encode())
        await asyncio.sleep(0)
    await store.close()
    await asyncio.gather(*watchers)
    return digest.hexdigest()


def in_another_process(seed: int, hash_seed: str) -> str:
    command = [sys.executable, "-m", "tests.engine.embedded.test_determinism", str(seed)]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, check=True, text=True).stdout.strip()


async def test_the_same_seed_makes_the_same_history() -> None:
    assert await history(7) == await history(7)
    assert await history(7) != await history(8)


async def test_the_hash_seed_makes_no_difference() -> None:
    assert in_another_process(7, "1") == in_another_process(7, "2") == await history(7)


if __name__ == "__main__":
    print(asyncio.run(history(int(sys.argv[1]))))
