"""Secret (core), and who may read one (rbac): what authenticates the members of a volume to one another."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import field

from quorate.api.groups import CORE, RBAC
from quorate.api.kind import Column, Scope, kind
from quorate.api.meta import Resource
from quorate.api.secret import Secret
from quorate.api.struct import Struct


@kind(
    name="Secret",
    group=CORE.name,
    version=CORE.version,
    plural="secrets",
    scope=Scope.NAMESPACED,
    columns=(Column("Type", ".type"),),
    status_subresource=False,
    crd=False,
)
class SecretObject(Resource):
    """Something that only those may read who are named for it."""

    type: str = "Opaque"
    #: In base64.
    data: Mapping[str, Secret] = field(default_factory=dict)


class PolicyRule(Struct):
    """What may be done to which objects."""

    api_groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    resource_names: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()


class Subject(Struct):
    """Who may."""

    kind: str
    name: str
    api_group: str = ""
    namespace: str = ""


class RoleRef(Struct):
    """What those may who are named."""

    api_group: str
    kind: str
    name: str


@kind(
    group=RBAC.name,
    version=RBAC.version,
    plural="roles",
    scope=Scope.NAMESPACED,
    status_subresource=False,
    crd=False,
)
class Role(Resource):
    """What somebody may do in a namespace."""

    rules: tuple[PolicyRule, ...] = ()


@kind(
    group=RBAC.name,
    version=RBAC.version,
    plural="rolebindings",
    scope=Scope.NAMESPACED,
    columns=(Column("Role", ".roleRef.name"),),
    status_subresource=False,
    crd=False,
)
class RoleBinding(Resource):
    """Who has a Role. The embedded engine reads it for Secrets alone."""

    role_ref: RoleRef
    subjects: tuple[Subject, ...] = ()
