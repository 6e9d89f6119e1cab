"""What somebody may write. Reads are not limited.

An agent, what is its node's, and nothing else:

| object                                | allowed                                  |
|---------------------------------------|------------------------------------------|
| of a kind that belongs to a node      | if it carries the agent's label          |
| Lease ``quorate-agent-<node>``        | its own                                  |
| core Node                             | its own, but not to delete it            |
| Event                                 | any                                      |
| anything else                         | no                                       |

Whoever is no admin asks the maintenance broker in their own name: ``spec.user`` of a PermissionRequest, a Notification
and a Permission must be the caller's, also to change or delete it.

``deploy/admission`` has the same for a real API server: agent-writes.yaml, maintenance-users.yaml.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from quorate.api import labels, names
from quorate.api.core import Event, Lease, Node
from quorate.api.maintenance import Notification, Permission, PermissionRequest
from quorate.api.meta import NodeName
from quorate.engine.embedded import Admit, Record, everybody, forbidden
from quorate.server.kubernetes.callers import Caller

_ADMINS: Final = frozenset({"system:masters", "quorate:admins"})


def admission_of(caller: Caller, *, deleting: bool = False) -> Admit:
    """The rule that a caller's writes are held to."""
    node = caller.agent_of
    if not node:
        return everybody if _ADMINS & set(caller.groups) else partial(_in_own_name, caller)

    def admit(record: Record) -> None:
        if not _is_of(node, record, deleting=deleting):
            raise forbidden(
                record,
                f"the agent of node {node} may write only objects with its label {labels.NODE},"
                " its own Lease and Node, and Events",
            )

    return admit


def _in_own_name(caller: Caller, record: Record) -> None:
    obj = record.typed
    if isinstance(obj, Notification | Permission | PermissionRequest) and obj.spec.user != caller.user:
        raise forbidden(
            record,
            f"spec.user is {obj.spec.user}, and you are {caller.user}:"
            " everybody asks the maintenance broker in their own name",
        )


def _is_of(node: str, record: Record, *, deleting: bool) -> bool:
    """Whether an object is the node's to write."""
    kind = record.kind
    if labels.NODE in kind.immutable_labels:
        return record.typed.metadata.labels.get(labels.NODE) == node
    if kind is Lease.KIND:
        return (record.namespace, record.name) == (names.NAMESPACE, names.agent_lease(NodeName(node)))
    if kind is Node.KIND:
        return record.name == node and not deleting
    return kind is Event.KIND
