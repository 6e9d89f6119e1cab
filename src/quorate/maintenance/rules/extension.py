"""Permissions that are there already: may one last longer, and does it outlive its deadline."""

from __future__ import annotations

from quorate.api.maintenance.action import AvailabilityMode, HostState, Issue, StatusCode, TenantPolicy
from quorate.maintenance.entries import PermissionEntry
from quorate.maintenance.evaluation import Refusal
from quorate.maintenance.model.cluster import ClusterModel
from quorate.maintenance.model.lookup import Unresolved, claimed, find
from quorate.maintenance.rules.inquiry import FIRST, Inquiry
from quorate.maintenance.rules.request import take_all


def may_extend(
    model: ClusterModel,
    permission: PermissionEntry,
    deadline: int,
    now: int,
    *,
    mode: AvailabilityMode = AvailabilityMode.MAX_AVAILABILITY,
    tenant_policy: TenantPolicy = TenantPolicy.DEFAULT,
) -> Refusal | None:
    """None: it may end then instead. To end sooner is always allowed; to last longer is asked as if it were not there.

    Mode and policy are those under which it was granted. Who waits in the queue is not asked: the holder was before
    them.
    """
    if deadline <= permission.deadline:
        return None
    action = permission.action
    items = find(model, action)
    if isinstance(items, Unresolved):
        return Refusal(action, items.code, Issue(message=items.message))
    model.advance(now)
    with model.without(permission.id):
        inquiry = Inquiry(model, now, rank=FIRST, mode=mode, partial=False, tenant_policy=tenant_policy)
        inquiry.turn_to(action, permission_duration=max(deadline - now, 0))
        objection = take_all(inquiry, items)
    if objection is None:
        return None
    refusal = objection.refusal(action)
    return Refusal(action, StatusCode.DISALLOW, refusal.issue, refusal.deadline)


def is_down(model: ClusterModel, permission: PermissionEntry) -> bool:
    """Something that it locks is not up: it keeps its lock past its deadline."""
    return any(item.state is not HostState.UP for item in claimed(model, permission.action))
