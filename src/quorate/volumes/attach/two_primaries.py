"""Two primaries: where they are allowed, when it is safe to begin, and what is done when their link is lost.

DRBD does not protect this state. When only the link between the two is cut both go on writing and their histories fork
(``two_primaries_2dtb_link_cut``). So the younger yields (its agent disconnects it at once, and it suspends). What it
wrote between the cut and that moment may be on a third member only.

| layout           | two primaries                                                    |
|------------------|------------------------------------------------------------------|
| 1D               | yes: there is one copy, which cannot fork                        |
| 2D, 3D           | between two diskful members                                      |
| with tie-breaker | never: the tie-breaker would keep both sides of a cut link alive |

What becomes of the younger then, ``yielding`` decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations

from quorate.api.meta import NodeName
from quorate.api.scalars import ReplicaName
from quorate.api.storage.datamesh import Member
from quorate.api.storage.drbd import DiskState, ReplicaType
from quorate.placement.layout import layout_of
from quorate.volumes.datamesh import younger_of_two
from quorate.volumes.naming import named
from quorate.volumes.view import VolumeView
from quorate.volumes.waits import Blocker, Wait


def not_in_this_layout(view: VolumeView, one: NodeName, other: NodeName) -> str:
    """Why the volume cannot be used on both nodes at once, as its layout goes; empty: it can."""
    configuration = view.rv.status.configuration if view.rv is not None else None
    if configuration is None:
        return "the volume has no configuration yet"
    layout = layout_of(configuration)
    shown = [member for member in view.members if member.type is not ReplicaType.DISKFUL and not member.hidden]
    if layout.tie_breakers or shown:
        return f"a volume of {layout} would not survive a cut link between two primaries: it is detached there first"
    if layout.diskful == 1:
        return ""
    without = [node for node in (one, other) if not _has_copy(view, node)]
    if without:
        return f"two primaries need a copy on both nodes, and {', '.join(without)} has none: it is detached there first"
    return ""


def not_now(view: VolumeView) -> Wait | None:
    """Why a second primary is not safe at this moment; None: it is."""
    assert view.rv is not None
    if view.rv.status.comparisons:
        return Wait(
            "WaitingForComparison", "copies may differ, and have to be compared before there is a second primary"
        )
    return restless(view)


def restless(view: VolumeView, *, without: frozenset[ReplicaName] = frozenset()) -> Wait | None:
    """Whether some member is away, or behind; None: all are connected, and nothing is being copied or compared.

    Whom it is ``without`` need not be up to date.
    """
    away = [member.name for member in view.members if member.excused or not _is_here(view, member)]
    if away:
        return Wait("NotConnected", f"not here: {named(view, away)}", _blockers(away))
    apart = [(one.name, other.name) for one, other in _links(view.members) if not view.connected(one.name, other.name)]
    if apart:
        told = "; ".join(named(view, pair) for pair in apart)
        return Wait("NotConnected", f"not connected with one another: {told}", _blockers({n for p in apart for n in p}))
    copies = [member.name for member in view.diskful_members if member.name not in without]
    behind = [name for name in copies if view.state_of(name).disk != DiskState.UP_TO_DATE]
    if behind:
        return Wait("WaitingForSync", f"not up to date: {named(view, behind)}", _blockers(behind))
    if view.resyncing():
        return Wait("WaitingForSync", "something is being copied or compared")
    return None


def link_lost(view: VolumeView) -> tuple[Member, Member] | None:
    """Of two attached members, the older and the younger, if either has lost a link; None: all is well.

    The younger's agent acts only on its own links. But if the older has lost the third member, what the older writes
    does not reach it while what the younger writes does: they must not both go on either. Those that join or leave come
    and go, and are no reason.
    """
    if view.rv is None:
        return None
    name = younger_of_two(view.rv)
    younger = next((member for member in view.members if member.name == name), None)
    if younger is None:
        return None
    older = next(member for member in view.members if member.attached and member is not younger)
    lost = any(
        not view.connected(primary.name, member.name)
        for primary in (older, younger)
        for member in view.members
        if member is not primary and _is_linked(member, primary) and _is_missed(member)
    )
    return (older, younger) if lost else None


def _links(members: tuple[Member, ...]) -> Iterator[tuple[Member, Member]]:
    return ((one, other) for one, other in combinations(members, 2) if _is_linked(one, other))


def _is_linked(one: Member, other: Member) -> bool:
    return ReplicaType.DISKFUL in (one.type, other.type)


def _is_missed(member: Member) -> bool:
    """Whether a primary that loses it has lost something. One that joins, leaves or is excused holds up no quorum."""
    return member.attached or not (member.hidden or member.down or member.excused)


def _is_here(view: VolumeView, member: Member) -> bool:
    replica = view.replica(member.name)
    return replica is not None and replica.report is not None and not member.down


def _has_copy(view: VolumeView, node: NodeName) -> bool:
    return any(
        member.node_name == node and member.type is ReplicaType.DISKFUL and not member.hidden for member in view.members
    )


def _blockers(names: Iterable[ReplicaName]) -> tuple[Blocker, ...]:
    return tuple(Blocker("ReplicatedVolumeReplica", name) for name in sorted(names))
