"""Wake-ups that are not in the store: an event of the kernel, a piece of work on hardware that has ended."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from quorate.engine.keys import Key


class Source(Protocol):
    """Whatever wakes keys."""

    def subscribe(self, listener: Callable[[Key], None]) -> Callable[[], None]:
        """Call ``listener`` with each key; returns what ends it."""


class Signal:
    """What a process tells its own controllers. A controller names it in ``signals``; its keys are then woken."""

    def __init__(self) -> None:
        self._listeners: list[Callable[[Key], None]] = []

    def wake(self, key: Key) -> None:
        """Ask for a pass over this key. Before anybody listens nothing is lost: the first pass looks at everything."""
        for listener in self._listeners:
            listener(key)

    def subscribe(self, listener: Callable[[Key], None]) -> Callable[[], None]:
        """Call ``listener`` with each key; returns what ends it."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def only(self, concerned: Callable[[Key], bool]) -> Source:
        """The same for a controller with nothing to do about most keys: those that it is concerned with."""
        return _Part(self, concerned)


class _Part:
    def __init__(self, whole: Signal, concerned: Callable[[Key], bool]) -> None:
        self._whole = whole
        self._concerned = concerned

    def subscribe(self, listener: Callable[[Key], None]) -> Callable[[], None]:
        concerned = self._concerned
        return self._whole.subscribe(lambda key: listener(key) if concerned(key) else None)
