"""What one request takes, and that it can be undone to the last step."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.api.maintenance.action import HostState
from quorate.maintenance.model import Trial
from quorate.maintenance.model.items import Item
from quorate.maintenance.model.trial import Taken
from tests.maintenance.rules.making import Scene


def scene() -> tuple[Scene, list[Item]]:
    made = Scene(4, tenants={1: "red", 2: "red"})
    made.node(2, tenant="red", state=HostState.DOWN)
    made.group([1, 2, 3])
    made.group([2, 3, 4], group=1)
    nodes = [made.model.known_node(number) for number in range(1, 5)]
    items: list[Item] = [*nodes, *(vdisk for node in nodes for vdisk in node.vdisks)]
    items += [drive for node in nodes for drive in node.drives.values()]
    return made, items


def picture(made: Scene, trial: Trial) -> object:
    counters = [made.model.cluster, made.model.counter_of("red")]
    return (
        dict(trial.taken),
        [trial.touches(group) for group in made.model.group_items()],
        [
            (list(tally.nodes), tally.down)
            for tally in (trial.tally(counter) for counter in counters if counter is not None)
        ],
    )


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 13), st.integers(0, 3)), max_size=20), st.integers(0, 20))
def test_undoing_restores_exactly_what_was(taking: list[tuple[int, int]], kept: int) -> None:
    made, items = scene()
    trial = Trial()
    mark, before = trial.mark(), picture(made, trial)
    for step, (number, action) in enumerate(taking):
        if step == kept:
            mark, before = trial.mark(), picture(made, trial)
        item = items[number % len(items)]
        if item not in trial.taken:
            trial.take(item, Taken(action, action))
    trial.undo(mark)
    assert picture(made, trial) == before


def test_a_trial_knows_what_it_has_of_groups_and_counters() -> None:
    made, _ = scene()
    trial = Trial()
    node = made.model.known_node(2)
    trial.take(node.vdisks[0], Taken(0, 0))
    trial.take(node, Taken(0, 0))
    first, second = made.model.group_items()
    assert trial.touches(first)
    assert not trial.touches(second)
    tally = trial.tally(made.model.cluster)
    assert (list(tally.nodes), tally.down) == ([node], 1)
