"""The nouns: every kind of object, declared once.

A kind is a frozen struct (``struct``) with a name on the wire (``kind``). From the one declaration come the decoder
(``codec``), the structural schema with its rules (``schema``, ``cel``) that the embedded engine enforces, and the
CustomResourceDefinition (``crd``) that a Kubernetes API server enforces.

Kinds are grouped as on the wire: ``storage`` (volumes), ``longhorn`` (disks), ``baremetal`` (drives), ``maintenance``
(the broker), ``cluster_config``, and ``core`` (what Kubernetes has of its own). Beside them: ``conditions`` with every
reason and its human text, ``finalizers``, ``labels``, ``annotation_keys``, ``names``, and the values that people
write: ``quantity`` and ``duration``.

Importing this package declares all kinds. It imports nothing of ours but ``quorate.errors``.
"""

from __future__ import annotations

from quorate.api import baremetal, core, longhorn, maintenance, storage
from quorate.api.cluster_config import ClusterConfig
from quorate.api.duration import Duration
from quorate.api.kind import Kind, Scope, all_kinds, find_kind
from quorate.api.meta import Bytes, Condition, ConditionStatus, NodeName, ObjectMeta, Resource, VolumeName
from quorate.api.quantity import Quantity
from quorate.api.secret import Secret

__all__ = [
    "Bytes",
    "ClusterConfig",
    "Condition",
    "ConditionStatus",
    "Duration",
    "Kind",
    "NodeName",
    "ObjectMeta",
    "Quantity",
    "Resource",
    "Scope",
    "Secret",
    "VolumeName",
    "all_kinds",
    "baremetal",
    "core",
    "find_kind",
    "longhorn",
    "maintenance",
    "storage",
]
