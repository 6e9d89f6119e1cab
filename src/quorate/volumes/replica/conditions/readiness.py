"""Ready: the conjunction of the others, with the first thing that is missing as its reason. For people (M23)."""

from __future__ import annotations

from quorate.api.conditions import Verdict
from quorate.api.conditions.rvr import (
    AddressConfigured,
    ConfigurationAdjusted,
    Configured,
    DevicesReady,
    DiskIOSuspended,
    InitialSync,
    InSync,
    Quorum,
    Ready,
    Scheduled,
)
from quorate.api.meta import ConditionStatus
from quorate.volumes.replica import holding
from quorate.volumes.replica.subject import Subject, Verdicts

_FALSE, _TRUE = ConditionStatus.FALSE, ConditionStatus.TRUE

#: What must be so, in the order in which it comes to be: the condition, what it must not be, and the reason if it is.
_OF_A_NEWCOMER = (
    (Scheduled, (_FALSE, ConditionStatus.UNKNOWN), Ready.NOT_SCHEDULED),
    (AddressConfigured, (_FALSE,), Ready.ADDRESS_NOT_CONFIGURED),
)
_OF_A_MEMBER = (
    (ConfigurationAdjusted, (_FALSE,), Ready.ADJUSTMENT_FAILED),
    (DevicesReady, (_FALSE,), Ready.DEVICES_ARE_NOT_READY),
    (InitialSync, (_FALSE,), Ready.WAITING_FOR_INITIAL_SYNC),
    (Quorum, (_FALSE,), Ready.NO_QUORUM),
    (DiskIOSuspended, (_TRUE,), Ready.DISK_IO_SUSPENDED),
    (InSync, (_FALSE,), Ready.OUT_OF_SYNC),
    (Configured, (_FALSE,), Ready.NOT_CONFIGURED),
)


def ready(subject: Subject, others: Verdicts) -> Verdict:
    """Everything that a replica is there for, it does."""
    if subject.replica.replica.deleting:
        wait = holding.hold(subject.snapshot, subject.replica)
        reason = Ready.NODE_DOWN if wait.reason == Ready.NODE_DOWN.code else Ready.TERMINATING
        return reason(wait.message)
    if subject.silent:
        silent = f"the agent of {subject.replica.node_name} has not reported lately"
        return Ready.AGENT_NOT_READY(subject.blind or silent)
    for condition, bad, reason in (*_OF_A_NEWCOMER, *_OF_A_MEMBER) if subject.is_member else _OF_A_NEWCOMER:
        found = others[condition.__name__]
        if found.status in bad:
            return reason(f"{found.reason}: {found.message}")
    if subject.view.rv is None:
        return Ready.NOT_CONFIGURED(f"there is no ReplicatedVolume {subject.view.name}")
    if not subject.is_member:
        return Ready.NOT_CONFIGURED("not a member of the datamesh yet")
    return Ready.READY()
