"""What an agent may write: what is its node's, and nothing else. Reads are not limited.

| object                                | allowed                                  |
|---------------------------------------|------------------------------------------|
| of a kind that belongs to a node      | if it carries the agent's label          |
| Lease ``quorate-agent-<node>``        | its own                                  |
| core Node                             | its own, but not to delete it            |
| Event                                 | any                                      |
| anything else                         | no                                       |

``deploy/admission/agent-writes.yaml`` is the same for a real API server.
"""

from __future__ import annotations

from quorate.api import labels, names
from quorate.api.core import Event, Lease, Node
from quorate.api.meta import NodeName
from quorate.engine.embedded import Admit, Record, everybody, forbidden
from quorate.server.kubernetes.callers import Caller


def admission_of(caller: Caller, *, deleting: bool = False) -> Admit:
    """The rule that a caller's writes are held to."""
    node = caller.agent_of
    if not node:
        return everybody

    def admit(record: Record) -> None:
        if not _is_of(node, record, deleting=deleting):
            raise forbidden(
                record,
                f"the agent of node {node} may write only objects with its label {labels.NODE},"
                " its own Lease and Node, and Events",
            )

    return admit


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
