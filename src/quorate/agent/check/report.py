"""What a check comes to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    """How an item is."""

    OK = "ok"
    MISSING = "missing"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that a node needs, or can use."""

    name: str
    state: State
    #: What was found.
    found: str
    #: What it is for.
    purpose: str
    #: How to mend it; "" when there is nothing to mend.
    fix: str = ""
    #: Whether an agent cannot do its work without it.
    required: bool = True


def passed(items: Iterable[Item]) -> bool:
    """Whether everything that is required is there."""
    return all(item.state is State.OK for item in items if item.required)
