"""What no plan can beat: the fewest rounds there can be, and the most hosts that can go at once.

Hosts of which every two share a group (a clique) go one by one, and at most one of them goes at once. Finding the
largest clique is not tractable. Greed finds large ones: it begins with a host and always adds the one that leaves most
others to be added. Whatever it finds is a clique, so a bound is true however bad the luck was. A host's conflicts are
one integer, a bit a host.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from quorate.maintenance.planner.problem import UNLIMITED, Problem

#: Hosts to begin a clique with, those that meet most others first; and how often one is weighed as the next to add.
STARTS: Final = 50
EFFORT: Final = 500_000


@dataclass(frozen=True, slots=True)
class Bound:
    """No plan has fewer rounds, and why."""

    rounds: int
    reason: str


def lower_bound(problem: Problem) -> Bound:
    """The best of these: hosts that all conflict go one by one, and limits allow only so many a round."""
    if not problem.hosts:
        return Bound(0, "there is nothing to do")
    bounds = [Bound(1, "one round at least")]
    if problem.groups:
        most = max(map(len, problem.groups))
        bounds.append(Bound(most, f"a group has parts on {most} of these hosts, which go one by one"))
        clique = len(largest_clique(problem))
        bounds.append(Bound(clique, f"of {clique} of these hosts every two share a group, so they go one by one"))
    bounds.append(
        Bound(-(-problem.hosts // problem.at_once), f"at most {problem.at_once} of {problem.hosts} hosts go at once")
    )
    of_tenant: dict[str, int] = {}
    for tenants in problem.tenants:
        for tenant in tenants:
            of_tenant[tenant] = of_tenant.get(tenant, 0) + 1
    for tenant, hosts in sorted(of_tenant.items()):
        limit = problem.of_tenant_at_once.get(tenant, UNLIMITED)
        bounds.append(Bound(-(-hosts // limit), f"at most {limit} of {hosts} hosts of tenant {tenant} go at once"))
    rings = len(frozenset().union(*problem.rings)) if problem.rings else 0
    bounds.append(
        Bound(
            -(-rings // problem.rings_at_once),
            f"at most {problem.rings_at_once} of {rings} rings of the state storage may be touched at once",
        )
    )
    return max(bounds, key=lambda bound: bound.rounds)


def upper_bound(problem: Problem) -> int:
    """No set of hosts that go at once is larger: by limits, and by covers with groups and with other cliques."""
    covered: set[int] = set()
    parts = 0
    for group in sorted(problem.groups, key=lambda each: -len(each)):
        new = [host for host in group if host not in covered]
        if len(new) > 1:
            covered.update(new)
            parts += 1
    return min(parts + problem.hosts - len(covered), clique_cover(problem), problem.at_once)


def largest_clique(problem: Problem) -> list[int]:
    """Hosts that all conflict with each other, as many as we can find."""
    rows = _conflicts(problem)
    best: list[int] = []
    effort = EFFORT
    starts = sorted(range(problem.hosts), key=lambda host: (-rows[host].bit_count(), host))
    for start in starts[:STARTS]:
        if rows[start].bit_count() < len(best) or effort <= 0:
            break
        found, weighed = _grown(rows, start, rows[start])
        effort -= weighed
        best = max(best, found, key=len)
    return sorted(best)


def clique_cover(problem: Problem) -> int:
    """In how many cliques all hosts are found; those that meet the fewest others, with the least choice, first."""
    rows = _conflicts(problem)
    left = (1 << problem.hosts) - 1
    cliques = 0
    for start in sorted(range(problem.hosts), key=lambda host: rows[host].bit_count()):
        if left >> start & 1:
            for host in _grown(rows, start, rows[start] & left)[0]:
                left &= ~(1 << host)
            cliques += 1
    return cliques


def _conflicts(problem: Problem) -> list[int]:
    """For each host those that it shares a group with; not itself."""
    rows = [0] * problem.hosts
    for group in problem.groups:
        together = 0
        for host in group:
            together |= 1 << host
        for host in group:
            rows[host] |= together
    return [row & ~(1 << host) for host, row in enumerate(rows)]


def _grown(rows: list[int], start: int, candidates: int) -> tuple[list[int], int]:
    """A clique of this host and of some of these others; and how many were weighed for it."""
    clique, weighed = [start], 0
    while candidates:
        weighed += candidates.bit_count()
        among = candidates
        best = max(_hosts(candidates), key=lambda host: (rows[host] & among).bit_count())
        clique.append(best)
        candidates &= rows[best]
    return clique, weighed


def _hosts(bits: int) -> Iterator[int]:
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest
