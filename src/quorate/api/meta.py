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

    api_version: Annotated[str, Meta(description="Group and version of the owner's kind.")]
    kind: Annotated[str, Meta(description="The owner's kind.")]
    name: Annotated[str, Meta(description="The owner's name.")]
    uid: Annotated[str, Meta(description="The owner's UID: another object of that name is not meant.")]
    controller: Annotated[bool, Meta(description="The one owner that manages it.")] | None = None
    block_owner_deletion: (
        Annotated[bool, Meta(description="The owner stays until this is gone, where it is deleted in the foreground.")]
        | None
    ) = None


class ObjectMeta(Struct):
    """What Kubernetes keeps about an object beside its spec and status. managedFields are not read."""

    name: Annotated[str, Meta(description="The object's name; it cannot change.")] = ""
    generate_name: Annotated[str, Meta(description="What a name that the server makes begins with.")] = ""
    namespace: Annotated[str, Meta(description="The namespace that it is in; it cannot change.")] = ""
    uid: Annotated[str, Meta(description="The server's own name for it: never given twice.")] = ""
    resource_version: Annotated[str, Meta(description="Its state: changes with every write.")] = ""
    generation: Annotated[int, Meta(description="Counts the changes of its spec.")] = 0
    creation_timestamp: Annotated[datetime, Meta(description="When it was made.")] | None = None
    deletion_timestamp: (
        Annotated[datetime, Meta(description="Since when it is being deleted; it goes once nobody holds it.")] | None
    ) = None
    deletion_grace_period_seconds: Annotated[int, Meta(description="How long it is given to end.")] | None = None
    labels: Annotated[Mapping[str, str], Meta(description="What it is selected by.")] = field(default_factory=dict)
    annotations: Annotated[Mapping[str, str], Meta(description="What people and programs say about it.")] = field(
        default_factory=dict
    )
    finalizers: Annotated[tuple[str, ...], Meta(description="Who must let go before it is gone.")] = ()
    owner_references: Annotated[tuple[OwnerReference, ...], Meta(description="Whose it is.")] = ()


class Condition(Struct):
    """One aspect of an object's state, for people and for ``kubectl wait``."""

    type: Annotated[str, Meta(min_length=1, max_length=316, description="What it is about.")]
    status: ConditionStatus
    reason: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=1024,
            pattern=r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
            description="Why, as a code; docs/conditions.md says what to do.",
        ),
    ]
    message: Annotated[str, Meta(max_length=32768, description="Why, for people, with the names.")] = ""
    last_transition_time: Annotated[datetime, Meta(description="When its status last changed.")]
    observed_generation: (
        Annotated[int, Meta(ge=0, description="The generation of the object that it is about.")] | None
    ) = None


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
