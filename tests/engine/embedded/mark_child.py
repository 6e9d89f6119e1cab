"""Writes a number of widgets, says the version of each that was acknowledged, and waits to be killed."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from random import Random

from quorate.engine.clock import SystemClock
from quorate.engine.embedded import EmbeddedStore
from tests.engine.embedded.support import WIDGET, widget


async def main(path: Path, begin: int, end: int) -> None:
    store = await EmbeddedStore.open(path, kinds=[WIDGET], clock=SystemClock(), random=Random(1))
    for number in range(begin, end):
        written = await store.create_raw(WIDGET, widget(f"w{number:04}", {"owner": "me", "motto": "x" * 2000}))
        os.write(1, f"{written.record.version}\n".encode())
    os.write(1, b"done\n")
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))
