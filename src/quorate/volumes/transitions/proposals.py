"""Which transitions could begin now, in the order in which they are tried. The walk decides whether one may.

Force first, because it is for those who cannot wait; then whoever begins or ends to use it; then members whose object
is lost, whom nobody can tell anything any more; then whoever leaves, joins or changes, as the replicas ask for it
(``datameshPendingTransition``); then what the volume itself lacks: a tie-breaker to be shown, copies to be promised, a
larger size.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Final

from quorate.api import annotation_keys
from quorate.api.meta import NodeName
from quorate.api.scalars import ReplicaName
from quorate.api.storage.datamesh import Member, Transition, TransitionGroup, TransitionType
from quorate.api.storage.drbd import Role
from quorate.volumes.attach import proposals as attach
from quorate.volumes.resize import growth
from quorate.volumes.transitions import changes
from quorate.volumes.transitions.guards import is_forced, is_here, may_set_redundancy, not_to_be_forced
from quorate.volumes.transitions.making import make
from quorate.volumes.transitions.members import is_fresh, is_up, is_up_to_date, voters
from quorate.volumes.transitions.nodes import is_gone
from quorate.volumes.view import ReplicaView, VolumeView
from quorate.volumes.waits import Blocker, Wait

#: A removal may wait for these, so they do not wait for it.
_LETTING_GO: Final = (TransitionType.DETACH, TransitionType.FORCE_DETACH)


def proposals(view: VolumeView, now: datetime) -> Iterator[Transition]:
    """All of them; at most one that is not under way for each replica, and beside it one that lets go of it.

    One that is to leave, by force too, is let go of first.
    """
    under_way = view.volume.status.datamesh_transitions
    busy = {each.replica_name for each in under_way}
    used = {each.replica_name for each in under_way if each.group is TransitionGroup.ATTACHMENT}
    for transition in _all(view, now):
        in_the_way = used if transition.type in _LETTING_GO else busy
        if transition.replica_name is None or transition.replica_name not in in_the_way:
            busy.add(transition.replica_name)
            if transition.group is TransitionGroup.ATTACHMENT:
                used.add(transition.replica_name)
            yield transition


def _all(view: VolumeView, now: datetime) -> Iterator[Transition]:
    yield from _by_force(view, now)
    for use, name in attach.proposals(view):
        yield make(view, use, now, name)
    if view.volume.deleting:
        return
    for member in view.members:
        if member.name not in view.by_name:
            yield make(view, TransitionType.FORCE_REMOVE_REPLICA, now, member.name, before=member.type)
    asking = [(replica, replica.replica.status.datamesh_pending_transition) for replica in view.replicas]
    for replica, asked in asking:
        if asked is not None and asked.member is False and replica.member is not None:
            yield removal(view, replica.member, now)
    for replica, asked in asking:
        if asked is not None and asked.member is True and replica.member is None:
            kind = asked.type or replica.type
            yield make(view, TransitionType.ADD_REPLICA, now, replica.name, after=kind)
    for replica, asked in asking:
        if asked is not None and asked.member is None and replica.member is not None:
            kind = asked.type or replica.type
            yield make(
                view, TransitionType.CHANGE_REPLICA_TYPE, now, replica.name, before=replica.member.type, after=kind
            )
    due = changes.due_tie_breaker(view)
    if due is not None:
        yield make(view, TransitionType.CHANGE_REPLICA_TYPE, now, due.name, before=due.type, after=due.type)
    if changes.possible_redundancy(view) != view.volume.status.drbd.config.quorum_minimum_redundancy:
        redundancy = make(view, TransitionType.CHANGE_QUORUM, now)
        if may_set_redundancy(view, redundancy) is None:
            yield redundancy
    if growth.is_due(view):
        yield make(view, TransitionType.RESIZE_VOLUME, now)


def removal(view: VolumeView, member: Member, now: datetime) -> Transition:
    """How a member goes: by force only where there is no node that it could be asked on."""
    lost = is_gone(view, member.node_name) and not is_fresh(view, member.name)
    kind = TransitionType.FORCE_REMOVE_REPLICA if lost else TransitionType.REMOVE_REPLICA
    return make(view, kind, now, member.name, before=member.type)


def forced_replica(view: VolumeView) -> ReplicaView | None:
    """The replica that a person wants removed by force, with all that this takes said."""
    said = view.volume.metadata.annotations
    if said.get(annotation_keys.ACCEPT_DATA_LOSS) != "true":
        return None
    return view.replica(ReplicaName(said.get(annotation_keys.FORCE_REMOVE, "")))


def in_favour_of(view: VolumeView, node: NodeName) -> Member | Wait:
    """The copy that has to be given up so that the one on a node can go on; or why there is none."""
    kept = next((each for each in view.diskful_members if each.node_name == node), None)
    if kept is None:
        there = ", ".join(each.node_name for each in view.diskful_members)
        return Wait("NoCopy", f"there is no copy of {view.name} on {node}; copies are on {there or 'no node'}")
    if not is_up(view, kept.name) or not is_up_to_date(view, kept.name):
        known = "not up, or its agent is silent" if not is_up(view, kept.name) else view.state_of(kept.name).disk
        return Wait("NotUpToDate", f"the copy to keep, {kept.name} on {node}, is {known}: it must be UpToDate")
    others = [each for each in voters(view.members) if each.name != kept.name]
    apart = [each for each in others if kept.hidden or not view.connected(kept.name, each.name)]
    in_the_way = [each for each in apart if not is_up(view, each.name) or changes.is_in_the_way(view, each.name)]
    if len(in_the_way) != 1 or (kept.hidden and changes.successor_of(view, in_the_way[0].name) is None):
        return Wait("NotInTheWay", f"no copy stands in the way of {kept.name} on {node}: see quorate explain volume")
    return in_the_way[0]


def given_up(view: VolumeView) -> ReplicaName | None:
    """The replica that has been removed by a person's word, and is on its way out."""
    forced = forced_replica(view)
    if forced is None or forced.member is not None or not forced.replica.deleting:
        return None
    return forced.name


def half_said(view: VolumeView) -> Iterator[Wait]:
    """A person's word of which nothing comes, because the other half of it is missing."""
    said = view.volume.metadata.annotations
    if said.get(annotation_keys.ACCEPT_DATA_LOSS) == "true":
        return
    for key in (annotation_keys.FORCE_REMOVE, annotation_keys.FORCE_DETACH, annotation_keys.COMPARE_WITH):
        if key in said:
            missing = f"annotate it with {annotation_keys.ACCEPT_DATA_LOSS}=true, too, if data may be lost"
            yield Wait("ConsentMissing", f"nothing comes of {key}={said[key]}: {missing}", (Blocker.of(view.volume),))


def unheeded(view: VolumeView, waits: Mapping[ReplicaName | None, Wait], now: datetime) -> Iterator[Wait]:
    """A person's word of which nothing comes yet, because something else is under way for the same member: why."""
    said = view.volume.metadata.annotations
    if said.get(annotation_keys.ACCEPT_DATA_LOSS) != "true":
        return
    by_node = {member.node_name: member.name for member in view.members}
    detached = by_node.get(view.forced_off) if view.forced_off is not None else None
    removed = ReplicaName(said.get(annotation_keys.FORCE_REMOVE, ""))
    for transition in view.volume.status.datamesh_transitions:
        name, waits_for = transition.replica_name, waits.get(transition.replica_name)
        if name is None or waits_for is None or is_forced(transition):
            continue
        told = f"{transition.type} is under way and waits: {waits_for.message}"
        if name == detached and transition.group is TransitionGroup.ATTACHMENT:
            refused = not_to_be_forced(view, make(view, TransitionType.FORCE_DETACH, now, name))
            why = told if refused is None else f"{refused.message}; {told}"
            yield _unheeded(view, annotation_keys.FORCE_DETACH, why)
        if name == removed:
            yield _unheeded(view, annotation_keys.FORCE_REMOVE, told)


def _unheeded(view: VolumeView, key: str, why: str) -> Wait:
    said = view.volume.metadata.annotations[key]
    return Wait("ForceWaits", f"nothing comes of {key}={said} yet: {why}", (Blocker.of(view.volume),))


def spent_annotations(view: VolumeView) -> tuple[str, ...]:
    """Words of consent that have had their effect: they must not be found lying about."""
    said = view.volume.metadata.annotations
    if said.get(annotation_keys.ACCEPT_DATA_LOSS) != "true":
        return ()
    remove, under_way = said.get(annotation_keys.FORCE_REMOVE), view.volume.status.datamesh_transitions
    spent = []
    removing = any(each.replica_name == remove for each in under_way)
    if remove is not None and remove not in view.members_by_name and not removing:
        spent.append(annotation_keys.FORCE_REMOVE)
    leaving = {each.replica_name for each in under_way if each.group is TransitionGroup.ATTACHMENT}
    there = [member for member in view.members if member.node_name == view.forced_off]
    if view.forced_off is not None and not any(member.name in leaving or _uses(view, member) for member in there):
        spent.append(annotation_keys.FORCE_DETACH)
    if annotation_keys.COMPARE_WITH in said and not any(each.undecided for each in view.volume.status.comparisons):
        spent.append(annotation_keys.COMPARE_WITH)
    words = (annotation_keys.FORCE_REMOVE, annotation_keys.FORCE_DETACH, annotation_keys.COMPARE_WITH)
    open_ones = [key for key in words if key in said]
    if spent == open_ones:
        spent.append(annotation_keys.ACCEPT_DATA_LOSS)
    return tuple(spent) if spent != [annotation_keys.ACCEPT_DATA_LOSS] else ()


def _by_force(view: VolumeView, now: datetime) -> Iterator[Transition]:
    for member in view.members:
        meant = member.node_name == view.forced_off and _uses(view, member)
        lost = member.attached and member.node_name not in view.access_nodes and not is_up(view, member.name)
        if meant or lost:
            yield make(view, TransitionType.FORCE_DETACH, now, member.name)
    forced = forced_replica(view)
    if forced is not None and forced.member is not None and is_to_be_forced_out(view, forced.member):
        yield make(view, TransitionType.FORCE_REMOVE_REPLICA, now, forced.name, before=forced.member.type)


def is_to_be_forced_out(view: VolumeView, member: Member) -> bool:
    """Whether a person wants a member removed by force, and it cannot be asked to leave.

    Its object is deleted first: otherwise it would ask to join again as soon as it is out.
    """
    forced = forced_replica(view)
    if forced is None or forced.name != member.name or view.volume.deleting or not forced.replica.deleting:
        return False
    return changes.is_in_the_way(view, member.name) or not is_here(view, member)


def _uses(view: VolumeView, member: Member) -> bool:
    """Whether it is to use the volume, or does so."""
    return member.attached or view.state_of(member.name).role == Role.PRIMARY
