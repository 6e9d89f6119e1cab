"""What a controller is: two functions, and what wakes them.

``observe`` gathers from the caches everything that matters for one key; it returns None when there is nothing to do
any more. ``decide`` turns that, the time and a source of randomness into a Plan. Both are synchronous and pure: they
can be called a million times in a test. ``docs/writing-a-controller.md`` walks through a real one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from random import Random
from typing import Any, Generic, TypeVar

from quorate.api.meta import Resource
from quorate.engine.index import Index
from quorate.engine.keys import Key, key_of
from quorate.engine.plan import Plan
from quorate.engine.reader import Reader
from quorate.engine.signal import Source

R = TypeVar("R", bound=Resource)
S = TypeVar("S")


def own_key(obj: Resource) -> Iterable[Key]:
    """The usual map function: an object wakes its own key."""
    return (key_of(obj),)


def no_keys(_: Resource) -> Iterable[Key]:
    """For kinds that are only read: they are cached, and wake nobody."""
    return ()


@dataclass(frozen=True, slots=True)
class Watch(Generic[R]):
    """A kind whose changes wake a controller."""

    cls: type[R]
    #: Which keys an object concerns. Asked about the object before and after a change, so that a child that moves from
    #: one parent to another wakes both.
    keys: Callable[[R], Iterable[Key]] = own_key
    #: Whether a change matters at all, given the object before and after it (None: not there). All do by default.
    when: Callable[[R | None, R | None], bool] | None = None
    #: Seconds that a change can wait, because more of its sort is likely to follow: then one pass is for all of it.
    patience: Callable[[R | None, R | None], float] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Controller(Generic[S]):
    """A name, what wakes it, and its two functions."""

    name: str
    watches: tuple[Watch[Any], ...]
    observe: Callable[[Reader, Key], S | None]
    decide: Callable[[S, datetime, Random], Plan]
    #: Indexes that ``observe`` reads. Two controllers that name the same index must mean the same one.
    indexes: tuple[Index[Any], ...] = ()
    #: Kinds of which ``observe`` asks how long they have been silent (``reader.silent_for``).
    freshness: tuple[type[Resource], ...] = ()
    #: Keys that are looked at even if no object wakes them: of what must exist, although it may not yet.
    always: tuple[Key, ...] = ()
    #: What else wakes keys, beside the store. Agents have such.
    signals: tuple[Source, ...] = ()
    #: How many keys are worked on at once. One for controllers that give out unique numbers.
    workers: int = 4
    #: After a pass that found nothing to do, a key that is woken waits until so many seconds have passed since: what
    #: comes in bursts is looked at once. A pass that did something is followed at once.
    rest: float = 0.0
    #: Seconds after which a pass is given up.
    timeout: float = 60.0
