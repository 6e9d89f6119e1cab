"""From JSON to the kind's type, and from one state of an object to the next.

Most writes change a little of one part of an object, so the next state is made from the last one: what is the very
same tree keeps its decoded value, down to the items of a list. That makes a status write cost what it changes, and
versions share memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, get_args, get_origin

import msgspec

from quorate.api.codec import convert, decoder
from quorate.api.kind import Kind
from quorate.api.meta import ObjectMeta, Resource
from quorate.api.struct import Struct, attributes, replace
from quorate.engine.embedded.record import Tree

_ABSENT = object()

#: What changes in metadata with nearly every write.
_COUNTERS = frozenset({"resourceVersion", "generation"})


class TypedDecoder:
    """Decodes the objects of one kind; raises msgspec.ValidationError at the first fault."""

    __slots__ = ("_parts", "first")

    def __init__(self, kind: Kind) -> None:
        #: The whole object from its bytes.
        self.first = decoder(kind.type).decode
        self._parts = tuple(
            (field.encode_name, field.name, _PartDecoder(field.type), field.default)
            for field in msgspec.structs.fields(kind.type)  # type: ignore[arg-type]
            if field.name != "metadata"
        )

    def next(self, last: Resource, before: Tree, tree: Tree) -> Resource:
        """The object of ``tree``, made from ``last``, which is that of ``before``."""
        changes: dict[str, Any] = {"metadata": _next_metadata(last.metadata, before["metadata"], tree["metadata"])}
        for encoded, name, part_decoder, default in self._parts:
            part, old = tree.get(encoded, _ABSENT), before.get(encoded, _ABSENT)
            if part is old:
                continue
            if part is not _ABSENT:
                changes[name] = part_decoder.next(getattr(last, name), old, part)
            elif default is not msgspec.NODEFAULT:
                changes[name] = default
            else:
                raise msgspec.ValidationError(f"Object missing required field `{encoded}`")
        return replace(last, **changes)


class _PartDecoder:
    """Decodes one part of an object, such as its status."""

    __slots__ = ("_items", "_names", "_type")

    def __init__(self, wanted: Any) -> None:
        self._type = wanted
        #: The attributes of a part that can be decoded field by field, by their names on the wire; None of any other.
        self._names: Mapping[str, str] | None = None
        #: Of those that are lists of structs, the struct.
        self._items: dict[str, type[Struct]] = {}
        if isinstance(wanted, type) and issubclass(wanted, Struct):
            cls: type = wanted
            fields = msgspec.structs.fields(cls)
            if not any(field.required for field in fields):
                self._names = attributes(cls)
                items = {field.encode_name: _item_type(field.type) for field in fields}
                self._items = {name: item for name, item in items.items() if item is not None}

    def next(self, last: Any, before: Any, tree: Any) -> Any:
        """The part of ``tree``, made from ``last``, which is that of ``before``."""
        names = self._names
        if names is None or type(tree) is not dict or type(before) is not dict:
            return convert(self._type, tree)
        changes: dict[str, Any] = {}
        anew: dict[str, Any] = {}
        for encoded, part in tree.items():
            old = before.get(encoded, _ABSENT)
            if part is not old and encoded in names:
                item = self._items.get(encoded)
                if item is not None and _alike(part, old):
                    changes[names[encoded]] = _next_items(item, getattr(last, names[encoded]), old, part)
                else:
                    anew[encoded] = part
        gone = [name for encoded, name in names.items() if encoded in before and encoded not in tree]
        if anew or gone:
            # A struct of nothing but these fields: it has the others' defaults, and those of the fields that are gone.
            decoded = convert(self._type, anew)
            changes |= {names[encoded]: getattr(decoded, names[encoded]) for encoded in anew}
            changes |= {name: getattr(decoded, name) for name in gone}
        return replace(last, **changes)


def _item_type(field: Any) -> type[Struct] | None:
    """What a field is a list of, if that is structs."""
    if get_origin(field) is Annotated:
        field = get_args(field)[0]
    match get_args(field):
        case (type() as item, end) if end is ... and get_origin(field) is tuple and issubclass(item, Struct):
            return item
        case _:
            return None


def _alike(part: Any, old: Any) -> bool:
    """Whether both are lists of the same length: so bounds of it need not be asked again."""
    return type(part) is list and type(old) is list and len(part) == len(old)


def _next_items(item: type[Struct], last: tuple[Struct, ...], before: list[Any], tree: list[Any]) -> tuple[Struct, ...]:
    return tuple(
        [known if part is old else convert(item, part) for known, old, part in zip(last, before, tree, strict=True)]
    )


def _next_metadata(last: ObjectMeta, before: Tree, tree: Tree) -> ObjectMeta:
    changed = {name for name, value in tree.items() if before.get(name) is not value}
    if len(tree) == len(before) and changed <= _COUNTERS:
        return replace(last, resource_version=tree.get("resourceVersion", ""), generation=tree.get("generation", 0))
    return convert(ObjectMeta, tree)
