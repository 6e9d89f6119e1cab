"""JSON merge patches (RFC 7386): computing the difference, and applying it without copying what stays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """The patch that turns ``before`` into ``after``; empty when they are the same.

    Only keys that differ appear, so fields that neither side knows are left alone.
    """
    patch: dict[str, Any] = {}
    for key in before:
        if key not in after:
            patch[key] = None
    for key, value in after.items():
        if key not in before:
            patch[key] = value
            continue
        old = before[key]
        if old == value:
            continue
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            patch[key] = difference(old, value)
        else:
            patch[key] = value
    return patch


def apply(target: Any, patch: Any) -> Any:
    """The patched value. Nothing is changed in place; untouched branches are shared with ``target``."""
    if not _is_object(patch):
        return patch
    result = dict(target) if _is_object(target) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif _is_object(value):
            result[key] = apply(result.get(key), value)
        else:
            result[key] = value
    return result


def _is_object(value: Any) -> bool:
    # Nearly all are dicts, and isinstance() of an abstract class costs ten times as much as this.
    return type(value) is dict or isinstance(value, Mapping)
