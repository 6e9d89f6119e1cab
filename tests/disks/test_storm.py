"""Many owners, several leaders, a bad network: the invariant at every version ever written.

Managers are killed, frozen and begun again, writes conflict, get lost or are carried out without an answer; disks
shrink, grow, are switched off and fall silent; images come and go; owners are killed in the middle. ``EveryVersion``
looks at each version of each ledger. In the end, with the faults over, exactly what is asked for and fits is granted,
and nothing is left behind.
"""

from __future__ import annotations

import asyncio
from random import Random
from typing import TypeVar, cast

from quorate.api import all_kinds, names
from quorate.api.longhorn import BackingImage, DiskSchedule, Node
from quorate.api.longhorn.backing_image import BackingImageSpec
from quorate.api.meta import ObjectMeta, Resource
from quorate.api.quantity import Quantity
from quorate.api.storage import LVMLogicalVolume, ReplicatedVolumeReplica
from quorate.disks import CONTROLLERS
from quorate.disks.entries import all_answers, all_requests, image, replica
from quorate.disks.images.copies import IMAGE_LABEL
from quorate.disks.requests import State, granted_size
from quorate.disks.sweep import GRACE, INTERVAL
from quorate.engine.embedded import EmbeddedStore
from quorate.engine.manager import Election, Manager
from quorate.engine.simulation import Process, Simulation, for_each_seed
from quorate.errors import NotFound
from tests.disks.cluster import Agents, EveryVersion, ledger_of
from tests.disks.owner import KEPT, RIGHT, WRONG, Owner
from tests.support.faults import Faults, FaultyStore, Sent, bad
from tests.support.widgets import open_store

R = TypeVar("R", bound=Resource)

GROUPS = {"n1": "g1", "n2": "g2", "n3": "g3"}
LEDGERS = tuple(ledger_of(group) for group in GROUPS.values())
SIZE = 100
OWNERS = 8


class Storm:
    """The store, and everybody who works on it."""

    def __init__(self, sim: Simulation, store: EmbeddedStore) -> None:
        self.sim = sim
        self.store = store
        self.faults = bad()
        self.network = sim.process("network")
        self.agents = Agents(store, sim.clock)
        self.eye = EveryVersion(store)
        self._processes: dict[str, Process] = {}
        self._starts = 0
        #: Logical volumes whose bytes no ledger has, and the write after which it was seen.
        self.uncovered: list[str] = []

    async def begin(self) -> None:
        for node, group in GROUPS.items():
            await self.agents.install(node, group, SIZE)
        self.sim.process("agents").spawn(self.agents.run())
        self.sim.process("eye").spawn(self.eye.run())
        for name in "abc":
            self.start_manager(name)
        while len((await self.store.list(DiskSchedule)).items) < len(GROUPS):
            await self.sim.clock.sleep(1)

    def start_manager(self, name: str) -> None:
        identity, store = self._begin(name)
        manager = Manager(
            store,
            CONTROLLERS,
            clock=self.sim.clock,
            random=self.sim.random(identity),
            identity=identity,
            election=Election("disks", names.NAMESPACE),
        )
        self._processes[name].spawn(manager.run())

    def owner(self, name: str) -> tuple[Owner, Process]:
        identity, store = self._begin(name)
        return Owner(store, self.sim.clock, self.sim.random(identity), name), self._processes[name]

    def restart_manager(self, name: str) -> None:
        self._processes[name].kill()
        self.start_manager(name)

    async def freeze_manager(self, name: str, seconds: float) -> None:
        """Long enough for another to lead; then it goes on as if nothing had happened."""
        process = self._processes[name]
        process.pause()
        await self.sim.clock.sleep(seconds)
        process.resume()

    def reached(self, write: Sent) -> None:
        """After every write: each logical volume lies within what its replica was granted."""
        ledgers: dict[str, DiskSchedule] = {found.spec.name: found for found in self._all(DiskSchedule)}
        for volume in self._all(LVMLogicalVolume):
            copy_of = volume.metadata.labels.get(IMAGE_LABEL)
            entry = replica(volume.spec.actual_lv_name_on_the_node) if copy_of is None else image(copy_of)
            if granted_size(ledgers[volume.spec.lvm_volume_group_name], entry) < int(volume.spec.size):
                self.uncovered.append(f"{volume.name}, after {write}")

    def _all(self, cls: type[R]) -> list[R]:
        return [cast("R", record.typed) for record in self.store.read_page(cls.KIND).records]

    def _begin(self, name: str) -> tuple[str, FaultyStore]:
        self._starts += 1
        identity = f"{name}-{self._starts}"
        self._processes[name] = self.sim.process(identity)
        store = FaultyStore(
            self.store, self.sim, sender=identity, faults=self.faults, network=self.network, reached=self.reached
        )
        return identity, store


async def life(storm: Storm, name: str, lives: int) -> None:
    """An owner's volumes come, grow and go; now and then it is killed in the middle and begun again."""
    random = storm.sim.random(f"fate of {name}")
    for _ in range(lives):
        while True:
            owner, process = storm.owner(name)
            task = process.spawn(one_volume(owner, random))
            done, _ = await asyncio.wait([task], timeout=random.expovariate(1 / 60))
            if done:
                task.result()
                break
            process.kill()


async def one_volume(owner: Owner, random: Random) -> None:
    size = random.randint(5, 60)
    order = random.sample(LEDGERS, len(LEDGERS))
    got = []
    for number in range(2):
        ledger = await owner.acquire(number, size, [found for found in order if found not in got])
        if ledger is not None:
            got.append(ledger)
    if len(got) == 2:
        for number, ledger in enumerate(got):
            await owner.use(number, ledger, size)
        await owner.grow(got, size, size + random.randint(1, 40))
    # An owner that was killed may have left a request on any disk.
    for ledger in LEDGERS:
        for number in range(2):
            order_of_steps = random.choices([KEPT, WRONG, RIGHT], [1, 3, 6])[0]
            await owner.release(number, ledger, order_of_steps)
    for number in range(2):
        await owner.forget(number)


async def trouble(storm: Storm, random: Random, moments: int) -> None:
    """People, drives and processes."""
    for _ in range(moments):
        await storm.sim.clock.sleep(random.uniform(1, 15))
        node = random.choice(list(GROUPS))
        match random.randrange(8):
            case 0 | 1:
                storm.restart_manager(random.choice("abc"))
            case 5:
                await storm.freeze_manager(random.choice("abc"), random.uniform(10, 40))
            case 2:
                await storm.agents.report(GROUPS[node], random.choice([SIZE // 2, SIZE, 2 * SIZE]))
            case 3:
                allowed = {"allowScheduling": random.random() < 0.7}
                await storm.store.patch(Node, node, names.NAMESPACE, patch={"spec": {"disks": {GROUPS[node]: allowed}}})
            case 6 | 7:
                await make_or_delete_image(storm.store, f"i{random.randrange(3)}", random.randint(5, 30))
            case _:
                storm.agents.silent ^= {node}
    storm.agents.silent.clear()
    for found in (await storm.store.list(BackingImage)).items:
        await storm.store.delete(BackingImage, found.name, names.NAMESPACE)
    for node, group in GROUPS.items():
        await storm.agents.report(group, SIZE)
        patch = {"spec": {"disks": {group: {"allowScheduling": True}}}}
        await storm.store.patch(Node, node, names.NAMESPACE, patch=patch)


async def make_or_delete_image(store: EmbeddedStore, name: str, size: int) -> None:
    try:
        await store.get(BackingImage, name, names.NAMESPACE)
    except NotFound:
        metadata = ObjectMeta(name=name, namespace=names.NAMESPACE)
        spec = BackingImageSpec(size=Quantity.of_bytes(size), min_number_of_copies=2)
        await store.create(BackingImage(metadata=metadata, spec=spec))
    else:
        await store.delete(BackingImage, name, names.NAMESPACE)


async def storm(sim: Simulation) -> None:
    world = Storm(sim, await open_store(sim, kinds=all_kinds()))
    await world.begin()
    async with asyncio.TaskGroup() as everybody:
        for number in range(OWNERS):
            everybody.create_task(life(world, f"v{number}", 3))
        everybody.create_task(trouble(world, sim.random("people"), 20))
    world.faults.end()
    await sim.clock.sleep(400 + 2 * INTERVAL + GRACE.total_seconds())
    assert not world.uncovered, "\n".join(world.uncovered[:10])
    await world.eye.caught_up()
    assert world.eye.granted > 10
    assert world.eye.rejected > 2
    for found in (await world.store.list(DiskSchedule)).items:
        assert (list(all_requests(found)), list(all_answers(found))) == ([], []), "everything was given back"
        assert (found.status.storage_scheduled, found.status.storage_available) == (0, SIZE)
    for gone in (ReplicatedVolumeReplica, BackingImage, LVMLogicalVolume):
        assert (await world.store.list(gone)).items == ()
    await everything_that_fits(world)
    version = (await world.store.list(DiskSchedule)).resource_version
    await sim.clock.sleep(3600)
    for cls in (DiskSchedule, Node):
        newest = max(int(found.metadata.resource_version) for found in (await world.store.list(cls)).items)
        assert newest <= int(version), "with nothing changing, nothing is written"
    assert world.faults == Faults(latency=0.5, watch_latency=0.5)


async def everything_that_fits(world: Storm) -> None:
    """On quiet disks: of many at once exactly as many are granted as fit, and all grow or none."""
    async with asyncio.TaskGroup() as everybody:
        owners = [world.owner(f"w{number}")[0] for number in range(9)]
        tasks = [everybody.create_task(owner.acquire(0, 30, LEDGERS)) for owner in owners]
    got = [task.result() for task in tasks]
    assert got == [ledger for ledger in got if ledger is not None], "nine times 30 fit on three times 100"
    assert sorted(map(got.count, LEDGERS)) == [3, 3, 3]
    async with asyncio.TaskGroup() as everybody:
        grown = [
            everybody.create_task(owner.grow([ledger], 30, 35))
            for owner, ledger in zip(owners, got, strict=True)
            if ledger is not None
        ]
    await world.sim.clock.sleep(60)
    await world.eye.caught_up()
    assert sorted(task.result() for task in grown).count(State.GRANTED) == 6, "two of three on each disk"
    for ledger in LEDGERS:
        found = await world.store.get(DiskSchedule, ledger, names.NAMESPACE)
        sizes = sorted((asked, granted_size(found, entry)) for entry, asked in all_requests(found))
        assert sizes == [(30, 30), (35, 35), (35, 35)], "and who was refused asks for what it had"


def test_the_invariant_holds_at_every_version_whatever_happens() -> None:
    for_each_seed(storm, range(8))
