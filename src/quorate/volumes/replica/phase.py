"""A replica's phase and message: a summary for people, the first that fits. No code reads it.

| phase              | when                                                                        |
|--------------------|-----------------------------------------------------------------------------|
| Terminating        | being deleted                                                               |
| Pending            | no node or disk yet                                                         |
| AgentNotReady      | its agent is silent                                                         |
| Provisioning       | its logical volume is not ready                                             |
| Configuring        | no address yet                                                              |
| WaitingForDatamesh | ready to join                                                               |
| Progressing        | a member that has not had its first data, or has not realised its revision  |
| Critical           | I/O stands, or quorum is lost                                               |
| Synchronizing      | its copy is being brought up to date                                        |
| Degraded           | its copy is not up to date                                                  |
| PartiallyDegraded  | it does not see every peer                                                  |
| Healthy            | otherwise                                                                   |

Quorum counts as lost only for a member that has been in sync, of a volume that has been formed: before, it has none
yet, and nobody is to be woken for it.
"""

from __future__ import annotations

from typing import NamedTuple

from quorate.api.conditions.rvr import (
    AddressConfigured,
    BackingVolumeReady,
    DiskIOSuspended,
    DRBDConfigured,
    FullyConnected,
    InitialSync,
    InSync,
    Quorum,
    Ready,
    Scheduled,
)
from quorate.api.meta import ConditionStatus
from quorate.api.storage.rvr import ReplicaPhase
from quorate.volumes.replica.subject import Subject, Verdicts
from quorate.volumes.waits import shortened

_FALSE, _TRUE = ConditionStatus.FALSE, ConditionStatus.TRUE
#: What ``status.message`` has room for.
_LIMIT = 1024


class Summary(NamedTuple):
    """The two fields."""

    phase: ReplicaPhase
    message: str


_BEFORE = (
    (BackingVolumeReady, (_FALSE,), ReplicaPhase.PROVISIONING),
    (AddressConfigured, (_FALSE,), ReplicaPhase.CONFIGURING),
    (DRBDConfigured, (_FALSE,), ReplicaPhase.WAITING_FOR_DATAMESH),
)
_AS_A_MEMBER = (
    (InitialSync, (_FALSE,), ReplicaPhase.PROGRESSING),
    (DiskIOSuspended, (_TRUE,), ReplicaPhase.CRITICAL),
    (Quorum, (_FALSE,), ReplicaPhase.CRITICAL),
    (DRBDConfigured, (_FALSE,), ReplicaPhase.PROGRESSING),
    (InSync, (_FALSE,), ReplicaPhase.DEGRADED),
    (FullyConnected, (_FALSE,), ReplicaPhase.PARTIALLY_DEGRADED),
)


def summary(subject: Subject, verdicts: Verdicts) -> Summary:
    """Phase and message."""
    if subject.replica.replica.deleting:
        return _of(ReplicaPhase.TERMINATING, verdicts[Ready.__name__].message)
    if verdicts[Scheduled.__name__].status is not _TRUE:
        return _of(ReplicaPhase.PENDING, verdicts[Scheduled.__name__].message)
    if subject.silent:
        return _of(ReplicaPhase.AGENT_NOT_READY, verdicts[Ready.__name__].message)
    for condition, bad, phase in _AS_A_MEMBER if subject.is_member else _BEFORE:
        found = verdicts[condition.__name__]
        if found.status in bad:
            if found.reason == InSync.SYNCHRONIZING.code:
                phase = ReplicaPhase.SYNCHRONIZING
            elif phase is ReplicaPhase.CRITICAL and subject.view.forming:
                phase = ReplicaPhase.PROGRESSING
            return _of(phase, found.message)
    return _of(ReplicaPhase.HEALTHY, "")


def _of(phase: ReplicaPhase, message: str) -> Summary:
    return Summary(phase, shortened(message, _LIMIT))
