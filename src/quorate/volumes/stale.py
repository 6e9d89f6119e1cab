"""Copies that lack something although DRBD calls them up to date: who they are, and what is not done meanwhile.

A write that was blocked for want of quorum can be acknowledged without one of the peers (``facts/drbd9-races``, E2).
All are UpToDate and Established then; what tells is a *mark* (``out-of-sync``), shown by any of the members, also by
one that has no part in it, or by nobody once two of them have met anew. So this is known from all members' reports
together, and from what ``rv.status.comparisons`` remembers (``attach.doubts`` writes it):

| a comparison that is open                    | binds                  | who is to be trusted                 |
|----------------------------------------------|------------------------|--------------------------------------|
| marks are shown                              | yes                    | all but those that marks are against |
| a primary lost quorum, and has gone on since | yes                    | that primary                         |
| the same, with a new generation in time      | if there are marks too | all but those that marks are against |
| it has not gone on                           | if there are marks too | the same: nothing was acknowledged   |

While one binds, only who is to be trusted becomes Primary, nobody leaves or joins, and no link between good copies is
broken or made anew (``config.keepLinks``): members of one generation meet without copying, and forget the mark.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from quorate.api import annotation_keys
from quorate.api.scalars import ReplicaName
from quorate.api.storage.datamesh import Member
from quorate.api.storage.drbd import DiskState, ReplicaType, Role
from quorate.api.storage.rv import Comparison, ComparisonReason
from quorate.volumes.naming import named
from quorate.volumes.view import Mark, VolumeView
from quorate.volumes.waits import Blocker, Wait

DOUBTS: Final = (ComparisonReason.MARKS, ComparisonReason.QUORUM_LOST)


def marks(view: VolumeView) -> tuple[Mark, ...]:
    """Those that mean something: not the ones of copies that have been compared since, and are equal."""
    known = {each.name for each in view.volume.status.compared_marks} if view.rv is not None else set[str]()
    return tuple(mark for mark in view.marks if mark.pair not in known)


def are_equal(view: VolumeView, one: ReplicaName, other: ReplicaName) -> bool:
    """Whether bits of one member against another are known to mean nothing."""
    return any(each.name == f"{one}/{other}" for each in view.volume.status.compared_marks)


def binding(view: VolumeView) -> tuple[Comparison, ...]:
    """Open comparisons that hold others back."""
    return tuple(each for each in view.rv.status.comparisons if _binds(each)) if view.rv is not None else ()


def _binds(comparison: Comparison) -> bool:
    if comparison.reason not in DOUBTS:
        return False
    if comparison.stale or comparison.undecided:
        return True
    return comparison.reason is ComparisonReason.QUORUM_LOST and comparison.resumed and not comparison.prevented


def trusted(view: VolumeView) -> tuple[ReplicaName | None, bool]:
    """By marks that nobody has looked into yet: whose copy counts, and whether that is only a guess.

    Marks come into being while somebody writes, and the writer has what was written. So it is the copy in use, or the
    one that was in use last, unless the marks may be older than that use: shown by a member that could not be asked
    before it began. Then the copy in use may be the stale one, and nobody but a person can tell.
    """
    shown, status = marks(view), view.volume.status
    names, last = {member.name for member in view.diskful_members}, status.last_promotion
    if (forked := _forked(view)) is not None:
        return forked.reference, False
    users = _users(view)
    user = users[0].name if users else last.replica if last is not None and last.replica in names else None
    if user is None:
        innocent = [mark.by for mark in shown if all(other.against != mark.by for other in shown)]
        return (innocent[0], False) if innocent else (shown[0].by if shown else None, True)
    # Whoever was heard when somebody was last promoted showed none then.
    unheard = names if last is None else set(last.unheard)
    accused = any(mark.against == user and mark.by in unheard for mark in shown)
    return ReplicaName(user), accused and all(user in (mark.by, mark.against) for mark in shown)


def _forked(view: VolumeView) -> Comparison | None:
    """What is open because two nodes wrote to the volume when they lost their link, if the copy that counts is here."""
    found = (each for each in view.volume.status.comparisons if each.reason is ComparisonReason.TWO_PRIMARIES)
    return next((each for each in found if each.reference in view.members_by_name), None)


def _users(view: VolumeView) -> list[Member]:
    """Copies in use, by their own kernels; of two the one that came first is the first."""
    asked = [each.node_name for each in view.volume.status.attach_requests]
    found = [member for member in view.diskful_members if view.state_of(member.name).role == Role.PRIMARY]
    return sorted(found, key=lambda each: asked.index(each.node_name) if each.node_name in asked else len(asked))


def accused_by(shown: tuple[Mark, ...], reference: str | None) -> tuple[ReplicaName, ...]:
    """Who lacks something, if this one's copy counts: a mark between that one and another is against the other."""
    found = dict.fromkeys(mark.by if mark.against == reference else mark.against for mark in shown)
    return tuple(sorted(found))


def stale_copies(view: VolumeView) -> Mapping[ReplicaName, int]:
    """Copies that lack something, and how much in KiB by the one who shows most; 0: it is not known any more."""
    if view.rv is None or view.forming:
        return {}
    held = binding(view)
    shown = marks(view)
    if not held and not shown:
        return {}
    reference = held[0].reference if held else trusted(view)[0]
    found = {ReplicaName(name): 0 for each in held for name in each.stale if name in view.members_by_name}
    for mark in shown:
        name = mark.by if mark.against == reference else mark.against
        found[name] = max(found.get(name, 0), mark.amount)
    return found


def doubtful_copies(view: VolumeView) -> frozenset[ReplicaName]:
    """Copies that may lack something: stale ones, and all but the reference while that has to be found out."""
    found = set(stale_copies(view))
    for each in binding(view):
        if each.reason is ComparisonReason.QUORUM_LOST and each.resumed and not each.prevented:
            found |= {member.name for member in view.diskful_members if member.name != each.reference}
    return frozenset(found)


def why_not_primary(view: VolumeView, member: Member) -> Wait | None:
    """Why a member must not be promoted: it may lack what users were told is written; None: it holds the data."""
    doubtful = doubtful_copies(view)
    undecided = [each for each in binding(view) if each.undecided]
    if (forked := _forked(view)) is not None and forked.reference != member.name and view.state_of(forked.reference).up:
        # Copies are made from the one that counts, and only while nobody writes to another.
        told = f"two nodes wrote to it, and the copies are compared with {named(view, [forked.reference])} first"
        return Wait("WaitingForComparison", told, (Blocker("ReplicatedVolumeReplica", forked.reference),))
    if member.type is not ReplicaType.DISKFUL:
        told = "it reads from copies of which some may lack something" if doubtful else ""
    elif member.name in doubtful or undecided:
        told = "its copy may lack something that was acknowledged"
    else:
        told = ""
    if not told:
        return None
    wait = described(view)
    return Wait("WaitingForComparison", f"{named(view, [member.name])}: {told}; {wait.message}", wait.blockers)


def nobody_leaves(view: VolumeView, subject: ReplicaName | None) -> Wait | None:
    """Why members stay as they are; None: they may change. A stale copy that is lost, or not good, may always go."""
    stale = stale_copies(view)
    if not stale and not binding(view):
        return None
    if subject is not None and subject in stale:
        state = view.state_of(subject)
        if not state.up or state.disk != DiskState.UP_TO_DATE:
            return None
    return described(view)


def has_disk(view: VolumeView, name: ReplicaName) -> bool:
    """Whether a member has its disk, in whatever state that is; one that nobody is in touch with may."""
    return view.state_of(name).disk not in (DiskState.DISKLESS, DiskState.FAILED)


def compared_later(view: VolumeView, comparison: Comparison) -> frozenset[ReplicaName]:
    """Members without a disk that another open comparison is about: this one need not wait for them."""
    others = (each for each in view.volume.status.comparisons if each is not comparison)
    names = {ReplicaName(name) for each in others for name in each.stale}
    return frozenset(name for name in names if not has_disk(view, name))


def links_are_kept(view: VolumeView) -> bool:
    """Whether no agent may part good copies."""
    if view.rv is None or view.rv.deleting or view.forming:
        return False
    return bool(marks(view)) or any(not _is_about_lost_disks(view, each) for each in binding(view))


def _is_about_lost_disks(view: VolumeView, comparison: Comparison) -> bool:
    """Whether nobody who is doubtful by it has a disk: then no link with one has anything to forget."""
    lost = [name for name in comparison.stale if not has_disk(view, ReplicaName(name))]
    return comparison.reason is ComparisonReason.MARKS and bool(lost) and len(lost) == len(comparison.stale)


def described(view: VolumeView) -> Wait:
    """What is amiss, and what is done about it, or has to be."""
    held, stale = binding(view), stale_copies(view)
    blockers = tuple(Blocker("ReplicatedVolumeReplica", name) for name in sorted(doubtful_copies(view)))
    parts = [_lacking(view, name, amount) for name, amount in sorted(stale.items())]
    if not held:
        return Wait("CopiesDiffer", "; ".join(parts), blockers)
    first, where = held[0], named(view, [ReplicaName(held[0].reference)])
    if first.undecided:
        parts.append(_persons_word(view))
    elif first.reason is ComparisonReason.QUORUM_LOST:
        parts.append(f"{where} lost quorum while in use and went on since; the others are compared with it")
    else:
        parts.append(f"copies are compared with {where}")
    if first.attempts:
        parts.append(f"tried {first.attempts} times in vain, and tried again")
    reference = view.members_by_name.get(ReplicaName(first.reference))
    if not first.undecided and reference is not None and not view.state_of(reference.name).up:
        given_up = f"{annotation_keys.FORCE_REMOVE}={reference.name}, {annotation_keys.ACCEPT_DATA_LOSS}=true"
        parts.append(f"{where} is not here: bring it back, or give it up with what only it has ({given_up})")
    return Wait("CopiesDiffer", "; ".join(parts), blockers)


def _lacking(view: VolumeView, name: ReplicaName, amount: int) -> str:
    seen = sorted({mark.by for mark in marks(view) if mark.against == name} - {name})
    if not has_disk(view, name):
        return f"{named(view, [name])} has no disk, and is compared with the others when it has, or goes"
    by = f" (seen by {named(view, seen)})" if seen else ""
    lacks = f"is UpToDate and lacks {amount} KiB" if amount else "may lack something"
    return f"{named(view, [name])} {lacks} of what others have{by}"


def _persons_word(view: VolumeView) -> str:
    users = [member.name for member in _users(view)]
    word = f"{annotation_keys.COMPARE_WITH}=<replica>, {annotation_keys.ACCEPT_DATA_LOSS}=true"
    using = f"{named(view, users)} is in use and may be the stale one: " if users else ""
    return f"{using}nothing is overwritten before a person says whose copy counts ({word})"
