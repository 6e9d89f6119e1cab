"""Patches: from a request's media type and body to a function that changes an object.

- merge (RFC 7386): every kind;
- JSON (RFC 6902): every kind;
- strategic merge: the kinds that a Kubernetes API server has of its own, because ``kubectl cordon``, ``taint``,
  ``apply`` and ``edit`` send it for them whatever the server says. A custom kind refuses it, as on a real server;
- server-side apply: refused. It needs a record of who set each field, and here every field has one writer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import partial
from types import MappingProxyType
from typing import Any

import jsonpatch
import jsonpointer

from quorate.api.kind import Kind
from quorate.engine import merge
from quorate.errors import BadRequest, Invalid, TooLarge, UnsupportedMediaType
from quorate.server.kubernetes import strategic
from quorate.server.kubernetes.bodies import check_bounds
from quorate.server.kubernetes.requests import MAX_BODY

Change = Callable[[dict[str, Any]], dict[str, Any]]

MERGE = "application/merge-patch+json"
JSON = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = ("application/apply-patch+yaml", "application/apply-patch+cbor")

#: A longer list is more likely an attack than an intention. (A real API server takes ten times as many.)
MAX_OPERATIONS = 1000
#: Characters of all their paths together.
MAX_PATHS = 64 * 1024
#: Bytes of JSON that the copies of one patch may add up to. Each can double the object, so a few would fill memory.
MAX_COPIED = MAX_BODY


def change_of(kind: Kind, media_type: str, patch: Any) -> Change:
    """What the patch does to an object. Raises for a patch that cannot be one, before anything is read."""
    change = _change_of(kind, media_type, patch)

    def bounded(current: dict[str, Any]) -> dict[str, Any]:
        changed = change(current)
        try:
            # What is bounded in a request would otherwise grow by one after the other.
            check_bounds(changed)
        except ValueError as error:
            raise TooLarge(f"the patch makes an object that is too large: {error}") from None
        return changed

    return bounded


def _change_of(kind: Kind, media_type: str, patch: Any) -> Change:
    if media_type == JSON:
        return _json_patch(patch)
    if not isinstance(patch, dict):
        raise BadRequest(f"error decoding patch: expected an object, got {_type_name(patch)}")
    if media_type == STRATEGIC:
        return lambda current: strategic.apply(kind, current, patch)
    return lambda current: merge.apply(current, patch)


def check_media_type(kind: Kind, media_type: str) -> None:
    """Raises UnsupportedMediaType for a patch that this kind does not take."""
    if media_type in APPLY:
        raise UnsupportedMediaType(
            "server-side apply is not supported by Quorate's embedded engine: use client-side apply "
            f"(kubectl apply without --server-side) or a patch of type {MERGE}"
        )
    accepted = [JSON, MERGE] if kind.crd else [JSON, MERGE, STRATEGIC]
    if media_type not in accepted:
        raise UnsupportedMediaType(
            f"the body of the request was in an unknown format - accepted media types include: {', '.join(accepted)}"
        )


class _Replace(jsonpatch.ReplaceOperation):
    """Kubernetes sets a member that is not there yet, where RFC 6902 asks for an error; manifests rely on it."""

    def apply(self, obj: Any) -> Any:
        target, key = self.pointer.to_last(obj)
        if isinstance(target, dict) and key is not None:
            target[key] = self.operation.get("value")
            return obj
        return super().apply(obj)


class _Copied:
    """How much the copies of one patch have added up to."""

    def __init__(self) -> None:
        self._size = 0

    def add(self, value: Any) -> None:
        self._size += len(json.dumps(value))
        if self._size > MAX_COPIED:
            raise TooLarge(f"the copies of a JSON patch may add up to at most {MAX_COPIED} bytes")


class _Copy(jsonpatch.CopyOperation):
    """Measures what it is about to copy."""

    def __init__(self, operation: Any, pointer_cls: Any, *, copied: _Copied) -> None:
        super().__init__(operation, pointer_cls=pointer_cls)
        self._copied = copied

    def apply(self, obj: Any) -> Any:
        if isinstance(source := self.operation.get("from"), str):
            self._copied.add(self.pointer_cls(source).resolve(obj))
        return super().apply(obj)


class _Patch(jsonpatch.JsonPatch):
    def __init__(self, patch: Any) -> None:
        copy: Any = partial(_Copy, copied=_Copied())
        self.operations = MappingProxyType(  # type: ignore[misc] # the copies of a patch are counted together
            {**jsonpatch.JsonPatch.operations, "replace": _Replace, "copy": copy}
        )
        super().__init__(patch)


def _json_patch(patch: Any) -> Change:
    if not isinstance(patch, list) or not all(isinstance(operation, dict) for operation in patch):
        raise BadRequest(f"error decoding patch: expected a list of operations, got {_type_name(patch)}")
    if len(patch) > MAX_OPERATIONS:
        raise TooLarge(f"a JSON patch may hold at most {MAX_OPERATIONS} operations, got {len(patch)}")
    if sum(len(str(operation.get(name, ""))) for operation in patch for name in ("path", "from")) > MAX_PATHS:
        raise TooLarge(f"the paths of a JSON patch may have at most {MAX_PATHS} characters in all")

    def change(current: dict[str, Any]) -> dict[str, Any]:
        try:
            changed = _Patch(patch).apply(current)
        except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException, TypeError) as error:
            # Without details, as a real server: with them kubectl would say that the object is invalid.
            raise Invalid(f"the patch does not apply: {_without_types(str(error))}") from None
        if not isinstance(changed, dict):
            raise BadRequest("the patch replaces the whole object by something that is none")
        return changed

    return change


def _type_name(value: Any) -> str:
    names = {dict: "an object", list: "an array", str: "a string", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")


def _without_types(text: str) -> str:
    """The library's message without the names of Python types."""
    return re.sub(r" \(<class '\w+'>\)", "", text)
