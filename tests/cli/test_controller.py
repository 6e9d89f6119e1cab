"""``quorate controller`` as a process: it leads, it stands by, it hands over, and it explains why it cannot start."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from random import Random
from signal import SIGINT, SIGTERM, Signals

import aiohttp
import pytest
from prometheus_client import CollectorRegistry

from quorate.api import all_kinds, names
from quorate.api.cluster_config import ClusterConfig
from quorate.api.core import Lease
from quorate.engine.clock import SystemClock
from quorate.engine.embedded import EmbeddedStore
from quorate.errors import NotFound
from quorate.server.controllers import LEASE
from quorate.server.kubeconfig import kubeconfig, write_kubeconfig
from quorate.server.kubernetes import Access, Facade, listen

PATIENCE = 60.0


@asynccontextmanager
async def api(directory: Path) -> AsyncIterator[EmbeddedStore]:
    """An API server with nothing in it, and its kubeconfig in the directory."""
    clock, random = SystemClock(), Random(1)
    store = await EmbeddedStore.open(None, kinds=all_kinds(), clock=clock, random=random)
    facade = Facade(store, kinds=all_kinds(), clock=clock, chance=random, access=Access(), registry=CollectorRegistry())
    server = await listen(facade, host="127.0.0.1", port=0)
    write_kubeconfig(directory / "kubeconfig", kubeconfig(server.url))
    try:
        yield store
    finally:
        await server.close()
        await store.close()


async def start(directory: Path, *arguments: str) -> Process:
    command = [sys.executable, "-m", "quorate", "controller", "--log-level", "error"]
    given = ["--kubeconfig", str(directory / "kubeconfig"), "--metrics-port", "0", *arguments]
    environment = {key: value for key, value in os.environ.items() if key != "KUBECONFIG"}
    return await asyncio.create_subprocess_exec(*command, *given, env=environment, stdout=PIPE, stderr=PIPE)


@asynccontextmanager
async def running(directory: Path, stop: Signals = SIGTERM) -> AsyncIterator[str]:
    """A controller that stops at the end, and the address of its probes."""
    process = await start(directory)
    assert process.stdout is not None
    try:
        async with asyncio.timeout(PATIENCE):
            said = (await process.stdout.readline()).decode()
            port = re.search(r"port (\d+)$", said.strip())
            assert port is not None, said
            yield f"http://127.0.0.1:{port[1]}"
    finally:
        with suppress(ProcessLookupError):
            process.send_signal(stop)
        async with asyncio.timeout(PATIENCE):
            _, complaints = await process.communicate()
    assert process.returncode == 0, complaints.decode()


async def leader(store: EmbeddedStore, *, not_: str | None = None) -> str:
    async with asyncio.timeout(PATIENCE):
        while True:
            with suppress(NotFound):
                found = (await store.get(Lease, LEASE, names.NAMESPACE)).spec.holder_identity
                if found and found != not_:
                    return found
            await asyncio.sleep(0.02)


async def ready(probes: str) -> None:
    async with asyncio.timeout(PATIENCE), aiohttp.ClientSession(probes) as http:
        while (await http.get("/readyz")).status != 200:  # noqa: ASYNC110
            await asyncio.sleep(0.02)


async def appears(store: EmbeddedStore) -> None:
    """Somebody has decided something."""
    async with asyncio.timeout(PATIENCE):
        while True:
            with suppress(NotFound):
                await store.get(ClusterConfig, names.CLUSTER)
                return
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("stop", [SIGTERM, SIGINT])
async def test_it_leads_decides_serves_its_probes_and_gives_leadership_back(tmp_path: Path, stop: Signals) -> None:
    async with api(tmp_path) as store:
        async with running(tmp_path, stop) as probes:
            await leader(store)
            await appears(store)
            async with aiohttp.ClientSession() as session:
                async with session.get(f"{probes}/livez") as answer:
                    assert answer.status == 200
                async with session.get(f"{probes}/metrics") as answer:
                    told = await answer.text()
            assert f'leader_election_master_status{{name="{LEASE}"}} 1.0' in told
        assert not (await store.get(Lease, LEASE, names.NAMESPACE)).spec.holder_identity


async def test_a_second_one_stands_by_and_takes_over(tmp_path: Path) -> None:
    async with api(tmp_path) as store, AsyncExitStack() as first:
        await first.enter_async_context(running(tmp_path))
        leads = await leader(store)
        async with running(tmp_path) as second:
            await ready(second)
            assert await leader(store) == leads
            await first.aclose()
            assert await leader(store, not_=leads)


async def test_without_a_server_it_says_which_one_is_missing(tmp_path: Path) -> None:
    process = await start(tmp_path)
    async with asyncio.timeout(PATIENCE):
        _, complaints = await process.communicate()
    assert process.returncode not in (0, None)
    assert str(tmp_path / "kubeconfig") in complaints.decode()
    assert "Traceback" not in complaints.decode()
