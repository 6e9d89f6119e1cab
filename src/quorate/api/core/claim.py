"""PersistentVolumeClaim (core), read only: whose a volume is, and whether an outside operator can release it."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import field

from quorate.api.groups import CORE
from quorate.api.kind import Column, Scope, kind
from quorate.api.meta import Resource
from quorate.api.quantity import Quantity
from quorate.api.struct import Struct


class ClaimResources(Struct):
    """How much is asked for."""

    requests: Mapping[str, Quantity] = field(default_factory=dict)


class ClaimSpec(Struct):
    """What is asked for; ``volumeName`` is the ReplicatedVolume."""

    volume_name: str = ""
    storage_class_name: str | None = None
    volume_mode: str | None = None
    access_modes: tuple[str, ...] = ()
    resources: ClaimResources = ClaimResources()


class ClaimStatus(Struct):
    """What was given."""

    phase: str = ""
    capacity: Mapping[str, Quantity] = field(default_factory=dict)


@kind(
    group=CORE.name,
    version=CORE.version,
    plural="persistentvolumeclaims",
    scope=Scope.NAMESPACED,
    short_names=("pvc",),
    columns=(
        Column("Status", ".status.phase"),
        Column("Volume", ".spec.volumeName"),
        Column("Capacity", ".status.capacity.storage"),
        Column("StorageClass", ".spec.storageClassName"),
    ),
    crd=False,
)
class PersistentVolumeClaim(Resource):
    """Somebody's claim to a volume."""

    spec: ClaimSpec = ClaimSpec()
    status: ClaimStatus = ClaimStatus()
