"""The status of a volume as people see it, composed once per pass; and when it is worth a write (``settling``)."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from quorate.api import conditions
from quorate.api.conditions.rv import PublishSucceeded, QuorumConfigured, Ready, Resilient
from quorate.api.meta import Condition, ConditionStatus
from quorate.api.storage.datamesh import EffectiveLayout
from quorate.api.storage.drbd import DiskState
from quorate.api.storage.rv import ReplicatedVolumeStatus, VolumePhase
from quorate.api.struct import replace
from quorate.volumes import effective
from quorate.volumes.places import Places
from quorate.volumes.settling import young
from quorate.volumes.view import VolumeView
from quorate.volumes.volume.layout import actual_size, membership_layout, published_on, voters
from quorate.volumes.volume.verdicts import verdicts
from quorate.volumes.waits import Wait, shortened

_MESSAGE: Final = 1024


def composed(view: VolumeView, places: Places, wait: Wait | None, now: datetime) -> ReplicatedVolumeStatus:
    """The whole status: what was decided (it is in the view), and everything that is said about it."""
    status, generation = view.volume.status, view.volume.metadata.generation
    counted = replace(
        status,
        observed_generation=generation,
        actual_size=actual_size(view),
        published_on=published_on(view),
        membership_layout=membership_layout(view),
        effective_layout=status.effective_layout if view.forming else effective.layout(view),
    )
    found = conditions.merge(status.conditions, verdicts(view, counted, places, wait), now=now, generation=generation)
    phase = _phase(view, found)
    message = shortened(_message(phase, counted.effective_layout, found, wait), _MESSAGE)
    return replace(counted, phase=phase, message=message, conditions=found)


def _phase(view: VolumeView, found: tuple[Condition, ...]) -> VolumePhase:
    if view.volume.deleting:
        return VolumePhase.TERMINATING
    if view.forming:
        return VolumePhase.FORMING
    resilient = conditions.find(found, Resilient)
    if resilient is not None and resilient.status is not ConditionStatus.TRUE:
        return VolumePhase.DEGRADED
    behind = any(view.state_of(member.name).disk != DiskState.UP_TO_DATE for member in voters(view))
    if behind or view.resyncing():
        return VolumePhase.SYNCHRONIZING
    is_whole = conditions.is_true(found, Ready) or _changes_only(found)
    return VolumePhase.READY if is_whole else VolumePhase.DEGRADED


def _changes_only(found: tuple[Condition, ...]) -> bool:
    """Whether nothing is amiss, and votes are being changed: whoever leaves has been replaced, or is one too many."""
    ready, quorum = conditions.find(found, Ready), conditions.find(found, QuorumConfigured)
    changing = quorum is not None and quorum.reason == QuorumConfigured.QUORUM_CHANGE_IN_PROGRESS.code
    return changing and ready is not None and ready.reason == Ready.QUORUM_NOT_CONFIGURED.code


def _message(
    phase: VolumePhase, effective_layout: EffectiveLayout, found: tuple[Condition, ...], wait: Wait | None
) -> str:
    """What somebody who sees only this should know: that I/O stands before anything else, then what it waits for."""
    if phase is VolumePhase.DEGRADED and effective_layout.failures_to_tolerate == -1:
        return effective_layout.message if wait is None else f"{effective_layout.message}; {wait.message}"
    if wait is not None:
        return wait.message
    for wanted in (PublishSucceeded,) if phase is VolumePhase.READY else (Ready, Resilient, PublishSucceeded):
        condition = conditions.find(found, wanted)
        if condition is not None and condition.status is not ConditionStatus.TRUE:
            return condition.message
    return ""


def held_back(before: ReplicatedVolumeStatus, after: ReplicatedVolumeStatus, now: datetime) -> float | None:
    """Seconds for which a change is not worth a write yet: it is only words, and something else has just changed.

    More is likely to follow: of three replicas that become ready one after the other, only the last is news.
    """
    patience = young(max((each.last_transition_time for each in before.conditions), default=None), now)
    if patience is None or before == after or _without_words(before) != _without_words(after):
        return None
    return patience


def _without_words(status: ReplicatedVolumeStatus) -> ReplicatedVolumeStatus:
    return replace(
        status,
        phase=None,
        message="",
        datamesh_transitions=tuple(replace(each, reason="", message="") for each in status.datamesh_transitions),
        effective_layout=replace(status.effective_layout, message=""),
        conditions=tuple(replace(each, reason="Any", message="") for each in status.conditions),
    )
