"""One agent, from its Lease to its hands, over any store and any machine.

    run
    ├── tasks of every part     from the first moment, whether the API answers or not: they look at the kernel and the
    │                           hardware, and the guard cuts a second primary off
    ├── acquire the Lease       nothing else is done before: another agent may live
    └── work
        ├── heartbeat           renews the Lease; ends the agent when another has taken it
        └── manager             the controllers of every part, over caches of this node's objects only

Every task is supervised: one that fails, or ends when it should not, ends the agent with its error, and whoever started
it starts it again. ``stop`` lets passes and commands under way end, within limits (those of the manager, then those of
the hands), and gives the Lease up last, when nothing of ours can be under way any more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from functools import partial
from random import Random
from typing import Any, NoReturn, Protocol, TypeVar

from prometheus_client import CollectorRegistry

from quorate.agent import cluster_settings
from quorate.agent.lease import REQUEST_TIMEOUT, Heartbeat, Identity
from quorate.agent.looks import look_at_secret
from quorate.agent.machine import Machine
from quorate.agent.node import Node
from quorate.agent.own_objects import OwnObjects, selections
from quorate.agent.settings import Settings
from quorate.agent.steps import SECRET
from quorate.api.cluster_config import ClusterConfig
from quorate.api.meta import NodeName
from quorate.api.names import CLUSTER
from quorate.engine import Controller
from quorate.engine.clock import Clock
from quorate.engine.health import Health
from quorate.engine.logs import get_logger
from quorate.engine.manager import Manager
from quorate.engine.store import Store
from quorate.errors import QuorateError

T = TypeVar("T")

log = get_logger(__name__)


class Part(Protocol):
    """A part of the agent: a module with these two functions (see ``node``)."""

    def controllers(self, node: Node) -> tuple[Controller[Any], ...]:
        """What the manager runs."""
        ...

    def tasks(self, node: Node) -> tuple[Coroutine[Any, Any, None], ...]:
        """What runs for as long as the agent does, also before there is a Lease. Called after ``controllers``."""
        ...


class Agent:
    """Runs once: :meth:`run`, and from elsewhere :meth:`stop`."""

    def __init__(
        self,
        store: Store,
        machine: Machine,
        *,
        node_name: NodeName,
        identity: Identity,
        clock: Clock,
        random: Random,
        parts: Sequence[Part],
        settings: Settings | None = None,
        registry: CollectorRegistry | None = None,
        freeze_gc: bool = False,
    ) -> None:
        """Set up; nothing runs before :meth:`run`. The lock of ``identity.place`` must be held already."""
        self.node = Node(node_name, machine, clock=clock, random=random, settings=settings)
        self.node.identity = str(identity)
        self.heartbeat = Heartbeat(store, node=node_name, identity=identity, clock=clock, random=random)
        self._store = store
        self._parts = parts
        self._clock = clock
        self._random = random
        self._registry = registry
        self._freeze_gc = freeze_gc
        self._manager: Manager | None = None
        self._own = OwnObjects(store, node_name, check=self.heartbeat.check)
        self.node.hands.lookers[SECRET] = partial(look_at_secret, self.node, self._own)
        self._tasks: list[asyncio.Task[NoReturn]] = []
        self._stopping = asyncio.Event()

    async def run(self) -> None:
        """Work until :meth:`stop`. Raises AnotherAgent, or an ExceptionGroup with the error of whatever failed."""
        controllers = [
            *cluster_settings.controllers(self.node, self.heartbeat),
            *(controller for part in self._parts for controller in part.controllers(self.node)),
        ]
        works = [(_name(part), work) for part in self._parts for work in part.tasks(self.node)]
        self._tasks = [asyncio.create_task(_endless(work), name=f"task of {name}") for name, work in works]
        try:
            await self._hold_and_work(controllers)
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            for _, work in works:
                work.close()  # one that was cancelled before its first step would complain that nobody ran it

    def stop(self) -> None:
        """Ask :meth:`run` to come to an end."""
        self._stopping.set()

    def health(self) -> Health:
        """How it is, for probes."""
        if self._manager is None:
            return Health(not_ready=("waiting for the node's Lease",))
        found = self._manager.health()
        if self.heartbeat.held:
            return found
        return Health(found.not_live, (*found.not_ready, "the node's Lease could not be renewed in time"))

    async def _hold_and_work(self, controllers: Sequence[Controller[Any]]) -> None:
        try:
            await self._adopt_cluster_settings()
            if await self._unless_stopped(self._acquired()):
                log.info("agent works", node=self.node.name)
                await self._work(controllers)
        finally:
            await self.node.hands.close()
            await self.heartbeat.release()  # also if it became ours at the last moment

    async def _work(self, controllers: Sequence[Controller[Any]]) -> None:
        self._manager = manager = self._make_manager(controllers)
        async with asyncio.TaskGroup() as group:
            background = [group.create_task(self.heartbeat.hold(), name="heartbeat")]
            background += [group.create_task(_joined(task), name=task.get_name()) for task in self._tasks]
            managed = group.create_task(manager.run(), name="manager")
            await self._stopping.wait()
            manager.stop()
            await managed
            await self.node.hands.close()
            for task in background:
                task.cancel()

    def _make_manager(self, controllers: Sequence[Controller[Any]]) -> Manager:
        return Manager(
            self._own,
            controllers,
            clock=self._clock,
            random=self._random,
            identity=self.node.name,
            component="quorate-agent",
            selections=selections(self.node.name),
            registry=self._registry,
            freeze_gc=self._freeze_gc,
        )

    async def _adopt_cluster_settings(self) -> None:
        """The first Lease should last as long as the cluster says. While the store does not answer, the defaults do."""
        try:
            async with asyncio.timeout(REQUEST_TIMEOUT):
                config = await self._store.get(ClusterConfig, CLUSTER)
        except (QuorateError, TimeoutError) as error:
            log.info("cluster settings not read yet", error=str(error))
            return
        cluster_settings.adopt(self.node, self.heartbeat, cluster_settings.Values.of(config))

    async def _learn_host_name(self) -> None:
        try:
            said = await self.node.hands.run("uname", "-n")
        except QuorateError as error:
            log.warning("the machine does not say its name: taking the node's", node=self.node.name, error=str(error))
            return
        self.node.host_name = said.stdout.strip() or self.node.host_name

    async def _acquired(self) -> bool:
        await self.heartbeat.acquire()
        await self._learn_host_name()
        return True

    async def _unless_stopped(self, waiting: Coroutine[Any, Any, T]) -> T | None:
        """The result, or None if we are stopped first. Raises the error of a task that fails meanwhile."""
        task = asyncio.ensure_future(waiting)
        stopped = asyncio.ensure_future(self._stopping.wait())
        try:
            await asyncio.wait((task, stopped, *self._tasks), return_when=asyncio.FIRST_COMPLETED)
            failed = [error for each in self._tasks if each.done() and isinstance(error := each.exception(), Exception)]
            if failed:
                raise ExceptionGroup("a task of the agent failed", failed)
            return await task if task.done() else None
        finally:
            task.cancel()
            stopped.cancel()
            await asyncio.gather(task, stopped, return_exceptions=True)


async def run_agent(
    store: Store,
    machine: Machine,
    *,
    node_name: NodeName,
    identity: Identity,
    clock: Clock,
    random: Random,
    parts: Sequence[Part],
    settings: Settings | None = None,
) -> None:
    """An agent that works until it is cancelled, and ends gracefully then: for many of them in one process."""
    agent = Agent(
        store,
        machine,
        node_name=node_name,
        identity=identity,
        clock=clock,
        random=random,
        parts=parts,
        settings=settings,
    )
    running = asyncio.create_task(agent.run(), name=f"agent of {node_name}")
    try:
        await asyncio.shield(running)
    except asyncio.CancelledError:
        agent.stop()
        await running
        raise


async def _joined(task: asyncio.Task[NoReturn]) -> NoReturn:
    await task


async def _endless(work: Coroutine[Any, Any, None]) -> NoReturn:
    await work
    raise RuntimeError("a task of the agent ended, which it never should")


def _name(part: Part) -> str:
    return getattr(part, "__name__", type(part).__name__).rpartition(".")[2]
