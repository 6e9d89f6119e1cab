"""Owner references: who a child belongs to. Set for people and for Kubernetes; we never rely on garbage collection."""

from __future__ import annotations

from collections.abc import Iterable

from quorate.api.meta import OwnerReference, Resource


def owner_reference(owner: Resource) -> OwnerReference:
    """What a child says of the one object that manages it."""
    return OwnerReference(
        api_version=owner.KIND.api_version,
        kind=owner.KIND.name,
        name=owner.name,
        uid=owner.metadata.uid,
        controller=True,
        block_owner_deletion=True,
    )


def with_owner(references: Iterable[OwnerReference], owner: OwnerReference) -> tuple[OwnerReference, ...]:
    """The references with this one, in place of any other to an object of its kind."""
    others = tuple(each for each in references if (each.api_version, each.kind) != (owner.api_version, owner.kind))
    return (*others, owner)
