"""Protobuf messages as trees (see ``json_trees``), and trees as protobuf messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar, cast

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet

from quorate.server.broker.json_trees import FREE_FORM, Malformed, Tree

M = TypeVar("M", bound=Message)


def read(message: Message) -> Tree:
    """The fields that are given.

    An enumeration's number that has no name, and a value of the wrong wire type, are kept by protobuf as if the field
    were unknown: the number says that it is not. Fields that we really do not know come from a newer client, and are
    left alone, as protobuf means it.
    """
    known: Mapping[int, FieldDescriptor] = _fields(message).fields_by_number
    for one in cast("Iterable[Any]", UnknownFieldSet(message)):
        field = known.get(one.field_number)
        if field is not None:
            raise Malformed(_refusal(field), field.name)
    tree: Tree = {}
    for field, value in message.ListFields():
        try:
            tree[field.name] = _values(field, value) if field.is_repeated else _value(field, value)
        except Malformed as error:
            raise error.under(field.name) from None
    return tree


def write(tree: Tree, message: M) -> M:
    """Fill a message."""
    fields: Mapping[str, FieldDescriptor] = _fields(message).fields_by_name
    for name, value in tree.items():
        field = fields[name]
        if field.message_type is None:
            if field.is_repeated:
                getattr(message, name).extend(_plain(field, item) for item in value)
            else:
                setattr(message, name, _plain(field, value))
        elif field.is_repeated:
            for item in value:
                write(item, getattr(message, name).add())
        elif field.message_type.full_name == FREE_FORM:
            getattr(message, name).update(value)
        else:
            inner = getattr(message, name)
            inner.SetInParent()  # given, also where it is empty
            write(value, inner)
    return message


def _fields(message: Message) -> Any:
    """Its descriptor; the stubs know two sorts, of which no function takes both."""
    return message.DESCRIPTOR


def _values(field: FieldDescriptor, values: Iterable[Any]) -> tuple[Any, ...]:
    items = []
    for number, value in enumerate(values):
        try:
            items.append(_value(field, value))
        except Malformed as error:
            raise error.under(f"[{number}]") from None
    return tuple(items)


def _value(field: FieldDescriptor, value: Any) -> Any:
    if field.message_type is not None:
        return MessageToDict(value) if field.message_type.full_name == FREE_FORM else read(value)
    if field.enum_type is not None:
        return field.enum_type.values_by_number[value].name
    if type(value) is bytes:  # proto2 does not look at text when it parses
        raise Malformed("is not UTF-8")
    return value


def _plain(field: FieldDescriptor, value: Any) -> Any:
    return field.enum_type.values_by_name[value].number if field.enum_type is not None else value


def _refusal(field: FieldDescriptor) -> str:
    if field.enum_type is None:
        return "has a value of another type"
    return f"must be one of {', '.join(value.name for value in field.enum_type.values)}"
