"""What was seen of one thing holds until something is done to it, whatever is done to others."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.agent.lvm import GROUPS_KEY, commands
from quorate.agent.lvm.looker import GROUPS, Looker
from quorate.agent.lvm.report import LVS, VGS, VolumesReader, read_groups
from quorate.agent.lvm.seen import SeenVolume, SeenVolumes
from quorate.agent.node import Node
from quorate.agent.replica.commands import tag
from quorate.agent.sightings import Sightings
from quorate.agent.steps import LVM, Run, lvm_of
from quorate.api.meta import NodeName
from quorate.engine.simulation import Simulation, run
from quorate.lab.cluster import Cluster
from quorate.lab.layout import Layout
from quorate.lab.machine import Interference, LabMachine

NAMES = ("a", "b", "c")


def test_what_was_never_seen_does_not_hold() -> None:
    assert not Sightings[int]().holds()
    assert not Sightings[int]().current


def test_a_mark_on_one_thing_leaves_the_others_as_they_were_seen() -> None:
    seen: Sightings[int] = Sightings()
    seen.saw(1, moment=seen.moment)
    seen.mark("a")
    assert not seen.holds("a")
    assert seen.holds("b")
    assert seen.holds()
    assert not seen.current


def test_a_mark_on_everything_is_one_on_each_thing() -> None:
    seen: Sightings[int] = Sightings()
    seen.saw(1, moment=seen.moment)
    seen.mark_all()
    assert not seen.holds()
    assert not seen.holds("a")


def test_a_failed_look_keeps_what_was_seen_and_says_that_nothing_of_it_holds() -> None:
    seen: Sightings[int] = Sightings()
    seen.saw(1, moment=seen.moment)
    seen.failed("why", moment=seen.moment)
    assert (seen.value, seen.holds(), seen.error) == (1, False, "why")
    seen.saw(2, moment=seen.moment)
    assert (seen.value, seen.current, seen.error) == (2, True, "")


ACTIONS = st.one_of(
    st.tuples(st.just("change"), st.sampled_from(NAMES)), st.tuples(st.sampled_from(["all", "begin", "end", "fail"]))
)


@given(st.lists(ACTIONS, max_size=40))
def test_what_holds_is_what_is(actions: list[tuple[str, ...]]) -> None:
    """However looks and changes overlap, if each change is marked, what is said to hold is the truth."""
    seen: Sightings[dict[str, int]] = Sightings()
    truth = dict.fromkeys(NAMES, 0)
    looks: list[tuple[dict[str, int], int]] = []
    for action, *names in actions:
        match action:
            case "change":
                seen.mark(names[0])
                truth[names[0]] += 1
                seen.mark(names[0])
            case "all":
                seen.mark_all()
                truth = {name: value + 1 for name, value in truth.items()}
                seen.mark_all()
            case "begin":
                looks.append((dict(truth), seen.moment))
            case "end" if looks:
                value, moment = looks.pop()
                seen.saw(value, moment=moment)
            case "fail" if looks:
                seen.failed("why", moment=looks.pop()[1])
        for name in NAMES:
            assert not seen.holds(name) or (seen.value is not None and seen.value[name] == truth[name])
        assert not seen.current or seen.value == truth


GROUP, POOL, MIB = "vg0", "thin", 1 << 20


def _volume(name: str, *, thin: bool) -> SeenVolume:
    return SeenVolume(GROUP, name, tags=frozenset({"quorate.new"}), pool=POOL if thin else "")


COMMANDS: dict[str, Callable[[str, bool], Run]] = {
    "create": lambda name, thin: (
        commands.create_thin(GROUP, POOL, name, 8 * MIB, ("x",))
        if thin
        else commands.create_thick(GROUP, name, 8 * MIB, ("x",))
    ),
    "retag": lambda name, _: commands.retag(GROUP, name, add=("y",), remove=("x",)),
    "tag": lambda name, thin: tag(_volume(name, thin=thin), "about"),
    "extend": lambda name, thin: commands.extend(_volume(name, thin=thin), 16 * MIB),
    "remove": lambda name, thin: commands.remove(_volume(name, thin=thin)),
    "discard": lambda name, thin: commands.discard_new(_volume(name, thin=thin)),
    "pool": lambda name, _: commands.create_pool(GROUP, f"pool-{name}", str(64 * MIB)),
    "group": lambda _name, _: commands.create_group("vg1", ("/dev/sdc",)),
    "dissolve": lambda _name, _: commands.remove_group("vg1"),
}
WORKS = st.tuples(
    st.sampled_from([*COMMANDS, "look", "look at groups"]),
    st.sampled_from(NAMES),
    st.booleans(),
    st.floats(min_value=0, max_value=0.012),
)


@settings(deadline=None, max_examples=150)
@given(st.lists(WORKS, max_size=25))
def test_after_any_commands_of_ours_nothing_is_held_to_be_so_that_the_node_has_otherwise(
    works: list[tuple[str, str, bool, float]],
) -> None:
    """On simulated LVM, with commands and looks that overlap: what memory says holds is what ``lvs`` would say now.

    But for what is being changed at that moment.
    """

    async def main(sim: Simulation) -> None:
        cluster = Cluster(Layout(nodes=1, drives=2), clock=sim.clock)
        host = cluster.node("node-1").host
        machine = LabMachine(host, cluster.driver, Interference(), Random(1))
        node = Node(NodeName("node-1"), machine, clock=sim.clock, random=Random(1))
        looker = Looker(node, GROUPS_KEY)
        drive = next(name for name, _ in host.bays.items())
        for argv in (("vgcreate", GROUP, f"/dev/{drive}"), ("lvcreate", "--type=thin-pool", "-L64m", "-nthin", GROUP)):
            assert host.execute(argv).exit_code == 0, host.execute(argv).output
        changing: list[tuple[str, Run]] = []
        for number, (what, name, thin, pause) in enumerate(works):
            if what.startswith("look"):
                sim.loop.create_task(looker.look(GROUPS if what.endswith("groups") else ""))
            else:
                changing.append((f"work {number}", COMMANDS[what](name, thin)))
                node.hands.start(changing[-1][0], changing[-1][1:], lambda: None)
            await sim.clock.sleep(pause)
            changed = {change for work, command in changing if node.hands.busy(work) for change in command.changes}
            if LVM not in changed:
                _expect_true(node, SeenVolumes(VolumesReader().read(host.execute(LVS).stdout)), changed)
                _expect_true_of_groups(node, host.execute(VGS).stdout, changed)
        await node.hands.close()

    run(main, seed=1)


def _expect_true(node: Node, truth: SeenVolumes, changed: set[str]) -> None:
    seen = node.memory.logical_volumes
    for place in {each.place for each in (*truth.volumes, *(seen.value.volumes if seen.value else ()))}:
        if seen.holds(place) and lvm_of(place) not in changed:
            assert seen.value is not None
            assert seen.value.get(place) == truth.get(place)
    assert changed or not seen.current or (seen.value is not None and not seen.value.places_other_than(truth))


def _expect_true_of_groups(node: Node, report: str, changed: set[str]) -> None:
    seen, truth = node.memory.volume_groups, read_groups(report)
    if not seen.holds():
        return
    assert seen.value is not None
    assert [(group.name, group.size) for group in seen.value.groups] == [(group.name, group.size) for group in truth]
    for group in truth:
        if seen.holds(group.name) and not any(change.startswith(lvm_of(f"{group.name}/")) for change in changed):
            assert seen.value.get(group.name) == group


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_says_what_it_changes(name: str) -> None:
    assert COMMANDS[name]("a", True).changes
