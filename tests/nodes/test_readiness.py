"""Whether a node that its agent registered is Ready, by when its Lease was seen to change."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from quorate.api import all_kinds, labels, names
from quorate.api.core import Lease, Node
from quorate.api.core.node import NodeCondition, NodeStatus
from quorate.api.meta import NodeName, ObjectMeta
from quorate.engine.embedded import EmbeddedStore
from quorate.engine.manager import Manager
from quorate.engine.simulation import Simulation, run
from quorate.nodes import CONTROLLERS
from quorate.nodes.readiness import NodeView, decide

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LEASE = names.agent_lease(NodeName("n1"))


def node(ready: str = "", *, age: float = 3600, registered: bool = True) -> Node:
    conditions = (
        (NodeCondition(type="Ready", status=ready, reason="AgentReady" if ready == "True" else "AgentSilent"),)
        if ready
        else ()
    )
    return Node(
        metadata=ObjectMeta(
            name="n1",
            uid="u1",
            creation_timestamp=NOW - timedelta(seconds=age),
            labels={labels.REGISTERED: "agent"} if registered else {},
        ),
        status=NodeStatus(conditions=(NodeCondition(type="DiskPressure", status="False"), *conditions)),
    )


def decided(found: Node, silence: float | None) -> tuple[str | None, float | None]:
    """What is written of Ready, and when the node is looked at again."""
    plan = decide(NodeView(found, silence, 40.0), NOW, Random(1))
    if not plan.steps:
        return None, plan.requeue_after
    assert plan.status is not None
    intended = plan.status.intended
    assert isinstance(intended, Node)
    kept, ready = intended.status.conditions
    assert kept.type == "DiskPressure"
    return ready.status, plan.requeue_after


@pytest.mark.parametrize(
    ("found", "silence", "written", "again"),
    [
        (node(), 5.0, "True", 30.0),
        (node("True"), 5.0, None, 30.0),
        (node("Unknown"), 0.0, "True", 35.0),
        # By our clock the time may be over, and we have not heard of it yet.
        (node("True"), 36.0, None, 0.5),
        (node("True"), 40.0, "Unknown", None),
        (node("True"), 1000.0, "Unknown", None),
        (node("Unknown"), 1000.0, None, None),
        (node("True", age=10), None, None, 30.0),
        (node("True", age=50), None, "Unknown", None),
    ],
)
def test_a_node_is_ready_while_its_agent_renews_its_lease(
    found: Node, silence: float | None, written: str | None, again: float | None
) -> None:
    assert decided(found, silence) == (written, again)


def test_a_node_goes_silent_and_comes_back_and_one_of_a_kubelet_is_left_alone() -> None:
    async def main(sim: Simulation) -> None:
        clock, random = sim.clock, sim.random("leader")
        store = await EmbeddedStore.open(None, kinds=all_kinds(), clock=clock, random=random, inline=True)
        sim.cleanup.push_async_callback(store.close)
        await store.create(Lease(metadata=ObjectMeta(name=LEASE, namespace=names.NAMESPACE)))
        for name, marked in (("n1", {labels.REGISTERED: "agent"}), ("n2", {})):
            await store.create(Node(metadata=ObjectMeta(name=name, labels=marked)))
        manager = Manager(store, CONTROLLERS, clock=clock, random=random, identity="leader")
        sim.process("leader").spawn(manager.run())

        async def ready(name: str) -> list[str]:
            return [each.status for each in (await store.get(Node, name)).status.conditions]

        for second in range(12):
            patch = {"spec": {"leaseTransitions": second}}
            await store.patch(Lease, LEASE, names.NAMESPACE, patch=patch)
            await clock.sleep(10)
        assert await ready("n1") == ["True"]
        await clock.sleep(60)
        assert await ready("n1") == ["Unknown"]
        before = (await store.get(Node, "n1")).metadata.resource_version
        await clock.sleep(3600)
        assert (await store.get(Node, "n1")).metadata.resource_version == before
        await store.patch(Lease, LEASE, names.NAMESPACE, patch={"spec": {"leaseTransitions": 99}})
        await clock.sleep(1)
        assert await ready("n1") == ["True"]
        assert await ready("n2") == []

    run(main, seed=1)
