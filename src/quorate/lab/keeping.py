"""Keeps a file like a cluster's hardware, so that a restarted ``quorate up`` finds its drives as they were.

What was done in the last seconds before a SIGKILL may be missing from the file, on all nodes alike: as if their power
had gone before it. Nodes that were added to the layout since are new, those that were taken out of it are forgotten.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NoReturn

from quorate.engine.logs import get_logger
from quorate.lab import saving
from quorate.lab.cluster import Cluster

log = get_logger(__name__)

#: Seconds between two looks at whether anything has been done.
_INTERVAL = 5.0


def restore(cluster: Cluster, file: Path) -> None:
    """Give the nodes of a cluster the hardware in a file, if there is one that can be used."""
    try:
        saved = saving.load(file.read_bytes())
        for name, hardware in saved.items():
            if name in cluster.nodes:
                cluster.nodes[name].restore(hardware)
    except FileNotFoundError:
        return
    except (OSError, saving.Unusable) as error:
        log.warning("simulated drives start empty: what was saved cannot be used", file=str(file), why=str(error))


@asynccontextmanager
async def kept(cluster: Cluster, file: Path) -> AsyncIterator[None]:
    """Write the hardware to the file now and then while the block lasts, and at its end."""
    task = asyncio.create_task(_keep(cluster, file), name="keeping the lab's hardware")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        _write(file, _dump(cluster))


async def _keep(cluster: Cluster, file: Path) -> NoReturn:
    last = b""
    while True:
        await cluster.driver.clock.sleep(_INTERVAL)
        data = _dump(cluster)
        if data != last:
            await asyncio.to_thread(_write, file, data)
            last = data


def _dump(cluster: Cluster) -> bytes:
    cluster.driver.catch_up()
    return saving.dump({name: node.saved() for name, node in cluster.nodes.items()})


def _write(file: Path, data: bytes) -> None:
    """Whole or not at all, and only for its owner: files of nodes hold secrets."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = file.with_name(f".{file.name}.new")
    temporary.unlink(missing_ok=True)
    try:
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as opened:
            opened.write(data)
        temporary.replace(file)
    except OSError as error:
        log.warning("the simulated hardware could not be saved", file=str(file), why=str(error))
