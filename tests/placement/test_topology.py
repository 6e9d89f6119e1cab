"""Zone rules: against the definition, word for word, and against trying everything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import combinations_with_replacement, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.api.storage.configuration import Replication, Topology
from quorate.placement.layout import LEVELS, Layout
from quorate.placement.topology import Rule, Spread, Vacancies

LAYOUTS = [Layout(ftt, gmdr) for ftt in range(3) for gmdr in range(3) if ftt <= gmdr + 1]
ZONES = "abcd"
ACROSS = [Rule(Topology.TRANS_ZONAL, layout) for layout in LAYOUTS]
EVERY_RULE = [Rule(topology, layout) for topology in Topology for layout in LAYOUTS]


def obeys(rule: Rule, diskful: Mapping[str, int], tie_breaker: str | None) -> bool:
    """The definition in the design, for all voters placed. Nodes that are in no zone are in "", a zone of their own."""
    used = {zone for zone, count in diskful.items() if count}
    layout, voters = rule.layout, sum(diskful.values())
    if rule.topology.ignores_zones:
        return True
    if rule.topology is Topology.ZONAL:
        return len(used | ({tie_breaker} if tie_breaker is not None else set())) <= 1
    if layout.failures_to_tolerate == 0:
        return all(count <= 1 for count in diskful.values())
    majority = voters // 2 + 1
    return all(
        voters - count >= layout.minimum_redundancy
        and (
            voters - count >= majority
            or (
                voters % 2 == 0
                and voters - count == majority - 1
                and layout.tie_breakers == 1
                and tie_breaker is not None
                and tie_breaker != zone
            )
        )
        for zone, count in diskful.items()
    )


@pytest.mark.parametrize("rule", EVERY_RULE, ids=lambda rule: f"{rule.topology}-{rule.layout}")
def test_a_whole_placement_is_right_exactly_when_it_obeys_the_definition(rule: Rule) -> None:
    layout = rule.layout
    for zones in combinations_with_replacement(ZONES, layout.diskful):
        for tie_breaker in ZONES if layout.tie_breakers else (None,):
            diskful = Counter(zones)
            right = rule.violation(Spread(diskful, tie_breaker)) is None
            assert right == obeys(rule, diskful, tie_breaker), (diskful, tie_breaker)


@pytest.mark.parametrize(
    ("layout", "zones_needed"),
    [
        (LEVELS[Replication.NONE], 1),
        (LEVELS[Replication.AVAILABILITY], 3),
        (LEVELS[Replication.CONSISTENCY], 2),
        (LEVELS[Replication.CONSISTENCY_AND_AVAILABILITY], 3),
        (Layout(2, 1), 3),
        (Layout(1, 2), 4),
        (Layout(2, 2), 3),
    ],
    ids=str,
)
def test_how_many_zones_a_layout_needs_follows_from_the_rule(layout: Layout, zones_needed: int) -> None:
    rule = Rule(Topology.TRANS_ZONAL, layout)
    for zones in range(1, 6):
        plenty = {str(zone): Vacancies(either=8) for zone in range(zones)}
        possible = rule.completable(Spread(), plenty, layout.diskful, bool(layout.tie_breakers))
        assert possible == (zones >= zones_needed), zones


@pytest.mark.parametrize("topology", [Topology.IGNORED, Topology.ANY])
def test_any_and_ignored_are_one_topology(topology: Topology) -> None:
    """M7: the older spelling allows exactly what the newer one does."""
    rule = Rule(topology, LEVELS[Replication.CONSISTENCY_AND_AVAILABILITY])
    assert not rule.uses_zones
    assert rule.violation(Spread({"a": 3})) is None
    assert rule.completable(Spread({"a": 1, "b": 1}), {"": Vacancies(either=1)}, 1, False)


@pytest.mark.parametrize(
    ("rule", "spread", "words"),
    [
        (ACROSS[LAYOUTS.index(Layout(1, 1))], Spread({"a": 2, "b": 1}), "2 diskful in zone a"),
        (ACROSS[LAYOUTS.index(Layout(1, 0))], Spread({"a": 1, "b": 1}, "b"), "1 diskful and the tie-breaker in zone b"),
        (Rule(Topology.ZONAL, Layout(1, 1)), Spread({"b": 1, "a": 1}), "members in several zones: a, b"),
        (Rule(Topology.ZONAL, Layout(1, 0)), Spread({"a": 2}, "b"), "members in several zones: a, b"),
        (Rule(Topology.ZONAL, Layout(1, 0)), Spread({"a": 1}, ""), "members in several zones: (none), a"),
    ],
)
def test_a_violation_says_what_is_where(rule: Rule, spread: Spread, words: str) -> None:
    assert rule.violation(spread) == words


def test_a_voter_that_takes_the_place_of_another_raises_the_number_of_voters() -> None:
    rule = Rule(Topology.TRANS_ZONAL, LEVELS[Replication.CONSISTENCY_AND_AVAILABILITY])
    assert rule.violation(Spread({"a": 2, "b": 1, "c": 1})) == "2 diskful in zone a"
    assert rule.violation(Spread({"a": 2, "b": 2, "c": 1})) is None
    assert rule.violation(Spread({"a": 2, "b": 1, "c": 1}), still_to_come=1) is None


# Trying everything: every way in which those to come can take free nodes.


def completions(
    spread: Spread, vacancies: Mapping[str, Vacancies], diskful: int, tie_breaker: bool
) -> Iterator[tuple[Counter[str], str | None]]:
    for zones in combinations_with_replacement(sorted(vacancies), diskful):
        added = Counter(zones)
        if any(count > vacancies[zone].diskful + vacancies[zone].either for zone, count in added.items()):
            continue
        if not tie_breaker:
            yield Counter(spread.diskful) + added, spread.tie_breaker
            continue
        for zone, free in vacancies.items():
            of_either = max(0, added[zone] - free.diskful)
            if free.either - of_either + free.diskless:
                yield Counter(spread.diskful) + added, zone


free_nodes = st.builds(Vacancies, st.integers(0, 2), st.integers(0, 2), st.integers(0, 1))
vacant = st.dictionaries(st.sampled_from(ZONES), free_nodes, max_size=4)


@st.composite
def situations(draw: st.DrawFn) -> tuple[Rule, Spread, Mapping[str, Vacancies], int, bool]:
    """A rule, members in their places, free nodes, and who is to come: whole layouts in the end."""
    rule = draw(st.sampled_from(EVERY_RULE))
    placed = draw(st.lists(st.sampled_from(ZONES), max_size=rule.layout.diskful))
    tie_breaker = draw(st.sampled_from([None, *ZONES])) if rule.layout.tie_breakers else None
    to_come = rule.layout.diskful - len(placed)
    needs_tie_breaker = bool(rule.layout.tie_breakers) and tie_breaker is None
    return rule, Spread(Counter(placed), tie_breaker), draw(vacant), to_come, needs_tie_breaker


@settings(max_examples=400, deadline=None)
@given(situations())
def test_a_spread_is_completable_exactly_when_trying_everything_completes_it(
    situation: tuple[Rule, Spread, Mapping[str, Vacancies], int, bool],
) -> None:
    rule, spread, vacancies, diskful, tie_breaker = situation
    possible = any(obeys(rule, *tried) for tried in completions(spread, vacancies, diskful, tie_breaker))
    assert rule.completable(spread, vacancies, diskful, tie_breaker) == possible


@settings(max_examples=200, deadline=None)
@given(situations())
def test_the_next_voter_may_go_exactly_where_a_completion_remains(
    situation: tuple[Rule, Spread, Mapping[str, Vacancies], int, bool],
) -> None:
    rule, spread, vacancies, diskful, tie_breaker = situation
    if not diskful:
        return
    expected = {
        zone
        for zone in vacancies
        for tried in completions(spread, vacancies, diskful, tie_breaker)
        if tried[0][zone] > spread.in_zone(zone) and obeys(rule, *tried)
    }
    assert rule.zones_for_diskful(spread, vacancies, diskful, tie_breaker) == expected


def test_the_tie_breaker_may_go_exactly_where_the_definition_allows_it() -> None:
    rule = Rule(Topology.TRANS_ZONAL, Layout(2, 1))
    vacancies = {"a": Vacancies(either=1), "b": Vacancies(diskless=1), "c": Vacancies(diskful=1), "d": Vacancies(0, 1)}
    assert rule.zones_for_tie_breaker(Spread({"a": 2, "b": 1, "c": 1}), vacancies) == {"b", "d"}


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_across_zones_the_loss_of_any_one_zone_leaves_copies_and_quorum(layout: Layout) -> None:
    """M25: what the seed wanted of failure domains, for zones."""
    if not layout.failures_to_tolerate:
        return
    rule = Rule(Topology.TRANS_ZONAL, layout)
    for zones in product(ZONES, repeat=layout.diskful):
        for tie_breaker in ZONES if layout.tie_breakers else (None,):
            if rule.violation(Spread(Counter(zones), tie_breaker)) is not None:
                continue
            for lost in ZONES:
                left = sum(zone != lost for zone in zones)
                tie = left * 2 == layout.diskful and tie_breaker not in (None, lost)
                assert left >= layout.minimum_redundancy
                assert left >= layout.majority or tie
