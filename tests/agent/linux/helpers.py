"""How these tests wait, and how they see that nothing is left behind."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

#: Generous: only a test that fails waits for it.
LONG = 30.0

PYTHON = (sys.executable, "-I", "-c")


@contextmanager
def nothing_is_left() -> Iterator[None]:
    """Neither a child, dead or alive, nor an open file."""
    before = children(), set(os.listdir("/proc/self/fd"))
    yield
    assert (children(), set(os.listdir("/proc/self/fd"))) == before


def children() -> set[int]:
    """Our own, dead or alive. Other tests may have some too: an API server."""
    found = set()
    for stat_file in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            if int(stat_file.read_text().rpartition(")")[2].split()[1]) == os.getpid():
                found.add(int(stat_file.parent.name))
    return found


async def soon(still: Callable[[], object]) -> None:
    """Wait until something is no more."""
    async with asyncio.timeout(LONG):
        while still():  # noqa: ASYNC110 - the kernel sets no event of ours
            await asyncio.sleep(0.005)
