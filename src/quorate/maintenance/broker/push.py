"""Tells watchers when a stored request would now be answered otherwise than before. It grants nothing.

Runs when the cluster or a lock has changed and somebody watches. One request is weighed at a time, and everybody else
goes on in between; a pass that took long is followed by a pause, so that this never takes most of the time.
"""

from __future__ import annotations

import asyncio
from typing import Final

from quorate.api.maintenance.action import StatusCode
from quorate.api.struct import replace
from quorate.maintenance.broker.answers import WAITING, bare, tried
from quorate.maintenance.broker.core import Core
from quorate.maintenance.entries import RequestEntry
from quorate.maintenance.messages import Action, Change, ChangeKind, ChangeVerb
from quorate.maintenance.rules import evaluate

#: A pass shorter than this, in seconds, needs no pause; a longer one so many times its own length.
_SHORT: Final = 0.01
_PAUSES: Final = 4.0

_Answer = tuple[StatusCode, tuple[Action, ...]]

#: What the owner of a stored request has been told: not now.
_NOT_NOW: Final[_Answer] = (StatusCode.DISALLOW_TEMP, ())


class Push:
    """Looks at the queue again and again."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._wake = asyncio.Event()
        self._told: dict[str, _Answer] = {}
        self._version = -1

    def wake(self) -> None:
        """Something changed."""
        self._wake.set()

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
            return
        for entry in core.book.queue():
            if core.book.requests.get(entry.id) is entry:
                self._weigh(entry)
            await asyncio.sleep(0)
        self._told = {key: value for key, value in self._told.items() if key in core.book.requests}

    def _weigh(self, entry: RequestEntry) -> None:
        core = self._core
        now = core.now()
        asking = replace(entry, actions=tuple(bare(action) for action in entry.actions))
        evaluation = evaluate(core.model, asking, now)
        answer = evaluation.code, tuple(grant.action for grant in evaluation.grants)
        if answer == self._told.get(entry.id, _NOT_NOW):
            return
        self._told[entry.id] = answer
        core.tell(
            [
                Change(
                    kind=ChangeKind.REQUEST,
                    verb=ChangeVerb.ANSWER,
                    id=entry.id,
                    owner=entry.owner,
                    object_uid=entry.object_uid,
                    answer=tried(
                        core.model, evaluation, now, request_id=entry.id if evaluation.code in WAITING else ""
                    ),
                )
            ]
        )
