"""The strategic merge patch: a merge patch that knows which lists merge by a key, and in what order.

Only for core kinds. Which lists those are is part of Kubernetes' Go types; ``kubectl`` is built with them, so the
table here must say the same, whatever our own types declare. Everything else merges as in RFC 7386.

Directives inside a patch: ``$patch: replace|delete|merge`` in an object, ``$retainKeys: [keys]`` (drop all others),
``$deleteFromPrimitiveList/<field>: [values]`` and ``$setElementOrder/<field>: [values or keys]`` beside a list.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from quorate.api.kind import Kind
from quorate.errors import BadRequest

#: Lists that merge, by kind and path: the field that identifies an item, or "" for a list of distinct scalars.
_COMMON = {"metadata.finalizers": "", "metadata.ownerReferences": "uid"}
_MERGING: Mapping[tuple[str, str], Mapping[str, str]] = {
    ("", "nodes"): {"spec.podCIDRs": "", "status.addresses": "type", "status.conditions": "type"},
    ("", "namespaces"): {"status.conditions": "type"},
    ("", "persistentvolumeclaims"): {"status.conditions": "type"},
}

_DELETE_ITEMS = "$deleteFromPrimitiveList/"
_ORDER = "$setElementOrder/"


def apply(kind: Kind, current: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """The patched object; ``current`` is left as it is."""
    merging = {**_COMMON, **_MERGING.get((kind.group, kind.plural), {})}
    return _object(current, patch, merging, "")


def _object(current: Any, patch: dict[str, Any], merging: Mapping[str, str], path: str) -> dict[str, Any]:
    directive = patch.get("$patch", "merge")
    if directive == "delete":
        return {}
    if directive not in ("merge", "replace"):
        raise BadRequest(f"error decoding patch: unknown patch type: {directive!r} at {path or 'the top'}")
    result = dict(current) if isinstance(current, dict) and directive == "merge" else {}
    if "$retainKeys" in patch:
        result = {key: value for key, value in result.items() if key in patch["$retainKeys"]}
    for key, value in patch.items():
        if key.startswith(_DELETE_ITEMS):
            field = key.removeprefix(_DELETE_ITEMS)
            result[field] = [item for item in result.get(field, []) if item not in value]
        elif key.startswith("$"):
            continue
        elif value is None:
            result.pop(key, None)
        else:
            result[key] = _value(result.get(key), value, merging, f"{path}.{key}".lstrip("."))
    for key, order in patch.items():
        field = key.removeprefix(_ORDER)
        if key.startswith(_ORDER) and isinstance(result.get(field), list):
            identity = merging.get(f"{path}.{field}".lstrip("."), "")
            result[field] = _ordered(result[field], order, identity)
    return result


def _value(current: Any, value: Any, merging: Mapping[str, str], path: str) -> Any:
    if isinstance(value, dict):
        return _object(current, value, merging, path)
    if not isinstance(value, list) or path not in merging or not isinstance(current, list):
        return _without_directives(value)
    identity = merging[path]
    return _items(current, value, identity, merging, path) if identity else _union(current, value)


def _union(current: list[Any], added: list[Any]) -> list[Any]:
    return current + [item for item in added if item not in current]


def _items(
    current: list[Any], patch: list[Any], identity: str, merging: Mapping[str, str], path: str
) -> list[dict[str, Any]]:
    items = [item for item in patch if item != {"$patch": "replace"}]
    merged = (
        {item.get(identity): item for item in current if isinstance(item, dict)} if len(items) == len(patch) else {}
    )
    for item in items:
        if not isinstance(item, dict) or identity not in item:
            raise BadRequest(f"error decoding patch: an item of {path} does not have its merge key {identity}")
        if item.get("$patch") == "delete":
            merged.pop(item[identity], None)
        else:
            merged[item[identity]] = _object(merged.get(item[identity]), item, merging, path)
    return list(merged.values())


def _ordered(items: list[Any], order: list[Any], identity: str) -> list[Any]:
    """Those named by ``order`` first and as it says; what the client did not know of keeps its place behind them."""
    wanted = [entry.get(identity) if isinstance(entry, dict) else entry for entry in order]

    def place(item: Any) -> int:
        key = item.get(identity) if isinstance(item, dict) else item
        return wanted.index(key) if key in wanted else len(wanted)

    return sorted(items, key=place)


def _without_directives(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_directives(item) for item in value if item != {"$patch": "replace"}]
    if isinstance(value, dict):
        return {key: _without_directives(inner) for key, inner in value.items() if not key.startswith("$")}
    return value
