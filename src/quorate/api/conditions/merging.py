"""Putting verdicts beside the conditions that are there. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Any, TypeVar, cast, overload

from quorate.api.conditions.declaration import ConditionType, Verdict
from quorate.api.meta import Condition, ConditionStatus, Resource
from quorate.api.struct import replace

R = TypeVar("R", bound=Resource)
C = TypeVar("C", bound=Condition)

Conditions = tuple[Condition, ...]

#: What the schema allows.
_MAX_MESSAGE = 32768


def find(conditions: Conditions, wanted: type[ConditionType]) -> Condition | None:
    """The condition of that type, if there."""
    name = wanted.__name__
    for condition in conditions:
        if condition.type == name:
            return condition
    return None


def is_true(conditions: Conditions, wanted: type[ConditionType]) -> bool:
    """Whether the condition is there and True."""
    found = find(conditions, wanted)
    return found is not None and found.status is ConditionStatus.TRUE


@overload
def merge(
    current: tuple[()],
    verdicts: Iterable[Verdict],
    *,
    now: datetime,
    generation: int | None = None,
    drop: Collection[type[ConditionType]] = (),
) -> tuple[Any, ...]: ...
@overload
def merge(
    current: tuple[C, ...],
    verdicts: Iterable[Verdict],
    *,
    now: datetime,
    generation: int | None = None,
    drop: Collection[type[ConditionType]] = (),
) -> tuple[C, ...]: ...
def merge(
    current: tuple[C, ...],
    verdicts: Iterable[Verdict],
    *,
    now: datetime,
    generation: int | None = None,
    drop: Collection[type[ConditionType]] = (),
) -> tuple[C, ...]:
    """The conditions with these verdicts in place of older ones, and without those to drop; others stay as they are.

    ``lastTransitionTime`` moves only when a status flips. When nothing changes, the same tuple comes back: what is not
    new is not written. What a kind's conditions have beside those of all others is never ours to say.
    """
    merged: dict[str, Condition] = {condition.type: condition for condition in current}
    changed = False
    for verdict in verdicts:
        old, message = merged.get(verdict.type), verdict.message
        # Nearly all say exactly this already, in nearly every pass.
        if (
            old is None
            or old.status is not verdict.status
            or old.reason != verdict.reason
            or old.observed_generation != generation
            or (old.message != message and old.message != message[:_MAX_MESSAGE])
        ):
            merged[verdict.type] = _updated(old, verdict, now, generation)
            changed = True
    for unwanted in drop:
        changed = merged.pop(unwanted.__name__, None) is not None or changed
    return cast("tuple[C, ...]", tuple(merged.values())) if changed or len(merged) != len(current) else current


def told(obj: R, verdicts: Iterable[Verdict], *, now: datetime, **fields: Any) -> R:
    """The object with these verdicts in its status, for its present generation; and with these fields of the status."""
    status, generation = cast("Any", obj).status, obj.metadata.generation
    conditions = merge(status.conditions, verdicts, now=now, generation=generation)
    return replace(obj, status=replace(status, observed_generation=generation, conditions=conditions, **fields))


def _updated(old: Condition | None, verdict: Verdict, now: datetime, generation: int | None) -> Condition:
    return Condition(
        type=verdict.type,
        status=verdict.status,
        reason=verdict.reason,
        message=verdict.message[:_MAX_MESSAGE],
        # Whole seconds, as Kubernetes writes its own.
        last_transition_time=(
            now.replace(microsecond=0) if old is None or old.status is not verdict.status else old.last_transition_time
        ),
        observed_generation=generation,
    )
