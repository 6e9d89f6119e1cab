"""Stories of disks, whole: from the agent's report to the ledger, in virtual time on the embedded engine."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from quorate.api import all_kinds, core, finalizers, labels, names
from quorate.api.conditions import find
from quorate.api.conditions.disks import OverCommitted, Schedulable
from quorate.api.conditions.lvm import Removable
from quorate.api.core import Event
from quorate.api.longhorn import DiskSchedule, Node
from quorate.api.longhorn.disk_schedule import MAX_ENTRIES, DiskScheduleSpec
from quorate.api.meta import Bytes, ObjectMeta
from quorate.api.storage import LVMVolumeGroup
from quorate.disks import CONTROLLERS
from quorate.engine.embedded import EmbeddedStore
from quorate.engine.manager import Manager
from quorate.engine.simulation import Simulation, for_each_seed
from quorate.errors import Invalid, NotFound
from tests.disks.cluster import Agents, EveryVersion, ledger_of, uuid_of
from tests.disks.owner import Owner
from tests.support.faults import Faults, FaultyStore, Sent
from tests.support.widgets import open_store

SIZE = 100
LEDGER = ledger_of("g1")


class World:
    """One manager on a good network, and an owner."""

    def __init__(self, sim: Simulation, store: EmbeddedStore) -> None:
        self.sim = sim
        self.store = store
        self.agents = Agents(store, sim.clock)
        self.eye = EveryVersion(store, one_key_at_a_time=False)
        self.sent: list[Sent] = []
        self.owner = Owner(store, sim.clock, sim.random("owner"), "v")

    async def begin(self) -> None:
        await self.agents.install("n1", "g1", SIZE)
        self.sim.process("agents").spawn(self.agents.run())
        self.sim.process("eye").spawn(self.eye.run())
        link = FaultyStore(
            self.store,
            self.sim,
            sender="manager",
            faults=Faults(latency=0.05, watch_latency=0.05),
            network=self.sim.process("network"),
            reached=self.sent.append,
        )
        manager = Manager(
            link, CONTROLLERS, clock=self.sim.clock, random=self.sim.random("manager"), identity="manager"
        )
        self.sim.process("manager").spawn(manager.run())
        await self.sim.clock.sleep(30)

    async def ledger(self, name: str = LEDGER) -> DiskSchedule:
        await self.eye.caught_up()
        return await self.store.get(DiskSchedule, name, names.NAMESPACE)

    async def reason(self) -> str:
        condition = find((await self.ledger()).status.conditions, Schedulable)
        assert condition is not None
        return condition.reason

    async def ask(self, sizes: dict[str, int | None]) -> DiskSchedule:
        patch = {"spec": {"replicas": sizes}}
        await self.store.patch(DiskSchedule, LEDGER, names.NAMESPACE, patch=patch)
        await self.sim.clock.sleep(5)
        return await self.ledger()


def told(story: Callable[[World], Coroutine[Any, Any, None]]) -> None:
    async def main(sim: Simulation) -> None:
        world = World(sim, await open_store(sim, kinds=all_kinds()))
        await world.begin()
        await story(world)
        await world.eye.caught_up()

    for_each_seed(main, range(3))


def test_a_group_that_a_person_creates_becomes_a_disk_with_a_ledger() -> None:
    async def story(world: World) -> None:
        group = await world.store.get(LVMVolumeGroup, "g1")
        assert group.metadata.labels[labels.NODE] == "n1"
        node = await world.store.get(Node, "n1", names.NAMESPACE)
        assert node.status.disk_status["g1"].disk_uuid == uuid_of("g1")
        ledger = await world.ledger()
        assert (ledger.spec.node_id, ledger.spec.name, ledger.status.storage_available) == ("n1", "g1", SIZE)
        assert await world.reason() == "Schedulable"

    told(story)


def test_a_ledger_that_a_person_makes_by_its_uuid_alone_finds_its_disk() -> None:
    async def story(world: World) -> None:
        spec = DiskScheduleSpec(replicas={"w-0": Bytes(60)})
        name = ledger_of("g2")
        await world.store.create(DiskSchedule(metadata=ObjectMeta(name=name, namespace=names.NAMESPACE), spec=spec))
        await world.sim.clock.sleep(30)
        said = find((await world.ledger(name)).status.conditions, Schedulable)
        assert said is not None
        assert f"the disk with UUID {name} is in no inventory" in said.message
        await world.agents.install("n2", "g2", SIZE)
        await world.sim.clock.sleep(30)
        found = await world.ledger(name)
        assert (found.spec.node_id, found.spec.name) == ("n2", "g2")
        assert found.status.storage_available == SIZE

    told(story)


def test_a_request_costs_one_write_of_one_ledger_and_many_at_once_no_more_than_that() -> None:
    async def story(world: World) -> None:
        await world.agents.install("n2", "g2", SIZE)
        await world.sim.clock.sleep(30)
        before = len(world.sent)
        await world.ask({"v-0": 1})
        assert [(write.verb, write.kind, write.name) for write in world.sent[before:]] == [
            ("patch_status", "DiskSchedule", LEDGER)
        ]
        before = len(world.sent)
        await world.ask({f"w{number}-0": 1 for number in range(50)})
        assert len(world.sent) - before == 1

    told(story)


def test_a_drive_that_is_carried_to_another_node_takes_its_ledger_along() -> None:
    async def story(world: World) -> None:
        await world.ask({"v-0": 60})
        # The old node says that the group is gone, and remembers which it was; the new one has it.
        await world.agents.report("g1", SIZE, phase="NotReady", message="no such group")
        await world.agents.install("n2", "g2", SIZE)
        await world.agents.report("g2", SIZE, vgUUID=uuid_of("g1"))
        await world.sim.clock.sleep(30)
        ledger = await world.ledger()
        assert (ledger.spec.node_id, ledger.spec.name) == ("n2", "g2")
        assert ledger.status.storage_scheduled == 60, "what is on it is on it"
        assert (await world.ask({"w-0": 41})).status.replicas["w-0"].state == "rejected"

    told(story)


def test_a_group_is_held_while_anything_is_in_it_and_says_what() -> None:
    async def story(world: World) -> None:
        await world.ask({"v-0": 60})
        await world.store.delete(LVMVolumeGroup, "g1")
        await world.sim.clock.sleep(30)
        assert await world.reason() == "Deleting"
        group = await world.store.get(LVMVolumeGroup, "g1")
        assert group.metadata.finalizers == (finalizers.CONTROLLER,)
        held = find(group.status.conditions, Removable)
        assert held is not None
        assert (held.status, held.reason) == ("False", "NotEmpty")
        assert "space of replica v-0" in held.message
        told = [each for each in (await world.store.list(Event)).items if each.reason == "DeletionWaits"]
        assert [each.involved_object.name for each in told] == ["g1"]
        # What its agent reports and nobody asked for is somebody's too.
        await world.agents.report("g1", SIZE, unmanagedVolumes=["g1/by-hand"])
        await world.ask({"v-0": None})
        await world.sim.clock.sleep(30)
        held = find((await world.store.get(LVMVolumeGroup, "g1")).status.conditions, Removable)
        assert held is not None
        assert held.message == (
            "g1 holds logical volume g1/by-hand, which no object stands for. It stays until these have left."
        )
        await world.agents.report("g1", SIZE, unmanagedVolumes=None)
        await world.sim.clock.sleep(30)
        with pytest.raises(NotFound):
            await world.store.get(LVMVolumeGroup, "g1")
        with pytest.raises(NotFound):
            await world.store.get(DiskSchedule, LEDGER, names.NAMESPACE)

    told(story)


def test_a_group_of_a_machine_that_is_gone_for_good_is_not_held_by_what_was_on_it() -> None:
    async def story(world: World) -> None:
        await world.agents.report("g1", SIZE, unmanagedVolumes=["g1/by-hand"])
        await world.store.delete(core.Node, "n1")
        await world.store.delete(LVMVolumeGroup, "g1")
        await world.sim.clock.sleep(60)
        with pytest.raises(NotFound):
            await world.store.get(LVMVolumeGroup, "g1")

    told(story)


def test_a_disk_that_is_removed_keeps_its_ledger_while_anything_is_in_it_and_can_return() -> None:
    async def story(world: World) -> None:
        async def removed_by_force() -> None:
            await world.store.delete(LVMVolumeGroup, "g1")
            await world.store.patch(LVMVolumeGroup, "g1", patch={"metadata": {"finalizers": None}})

        await world.ask({"v-0": 60})
        await removed_by_force()
        await world.sim.clock.sleep(30)
        assert await world.reason() == "DiskNotFound"
        assert (await world.ask({"w-0": 1})).status.replicas["w-0"].reason == "DiskNotFound"
        await world.ask({"w-0": None})
        await world.agents.install("n1", "g1", SIZE)
        await world.sim.clock.sleep(30)
        assert await world.reason() == "Schedulable"
        assert (await world.ledger()).status.storage_scheduled == 60
        await removed_by_force()
        await world.sim.clock.sleep(30)
        patch = {"spec": {"replicas": {"v-0": None}}}
        await world.store.patch(DiskSchedule, LEDGER, names.NAMESPACE, patch=patch)
        await world.sim.clock.sleep(30)
        with pytest.raises(NotFound):
            await world.store.get(DiskSchedule, LEDGER, names.NAMESPACE)

    told(story)


def test_a_ledger_that_somebody_deletes_answers_until_it_is_empty_and_is_made_anew() -> None:
    async def story(world: World) -> None:
        await world.ask({"v-0": 60})
        uid = (await world.ledger()).metadata.uid
        await world.store.delete(DiskSchedule, LEDGER, names.NAMESPACE)
        refused = await world.ask({"w-0": 1})
        assert refused.status.replicas["w-0"].reason == "Deleting"
        assert refused.status.storage_scheduled == 60
        await world.ask({"v-0": None, "w-0": None})
        await world.sim.clock.sleep(30)
        new = await world.ledger()
        assert new.metadata.uid != uid
        assert await world.reason() == "Schedulable"

    told(story)


def test_a_disk_whose_agent_falls_silent_takes_nothing_new_until_it_is_heard_again() -> None:
    async def story(world: World) -> None:
        await world.ask({"v-0": 60})
        world.agents.silent.add("n1")
        await world.sim.clock.sleep(60)
        assert await world.reason() == "DiskNotReady"
        refused = await world.ask({"w-0": 1})
        assert refused.status.replicas["w-0"].reason == "DiskNotReady"
        assert refused.status.replicas["v-0"].state == "scheduled"
        world.agents.silent.clear()
        await world.sim.clock.sleep(20)
        assert await world.reason() == "Schedulable"
        after = await world.ask({"w-0": 2})
        assert after.status.replicas["w-0"].state == "scheduled"

    told(story)


def test_a_disk_that_shrinks_is_over_committed_and_says_so_until_it_is_not() -> None:
    async def story(world: World) -> None:
        await world.ask({"v-0": 60, "w-0": 30})
        await world.agents.report("g1", 50)
        await world.sim.clock.sleep(10)
        ledger = await world.ask({"v-0": 61})
        condition = find(ledger.status.conditions, OverCommitted)
        assert condition is not None
        assert (condition.status, condition.message) == ("True", "40 more is granted than the 50 that may be")
        assert ledger.status.replicas["v-0"].reason == "OverCommitted"
        assert ledger.status.storage_scheduled == 90
        events = (await world.store.list(core.Event)).items
        assert any(event.reason == "OverCommitted" and event.type == "Warning" for event in events)
        await world.agents.report("g1", SIZE)
        await world.sim.clock.sleep(10)
        again = find((await world.ledger()).status.conditions, OverCommitted)
        assert again is not None
        assert again.status == "False"

    told(story)


def test_people_switch_a_disk_off_and_on() -> None:
    async def story(world: World) -> None:
        for allowed, reason in ((False, "Disabled"), (True, "Schedulable")):
            patch = {"spec": {"disks": {"g1": {"allowScheduling": allowed}}}}
            await world.store.patch(Node, "n1", names.NAMESPACE, patch=patch)
            await world.sim.clock.sleep(5)
            assert await world.reason() == reason
        await world.store.patch(core.Node, "n1", patch={"spec": {"unschedulable": True}})
        await world.sim.clock.sleep(5)
        assert await world.reason() == "Cordoned"

    told(story)


def test_the_entry_after_the_last_that_a_ledger_may_have_is_refused_at_the_door() -> None:
    async def story(world: World) -> None:
        full = await world.ask({f"w{number:04}-0": 1 for number in range(MAX_ENTRIES)})
        assert len(full.status.replicas) == MAX_ENTRIES
        assert full.status.storage_scheduled == SIZE
        with pytest.raises(Invalid, match="at most 1000 replicas and backing images together"):
            await world.store.patch(DiskSchedule, LEDGER, names.NAMESPACE, patch={"spec": {"backingImages": {"os": 1}}})

    told(story)


def test_a_node_that_leaves_takes_its_inventory_along() -> None:
    async def story(world: World) -> None:
        await world.store.create(core.Node(metadata=ObjectMeta(name="n9")))
        await world.sim.clock.sleep(5)
        assert (await world.store.get(Node, "n9", names.NAMESPACE)).name == "n9"
        await world.store.delete(core.Node, "n9")
        await world.sim.clock.sleep(5)
        with pytest.raises(NotFound):
            await world.store.get(Node, "n9", names.NAMESPACE)

    told(story)
