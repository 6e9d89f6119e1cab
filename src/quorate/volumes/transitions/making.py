"""A transition of which nothing has begun, with its steps as the catalogue has them."""

from __future__ import annotations

from datetime import datetime

from quorate.api.scalars import ReplicaName
from quorate.api.storage.datamesh import Step, StepStatus, Transition, TransitionType
from quorate.api.storage.drbd import ReplicaType
from quorate.volumes.transitions.catalogue import group_of, steps_of
from quorate.volumes.transitions.members import has_tie_breaker
from quorate.volumes.view import VolumeView


def make(
    view: VolumeView,
    kind: TransitionType,
    now: datetime,
    name: ReplicaName | None = None,
    *,
    before: ReplicaType | None = None,
    after: ReplicaType | None = None,
) -> Transition:
    """A transition of which nothing has begun."""
    tie_breaker = has_tie_breaker(view)
    retyped = kind is TransitionType.CHANGE_REPLICA_TYPE
    rules = steps_of(kind, before=before, after=after, tie_breaker=tie_breaker)
    return Transition(
        type=kind,
        group=group_of(kind, before, after, tie_breaker=tie_breaker),
        replica_name=name,
        replica_type=None if retyped else (before or after),
        from_replica_type=before if retyped else None,
        to_replica_type=after if retyped else None,
        started_at=now,
        steps=tuple(Step(name=rule.name, status=StepStatus.PENDING) for rule in rules),
    )
