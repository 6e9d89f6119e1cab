"""Tries that may have failed before: what is said of them, and when they are made again."""

from __future__ import annotations

from datetime import datetime

from quorate.agent.backoff import wait_before_trying
from quorate.agent.lvm.failures import meaning, words_of
from quorate.agent.lvm.piece import Decision, Piece, Work, failed
from quorate.api.storage.llv import LVMLogicalVolumeStatus
from quorate.api.struct import replace


def attempt(
    piece: Piece, status: LVMLogicalVolumeStatus, work: Work, now: datetime, *, still_usable: bool = False
) -> Decision:
    """Do the work, unless it failed lately. A failure is reported until the same step succeeds.

    ``still_usable``: the failure of this work leaves the volume as usable as it was.
    """
    lasts = [(step, piece.outcomes.get(step.purpose)) for step in work.steps]
    pause = max(wait_before_trying(last, now, step.about) for step, last in lasts)
    failures = [last for _, last in lasts if last is not None and not last.succeeded]
    if failures:
        latest = max(failures, key=lambda failure: failure.at)
        reason, message = meaning(latest).code, words_of(latest)
        status = replace(status, reason=reason, message=message) if still_usable else failed(status, reason, message)
    return Decision(status, retry_after=pause) if pause > 0 else Decision(status, work)
