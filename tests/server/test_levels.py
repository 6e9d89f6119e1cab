"""What a leader shows of its cluster in numbers, and that only the leader does."""

from __future__ import annotations

from prometheus_client import CollectorRegistry

from quorate.api import all_kinds, annotation_keys
from quorate.api.baremetal import Drive
from quorate.api.baremetal.drive import DriveSpec, OperationalStatus
from quorate.api.meta import NodeName, ObjectMeta
from quorate.api.quantity import Quantity
from quorate.api.storage import ReplicatedVolume
from quorate.api.storage.rv import ReplicatedVolumeSpec
from quorate.engine.embedded import EmbeddedStore
from quorate.engine.manager import Election
from quorate.engine.simulation import Simulation, run
from quorate.server.controllers import LEASE
from quorate.server.leading import Leading, leading

HEALTH, READY = annotation_keys.DRIVE_HEALTH[0], annotation_keys.DRIVE_REPLACEMENT[0]
RELEASING, RELEASED = OperationalStatus.RELEASING, OperationalStatus.RELEASED


class Pair:
    """Two processes of one cluster without nodes."""

    def __init__(self, sim: Simulation, store: EmbeddedStore) -> None:
        self.sim = sim
        self.store = store
        self.registries: dict[str, CollectorRegistry] = {}

    def start(self, identity: str) -> Leading:
        registry = self.registries[identity] = CollectorRegistry()
        led = leading(
            self.store,
            clock=self.sim.clock,
            random=self.sim.random(identity),
            identity=identity,
            election=Election(LEASE),
            registry=registry,
        )
        self.sim.process(identity).spawn(led.run())
        return led

    def read(self, identity: str, metric: str, **labels: str) -> float | None:
        return self.registries[identity].get_sample_value(f"quorate_{metric}", labels)


async def pair(sim: Simulation) -> Pair:
    store = await EmbeddedStore.open(None, kinds=all_kinds(), clock=sim.clock, random=sim.random("store"), inline=True)
    return Pair(sim, store)


async def drive(store: EmbeddedStore, name: str, health: str) -> None:
    spec = DriveSpec(uuid=name, serial_number=name, node_id=NodeName("n1"), path="/dev/sdb")
    await store.create(Drive(metadata=ObjectMeta(name=name, annotations={HEALTH: health}), spec=spec))


def test_drives_are_counted_by_health_and_phase_and_their_phases_by_length() -> None:
    async def main(sim: Simulation) -> None:
        both = await pair(sim)
        both.start("one")
        await sim.clock.sleep(30)
        await drive(both.store, "good", health="GOOD")
        await drive(both.store, "bad", health="GOOD")
        await sim.clock.sleep(1)

        def drives(health: str, phase: str) -> float | None:
            return both.read("one", "drives", health=health, phase=phase)

        assert (drives("GOOD", "OPERATIVE"), drives("BAD", "RELEASED")) == (2, 0)
        await sim.clock.sleep(100)
        await both.store.patch(Drive, "bad", patch={"metadata": {"annotations": {HEALTH: "BAD"}}})
        await sim.clock.sleep(30)
        assert (drives("GOOD", "OPERATIVE"), drives("BAD", "RELEASED")) == (1, 1)

        def phases(what: str, phase: str, following: str, **more: str) -> float | None:
            return both.read("one", f"drive_phase_seconds_{what}", phase=phase, next=following, **more)

        assert phases("count", "OPERATIVE", "RELEASING") == phases("count", "RELEASING", "RELEASED") == 1
        assert phases("count", "RELEASED", "REMOVING") is None
        length = phases("sum", "OPERATIVE", "RELEASING")
        assert length is not None
        assert 100 <= length < 103
        assert phases("bucket", "OPERATIVE", "RELEASING", le="60.0") == 0
        assert phases("bucket", "OPERATIVE", "RELEASING", le="600.0") == 1

        def conditions(condition: str, status: str, reason: str) -> float | None:
            return both.read("one", "drive_conditions", condition=condition, status=status, reason=reason)

        assert conditions("Healthy", "False", "Overridden") == 1
        assert conditions("Removed", "False", "WaitingForUser") == 1
        # The broker knows no such host, and does not allow it.
        await both.store.patch(Drive, "bad", patch={"metadata": {"annotations": {READY: "ready"}}})
        await sim.clock.sleep(30)
        assert conditions("Removed", "False", "WaitingForPermission") == 1
        assert conditions("Removed", "False", "WaitingForUser") == 0
        assert phases("count", "RELEASED", "REMOVING") == 1

    run(main, seed=1)


def test_volumes_are_counted_by_phase_and_by_what_is_wrong_with_them() -> None:
    async def main(sim: Simulation) -> None:
        both = await pair(sim)
        both.start("one")
        await sim.clock.sleep(30)
        spec = ReplicatedVolumeSpec(size=Quantity("1Gi"), replicated_storage_class_name="none")
        await both.store.create(ReplicatedVolume(metadata=ObjectMeta(name="v"), spec=spec))
        await sim.clock.sleep(5)
        assert both.read("one", "volumes", phase="Forming") == 1
        assert both.read("one", "volumes", phase="Ready") == 0
        waiting = {"condition": "ConfigurationReady", "status": "False", "reason": "WaitingForStorageClass"}
        assert both.read("one", "volume_conditions", **waiting) == 1
        ready = {"condition": "Ready", "status": "True", "reason": "Ready"}
        assert both.read("one", "volume_conditions", **ready) == 0
        assert both.read("one", "replica_conditions", **ready) == 0

    run(main, seed=2)


def test_only_who_leads_shows_and_counts() -> None:
    async def main(sim: Simulation) -> None:
        both = await pair(sim)
        first = both.start("one")
        await sim.clock.sleep(30)
        second = both.start("two")

        def leaders() -> list[bool]:
            return [each.manager.leading for each in (first, second)]

        await drive(both.store, "d", health="BAD")
        await sim.clock.sleep(30)
        states = {"health": "BAD", "phase": RELEASED.value}
        length = {"phase": RELEASING.value, "next": RELEASED.value}
        assert leaders() == [True, False]
        assert (both.read("one", "drives", **states), both.read("two", "drives", **states)) == (1, None)
        assert both.read("one", "drive_phase_seconds_count", **length) == 1
        assert both.read("two", "drive_phase_seconds_count", **length) is None
        first.manager.stop()
        await sim.clock.sleep(60)
        assert leaders() == [False, True]
        assert (both.read("one", "drives", **states), both.read("two", "drives", **states)) == (None, 1)
        assert both.read("two", "drive_phase_seconds_count", **length) is None

    run(main, seed=3)
