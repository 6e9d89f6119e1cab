"""What a volume and the broker must know of each other before either writes (``quorate.locks``).

While a permission holds the node, a drive or the replica of a member, no step that changes votes, copies or size
begins: its members could not all confirm it. Nor is the volume attached where it could not be written to without one
of them (``attach.permissions``). The other way round, a pass that begins such a step, or attaches the volume anywhere,
claims all of these before it writes, so that no permission is given on them while the write is under way.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from functools import partial

from quorate.api.storage import ReplicatedVolume
from quorate.api.storage.datamesh import Member
from quorate.engine import Plan
from quorate.locks import Change, LockTable, Sort, Thing
from quorate.volumes import transitions
from quorate.volumes.transitions.rules import Locks
from quorate.volumes.view import VolumeView
from quorate.volumes.waits import Wait, for_permissions


def with_holds(view: VolumeView, table: LockTable) -> VolumeView:
    """The picture, with the permissions that concern its members."""
    found = {member.name: holds for member in view.members if (holds := table.holds_on(_things_of(view, member)))}
    return dataclasses.replace(view, holds=found) if found else view


def locks_of(view: VolumeView) -> Locks:
    """Why a member must not be disturbed now."""
    return partial(_held, view)


def claimed(view: VolumeView, plan: Plan, table: LockTable) -> Plan:
    """The plan, with what it must claim before it writes."""
    if plan.transition is None:
        return plan
    before, after = plan.transition.observed, plan.transition.intended
    assert isinstance(before, ReplicatedVolume)
    assert isinstance(after, ReplicatedVolume)
    what = _vote_step_begun(before, after) or _attachment_begun(before, after)
    if what is None:
        return plan
    change = Change(view.name, what)
    members = {member.name: member for rv in (before, after) for member in rv.status.datamesh.members}
    things = frozenset(thing for member in members.values() for thing in _things_of(view, member))
    known = frozenset(hold.permission_id for holds in view.holds.values() for _, hold in holds)
    return dataclasses.replace(plan, claim=partial(table.claim, change, things, known=known))


def _vote_step_begun(before: ReplicatedVolume, after: ReplicatedVolume) -> str | None:
    begins = transitions.unconfirmed_vote_step(after)
    if begins is None or begins == transitions.unconfirmed_vote_step(before):
        return None
    transition, step = begins
    of = f" of {transition.replica_name}" if transition.replica_name is not None else ""
    return f"{step.name}{of}"


def _attachment_begun(before: ReplicatedVolume, after: ReplicatedVolume) -> str | None:
    """That the volume is about to be used where it was not: from then on the broker asks about it."""
    known = {member.name for member in before.status.datamesh.members if member.attached}
    coming = [member for member in after.status.datamesh.members if member.attached and member.name not in known]
    return f"the attachment on {', '.join(member.node_name for member in coming)}" if coming else None


def _held(view: VolumeView, member: Member) -> Wait | None:
    holds = view.holds.get(member.name, ())
    return for_permissions(holds) if holds else None


def _things_of(view: VolumeView, member: Member) -> Iterable[Thing]:
    yield Thing(Sort.NODE, member.node_name)
    yield Thing(Sort.REPLICA, member.name)
    replica = view.replica(member.name)
    if replica is None:
        return
    piece = replica.logical_volume
    # Where a piece lies is known once it is made; until then it may come to lie anywhere in its group.
    devices = (piece.status.devices if piece is not None else ()) or (
        replica.group.status.devices if replica.group is not None else ()
    )
    for device in devices:
        if device.drive_uuid:
            yield Thing(Sort.DRIVE, device.drive_uuid)
