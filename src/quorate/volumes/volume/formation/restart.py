"""Restarting: what a formation that failed has made is taken away, and a new one begins.

That it restarts was written before anything is deleted, so a crash in between is seen; with that write nobody is a
member any more, so ``replica`` lets go of them, but for their agents' finalizers: a node that is down holds the restart
until it is back, or its Node object is deleted. The configuration is kept (M10), and so is the device minor; the secret
is not.
"""

from __future__ import annotations

from datetime import datetime

from quorate.engine import Delete, Write
from quorate.volumes.view import VolumeView
from quorate.volumes.volume import leftovers
from quorate.volumes.volume.formation.steps import begin, waiting
from quorate.volumes.volume.outcome import Outcome
from quorate.volumes.volume.remains import remains
from quorate.volumes.volume.replicas import deletions


def clear_away(view: VolumeView, now: datetime) -> Outcome:
    """Delete, until nothing is left; then begin again."""
    if wait := remains(view):
        ended: tuple[Write, ...] = ()
        if view.operation is not None and not view.operation.deleting:
            ended = (Delete(view.operation),)
        writes = (*ended, *deletions(view.replicas), *leftovers.clear(view))
        return waiting(view, now, wait, writes=writes)
    return begin(view, now)
