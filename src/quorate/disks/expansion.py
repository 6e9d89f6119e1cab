"""Growing on several disks at once: all or nothing (M13). Pure, and without any memory of its own.

| what the disks say                                     | then                                                        |
|--------------------------------------------------------|-------------------------------------------------------------|
| all have granted the new sizes                         | GRANTED: the volume may grow                                |
| one has rejected, or would, as its ledger stands       | REFUSED: every request goes back to the size it had         |
| not all are asked                                      | the others are asked                                        |
| all are asked, some have not answered                  | PENDING                                                     |

Because a disk that visibly has no room is not asked at all, a refused expansion does not ask again and again: it is
worth another try when ``expand`` itself stops saying REFUSED. Going back also clears the rejection itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from quorate.api.longhorn import DiskSchedule
from quorate.disks.entries import Entry, requested
from quorate.disks.requests import Refusal, State, ask, describe, read, refusal
from quorate.engine import Patch


@dataclass(frozen=True, slots=True)
class Growth:
    """One disk's part: an entry that has a size and is to get another."""

    schedule: DiskSchedule
    entry: Entry
    #: What its logical volume has now, and what the entry goes back to.
    size: int
    larger: int

    def __post_init__(self) -> None:
        if self.larger < self.size:
            raise ValueError(f"{self.entry.name} cannot grow from {self.size} to {self.larger} bytes: that is less")


@dataclass(frozen=True, slots=True)
class Expansion:
    """How far it is, and what is to be written for it."""

    state: State
    writes: tuple[Patch, ...] = ()
    #: With REJECTED: every disk that says no, and why.
    refusals: tuple[Refusal, ...] = ()
    message: str = ""


def expand(parts: Sequence[Growth]) -> Expansion:
    """The next step of an expansion. Call it on every pass; the writes of a pass are decided from what it sees."""
    answers = [(part, read(part.schedule, part.entry, part.larger)) for part in parts]
    if all(answer.state is State.GRANTED for _, answer in answers):
        return Expansion(State.GRANTED)
    against: list[tuple[Growth, Refusal]] = []
    for part, answer in answers:
        said = answer.refusal
        if answer.state is State.NOT_ASKED:
            said = refusal(part.schedule, part.entry, part.larger)
        if said is not None:
            against.append((part, said))
    if against:
        message = "; ".join(describe(part.schedule, said) for part, said in against)
        return Expansion(State.REJECTED, roll_back(parts), tuple(said for _, said in against), message)
    unasked = [part for part, answer in answers if answer.state is State.NOT_ASKED]
    return Expansion(State.PENDING, tuple(ask(part.schedule, part.entry, part.larger) for part in unasked))


def roll_back(parts: Sequence[Growth]) -> tuple[Patch, ...]:
    """Go back to the sizes that are in use: after a refusal, or when nobody wants the growth any more."""
    return tuple(
        ask(part.schedule, part.entry, part.size)
        for part in parts
        if requested(part.schedule, part.entry) not in (None, part.size)
    )
