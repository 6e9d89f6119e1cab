"""What steps do to the datamesh: pure functions from a status to the next. Each changes at most one vote.

Whom members must forget is said until all have confirmed it. Then one more revision unsays it, confirmed as well: a
node id that is used again must find nobody who believes to have forgotten it already.
"""

from __future__ import annotations

from collections.abc import Iterable

from quorate.api.scalars import ReplicaName
from quorate.api.storage.datamesh import Member, Transition, TransitionType
from quorate.api.storage.drbd import ReplicaType
from quorate.api.storage.rv import ReplicatedVolumeStatus
from quorate.api.struct import replace
from quorate.placement.layout import majority
from quorate.volumes.transitions.members import (
    has_tie_breaker,
    is_diskful,
    is_serving,
    is_up,
    is_up_to_date,
    out_of_touch,
    promise_of,
    tie_breakers,
    voters,
)
from quorate.volumes.transitions.rules import subject_of
from quorate.volumes.view import VolumeView
from quorate.volumes.volume.formation.members import member_of


def join(view: VolumeView, transition: Transition) -> ReplicatedVolumeStatus:
    """The others get to know the new one, hidden. It stays down until they do.

    Otherwise a member that has not been told would hear of it through the others and take it for a second tie-breaker
    that is away (``parity_naive_2dtb``).
    """
    name = subject_of(transition)
    replica = view.replica(name)
    if replica is None or name in view.members_by_name:
        return view.volume.status
    kind = transition.to_replica_type or transition.replica_type or replica.type
    joining = replace(member_of(view, replica, hidden=True), type=kind, down=True)
    return with_members(view, (*view.members, joining))


def connect(view: VolumeView, transition: Transition) -> ReplicatedVolumeStatus:
    """The new one comes up."""
    return _changed(view, transition, down=False)


def unchanged(view: VolumeView, transition: Transition) -> ReplicatedVolumeStatus:
    """Nothing is told to anybody: something is waited for."""
    return view.volume.status


def show(view: VolumeView, transition: Transition) -> ReplicatedVolumeStatus:
    """It counts."""
    return _changed(view, transition, hidden=False)


def hide(view: VolumeView, transition: Transition) -> ReplicatedVolumeStatus:
    """It does not count any more; it may still come back."""
    return _changed(view, transition, hidden=True, attached=False)


def take_down(view: VolumeView, transition: Transition) -> ReplicatedVolumeStatus:
    """Its resource goes down."""
    return _changed(view, transition, down=True)


def forget(view: VolumeView, transition: Transition) -> ReplicatedVolumeStatus:
    """The rest drop it from their files and lose its place in their metadata, in one go."""
    name = subject_of(transition)
    leaver = view.members_by_name.get(name)
    if leaver is None:
        return view.volume.status
    rest = tuple(member for member in view.members if member.name != name)
    return with_members(view, rest, forget=(*view.datamesh.forget, leaver.node_id))


def settle(view: VolumeView, transition: Transition) -> ReplicatedVolumeStatus:
    """Everybody has forgotten: what was to be forgotten need not be said any more."""
    return with_members(view, view.members, forget=_unforgotten(view, view.members))


def detach(view: VolumeView, transition: Transition) -> ReplicatedVolumeStatus:
    """It is not meant to be Primary any more; by a person's word it is made Secondary whoever holds its device open.

    So is one that is out of reach, when it is back. Without that word nobody's I/O is failed.
    """
    member = view.members_by_name.get(subject_of(transition))
    forced = member is not None and (member.force_secondary or view.forced_off == member.node_name)
    return _changed(view, transition, attached=False, force_secondary=forced)


def spared(view: VolumeView, name: ReplicaName) -> ReplicatedVolumeStatus:
    """It is not made Secondary by force: it is already, or the word is taken back."""
    member = replace(view.members_by_name[name], force_secondary=False)
    return with_members(view, _with(view.members, member))


def retype(view: VolumeView, transition: Transition) -> ReplicatedVolumeStatus:
    """Access and tie-breaker: the same member by another name, hidden or not as before."""
    return _changed(view, transition, type=transition.to_replica_type)


def hide_tie_breaker(view: VolumeView, transition: Transition) -> ReplicatedVolumeStatus:
    """Nobody without a disk counts, while the number of voters changes. One that has no vote goes without that."""
    subject = view.members_by_name.get(subject_of(transition))
    if subject is not None and subject.hidden and not subject.excused and _goes(transition):
        return view.volume.status
    members = tuple(member if is_diskful(member) else replace(member, hidden=True) for member in view.members)
    return with_members(view, members)


def show_tie_breaker(view: VolumeView, transition: Transition) -> ReplicatedVolumeStatus:
    """One member without a disk counts, where the layout has a tie-breaker and the number of voters is even."""
    chosen = due_tie_breaker(view)
    if chosen is None:
        return settle(view, transition)
    shown = _with(view.members, replace(chosen, hidden=False))
    return with_members(view, shown, forget=_unforgotten(view, shown))


def due_tie_breaker(view: VolumeView) -> Member | None:
    """The member that is to be shown as the tie-breaker; None: nobody is, or there is one already. Never two.

    Only one that is up, and in touch with every voter that is: the last step of somebody's removal does not wait for a
    tie-breaker that is away. It is shown when it is back.
    """
    if not has_tie_breaker(view) or len(voters(view.members)) % 2 or tie_breakers(view.members):
        return None
    willing = [
        member
        for member in view.members
        if not is_diskful(member)
        and not (member.down or member.excused)
        and is_up(view, member.name)
        and not out_of_touch(view, member.name)
    ]
    # Whoever serves is the one; else the one that is meant to be; else the lowest.
    return min(
        willing,
        key=lambda member: (not member.attached, member.type is not ReplicaType.TIE_BREAKER, member.node_id),
        default=None,
    )


def give_way(view: VolumeView, transition: Transition) -> ReplicatedVolumeStatus:
    """A copy that is up, and in another one's way, goes down before any vote changes."""
    name = subject_of(transition)
    return _changed(view, transition, down=True) if is_in_the_way(view, name) else view.volume.status


def hand_over(view: VolumeView, transition: Transition) -> ReplicatedVolumeStatus:
    """The good copy that had no vote gets one, beside the last that had; that one is hidden next."""
    chosen = successor_of(view, subject_of(transition))
    if chosen is None:
        return view.volume.status
    return with_members(view, _with(view.members, replace(chosen, hidden=False)))


def is_in_the_way(view: VolumeView, name: ReplicaName) -> bool:
    """Whether nothing can go on because of a copy that is up and heard.

    It is the last one with a vote and has no quorum, and a good one is there that has none. Or there are as many voters
    on either side of a cut link, and a good one is on the other.
    """
    if not is_up(view, name) or view.members_by_name[name].down:
        return False
    if successor_of(view, name) is not None:
        return True
    votes = [member.name for member in voters(view.members)]
    cut_off = [other for other in votes if other != name and not view.connected(name, other)]
    evenly = name in votes and 2 * len(cut_off) == len(votes)
    return evenly and any(is_up(view, other) and is_up_to_date(view, other) for other in cut_off)


def successor_of(view: VolumeView, name: ReplicaName) -> Member | None:
    """Who could take the place of the last copy with a vote; None: it is not the last, it serves, or nobody could."""
    if is_serving(view) or [member.name for member in voters(view.members)] != [name]:
        return None
    good = (
        member
        for member in view.members
        if is_diskful(member)
        and member.hidden
        and not (member.down or member.excused)
        and is_up(view, member.name)
        and is_up_to_date(view, member.name)
    )
    return min(good, key=lambda member: member.node_id, default=None)


def lower_redundancy(view: VolumeView, transition: Transition) -> ReplicatedVolumeStatus:
    """As many copies as will be left without the one that goes, if that is less than asked for now."""
    left = [member for member in voters(view.members) if member.name != transition.replica_name]
    return _with_redundancy(view, min(_redundancy(view), max(1, len(left))))


def set_redundancy(view: VolumeView, transition: Transition) -> ReplicatedVolumeStatus:
    """As many copies as are promised and members can give."""
    return _with_redundancy(view, possible_redundancy(view))


def possible_redundancy(view: VolumeView) -> int:
    """What qmr should be: the promise, or all voters where there are fewer."""
    promise = promise_of(view)
    promised = promise.minimum_redundancy if promise is not None else 1
    return min(promised, max(1, len(voters(view.members))))


def excuse(view: VolumeView, names: Iterable[ReplicaName]) -> ReplicatedVolumeStatus:
    """The others take these out of their files, and wait for them no longer."""
    absent = set(names)
    return with_members(
        view, (replace(member, excused=True) if member.name in absent else member for member in view.members)
    )


def readmit(view: VolumeView, name: ReplicaName) -> ReplicatedVolumeStatus:
    """The others link again to one that has caught up."""
    members = tuple(replace(member, excused=False) if member.name == name else member for member in view.members)
    return with_members(view, members, forget=_unforgotten(view, members))


def all_forgotten(view: VolumeView) -> ReplicatedVolumeStatus | None:
    """The last copy that had not has forgotten those that left; None: there is nobody to forget, or it has not yet."""
    left = _unforgotten(view, view.members)
    return with_members(view, view.members, forget=left) if left != view.datamesh.forget else None


def with_members(
    view: VolumeView, members: Iterable[Member], *, forget: Iterable[int] | None = None
) -> ReplicatedVolumeStatus:
    """The status with these members; the numbers that follow from them follow."""
    status = view.volume.status
    after = tuple(sorted(members, key=lambda member: member.node_id))
    told = status.datamesh.forget if forget is None else tuple(sorted(set(forget)))
    datamesh = replace(status.datamesh, members=after, forget=told)
    shared = replace(status.drbd.config, quorum=majority(len(voters(after))))
    return replace(status, datamesh=datamesh, drbd=replace(status.drbd, config=shared))


def _goes(transition: Transition) -> bool:
    return transition.type in (TransitionType.REMOVE_REPLICA, TransitionType.FORCE_REMOVE_REPLICA)


def _unforgotten(view: VolumeView, members: Iterable[Member]) -> tuple[int, ...]:
    """Whom some copy has not forgotten yet.

    One that sleeps is told when it wakes, before it is taken back; one that is without its disk, when that is back.
    """
    copies = [member for member in members if is_diskful(member)]
    if any(member.excused for member in copies):
        return view.datamesh.forget
    return tuple(
        node_id
        for node_id in view.datamesh.forget
        if any(member.node_id != node_id and not _has_forgotten(view, member, node_id) for member in copies)
    )


def _has_forgotten(view: VolumeView, member: Member, node_id: int) -> bool:
    replica = view.replica(member.name)
    return replica is not None and node_id in replica.replica.status.drbd.actual.forgotten


def _changed(view: VolumeView, transition: Transition, **changes: object) -> ReplicatedVolumeStatus:
    member = view.members_by_name.get(subject_of(transition))
    if member is None:
        return view.volume.status
    return with_members(view, _with(view.members, replace(member, **changes)))


def _with(members: tuple[Member, ...], changed: Member) -> tuple[Member, ...]:
    return tuple(changed if member.name == changed.name else member for member in members)


def _redundancy(view: VolumeView) -> int:
    return view.volume.status.drbd.config.quorum_minimum_redundancy or 1


def _with_redundancy(view: VolumeView, copies: int) -> ReplicatedVolumeStatus:
    status = with_members(view, view.members)
    shared = replace(status.drbd.config, quorum_minimum_redundancy=copies)
    return replace(status, drbd=replace(status.drbd, config=shared))
