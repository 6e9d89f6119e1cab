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

    holder_identity: Annotated[str, Meta(description="Who holds it; empty: nobody.")] | None = None
    lease_duration_seconds: (
        Annotated[int, Meta(gt=0, description="After so many seconds without a renewal another may take it.")] | None
    ) = None
    acquire_time: Annotated[MicroTime, Meta(description="When the holder took it.")] | None = None
    renew_time: Annotated[MicroTime, Meta(description="When the holder last renewed it, by its own clock.")] | None = (
        None
    )
    lease_transitions: Annotated[int, Meta(ge=0, description="How often the holder has changed.")] | None = None


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
