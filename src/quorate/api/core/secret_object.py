"""Secret (core), and who may read one (rbac): what authenticates the members of a volume to one another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta, field

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

    type: Annotated[str, Meta(description="What sort of secret it is; Opaque: only its users know.")] = "Opaque"
    data: Annotated[Mapping[str, Secret], Meta(description="The values by their names, in base64.")] = field(
        default_factory=dict
    )


class PolicyRule(Struct):
    """What may be done to which objects."""

    api_groups: Annotated[tuple[str, ...], Meta(description="The groups of the objects' kinds.")] = ()
    resources: Annotated[tuple[str, ...], Meta(description="The kinds, in the plural.")] = ()
    resource_names: Annotated[tuple[str, ...], Meta(description="The objects' names; none: all.")] = ()
    verbs: Annotated[tuple[str, ...], Meta(description="What may be done: get, list, watch …")] = ()


class Subject(Struct):
    """Who may."""

    kind: Annotated[str, Meta(description="User, Group or ServiceAccount.")]
    name: Annotated[str, Meta(description="Its name.")]
    api_group: Annotated[str, Meta(description="The group of a User or a Group: rbac.authorization.k8s.io.")] = ""
    namespace: Annotated[str, Meta(description="Where a ServiceAccount is.")] = ""


class RoleRef(Struct):
    """What those may who are named."""

    api_group: Annotated[str, Meta(description="rbac.authorization.k8s.io.")]
    kind: Annotated[str, Meta(description="Role.")]
    name: Annotated[str, Meta(description="The Role's name.")]


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

    rules: Annotated[tuple[PolicyRule, ...], Meta(description="All that may be done.")] = ()


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

    role_ref: Annotated[RoleRef, Meta(description="The Role that they have.")]
    subjects: Annotated[tuple[Subject, ...], Meta(description="Those who have it.")] = ()
