"""Questions about a set of members: who votes, who breaks a tie, who holds a copy."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

from quorate.api.scalars import ReplicaName
from quorate.api.storage.datamesh import Member
from quorate.api.storage.drbd import ConnectionState, DiskState, ReplicaType
from quorate.placement.layout import Layout, layout_of
from quorate.volumes.stale import doubtful_copies
from quorate.volumes.view import ReplicaView, VolumeView, link_to


def is_diskful(member: Member) -> bool:
    """Whether it holds a copy."""
    return member.type is ReplicaType.DISKFUL


def voters(members: Iterable[Member]) -> tuple[Member, ...]:
    """Those with a disk that the others count."""
    return tuple(member for member in members if is_diskful(member) and not member.hidden)


def tie_breakers(members: Iterable[Member]) -> tuple[Member, ...]:
    """Those without a disk that the others count; more than one would be a mistake."""
    return tuple(member for member in members if not is_diskful(member) and not member.hidden)


def promise_of(view: VolumeView) -> Layout | None:
    """What the volume promises; None: it has no configuration yet."""
    configuration = view.rv.status.configuration if view.rv is not None else None
    return layout_of(configuration) if configuration is not None else None


def has_tie_breaker(view: VolumeView) -> bool:
    """Whether the volume's layout has one."""
    promise = promise_of(view)
    return promise is not None and promise.tie_breakers > 0


def is_linked(one: Member, other: Member) -> bool:
    """Whether two members have a link: those without a disk have nothing to tell one another."""
    return is_diskful(one) or is_diskful(other)


def is_up(view: VolumeView, name: ReplicaName) -> bool:
    """Whether a living agent says that the member's kernel has the resource."""
    replica = view.replica(name)
    return replica is not None and replica.report is not None


def is_fresh(view: VolumeView, name: ReplicaName) -> bool:
    """Whether its agent's word counts."""
    replica = view.replica(name)
    return replica is not None and replica.fresh


def says_connected(replica: ReplicaView, other: Member) -> bool:
    """Whether a member says that it is in touch with another."""
    link = link_to(replica.report, other.node_id)
    return link is not None and link.connection_state == ConnectionState.CONNECTED


def is_up_to_date(view: VolumeView, name: ReplicaName) -> bool:
    """Whether its copy is good, by its own word or that of members in touch with it."""
    state = view.state_of(name)
    return state.up and state.disk == DiskState.UP_TO_DATE


def good_copies(view: VolumeView, without: ReplicaName | None = None) -> tuple[ReplicaName, ...]:
    """Voters whose copy is good now. One without quorum may take itself for up to date, and is not."""
    doubtful = doubtful_copies(view)
    return tuple(
        member.name
        for member in voters(view.members)
        if member.name != without
        and not member.excused
        and is_up_to_date(view, member.name)
        and member.name not in doubtful
        and _is_quorate(view, member.name)
    )


def _is_quorate(view: VolumeView, name: ReplicaName) -> bool:
    """By its own word, or as one that is in touch with such a one."""
    state = view.state_of(name)
    if state.quorum is not None:
        return state.quorum
    return any(view.state_of(other).quorum for other in state.said_by)


def is_serving(view: VolumeView) -> bool:
    """Whether some voter has quorum, by its own word. Only one side can have it."""
    return any(view.state_of(member.name).quorum for member in voters(view.members) if is_up(view, member.name))


def lacks_only_copies(view: VolumeView) -> bool:
    """Whether what keeps the voters from quorum is the number of good copies, and nothing else (decision 0012).

    All of them are here, and in touch with one another: there is no other side that could have it. So it is on 2D
    when the disk under the user dies: the other copy is good, and alone is not enough for a write.
    """
    votes = voters(view.members)
    good = [member for member in votes if is_up_to_date(view, member.name)]
    return (
        0 < len(good) < (view.volume.status.drbd.config.quorum_minimum_redundancy or 1)
        and all(is_up(view, member.name) and not member.excused for member in votes)
        and all(view.connected(one.name, other.name) for one, other in combinations(votes, 2))
    )


def sources(view: VolumeView) -> tuple[ReplicaName, ...]:
    """Voters that another copy can be made from: the good ones; without quorum, if they lack only others like them."""
    good = good_copies(view)
    if good or not lacks_only_copies(view):
        return good
    return tuple(member.name for member in voters(view.members) if is_up_to_date(view, member.name))


def is_whole(view: VolumeView) -> bool:
    """Whether every member is up, every copy is good, and all are in touch with one another."""
    return all(
        is_up(view, member.name)
        and (not is_diskful(member) or is_up_to_date(view, member.name))
        and not out_of_touch(view, member.name)
        for member in view.members
    )


def has_lost_its_disk(view: VolumeView, name: ReplicaName) -> bool:
    """Whether a member that should have a disk has none that works, by its own living agent's word."""
    state, member = view.state_of(name), view.members_by_name.get(name)
    gone = state.disk in (DiskState.DISKLESS, DiskState.FAILED)
    return member is not None and is_diskful(member) and not member.down and gone and is_up(view, name)


def without_quorum(view: VolumeView) -> tuple[ReplicaName, ...]:
    """Voters that are up and have no quorum."""
    return tuple(
        member.name
        for member in voters(view.members)
        if is_up(view, member.name) and not view.state_of(member.name).quorum
    )


def sides_of_divided(view: VolumeView) -> tuple[tuple[ReplicaName, ...], tuple[ReplicaName, ...]] | None:
    """Of voters of which half or fewer have quorum: those, and who is up without it; None: they are not divided so.

    Those that have it kept it through the tie-breaker. One that is down, stale or stuck is excused instead.
    """
    cut_off = tuple(name for name in without_quorum(view) if not view.members_by_name[name].excused)
    votes = voters(view.members)
    quorate = tuple(member.name for member in votes if is_up(view, member.name) and view.state_of(member.name).quorum)
    return (quorate, cut_off) if cut_off and quorate and 2 * len(quorate) <= len(votes) else None


def out_of_touch(view: VolumeView, name: ReplicaName) -> tuple[ReplicaName, ...]:
    """Voters that have quorum, and that a member is not in touch with. One that is cut off itself is not missed."""
    return tuple(
        other.name
        for other in voters(view.members)
        if other.name != name
        and not other.excused
        and is_up(view, other.name)
        and view.state_of(other.name).quorum
        and not view.connected(name, other.name)
    )
