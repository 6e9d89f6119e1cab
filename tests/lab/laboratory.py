"""A simulated cluster over a store in memory, in virtual time."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from quorate import nodes
from quorate.api import all_kinds
from quorate.api.core import Node
from quorate.api.meta import VolumeName
from quorate.api.storage.drbd import ReplicaType
from quorate.cluster import CLUSTER_CONTROLLER
from quorate.engine.embedded import EmbeddedStore
from quorate.engine.manager import Manager
from quorate.engine.simulation import Simulation
from quorate.lab.cluster import Cluster
from quorate.lab.delivery import deliver
from quorate.lab.layout import Layout
from tests.lab.handmade import HandMadeVolume


@dataclass(frozen=True)
class Laboratory:
    sim: Simulation
    store: EmbeddedStore
    cluster: Cluster

    async def sleep(self, seconds: float) -> None:
        await self.sim.clock.sleep(seconds)

    def volume(self, name: str, *members: tuple[str, ReplicaType], **options: Any) -> HandMadeVolume:
        return HandMadeVolume(self.store, self.sim.clock, VolumeName(name), members, **options)

    async def readiness(self) -> dict[str, str]:
        """Of every node: True, Unknown, or nothing."""
        found = (await self.store.list(Node)).items
        return {
            node.name: next((one.status for one in node.status.conditions if one.type == "Ready"), "") for node in found
        }

    def expect_no_failed_agent(self) -> None:
        failures = [why for node in self.cluster.nodes.values() for why in node.agent_failures]
        assert not failures, "\n".join(failures)


@asynccontextmanager
async def laboratory(sim: Simulation, layout: Layout = Layout()) -> AsyncIterator[Laboratory]:  # noqa: B008 - frozen
    """Nodes with agents, and the controllers that `quorate up` runs beside them."""
    store = await EmbeddedStore.open(None, kinds=all_kinds(), clock=sim.clock, random=sim.random("store"), inline=True)
    manager = Manager(
        store,
        (CLUSTER_CONTROLLER, *nodes.CONTROLLERS),
        clock=sim.clock,
        random=sim.random("manager"),
        identity="manager",
    )
    managing = sim.loop.create_task(manager.run())
    cluster = Cluster(layout, clock=sim.clock, seed=sim.seed)
    await deliver(store, cluster.plans)
    async with cluster.running(lambda _: store):
        made = Laboratory(sim, store, cluster)
        yield made
        made.expect_no_failed_agent()
    manager.stop()
    await managing
    await store.close()
