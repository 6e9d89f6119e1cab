"""One pass over one volume: the parts in their order, and one plan of what they decide."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from random import Random
from typing import Final

from quorate.api import conditions, finalizers, labels
from quorate.api.conditions.rv import DualPrimaryLinkLost, Resilient
from quorate.api.meta import Condition, ConditionStatus
from quorate.api.storage import ReplicatedVolume
from quorate.api.storage.rv import ReplicatedVolumeStatus, VolumePhase
from quorate.api.struct import replace
from quorate.engine import NOTHING, AddFinalizer, Patch, PatchStatus, Plan, PlanEvent, Write
from quorate.volumes import places
from quorate.volumes.settling import untold, young
from quorate.volumes.view import VolumeView
from quorate.volumes.volume import deletion, leftovers
from quorate.volumes.volume.configuration import configured, waits_for_class
from quorate.volumes.volume.formation import form
from quorate.volumes.volume.living import live
from quorate.volumes.volume.outcome import Outcome
from quorate.volumes.volume.pending import with_pending
from quorate.volumes.volume.report import composed, held_back
from quorate.volumes.volume.verdicts import status_lost

#: That a volume survives less than it promises, or that two primaries have lost each other; and that it is over.
_NEWS: Final[Mapping[type[conditions.ConditionType], Callable[[Condition], bool]]] = {
    Resilient: lambda found: found.reason == Resilient.DEGRADED.code,
    DualPrimaryLinkLost: lambda found: found.status is ConditionStatus.TRUE,
}


def decide(view: VolumeView, now: datetime, random: Random) -> Plan:
    """002's Reconcile."""
    if view.rv is None:
        return deletion.let_orphans_go(view)
    rv = view.rv
    if finalizers.RV_CONTROLLER not in rv.metadata.finalizers:
        return NOTHING if rv.deleting else _taken_in(rv, now)
    if deletion.should_not_exist(view):
        return _plan(view, deletion.take_apart(view), now)
    if lost := without_status(view):
        return _status_lost(view, lost, now)
    status = with_pending(view, configured(rv.status, view.rsc), now)
    current = view.with_status(status)
    if status.configuration is None or (rv.deleting and current.forming):
        # Nothing to go by; or it is only kept by somebody else, and nothing new is made for it.
        return _plan(view, Outcome(status, wait=None if rv.deleting else waits_for_class(current)), now)
    if current.forming:
        return _plan(view, form(current, now, random), now)
    return _plan(view, live(current, places.find_places(current), now), now)


def _taken_in(rv: ReplicatedVolume, now: datetime) -> Plan:
    """Our finalizer, and the class as a label; after the minor, whose write is on its way, so that none conflicts."""
    if rv.status.drbd.config.device_minor is None:
        patience = young(rv.metadata.creation_timestamp, now)
        if patience is not None:
            return Plan(requeue_after=patience)
    return Plan(writes=(AddFinalizer(rv, finalizers.RV_CONTROLLER, _labels(rv)),))


def without_status(view: VolumeView) -> tuple[str, ...]:
    """What holds data, or may, although by the volume's status it was never formed."""
    if view.volume.status.datamesh_revision or view.formation is not None:
        return ()
    found = [
        replica.name
        for replica in view.replicas
        if replica.diskful and replica.replica.status.drbd.actual.initial_sync_completed
    ]
    return (*found, *(piece.name for piece in leftovers.of_earlier_volumes(view)))


def _status_lost(view: VolumeView, lost: tuple[str, ...], now: datetime) -> Plan:
    rv, verdict = view.volume, status_lost(lost)
    found = conditions.merge(rv.status.conditions, [verdict], now=now, generation=rv.metadata.generation)
    told = replace(rv.status, phase=VolumePhase.DEGRADED, message=verdict.message[:1024], conditions=found)
    status = PatchStatus(rv, replace(rv, status=told))
    news = (PlanEvent(rv, "StatusLost", verdict.message, warning=True),) if found != rv.status.conditions else ()
    return Plan(status=status, events=news)


def _plan(view: VolumeView, outcome: Outcome, now: datetime) -> Plan:
    """Children first and status last; or the step alone."""
    rv = view.volume
    writes = (*_metadata(rv, outcome.spent_annotations), *outcome.writes)
    if _releases(rv, outcome.writes):
        return Plan(writes=outcome.writes)
    patience = outcome.untold or untold(rv.status, now, copying=outcome.copying)
    if patience is not None and not outcome.advances and not rv.deleting:
        told = outcome.told if writes else ()
        return Plan(writes=writes, events=told, requeue_after=_soonest(outcome.again, patience))
    decided = view.with_status(outcome.status)
    wait = outcome.wait or (deletion.in_use(decided) if rv.deleting else None)
    status = composed(decided, places.find_places(decided), wait, now)
    intended = replace(rv, status=status)
    if outcome.advances:
        written = PatchStatus(rv, intended, if_unchanged=True)
        return Plan(transition=written, events=_events(rv, outcome, status), requeue_after=_soonest(outcome.again))
    patience = held_back(rv.status, status, now)
    if patience is not None:
        # What is said of the writes is said with them.
        told = _events(rv, outcome, rv.status)
        return Plan(writes=writes, events=told, requeue_after=_soonest(outcome.again, patience))
    again = _soonest(outcome.again)
    return Plan(
        writes=writes, status=PatchStatus(rv, intended), events=_events(rv, outcome, status), requeue_after=again
    )


def _events(rv: ReplicatedVolume, outcome: Outcome, status: ReplicatedVolumeStatus) -> tuple[PlanEvent, ...]:
    """What the outcome has to tell, and what has become of what people are woken by."""
    found = list(outcome.told)
    if outcome.event is not None:
        reason, message = outcome.event
        found.append(PlanEvent(rv, reason, message, warning=outcome.wait is not None))
    for kind, is_bad in _NEWS.items() if status.conditions is not rv.status.conditions else ():
        was, now = (conditions.find(each.conditions, kind) for each in (rv.status, status))
        if was is not None and now is not None and was.status is not now.status and (is_bad(was) or is_bad(now)):
            found.append(PlanEvent(rv, now.reason, now.message, warning=is_bad(now)))
    return tuple(found)


def _metadata(rv: ReplicatedVolume, spent: tuple[str, ...] = ()) -> tuple[Patch, ...]:
    """The class as a label, for people who look for its volumes; without annotations that have done their work."""
    metadata = rv.metadata
    intended = {} if rv.deleting else _labels(rv)
    if not spent and intended.items() <= metadata.labels.items():
        return ()
    found = {**metadata.labels, **intended}
    kept = {key: value for key, value in metadata.annotations.items() if key not in spent}
    return (Patch(rv, replace(rv, metadata=replace(metadata, labels=found, annotations=kept))),)


def _labels(rv: ReplicatedVolume) -> dict[str, str]:
    return {labels.REPLICATED_STORAGE_CLASS: labels.value(rv.spec.replicated_storage_class_name)}


def _releases(rv: ReplicatedVolume, writes: tuple[Write, ...]) -> bool:
    """With the last finalizer the volume is gone: nothing can be said of it any more."""
    return any(write.target is rv for write in writes if not isinstance(write, Patch))


def _soonest(*times: float | None) -> float | None:
    known = [max(time, 0.001) for time in times if time is not None]
    return min(known) if known else None
