"""PersistentVolumeClaim (core), read only: whose a volume is, and whether an outside operator can release it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta, field

from quorate.api.groups import CORE
from quorate.api.kind import Column, Scope, kind
from quorate.api.meta import Resource
from quorate.api.quantity import Quantity
from quorate.api.struct import Struct


class ClaimResources(Struct):
    """How much is asked for."""

    requests: Annotated[
        Mapping[str, Quantity], Meta(description="How much is asked for, by resource; storage is the one that counts.")
    ] = field(default_factory=dict)


class ClaimSpec(Struct):
    """What is asked for; ``volumeName`` is the ReplicatedVolume."""

    volume_name: Annotated[str, Meta(description="The PersistentVolume that it is bound to.")] = ""
    storage_class_name: Annotated[str, Meta(description="The StorageClass that it asks for.")] | None = None
    volume_mode: Annotated[str, Meta(description="Filesystem or Block.")] | None = None
    access_modes: Annotated[tuple[str, ...], Meta(description="How it may be used, such as ReadWriteOnce.")] = ()
    resources: ClaimResources = ClaimResources()


class ClaimStatus(Struct):
    """What was given."""

    phase: Annotated[str, Meta(description="Pending, Bound or Lost.")] = ""
    capacity: Annotated[Mapping[str, Quantity], Meta(description="What it has, by resource.")] = field(
        default_factory=dict
    )


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
