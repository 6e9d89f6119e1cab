"""A resource that only has to be looked at again is looked at, without a view of all that is known of it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from quorate.agent import looks
from quorate.agent.memory import Outcome
from quorate.agent.node import Node, resource_work
from quorate.agent.replica.controller import Replicas, Unseen
from quorate.agent.replica.looking import look_work
from quorate.agent.replica.view import KernelView
from quorate.agent.steps import KERNEL, Look, Run
from quorate.engine.simulation import Simulation, run
from tests.agent.machines import scripted_node
from tests.agent.replica.builders import NOW, decided, kernel, view

RESOURCE = "pvc-1"


def seen_node(sim: Simulation) -> Node:
    """A node whose kernel was looked at; something has happened to the resource since."""
    node, _ = scripted_node(sim.clock)
    looks.register(node)
    whole, resource = node.memory.whole_kernel, node.memory.resource(RESOURCE)
    whole.saw((RESOURCE,), marks=whole.marks)
    resource.saw(kernel(), marks=resource.marks)
    resource.mark()
    return node


def is_unseen(node: Node) -> bool:
    return Replicas(node)._is_only_to_be_looked_at(RESOURCE)


def failed_look(node: Node) -> None:
    node.memory.remember(look_work(RESOURCE), Outcome("look", "", "look", NOW, None, failures=1))


def busy(node: Node) -> None:
    node.hands.start(resource_work(RESOURCE), (Run(("sleep",), "p"),), lambda: None)


OBSTACLES: dict[str, Callable[[Node], None]] = {
    "it was seen": lambda node: node.memory.resource(RESOURCE).saw(None, marks=node.memory.resource(RESOURCE).marks),
    "it could not be read": lambda node: node.memory.resource(RESOURCE).failed("why", marks=0),
    "the last look failed": failed_look,
    "everything is to be looked at": lambda node: node.memory.whole_kernel.mark(),
    "work on it is under way": busy,
}


def test_it_is_looked_at_as_the_whole_decision_would_have_it() -> None:
    async def main(sim: Simulation) -> None:
        node = seen_node(sim)
        assert is_unseen(node)
        whole = decided(view(kernel=KernelView(known=True, current=False, status=kernel())))
        assert (whole.steps, whole.work) == ((Look(KERNEL, RESOURCE),), look_work(RESOURCE))
        assert not whole.drop
        assert whole.status == view().replica.status
        (effect,) = Replicas(node).decide(Unseen(RESOURCE), NOW, sim.random("test")).effects
        effect()
        assert node.hands.busy(look_work(RESOURCE))

    run(main, seed=1)


@pytest.mark.parametrize("obstacle", OBSTACLES)
def test_whatever_else_is_the_matter_is_decided_on_all_that_is_known(obstacle: str) -> None:
    async def main(sim: Simulation) -> None:
        node = seen_node(sim)
        OBSTACLES[obstacle](node)
        assert not is_unseen(node)

    run(main, seed=1)
