"""Where a volume could not be written to while somebody who may go down is away (02, Attach and permissions).

A permission was given because of who used the volume then. Whoever comes later was not asked about, so they wait until
it is over. What goes down with a node is its member, and whatever runs there; with a drive, the disk of its member,
whose node goes on without one. Any of those that may go down may, alone or together with others.

    permission on                         the user on n1 goes on if
    n1 itself                             it ends with its node: nothing is asked
    another member's node, drive, replica it keeps quorum without that member
    the drive under n1's own replica      a good copy that it is in touch with is quorate without it
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, combinations

from quorate.api.meta import NodeName
from quorate.api.scalars import ReplicaName
from quorate.api.storage.datamesh import Member
from quorate.api.storage.drbd import ReplicaType
from quorate.locks import Hold, Sort, Thing
from quorate.placement.layout import layout_of
from quorate.volumes import effective
from quorate.volumes.attach.turns import member_on
from quorate.volumes.naming import named
from quorate.volumes.view import VolumeView
from quorate.volumes.waits import Wait, for_permissions


def held_for(view: VolumeView, node: NodeName) -> Wait | None:
    """Why the volume is not attached on a node while permissions are held; None: it may be, or is already."""
    user = member_on(view, node)
    if not view.holds or (user is not None and user.attached):
        return None
    mesh = effective.mesh_of(view)
    for lost in _who_may_go(view, user):
        ids = frozenset(view.members_by_name[name].node_id for name in lost)
        if not effective.goes_on_at(mesh, user.node_id if user is not None else None, ids):
            told = f"{view.name} could not be written to on {node} without {named(view, lost)}"
            return for_permissions([hold for name in lost for hold in _holds_on(view, name, user)], because=told)
    return _held_before_it_serves(view, user)


def _who_may_go(view: VolumeView, user: Member | None) -> Iterator[tuple[ReplicaName, ...]]:
    """Every set of members that may be away at once, the smallest first."""
    held = [name for name in view.holds if _holds_on(view, name, user)]
    return chain.from_iterable(combinations(held, number) for number in range(1, len(held) + 1))


def _holds_on(view: VolumeView, name: ReplicaName, user: Member | None) -> list[tuple[Thing, Hold]]:
    """The permissions on a member that leave whoever would use the volume behind: not those on the user's own node."""
    own = user is not None and name == user.name
    return [hold for hold in view.holds[name] if not (own and hold[0].sort is Sort.NODE)]


def _held_before_it_serves(view: VolumeView, user: Member | None) -> Wait | None:
    """Where there is a tie-breaker its place is taken first, and no vote changes while somebody may go down."""
    configuration = view.volume.status.configuration
    breaks_ties = configuration is not None and bool(layout_of(configuration).tie_breakers)
    if not breaks_ties or (user is not None and (user.type is ReplicaType.DISKFUL or not user.hidden)):
        return None
    holds = [hold for holds in view.holds.values() for hold in holds]
    return for_permissions(holds, because="the tie-breaker does not change its place meanwhile")
