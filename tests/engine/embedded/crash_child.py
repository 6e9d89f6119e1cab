"""Writes until it is killed: what it finds at the start, and every write that was acknowledged, go to stdout.

Every object has one writer, which counts: so at most one write per object can be on its way when death comes.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
from pathlib import Path

from quorate.engine.clock import SystemClock
from quorate.engine.embedded import EmbeddedStore, HistoryLimits
from tests.engine.embedded.support import WIDGET, widget
from tests.support.kinds import Widget

OBJECTS = 16
#: Small, so that erasing old rows and moving the write-ahead log are interrupted as well.
LIMITS = HistoryLimits(events=100)


def say(*words: object) -> None:
    # One write to a pipe is all or nothing.
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


async def count(store: EmbeddedStore, name: str) -> None:
    names = [record.name for record in store.read_page(WIDGET).records]
    if name not in names:
        await store.create_raw(WIDGET, widget(name, {"owner": "me", "motto": "x" * 3000}))
    number = (await store.get(Widget, name)).status.count or 0
    while True:
        number += 1
        written = await store.patch_status(Widget, name, patch={"count": number})
        say("wrote", name, number, written.metadata.resource_version)


async def main(path: Path) -> None:
    store = await EmbeddedStore.open(path, kinds=[WIDGET], clock=SystemClock(), random=random.Random(), limits=LIMITS)
    for record in store.read_page(WIDGET).records:
        assert isinstance(record.typed, Widget)
        say("found", record.name, record.typed.status.count or 0, record.version)
    say("ready")
    await asyncio.gather(*(count(store, f"w{number}") for number in range(OBJECTS)))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
