"""How far a replica is from not being needed on its drive: what Quorate, as the operator of its volumes, can say.

Everything follows from the volume's picture: nothing is remembered, and whoever asks gets the same answer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from quorate.api import annotation_keys
from quorate.api.annotation_keys import Process, Release
from quorate.api.baremetal import Volume
from quorate.api.baremetal.volume import VolumeUsage
from quorate.api.conditions import Verdict
from quorate.api.conditions.drive import Released
from quorate.api.scalars import ReplicaName
from quorate.volumes import evacuation, places
from quorate.volumes.replica import leaving
from quorate.volumes.transitions.members import good_copies, has_lost_its_disk, is_whole, promise_of, sources
from quorate.volumes.view import ReplicaView, VolumeView
from quorate.volumes.waits import ids

_WHOLE: Final = 100


@dataclass(frozen=True, slots=True)
class Progress:
    """How far one Volume is."""

    usage: VolumeUsage
    verdict: Verdict
    percent: int = 0
    #: Its drive gives nothing any more, nobody misses it, and there is no other place.
    lost: bool = False


def outside(volume: Volume) -> Progress:
    """By the word of an outside operator, who says himself how many percent."""
    words = volume.metadata.annotations.get(annotation_keys.RELEASE_STATUS, "")
    match _release_of(volume):
        case Release.COMPLETED:
            return Progress(VolumeUsage.RELEASED, Released.RELEASED(words))
        case Release.FAILED:
            return Progress(VolumeUsage.FAILED, Released.FAILED(words))
    unclear = misunderstood(volume, outside=True)
    if unclear:
        return _waiting(Released.MISUNDERSTOOD(" ".join(filter(None, (unclear, words)))))
    return Progress(VolumeUsage.RELEASING, Released.WAITING_FOR_OPERATOR(words))


def misunderstood(volume: Volume, *, outside: bool = False) -> str:
    """Words of people, and of an outside operator, that mean nothing to us; empty: there are none."""
    said, wrong = volume.metadata.annotations, []
    if evacuation.process_of(volume) is None:
        key = annotation_keys.RELEASE_PROCESS
        wrong.append(f"Annotation {key} is {said[key]!r}: allowed are {', '.join(Process)}.")
    if outside and _release_of(volume) is None:
        key = annotation_keys.RELEASE
        wrong.append(f"Annotation {key} is {said[key]!r}: allowed are {', '.join(Release)}.")
    recovery = said.get(annotation_keys.RELEASE_RECOVERY, "0")
    if outside and not (recovery.isascii() and recovery.isdigit() and len(recovery) <= 3 and int(recovery) <= _WHOLE):
        wrong.append(f"Annotation {annotation_keys.RELEASE_RECOVERY} is {recovery!r}: allowed are 0 to {_WHOLE}.")
    return " ".join(wrong)


def _release_of(volume: Volume) -> Release | None:
    """How far an outside operator says to be; None: it says something that means nothing."""
    said = volume.metadata.annotations.get(annotation_keys.RELEASE, Release.PROCESSING).strip().lower()
    return Release(said) if said in tuple(Release) else None


def of_replica(view: VolumeView, replica: ReplicaView, volume: Volume, *, missing: bool = False) -> Progress:
    """By the volume's own picture. ``missing``: its drive is not there."""
    if view.rv is None:
        return _waiting(
            Released.LAST_COPY(f"there is no ReplicatedVolume {view.name}, and this may be all of its data")
        )
    if has_left(view, replica):
        lost = evacuation.is_lost(volume)
        return Progress(VolumeUsage.RELEASED, Released.RELEASED(_kept_by(view, replica)), _WHOLE, lost)
    if view.rv.deleting:
        return _waiting(Released.RELEASING("the volume is being deleted"))
    if not sources(view) and (missing or has_lost_its_disk(view, replica.name)):
        return _without_copy(view, replica)
    match evacuation.process_of(volume):
        case Process.STOP:
            return _waiting(Released.STOPPED())
        case Process.PAUSE:
            return _waiting(Released.PAUSED(), copied(view, replica))
        case None:
            return _waiting(Released.MISUNDERSTOOD(misunderstood(volume)), copied(view, replica))
    asked = evacuation.read(volume)
    if asked is None:
        return _waiting(_before_its_turn(view, replica, volume))
    found = _moving(view, replica, asked)
    # With its replica on its way, the word stands: it says how many copies were asked for, until the end.
    return replace(found, lost=asked.lost) if replica.replica.deleting else found


def _without_copy(view: VolumeView, replica: ReplicaView) -> Progress:
    """Nothing can be moved: for good, if this was all there was; else until somebody else is back."""
    others = [each.name for each in view.diskful_members if each.name != replica.name and not each.hidden]
    if others:
        return _waiting(Released.LAST_COPY(f"no up-to-date copy of volume {view.name} is in reach: {ids(others)}"))
    words = f"no up-to-date copy of volume {view.name} is left that could be moved"
    return Progress(VolumeUsage.FAILED, Released.FAILED(words))


def has_left(view: VolumeView, replica: ReplicaView) -> bool:
    """Whether the volume does without it: it is no member any more, and everybody has forgotten it."""
    return replica.replica.deleting and leaving.is_forgotten(view, replica)


def may_go_on(view: VolumeView, volume: Volume) -> bool:
    """Whether the next step may be made, as far as the volume is concerned: only a BAD drive waits for nobody."""
    return bool(sources(view)) and (not evacuation.is_polite(volume) or is_whole(view))


def successor(view: VolumeView) -> ReplicaView | None:
    """The replica that is to take over: made and not a voter yet."""
    for replica in view.replicas:
        voter = replica.member is not None and not replica.member.hidden
        if replica.diskful and not replica.replica.deleting and not voter:
            return replica
    return None


def copied(view: VolumeView, replica: ReplicaView) -> int:
    """Percent of the data that the one which takes over has."""
    taking_over = successor(view)
    if taking_over is None or taking_over.member is None:
        return _WHOLE - 1 if _does_without(view, replica) else 0
    report = taking_over.report
    if report is None:
        return 0
    if _is_up_to_date(taking_over):
        return _WHOLE - 1
    shares = [
        peer.percent_in_sync
        for link in report.connections
        for peer in link.peer_devices
        if peer.replication_state.startswith(("SyncTarget", "PausedSyncT"))
    ]
    return min(max(shares, default=0), _WHOLE - 1)


def _before_its_turn(view: VolumeView, replica: ReplicaView, volume: Volume) -> Verdict:
    if good_copies(view) == (replica.name,) and len(view.diskful_members) > 1:
        return Released.LAST_COPY(f"it has the only up-to-date copy of volume {view.name}")
    if not may_go_on(view, volume):
        return Released.WAITING_FOR_RESYNC(f"volume {view.name} is not whole")
    return Released.RELEASING("waits for its turn")


def _moving(view: VolumeView, replica: ReplicaView, asked: evacuation.Evacuation) -> Progress:
    taking_over, percent = successor(view), copied(view, replica)
    if taking_over is None and _is_in_use(view, replica):
        return _waiting(Released.IN_USE(f"volume {view.name} is in use on {replica.node_name}"), percent)
    if taking_over is None:
        made = "its data is elsewhere, and it is about to leave" if percent else "a replacement is being made"
        return _waiting(Released.RELEASING(_why_it_stays(view, replica.name) or made), percent)
    if not taking_over.scheduled:
        refused = places.find_places(view).refusals.get(taking_over.name)
        lost = refused is not None and _is_missed_by_nobody(view, replica.name)
        no_place = f"no place for a replacement: {refused.message}{places.in_the_way(view)}" if refused else ""
        words = no_place or "a place is being found"
        return Progress(VolumeUsage.RELEASING, Released.RELEASING(words), percent, lost)
    if taking_over.member is None and asked.polite and not is_whole(view):
        return _waiting(Released.WAITING_FOR_RESYNC(f"volume {view.name} is not whole"), percent)
    if taking_over.member is None:
        waits = "" if asked.to == taking_over.name else ", when others are done"
        return _waiting(Released.RELEASING(f"to be copied to {taking_over.node_name}{waits}"), percent)
    if asked.polite and not is_whole(view) and percent == _WHOLE - 1:
        return _waiting(Released.WAITING_FOR_RESYNC(f"volume {view.name} is not whole"), percent)
    if not _is_up_to_date(taking_over):
        return _waiting(Released.RELEASING(f"{percent} % copied to {taking_over.node_name}"), percent)
    why = _why_it_stays(view, taking_over.name) or _why_it_stays(view, replica.name) or "it is about to take over"
    return _waiting(Released.RELEASING(f"copied to {taking_over.node_name}: {why}"), percent)


def _is_up_to_date(replica: ReplicaView) -> bool:
    report = replica.report
    return report is not None and bool(report.devices) and report.devices[0].disk_state == "UpToDate"


def _is_in_use(view: VolumeView, replica: ReplicaView) -> bool:
    attached = replica.member is not None and replica.member.attached
    return attached or replica.node_name in view.volume.status.published_on


def _why_it_stays(view: VolumeView, name: ReplicaName) -> str:
    """What the volume says of a replica that is to leave and has not."""
    status = view.volume.status
    under_way = [each.message for each in status.datamesh_transitions if each.replica_name == name]
    asked = [each.message for each in status.datamesh_pending_replica_transitions if each.name == name]
    return next(filter(None, (*under_way, *asked)), "")


def _does_without(view: VolumeView, replica: ReplicaView) -> bool:
    promise = promise_of(view)
    return promise is not None and len(good_copies(view, without=replica.name)) >= promise.diskful


def _is_missed_by_nobody(view: VolumeView, name: ReplicaName) -> bool:
    """Whether it gives nothing, by its own word: that a drive of its group is away does not say that it is on that."""
    promise = promise_of(view)
    enough = promise is not None and len(good_copies(view, without=name)) >= promise.minimum_redundancy
    return enough and has_lost_its_disk(view, name)


def _kept_by(view: VolumeView, replica: ReplicaView) -> str:
    """Why its bytes could not be destroyed now, if they were to be."""
    wait = leaving.hindrance(view, replica)
    return wait.message if wait is not None else ""


def _waiting(verdict: Verdict, percent: int = 0) -> Progress:
    return Progress(VolumeUsage.RELEASING, verdict, percent)
