"""Many things that one look shows at once, each of which holds until something is done to *it*.

One ``lvs`` shows every logical volume of a node. Were all of it in doubt whenever one of them is touched, n volumes
that are made at the same time would need n looks each. So each is marked by its name, and a look that began after the
mark clears it. The invariant that everybody relies on:

    what holds of a thing is what the last look showed of it, and no command of ours that could have changed that
    thing has begun, or ended, since that look began.

It rests on who marks. Before a command begins, and again after it has ended, however it ended, the hands mark all that
it changes (``Run.changes``): one name for a command on one thing, everything for one that changes what there is. A look
in the middle of a command may show what was before. So whoever changes a thing holds the name of its work meanwhile,
and nobody else who would change it, or let go of it, can begin. What others do to the machine nobody marks; looks from
time to time find it.
"""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")


class Sightings(Generic[T]):
    """What one look showed, and of which things of it that still holds."""

    __slots__ = ("_all_marked", "_marked", "_moment", "_seen", "_value", "error", "known")

    def __init__(self) -> None:
        #: Whether anybody has ever looked.
        self.known = False
        #: Why the last look failed; "" after one that did not.
        self.error = ""
        self._value: T | None = None
        #: How often anything was marked.
        self._moment = 0
        #: At which moment everything was last marked…
        self._all_marked = 0
        #: … and each thing that has not been seen since.
        self._marked: dict[str, int] = {}
        #: At which moment the look began that showed the value.
        self._seen = 0

    @property
    def value(self) -> T | None:
        """What was seen, whether it holds or not; None before the first look."""
        return self._value

    @property
    def current(self) -> bool:
        """Whether all of it holds."""
        return self.holds() and not self._marked

    @property
    def moment(self) -> int:
        """Take it before a look begins, and hand it to :meth:`saw`."""
        return self._moment

    def holds(self, *names: str) -> bool:
        """Whether what was seen of these things holds; without any, whether at least what there is does."""
        if not self.known or self._all_marked > self._seen:
            return False
        return not self._marked or not any(name in self._marked for name in names)

    def mark(self, name: str) -> None:
        """Something is about to be done to one thing, or has been."""
        self._moment += 1
        self._marked[name] = self._moment

    def mark_all(self) -> None:
        """Something is about to be done to what there is, or has been."""
        self._moment += 1
        self._all_marked = self._moment

    def saw(self, value: T, *, moment: int) -> bool:
        """A look that began at ``moment`` has seen this; returns whether that is news: no later look was before it."""
        if self.known and moment < self._seen:
            return False
        self._value, self._seen, self.known, self.error = value, moment, True, ""
        self._marked = {name: marked for name, marked in self._marked.items() if marked > moment}
        return True

    def failed(self, why: str, *, moment: int) -> None:
        """A look that began at ``moment`` has failed. What was seen before is kept, and nothing of it holds."""
        self.error = why
        if moment >= self._seen:
            self.mark_all()
