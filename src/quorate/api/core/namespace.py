"""Namespace (core): where namespaced objects live."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from quorate.api.groups import CORE
from quorate.api.kind import Column, kind
from quorate.api.meta import Resource
from quorate.api.struct import Struct


class NamespaceSpec(Struct):
    """Who holds it."""

    finalizers: Annotated[tuple[str, ...], Meta(description="Who must let go before the namespace is gone.")] = ()


class NamespaceStatus(Struct):
    """Whether it is in use."""

    phase: Annotated[str, Meta(description="Active, or Terminating while its objects are being deleted.")] = ""


@kind(
    group=CORE.name,
    version=CORE.version,
    plural="namespaces",
    short_names=("ns",),
    columns=(Column("Status", ".status.phase"),),
    selectable_fields=(".status.phase",),
    crd=False,
)
class Namespace(Resource):
    """Where namespaced objects live."""

    spec: NamespaceSpec = NamespaceSpec()
    status: NamespaceStatus = NamespaceStatus()
