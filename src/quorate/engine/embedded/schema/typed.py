"""From JSON to the kind's type, and from one state of an object to the next.

Most writes change one part of an object, so the next state is made from the last one: parts that are the very
same tree keep their decoded value. That halves the cost of a status write, and versions share memory.
"""

from __future__ import annotations

from typing import Any

import msgspec

from quorate.api.codec import convert, decoder
from quorate.api.kind import Kind
from quorate.api.meta import ObjectMeta, Resource
from quorate.api.struct import replace
from quorate.engine.embedded.record import Tree

_ABSENT = object()

#: What changes in metadata with nearly every write.
_COUNTERS = frozenset({"resourceVersion", "generation"})


class TypedDecoder:
    """Decodes the objects of one kind; raises msgspec.ValidationError at the first fault."""

    __slots__ = ("_fields", "first")

    def __init__(self, kind: Kind) -> None:
        #: The whole object from its bytes.
        self.first = decoder(kind.type).decode
        self._fields = tuple(
            (field.encode_name, field.name, field.type, field.default)
            for field in msgspec.structs.fields(kind.type)  # type: ignore[arg-type]
            if field.name != "metadata"
        )

    def next(self, last: Resource, before: Tree, tree: Tree) -> Resource:
        """The object of ``tree``, made from ``last``, which is that of ``before``."""
        changes: dict[str, Any] = {"metadata": _next_metadata(last.metadata, before["metadata"], tree["metadata"])}
        for encoded, name, kind, default in self._fields:
            part = tree.get(encoded, _ABSENT)
            if part is before.get(encoded, _ABSENT):
                continue
            if part is not _ABSENT:
                changes[name] = convert(kind, part)
            elif default is not msgspec.NODEFAULT:
                changes[name] = default
            else:
                raise msgspec.ValidationError(f"Object missing required field `{encoded}`")
        return replace(last, **changes)


def _next_metadata(last: ObjectMeta, before: Tree, tree: Tree) -> ObjectMeta:
    changed = {name for name, value in tree.items() if before.get(name) is not value}
    if len(tree) == len(before) and changed <= _COUNTERS:
        return replace(last, resource_version=tree.get("resourceVersion", ""), generation=tree.get("generation", 0))
    return convert(ObjectMeta, tree)
