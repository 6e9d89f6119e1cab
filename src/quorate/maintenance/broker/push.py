"""Tells watchers when a stored request would now be answered otherwise than before, also why. It grants nothing.

Runs, if somebody watches, when the cluster or a lock has changed, or when the moment has come at which an answer can.
One request is weighed at a time, in slices, and everybody else goes on in between; a pass that took long is followed
by a pause, so that this never takes most of the time.
"""

from __future__ import annotations

import asyncio
from typing import Final

from quorate.api.maintenance.action import Blocker, Issue, LockKind, StatusCode
from quorate.api.struct import replace
from quorate.maintenance.broker.answers import WAITING, bare, in_short, tried
from quorate.maintenance.broker.core import Core
from quorate.maintenance.broker.watchers import Watcher
from quorate.maintenance.entries import RequestEntry
from quorate.maintenance.messages import Action, Change, ChangeKind, ChangeVerb
from quorate.maintenance.moments import FOREVER, later
from quorate.maintenance.slices import Disturbed, weigh

#: A pass shorter than this, in seconds, needs no pause; a longer one so many times its own length.
_SHORT: Final = 0.01
_PAUSES: Final = 4.0

#: What is answered, what would be granted, and why the rest is not.
_Answer = tuple[StatusCode, tuple[Action, ...], tuple[Issue, ...]]

#: What the owner of a stored request has been told: not now.
_NOT_NOW: Final = (StatusCode.DISALLOW_TEMP, ())


class Push:
    """Looks at the queue again and again."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._wake = asyncio.Event()
        #: Of each request: what its answer was when last told, and how.
        self._told: dict[str, tuple[_Answer, Change | None]] = {}
        # No answer is another before the model's version is, or before this moment.
        self._version = -1
        self._next = 0

    def wake(self) -> None:
        """Something changed, or time has passed."""
        self._wake.set()

    def greet(self, watcher: Watcher) -> None:
        """Somebody has begun to watch: they learn what others were told already."""
        for answer, change in self._told.values():
            if change is not None and answer[:2] != _NOT_NOW and watcher.interested(change):
                watcher.tell(change)
        self.wake()

    async def run(self) -> None:
        """Until cancelled."""
        clock = self._core.clock
        while True:
            await self._wake.wait()
            self._wake.clear()
            began = clock.monotonic()
            await self._look()
            took = clock.monotonic() - began
            if took > _SHORT:
                await clock.sleep(took * _PAUSES)

    async def _look(self) -> None:
        core = self._core
        if core.lost or core.closed or not core.watchers:
            self._told.clear()
            self._version = -1
            return
        now = core.now()
        if core.model.version == self._version and now < self._next:
            return
        self._version, self._next = core.model.version, later(now, core.retry)
        for entry in core.book.queue():
            if core.book.requests.get(entry.id) is entry:
                await self._weigh(entry)
            await asyncio.sleep(0)
        self._told = {key: told for key, told in self._told.items() if key in core.book.requests}

    async def _weigh(self, entry: RequestEntry) -> None:
        core = self._core
        now = core.now()
        asking = replace(entry, actions=tuple(bare(action) for action in entry.actions))
        try:
            evaluation = await weigh(core.model, asking, now)
        except Disturbed:
            self.wake()  # it is looked at again; the model is another by now
            return
        if core.book.requests.get(entry.id) is not entry:
            return
        self._next = min(self._next, *(refusal.deadline or FOREVER for refusal in evaluation.refusals), FOREVER)
        answer = evaluation.code, tuple(grant.action for grant in evaluation.grants), _why(evaluation.left)
        known = self._told.get(entry.id)
        before = known[0] if known is not None else (*_NOT_NOW, _why(entry.actions))
        if answer == before:
            return
        if known is None and (*answer[:2], _why(tuple(map(in_short, evaluation.left)))) == before:
            # As far as the ledger keeps it, it is what its owner was answered.
            self._told[entry.id] = answer, None
            return
        change = Change(
            kind=ChangeKind.REQUEST,
            verb=ChangeVerb.ANSWER,
            id=entry.id,
            owner=entry.owner,
            object_uid=entry.object_uid,
            answer=tried(core.model, evaluation, now, request_id=entry.id if evaluation.code in WAITING else ""),
            only_reasons=answer[:2] == before[:2],
        )
        self._told[entry.id] = answer, change
        core.tell([change])


def _why(actions: tuple[Action, ...]) -> tuple[Issue, ...]:
    """Why these are refused, but for what moves on whenever somebody asks: when a place in the queue falls silent."""
    return tuple(
        replace(action.issue, blockers=tuple(map(_standing_still, action.issue.blockers)))
        for action in actions
        if action.issue is not None
    )


def _standing_still(blocker: Blocker) -> Blocker:
    return replace(blocker, until=None) if blocker.lock is LockKind.SCHEDULED_REQUEST else blocker
