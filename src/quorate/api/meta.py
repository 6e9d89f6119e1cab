"""Metadata that every object carries, as Kubernetes defines it, and the base of all kinds."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Annotated, ClassVar, NewType

from msgspec import Meta, field

from quorate.api.kind import Kind
from quorate.api.struct import Struct

NodeName = NewType("NodeName", str)
VolumeName = NewType("VolumeName", str)
Bytes = NewType("Bytes", int)
#: RFC 3339 with exactly six digits of fraction, which is what a Kubernetes MicroTime demands.
MicroTime = NewType("MicroTime", str)


class ConditionStatus(StrEnum):
    """Tri-state of a condition."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class OwnerReference(Struct):
    """Points from a child to the object it belongs to."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ObjectMeta(Struct):
    """What Kubernetes keeps about an object beside its spec and status. managedFields are not read."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    deletion_grace_period_seconds: int | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[OwnerReference, ...] = ()


class Condition(Struct):
    """One aspect of an object's state, for people and for ``kubectl wait``."""

    type: Annotated[str, Meta(min_length=1, max_length=316)]
    status: ConditionStatus
    reason: Annotated[str, Meta(min_length=1, max_length=1024, pattern=r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$")]
    message: Annotated[str, Meta(max_length=32768)] = ""
    last_transition_time: datetime
    observed_generation: Annotated[int, Meta(ge=0)] | None = None


class Resource(Struct):
    """Base of every kind. ``KIND`` is set by the ``kind`` decorator; apiVersion and kind are added when encoding."""

    KIND: ClassVar[Kind]

    metadata: ObjectMeta = ObjectMeta()

    @property
    def name(self) -> str:
        """metadata.name"""
        return self.metadata.name

    @property
    def namespace(self) -> str:
        """metadata.namespace, empty for cluster-scoped kinds"""
        return self.metadata.namespace

    @property
    def deleting(self) -> bool:
        """Whether deletion has been asked for."""
        return self.metadata.deletion_timestamp is not None
