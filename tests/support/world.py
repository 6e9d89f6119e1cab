"""Managers over one store in one simulation, with everything that reaches the store looked at.

``python -m tests.support.world SEED`` prints a digest of the history of one seed, for comparing runs.
"""

from __future__ import annotations

import asyncio
import hashlib
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from random import Random
from typing import Any

from quorate.api.codec import encode, to_dict
from quorate.engine.controller import Controller
from quorate.engine.embedded import EmbeddedStore
from quorate.engine.manager import Election, Manager
from quorate.engine.plan import Plan
from quorate.engine.simulation import Process, Simulation, run
from quorate.errors import NotFound
from tests.support.faults import Faults, FaultyStore, Sent, bad
from tests.support.kinds import Gadget, Widget
from tests.support.widgets import CONTROLLERS, FINALIZER, KINDS, NAMESPACE, open_store, widget

#: Kinds whose writes are not a controller's decision.
HOUSEKEEPING = ("Lease", "Event")


@dataclass
class Running:
    """A manager in a process of its own."""

    manager: Manager
    process: Process
    task: asyncio.Task[None]
    store: FaultyStore
    epoch: int = 0


class World:
    """One store, its bad network, and the managers over it."""

    def __init__(self, sim: Simulation, store: EmbeddedStore, faults: Faults) -> None:
        self.sim = sim
        self.store = store
        self.faults = faults
        self.network = sim.process("network")
        self.sent: list[Sent] = []
        self.managers: dict[str, Running] = {}
        #: The highest epoch that has decided anything.
        self.decided_epoch = 0
        self.starts = 0
        #: What must never happen and did. An exception here would only look to a manager as if the store had failed.
        self.violations: list[str] = []

    @classmethod
    async def begin(cls, sim: Simulation, faults: Faults) -> World:
        return cls(sim, await open_store(sim), faults)

    def start(
        self, name: str, controllers: Sequence[Controller[Any]] = CONTROLLERS, *, faults: Faults | None = None
    ) -> Running:
        self.starts += 1
        identity = f"{name}-{self.starts}"
        store = FaultyStore(
            self.store,
            self.sim,
            sender=f"{name}@0",
            faults=faults or self.faults,
            network=self.network,
            reached=self.reached,
        )

        async def elected(epoch: int) -> None:
            assert epoch > running.epoch
            running.epoch = epoch
            store.sender = f"{name}@{epoch}"

        manager = Manager(
            store,
            [self._observed(controller, name) for controller in controllers],
            clock=self.sim.clock,
            random=self.sim.random(identity),
            identity=identity,
            election=Election("test", NAMESPACE),
            on_elected=[elected],
        )
        process = self.sim.process(identity)
        running = self.managers[name] = Running(manager, process, process.spawn(manager.run()), store)
        return running

    def kill(self, name: str) -> None:
        self.managers.pop(name).process.kill()

    def leaders(self) -> list[str]:
        return [name for name, running in self.managers.items() if running.manager.leading]

    def decisions(self) -> list[Sent]:
        """Writes that controllers made."""
        return [write for write in self.sent if write.kind not in HOUSEKEEPING]

    def _observed(self, controller: Controller[Any], name: str) -> Controller[Any]:
        def decide(snapshot: Any, now: datetime, random: Random) -> Plan:
            self.decided_epoch = max(self.decided_epoch, self.managers[name].epoch)
            return controller.decide(snapshot, now, random)

        return Controller(
            name=controller.name,
            watches=controller.watches,
            observe=controller.observe,
            decide=decide,
            indexes=controller.indexes,
            workers=controller.workers,
        )

    def reached(self, write: Sent) -> None:
        """Look at everything after every write."""
        self.sent.append(write)
        if write.kind not in HOUSEKEEPING:
            epoch = int(write.sender.rpartition("@")[2])
            if epoch != self.decided_epoch:
                self.violations.append(f"{write} of term {epoch} after the first decision of {self.decided_epoch}")
        self.violations.extend(f"{problem}, after {write}" for problem in self._problems())

    def _problems(self) -> Iterator[str]:
        """What is wrong with the objects in the store."""
        widgets = {record.typed.name: record.typed for record in self.store.read_page(Widget.KIND).records}
        numbers: dict[int, str] = {}
        for record in self.store.read_page(Gadget.KIND).records:
            gadget = record.typed
            assert isinstance(gadget, Gadget)
            parent = widgets.get(gadget.metadata.labels["widget"])
            if parent is None:
                yield f"{gadget.name} outlives its parent"
            elif FINALIZER not in parent.metadata.finalizers:
                yield f"{gadget.name} before its parent's finalizer"
            if gadget.status.count is not None:
                if gadget.status.count in numbers:
                    yield f"{gadget.name} and {numbers[gadget.status.count]}: same number"
                numbers[gadget.status.count] = gadget.name

    def expect_safe(self) -> None:
        """Nothing has happened so far that must never happen. For the end of every test."""
        assert not self.violations, "\n".join(self.violations)

    async def expect_settled(self, gadgets: dict[str, int]) -> None:
        """Everything is as intended: these widgets with so many gadgets each, all numbered and ready, nothing else."""
        self.expect_safe()
        widgets = (await self.store.list(Widget)).items
        assert {found.name: found.status.count for found in widgets} == gadgets
        assert all(found.status.phase == "Ready" for found in widgets)
        found = (await self.store.list(Gadget)).items
        names = {f"{name}-{number}" for name, count in gadgets.items() for number in range(count)}
        assert {gadget.name for gadget in found} == names
        assert all(gadget.status.phase == "Ready" and gadget.status.count is not None for gadget in found)

    async def expect_quiet(self, seconds: float) -> None:
        """With nothing changing, nothing is written."""
        before = len(self.decisions())
        await self.sim.clock.sleep(seconds)
        assert self.decisions()[before:] == []
        self.expect_safe()

    def digest(self) -> str:
        """Every write, every object, every choice of the scheduler."""
        state = hashlib.sha256()
        for write in self.sent:
            state.update(repr(write).encode())
        for kind in KINDS:
            for record in self.store.read_page(kind).records:
                state.update(encode(to_dict(record.typed)))
        state.update(self.sim.fingerprint().encode())
        return state.hexdigest()


async def troubled_life(sim: Simulation, *, managers: int = 1, kills: bool = True) -> World:
    """Widgets come, grow, shrink and go on a bad network, while managers are killed; then all is well again."""
    world = await World.begin(sim, bad())
    random = sim.random("people")
    names = "abc"[:managers]
    for name in names:
        world.start(name)
    intended: dict[str, int] = {}
    for _ in range(12):
        await sim.clock.sleep(random.uniform(0, 8))
        if kills and random.random() < 0.3:
            victim = random.choice(names)
            world.kill(victim)
            world.start(victim)
        name = f"w{random.randrange(4)}"
        if name not in intended:
            intended[name] = random.randrange(1, 4)
            await _create_when_gone(world, name, intended[name])
        elif random.random() < 0.4:
            del intended[name]
            await world.store.delete(Widget, name)
        else:
            intended[name] = random.randrange(1, 4)
            await world.store.patch(Widget, name, patch={"spec": {"high": intended[name]}})
    world.faults.end()
    await sim.clock.sleep(330)  # more than the longest back-off
    await world.expect_settled(intended)
    await world.expect_quiet(600)
    for name in intended:
        await world.store.delete(Widget, name)
    await sim.clock.sleep(60)
    await world.expect_settled({})
    return world


async def _create_when_gone(world: World, name: str, gadgets: int) -> None:
    while True:
        try:
            await world.store.get(Widget, name)
        except NotFound:
            await world.store.create(widget(name, gadgets))
            return
        await world.sim.clock.sleep(1)


def digest_of(seed: int) -> str:
    """The digest of one seed's history."""

    async def main(sim: Simulation) -> str:
        return (await troubled_life(sim, managers=2)).digest()

    return run(main, seed=seed)


if __name__ == "__main__":
    print(digest_of(int(sys.argv[1])))
