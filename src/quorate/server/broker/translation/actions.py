"""The parts that many messages share: a status, an action with its issue, a permission."""

from __future__ import annotations

from typing import Final

from quorate.api.maintenance.action import ActionType, Blocker, Issue, LockKind
from quorate.maintenance import messages
from quorate.maintenance.moments import from_datetime
from quorate.server.broker.json_trees import Malformed, Tree

#: Zero of protobuf's enumerations: as good as not given.
UNKNOWN: Final = "UNKNOWN"

_LOCKS: Final = {
    LockKind.PERMISSION: "PERMISSION",
    LockKind.NOTIFICATION: "NOTIFICATION",
    LockKind.SCHEDULED_REQUEST: "SCHEDULED_REQUEST",
    LockKind.TEMPORARY: "TEMPORARY",
    LockKind.TRANSITION: "TRANSITION",
}


def actions_of(tree: Tree) -> tuple[messages.Action, ...]:
    """The actions that a message asks for or tells of."""
    return tuple(_action_of(item, number) for number, item in enumerate(tree.get("Actions", ())))


def _action_of(tree: Tree, number: int) -> messages.Action:
    if "Issue" in tree:
        raise Malformed("is only for answers", f"Actions[{number}].Issue")
    word = tree.get("Type", UNKNOWN)
    return messages.Action(
        type=None if word == UNKNOWN else ActionType(word),
        host=tree.get("Host", ""),
        services=tree.get("Services", ()),
        devices=tree.get("Devices", ()),
        duration=tree.get("Duration"),
        tenant=tree.get("Tenant", ""),
    )


def status_tree(status: messages.Status) -> Tree:
    """A status."""
    return {"Code": status.code.value, "Reason": status.reason} if status.reason else {"Code": status.code.value}


def action_tree(action: messages.Action) -> Tree:
    """An action, with why it is refused if it is."""
    tree: Tree = {"Type": action.type.value if action.type is not None else UNKNOWN}
    if action.host:
        tree["Host"] = action.host
    if action.services:
        tree["Services"] = action.services
    if action.devices:
        tree["Devices"] = action.devices
    if action.duration is not None:
        tree["Duration"] = action.duration
    if action.tenant:
        tree["Tenant"] = action.tenant
    if action.issue is not None:
        tree["Issue"] = _issue_tree(action.issue)
    return tree


def _issue_tree(issue: Issue) -> Tree:
    tree: Tree = {"Type": issue.type.value}
    if issue.message:
        tree["Message"] = issue.message
    if issue.blockers:
        tree["Blockers"] = [_blocker_tree(blocker) for blocker in issue.blockers]
    return tree


def _blocker_tree(blocker: Blocker) -> Tree:
    tree: Tree = {"Object": blocker.object}
    if blocker.lock is not None:
        tree["Lock"] = _LOCKS[blocker.lock]
    if blocker.id:
        tree["Id"] = blocker.id
    if blocker.owner:
        tree["Owner"] = blocker.owner
    if blocker.until is not None:
        tree["Until"] = from_datetime(blocker.until)
    return tree


def permission_tree(permission: messages.Permission) -> Tree:
    """A permission; a dry run's has no id."""
    tree: Tree = {"Id": permission.id} if permission.id else {}
    tree["Action"] = action_tree(permission.action)
    tree["Deadline"] = permission.deadline
    if permission.hosts:
        hosts = [_host_tree(host) for host in permission.hosts]
        tree["Extentions"] = [{"Type": "HostInfo", "Hosts": hosts}]
    return tree


def _host_tree(host: messages.HostInfo) -> Tree:
    tree: Tree = {"Name": host.name, "State": host.state.value, "NodeId": host.node_id}
    if host.interconnect_port:
        tree["InterconnectPort"] = host.interconnect_port
    return tree
