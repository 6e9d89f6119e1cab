"""Rounds respect every limit, are as few as can be where that is known, and never more than DSATUR's."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, product
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.maintenance.planner.bounds import largest_clique, lower_bound, upper_bound
from quorate.maintenance.planner.colouring import colour, dsatur
from quorate.maintenance.planner.problem import UNLIMITED, Problem
from quorate.maintenance.planner.together import largest


@st.composite
def problems(draw: st.DrawFn, most: int = 12) -> Problem:
    hosts = draw(st.integers(1, most))
    host = st.integers(0, hosts - 1)
    groups = draw(st.lists(st.sets(host, min_size=2, max_size=4).map(tuple), max_size=12)) if hosts > 1 else []
    rings = draw(st.booleans())
    return Problem(
        hosts,
        tuple(groups),
        at_once=draw(st.integers(1, hosts) | st.just(UNLIMITED)),
        tenants=tuple(tuple(draw(st.sets(st.sampled_from("ab"), max_size=1))) for _ in range(hosts)),
        of_tenant_at_once={"a": draw(st.integers(1, 3))},
        rings=tuple(frozenset(draw(st.sets(st.integers(0, 2), max_size=1))) for _ in range(hosts)) if rings else (),
        rings_at_once=draw(st.integers(1, 2)),
        partitions=(tuple(draw(st.sampled_from("xyz")) for _ in range(hosts)),),
    )


def allowed(problem: Problem, hosts: list[int]) -> bool:
    """The rules, said plainly."""
    together = set(hosts)
    tenants = Counter(tenant for host in hosts for tenant in (problem.tenants[host] if problem.tenants else ()))
    rings = {ring for host in hosts for ring in (problem.rings[host] if problem.rings else ())}
    return (
        all(len(together.intersection(group)) <= 1 for group in problem.groups)
        and len(hosts) <= problem.at_once
        and all(count <= problem.of_tenant_at_once.get(tenant, UNLIMITED) for tenant, count in tenants.items())
        and len(rings) <= problem.rings_at_once
    )


@given(problems())
@settings(deadline=None)
def test_every_host_goes_once_and_no_round_breaks_a_rule(problem: Problem) -> None:
    plan = colour(problem)
    assert sorted(host for round_ in plan for host in round_) == list(range(problem.hosts))
    assert all(allowed(problem, round_) for round_ in plan)


@given(problems())
@settings(deadline=None)
def test_there_are_never_fewer_rounds_than_the_bound_nor_more_than_dsaturs(problem: Problem) -> None:
    rounds = len(colour(problem))
    assert lower_bound(problem).rounds <= rounds <= len(dsatur(problem, problem.groups_of()))


@given(problems(most=6))
@settings(deadline=None, max_examples=50)
def test_no_plan_beats_the_bound(problem: Problem) -> None:
    fewest = next(
        rounds
        for rounds in range(1, problem.hosts + 1)
        if any(
            all(allowed(problem, [host for host in range(problem.hosts) if go[host] == each]) for each in range(rounds))
            for go in product(range(rounds), repeat=problem.hosts)
        )
    )
    assert lower_bound(problem).rounds <= fewest <= len(colour(problem))


@given(problems(most=9))
@settings(deadline=None, max_examples=50)
def test_the_largest_set_breaks_no_rule_cannot_be_added_to_and_keeps_the_bound(problem: Problem) -> None:
    chosen = largest(problem)
    assert allowed(problem, chosen)
    assert not any(allowed(problem, [*chosen, other]) for other in range(problem.hosts) if other not in chosen)
    best = max(
        bits.bit_count()
        for bits in range(1 << problem.hosts)
        if allowed(problem, [host for host in range(problem.hosts) if bits >> host & 1])
    )
    assert len(chosen) <= best <= upper_bound(problem)


@given(problems(most=8))
@settings(deadline=None)
def test_every_two_hosts_of_a_clique_share_a_group(problem: Problem) -> None:
    found = largest_clique(problem)
    assert len(found) == len(set(found)) >= max(map(len, problem.groups), default=1)
    for one, other in combinations(found, 2):
        assert any(one in group and other in group for group in problem.groups)


@pytest.mark.parametrize("hosts", [4, 9, 30])
def test_small_groups_over_all_pairs_of_hosts_need_a_round_for_each_host(hosts: int) -> None:
    """Volumes with two copies lie anywhere: no group is larger than two, and yet no two hosts go together."""
    problem = Problem(hosts, tuple(combinations(range(hosts), 2)))
    assert lower_bound(problem).rounds == hosts == len(colour(problem))
    assert "every two share a group" in lower_bound(problem).reason
    assert upper_bound(problem) == 1 == len(largest(problem))


def test_the_bound_is_nine_where_volumes_of_three_lie_on_nine_hosts_so_that_all_meet() -> None:
    triples = tuple(combinations(range(9), 3))
    assert lower_bound(Problem(9, triples)).rounds == 9 == len(colour(Problem(9, triples)))


def blocks(count: int, size: int, at_once: int = UNLIMITED) -> Problem:
    groups = [tuple(range(size * block, size * block + size)) for block in range(count) for _ in range(3)]
    return Problem(count * size, tuple(groups), at_once)


@pytest.mark.parametrize("size", [3, 8, 9])
@pytest.mark.parametrize("count", [1, 4, 25])
def test_a_cluster_of_blocks_takes_as_many_rounds_as_a_block_has_hosts(count: int, size: int) -> None:
    assert len(colour(blocks(count, size))) == size == lower_bound(blocks(count, size)).rounds
    assert len(largest(blocks(count, size))) == count == upper_bound(blocks(count, size))


@pytest.mark.parametrize(("at_once", "rounds"), [(25, 8), (26, 8), (24, 9), (20, 10), (1, 200)])
def test_a_limit_on_a_round_is_met_exactly_on_blocks(at_once: int, rounds: int) -> None:
    assert len(colour(blocks(25, 8, at_once=at_once))) == rounds


def test_groups_spread_over_racks_are_served_rack_by_rack() -> None:
    """Which DSATUR does not see: it needs twice as many rounds."""
    racks, hosts, random = 8, 400, Random(1)
    groups = tuple(tuple(rack + racks * random.randrange(50) for rack in range(racks)) for _ in range(1000))
    told = Problem(hosts, groups, partitions=(tuple(str(host % racks) for host in range(hosts)),))
    assert len(colour(told)) == racks == lower_bound(told).rounds
    assert len(dsatur(told, told.groups_of())) >= 2 * racks
    assert len(largest(told)) == hosts // racks


def test_all_hosts_of_one_ring_go_together_and_rings_one_after_the_other() -> None:
    problem = Problem(9, rings=tuple(frozenset({host % 3}) for host in range(9)), rings_at_once=1)
    assert sorted(map(sorted, colour(problem))) == [[0, 3, 6], [1, 4, 7], [2, 5, 8]]
    assert lower_bound(problem).reason == "at most 1 of 3 rings of the state storage may be touched at once"


def test_nothing_to_do_takes_no_rounds() -> None:
    assert colour(Problem(0)) == []
    assert largest(Problem(0)) == []


def test_the_same_problem_gives_the_same_plan() -> None:
    assert colour(blocks(10, 8, at_once=7)) == colour(blocks(10, 8, at_once=7))
