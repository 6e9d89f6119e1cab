"""Rounds that are being filled: where a host may still go, in time that does not grow with the number of hosts.

Which rounds a group already has a part of is one integer, a bit a round; a host may go where none of its groups has
been. Limits are counters per round.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from quorate.maintenance.planner.problem import UNLIMITED, Problem


class Rounds:
    """A partial plan. Rounds are opened as they are needed."""

    def __init__(self, problem: Problem, groups_of: Sequence[Sequence[int]]) -> None:
        self._problem = problem
        self._groups_of = groups_of
        #: For each group the rounds in which one of its hosts goes.
        self.of_group = [0] * len(problem.groups)
        self.members: list[list[int]] = []
        self._tenants: list[Counter[str]] = []
        self._rings: list[set[int]] = []

    def conflicts(self, host: int) -> int:
        """The rounds that one of its groups is in already, as bits."""
        mask = 0
        for group in self._groups_of[host]:
            mask |= self.of_group[group]
        return mask

    def has_room(self, host: int, number: int) -> bool:
        """Whether the limits let it join; conflicts apart."""
        problem = self._problem
        if len(self.members[number]) >= problem.at_once:
            return False
        if problem.tenants:
            taken = self._tenants[number]
            for tenant in problem.tenants[host]:
                if taken[tenant] >= problem.of_tenant_at_once.get(tenant, UNLIMITED):
                    return False
        if problem.rings:
            touched = self._rings[number]
            if len(touched | problem.rings[host]) > max(problem.rings_at_once, len(touched)):
                return False
        return True

    def put(self, host: int, number: int) -> None:
        """It goes in that round, which is opened if it is the next."""
        if number == len(self.members):
            self.members.append([])
            self._tenants.append(Counter())
            self._rings.append(set())
        self.members[number].append(host)
        bit = 1 << number
        for group in self._groups_of[host]:
            self.of_group[group] |= bit
        if self._problem.tenants:
            self._tenants[number].update(self._problem.tenants[host])
        if self._problem.rings:
            self._rings[number] |= self._problem.rings[host]

    def first(self, host: int, conflicts: int) -> int:
        """The first round that takes it; the next new one if none does."""
        for number in range(len(self.members)):
            if not conflicts >> number & 1 and self.has_room(host, number):
                return number
        return len(self.members)

    def emptiest(self, host: int, conflicts: int, among: int) -> int:
        """The emptiest of so many rounds that takes it; beyond those the first that does."""
        best, size = -1, 0
        for number in range(min(among, len(self.members))):
            if (
                not conflicts >> number & 1
                and (best < 0 or len(self.members[number]) < size)
                and self.has_room(host, number)
            ):
                best, size = number, len(self.members[number])
        if best >= 0 and size == 0:
            return best
        if len(self.members) < among:
            return len(self.members)
        return best if best >= 0 else self.first(host, conflicts)
