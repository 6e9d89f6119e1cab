"""Who is away since when, and was away before: what the monitor remembers of nodes and drives.

An absence that goes on has no end yet, and nothing is written while it lasts. When the broker was not there to see it
end, it ended when the broker last lived: what nobody saw is not held against a drive.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from quorate.maintenance.monitor.spans import Span, joined, without_old


@dataclass(frozen=True, slots=True)
class History:
    """Of one item."""

    over: tuple[Span, ...] = ()
    #: It is away since then.
    since: int | None = None
    reason: str = ""

    @property
    def changed_at(self) -> int:
        """When it last left or came back, as far as that is remembered."""
        if self.since is not None:
            return self.since
        return self.over[-1].end if self.over else 0

    def spans(self, now: int) -> tuple[Span, ...]:
        """With the one that goes on, until now."""
        return self.over if self.since is None else (*self.over, Span(self.since, now, self.reason))


class Absences:
    """The histories of all items that have one. Items are named ``node-<id>`` or as their device."""

    def __init__(self, histories: Mapping[str, History] | None = None, *, last_lived: int = 0) -> None:
        self._histories = dict(histories or {})
        self._unseen = {item for item, history in self._histories.items() if history.since is not None}
        self._last_lived = last_lived

    def items(self) -> Mapping[str, History]:
        """All histories."""
        return self._histories

    def of(self, item: str) -> History:
        """Empty for one that was never away."""
        return self._histories.get(item, _BLANK)

    def see(self, item: str, *, away: bool, reason: str, now: int, gap: int) -> bool:
        """How it is now; whether that changes its history."""
        before = self.of(item)
        unseen = item in self._unseen
        self._unseen.discard(item)
        if away:
            after = before if before.since is not None else History(before.over, now, reason)
        elif before.since is not None:
            end = min(max(self._last_lived, before.since), now) if unseen else now
            after = History(joined((*before.over, Span(before.since, end, before.reason)), gap))
        else:
            after = before
        after = History(without_old(after.over, now, gap), after.since, after.reason)
        if after == before:
            return False
        if after == _BLANK:
            del self._histories[item]
        else:
            self._histories[item] = after
        return True

    def forget(self, item: str) -> bool:
        """It is not part of the cluster any more."""
        self._unseen.discard(item)
        return self._histories.pop(item, None) is not None


_BLANK = History()
