"""What Kubernetes does about namespaces: some exist from the start, and nothing is created in one that is missing.

Deleting a namespace deletes what is in it first; until that is gone it is Terminating, and accepts nothing new.
"""

from __future__ import annotations

from quorate.api.kind import Kind
from quorate.engine.embedded.record import Record, Tree
from quorate.errors import Cause, Forbidden, NotFound

#: Created when a store is opened without them.
FIRST = ("default", "kube-node-lease", "kube-public", "kube-system", "quorate-system")
_IMMORTAL = frozenset({"default", "kube-public", "kube-system"})
_NAME_LABEL = "kubernetes.io/metadata.name"


def is_namespace(kind: Kind) -> bool:
    """Whether objects of this kind are the namespaces."""
    return kind.qualified_resource == "namespaces"


def new(kind: Kind, name: str) -> Tree:
    """A namespace as somebody would ask for it."""
    return {"apiVersion": kind.api_version, "kind": kind.name, "metadata": {"name": name}}


def established(tree: Tree) -> Tree:
    """A new namespace as the API server completes it."""
    meta = tree["metadata"]
    labels = {**meta.get("labels", {}), _NAME_LABEL: meta.get("name", "")}
    return {**tree, "metadata": {**meta, "labels": labels}, "status": {"phase": "Active"}}


def terminating(tree: Tree) -> Tree:
    """A namespace whose deletion was asked for."""
    return {**tree, "status": {**tree.get("status", {}), "phase": "Terminating"}}


def check_creation(kind: Kind, name: str, namespace: str, found: Record | None) -> None:
    """Raise unless an object may be created in this namespace."""
    if found is None:
        raise NotFound(f'namespaces "{namespace}" not found', kind="namespaces", name=namespace)
    if found.typed.deleting:
        raise Forbidden(
            f'{kind.qualified_resource} "{name}" is forbidden:'
            f" unable to create new content in namespace {namespace} because it is being terminated",
            group=kind.group,
            kind=kind.plural,
            name=name,
            causes=(Cause("NamespaceTerminating", f"namespace {namespace} is being terminated", "metadata.namespace"),),
        )


def check_deletion(name: str) -> None:
    """Raise for the namespaces that must stay."""
    if name in _IMMORTAL:
        raise Forbidden(
            f'namespaces "{name}" is forbidden: this namespace may not be deleted', kind="namespaces", name=name
        )
