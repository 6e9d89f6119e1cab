"""The whole answer about one volume, as data: where each replica is and why, what waits and for whom, what if."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from random import Random

from quorate.api import conditions, longhorn, names
from quorate.api.conditions.inventory import KernelStuck
from quorate.api.conditions.rv import PublishSucceeded, StatusLost
from quorate.api.scalars import ReplicaName
from quorate.api.storage.datamesh import StepStatus, Transition
from quorate.api.storage.drbd import ReplicaType
from quorate.api.storage.llv import LogicalVolumePhase
from quorate.api.storage.rv import AttachSource
from quorate.api.struct import Struct
from quorate.explain.listing import Listing
from quorate.explain.troubles import OF_ATTACHMENTS, OF_NODES, OF_REPLICAS, OF_VOLUMES, Trouble, troubles
from quorate.explain.whereabouts import Candidate, candidates
from quorate.placement import layout_of, text
from quorate.volumes import effective, resize, transitions
from quorate.volumes.disks import Disk, disks_of
from quorate.volumes.observe import observe
from quorate.volumes.places import find_places
from quorate.volumes.transitions.requests import Fate, fate_of, graces
from quorate.volumes.view import ReplicaView, VolumeView
from quorate.volumes.volume import deletion
from quorate.volumes.volume.configuration import waits_for_class
from quorate.volumes.volume.controller import without_status
from quorate.volumes.volume.formation import form
from quorate.volumes.volume.verdicts import status_lost
from quorate.volumes.waits import Wait


class Waiting(Struct):
    """Something that does not go on."""

    #: What waits: the volume, a transition, a replica's wish, an attachment.
    what: str
    reason: str
    message: str
    #: The objects that stand in the way, as ``Kind name``.
    blockers: tuple[str, ...] = ()


class ReplicaStory(Struct):
    """One replica."""

    name: str
    type: str
    node: str
    zone: str
    disk: str
    phase: str
    #: What is known of it now, in words; and by whom.
    state: str
    said_by: tuple[str, ...]
    troubles: tuple[Trouble, ...]
    candidates: tuple[Candidate, ...]


class Loss(Struct):
    """What would happen if a node went down now."""

    node: str
    replica: str
    survives: bool
    #: Up-to-date copies within reach afterwards.
    copies: int
    message: str


class VolumeStory(Struct):
    """Everything."""

    name: str
    phase: str
    message: str
    size: str
    storage_class: str
    #: What its class promises, and what it is now.
    promise: str
    resilience: str
    published_on: tuple[str, ...]
    troubles: tuple[Trouble, ...]
    waits: tuple[Waiting, ...]
    replicas: tuple[ReplicaStory, ...]
    losses: tuple[Loss, ...]


def tell(listing: Listing, name: str, now: datetime) -> VolumeStory | None:
    """The story of a volume; None: there is none, nor anything of it."""
    view = observe(listing, name)
    if view is None:
        return None
    rv, lost = view.rv, _status_lost(view)
    disks = disks_of(listing, view.rsp) if view.rsp is not None else {}
    status = rv.status if rv is not None else None
    return VolumeStory(
        name=name,
        phase=(status.phase or "") if status is not None else "gone, with children left",
        message=status.message if status is not None else "",
        size=_size(view),
        storage_class=rv.spec.replicated_storage_class_name if rv is not None else "",
        promise=_promise(view),
        resilience=_resilience(view) if lost is None else "nothing is known: its status is lost",
        published_on=tuple(status.published_on) if status is not None else (),
        troubles=troubles(status.conditions, OF_VOLUMES) if status is not None else (),
        waits=tuple(_waits(view, now)),
        replicas=tuple(_replica(listing, view, replica, disks) for replica in view.replicas),
        losses=tuple(_losses(view)),
    )


def tell_replica(listing: Listing, name: str) -> ReplicaStory | None:
    """The story of one replica."""
    volume = name.rpartition("-")[0]
    view = observe(listing, volume)
    replica = view.replica(ReplicaName(name)) if view is not None else None
    if view is None or replica is None:
        return None
    return _replica(listing, view, replica, disks_of(listing, view.rsp) if view.rsp is not None else {})


def _size(view: VolumeView) -> str:
    """What there is, and what is asked for where that is more."""
    if view.rv is None:
        return ""
    asked, actual = view.rv.spec.size, view.rv.status.actual_size
    if actual is None:
        return f"{asked} asked for"
    return f"{actual}, {asked} asked for" if asked > actual else str(actual)


def _promise(view: VolumeView) -> str:
    configuration = view.rv.status.configuration if view.rv is not None else None
    if configuration is None:
        return "nothing yet: it has no configuration"
    losses, layout = configuration.failures_to_tolerate, layout_of(configuration)
    goes_on = f"I/O goes on when any {losses} of its members is lost" if losses else "I/O stops when a member is lost"
    copies = configuration.guaranteed_minimum_data_redundancy + 1
    disks = "1 disk" if copies == 1 else f"{copies} disks"
    name = f"{configuration.replication} ({text(layout.diskful, layout.tie_breakers)})"
    return f"{name}: {goes_on}, every acknowledged write is on {disks} at least"


def _resilience(view: VolumeView) -> str:
    return "it is being formed" if view.forming else effective.layout(view).message


def _status_lost(view: VolumeView) -> Wait | None:
    """Why nothing is done about a volume that has replicas, or pieces of them, and no status."""
    if view.rv is None or view.rv.deleting or not (lost := without_status(view)):
        return None
    return Wait(StatusLost.__name__, status_lost(lost).message)


def _waits(view: VolumeView, now: datetime) -> Iterator[Waiting]:
    if view.rv is None:
        return
    for wait in _own_waits(view, now):
        yield Waiting(
            what="the volume",
            reason=wait.reason,
            message=wait.message,
            blockers=tuple(str(blocker) for blocker in wait.blockers),
        )
    yield from _moves(view, now)
    for name, refusal in find_places(view).refusals.items():
        yield Waiting(what=f"a place for {name}", reason=refusal.reason.code, message=refusal.message)
    for piece in view.pieces:
        if piece.status.phase is LogicalVolumePhase.FAILED:
            what = f"the logical volume {piece.name}"
            yield Waiting(what=what, reason=piece.status.reason, message=piece.status.message)
    status = view.rv.status
    if status.configuration is not None and view.rsp is None and not view.forming:
        pool = status.configuration.replicated_storage_pool_name
        words = f"there is no ReplicatedStoragePool {pool}: nothing new can be placed"
        yield Waiting(what="a place for whoever is lost next", reason="StoragePoolNotReady", message=words)
    for transition in status.datamesh_transitions:
        words = transition.message or _step(transition)
        yield Waiting(what=_named(transition), reason=transition.reason, message=words)
    for pending in status.datamesh_pending_replica_transitions:
        yield Waiting(what=f"the wish of {pending.name}", reason=pending.reason, message=pending.message)
    published = conditions.find(status.conditions, PublishSucceeded)
    for request in status.attach_requests:
        asked_here = request.source is AttachSource.PUBLISH_ON and request.node_name not in status.published_on
        if published is not None and asked_here:
            what = f"publishOn {request.node_name}"
            yield Waiting(what=what, reason=published.reason, message=published.message)
    for attachment in view.attachments:
        for trouble in troubles(attachment.status.conditions, OF_ATTACHMENTS):
            what = f"{attachment.name} on {attachment.spec.node_name}: {trouble.condition}"
            yield Waiting(what=what, reason=trouble.reason, message=trouble.message)


def _moves(view: VolumeView, now: datetime) -> Iterator[Waiting]:
    """Who is to leave a formed volume once others have its data, and who is on its way in."""
    if view.forming or view.volume.deleting:
        return
    for replica in view.replicas:
        status, fate = replica.replica.status, fate_of(view, replica, now)
        if replica.member is not None and fate is not None and fate is not Fate.DELETED:
            words = f"it is to leave {replica.node_name}, and does when the promised copies are up to date without it"
            if fate is Fate.GIVES_WAY:
                words = f"a copy has no place but {replica.node_name}: it leaves when another tie-breaker is ready"
            yield Waiting(what=replica.name, reason=fate.value, message=words)
        elif replica.member is None and replica.scheduled and not replica.replica.deleting:
            what = f"{replica.name} on {replica.node_name}, to join"
            yield Waiting(what=what, reason=status.phase or "", message=status.message)


def _own_waits(view: VolumeView, now: datetime) -> tuple[Wait, ...]:
    """What the volume's own reconciler waits for, asked of the functions that it asks."""
    rv = view.volume
    wait: Wait | None = None
    if rv.deleting:
        wait = deletion.in_use(view) or deletion.take_apart(view).wait
    elif (lost := _status_lost(view)) is not None:
        wait = lost
    elif rv.status.configuration is None:
        wait = waits_for_class(view)
    elif view.forming:
        # It makes a secret for what it would write; nothing is written here.
        wait = form(view, now, Random(0)).wait
    else:
        asked, small = transitions.advance(view, now), resize.hindrance(view, resize.reserve(view))
        return (*(asked.waits if asked is not None else ()), *graces(view, now), *((small,) if small else ()))
    return (wait,) if wait is not None else ()


def _named(transition: Transition) -> str:
    subject = f" of {transition.replica_name}" if transition.replica_name is not None else ""
    phase = f", {transition.formation.phase}" if transition.formation is not None else ""
    return f"{transition.type}{subject}{phase}"


def _step(transition: Transition) -> str:
    return next((each.message or each.name for each in transition.steps if each.status is StepStatus.ACTIVE), "")


def _replica(listing: Listing, view: VolumeView, replica: ReplicaView, disks: Mapping[str, Disk]) -> ReplicaStory:
    listed = view.eligible(replica.node_name)
    member = replica.member
    spec = replica.replica.spec
    state = view.state_of(replica.name)
    return ReplicaStory(
        name=replica.name,
        type=spec.type,
        node=spec.node_name or "",
        zone=listed.zone_name if listed is not None else (member.zone if member is not None else ""),
        disk="/".join(filter(None, (spec.lvm_volume_group_name, spec.lvm_volume_group_thin_pool_name))),
        phase=replica.replica.status.phase or "",
        state=_state(view, replica),
        said_by=tuple(state.said_by),
        troubles=(*troubles(replica.replica.status.conditions, OF_REPLICAS), *_of_its_node(listing, replica)),
        candidates=candidates(view, replica.name, disks),
    )


def _of_its_node(listing: Listing, replica: ReplicaView) -> tuple[Trouble, ...]:
    """That commands hang in its node's kernel: what is asked of the replica may wait for that."""
    node = listing.get(longhorn.Node, replica.node_name or "", names.NAMESPACE)
    stuck = conditions.find(node.status.conditions, KernelStuck) if node is not None else None
    return troubles((stuck,), OF_NODES) if stuck is not None else ()


def _state(view: VolumeView, replica: ReplicaView) -> str:
    state, member = view.state_of(replica.name), replica.member
    words = [] if member is not None else ["no member of the volume"]
    if member is not None:
        words += [word for word, holds in (("hidden", member.hidden), ("excused", member.excused)) if holds]
    if not state.up:
        return ", ".join([*words, "down"])
    words += [str(state.role), str(state.disk)]
    if state.quorum is not None:
        words.append("has quorum" if state.quorum else "has no quorum")
    return ", ".join(words)


def _losses(view: VolumeView) -> Iterator[Loss]:
    for member in view.members:
        after = effective.after_losing(view, (member.node_name,))
        diskless = member.type is not ReplicaType.DISKFUL
        words = after.message if after.survives or not diskless else f"{after.message} (it has no disk)"
        if member.attached:
            words += "; whoever uses it there stops with the node"
        yield Loss(
            node=member.node_name, replica=member.name, survives=after.survives, copies=after.copies, message=words
        )
