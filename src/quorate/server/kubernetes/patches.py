"""Patches: from a request's media type and body to a function that changes an object.

- merge (RFC 7386): every kind;
- JSON (RFC 6902): every kind;
- strategic merge: the kinds that a Kubernetes API server has of its own, because ``kubectl cordon``, ``taint``,
  ``apply`` and ``edit`` send it for them whatever the server says. A custom kind refuses it, as on a real server;
- server-side apply: refused. It needs a record of who set each field, and here every field has one writer.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import jsonpatch
import jsonpointer

from quorate.api.kind import Kind
from quorate.engine import merge
from quorate.errors import BadRequest, Invalid, TooLarge, UnsupportedMediaType
from quorate.server.kubernetes import strategic

Change = Callable[[dict[str, Any]], dict[str, Any]]

MERGE = "application/merge-patch+json"
JSON = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = ("application/apply-patch+yaml", "application/apply-patch+cbor")

#: As a real API server: a longer list is more likely an attack than an intention.
MAX_OPERATIONS = 10_000


def change_of(kind: Kind, media_type: str, patch: Any) -> Change:
    """What the patch does to an object. Raises for a patch that cannot be one, before anything is read."""
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


class _Patch(jsonpatch.JsonPatch):
    operations = MappingProxyType({**jsonpatch.JsonPatch.operations, "replace": _Replace})


def _json_patch(patch: Any) -> Change:
    if not isinstance(patch, list) or not all(isinstance(operation, dict) for operation in patch):
        raise BadRequest(f"error decoding patch: expected a list of operations, got {_type_name(patch)}")
    if len(patch) > MAX_OPERATIONS:
        raise TooLarge(f"a JSON patch may hold at most {MAX_OPERATIONS} operations, got {len(patch)}")

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
