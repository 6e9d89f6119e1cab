"""Decisions in slices: a request of hundreds of actions is weighed a few at a time, and everybody else goes on between.

Why this is as good as weighing it in one go: every change of the model, by the cluster, by a lock or by the
configuration, counts up its ``version``. If that is another after a slice, all that was found out is thrown away and
the request is weighed anew. So what is returned was found on a model that was the same from the first action to the
last; and it is returned without another pause, so it is still the same when the caller holds what was granted. That is
the answer of a decision made in one go at that last moment. The time it goes by is when it began: nothing ends earlier
by that. What a volume has claimed meanwhile is found out where the grant is held in the lock table, as ever.

A cluster that never rests must not keep a large request waiting for ever: after a few attempts as much of it is weighed
as fits in one slice. The rest of a partial request is put off; one that goes as a whole is ``Disturbed``.
"""

from __future__ import annotations

import asyncio
from typing import Final

from quorate.maintenance.entries import RequestEntry
from quorate.maintenance.evaluation import Evaluation
from quorate.maintenance.model import ClusterModel
from quorate.maintenance.rules import evaluation_steps

#: Replicas weighed in one go (an action counts as ten more): a few milliseconds, where nothing is in the way.
SLICE: Final = 200
#: How often a request is begun anew because the cluster has changed; and how many slices the last attempt is long.
ATTEMPTS: Final = 5
LAST: Final = 4


class Disturbed(Exception):
    """The cluster changed faster than a request could be weighed that goes as a whole or not at all."""


async def weigh(model: ClusterModel, request: RequestEntry, now: int) -> Evaluation:
    """What of a request may be done now. The caller acts on the answer at once, before anything else can happen."""
    for _ in range(ATTEMPTS):
        found = await _attempt(model, request, now)
        if found is not None:
            return found
    return _as_far_as_it_fits(model, request, now)


async def _attempt(model: ClusterModel, request: RequestEntry, now: int) -> Evaluation | None:
    """None: the model changed in between."""
    version, done = model.version, 0
    steps = evaluation_steps(model, request, now)
    while True:
        try:
            done += next(steps)
        except StopIteration as end:
            found: Evaluation = end.value
            return found
        if done >= SLICE:
            done = 0
            await asyncio.sleep(0)
            if model.version != version:
                return None


def _as_far_as_it_fits(model: ClusterModel, request: RequestEntry, now: int) -> Evaluation:
    steps = evaluation_steps(model, request, now)
    done = 0
    enough: bool | None = None
    while True:
        try:
            done += steps.send(enough)
        except StopIteration as end:
            found: Evaluation = end.value
            return found
        if done >= SLICE * LAST:
            if not request.partial_permission_allowed:
                raise Disturbed(
                    f"the cluster changed {ATTEMPTS} times while {len(request.actions)} actions were weighed"
                )
            enough = True
