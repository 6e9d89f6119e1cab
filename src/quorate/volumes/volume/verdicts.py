"""The conditions of a volume, each from what the picture shows. For people: no decision reads them (M23).

Those that other packages know more of come from there: PublishSucceeded and DualPrimaryLinkLost from ``attach``, what
Resilient compares from ``effective``, why a replica has no place from ``places``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from quorate.api.conditions import Verdict
from quorate.api.conditions.rv import (
    AllReplicasReady,
    DiskAllocation,
    DiskfulReplicaCountReached,
    PublishSucceeded,
    QuorumConfigured,
    Ready,
    Resilient,
    SharedSecretAlgorithmSelected,
    StatusLost,
)
from quorate.api.meta import ConditionStatus, NodeName
from quorate.api.scalars import MAX_MEMBERS
from quorate.api.storage.datamesh import EffectiveLayout, TransitionGroup
from quorate.api.storage.rv import ReplicatedVolumeStatus
from quorate.disks import requests
from quorate.disks.entries import replica as entry_of
from quorate.disks.entries import requested
from quorate.disks.requests import State
from quorate.placement.layout import Layout, layout_of
from quorate.volumes import attach, resize, transitions
from quorate.volumes.attach.comparison import hindrance
from quorate.volumes.naming import named
from quorate.volumes.places import Places, in_the_way
from quorate.volumes.stale import binding, described, doubtful_copies, stale_copies
from quorate.volumes.view import VolumeView
from quorate.volumes.volume.configuration import configuration_ready
from quorate.volumes.volume.layout import all_replicas_ready, voters
from quorate.volumes.volume.remains import NODE_DOWN
from quorate.volumes.volume.secrets import algorithm_selected
from quorate.volumes.waits import Wait

_VOTES: Final = (TransitionGroup.VOTING_MEMBERSHIP, TransitionGroup.QUORUM, TransitionGroup.EMERGENCY)
#: What Ready is the conjunction of, with what is said when one is missing; the first that fails is the one said.
_PARTS: Final = (
    (SharedSecretAlgorithmSelected, Ready.SHARED_SECRET_ALGORITHM_NOT_SELECTED),
    (DiskfulReplicaCountReached, Ready.DISKFUL_REPLICA_COUNT_NOT_REACHED),
    (QuorumConfigured, Ready.QUORUM_NOT_CONFIGURED),
    (AllReplicasReady, Ready.REPLICAS_NOT_READY),
)


def verdicts(
    view: VolumeView, counted: ReplicatedVolumeStatus, places: Places, wait: Wait | None
) -> tuple[Verdict, ...]:
    """All of them. What is going to be written has been counted already: who uses the volume, what it survives."""
    parts = (
        algorithm_selected(view),
        diskful_count(view, places),
        quorum_configured(view),
        all_replicas_ready(view),
    )
    found = {verdict.type: verdict for verdict in parts}
    return (
        ready(view, found, wait),
        *parts,
        configuration_ready(counted, view.rsc, view.volume.spec.replicated_storage_class_name),
        resize.not_granted(view) or disk_allocation(view, places),
        resilient(view, counted.effective_layout),
        publish_succeeded(view, counted.published_on) if view.forming else attach.publish_succeeded(view),
        attach.dual_primary_link_lost(view),
        StatusLost.STATUS_PRESENT(),
    )


def status_lost(names: tuple[str, ...]) -> Verdict:
    """Replicas with data, or pieces that may have some, under a volume without status."""
    return StatusLost.REPLICAS_WITH_DATA_FOUND(
        f"{', '.join(names)} may hold data and the volume's status is gone: nothing is created or deleted"
    )


def ready(view: VolumeView, parts: Mapping[str, Verdict], wait: Wait | None) -> Verdict:
    """The seed's conjunction."""
    if view.volume.deleting:
        down = wait is not None and wait.reason == NODE_DOWN
        reason = Ready.NODE_DOWN if down else Ready.TERMINATING
        return reason(wait.message if wait is not None else "")
    if view.forming:
        return Ready.FORMING(wait.message if wait is not None else "")
    for condition, reason in _PARTS:
        verdict = parts[condition.__name__]
        if verdict.status is not ConditionStatus.TRUE:
            return reason(verdict.message)
    return Ready.READY()


def diskful_count(view: VolumeView, places: Places) -> Verdict:
    """``rvr-diskful-count-controller``: as many replicas with a disk as promised."""
    if view.forming or view.volume.status.configuration is None:
        return DiskfulReplicaCountReached.FORMATION_IN_PROGRESS()
    promised, there = layout_of(view.configuration).diskful, len(voters(view))
    count = f"{there} of {promised} replicas with a disk are members"
    if there >= promised:
        return DiskfulReplicaCountReached.COUNT_REACHED(count)
    if refusal := next(iter(places.refusals.values()), None):
        why = f"{refusal.message}{in_the_way(view)}"
        return DiskfulReplicaCountReached.WAITING_FOR_PLACE(f"{count}; {refusal.replica}: {why}")
    if len(view.replicas) >= MAX_MEMBERS:
        return DiskfulReplicaCountReached.NO_FREE_NODE_ID(f"{count}; all {MAX_MEMBERS} ids are taken")
    return DiskfulReplicaCountReached.REPLICAS_MISSING(count)


def quorum_configured(view: VolumeView) -> Verdict:
    """Every member holds the promised quorum: no change of votes is open, and qmr is as promised."""
    status = view.volume.status
    if view.forming or status.configuration is None:
        return QuorumConfigured.FORMATION_IN_PROGRESS()
    changing = [
        each for each in status.datamesh_transitions if each.group in _VOTES and transitions.changes_votes(each)
    ]
    if changing:
        waits = [each.name for each in view.replicas if each.member and not each.confirms(status.datamesh_revision)]
        told = changing[0].message or (f"not confirmed by {named(view, waits)}" if waits else "")
        return QuorumConfigured.QUORUM_CHANGE_IN_PROGRESS(f"{changing[0].type}: {told}" if told else "")
    promised, held = layout_of(view.configuration).minimum_redundancy, status.drbd.config.quorum_minimum_redundancy
    if held is None or held < promised:
        told = f"up-to-date members that every write needs: {held or 1}; promised: {promised}"
        return QuorumConfigured.QUORUM_BELOW_PROMISE(told)
    return QuorumConfigured.QUORUM_CONFIGURED()


def disk_allocation(view: VolumeView, places: Places) -> Verdict:
    """What the ledgers say of the replicas with a disk."""
    pending: list[str] = []
    for replica in view.replicas:
        if not replica.diskful or replica.replica.deleting:
            continue
        entry, state = entry_of(replica.name), State.NOT_ASKED
        for ledger in replica.ledgers:
            answer = requests.read(ledger, entry, requested(ledger, entry) or 0)
            if answer.refusal is not None:
                return DiskAllocation.REJECTED(requests.describe(ledger, answer.refusal))
            state = answer.state if state is not State.GRANTED else state
        if state is not State.GRANTED:
            pending.append(replica.name)
    if pending:
        why = next((f"{places.refusals[name].message}{in_the_way(view)}" for name in places.refusals), "")
        return DiskAllocation.PENDING(f"no space yet for {', '.join(pending)}{f': {why}' if why else ''}")
    if not any(replica.diskful for replica in view.replicas):
        return DiskAllocation.PENDING("no space is asked for yet")
    return DiskAllocation.ALLOCATED()


def resilient(view: VolumeView, effective: EffectiveLayout) -> Verdict:
    """What can be survived from here, beside what is promised."""
    status = view.volume.status
    if view.forming or status.configuration is None:
        return Resilient.FORMING()
    if doubtful_copies(view):
        reason = Resilient.STALE_COPY if stale_copies(view) else Resilient.COPIES_NOT_COMPARED
        return reason("; ".join(filter(None, (described(view).message, _comparison_waits(view)))))
    promised = layout_of(status.configuration)
    losses, redundancy = effective.failures_to_tolerate, effective.guaranteed_minimum_data_redundancy
    if losses is None or redundancy is None:
        return Resilient.STATUS_UNKNOWN()
    if losses >= promised.failures_to_tolerate and redundancy >= promised.data_redundancy:
        return Resilient.RESILIENT()
    told = _shortfall(effective, losses, redundancy, promised)
    if any(each.group in _VOTES for each in status.datamesh_transitions):
        return Resilient.TRANSITION_IN_PROGRESS(told)
    kept = [replica.name for replica in view.replicas if replica.member is not None and not replica.fresh]
    policy = view.rsc.spec.eligible_nodes_policy if view.rsc is not None else None
    if kept and policy is not None and not policy.remove_lost_replica and len(view.members) > promised.members:
        return Resilient.LOST_REPLICA_KEPT(f"kept: {named(view, kept)}; {told}")
    return Resilient.DEGRADED(told)


def _comparison_waits(view: VolumeView) -> str:
    """What the comparison of doubtful copies waits for."""
    wait = next((hindrance(view, each) for each in binding(view)), None)
    return f"waits: {wait.message}" if wait is not None and not view.comparisons else ""


def _shortfall(effective: EffectiveLayout, losses: int, redundancy: int, promised: Layout) -> str:
    """How much there is of each thing that is promised, and why no more; first of all that I/O stands, if it does."""
    stands = losses < 0
    kept = []
    if promised.failures_to_tolerate and not stands:
        kept.append(f"survives {_of(losses, promised.failures_to_tolerate)} promised losses")
    if promised.data_redundancy:
        kept.append(f"holds {_of(redundancy, promised.data_redundancy)} promised copies beyond the one needed")
    words = ", ".join(kept)
    return "; ".join(filter(None, (effective.message, words) if stands else (words, effective.message)))


def _of(held: int, promised: int) -> str:
    """What there is of what is promised: no less than none, no more than all."""
    return f"{min(max(held, 0), promised)} of {promised}"


def publish_succeeded(view: VolumeView, published: Collection[NodeName]) -> Verdict:
    """While the volume forms: later the attach queue says more."""
    asked = () if view.volume.deleting else view.volume.spec.publish_on
    if not asked:
        return PublishSucceeded.NOTHING_TO_PUBLISH()
    missing = [node for node in asked if node not in published]
    if missing:
        return PublishSucceeded.PUBLISHING(f"not yet usable on {', '.join(missing)}")
    return PublishSucceeded.PUBLISHED()
