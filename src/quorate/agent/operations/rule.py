"""What is decided about an operation, whatever it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final

from quorate.agent.operations import activity_log, comparison, first_data, rejoining, zeroing
from quorate.agent.operations.case import LATER, Case, Ruling, failed, pending
from quorate.agent.steps import KERNEL, Look
from quorate.api.reserved import why_no_resource
from quorate.api.storage.drbdrop import OperationPhase, OperationType

_Decision = Callable[[Case, datetime], Ruling]

#: By type: whether it may begin, and how it goes on.
_TYPES: Final[Mapping[OperationType, tuple[_Decision, _Decision]]] = {
    OperationType.CREATE_NEW_UUID: (first_data.begin, first_data.go_on),
    OperationType.VERIFY: (comparison.begin, comparison.go_on),
    OperationType.REJOIN: (rejoining.begin, rejoining.go_on),
    OperationType.ZERO_RANGE: (zeroing.begin, zeroing.go_on),
    OperationType.RENEW_ACTIVITY_LOG: (activity_log.begin, activity_log.go_on),
}


def rule(case: Case, now: datetime) -> Ruling:
    """One pass over one operation."""
    operation = case.operation
    known = _TYPES.get(operation.spec.type)
    if known is None:
        return failed(case, now, f"{operation.spec.type.value} is not supported by this agent")
    if why := why_no_resource(case.resource):
        return failed(case, now, why)
    if case.replica is None:
        return pending(case, f"waiting for the replica {operation.spec.drbd_resource_name} on this node")
    if case.busy:
        return Ruling(operation.status, again=LATER)
    if not case.current:
        # A replica that cannot be looked at says so itself, and looks again with patience.
        return Ruling(operation.status, steps=() if case.blind else (Look(KERNEL, case.resource),), again=LATER)
    begin, go_on = known
    return go_on(case, now) if operation.status.phase is OperationPhase.RUNNING else begin(case, now)
