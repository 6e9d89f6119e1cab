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


def filled(tree: Tree) -> Tree:
    """The fields with something to say, as protobuf's JSON has them: given, and not empty. Zero says something."""
    return {name: value for name, value in tree.items() if value or value == 0}


def status_tree(status: messages.Status) -> Tree:
    """A status."""
    return filled({"Code": status.code.value, "Reason": status.reason})


def action_tree(action: messages.Action) -> Tree:
    """An action, with why it is refused if it is."""
    return filled(
        {
            "Type": action.type.value if action.type is not None else UNKNOWN,
            "Host": action.host,
            "Services": action.services,
            "Devices": action.devices,
            "Duration": action.duration,
            "Tenant": action.tenant,
            "Issue": _issue_tree(action.issue) if action.issue is not None else None,
        }
    )


def _issue_tree(issue: Issue) -> Tree:
    blockers = [_blocker_tree(blocker) for blocker in issue.blockers]
    return filled({"Type": issue.type.value, "Message": issue.message, "Blockers": blockers})


def _blocker_tree(blocker: Blocker) -> Tree:
    found = {
        "Lock": _LOCKS[blocker.lock] if blocker.lock is not None else None,
        "Id": blocker.id,
        "Owner": blocker.owner,
        "Until": from_datetime(blocker.until) if blocker.until is not None else None,
    }
    return {"Object": blocker.object} | filled(found)


def permission_tree(permission: messages.Permission) -> Tree:
    """A permission; a dry run's has no id."""
    hosts = [_host_tree(host) for host in permission.hosts]
    return filled(
        {
            "Id": permission.id,
            "Action": action_tree(permission.action),
            "Deadline": permission.deadline,
            "Extentions": [{"Type": "HostInfo", "Hosts": hosts}] if hosts else None,
            "Run": permission.run,
            "Cost": permission.cost,
        }
    )


def _host_tree(host: messages.HostInfo) -> Tree:
    tree: Tree = {"Name": host.name, "State": host.state.value, "NodeId": host.node_id}
    return tree | filled({"InterconnectPort": host.interconnect_port or None})
