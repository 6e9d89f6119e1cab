"""A resource that only has to be looked at again is looked at, without a pass over it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from quorate.agent import looks
from quorate.agent.memory import Outcome
from quorate.agent.node import Node, resource_work
from quorate.agent.replica.controller import Replicas
from quorate.agent.replica.looking import look_work
from quorate.agent.replica.view import KernelView
from quorate.agent.steps import KERNEL, Look, Run
from quorate.engine import Key
from quorate.engine.simulation import Simulation, run
from tests.agent.machines import scripted_node
from tests.agent.replica.builders import NOW, decided, kernel, reader, replica, view

RESOURCE = "pvc-1"
KEY = Key("", RESOURCE)


def seen_node(sim: Simulation) -> Node:
    """A node whose kernel was looked at; something has happened to the resource since."""
    node, _ = scripted_node(sim.clock)
    looks.register(node)
    whole, resource = node.memory.whole_kernel, node.memory.resource(RESOURCE)
    whole.saw((RESOURCE,), marks=whole.marks)
    resource.saw(kernel(), marks=resource.marks)
    resource.mark()
    return node


def happens(node: Node, replicas: Replicas) -> list[Key]:
    """The keys that are woken when something happens to the resource."""
    woken: list[Key] = []
    end = replicas.subscribe(woken.append)
    node.volumes.wake(KEY)
    end()
    return woken


def begun(node: Node) -> Replicas:
    """A view of the replica was made before."""
    replicas = Replicas(node)
    assert replicas.observe(reader(replica()), KEY) is not None
    return replicas


def failed_look(node: Node) -> None:
    node.memory.remember(look_work(RESOURCE), Outcome("look", "", "look", NOW, None, failures=1))


OBSTACLES: dict[str, Callable[[Node], None]] = {
    "it was seen": lambda node: node.memory.resource(RESOURCE).saw(None, marks=node.memory.resource(RESOURCE).marks),
    "it could not be read": lambda node: node.memory.resource(RESOURCE).failed("why", marks=0),
    "the last look failed": failed_look,
    "everything is to be looked at": lambda node: node.memory.whole_kernel.mark(),
}


def test_it_is_looked_at_as_the_whole_decision_would_have_it() -> None:
    async def main(sim: Simulation) -> None:
        node = seen_node(sim)
        whole = decided(view(kernel=KernelView(known=True, current=False, status=kernel())))
        assert (whole.steps, whole.work) == ((Look(KERNEL, RESOURCE),), look_work(RESOURCE))
        assert not whole.drop
        assert whole.status == view().replica.status
        assert not happens(node, begun(node))
        assert node.hands.busy(look_work(RESOURCE))

    run(main, seed=1)


@pytest.mark.parametrize("obstacle", OBSTACLES)
def test_whatever_else_is_the_matter_is_decided_on_all_that_is_known(obstacle: str) -> None:
    async def main(sim: Simulation) -> None:
        node = seen_node(sim)
        OBSTACLES[obstacle](node)
        assert happens(node, begun(node)) == [KEY]
        assert not node.hands.busy(look_work(RESOURCE))

    run(main, seed=1)


def test_of_a_replica_that_nothing_was_decided_about_yet_all_is() -> None:
    async def main(sim: Simulation) -> None:
        node = seen_node(sim)
        assert happens(node, Replicas(node)) == [KEY]
        assert not node.hands.busy(look_work(RESOURCE))

    run(main, seed=1)


def test_work_that_is_under_way_is_waited_for() -> None:
    async def main(sim: Simulation) -> None:
        node = seen_node(sim)
        node.hands.start(resource_work(RESOURCE), (Run(("sleep",), "p"),), lambda: None)
        assert not happens(node, begun(node))
        assert not node.hands.busy(look_work(RESOURCE))

    run(main, seed=1)
