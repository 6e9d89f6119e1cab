"""The cluster controller: its decisions one by one, and its whole life on a bad network."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from quorate.api import all_kinds
from quorate.api.cluster_config import AgentSettings, ClusterConfig, ClusterConfigSpec
from quorate.api.conditions import find
from quorate.api.conditions.maintenance import Applied
from quorate.api.core import Event, Namespace
from quorate.api.duration import Duration
from quorate.api.meta import ConditionStatus, ObjectMeta
from quorate.api.names import CLUSTER, NAMESPACE
from quorate.api.struct import replace
from quorate.cluster.ground import CLUSTER_CONTROLLER, Ground, decide
from quorate.engine import Create, PatchStatus, Plan
from quorate.engine.manager import Manager
from quorate.engine.simulation import Simulation, for_each_seed
from quorate.errors import NotFound
from tests.support.faults import FaultyStore, bad
from tests.support.widgets import open_store

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def namespace() -> Namespace:
    return Namespace(metadata=ObjectMeta(name=NAMESPACE, uid="n", resource_version="1"))


def config(spec: ClusterConfigSpec | None = None, generation: int = 1) -> ClusterConfig:
    metadata = ObjectMeta(name=CLUSTER, uid="c", resource_version="2", generation=generation)
    return ClusterConfig(metadata=metadata, spec=spec or ClusterConfigSpec())


def decided(ground: Ground, now: datetime = NOW) -> Plan:
    return decide(ground, now, Random(0))


def settled(ground: Ground, now: datetime = NOW) -> ClusterConfig:
    """The configuration after its status has been written as decided."""
    (write,) = decided(ground, now).steps
    assert isinstance(write, PatchStatus)
    assert isinstance(write.intended, ClusterConfig)
    return write.intended


@pytest.mark.parametrize(
    ("ground", "created"),
    [
        (Ground(None, None), [NAMESPACE, CLUSTER]),
        (Ground(namespace(), None), [CLUSTER]),
        (Ground(None, config()), [NAMESPACE]),
        (Ground(namespace(), config()), []),
    ],
)
def test_what_is_missing_is_created(ground: Ground, created: list[str]) -> None:
    assert [write.obj.name for write in decided(ground).writes if isinstance(write, Create)] == created


def test_a_configuration_that_is_being_deleted_is_left_alone() -> None:
    leaving = replace(config(), metadata=replace(config().metadata, deletion_timestamp=NOW))
    assert decided(Ground(namespace(), leaving)).steps == ()


def test_the_defaults_can_be_used() -> None:
    after = settled(Ground(namespace(), config(generation=3)))
    condition = find(after.status.conditions, Applied)
    assert condition is not None
    assert (condition.status, condition.reason) == (ConditionStatus.TRUE, "Applied")
    assert condition.observed_generation == after.status.observed_generation == 3


def test_a_configuration_that_cannot_be_used_is_refused_with_every_reason_and_a_warning() -> None:
    zero = Duration("0s")
    spec = ClusterConfigSpec(resync_interval=zero, agent=AgentSettings(renew_interval=zero))
    ground = Ground(namespace(), config(spec))
    condition = find(settled(ground).status.conditions, Applied)
    assert condition is not None
    assert (condition.status, condition.reason) == (ConditionStatus.FALSE, "Invalid")
    assert condition.message == (
        "resyncInterval is 0s: it must be above zero; agent.renewInterval is 0s: it must be above zero"
    )
    (event,) = decided(ground).events
    assert (event.warning, event.message) == (True, condition.message)


def test_once_reported_there_is_nothing_to_write_however_much_time_passes() -> None:
    after = settled(Ground(namespace(), config()))
    assert decided(Ground(namespace(), after), NOW + timedelta(days=1)).steps == ()


def test_the_ground_is_laid_and_kept_whatever_the_network_does() -> None:
    async def main(sim: Simulation) -> None:
        store = await open_store(sim, kinds=all_kinds())
        faults = bad()
        link = FaultyStore(store, sim, sender="manager", faults=faults, network=sim.process("network"))
        manager = Manager(link, [CLUSTER_CONTROLLER], clock=sim.clock, random=sim.random("manager"), identity="manager")
        running = asyncio.create_task(manager.run())
        await sim.clock.sleep(60)
        for cls, name in ((ClusterConfig, CLUSTER), (Namespace, NAMESPACE)):
            with suppress(NotFound):
                await store.delete(cls, name)
            await sim.clock.sleep(10)
        faults.end()
        await sim.clock.sleep(330)
        assert (await store.get(Namespace, NAMESPACE)).name == NAMESPACE
        found = await store.get(ClusterConfig, CLUSTER)
        assert found.status.observed_generation == found.metadata.generation
        await store.patch(ClusterConfig, CLUSTER, patch={"spec": {"resyncInterval": "0s"}})
        await sim.clock.sleep(10)
        condition = find((await store.get(ClusterConfig, CLUSTER)).status.conditions, Applied)
        assert condition is not None
        assert condition.reason == "Invalid"
        reasons = {event.reason for event in (await store.list(Event)).items}
        assert "Invalid" in reasons
        version = (await store.list(ClusterConfig)).resource_version
        await sim.clock.sleep(3600)
        assert (await store.list(ClusterConfig)).resource_version == version, "nothing changes, so nothing is written"
        manager.stop()
        await running

    for_each_seed(main, range(10))
