"""What somebody may do.

An agent has the verbs of its role (``authorize``; the same table as ``deploy/admission/agent-role.yaml``), and of the
objects that they reach it may write what is its node's (``admission_of``; the same rules as
``deploy/admission/agent-writes.yaml``):

| object                  | made                  | changed                                     | its status          |
|-------------------------|-----------------------|---------------------------------------------|---------------------|
| RVR, LLV, LVG, DRBDROp  | never                 | its own finalizer is taken away             | of its node         |
| Drive                   | of its node, with its | of its node: spec                           | of its node         |
|                         | label alone           |                                             |                     |
| Lease                   | ``quorate-agent-…``   | the same                                    |                     |
| core Node               | its own               | its own, if an agent made it: labels        | the same            |
| longhorn Node           | never                 | never                                       | its own             |
| Event                   | in ``default``, as    | the same                                    |                     |
|                         | reported by its node  |                                             |                     |

It reads the Secrets of volumes that it is a member's agent of: their RoleBindings name it, on a real server as here
(``volumes/volume/shared_secrets.py``).

What is of a node carries its label, and says nothing else in its spec, before the write and after it.

Whoever is no admin asks the maintenance broker in their own name: ``spec.user`` of a PermissionRequest, a Notification
and a Permission must be the caller's, also to change or delete it (``deploy/admission/maintenance-users.yaml``).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from quorate.api import finalizers, labels, longhorn, names
from quorate.api.baremetal import Drive
from quorate.api.cluster_config import ClusterConfig
from quorate.api.core import Event, Lease, Node, RoleBinding, SecretObject
from quorate.api.kind import Kind
from quorate.api.maintenance import Notification, Permission, PermissionRequest
from quorate.api.meta import NodeName
from quorate.api.storage import (
    DRBDResourceOperation,
    LVMLogicalVolume,
    LVMVolumeGroup,
    ReplicatedVolumeReplica,
)
from quorate.engine.embedded import Admit, Attempt, EmbeddedStore, Record, everybody, forbidden
from quorate.errors import Forbidden, NotFound
from quorate.server.kubernetes.callers import Caller
from quorate.server.kubernetes.paths import Target

_ADMINS: Final = frozenset({"system:masters", "quorate:admins"})

_READ: Final = frozenset({"get", "list", "watch"})
#: What agents may do to objects, and to their status.
AGENT_VERBS: Final[Mapping[Kind, tuple[frozenset[str], frozenset[str]]]] = {
    **dict.fromkeys(
        (cls.KIND for cls in (DRBDResourceOperation, LVMLogicalVolume, LVMVolumeGroup, ReplicatedVolumeReplica)),
        (_READ | {"patch"}, frozenset({"patch"})),
    ),
    Drive.KIND: (_READ | {"create", "patch"}, frozenset({"create", "patch"})),
    ClusterConfig.KIND: (_READ, frozenset()),
    Lease.KIND: (_READ | {"create", "patch"}, frozenset()),
    Node.KIND: (_READ | {"create", "patch"}, frozenset({"patch"})),
    longhorn.Node.KIND: (_READ, frozenset({"patch"})),
    Event.KIND: (_READ | {"create", "patch"}, frozenset()),
}
#: Labels under these are Kubernetes' own…
_KUBERNETES: Final = ("kubernetes.io", "k8s.io")
#: … of which an agent that registers its node says these.
_OF_A_MACHINE: Final = frozenset({"kubernetes.io/hostname", labels.ZONE})


def may(caller: Caller, verb: str, target: Target, store: EmbeddedStore) -> bool:
    """Whether somebody has got the verb."""
    if not caller.agent_of:
        return True
    of_object, of_status = AGENT_VERBS.get(target.kind, (frozenset(), frozenset()))
    if target.subresource:
        return target.subresource == "status" and verb in of_status
    return verb in of_object or (
        target.kind is SecretObject.KIND and verb == "get" and _is_named(caller, target.name, target.namespace, store)
    )


def authorize(caller: Caller, verb: str, target: Target, store: EmbeddedStore) -> None:
    """Raises Forbidden when somebody has not got the verb, in the words of a real server."""
    if may(caller, verb, target, store):
        return
    kind = target.kind
    resource = f"{kind.plural}/{target.subresource}" if target.subresource else kind.plural
    where = f'in the namespace "{target.namespace}"' if target.namespace else "at the cluster scope"
    quoted = f' "{target.name}"' if target.name else ""
    message = (
        f'{kind.qualified_resource}{quoted} is forbidden: User "{caller.user}" cannot {verb} resource "{resource}" in'
        f' API group "{kind.group}" {where}'
    )
    raise Forbidden(message, group=kind.group, kind=kind.plural, name=target.name)


def _is_named(caller: Caller, name: str, namespace: str, store: EmbeddedStore) -> bool:
    """Whether a RoleBinding gives it this very Secret to read. Of all roles only those of volumes are looked at."""
    try:
        binding = store.read(RoleBinding.KIND, name, namespace).typed
    except NotFound:
        return False
    assert isinstance(binding, RoleBinding)
    # A volume's Secret, its Role and its RoleBinding have one name.
    named = any((subject.kind, subject.name) == ("User", caller.user) for subject in binding.subjects)
    return named and (binding.role_ref.kind, binding.role_ref.name) == ("Role", name)


def admission_of(caller: Caller) -> Admit:
    """The rule that a caller's writes are held to."""
    node = caller.agent_of
    if not node:
        return everybody if _ADMINS & set(caller.groups) else partial(_in_own_name, caller)

    def admit(attempt: Attempt) -> None:
        if why := _why_not(node, attempt):
            raise forbidden(attempt.subject, f"the agent of node {node} {why}")

    return admit


def _in_own_name(caller: Caller, attempt: Attempt) -> None:
    record = attempt.subject
    obj = record.typed
    if isinstance(obj, Notification | Permission | PermissionRequest) and obj.spec.user != caller.user:
        raise forbidden(
            record,
            f"spec.user is {obj.spec.user}, and you are {caller.user}:"
            " everybody asks the maintenance broker in their own name",
        )


def _why_not(node: str, attempt: Attempt) -> str:
    """Why a write is not the node's agent's to make; "" if it is."""
    kind, subject = attempt.subject.kind, attempt.subject
    if attempt.new is None:
        return "deletes nothing"
    if labels.NODE in kind.immutable_labels:
        return _why_not_of_the_node(node, attempt)
    if kind is Lease.KIND:
        own = (subject.namespace, subject.name) == (names.NAMESPACE, names.agent_lease(NodeName(node)))
        return "" if own else "may write only its own Lease"
    if kind is Node.KIND:
        return _why_not_the_node(node, attempt)
    if kind is longhorn.Node.KIND:
        own = (subject.namespace, subject.name) == (names.NAMESPACE, node) and attempt.status
        return "" if own else "may write only the status of its own longhorn Node"
    if kind is Event.KIND:
        own = subject.namespace == names.EVENT_NAMESPACE and _are(attempt, lambda event: event.reporting_instance, node)
        return "" if own else f"may write only Events in {names.EVENT_NAMESPACE} that its node reports"
    return "may write nothing of this kind"


def _why_not_of_the_node(node: str, attempt: Attempt) -> str:
    kind = attempt.subject.kind
    if attempt.old is None and kind is not Drive.KIND:
        return "makes no objects of this kind"
    if not _are(attempt, lambda obj: obj.metadata.labels.get(labels.NODE), node):
        return f"may write only objects with its label {labels.NODE}"
    if not _are(attempt, _said_node, node):
        return "may write only objects whose spec names its node"
    if attempt.status:
        return ""
    changed = _changed(attempt)
    if attempt.old is None:
        # Annotations are for people and controllers: what a Drive is called by the broker, say.
        plain = changed <= {"spec", "labels"} and set(attempt.subject.typed.metadata.labels) == {labels.NODE}
        return "" if plain else f"makes a Drive with its spec and its label {labels.NODE} alone"
    if kind is Drive.KIND:
        return "may change nothing of a Drive but its spec and status" if changed - {"spec"} else ""
    assert attempt.new is not None
    before, after = attempt.old.typed.metadata.finalizers, attempt.new.typed.metadata.finalizers
    released = tuple(name for name in before if name != finalizers.AGENT)
    if changed - {"finalizers"} or after not in (before, released):
        return "may change nothing of it but its status, and take its own finalizer away"
    return ""


def _said_node(obj: Any) -> str | None:
    """The node that an object's spec names."""
    match obj:
        case Drive():
            return obj.spec.node_id
        case LVMVolumeGroup():
            return obj.spec.local.node_name
        case LVMLogicalVolume():
            return obj.metadata.labels.get(labels.NODE)  # its spec names a group, and that its node
        case _:
            named: str | None = obj.spec.node_name
            return named


def _why_not_the_node(node: str, attempt: Attempt) -> str:
    if attempt.subject.name != node:
        return "may write only its own Node"
    if not _are(attempt, lambda obj: obj.metadata.labels.get(labels.REGISTERED), "agent"):
        return f"may write its Node only where it made it ({labels.REGISTERED}=agent): here a kubelet does"
    if attempt.status:
        return ""
    before = {} if attempt.old is None else attempt.old.typed.metadata.labels
    assert attempt.new is not None
    after = attempt.new.typed.metadata.labels
    touched = {key for key in {**before, **after} if before.get(key) != after.get(key)}
    if taken := sorted(key for key in touched if _is_kubernetes_own(key)):
        return f"may not set the label {taken[0]}"
    if _changed(attempt) - {"labels"}:
        return "may change nothing of its Node but labels and status"
    return ""


def _is_kubernetes_own(label: str) -> bool:
    domain, slash, _ = label.partition("/")
    own = bool(slash) and any(domain == each or domain.endswith(f".{each}") for each in _KUBERNETES)
    return own and label not in _OF_A_MACHINE


def _are(attempt: Attempt, ask: Any, answer: str) -> bool:
    """Whether the object gives this answer, before the write and after it."""
    records = (record for record in (attempt.old, attempt.new) if record is not None)
    return all(ask(record.typed) == answer for record in records)


def _changed(attempt: Attempt) -> set[str]:
    """What of an object is another: its spec, or a part of its metadata that people and controllers set."""
    old, new = _parts(attempt.old), _parts(attempt.new)
    return {name for name in old if old[name] != new[name]}


def _parts(record: Record | None) -> dict[str, Any]:
    tree = {} if record is None else record.tree
    metadata = tree.get("metadata", {})
    named = ("labels", "annotations", "finalizers", "ownerReferences")
    return {"spec": tree.get("spec") or {}, **{name: metadata.get(name) or None for name in named}}
