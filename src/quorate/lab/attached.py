"""Simulated nodes on somebody else's API server: a real cluster's, or that of a ``quorate up``.

Volume groups are made as the kubeconfig's user. Each agent has its own credential where the
directory of credentials has one: ``<node>.crt`` and ``<node>.key``, or a token in ``<node>``, which is how
``quorate up`` keeps them in ``DATA/agents``. The others use the kubeconfig's.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from random import Random

from quorate.engine.clock import Clock
from quorate.engine.kubernetes import Connection, KubernetesStore
from quorate.engine.kubernetes.credentials import FixedCredentials
from quorate.lab.cluster import Cluster
from quorate.lab.delivery import deliver
from quorate.lab.layout import Layout


@asynccontextmanager
async def attached(
    layout: Layout,
    connection: Connection,
    *,
    clock: Clock,
    random: Random,
    credentials: Path | None = None,
    seed: int = 0,
) -> AsyncIterator[Cluster]:
    """The nodes of a layout, their agents working on the server, for as long as the block lasts."""
    async with AsyncExitStack() as stack:

        def opened(to: Connection) -> KubernetesStore:
            store = KubernetesStore(to, clock=clock, random=random)
            stack.push_async_callback(store.close)
            return store

        shared = opened(connection)
        cluster = Cluster(layout, clock=clock, seed=seed)
        own = {name: own_connection(connection, name, credentials, clock) for name in cluster.nodes}
        stores = {name: shared if to is None else opened(to) for name, to in own.items()}
        await deliver(shared, cluster.plans)
        async with cluster.running(stores.__getitem__):
            yield cluster


def own_connection(connection: Connection, node: str, credentials: Path | None, clock: Clock) -> Connection | None:
    """The connection with a node's own credential; None if it has none."""
    if credentials is None:
        return None
    token, certificate, key = credentials / node, credentials / f"{node}.crt", credentials / f"{node}.key"
    if certificate.exists() and key.exists():
        own = FixedCredentials(clock=clock, certificate=certificate, key=key)
    elif token.exists():
        own = FixedCredentials(clock=clock, token=token)
    else:
        return None
    return replace(connection, credentials=own, origin=f"{connection.origin}, as the agent of {node}")
