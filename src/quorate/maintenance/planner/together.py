"""The largest set of hosts that may go at once, as large as we can find it.

Hosts that meet the fewest others come first, because they cost the least; or all hosts of one rack, because groups are
spread over racks. Then swaps: a host that stands in the way of two others makes room for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import heapify, heappop, heappush
from typing import Final

from quorate.maintenance.planner.problem import Problem
from quorate.maintenance.planner.rounds import Rounds

#: Passes of swapping.
PASSES: Final = 5


def largest(problem: Problem) -> list[int]:
    """Hosts that may all go at once."""
    groups_of = problem.groups_of()
    chosen = _fewest_met_first(problem, groups_of)
    for parts in problem.parts():
        chosen = max(chosen, _filled(problem, groups_of, parts[0]), key=len)
    for _ in range(PASSES):
        better = _swapped(problem, groups_of, chosen)
        if len(better) <= len(chosen):
            break
        chosen = better
    return sorted(chosen)


def _fewest_met_first(problem: Problem, groups_of: Sequence[Sequence[int]]) -> list[int]:
    alive = [True] * problem.hosts
    others = _others(problem, groups_of)
    degree = [len(each) for each in others]
    queue = [(degree[host], host) for host in range(problem.hosts)]
    heapify(queue)
    round_ = _Set(problem, groups_of)
    while queue:
        known, host = heappop(queue)
        if not alive[host] or known != degree[host]:
            continue
        alive[host] = False
        if not round_.takes(host):
            continue
        round_.add(host)
        for other in others[host]:
            if alive[other]:
                alive[other] = False
                for third in others[other]:
                    if alive[third]:
                        degree[third] -= 1
                        heappush(queue, (degree[third], third))
    return round_.hosts


def _swapped(problem: Problem, groups_of: Sequence[Sequence[int]], chosen: Iterable[int]) -> list[int]:
    """Each chosen host in turn gives way, if at least two others can then come."""
    others = _others(problem, groups_of)
    inside = set(chosen)
    blockers = {host: [other for other in others[host] if other in inside] for host in range(problem.hosts)}
    waiting: dict[int, list[int]] = {}
    for host, blocking in blockers.items():
        if host not in inside and len(blocking) == 1:
            waiting.setdefault(blocking[0], []).append(host)
    for host, candidates in sorted(waiting.items()):
        together: list[int] = []
        for candidate in candidates:
            if not any(candidate in others[other] for other in together):
                together.append(candidate)
        if len(together) < 2:
            continue
        trial = _filled(problem, groups_of, [*sorted(inside - {host}), *together])
        if len(trial) > len(inside):
            return trial
    return list(inside)


def _filled(problem: Problem, groups_of: Sequence[Sequence[int]], wanted: Iterable[int]) -> list[int]:
    """These, as far as they go together, and then whoever else can."""
    result = _Set(problem, groups_of)
    tried = set()
    for host in (*wanted, *range(problem.hosts)):
        if host not in tried and result.takes(host):
            result.add(host)
        tried.add(host)
    return result.hosts


def _others(problem: Problem, groups_of: Sequence[Sequence[int]]) -> list[set[int]]:
    """For each host those that it cannot go with."""
    result: list[set[int]] = [set() for _ in range(problem.hosts)]
    for host, groups in enumerate(groups_of):
        result[host].update(*(problem.groups[group] for group in groups))
        result[host].discard(host)
    return result


class _Set:
    """One round."""

    def __init__(self, problem: Problem, groups_of: Sequence[Sequence[int]]) -> None:
        self._rounds = Rounds(problem, groups_of)
        self.hosts: list[int] = []

    def takes(self, host: int) -> bool:
        if not self.hosts:
            return True
        return not self._rounds.conflicts(host) and self._rounds.has_room(host, 0)

    def add(self, host: int) -> None:
        self._rounds.put(host, 0)
        self.hosts = self._rounds.members[0]
