"""Wake-ups that are not in the store: an event of the kernel, a piece of work on hardware that has ended."""

from __future__ import annotations

from collections.abc import Callable

from quorate.engine.keys import Key


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
