"""Namespace (core): where namespaced objects live."""

from __future__ import annotations

from quorate.api.groups import CORE
from quorate.api.kind import Column, kind
from quorate.api.meta import Resource
from quorate.api.struct import Struct


class NamespaceSpec(Struct):
    """Who holds it."""

    finalizers: tuple[str, ...] = ()


class NamespaceStatus(Struct):
    """Whether it is in use."""

    phase: str = ""


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
