"""Conditions: what is true of an object now, why, and what a person can do about it.

Each module declares the conditions of one kind, a class per condition, a constant per reason with its human text:

    from quorate.api import conditions
    from quorate.api.conditions import rvr

    verdicts = [rvr.Scheduled.NO_SPACE("n1: 3Gi of 10Gi free; n2: cordoned"), rvr.Quorum.QUORUM_STATUS()]
    new = conditions.merge(replica.status.conditions, verdicts, now=now, generation=replica.metadata.generation)

``new is replica.status.conditions`` when nothing changed: a no-op writes nothing.
"""

from __future__ import annotations

from quorate.api.conditions.declaration import ConditionType, Reason, ReasonCodes, Verdict
from quorate.api.conditions.merging import find, is_true, merge, told

__all__ = ["ConditionType", "Reason", "ReasonCodes", "Verdict", "find", "is_true", "merge", "told"]
