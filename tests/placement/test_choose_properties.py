"""Placement on small clusters of every sort: no rule is ever broken, and what exists is found.

The judge here shares nothing with the code under test: it knows the rules one by one and tries every assignment.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace as change
from itertools import permutations

from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.api.meta import NodeName
from quorate.api.scalars import ReplicaName
from quorate.api.storage.configuration import Topology, VolumeAccess
from quorate.api.storage.rsp import EligibleNode
from quorate.api.struct import replace
from quorate.placement.candidates import candidates
from quorate.placement.choose import choose
from quorate.placement.explain import fates
from quorate.placement.layout import layout_of
from quorate.placement.request import Placement, Replica, Request, Room
from quorate.placement.topology import Rule, Spread
from tests.placement.builders import ACCESS, DISKFUL, LAYOUT, MIB, TAKEN, TIE_BREAKER, node, replica, request
from tests.placement.test_topology import obeys

Assignment = Mapping[ReplicaName, NodeName]


def members(asked: Request) -> list[Replica]:
    return [found for found in asked.replicas if not found.leaving and found.type is not ACCESS]


def may_hold(asked: Request, found: EligibleNode, wants_disk: bool) -> bool:
    """Whether a node could take a voter or the tie-breaker, the others aside."""
    zones = asked.configuration.zones
    usable = found.node_ready and found.agent_ready and not found.unschedulable
    if not usable or (zones and found.zone_name not in zones):
        return False
    if not asked.configuration.topology.ignores_zones and not found.zone_name:
        return False
    return not wants_disk or any(
        group.ready
        and not group.unschedulable
        and group.name in asked.rooms
        and not asked.rooms[group.name].closed
        and group.name not in asked.refused
        and asked.rooms[group.name].free >= TAKEN
        for group in found.lvm_volume_groups
    )


def zones_of(asked: Request, assignment: Assignment) -> tuple[Counter[str], str | None]:
    listed = {found.node_name: found.zone_name for found in asked.nodes or ()}
    diskful: Counter[str] = Counter()
    tie_breaker = None
    for member in members(asked):
        place = assignment.get(member.name, member.node)
        if place is not None and member.type is DISKFUL:
            diskful[listed[place]] += 1
        elif place is not None:
            tie_breaker = listed[place]
    return diskful, tie_breaker


def assignments(asked: Request) -> Iterator[Assignment]:
    """Every way in which all that have no place could get one, each a node of its own that may hold it."""
    taken = {found.node for found in asked.replicas}
    unplaced = [found for found in members(asked) if found.unplaced]
    free = [found for found in asked.nodes or () if found.node_name not in taken]
    kept = asked.access if any(found.type is ACCESS for found in asked.replicas) else ()
    for tried in permutations(free, len(unplaced)):
        pairs = list(zip(unplaced, tried, strict=True))
        if any(who.type is TIE_BREAKER and place.node_name in kept for who, place in pairs):
            continue
        if all(may_hold(asked, place, wants_disk=who.type is DISKFUL) for who, place in pairs):
            yield {who.name: place.node_name for who, place in pairs}


def exists(asked: Request) -> bool:
    rule = Rule(asked.configuration.topology, layout_of(asked.configuration))
    required = set(asked.access) if asked.configuration.volume_access is VolumeAccess.LOCAL else set()
    required -= {found.node for found in asked.replicas if found.node}
    voters = {found.name for found in members(asked) if found.unplaced and found.type is DISKFUL}
    # First come, first served, as far as there are voters.
    needed = [name for name in asked.access if name in required][: len(voters)]
    return any(
        obeys(rule, *zones_of(asked, tried))
        and set(needed) <= {place for name, place in tried.items() if name in voters}
        for tried in assignments(asked)
    )


@st.composite
def requests(draw: st.DrawFn) -> Request:
    """A whole layout among at most six nodes, of which some members may be in place."""
    layout = draw(st.sampled_from(sorted(LAYOUT)))
    topology = draw(st.sampled_from(list(Topology)))
    listed = []
    for number in range(draw(st.integers(0, 6))):
        made = node(f"n{number}", draw(st.sampled_from(["a", "b", "c", "d", ""])))
        if draw(st.integers(0, 4)) == 0:
            flaw = draw(st.sampled_from([{"node_ready": False}, {"agent_ready": False}, {"unschedulable": True}]))
            made = replace(made, **flaw)
        if draw(st.integers(0, 3)) == 0:
            made = replace(made, lvm_volume_groups=())
        listed.append(made)
    rooms = {
        found.node_name: Room(
            draw(st.sampled_from([100, 50, 1])) * MIB,
            4 * MIB,
            draw(st.sampled_from(["", "", "no"])),
            draw(st.sampled_from([0, 0, 60])) * MIB,
        )
        for found in listed
    }
    names = [found.node_name for found in listed]
    shape = LAYOUT[layout]
    sorts = "D" * shape.diskful + "T" * shape.tie_breakers
    places = list(draw(st.permutations(names)))
    replicas = []
    for number, sort in enumerate(sorts):
        place = places.pop() if places and draw(st.integers(0, 3)) == 0 else None
        replicas.append(replica(number, sort, place))
    if draw(st.booleans()) and places:
        replicas.append(replica(7, draw(st.sampled_from("DT")), places.pop(), leaving=True))
    if draw(st.integers(0, 3)) == 0:
        replicas.append(replica(6, "A"))
    return request(
        layout,
        listed,
        replicas,
        topology=topology,
        rooms=rooms,
        zones=draw(st.sampled_from([(), (), ("a", "b", "c")])),
        access=draw(st.lists(st.sampled_from(names), unique=True, max_size=2)) if names else (),
        volume_access=draw(st.sampled_from([VolumeAccess.LOCAL, VolumeAccess.PREFERABLY_LOCAL, VolumeAccess.ANY])),
        refused={names[0]: "full"} if names and draw(st.integers(0, 4)) == 0 else {},
    )


def assert_within_rules(asked: Request, placement: Placement) -> None:
    listed = {found.node_name: found for found in asked.nodes or ()}
    kinds = {found.name: found.type for found in asked.replicas}
    places = [choice.node for choice in placement.choices.values()]
    places += [found.node for found in asked.replicas if found.node is not None]
    assert len(places) == len(set(places)), "at most one replica of a volume per node, leaving ones included"
    for name, choice in placement.choices.items():
        wants_disk = kinds[name] is DISKFUL
        if kinds[name] is ACCESS:
            assert choice.node in asked.access
            assert listed[choice.node].node_ready
            continue
        assert may_hold(asked, listed[choice.node], wants_disk)
        assert (choice.group is not None) == wants_disk
        if choice.group is not None:
            assert choice.group in listed[choice.node].lvm_volume_groups
            assert (choice.size, choice.left) == (TAKEN, asked.rooms[choice.disk].free - TAKEN)


@settings(max_examples=400, deadline=None)
@given(requests())
def test_a_placement_of_all_is_found_exactly_when_there_is_one(asked: Request) -> None:
    asked = change(asked, together=True)
    placement = choose(asked)
    assert_within_rules(asked, placement)
    unplaced = {found.name for found in members(asked) if found.unplaced}
    refused = unplaced & set(placement.refusals)
    assert bool(refused) != exists(asked) or not unplaced
    assert unplaced & set(placement.choices) == (set() if refused else unplaced), "all or none"
    if unplaced and not refused:
        rule = Rule(asked.configuration.topology, layout_of(asked.configuration))
        assert obeys(rule, *zones_of(asked, {name: choice.node for name, choice in placement.choices.items()}))


@settings(max_examples=400, deadline=None)
@given(requests())
def test_a_part_that_is_placed_breaks_no_rule_and_answers_everybody(asked: Request) -> None:
    placement = choose(asked)
    unplaced = {found.name for found in asked.replicas if found.unplaced}
    assert set(placement.choices) | set(placement.refusals) == unplaced
    assert not set(placement.choices) & set(placement.refusals)
    assert_within_rules(asked, placement)
    voting = {found.name for found in members(asked) if found.unplaced}
    if exists(asked):
        assert not voting & set(placement.refusals)
    # What is there after may be incomplete, but nothing in it is wrong that was not wrong before.
    rule = Rule(asked.configuration.topology, layout_of(asked.configuration))
    before, after = _spread(asked, {}), _spread(asked, {n: choice.node for n, choice in placement.choices.items()})
    if rule.violation(before, len(voting)) is None:
        assert rule.violation(after, len(voting & set(placement.refusals))) is None


@settings(max_examples=300, deadline=None)
@given(requests())
def test_as_many_voters_are_placed_as_can_be(asked: Request) -> None:
    """Not with Local access, where one that cannot be where it must be keeps the others waiting."""
    asked = change(asked, configuration=replace(asked.configuration, volume_access=VolumeAccess.ANY))
    placement = choose(asked)
    kinds = {found.name: found.type for found in asked.replicas}
    placed = sum(kinds[name] is DISKFUL for name in placement.choices)
    voters = [found for found in asked.replicas if found.unplaced and found.type is DISKFUL]
    if placed == len(voters):
        return
    rest = tuple(found for found in asked.replicas if not (found.unplaced and found.type is TIE_BREAKER))
    one_more = change(asked, replicas=tuple(found for found in rest if found not in voters[placed + 1 :]))
    rule = Rule(asked.configuration.topology, layout_of(asked.configuration))
    for tried in assignments(one_more):
        assert rule.violation(_spread(one_more, tried), len(voters) - placed - 1) is not None, tried


@settings(max_examples=200, deadline=None)
@given(requests())
def test_candidates_are_exactly_those_to_which_the_table_has_no_objection(asked: Request) -> None:
    """What filters and what explains are two pieces of code, for speed; they must say the same."""
    asked = change(asked, configuration=replace(asked.configuration, topology=Topology.IGNORED))
    newcomer = replica(6, "D")
    asked = change(asked, replicas=(*(found for found in asked.replicas if not found.unplaced), newcomer))
    table = fates(asked, Placement({}, {}), newcomer)
    free = {candidate.node for candidate in candidates(asked) if candidate.disk is not None}
    assert {fate.node for fate in table if fate.objection is None} == free


@settings(max_examples=200, deadline=None)
@given(requests())
def test_the_table_names_every_node_of_the_pool_and_one_chosen_place(asked: Request) -> None:
    placement = choose(asked)
    for found in asked.replicas:
        if not found.unplaced:
            continue
        table = fates(asked, placement, found)
        assert {fate.node for fate in table} == {listed.node_name for listed in asked.nodes or ()}
        chosen = [fate for fate in table if fate.message.startswith("chosen")]
        assert len(chosen) == (found.name in placement.choices)
        assert all(fate.objection is None for fate in chosen)
        if placement.refusals.get(found.name) and placement.refusals[found.name].reason.code == "NoSpace":
            assert all(fate.objection is not None for fate in table)


def _spread(asked: Request, assignment: Assignment) -> Spread:
    return Spread(*zones_of(asked, assignment))
