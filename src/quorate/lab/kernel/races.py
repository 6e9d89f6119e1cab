"""What the real kernel gets wrong: always in some orders of events, and in others only by chance.

Who judges a cluster by its copies has to tell this from faults of the model, so the model keeps account of it
(`World.accidents`). What is decided by chance in the real kernel happens here only if somebody asked for it
(`World.chances`); the seed decides when.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Wrong(Enum):
    """The kinds of accident."""

    MARK_ERASED = "two members of one generation met, and the mark of a block that one of them lacks was dropped"
    NOT_SENT = "a write was only marked for a member that a third was about to copy to, and is up to date without it"
    ACKNOWLEDGED_BY_FAILING = "a write in flight on a primary that had been overtaken was reported as done"


@dataclass(frozen=True, slots=True)
class Accident:
    """One of them: on which node, which blocks, and the node id of the member that lacks them (or the node's own)."""

    at: float
    wrong: Wrong
    resource: str
    node: str
    lacking: int
    blocks: tuple[tuple[int, int], ...]


class Race(Enum):
    """What is seldom lost, by name."""

    LATE_GENERATION = "late-generation"
    """A primary that is quorate again takes its time over the new generation, and a second peer comes in between."""
    REFUSED_STATE = "refused-state"
    """A state that the peer tells is refused for want of quorum: the link to it is StandAlone for good."""
