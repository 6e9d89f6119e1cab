"""JSON as the broker's messages are written in it: protobuf's mapping, checked field by field.

What comes in becomes a *tree*: a dict of the fields that were given, under protobuf's names, enumerations as their
names, all integers as ints. ``proto_trees`` makes the same trees of protobuf messages, so that both interfaces share
one translation. Readers are built once, from the descriptors: protobuf's own reader of JSON is slower, takes what the
broker does not (numbers for names), and its complaints do not name the field.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final

import msgspec
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor

Tree = dict[str, Any]
_Read = Callable[[Any], Any]
_Write = Callable[[Any], Any]

_UINT64: Final = FieldDescriptor.TYPE_UINT64
#: Whole numbers and their bounds; what has 64 bits is written as text, which JavaScript cannot round.
BOUNDS: Final = {
    FieldDescriptor.TYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.TYPE_UINT32: (0, 2**32 - 1),
    _UINT64: (0, 2**64 - 1),
}
_WHOLE: Final = re.compile("-?[0-9]{1,20}")
_HALF_PAIR: Final = re.compile(rb"(?<!\\)(?:\\\\)*(\\u[dD][89abAB][0-9a-fA-F]{2})(?!\\u[dD][c-fC-F][0-9a-fA-F]{2})")
#: Any JSON object.
FREE_FORM: Final = "google.protobuf.Struct"


class Malformed(Exception):
    """The input is not what the message's description says; ``field`` is where."""

    def __init__(self, problem: str, field: str = "") -> None:
        super().__init__(f"{field}: {problem}" if field else problem)
        self.problem = problem
        self.field = field

    def under(self, name: str) -> Malformed:
        """The same, seen from the message or list that it is in."""
        joint = "" if not self.field or self.field.startswith("[") else "."
        return Malformed(self.problem, f"{name}{joint}{self.field}")


def not_json(body: bytes, error: Exception) -> str:
    """What is wrong with a body. Of half a surrogate pair msgspec says that the input is truncated, which it is not."""
    half = isinstance(error, msgspec.DecodeError) and b"\\u" in body and _HALF_PAIR.search(body)
    if half:
        escape = half.group(1).decode()
        return f"the body is not JSON: {escape} is the first half of a character, and the second half does not follow"
    return f"the body is not JSON: {error}"


def parse(body: bytes, descriptor: Descriptor) -> Tree:
    """A request's body."""
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Malformed(not_json(body, error)) from None
    except RecursionError:
        raise Malformed("the body is not JSON that can be read: it is nested too deeply") from None
    tree: Tree = reader(descriptor)(value)
    return tree


@cache
def reader(descriptor: Descriptor) -> _Read:
    """What checks one message."""
    fields: Mapping[str, _Read] = {field.name: _field_reader(field) for field in descriptor.fields}
    known = f"fields of {descriptor.name} are {', '.join(fields)}" if fields else f"{descriptor.name} has no fields"

    def read(value: Any) -> Tree:
        if type(value) is not dict:
            raise Malformed(f"must be an object, not {_shown(value)}")
        tree: Tree = {}
        for name, given in value.items():
            field = fields.get(name)
            if field is None:
                raise Malformed(f"there is no such field; {known}", _clipped(name))
            if given is not None:
                try:
                    tree[name] = field(given)
                except Malformed as error:
                    raise error.under(name) from None
        return tree

    return read


def _field_reader(field: FieldDescriptor) -> _Read:
    one = _value_reader(field)
    return _list_reader(one) if field.is_repeated else one


def _list_reader(one: _Read) -> _Read:
    def read(value: Any) -> tuple[Any, ...]:
        if type(value) is not list:
            raise Malformed(f"must be a list, not {_shown(value)}")
        items = []
        for number, item in enumerate(value):
            try:
                items.append(one(item))
            except Malformed as error:
                raise error.under(f"[{number}]") from None
        return tuple(items)

    return read


def _value_reader(field: FieldDescriptor) -> _Read:
    if field.message_type is not None:
        return _read_object if field.message_type.full_name == FREE_FORM else reader(field.message_type)
    if field.enum_type is not None:
        return _name_reader(field.enum_type)
    return {FieldDescriptor.TYPE_STRING: _read_text, FieldDescriptor.TYPE_BOOL: _read_truth}.get(
        field.type
    ) or _number_reader(*BOUNDS[field.type])


def _read_text(value: Any) -> str:
    if type(value) is not str:
        raise Malformed(f"must be text, not {_shown(value)}")
    return value


def _read_truth(value: Any) -> bool:
    if type(value) is not bool:
        raise Malformed(f"must be true or false, not {_shown(value)}")
    return value


def _read_object(value: Any) -> Tree:
    if type(value) is not dict:
        raise Malformed(f"must be an object, not {_shown(value)}")
    return value


def _name_reader(enum: EnumDescriptor) -> _Read:
    names = frozenset(value.name for value in enum.values)
    allowed = ", ".join(value.name for value in enum.values)

    def read(value: Any) -> str:
        if type(value) is not str or value not in names:
            raise Malformed(f"must be one of {allowed}, not {_shown(value)}")
        return value

    return read


def _number_reader(least: int, most: int) -> _Read:
    def read(value: Any) -> int:
        number = value
        if (type(value) is str and _WHOLE.fullmatch(value)) or (type(value) is float and value.is_integer()):
            number = int(value)
        if type(number) is not int or not least <= number <= most:
            raise Malformed(
                f"must be a whole number from {least} to {most}, or such a number as text, not {_shown(value)}"
            )
        return number

    return read


@cache
def writer(descriptor: Descriptor) -> _Write:
    """What makes a tree ready to be encoded."""
    changes = {field.name: change for field in descriptor.fields if (change := _field_writer(field)) is not None}

    def write(tree: Tree) -> Tree:
        return {name: changes[name](value) if name in changes else value for name, value in tree.items()}

    return write


def _field_writer(field: FieldDescriptor) -> _Write | None:
    """None: the value is written as it is."""
    if field.type == _UINT64:
        one: _Write = str
    elif field.message_type is not None and field.message_type.full_name != FREE_FORM:
        one = writer(field.message_type)
    else:
        return None
    return (lambda values: [one(value) for value in values]) if field.is_repeated else one


def dump(tree: Tree, descriptor: Descriptor) -> bytes:
    """An answer's body."""
    return msgspec.json.encode(writer(descriptor)(tree))


def _shown(value: Any) -> str:
    return _clipped(msgspec.json.encode(value).decode())


def _clipped(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:60]}…"
