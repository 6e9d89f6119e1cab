"""What a replication level promises, as arithmetic: how many members of which sort, and when they may serve.

Two numbers say it all. FTT: how many members may be lost with I/O still running. GMDR: how many copies of every
acknowledged write there are beyond the one that is needed. Everything else follows:

| replication                | FTT | GMDR | layout | majority | qmr |
|----------------------------|-----|------|--------|----------|-----|
| None                       | 0   | 0    | 1D     | 1        | 1   |
| Availability               | 1   | 0    | 2D+1TB | 2        | 1   |
| Consistency                | 0   | 1    | 2D     | 2        | 2   |
| ConsistencyAndAvailability | 1   | 1    | 3D     | 2        | 2   |

Only members with a disk vote (M4), and there is at most one tie-breaker (M25). The tests hold every layout to the
kernel's rule (``quorate.drbd.quorum``): whichever FTT members are lost, the rest is quorate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Final

from quorate.api.scalars import MAX_MEMBERS
from quorate.api.storage.configuration import Configuration, Replication


@dataclass(frozen=True, slots=True)
class Layout:
    """The members that keep a promise."""

    #: FTT.
    failures_to_tolerate: int
    #: GMDR.
    data_redundancy: int

    def __post_init__(self) -> None:
        if min(self.failures_to_tolerate, self.data_redundancy) < 0:
            raise ValueError(f"{self._promise()}: neither can be below zero")
        if self.failures_to_tolerate > self.data_redundancy + 1:
            raise ValueError(f"{self._promise()}: FTT can be at most one above GMDR, a minority cannot have quorum")
        if self.members > MAX_MEMBERS:
            raise ValueError(f"{self._promise()} takes {self.members} members: DRBD has room for {MAX_MEMBERS}")

    @property
    def diskful(self) -> int:
        """D: members with a copy and a vote."""
        return self.failures_to_tolerate + self.data_redundancy + 1

    @property
    def tie_breakers(self) -> int:
        """TB: one where half of an even number of voters must be enough, otherwise none."""
        return int(self.diskful % 2 == 0 and self.failures_to_tolerate == self.diskful // 2)

    @property
    def members(self) -> int:
        """All of them, each on a node of its own."""
        return self.diskful + self.tie_breakers

    @property
    def majority(self) -> int:
        """How many voters must see one another."""
        return majority(self.diskful)

    @property
    def minimum_redundancy(self) -> int:
        """qmr: how many of those must be up to date, so that a write that is acknowledged has its copies."""
        return self.data_redundancy + 1

    def __str__(self) -> str:
        return text(self.diskful, self.tie_breakers)

    def _promise(self) -> str:
        return f"FTT {self.failures_to_tolerate} with GMDR {self.data_redundancy}"


def majority(voters: int) -> int:
    """More than half."""
    return voters // 2 + 1


def text(diskful: int, tie_breakers: int) -> str:
    """Members as people write them: ``3D``, ``2D+1TB``. Also for those that a volume has at the moment."""
    return f"{diskful}D+{tie_breakers}TB" if tie_breakers else f"{diskful}D"


#: The levels that have a name. Another one is another line here.
LEVELS: Final[Mapping[Replication, Layout]] = MappingProxyType(
    {
        Replication.NONE: Layout(0, 0),
        Replication.AVAILABILITY: Layout(1, 0),
        Replication.CONSISTENCY: Layout(0, 1),
        Replication.CONSISTENCY_AND_AVAILABILITY: Layout(1, 1),
    }
)


def layout_of(configuration: Configuration) -> Layout:
    """The layout of a volume that lives by this configuration."""
    return _layout(configuration.failures_to_tolerate, configuration.guaranteed_minimum_data_redundancy)


_layout = cache(Layout)
