"""A server with everything that ``quorate up`` serves, and a meter beside it: what did the last requests cost?

Commands come on standard input, a line each; every one is answered by a line.

    reset     forget what was measured
    report    {"stall": ..., "cpu": ..., "memory": ...}: seconds, seconds, bytes

``stall`` is the processor time that the event loop's thread used without letting a timer through. It does not grow
when the machine is busy with other things, as the time on a clock does.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
import time
from pathlib import Path

from quorate.api import all_kinds
from quorate.api.core import Event
from quorate.cli.process_log import begin_log
from quorate.config import Config
from quorate.engine.clock import SystemClock
from quorate.engine.embedded import EmbeddedStore
from quorate.server import standalone

#: Objects in the longest collection.
EVENTS = 1500


class Meter:
    """Measures from one reset to the next report."""

    def __init__(self) -> None:
        self._stall = 0.0
        self._last = time.thread_time()
        self._cpu = 0.0
        self._memory = 0

    async def run(self) -> None:
        """Look every few milliseconds."""
        while True:
            await asyncio.sleep(0.002)
            now = time.thread_time()
            self._stall = max(self._stall, now - self._last)
            self._last = now

    def reset(self) -> None:
        Path("/proc/self/clear_refs").write_text("5")
        self._stall, self._last = 0.0, time.thread_time()
        self._cpu, self._memory = time.process_time(), _memory("VmRSS")

    def report(self) -> dict[str, float]:
        stall = max(self._stall, time.thread_time() - self._last)
        return {
            "stall": stall,
            "cpu": time.process_time() - self._cpu,
            "memory": max(_memory("VmHWM") - self._memory, 0),
        }


def _memory(name: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise AssertionError(name)


async def fill(data: Path) -> None:
    """A collection that is long enough for its list to be work."""
    store = await EmbeddedStore.open(
        data / "quorate.db", kinds=all_kinds(), clock=SystemClock(), random=random.Random(1)
    )
    about = {"kind": "Node", "name": "n1"}
    await asyncio.gather(
        *(
            store.create_raw(
                Event.KIND,
                {
                    "apiVersion": "v1",
                    "kind": "Event",
                    "metadata": {"name": f"e{number}", "namespace": "default", "labels": {"n": str(number)}},
                    "involvedObject": about,
                    "message": "x" * 500,
                },
                namespace="default",
            )
            for number in range(EVENTS)
        )
    )
    await store.close()


async def main(data: Path) -> None:
    await fill(data)
    meter = Meter()
    commands = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(commands), sys.stdin)
    config = Config(data=str(data), port=0, nodes=0)
    async with standalone.standalone(config, clock=SystemClock(), chance=random.SystemRandom()) as up:
        measuring = asyncio.create_task(meter.run())
        os.write(1, f"{up.url}\n".encode())
        while line := (await commands.readline()).strip():
            if line == b"reset":
                meter.reset()
                os.write(1, b"{}\n")
            else:
                os.write(1, json.dumps(meter.report()).encode() + b"\n")
        measuring.cancel()


if __name__ == "__main__":
    begin_log("error", "json")
    asyncio.run(main(Path(sys.argv[1])))
