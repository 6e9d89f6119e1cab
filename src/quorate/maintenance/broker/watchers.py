"""Those who are told of changes as they happen, instead of asking again and again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Final

from quorate.maintenance.entries import RequestEntry
from quorate.maintenance.messages import Change, ChangeKind

#: Changes that wait for a watcher. One that falls further behind is let go: it lists and watches again.
BACKLOG: Final = 10_000


class Watcher:
    """One of them: an async iterator of changes. Close it (``aclosing``) to stop."""

    def __init__(self, watchers: Watchers, *, user: str, request_id: str, reasons: bool) -> None:
        self.reasons = reasons
        self.user = user
        self.request_id = request_id
        self._watchers = watchers
        self._changes: asyncio.Queue[Change | None] = asyncio.Queue()
        self._over = False

    def interested(self, change: Change) -> bool:
        """Whether it is to be told."""
        if change.only_reasons and not self.reasons:
            return False
        if self.request_id and (change.kind is not ChangeKind.REQUEST or change.id != self.request_id):
            return False
        return not self.user or change.owner == self.user

    def stands_for(self, entry: RequestEntry) -> bool:
        """Whether its being there means that somebody still waits for a request."""
        if self.request_id:
            return entry.id == self.request_id
        return bool(self.user) and entry.owner == self.user

    def tell(self, change: Change) -> None:
        """One more; or the end, if it has not kept up."""
        if self._changes.qsize() < BACKLOG:
            self._changes.put_nowait(change)
        else:
            self.end()

    def end(self) -> None:
        """What it has not taken yet it may still take; then its iteration ends."""
        self._watchers.remove(self)
        self._changes.put_nowait(None)

    def __aiter__(self) -> AsyncIterator[Change]:
        return self

    async def __anext__(self) -> Change:
        change = None if self._over else await self._changes.get()
        if change is None:
            self._over = True
            raise StopAsyncIteration
        return change

    async def aclose(self) -> None:
        """Watch no more."""
        self._watchers.remove(self)
        self._over = True


class Watchers:
    """All of them."""

    def __init__(self) -> None:
        self._all: list[Watcher] = []

    def __bool__(self) -> bool:
        return bool(self._all)

    def add(self, *, user: str, request_id: str, reasons: bool) -> Watcher:
        """One more; ``reasons``: also when an answer is the same, but for another reason."""
        watcher = Watcher(self, user=user, request_id=request_id, reasons=reasons)
        self._all.append(watcher)
        return watcher

    def remove(self, watcher: Watcher) -> None:
        """One less; also if it is gone already."""
        if watcher in self._all:
            self._all.remove(watcher)

    def tell(self, changes: Iterable[Change]) -> None:
        """All who want to know."""
        for change in changes:
            for watcher in tuple(self._all):
                if watcher.interested(change):
                    watcher.tell(change)

    def waiting_for(self, entry: RequestEntry) -> bool:
        """Whether somebody watches a request in particular, or all of its owner's."""
        return any(watcher.stands_for(entry) for watcher in self._all)

    def end(self) -> None:
        """Nobody leads here any more: everybody is to look elsewhere."""
        for watcher in tuple(self._all):
            watcher.end()
