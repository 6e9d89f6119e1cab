"""Lease (coordination): who leads, and who lives."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from quorate.api.groups import COORDINATION
from quorate.api.kind import Column, Scope, kind
from quorate.api.meta import MicroTime, Resource
from quorate.api.struct import Struct


class LeaseSpec(Struct):
    """Who holds it, since when, and for how long without renewing."""

    holder_identity: str | None = None
    lease_duration_seconds: Annotated[int, Meta(gt=0)] | None = None
    acquire_time: MicroTime | None = None
    renew_time: MicroTime | None = None
    lease_transitions: Annotated[int, Meta(ge=0)] | None = None


@kind(
    group=COORDINATION.name,
    version=COORDINATION.version,
    plural="leases",
    scope=Scope.NAMESPACED,
    columns=(Column("Holder", ".spec.holderIdentity"),),
    status_subresource=False,
    crd=False,
)
class Lease(Resource):
    """A claim that must be renewed."""

    spec: LeaseSpec = LeaseSpec()
