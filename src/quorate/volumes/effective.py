"""The effective layout: what a volume could survive from here, by the kernel's own rule on live reports.

For each set of members that could be lost next, the quorum rule (``quorate.drbd``, held to the recordings) says whether
the rest goes on: some diskful member keeps quorum, and so does every member where the volume is in use and that is not
among the lost. FTT is the largest number of members of which *any* so many may be lost at once; -1: I/O stands already.
GMDR is the number of up-to-date copies beyond the one that is needed; -1: none is left.

"Had quorum before" is an input: a survivor that keeps quorum by a tie-break would not get it back, and so must not be
taken down and up again. A copy that may lack something (``stale``) is not good, whatever the kernel calls it, though
the kernel counts it. Who is silent counts as its fresh peers see it; who has no fresh peer either, as lost already.

What decides holds no names: volumes of one shape in one state share one answer, so ten thousand healthy volumes cost
one evaluation and ten thousand look-ups.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from functools import lru_cache
from itertools import combinations
from types import MappingProxyType
from typing import Final

import msgspec
from msgspec.structs import replace

from quorate.api.meta import NodeName
from quorate.api.names import replica_id
from quorate.api.scalars import ReplicaName
from quorate.api.storage.datamesh import EffectiveLayout, Member
from quorate.api.storage.drbd import DiskState, DrbdStatus, ReplicaType, Role
from quorate.api.struct import replace as changed
from quorate.drbd import quorum
from quorate.drbd.quorum import MemberView, PeerView, Verdict
from quorate.drbd.views import has_quorum, view_of
from quorate.volumes.naming import named
from quorate.volumes.stale import doubtful_copies
from quorate.volumes.view import VolumeView
from quorate.volumes.waits import shortened

_AN_ID: Final = re.compile(r"#(\d)\b")


class Mesh(msgspec.Struct, frozen=True, gc=False):
    """The members of a volume as far as losses concern them: by node id, without names."""

    #: What each fresh member sees.
    views: tuple[MemberView, ...]
    #: Ids of members, shown and with a disk; and of those whose copy is up to date, by a word that counts.
    voters: frozenset[int] = frozenset()
    up_to_date: frozenset[int] = frozenset()
    tie_breakers: frozenset[int] = frozenset()
    #: Where the volume is in use, or is about to be: from then on nobody asks whether it could be.
    primaries: frozenset[int] = frozenset()

    @property
    def speaking(self) -> frozenset[int]:
        """Ids of members that say themselves what they see."""
        return frozenset(view.node_id for view in self.views)


class Aftermath(msgspec.Struct, frozen=True):
    """What would be left of a volume."""

    #: I/O goes on, or can: a diskful member is quorate, and every member in use that is left.
    survives: bool
    #: Up-to-date copies within reach of those that go on; where nobody does, all that are left.
    copies: int
    #: What each member that is left and speaks would say, by node id.
    verdicts: Mapping[int, Verdict]
    #: For a person.
    message: str


class _Numbers(msgspec.Struct, frozen=True):
    """An evaluated mesh."""

    failures_to_tolerate: int
    copies: int
    reachable: frozenset[int]


def layout(view: VolumeView) -> EffectiveLayout:
    """What the volume can survive from here (``rv.status.effectiveLayout``)."""
    mesh = mesh_of(view)
    stale = tuple(member.name for member in view.members if not _is_fresh(view, member))
    counts = EffectiveLayout(
        total_voters=len(mesh.voters), total_tie_breakers=len(mesh.tie_breakers), stale_agents=len(stale)
    )
    if mesh.voters and not mesh.views and len(stale) < len(view.members):
        down = named(view, (member.name for member in view.members if member.name not in stale))
        told = f"I/O stands: not up, by the word of living agents: {down}"
        return changed(counts, failures_to_tolerate=-1, guaranteed_minimum_data_redundancy=-1, message=shortened(told))
    if not mesh.voters or not mesh.views:
        silent = "no member's agent reports" if mesh.voters else "there is no member with a disk"
        return changed(counts, message=f"nothing is known: {silent}")
    numbers = _evaluated(mesh)
    return changed(
        counts,
        failures_to_tolerate=numbers.failures_to_tolerate,
        guaranteed_minimum_data_redundancy=numbers.copies - 1,
        reachable_voters=len(mesh.voters & numbers.reachable),
        up_to_date_voters=len(mesh.voters & mesh.up_to_date & numbers.reachable),
        reachable_tie_breakers=len(mesh.tie_breakers & numbers.reachable),
        message=shortened(_summary(view, mesh, numbers, stale)),
    )


def after_losing(view: VolumeView, nodes: Collection[NodeName]) -> Aftermath:
    """What would happen if these nodes went down now, all at once: for the broker and for ``explain``."""
    lost = frozenset(member.node_id for member in view.members if member.node_name in nodes)
    found = after(mesh_of(view), lost)
    return replace(found, message=_with_names(view, found.message))


def after(mesh: Mesh, lost: frozenset[int]) -> Aftermath:
    """The same, of members by their ids."""
    return _after(mesh, lost)


def goes_on_at(mesh: Mesh, user: int | None, lost: frozenset[int]) -> bool:
    """Whether the volume could be written to at a member without these; None: at one that joins without a disk.

    A user among the lost is one that loses its disk only: it goes on if a good copy that it sees does.
    """
    left = after(mesh, lost)
    if left.copies <= 0:
        return False
    if user is not None and user in left.verdicts:
        return left.verdicts[user].quorate
    serving = {voter for voter in mesh.voters if voter in left.verdicts and left.verdicts[voter].quorate}
    own = next((view for view in mesh.views if view.node_id == user), None)
    if own is None:
        return bool(serving)
    return any(peer.connected and peer.node_id in serving & mesh.up_to_date for peer in own.peers)


def serving_side(mesh: Mesh) -> frozenset[int]:
    """Node ids of the members that the volume is served by, and of those in touch with them; empty: I/O stands."""
    if not mesh.voters or not mesh.views:
        return frozenset()
    numbers = _evaluated(mesh)
    return numbers.reachable if numbers.failures_to_tolerate >= 0 else frozenset()


def mesh_of(view: VolumeView) -> Mesh:
    """The members, as the quorum rule needs to know them."""
    reports: dict[int, DrbdStatus] = {}
    diskful, voters, up_to_date, tie_breakers, primaries = set[int](), set[int](), set[int](), set[int](), set[int]()
    doubtful = doubtful_copies(view)
    for member in view.members:
        node_id, replica, state = member.node_id, view.replica(member.name), view.state_of(member.name)
        if replica is not None and replica.report is not None:
            reports[node_id] = replica.report
        if member.type is ReplicaType.DISKFUL:
            diskful.add(node_id)
        if not member.hidden:
            (voters if member.type is ReplicaType.DISKFUL else tie_breakers).add(node_id)
        if state.up and state.disk == DiskState.UP_TO_DATE and member.name not in doubtful:
            up_to_date.add(node_id)
        if state.up and (state.role == Role.PRIMARY or member.attached):
            primaries.add(node_id)
    seen = [_seen_by(view, member, reports, diskful) for member in view.members if member.node_id in reports]
    return Mesh(
        views=_agreed(tuple(seen)),
        voters=frozenset(voters),
        up_to_date=frozenset(up_to_date),
        tie_breakers=frozenset(tie_breakers),
        primaries=frozenset(primaries),
    )


def _agreed(views: tuple[MemberView, ...]) -> tuple[MemberView, ...]:
    """The same, without links that an end denies: one that has just died has said that all was well."""
    linked = {view.node_id: {peer.node_id for peer in view.peers if peer.connected} for view in views}
    denied = {
        (one, other) for one, others in linked.items() for other in others if one not in linked.get(other, (one,))
    }
    if not denied:
        return views
    return tuple(
        replace(
            view,
            peers=tuple(
                replace(peer, connected=False, disk_state=DiskState.UNKNOWN, quorate=False)
                if (view.node_id, peer.node_id) in denied
                else peer
                for peer in view.peers
            ),
        )
        for view in views
    )


def _seen_by(view: VolumeView, member: Member, reports: Mapping[int, DrbdStatus], diskful: set[int]) -> MemberView:
    """What a member sees. Its metadata count the diskful, also excused ones, and those not forgotten yet."""
    drbd, report = view.by_name[member.name].replica.status.drbd, reports[member.node_id]
    left = {node_id for node_id in view.datamesh.forget if node_id not in drbd.actual.forgotten}
    remembered = (diskful | left) - {member.node_id}
    return view_of(drbd.config, report, had_quorum=has_quorum(report), reports=reports, remembered=remembered)


@lru_cache(maxsize=2048)
def _evaluated(mesh: Mesh) -> _Numbers:
    now = _after(mesh, frozenset())
    reachable = _serving(mesh, now)
    if not now.survives:
        return _Numbers(-1, now.copies, reachable)
    tolerated = 0
    candidates = sorted(reachable & (mesh.voters | mesh.tie_breakers | mesh.primaries))
    for number in range(1, len(candidates) + 1):
        if not all(_after(mesh, frozenset(lost)).survives for lost in combinations(candidates, number)):
            break
        tolerated = number
    return _Numbers(tolerated, now.copies, reachable)


@lru_cache(maxsize=4096)
def _after(mesh: Mesh, lost: frozenset[int]) -> Aftermath:
    left = [view for view in mesh.views if view.node_id not in lost]
    verdicts = {view.node_id: _judged(view, lost) for view in left if _has_disk(view)}
    quorate = frozenset(node_id for node_id, said in verdicts.items() if said.quorate)
    # A member without a disk has quorum through a quorate peer: what its peers have then, not what they have now.
    verdicts |= {view.node_id: _judged(_told(view, quorate), lost) for view in left if not _has_disk(view)}
    voters = {view.node_id for view in left if view.node_id in mesh.voters}
    serving = [node_id for node_id in sorted(voters) if verdicts[node_id].quorate]
    stopped = [
        node_id for node_id in sorted(mesh.primaries - lost) if node_id in verdicts and not verdicts[node_id].quorate
    ]
    # Where nobody serves, what is left of the data is still worth knowing.
    reach = _reach([view for view in left if view.node_id in serving] or left, lost)
    copies = len(mesh.voters & mesh.up_to_date & reach - lost)
    survives = bool(serving) and not stopped and copies > 0
    return Aftermath(survives, copies, MappingProxyType(verdicts), _told_to_people(serving, stopped, copies, verdicts))


def _judged(view: MemberView, lost: frozenset[int]) -> Verdict:
    return quorum.after_losing(view, lost) if lost else quorum.verdict(view)


def _has_disk(view: MemberView) -> bool:
    return view.disk_state not in (DiskState.DISKLESS, DiskState.ATTACHING)


def _told(view: MemberView, quorate: frozenset[int]) -> MemberView:
    peers: tuple[PeerView, ...] = tuple(
        replace(peer, quorate=peer.connected and peer.node_id in quorate) for peer in view.peers
    )
    return replace(view, peers=peers)


def _serving(mesh: Mesh, now: Aftermath) -> frozenset[int]:
    """The members on the side that serves; where none does, on the side with the most voters."""
    sides = [(view, _reach([view], frozenset())) for view in mesh.views]
    quorate = [side for view, side in sides if view.node_id in mesh.voters and now.verdicts[view.node_id].quorate]
    if quorate:
        return frozenset().union(*quorate)
    return max((side for _, side in sides), key=lambda side: (len(side & mesh.voters), sorted(side)))


def _reach(views: Collection[MemberView], lost: frozenset[int]) -> frozenset[int]:
    found = {view.node_id for view in views}
    found |= {peer.node_id for view in views for peer in view.peers if peer.connected}
    return frozenset(found - lost)


def _told_to_people(serving: list[int], stopped: list[int], copies: int, verdicts: Mapping[int, Verdict]) -> str:
    if stopped:
        return "; ".join(f"I/O stops at #{node_id}: {verdicts[node_id].explanation}" for node_id in stopped)
    if serving:
        return f"goes on with #{serving[0]} ({verdicts[serving[0]].explanation}), {copies} copies up to date"
    if not verdicts:
        return "nobody would be left who speaks"
    return "; ".join(f"#{node_id}: {said.explanation}" for node_id, said in sorted(verdicts.items()))


def _summary(view: VolumeView, mesh: Mesh, numbers: _Numbers, stale: Collection[ReplicaName]) -> str:
    # Where nobody serves, no side is the one that the others are out of reach of.
    here = numbers.reachable | (mesh.speaking if numbers.failures_to_tolerate < 0 else frozenset())
    away = [member.name for member in view.members if not member.hidden and member.node_id not in here]
    behind = (mesh.voters & numbers.reachable) - mesh.up_to_date
    parts = []
    if numbers.failures_to_tolerate < 0:
        parts.append(_standstill(view, mesh, _with_names(view, _after(mesh, frozenset()).message)))
    if away:
        parts.append(f"out of reach: {named(view, away)}")
    if behind:
        slow = (name for name in view.members_by_name if replica_id(name) in behind)
        parts.append(f"not up to date: {named(view, slow)}")
    if (not parts or here != numbers.reachable) and (apart := _apart(mesh)):
        cut = "; ".join(named(view, (view.possible_names[one], view.possible_names[other])) for one, other in apart)
        parts.append(f"not connected with one another: {cut}")
    if stale:
        parts.append(f"silent agents: {named(view, stale)}")
    if numbers.failures_to_tolerate >= 0:
        more = f"any {numbers.failures_to_tolerate}" if numbers.failures_to_tolerate else "none"
        parts.append(f"{more} more may be lost")
    return "; ".join(parts)


def _standstill(view: VolumeView, mesh: Mesh, why: str) -> str:
    """That I/O stands, and why; unless whoever uses the volume says that it does not.

    Members with a disk are bound by the number of copies; a user without one is not, but for its agent
    (``agent/replica/hold``). What it reports counts more than what should be, as long as somebody is in touch with it.
    """
    users = [replica for replica in view.replicas if replica.report is not None and replica.report.role == Role.PRIMARY]
    in_touch = {
        each.node_id for each in mesh.views if not _has_disk(each) and any(peer.connected for peer in each.peers)
    }
    flowing = [each.name for each in users if each.report is not None and each.id in in_touch and _flows(each.report)]
    if flowing:
        return f"I/O goes on at {named(view, flowing)}, with fewer copies than promised: {why}"
    held = [each.name for each in users if each.replica.status.drbd.actual.held_for_copies]
    unheard = [
        member.name
        for member in view.members
        if member.attached and member.type is not ReplicaType.DISKFUL and not _is_fresh(view, member)
    ]
    parts = [f"I/O stands: {why}"]
    if held:
        parts.append(f"held by the agent until enough copies are connected: {named(view, held)}")
    if unheard:
        parts.append(f"not known whether it does where no agent is heard that would hold it: {named(view, unheard)}")
    return "; ".join(parts)


def _flows(report: DrbdStatus) -> bool:
    return not report.suspended and not report.force_io_failures and has_quorum(report)


def _apart(mesh: Mesh) -> list[tuple[int, int]]:
    """Pairs that count, of which one at least says that it is not in touch with the other."""
    counted = mesh.voters | mesh.tie_breakers
    return sorted(
        {
            (min(view.node_id, peer.node_id), max(view.node_id, peer.node_id))
            for view in mesh.views
            for peer in view.peers
            if not peer.connected and {view.node_id, peer.node_id} <= counted
        }
    )


def _with_names(view: VolumeView, words: str) -> str:
    """What is said of members by their ids, because volumes share it, in this one's names."""
    return _AN_ID.sub(lambda found: named(view, (view.possible_names[int(found[1])],)), words)


def _is_fresh(view: VolumeView, member: Member) -> bool:
    node = view.nodes.get(member.node_name)
    return node is not None and node.fresh
