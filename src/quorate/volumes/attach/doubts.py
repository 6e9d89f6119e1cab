"""What makes copies doubtful, written down before anybody acts on it; and when it is settled without a comparison.

| seen                                                         | ``rv.status.comparisons``                           |
|--------------------------------------------------------------|-----------------------------------------------------|
| a primary's agent reports a loss of quorum (quorumLostAt)    | QuorumLost, with that primary as reference          |
| enough of the others are out of touch with it, and it does   | the same: it stands still, if it lives              |
| not say so itself: its agent may be dead                     |                                                     |
| it has quorum again, or is met again, still Primary          | the same, resumed: what was blocked is acknowledged |
| it is demoted, and has met them again: who can tell          | the same                                            |
| it is not Primary any more, and never went on                | struck off: nothing was acknowledged                |
| marks between good copies                                    | Marks, or one more stale copy of one that is open   |
| an agent makes a link anew by which marks may be lost        | the same, before it does (metUnsureAt)              |
| a copy in doubt has no disk, and has had none for a while    | Marks against it: it is compared by itself, if ever |
| a copy in doubt is in use all the same                       | undecided: nothing is overwritten any more          |
| a person says whose copy counts                              | no longer undecided                                 |

A loss is known by its time, which the agent notes on its node: neither a dead agent nor an API that is away makes it
unseen. A member that was overtaken, because another was promoted meanwhile, has acknowledged nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final

from quorate.api import annotation_keys
from quorate.api.scalars import ReplicaName
from quorate.api.storage.datamesh import Member
from quorate.api.storage.drbd import ConnectionState, DiskState, Role
from quorate.api.storage.drbdrop import OperationPhase
from quorate.api.storage.rv import Comparison, ComparisonReason, MarkedPair, Promotion, ReplicatedVolumeStatus
from quorate.api.struct import replace
from quorate.volumes.attach.turns import using
from quorate.volumes.datamesh import younger_of_two
from quorate.volumes.patience import left_of
from quorate.volumes.stale import accused_by, binding, doubtful_copies, has_disk, marks, trusted
from quorate.volumes.view import ReplicaView, VolumeView, link_to

#: Seconds after a comparison within which agents tell of marks that it left.
SETTLING: Final = 15.0
#: Seconds between two comparisons that only clear marks which mean nothing.
CLEARING: Final = 3600.0
#: Seconds for a disk that was lost with the quorum to come back, before the others are compared without it.
WITHOUT_DISK: Final = 60.0


def noticed(view: VolumeView, now: datetime) -> ReplicatedVolumeStatus | None:
    """The status with what has just become doubtful, or is not any more; None: nothing has."""
    if view.rv is None or view.rv.deleting or view.forming:
        return None
    rules: tuple[Callable[[VolumeView, datetime], ReplicatedVolumeStatus | None], ...] = (
        _lost_quorum,
        _out_of_touch,
        _gone_on,
        _settled,
        _decided,
        _usurped,
        _met_unsure,
        _marked,
        _left_out,
        _heard,
        _unmarked,
        _cleared,
    )
    return next((found for rule in rules if (found := rule(view, now)) is not None), None)


def promoted(view: VolumeView, member: Member) -> Promotion:
    """Who begins to use the volume, and whose marks nobody could ask for."""
    unheard = tuple(
        other.name
        for other in view.diskful_members
        if other.name != member.name and ((replica := view.replica(other.name)) is None or replica.report is None)
    )
    return Promotion(replica=member.name, unheard=unheard)


def compared(view: VolumeView, now: datetime) -> tuple[MarkedPair, ...]:
    """Marks that are left when every copy has been found equal to one: they mean nothing."""
    return tuple(MarkedPair(name=mark.pair, compared_at=now) for mark in view.marks)


def _lost_quorum(view: VolumeView, now: datetime) -> ReplicatedVolumeStatus | None:
    for member in view.diskful_members:
        replica = view.replica(member.name)
        if replica is None or not replica.fresh:
            continue
        actual = replica.replica.status.drbd.actual
        if actual.quorum_lost_at is None:
            continue
        known = _of(view, member)
        if actual.quorum_lost_at == member.quorum_lost_at:
            # Once it has gone on it is too late; an earlier loss may be open, too.
            if known is not None and actual.quorum_loss_prevented and not (known.prevented or known.resumed):
                return _changed(view, known, replace(known, prevented=True))
            continue
        noted = _with_member(view, replace(member, quorum_lost_at=actual.quorum_lost_at))
        if not _counts(view, member):
            return noted
        prevented = actual.quorum_loss_prevented
        return _with_doubt(noted, member, now, resumed=not _stands(member, replica), prevented=prevented)
    return None


def _counts(view: VolumeView, member: Member) -> bool:
    """Whether what it may have acknowledged counts: nobody else has been promoted, and it yields to nobody."""
    yields = member.returns_to is not None or younger_of_two(view.volume) == member.name
    return (
        not _is_overtaken(view, member.name) and not yields and not _has_forked(view) and len(view.diskful_members) > 1
    )


def _has_forked(view: VolumeView) -> bool:
    """Whether copies are to be compared because two were written to: that finds everything else, too."""
    return any(each.reason is ComparisonReason.TWO_PRIMARIES for each in view.volume.status.comparisons)


def _out_of_touch(view: VolumeView, now: datetime) -> ReplicatedVolumeStatus | None:
    """A user has lost quorum by the word of the others, and does not say so: its agent is dead, or about to tell."""
    for member in view.diskful_members:
        if not member.attached or member.hidden or _of(view, member) is not None or _has_told(view, member):
            continue
        if _never_went_on(view, member):
            continue  # It would be struck off at once, and noticed again.
        if not _may_be_quorate(view, member) and _counts(view, member):
            return _with_doubt(view.volume.status, member, now, resumed=False, prevented=False)
    return None


def _has_told(view: VolumeView, member: Member) -> bool:
    """Whether its own agent says that it is in touch with nobody: then it says all there is to say."""
    replica = view.replica(member.name)
    if replica is None or replica.report is None:
        return False
    return not any(link.connection_state == ConnectionState.CONNECTED for link in replica.report.connections)


def _may_be_quorate(view: VolumeView, member: Member) -> bool:
    """Whether those who do not say that they are out of touch with it may be enough for it.

    Who is excused is in nobody's file: its vote counts, and nobody is with it.
    """
    away = {
        other.name
        for other in view.members
        if other is not member and not other.hidden and _report(view, other) and not _sees(view, other, member)
    }
    votes = [other for other in view.diskful_members if not other.hidden]
    side = [other for other in votes if other.name not in away and not other.excused]
    ties = [other for other in view.members if not other.hidden and other not in votes and other.name not in away]
    return 2 * len(side) > len(votes) or (2 * len(side) == len(votes) and bool(ties))


def _gone_on(view: VolumeView, now: datetime) -> ReplicatedVolumeStatus | None:
    for known in _losses(view):
        member = view.members_by_name.get(known.reference)
        if known.resumed or member is None:
            continue
        replica = view.replica(member.name)
        if replica is not None and replica.fresh:
            # Its last word may be that of a dead agent: somebody has to be in touch with it.
            met = any(view.connected(member.name, other.name) for other in view.diskful_members if other is not member)
            on = met and _may_have_written(view, replica)
        else:
            on = any(_sees(view, other, member, primary=True) for other in view.diskful_members)
        if on:
            return _changed(view, known, replace(known, resumed=True))
    return None


def _may_have_written(view: VolumeView, replica: ReplicaView) -> bool:
    """Whether it has quorum again, and uses it; or did, before anybody looked: it may be demoted at once (F1)."""
    report = replica.report
    if report is None or report.suspended_quorum or not (report.devices and report.devices[0].quorum):
        return False
    return report.role == Role.PRIMARY or not _is_overtaken(view, replica.name)


def _settled(view: VolumeView, now: datetime) -> ReplicatedVolumeStatus | None:
    for known in view.volume.status.comparisons:
        if known.reason is ComparisonReason.MARKS:
            gone = bool(known.stale) and not any(name in view.members_by_name for name in known.stale)
        elif known.reason is ComparisonReason.QUORUM_LOST:
            member = view.members_by_name.get(known.reference)
            gone = member is None or (not known.resumed and not known.stale and _never_went_on(view, member))
        else:
            continue
        if gone:
            left = tuple(each for each in view.volume.status.comparisons if each is not known)
            return replace(view.volume.status, comparisons=left)
    return None


def _never_went_on(view: VolumeView, member: Member) -> bool:
    """Whether it is not Primary, by its own word, or another has been promoted in its place.

    Who was demoted when it had met the others again is not among these: ``_gone_on`` comes first.
    """
    replica = view.replica(member.name)
    if replica is not None and replica.fresh:
        return replica.report is None or replica.report.role != Role.PRIMARY
    return _is_overtaken(view, member.name)


def _is_overtaken(view: VolumeView, name: ReplicaName) -> bool:
    """Whether another has been promoted since."""
    last = view.volume.status.last_promotion
    return last is not None and last.replica != name


def _decided(view: VolumeView, now: datetime) -> ReplicatedVolumeStatus | None:
    said = view.volume.metadata.annotations
    named = view.members_by_name.get(said.get(annotation_keys.COMPARE_WITH, ""))  # type: ignore[call-overload]
    if named is None or named not in view.diskful_members or said.get(annotation_keys.ACCEPT_DATA_LOSS) != "true":
        return None
    for known in view.volume.status.comparisons:
        if known.undecided:
            stale = tuple(name for name in accused_by(marks(view), named.name) if name != named.name)
            decided = replace(known, undecided=False, decided=True, reference=named.name, stale=stale)
            return _changed(view, known, decided)
    return None


def _usurped(view: VolumeView, now: datetime) -> ReplicatedVolumeStatus | None:
    """A copy in doubt is Primary: by hand, or since before anybody knew. What it has is not overwritten by itself."""
    if any(each.undecided for each in binding(view)):
        return None
    doubtful = doubtful_copies(view)
    for known in (each for each in binding(view) if not each.decided):
        users = [each.name for each in view.diskful_members if view.state_of(each.name).role == Role.PRIMARY]
        if users and known.reference not in users and any(name in doubtful for name in users):
            return _changed(view, known, replace(known, undecided=True))
    return None


def _marked(view: VolumeView, now: datetime) -> ReplicatedVolumeStatus | None:
    shown = marks(view)
    if not shown or _has_forked(view) or any(each.status.phase is OperationPhase.RUNNING for each in view.comparisons):
        return None  # A comparison makes marks of its own.
    since, open_doubts = view.volume.status.compared_at, binding(view) or _losses(view)
    if since is not None and not open_doubts and left_of(SETTLING, since, now) > 0:
        # Left by the comparison itself: copying from one member to another leaves them between those and others.
        return replace(view.volume.status, compared_marks=compared(view, since))
    if open_doubts:
        known = open_doubts[0]
        stale = tuple(sorted({*known.stale, *accused_by(shown, known.reference)}))
        return _changed(view, known, replace(known, stale=stale)) if stale != known.stale else None
    reference, undecided = trusted(view)
    assert reference is not None
    return _with_comparison(
        view.volume.status,
        Comparison(
            revision=view.volume.status.datamesh_revision + 1,
            reason=ComparisonReason.MARKS,
            since=now,
            reference=reference,
            stale=accused_by(shown, reference),
            undecided=undecided,
        ),
    )


def _met_unsure(view: VolumeView, now: datetime) -> ReplicatedVolumeStatus | None:
    """Agents cure copies that stand still by making links anew: two that are taken for equal then may differ."""
    for member in view.diskful_members:
        replica = view.replica(member.name)
        actual = replica.replica.status.drbd.actual if replica is not None else None
        if actual is None or actual.met_unsure_at in (None, member.met_unsure_at):
            continue
        status = _with_member(view, replace(member, met_unsure_at=actual.met_unsure_at))
        doubted = next((each for each in view.diskful_members if each.node_id == actual.met_unsure), None)
        if doubted is None or len(view.diskful_members) == 1 or _has_forked(view):
            return status
        return _with_stale(view, status, doubted, now)
    return None


def _with_stale(
    view: VolumeView, status: ReplicatedVolumeStatus, doubted: Member, now: datetime
) -> ReplicatedVolumeStatus:
    """One more copy that may lack something. What was begun before begins anew: more may differ since."""
    revision, known = status.datamesh_revision + 1, next(iter(binding(view) or _losses(view)), None)
    if known is None:
        found = Comparison(
            revision=revision,
            reason=ComparisonReason.MARKS,
            since=now,
            reference=_good_one(view, doubted),
            stale=(doubted.name,),
        )
    elif known.reference == doubted.name:
        # It is said to have what others lack, and may lack what they have.
        found = replace(known, revision=revision, undecided=True)
    else:
        found = replace(known, revision=revision, stale=tuple(sorted({*known.stale, doubted.name})))
    kept = tuple(each for each in status.comparisons if each is not known)
    return _with_comparison(replace(status, comparisons=kept), found)


def _good_one(view: VolumeView, doubted: Member) -> ReplicaName:
    """The copy in use, or that was in use last, or any good one but this."""
    others = [each for each in view.diskful_members if each is not doubted]
    last = view.volume.status.last_promotion
    return min(
        others,
        key=lambda each: (
            view.state_of(each.name).disk != DiskState.UP_TO_DATE,
            view.state_of(each.name).role != Role.PRIMARY,
            last is None or last.replica != each.name,
            each.hidden,
            each.node_id,
        ),
    ).name


def _left_out(view: VolumeView, now: datetime) -> ReplicatedVolumeStatus | None:
    """Nobody waits for a disk that may never come back: the others are compared, and it by itself, unless it goes."""
    for known in _losses(view):
        lost = _without_disk(view, known)
        if not lost or left_of(WITHOUT_DISK, known.since, now) > 0:
            continue
        apart = Comparison(
            revision=view.volume.status.datamesh_revision + 1,
            reason=ComparisonReason.MARKS,
            since=now,
            reference=known.reference,
            stale=lost,
        )
        return _with_comparison(view.volume.status, apart)
    return None


def _without_disk(view: VolumeView, known: Comparison) -> tuple[ReplicaName, ...]:
    """Who has no disk to be compared, and is on no list of its own yet."""
    if known not in binding(view) or known.undecided or known.reference not in view.members_by_name:
        return ()
    listed = {name for each in view.volume.status.comparisons if each is not known for name in each.stale}
    names = {member.name for member in view.diskful_members} - {known.reference, *listed}
    return tuple(sorted(name for name in names if view.state_of(name).up and not has_disk(view, name)))


def _heard(view: VolumeView, now: datetime) -> ReplicatedVolumeStatus | None:
    """Whoever shows no marks now has had none to show when the present use began."""
    last = view.volume.status.last_promotion
    if last is None or not last.unheard:
        return None
    clean = {other.name for other in view.diskful_members if _report(view, other)} - {m.by for m in view.marks}
    left = tuple(name for name in last.unheard if name not in clean and name in view.members_by_name)
    if left == last.unheard:
        return None
    return replace(view.volume.status, last_promotion=replace(last, unheard=left))


def _unmarked(view: VolumeView, now: datetime) -> ReplicatedVolumeStatus | None:
    """Marks that meant nothing and are gone: the next ones may mean something."""
    known = view.volume.status.compared_marks
    shown = {mark.pair for mark in view.marks}
    silent = {m.name for m in view.diskful_members if not _report(view, m)}
    left = tuple(each for each in known if each.name in shown or each.name.partition("/")[0] in silent)
    return replace(view.volume.status, compared_marks=left) if left != known else None


def _cleared(view: VolumeView, now: datetime) -> ReplicatedVolumeStatus | None:
    """Marks that mean nothing are copied away while nobody uses the volume, now and then."""
    status = view.volume.status
    if status.comparisons or using(view):
        return None
    due = [each for each in status.compared_marks if left_of(CLEARING, each.compared_at, now) <= 0]
    if not due:
        return None
    return _with_comparison(
        status,
        Comparison(
            revision=status.datamesh_revision + 1,
            reason=ComparisonReason.MARKS,
            since=now,
            reference=ReplicaName(due[0].name.partition("/")[0]),
        ),
    )


def look_again(view: VolumeView, now: datetime) -> float | None:
    """Seconds until a lost disk is waited for no more, or marks that mean nothing may be cleared away."""
    status = view.volume.status
    waits = [left_of(WITHOUT_DISK, each.since, now) for each in _losses(view) if _without_disk(view, each)]
    if waits:
        return min(waits)
    if not status.compared_marks or status.comparisons or using(view):
        return None
    return min(left_of(CLEARING, each.compared_at, now) for each in status.compared_marks)


def _losses(view: VolumeView) -> tuple[Comparison, ...]:
    found = view.volume.status.comparisons
    return tuple(each for each in found if each.reason is ComparisonReason.QUORUM_LOST)


def _of(view: VolumeView, member: Member) -> Comparison | None:
    return next((each for each in _losses(view) if each.reference == member.name), None)


def _report(view: VolumeView, member: Member) -> bool:
    replica = view.replica(member.name)
    return replica is not None and replica.report is not None


def _stands(member: Member, replica: ReplicaView) -> bool:
    """Whether it waits for quorum, by its own word, and is Primary still, or was demoted by a person's force."""
    report = replica.report
    if report is None or (report.role != Role.PRIMARY and not member.force_secondary):
        return False
    return report.suspended_quorum or not (report.devices and report.devices[0].quorum)


def _sees(view: VolumeView, other: Member, member: Member, *, primary: bool = False) -> bool:
    """Whether a member is in touch with another, by its own word; and sees it Primary."""
    replica = view.replica(other.name)
    link = link_to(replica.report, member.node_id) if replica is not None else None
    in_touch = link is not None and link.connection_state == ConnectionState.CONNECTED
    return in_touch and (not primary or (link is not None and link.peer_role == Role.PRIMARY))


def _with_doubt(
    status: ReplicatedVolumeStatus, member: Member, now: datetime, *, resumed: bool, prevented: bool
) -> ReplicatedVolumeStatus:
    """One more loss. What was begun for an earlier one of the same member begins anew: more may differ since."""
    revision = status.datamesh_revision + 1
    doubt = Comparison(
        revision=revision,
        reason=ComparisonReason.QUORUM_LOST,
        since=now,
        reference=member.name,
        resumed=resumed,
        prevented=prevented,
    )
    before = [
        each
        for each in status.comparisons
        if each.reason is ComparisonReason.QUORUM_LOST and each.reference == member.name
    ]
    for each in before:
        # An earlier loss that nothing was done against is as open as it was.
        unprevented = each.resumed and not each.prevented
        doubt = replace(
            doubt,
            resumed=doubt.resumed or unprevented,
            prevented=doubt.prevented and not unprevented,
            stale=tuple(sorted({*doubt.stale, *each.stale})),
        )
    kept = tuple(each for each in status.comparisons if each not in before)
    return _with_comparison(replace(status, comparisons=kept), doubt)


def _with_comparison(status: ReplicatedVolumeStatus, comparison: Comparison) -> ReplicatedVolumeStatus:
    return replace(
        status, comparisons=(*status.comparisons, comparison), datamesh_revision=status.datamesh_revision + 1
    )


def _changed(view: VolumeView, before: Comparison, after: Comparison) -> ReplicatedVolumeStatus:
    status = view.volume.status
    return replace(status, comparisons=tuple(after if each is before else each for each in status.comparisons))


def _with_member(view: VolumeView, changed: Member) -> ReplicatedVolumeStatus:
    status = view.volume.status
    members = tuple(changed if member.name == changed.name else member for member in view.members)
    return replace(status, datamesh=replace(status.datamesh, members=members))
