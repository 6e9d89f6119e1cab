"""What the messages look like, read from their descriptors: for pages that show them (``json/proto``)."""

from __future__ import annotations

from typing import Any

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor

from quorate.server.broker.proto import cms_pb2

_SCALARS = {
    FieldDescriptor.TYPE_STRING: "string",
    FieldDescriptor.TYPE_BOOL: "bool",
    FieldDescriptor.TYPE_INT32: "int32",
    FieldDescriptor.TYPE_UINT32: "uint32",
    FieldDescriptor.TYPE_UINT64: "uint64",
}


def all_messages() -> list[Descriptor]:
    """Every message, outer before inner."""
    found: list[Descriptor] = []
    waiting = list(cms_pb2.DESCRIPTOR.message_types_by_name.values())
    while waiting:
        found.append(message := waiting.pop(0))
        waiting.extend(message.nested_types)
    return found


def all_enums() -> list[EnumDescriptor]:
    """Every enumeration."""
    inner = [enum for message in all_messages() for enum in message.enum_types]
    return [*cms_pb2.DESCRIPTOR.enum_types_by_name.values(), *inner]


def short_name(descriptor: Descriptor | EnumDescriptor) -> str:
    """Such as TAction.EType."""
    return descriptor.full_name.removeprefix(f"{descriptor.file.package}.")


def description() -> dict[str, Any]:
    """All of it."""
    return {
        "package": cms_pb2.DESCRIPTOR.package,
        "messages": {short_name(message): [_field(field) for field in message.fields] for message in all_messages()},
        "enums": {short_name(enum): {value.name: value.number for value in enum.values} for enum in all_enums()},
    }


def default_of(field: FieldDescriptor) -> Any:
    """The default that the proto file gives; an enumeration's as its name, None if it gives none."""
    if not field.has_default_value:
        return None
    return field.enum_type.values_by_number[field.default_value].name if field.enum_type else field.default_value


def _field(field: FieldDescriptor) -> dict[str, Any]:
    kind = field.message_type or field.enum_type
    found = {
        "name": field.name,
        "number": field.number,
        "type": short_name(kind) if kind is not None else _SCALARS[field.type],
        "repeated": field.is_repeated,
    }
    if field.has_default_value:
        found["default"] = default_of(field)
    return found
