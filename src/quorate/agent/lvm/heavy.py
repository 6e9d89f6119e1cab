"""Work that moves gigabytes: a few pieces at once, so that commands which run for hours leave slots for the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from quorate.agent.hands import Hands
from quorate.agent.lvm.piece import Work

#: How many run at once on a node.
AT_ONCE: Final = 4


class HeavyWork:
    """Starts it, or has who asked told when there may be room."""

    def __init__(self, hands: Hands) -> None:
        self._hands = hands
        self._started: set[str] = set()

    def start(self, work: Work, done: Callable[[], None]) -> None:
        """Begin it unless too much is under way. What hangs counts for nothing: it has given its slot back."""
        hands = self._hands
        self._started = {name for name in self._started if hands.busy(name) and not hands.hung(name)}
        if work.name in self._started or len(self._started) < AT_ONCE:
            self._started.add(work.name)
            hands.start(work.name, work.steps, done, beside=work.beside)
            return
        for name in self._started:
            hands.start(name, (), done)  # busy: nothing begins, and its end is told
