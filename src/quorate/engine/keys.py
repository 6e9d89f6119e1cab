"""What a queue holds and a cache is asked for: the name of an object, without its kind."""

from __future__ import annotations

from typing import NamedTuple

from quorate.api.meta import Resource


class Key(NamedTuple):
    """Namespace and name. Sorts as lists do; the namespace of a cluster-scoped object is empty."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


def key_of(obj: Resource) -> Key:
    """The key of an object among those of its kind."""
    metadata = obj.metadata
    return Key(metadata.namespace, metadata.name)
