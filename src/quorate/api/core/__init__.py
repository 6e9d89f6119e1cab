"""Kinds that Kubernetes has of its own, as far as we read them.

On Kubernetes they are its; the embedded engine serves them too, which is why they are declared like the others. Fields
that we do not read are not here: we patch differences and never write a whole object back.
"""

from __future__ import annotations

from quorate.api.core.claim import PersistentVolumeClaim
from quorate.api.core.event import Event
from quorate.api.core.lease import Lease
from quorate.api.core.namespace import Namespace
from quorate.api.core.node import Node
from quorate.api.core.secret_object import Role, RoleBinding, SecretObject

__all__ = ["Event", "Lease", "Namespace", "Node", "PersistentVolumeClaim", "Role", "RoleBinding", "SecretObject"]
