"""The rounds themselves: a colouring of the hosts' conflicts, with limits on every colour.

DSATUR goes first: always the host with the fewest rounds left to go to. It is run twice, once into the first round that
takes a host, as it is known, and once into the emptiest of as many rounds as there must be, which is what limits on a
round's size want. Then place by place: groups are spread over racks, so a rack's hosts go well together, which DSATUR
does not see. The best of these is tried to be bettered by iterated greedy: putting whole rounds again, one after the
other, never needs more of them, and sometimes fewer. All of it is deterministic.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from random import Random
from typing import Final

from quorate.maintenance.planner.bounds import lower_bound
from quorate.maintenance.planner.problem import Problem
from quorate.maintenance.planner.rounds import Rounds

#: Tries of iterated greedy without fewer rounds before it is left at that.
PATIENCE: Final = 30

Plan = list[list[int]]


def colour(problem: Problem) -> Plan:
    """Rounds that serve every host once, as few as we can find."""
    groups_of = problem.groups_of()
    least = lower_bound(problem).rounds
    best = dsatur(problem, groups_of)
    if len(best) > least:
        best = min(best, dsatur(problem, groups_of, spread_over=least), key=len)
    for parts in problem.parts():
        if len(best) > least:
            best = min(best, _one_after_the_other(problem, groups_of, parts), key=len)
    return _fewer(problem, groups_of, best, least)


def dsatur(problem: Problem, groups_of: Sequence[Sequence[int]], *, spread_over: int = 0) -> Plan:
    """By saturation, then by how many others a host meets; into the emptiest of ``spread_over`` rounds, if given."""
    rounds = Rounds(problem, groups_of)
    meets = [sum(len(problem.groups[group]) - 1 for group in groups) for groups in groups_of]
    masks = [0] * problem.hosts
    placed = [False] * problem.hosts
    queue = [(0, -meets[host], host) for host in range(problem.hosts)]
    heapify(queue)
    while queue:
        saturation, _, host = heappop(queue)
        if placed[host] or -saturation != masks[host].bit_count():
            continue  # an entry of an earlier saturation
        mask = masks[host]
        number = rounds.emptiest(host, mask, spread_over) if spread_over else rounds.first(host, mask)
        bit = 1 << number
        fresh = [group for group in groups_of[host] if not rounds.of_group[group] & bit]
        rounds.put(host, number)
        placed[host] = True
        for group in fresh:
            for other in problem.groups[group]:
                if not placed[other] and not masks[other] & bit:
                    masks[other] |= bit
                    heappush(queue, (-masks[other].bit_count(), -meets[other], other))
    return rounds.members


def _fewer(problem: Problem, groups_of: Sequence[Sequence[int]], best: Plan, least: int) -> Plan:
    """Iterated greedy: the rounds in another order, each host into the first round that takes it."""
    random = Random(0)
    plan, misses = best, 0
    while len(best) > least and misses < PATIENCE:
        order = list(range(len(plan)))
        turn = misses % 3
        if turn == 0:
            order.reverse()
        elif turn == 1:
            order.sort(key=lambda number: -len(plan[number]))
        else:
            random.shuffle(order)
        plan = _one_after_the_other(problem, groups_of, [plan[number] for number in order])
        if len(plan) < len(best):
            best, misses = plan, 0
        else:
            misses += 1
    return best


def _one_after_the_other(problem: Problem, groups_of: Sequence[Sequence[int]], parts: Plan) -> Plan:
    """Each host into the first round that takes it."""
    rounds = Rounds(problem, groups_of)
    for part in parts:
        for host in part:
            rounds.put(host, rounds.first(host, rounds.conflicts(host)))
    return rounds.members
