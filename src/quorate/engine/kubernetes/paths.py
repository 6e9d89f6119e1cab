"""Where a kind, an object and its status are under an API server's URL."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from urllib.parse import quote, urlencode

from quorate.api.kind import Kind
from quorate.errors import BadRequest, Cause, Invalid


@cache
def _base(kind: Kind) -> str:
    return f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"


def collection(kind: Kind, namespace: str) -> str:
    """The path of all objects of a kind, in one namespace or (if empty) in all."""
    if namespace and kind.namespaced:
        return f"{_base(kind)}/namespaces/{_segment(kind, namespace)}/{kind.plural}"
    return f"{_base(kind)}/{kind.plural}"


def single(kind: Kind, name: str, namespace: str) -> str:
    """The path of one object."""
    if kind.namespaced and not namespace:
        # The path would mean something else, and "not found" would be taken for "gone".
        raise BadRequest(f"{kind.name} is namespaced: a namespace is needed", group=kind.group, kind=kind.plural)
    return f"{collection(kind, namespace)}/{_segment(kind, name)}"


def birthplace(kind: Kind, name: str, namespace: str) -> str:
    """The path where a new object is posted."""
    if kind.namespaced and not namespace:
        cause = Cause("FieldValueRequired", "Required value", "metadata.namespace")
        message = f'{kind.name} "{name}" is invalid: metadata.namespace: Required value'
        raise Invalid(message, group=kind.group, kind=kind.name, name=name, causes=(cause,))
    return collection(kind, namespace)


def query(parameters: Mapping[str, str]) -> str:
    """``?a=b&c=d`` without the empty ones."""
    given = {key: value for key, value in parameters.items() if value}
    return f"?{urlencode(given)}" if given else ""


def _segment(kind: Kind, name: str) -> str:
    """A name as one path segment; what could lead to another path is refused."""
    if not name or name in (".", "..") or "/" in name or "%" in name:
        raise BadRequest(f"{name!r} cannot be the name of an object", group=kind.group, kind=kind.plural, name=name)
    return quote(name, safe="")
