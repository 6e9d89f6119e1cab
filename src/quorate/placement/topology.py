"""How members may spread over zones, derived from the layout, and where the next one may go.

| topology   | rule                                                                                                  |
|------------|-------------------------------------------------------------------------------------------------------|
| Ignored    | none; ``Any`` is the same (M7)                                                                        |
| Zonal      | all voters and the tie-breaker in one zone                                                            |
| TransZonal | FTT 0: every D in another zone. Else the loss of any one zone leaves the volume serving: of D voters, |
|            | d of them in the zone, D-d >= qmr and either D-d >= majority, or D is even, D-d = majority-1 and the  |
|            | tie-breaker is outside the zone                                                                       |

The rule only ever limits how many voters a zone may have, and which zones the tie-breaker must keep out of. So whether
those still to be placed can all be placed is a sum over zones, not a search: picking the best node among the zones
that leave the sum sufficient never leads into a dead end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from quorate.api.storage.configuration import Topology
from quorate.placement.layout import Layout, majority


class Vacancies(NamedTuple):
    """Free nodes of a zone, by what they could take."""

    #: A diskful replica only.
    diskful: int = 0
    #: A diskful replica or the tie-breaker.
    either: int = 0
    #: The tie-breaker only.
    diskless: int = 0

    def without_one(self, of_either: bool) -> Vacancies:
        """What is left when a diskful replica has taken a node that could take either, or one that could not."""
        if of_either:
            return self._replace(either=self.either - 1)
        return self._replace(diskful=self.diskful - 1)

    @property
    def for_diskful(self) -> int:
        """Nodes that could take a diskful replica."""
        return self.diskful + self.either

    @property
    def for_diskful_beside_tie_breaker(self) -> int | None:
        """The same while one node is kept for the tie-breaker; None: it has no node here at all."""
        if self.diskless:
            return self.for_diskful
        return self.for_diskful - 1 if self.either else None


@dataclass(frozen=True, slots=True)
class Spread:
    """The zones in which members are, or are to be."""

    #: Voters by zone.
    diskful: Mapping[str, int] = field(default_factory=dict)
    #: The tie-breaker's; None: there is none yet.
    tie_breaker: str | None = None

    def in_zone(self, zone: str) -> int:
        """Voters there."""
        return self.diskful.get(zone, 0)

    def with_diskful(self, zone: str) -> Spread:
        """One more voter."""
        return Spread({**self.diskful, zone: self.in_zone(zone) + 1}, self.tie_breaker)

    def with_tie_breaker(self, zone: str) -> Spread:
        """The tie-breaker in that zone."""
        return Spread(self.diskful, zone)


@dataclass(frozen=True, slots=True)
class Rule:
    """A topology, for a layout."""

    topology: Topology
    layout: Layout

    @property
    def uses_zones(self) -> bool:
        """Whether it matters in which zone a node is. One that is in none is then of no use."""
        return not self.topology.ignores_zones

    def violation(self, spread: Spread, still_to_come: int = 0) -> str | None:
        """What is wrong with a spread to which so many voters will be added; None: nothing that they could not mend."""
        if self.topology is Topology.ZONAL:
            used = sorted(_used(spread))
            return f"members in several zones: {', '.join(map(_named, used))}" if len(used) > 1 else None
        if self.topology is Topology.TRANS_ZONAL:
            voters = self._voters(spread, still_to_come)
            for zone, count in sorted(spread.diskful.items()):
                with_tie_breaker = zone == spread.tie_breaker
                if count > self._most(voters, with_tie_breaker):
                    beside = " and the tie-breaker" if with_tie_breaker else ""
                    return f"{count} diskful{beside} in zone {_named(zone)}"
        return None

    def completable(self, spread: Spread, vacancies: Mapping[str, Vacancies], diskful: int, tie_breaker: bool) -> bool:
        """Whether so many more voters, and a tie-breaker if asked for, find their nodes within the rule."""
        if tie_breaker:
            # Where the one is that it replaces does not matter any more.
            spread = Spread(spread.diskful)
        if self.violation(spread, diskful) is not None:
            return False
        if not diskful and not tie_breaker:
            return True
        if not self.uses_zones:
            everywhere = Vacancies(*map(sum, zip(*vacancies.values(), strict=True))) if vacancies else Vacancies()
            return _fits(everywhere, diskful, tie_breaker)
        if self.topology is Topology.ZONAL:
            used = _used(spread)
            return any(_fits(free, diskful, tie_breaker) for zone, free in vacancies.items() if not used - {zone})
        return self._completable_across(spread, vacancies, diskful, tie_breaker)

    def zones_for_diskful(
        self, spread: Spread, vacancies: Mapping[str, Vacancies], diskful: int, tie_breaker: bool
    ) -> frozenset[str]:
        """The zones in which the next of so many voters may go, such that the rest still finds its place."""
        return frozenset(
            zone
            for zone, free in vacancies.items()
            for of_either, nodes in ((False, free.diskful), (True, free.either))
            if nodes
            and self.completable(
                spread.with_diskful(zone), {**vacancies, zone: free.without_one(of_either)}, diskful - 1, tie_breaker
            )
        )

    def zones_for_tie_breaker(self, spread: Spread, vacancies: Mapping[str, Vacancies]) -> frozenset[str]:
        """The zones in which the tie-breaker may go, with every voter in its place."""
        return frozenset(
            zone
            for zone, free in vacancies.items()
            if free.either + free.diskless and self.violation(spread.with_tie_breaker(zone)) is None
        )

    def _completable_across(
        self, spread: Spread, vacancies: Mapping[str, Vacancies], diskful: int, tie_breaker: bool
    ) -> bool:
        voters = self._voters(spread, diskful)
        apart, beside = self._most(voters, with_tie_breaker=False), self._most(voters, with_tie_breaker=True)
        room: dict[str, int] = {}
        for zone, free in vacancies.items():
            most = beside if zone == spread.tie_breaker else apart
            room[zone] = max(0, min(free.for_diskful, most - spread.in_zone(zone)))
        total = sum(room.values())
        if not tie_breaker:
            return total >= diskful
        for zone, free in vacancies.items():
            nodes, already = free.for_diskful_beside_tie_breaker, spread.in_zone(zone)
            if nodes is not None and already <= beside and total - room[zone] + min(nodes, beside - already) >= diskful:
                return True
        return False

    def _voters(self, spread: Spread, still_to_come: int) -> int:
        """How many there will be; more than the layout has while one takes another's place."""
        return max(self.layout.diskful, sum(spread.diskful.values()) + still_to_come)

    def _most(self, voters: int, with_tie_breaker: bool) -> int:
        """How many voters one zone may have, the tie-breaker being there as well or not."""
        layout = self.layout
        if not layout.failures_to_tolerate:
            return 1
        breaks_ties = layout.tie_breakers and voters % 2 == 0 and not with_tie_breaker
        left = majority(voters) - 1 if breaks_ties else majority(voters)
        return voters - max(left, layout.minimum_redundancy)


def _used(spread: Spread) -> set[str]:
    used = {zone for zone, count in spread.diskful.items() if count}
    return used if spread.tie_breaker is None else used | {spread.tie_breaker}


def _named(zone: str) -> str:
    """Members whose nodes have lost their zone count as being in one of their own, which is no place for another."""
    return zone or "(none)"


def _fits(free: Vacancies, diskful: int, tie_breaker: bool) -> bool:
    nodes = free.for_diskful_beside_tie_breaker if tie_breaker else free.for_diskful
    return nodes is not None and nodes >= diskful
