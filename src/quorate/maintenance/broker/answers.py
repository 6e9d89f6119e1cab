"""How decisions are told."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from quorate.api.maintenance.action import ActionType, StatusCode
from quorate.api.struct import replace
from quorate.maintenance.entries import PermissionEntry
from quorate.maintenance.evaluation import Evaluation
from quorate.maintenance.messages import Action, HostInfo, Permission, PermissionResponse, Status
from quorate.maintenance.model import ClusterModel
from quorate.maintenance.moments import later
from quorate.maintenance.rules.stranded import stranded_note, stuck_note, suspended_note

#: With ``Schedule``, a request so answered is kept.
WAITING: Final = frozenset({StatusCode.ALLOW_PARTIAL, StatusCode.DISALLOW_TEMP, StatusCode.ERROR_TEMP})

_OF_HOSTS: Final = frozenset({ActionType.RESTART_SERVICES, ActionType.SHUTDOWN_HOST})

OK: Final = Status(code=StatusCode.OK)

#: Of each action that waits. 1,095 requests of six actions with sixteen each were 13 MB to be encoded at every write.
STORED_BLOCKERS: Final = 3


def bare(action: Action) -> Action:
    """Without why it was refused before."""
    return action if action.issue is None else replace(action, issue=None)


def in_short(action: Action) -> Action:
    """With the first few of those in its way: all are in the answer, and the whole ledger is written every time."""
    issue = action.issue
    if issue is None or len(issue.blockers) <= STORED_BLOCKERS:
        return action
    return replace(action, issue=replace(issue, blockers=issue.blockers[:STORED_BLOCKERS]))


def permission(model: ClusterModel, entry: PermissionEntry) -> Permission:
    """A permission, with the nodes of its host as they are now."""
    hosts = _hosts(model, entry.action)
    return Permission(
        id=entry.id, action=entry.action, deadline=entry.deadline, hosts=hosts, run=entry.run, cost=entry.cost
    )


def granted(
    model: ClusterModel, evaluation: Evaluation, permissions: Iterable[PermissionEntry], *, request_id: str
) -> PermissionResponse:
    """What was decided."""
    return _response(model, evaluation, tuple(permission(model, entry) for entry in permissions), request_id)


def tried(model: ClusterModel, evaluation: Evaluation, now: int, *, request_id: str = "") -> PermissionResponse:
    """What would be decided: the same, but permissions have no ids."""
    permissions = tuple(
        Permission(
            id="",
            action=grant.action,
            deadline=later(now, grant.permission_duration),
            hosts=_hosts(model, grant.action),
            cost=grant.cost,
        )
        for grant in evaluation.grants
    )
    return _response(model, evaluation, permissions, request_id)


def _response(
    model: ClusterModel, evaluation: Evaluation, permissions: tuple[Permission, ...], request_id: str
) -> PermissionResponse:
    actions = [each.action for each in permissions]
    told = (stranded_note(model, actions), suspended_note(model, actions), stuck_note(model, actions))
    notes = (evaluation.reason, *told)
    return PermissionResponse(
        status=Status(code=evaluation.code, reason="; ".join(filter(None, notes))),
        request_id=request_id,
        permissions=permissions,
        deadline=evaluation.deadline,
        refused=tuple(replace(refusal.action, issue=refusal.issue) for refusal in evaluation.refusals),
    )


def _hosts(model: ClusterModel, action: Action) -> tuple[HostInfo, ...]:
    if action.type not in _OF_HOSTS:
        return ()
    return tuple(
        HostInfo(name=node.host, state=node.state, node_id=node.id, interconnect_port=node.interconnect_port)
        for node in model.nodes_of(action.host)
    )
