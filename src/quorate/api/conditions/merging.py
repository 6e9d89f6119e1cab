"""Putting verdicts beside the conditions that are there. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime

from quorate.api.conditions.declaration import ConditionType, Verdict
from quorate.api.meta import Condition, ConditionStatus

Conditions = tuple[Condition, ...]

#: What the schema allows.
_MAX_MESSAGE = 32768


def find(conditions: Conditions, wanted: type[ConditionType]) -> Condition | None:
    """The condition of that type, if there."""
    return next((condition for condition in conditions if condition.type == wanted.__name__), None)


def is_true(conditions: Conditions, wanted: type[ConditionType]) -> bool:
    """Whether the condition is there and True."""
    found = find(conditions, wanted)
    return found is not None and found.status is ConditionStatus.TRUE


def merge(
    current: Conditions,
    verdicts: Iterable[Verdict],
    *,
    now: datetime,
    generation: int | None = None,
    drop: Collection[type[ConditionType]] = (),
) -> Conditions:
    """The conditions with these verdicts in place of older ones, and without those to drop; others stay as they are.

    ``lastTransitionTime`` moves only when a status flips. When nothing changes, the same tuple comes back: what is not
    new is not written.
    """
    merged = {condition.type: condition for condition in current}
    for verdict in verdicts:
        merged[verdict.type] = _updated(merged.get(verdict.type), verdict, now, generation)
    for unwanted in drop:
        merged.pop(unwanted.__name__, None)
    result = tuple(merged.values())
    same = len(result) == len(current) and all(new is old for new, old in zip(result, current, strict=True))
    return current if same else result


def _updated(old: Condition | None, verdict: Verdict, now: datetime, generation: int | None) -> Condition:
    flipped = old is None or old.status is not verdict.status
    condition = Condition(
        type=verdict.type,
        status=verdict.status,
        reason=verdict.reason,
        message=verdict.message[:_MAX_MESSAGE],
        # Whole seconds, as Kubernetes writes its own.
        last_transition_time=now.replace(microsecond=0) if old is None or flipped else old.last_transition_time,
        observed_generation=generation,
    )
    return old if old is not None and condition == old else condition
