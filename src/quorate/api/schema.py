"""The structural schema of a kind, generated from its type: what a CRD carries and the embedded engine enforces.

Kubernetes asks a schema to be *structural*: every value has a type, nothing is hidden behind ``$ref`` or
``anyOf`` of shapes. Our types map onto that one to one; what does not map is refused here, at import of the
tests, and not by an API server at night.
"""

from __future__ import annotations

import inspect
from functools import cache
from typing import Any

import msgspec
from msgspec import inspect as types

from quorate.api.codec import to_builtins
from quorate.api.duration import DURATION_MAX_LENGTH, DURATION_PATTERN, Duration
from quorate.api.kind import Kind
from quorate.api.quantity import QUANTITY_MAX_LENGTH, QUANTITY_PATTERN, Quantity
from quorate.api.secret import Secret
from quorate.api.struct import Rule, Struct

Schema = dict[str, Any]


@cache
def structural_schema(kind: Kind) -> Schema:
    """The OpenAPI v3 structural schema of a whole object; metadata is the API server's own business."""
    schema = _struct(types.type_info(kind.type))  # type: ignore[arg-type]
    schema["properties"]["metadata"] = {"type": "object"}
    schema["properties"] = {
        "apiVersion": {"type": "string", "description": "The version of the schema of this object."},
        "kind": {"type": "string", "description": "The kind of this object."},
        **schema["properties"],
    }
    return schema


@cache
def metadata_schema() -> Schema:
    """The schema of ObjectMeta, for ``kubectl explain`` and for strict decoding."""
    from quorate.api.meta import ObjectMeta

    return _struct(types.type_info(ObjectMeta))  # type: ignore[arg-type]


def _struct(info: types.StructType) -> Schema:
    cls = info.cls
    rules: tuple[Rule, ...] = getattr(cls, "RULES", ())
    properties: Schema = {}
    required: list[str] = []
    for field in info.fields:
        schema = _schema(field.type)
        if field.default is not msgspec.NODEFAULT and _is_wire_default(field.default):
            schema["default"] = to_builtins(field.default)
        if field.required:
            required.append(field.encode_name)
        properties[field.encode_name] = schema
    result: Schema = {"type": "object"}
    if description := _first_paragraph(cls):
        result["description"] = description
    result["properties"] = properties
    if required:
        result["required"] = sorted(required)
    if rules:
        result["x-kubernetes-validations"] = [rule.to_schema() for rule in rules]
    return result


def _is_wire_default(value: object) -> bool:
    """Only a value that says something is a default on the wire.

    None, empty text, zero, False, empty containers and empty structs are how an absent field reads in Python.
    """
    if isinstance(value, Struct):
        return bool(to_builtins(value))
    return bool(value)


def _first_paragraph(cls: type) -> str:
    doc = cls.__dict__.get("__doc__")
    return " ".join(inspect.cleandoc(doc).split("\n\n")[0].split()) if doc else ""


def _schema(info: types.Type) -> Schema:
    if isinstance(info, types.Metadata):
        schema = _schema(info.type)
        extra = dict(info.extra_json_schema or {})
        # Rules from several annotations add up; everything else is said once.
        rules = schema.pop("x-kubernetes-validations", []) + extra.pop("x-kubernetes-validations", [])
        schema.update(extra)
        if rules:
            schema["x-kubernetes-validations"] = rules
        return schema
    if isinstance(info, types.UnionType):
        members = [member for member in info.types if not isinstance(member, types.NoneType)]
        if len(members) != 1:
            raise TypeError(f"not structural: a union of {len(members)} types")
        return _schema(members[0])
    if isinstance(info, types.StructType):
        return _struct(info)
    if isinstance(info, types.StrType):
        return {"type": "string"} | _bounds(minLength=info.min_length, maxLength=info.max_length, pattern=info.pattern)
    if isinstance(info, types.BoolType):
        return {"type": "boolean"}
    if isinstance(info, types.IntType):
        return {"type": "integer", "format": "int64"} | _number_bounds(info)
    if isinstance(info, types.FloatType):
        return {"type": "number", "format": "double"} | _number_bounds(info)
    if isinstance(info, types.DateTimeType):
        return {"type": "string", "format": "date-time"}
    if isinstance(info, types.EnumType):
        told = _first_paragraph(info.cls)
        return {"type": "string", "enum": [member.value for member in info.cls]} | _bounds(description=told or None)
    if isinstance(info, types.LiteralType):
        return {"type": "string", "enum": list(info.values)}
    if isinstance(info, types.BytesType):
        return {"type": "string", "format": "byte"}
    if isinstance(info, types.VarTupleType | types.ListType):
        return {"type": "array", "items": _schema(info.item_type)} | _bounds(
            minItems=info.min_length, maxItems=info.max_length
        )
    if isinstance(info, types.DictType):
        values: object = {"x-kubernetes-preserve-unknown-fields": True}
        if not isinstance(info.value_type, types.AnyType):
            values = _schema(info.value_type)
        return {"type": "object", "additionalProperties": values} | _bounds(
            minProperties=info.min_length, maxProperties=info.max_length
        )
    if isinstance(info, types.CustomType) and info.cls is Quantity:
        return {
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "pattern": QUANTITY_PATTERN,
            "maxLength": QUANTITY_MAX_LENGTH,
            "x-kubernetes-int-or-string": True,
        }
    if isinstance(info, types.CustomType) and info.cls is Duration:
        return {"type": "string", "pattern": DURATION_PATTERN, "maxLength": DURATION_MAX_LENGTH}
    if isinstance(info, types.CustomType) and info.cls is Secret:
        return {"type": "string"}
    raise TypeError(f"no structural schema for {info!r}")


def _number_bounds(info: types.IntType | types.FloatType) -> Schema:
    schema = _bounds(minimum=info.ge, maximum=info.le, multipleOf=info.multiple_of)
    if info.gt is not None:
        schema |= {"minimum": info.gt, "exclusiveMinimum": True}
    if info.lt is not None:
        schema |= {"maximum": info.lt, "exclusiveMaximum": True}
    return schema


def _bounds(**limits: object) -> Schema:
    return {name: limit for name, limit in limits.items() if limit is not None}
