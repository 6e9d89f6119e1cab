"""Simulated nodes on a real API server: they appear there, and each may write only what is its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

import pytest

from quorate.api import all_kinds, labels
from quorate.api.baremetal import Drive
from quorate.api.core import Node
from quorate.api.storage import LVMVolumeGroup
from quorate.api.storage.lvg import VolumeGroupPhase
from quorate.engine.clock import SystemClock
from quorate.engine.kubernetes import Connection, KubernetesStore, load_connection
from quorate.errors import Forbidden
from quorate.lab.attached import attached, own_connection
from quorate.lab.layout import Layout
from tests.support import policies
from tests.support.apiserver import ApiServer

pytestmark = pytest.mark.apiserver

CLOCK = SystemClock()
LAYOUT = Layout(nodes=2, zones=2, drives=2, prefix="attached")
PATIENCE = 60.0


@pytest.fixture
def server(apiserver: ApiServer) -> Iterator[ApiServer]:
    apiserver.install_crds(kind for kind in all_kinds() if kind.crd)
    policies.apply(apiserver)
    yield apiserver
    policies.remove(apiserver)
    apiserver.clear(Drive.KIND, LVMVolumeGroup.KIND)
    for plan in LAYOUT.plans():
        apiserver.request("DELETE", f"/api/v1/nodes/{plan.name}")


@pytest.fixture
def credentials(server: ApiServer, tmp_path: Path) -> Path:
    """A certificate for every node."""
    for plan in LAYOUT.plans():
        pair = server.authority.client(f"system:quorate:agent:{plan.name}", "system:quorate:agents")
        pair.certificate.rename(tmp_path / f"{plan.name}.crt")
        pair.key.rename(tmp_path / f"{plan.name}.key")
    return tmp_path


def connection(server: ApiServer) -> Connection:
    return load_connection(environ={}, clock=CLOCK, kubeconfig=server.kubeconfig)


@asynccontextmanager
async def opened(to: Connection) -> AsyncIterator[KubernetesStore]:
    store = KubernetesStore(to, clock=CLOCK, random=Random(1))
    try:
        yield store
    finally:
        await store.close()


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not await holds():  # noqa: ASYNC110 - a server cannot be waited for otherwise
            await asyncio.sleep(0.2)


async def until_refused(write: Callable[[], Awaitable[object]], saying: str) -> None:
    """A real server takes each policy up a moment after it was made: until then it lets everything pass."""

    async def refused() -> bool:
        try:
            await write()
        except Forbidden as error:
            return saying in str(error)
        return False

    await until(refused)


async def test_nodes_appear_with_drives_and_groups_and_cannot_touch_each_other(
    server: ApiServer, credentials: Path
) -> None:
    to = connection(server)
    async with attached(LAYOUT, to, clock=CLOCK, random=Random(1), credentials=credentials), opened(to) as admin:

        async def reported() -> bool:
            groups = (await admin.list(LVMVolumeGroup)).items
            ready = [group for group in groups if group.status.phase is VolumeGroupPhase.READY]
            return len(ready) == 4 and len((await admin.list(Drive)).items) == 4

        await until(reported)
        nodes = {node.name: node for node in (await admin.list(Node)).items}
        assert nodes["attached-2"].metadata.labels[labels.ZONE] == "zone-b"
        assert nodes["attached-2"].status.addresses[0].address == "10.77.0.3"
        theirs = next(drive for drive in (await admin.list(Drive)).items if drive.spec.node_id == "attached-2")
        own = own_connection(to, "attached-1", credentials, CLOCK)
        assert own is not None
        async with opened(own) as agent:
            message = "the agent of node attached-1 may write only"
            await until_refused(
                lambda: agent.patch_status(Drive, theirs.name, patch={"message": "mine now"}),
                f"{message} objects with its label",
            )
            await until_refused(
                lambda: agent.patch(Node, "attached-2", patch={"metadata": {"annotations": {"a": "b"}}}), message
            )
            assert (await agent.get(Drive, theirs.name)).name == theirs.name  # reading is not limited


def test_a_node_without_a_credential_of_its_own_uses_the_kubeconfigs(server: ApiServer, tmp_path: Path) -> None:
    to = connection(server)
    assert own_connection(to, "n1", tmp_path, CLOCK) is None
    assert own_connection(to, "n1", None, CLOCK) is None
    (tmp_path / "n1").write_text("0123456789abcdef")
    own = own_connection(to, "n1", tmp_path, CLOCK)
    assert own is not None
    assert (own.server, own.ca) == (to.server, to.ca)
    assert own.origin.endswith("as the agent of n1")
