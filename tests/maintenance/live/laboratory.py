"""A simulated cluster with every controller of volumes and the live broker beside them, in one process, virtual time.

People ask with PermissionRequest objects or straight through the service layer; what is permitted can be taken down for
real.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from quorate import disks, nodes, placement
from quorate.api import all_kinds, names
from quorate.api.duration import Duration
from quorate.api.maintenance import Permission, PermissionRequest
from quorate.api.maintenance.action import Action, ActionType, AvailabilityMode
from quorate.api.maintenance.permission_request import PermissionRequestSpec
from quorate.api.meta import ObjectMeta
from quorate.api.storage import ReplicatedVolume
from quorate.cluster import CLUSTER_CONTROLLER
from quorate.engine.embedded import EmbeddedStore
from quorate.engine.manager import Election, Manager
from quorate.engine.simulation import Simulation
from quorate.errors import NotFound
from quorate.lab import faults
from quorate.lab.cluster import Cluster
from quorate.lab.delivery import deliver
from quorate.lab.layout import Layout
from quorate.locks import LockTable
from quorate.maintenance import messages
from quorate.maintenance.live import LiveBroker
from quorate.maintenance.messages import Caller, PermissionResponse
from quorate.maintenance.moments import SECOND
from quorate.volumes.controllers import controllers
from tests.volumes.laboratory import VolumeLab

MAX, KEEP, FORCE = (
    AvailabilityMode.MAX_AVAILABILITY,
    AvailabilityMode.KEEP_AVAILABLE,
    AvailabilityMode.FORCE_RESTART,
)
SHUTDOWN, REPLACE = ActionType.SHUTDOWN_HOST, ActionType.REPLACE_DEVICES
ALICE = Caller(name="alice")


@dataclass
class BrokerLab(VolumeLab):
    """Nodes with agents; the leader's controllers, and its broker."""

    live: LiveBroker | None = None
    table: LockTable = field(default_factory=LockTable)
    manager: Manager | None = None

    def start(self) -> None:
        self.starts += 1
        identity = f"controller-{self.starts}"
        store = self._store_of("controller")
        self.table = LockTable()
        self.live = LiveBroker(store, self.sim.clock, self.table, holder=identity)
        self.manager = manager = Manager(
            store,
            (
                CLUSTER_CONTROLLER,
                *nodes.CONTROLLERS,
                *disks.CONTROLLERS,
                *placement.CONTROLLERS,
                *controllers(self.table),
                *self.live.controllers(),
                *self.more,
            ),
            clock=self.sim.clock,
            random=self.sim.random(identity),
            identity=identity,
            election=Election("quorate-controller", names.NAMESPACE),
            tenures=(self.live,),
        )
        self.live.follow(manager.caches, manager.reader)
        self.live.on_lost = manager.step_down
        self.controller = self.sim.process(identity)
        self.controller.spawn(manager.run())

    @property
    def broker_of(self) -> LiveBroker:
        assert self.live is not None
        return self.live

    # What people do.

    async def ask(
        self,
        *hosts: str,
        mode: AvailabilityMode = MAX,
        schedule: bool = False,
        partial: bool = False,
        dry_run: bool = False,
        duration: int = 600,
    ) -> PermissionResponse:
        """SHUTDOWN_HOST of each host."""
        asked = messages.PermissionRequest(
            user="alice",
            actions=tuple(messages.Action(type=SHUTDOWN, host=host, duration=duration * SECOND) for host in hosts),
            availability_mode=mode,
            schedule=schedule,
            partial_permission_allowed=partial,
            dry_run=dry_run,
        )
        return await self.broker_of.broker.permission_request(asked, ALICE)

    async def apply(
        self,
        name: str,
        *hosts: str,
        user: str = "alice",
        mode: AvailabilityMode = MAX,
        schedule: bool = True,
        partial: bool = True,
        duration: str = "10m",
    ) -> PermissionRequest:
        """The same, by an object."""
        spec = PermissionRequestSpec(
            user=user,
            actions=tuple(Action(type=SHUTDOWN, host=host, duration=Duration(duration)) for host in hosts),
            availability_mode=mode,
            schedule=schedule,
            partial_permission_allowed=partial,
        )
        return await self.store.create(PermissionRequest(metadata=ObjectMeta(name=name), spec=spec))

    async def attach(self, volume: str, *on: str) -> None:
        """Publish it there, and wait until it is."""
        await self.store.patch(ReplicatedVolume, volume, patch={"spec": {"publishOn": list(on)}})

        async def check() -> bool:
            return set((await self.volume(volume)).status.published_on) == set(on)

        await self.until(f"{volume} is attached on {on}", check)

    async def members(self, volume: str = "v") -> list[str]:
        return [member.node_name for member in (await self.volume(volume)).status.datamesh.members]

    # Looking and waiting.

    async def until_serving(self) -> None:
        async def check() -> bool:
            return self.broker_of.broker.leading

        await self.until("the broker answers", check)

    async def until_code(self, name: str, code: str, patience: float = 300.0) -> PermissionRequest:
        async def check() -> bool:
            return (await self.store.get(PermissionRequest, name)).status.code == code

        await self.until(f"{name} is {code}", check, patience)
        return await self.store.get(PermissionRequest, name)

    async def permissions(self) -> list[str]:
        return [each.name for each in (await self.store.list(Permission)).items]

    async def until_no_object(self, cls: type, name: str, patience: float = 60.0) -> None:
        async def check() -> bool:
            try:
                await self.store.get(cls, name)
            except NotFound:
                return True
            return False

        await self.until(f"{name} is gone", check, patience)

    async def power_off(self, *hosts: str) -> None:
        for host in hosts:
            self.cluster.inject(faults.NodeDown(host))


@asynccontextmanager
async def broker_lab(
    sim: Simulation,
    layout: Layout = Layout(nodes=4),  # noqa: B008 - frozen
) -> AsyncIterator[BrokerLab]:
    """Everything running; the block plays the people."""
    store = await EmbeddedStore.open(None, kinds=all_kinds(), clock=sim.clock, random=sim.random("store"), inline=True)
    cluster = Cluster(layout, clock=sim.clock, seed=sim.seed)
    lab = BrokerLab(sim, store, cluster, sim.process("network"))
    await deliver(store, cluster.plans)
    lab.start()
    async with cluster.running(lab._store_of):
        await lab.until_serving()
        yield lab
        failures = [why for node in cluster.nodes.values() for why in node.agent_failures]
        assert not failures, "\n".join(failures)
    if lab.controller is not None:
        lab.kill()
    await lab.sleep(5)
    await store.close()
