"""Objects as rows: the ``Table`` that ``kubectl get`` prints, with the columns that the kind declares."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from functools import cache
from typing import Any

import msgspec

from quorate.api.kind import Column, Kind
from quorate.errors import BadRequest
from quorate.server.kubernetes.ages import age
from quorate.server.kubernetes.jsonpath import compile_path

Json = dict[str, Any]

_NAME = {
    "name": "Name",
    "type": "string",
    "format": "name",
    "description": "The object's name, unique in its namespace.",
    "priority": 0,
}


class Include(StrEnum):
    """How much of the object comes with each row (``?includeObject=``)."""

    METADATA = "Metadata"
    OBJECT = "Object"
    NOTHING = "None"


def parse_include(text: str) -> Include:
    """The query parameter ``includeObject``; BadRequest if it is none of the three."""
    try:
        return Include(text or "Metadata")
    except ValueError:
        allowed = "must be 'Metadata', 'Object', 'None', or empty"
        raise BadRequest(
            f'Unable to convert to Table as requested: includeObject: Invalid value: "{text}": {allowed}'
        ) from None


@cache
def column_definitions(kind: Kind) -> tuple[Json, ...]:
    """The heading of a kind's table."""
    return (_NAME, *(_definition(column) for column in kind.columns))


def table(rows: Iterable[Json], *, metadata: Json, columns: tuple[Json, ...] | None) -> Json:
    """A whole table; ``columns`` are None in all but the first event of a watch."""
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": columns,
        "rows": list(rows),
    }


def row(kind: Kind, raw: bytes, include: Include, now: datetime) -> Json:
    """One object as a row."""
    tree = msgspec.json.decode(raw)
    cells = [tree["metadata"].get("name", ""), *(_cell(column, tree, now) for column in kind.columns)]
    return {"cells": cells, "object": _object(tree, raw, include)}


def partial_metadata(tree: Json) -> Json:
    """An object reduced to its metadata."""
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": tree["metadata"]}


def _object(tree: Json, raw: bytes, include: Include) -> Json | msgspec.Raw | None:
    match include:
        case Include.METADATA:
            return partial_metadata(tree)
        case Include.OBJECT:
            return msgspec.Raw(raw)
        case Include.NOTHING:
            return None


def _definition(column: Column) -> Json:
    compile_path(column.path)  # a path that cannot be read is a mistake of ours: fail at start, not at the first get
    return {
        "name": column.name,
        "type": column.type,
        "format": "",
        "description": column.description or f"The value of {column.path}",
        "priority": column.priority,
    }


def _cell(column: Column, tree: Json, now: datetime) -> Any:
    """A cell has its column's type or is empty: a client may rely on the type to sort."""
    value = compile_path(column.path).first(tree)
    if value is None:
        return None
    match column.type:
        case "string":
            return _text(value)
        case "date":
            return _age(value, now)
        case "boolean":
            return value if isinstance(value, bool) else None
        case "integer":
            return int(value) if _is_number(value) else None
        case _:
            return float(value) if _is_number(value) else None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _age(value: Any, now: datetime) -> str | None:
    if not isinstance(value, str):
        return None
    try:
        return age(datetime.fromisoformat(value), now)
    except (ValueError, TypeError):  # TypeError: without a time zone
        return "<invalid>"
