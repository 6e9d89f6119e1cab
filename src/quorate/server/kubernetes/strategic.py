"""The strategic merge patch: a merge patch that knows which lists merge by a key, and in what order.

Only for core kinds. Which lists those are is part of Kubernetes' Go types; ``kubectl`` is built with them, so the
table here must say the same, whatever our own types declare. Everything else merges as in RFC 7386.

Directives inside a patch: ``$patch: replace|delete|merge`` in an object, ``$retainKeys: [keys]`` (drop all others),
``$deleteFromPrimitiveList/<field>: [values]`` and ``$setElementOrder/<field>: [values or keys]`` beside a list.
"""

from __future__ import annotations

from collections import deque
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

#: Of one list in a patch.
_MOST_ITEMS = 5000

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
        retained = {key for key in _listed(patch, "$retainKeys", path) if isinstance(key, str)}
        result = {key: value for key, value in result.items() if key in retained}
    for key, value in patch.items():
        if key.startswith("$"):
            continue
        inner = f"{path}.{key}".lstrip(".")
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict) and inner not in merging:
            result[key] = _object(result.get(key), value, merging, inner)
        elif inner not in merging:
            result[key] = _without_directives(value)
    for key in _merging_lists(patch, merging, path):
        inner = f"{path}.{key}".lstrip(".")
        result[key] = _list(result.get(key), key, patch, merging, inner)
    return result


def _merging_lists(patch: dict[str, Any], merging: Mapping[str, str], path: str) -> list[str]:
    """The fields of a patch that are lists to merge, named by a value or only by a directive."""
    fields = (key.removeprefix(_DELETE_ITEMS).removeprefix(_ORDER) for key in patch)
    found = dict.fromkeys(field for field in fields if f"{path}.{field}".lstrip(".") in merging)
    return [field for field in found if patch.get(field, []) is not None]


def _list(current: Any, field: str, patch: dict[str, Any], merging: Mapping[str, str], path: str) -> list[Any]:
    """A list merged item by item, and put in order."""
    identity = merging[path]
    items = _listed(patch, field, path)
    replaced = {"$patch": "replace"} in items
    before = {_key(item, identity, path): item for item in current or []}
    merged = {} if replaced else dict(before)
    for key in _listed(patch, _DELETE_ITEMS + field, path):
        merged.pop(_key(key, "", path), None)
    named = []
    for item in items:
        if item == {"$patch": "replace"}:
            continue
        key = _key(item, identity, path)
        named.append(key)
        if identity and item.get("$patch") == "delete":
            merged.pop(key, None)
        else:
            merged[key] = _object(merged.get(key), item, merging, path) if identity else item
    if _ORDER + field in patch:
        named = [_key(item, identity, path) for item in _listed(patch, _ORDER + field, path)]
    return [merged[key] for key in _arranged(list(before), named) if key in merged]


def _listed(patch: dict[str, Any], field: str, path: str) -> list[Any]:
    """A field of a patch that must be a list, if it is there."""
    found = patch.get(field, [])
    if not isinstance(found, list):
        raise BadRequest(f"error decoding patch: {field} at {path or 'the top'} must be a list")
    if len(found) > _MOST_ITEMS:
        raise BadRequest(f"error decoding patch: {field} at {path or 'the top'} has more than {_MOST_ITEMS} items")
    return found


def _key(item: Any, identity: str, path: str) -> str:
    """By what an item is known: its merge key, or itself in a list of texts."""
    if identity and not (isinstance(item, dict) and isinstance(item.get(identity), str)):
        raise BadRequest(f"error decoding patch: an item of {path} does not have its merge key {identity}")
    key = item[identity] if identity else item
    if not isinstance(key, str):
        raise BadRequest(f"error decoding patch: an item of {path} is not a text")
    return key


def _arranged(before: list[str], named: list[str]) -> list[str]:
    """Both orders kept: the client's for what it named, the server's for the rest.

    What the client did not name stays in front of a named item that it was in front of; behind the new ones otherwise.
    """
    place = {key: index for index, key in enumerate(before)}
    known = set(named)
    rest = deque(key for key in before if key not in known)
    result = []
    for key in named:
        while rest and key in place and place[rest[0]] < place[key]:
            result.append(rest.popleft())
        result.append(key)
    return [*result, *rest]


def _without_directives(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_directives(item) for item in value if item != {"$patch": "replace"}]
    if isinstance(value, dict):
        return {key: _without_directives(inner) for key, inner in value.items() if not key.startswith("$")}
    return value
