"""OpenAPI v3, one document per group and version, for ``kubectl explain`` and for clients that validate.

The schemas are the ones that the embedded engine enforces. Paths carry what ``kubectl`` looks for: which kind they
are about, and that a patch understands ``fieldValidation`` and ``dryRun`` (else it would validate by itself).

Of a ``kind: List`` it tries to do so all the same, with the old OpenAPI v2 as protobuf, and gives up if there is none.
What it does not find described there it leaves to the server; so we serve a document that describes nothing.

The strategic merge patch, which core kinds also accept, is not announced: ``kubectl`` would then compute the patch
from these schemas, and ours hold only the fields of a core kind that Quorate knows. Unannounced, it uses the Go types
it was built with.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import msgspec

from quorate.api.kind import Kind
from quorate.api.schema import metadata_schema, structural_schema
from quorate.server.kubernetes.paths import Kinds

Json = dict[str, Any]

_META = "io.k8s.apimachinery.pkg.apis.meta.v1"
_PATCH_TYPES = ("application/json-patch+json", "application/merge-patch+json")
_WRITE_PARAMETERS = ("dryRun", "fieldManager", "fieldValidation")
_LIST_PARAMETERS = (
    "allowWatchBookmarks",
    "continue",
    "fieldSelector",
    "labelSelector",
    "limit",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "timeoutSeconds",
    "watch",
)


V2_MEDIA_TYPE = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"


def _text(number: int, value: bytes) -> bytes:
    """A short text, or message, as a field of a protobuf message."""
    return bytes([number << 3 | 2, len(value)]) + value


#: ``swagger`` and ``info`` with ``title`` and ``version``, the fields that must be there.
V2_DOCUMENT = _text(1, b"2.0") + _text(2, _text(1, b"Quorate") + _text(2, b"unversioned"))


@dataclass(frozen=True, slots=True)
class Document:
    """One group and version, encoded, with the hash by which clients cache it."""

    body: bytes
    hash: str


def documents(kinds: Kinds) -> dict[str, Document]:
    """Every document by its path under ``/openapi/v3/``."""
    return {_root(group, version): _document(served) for (group, version), served in kinds.versions().items()}


def index(found: dict[str, Document]) -> Json:
    """``/openapi/v3``"""
    paths = {
        path: {"serverRelativeURL": f"/openapi/v3/{path}?hash={document.hash}"} for path, document in found.items()
    }
    return {"paths": paths}


def _root(group: str, version: str) -> str:
    return f"apis/{group}/{version}" if group else f"api/{version}"


def _document(kinds: tuple[Kind, ...]) -> Document:
    schemas: Json = {
        f"{_META}.ObjectMeta": metadata_schema(),
        f"{_META}.ListMeta": _object("Metadata of a list.", "resourceVersion", "continue"),
        f"{_META}.DeleteOptions": _object("How to delete.", "propagationPolicy"),
        f"{_META}.Status": _object("The outcome of a request.", "status", "message", "reason"),
        f"{_META}.Patch": {"type": "object", "description": "A patch, in the form that its media type says."},
    }
    paths: Json = {}
    for kind in kinds:
        schemas[_component(kind)] = _schema(kind)
        schemas[f"{_component(kind)}List"] = _list_schema(kind)
        paths |= _paths(kind)
    body = msgspec.json.encode(
        {
            "openapi": "3.0.0",
            "info": {"title": "Quorate", "version": kinds[0].version},
            "paths": paths,
            "components": {"schemas": schemas},
        }
    )
    return Document(body, hashlib.sha256(body).hexdigest().upper())


def _component(kind: Kind) -> str:
    """The name of a kind's schema: the group reversed, as Kubernetes names them."""
    if not kind.crd:
        return f"io.k8s.api.{kind.group.split('.')[0] or 'core'}.{kind.version}.{kind.name}"
    return f"{'.'.join(reversed(kind.group.split('.')))}.{kind.version}.{kind.name}"


def _ref(component: str) -> Json:
    return {"$ref": f"#/components/schemas/{component}"}


def _object(description: str, *texts: str) -> Json:
    return {"type": "object", "description": description, "properties": {text: {"type": "string"} for text in texts}}


def _schema(kind: Kind) -> Json:
    schema = structural_schema(kind)
    properties = dict(schema["properties"])
    properties["metadata"] = {
        "description": "What Kubernetes keeps about every object.",
        "allOf": [_ref(f"{_META}.ObjectMeta")],
    }
    return schema | {"properties": properties, "x-kubernetes-group-version-kind": [_gvk(kind)]}


def _list_schema(kind: Kind) -> Json:
    return {
        "type": "object",
        "description": f"{kind.name}List is a list of {kind.name}",
        "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"allOf": [_ref(f"{_META}.ListMeta")]},
            "items": {"type": "array", "items": _ref(_component(kind))},
        },
        "x-kubernetes-group-version-kind": [_gvk(kind) | {"kind": f"{kind.name}List"}],
    }


def _gvk(kind: Kind) -> Json:
    return {"group": kind.group, "kind": kind.name, "version": kind.version}


def _paths(kind: Kind) -> Json:
    root = f"/{_root(kind.group, kind.version)}"
    found: Json = {}
    collection = f"{root}/{kind.plural}"
    scoped: list[Json] = []
    if kind.namespaced:
        found[collection] = {"get": _operation(kind, "list", result="List", parameters=_LIST_PARAMETERS)}
        collection = f"{root}/namespaces/{{namespace}}/{kind.plural}"
        scoped = [_path_parameter("namespace")]
    found[collection] = {
        "get": _operation(kind, "list", result="List", parameters=_LIST_PARAMETERS),
        "post": _operation(kind, "post", parameters=_WRITE_PARAMETERS, body=_body(kind)),
        "delete": _operation(kind, "deletecollection", parameters=_LIST_PARAMETERS, result=None),
        **({"parameters": scoped} if scoped else {}),
    }
    named = [_path_parameter("name"), *scoped]
    found[f"{collection}/{{name}}"] = {
        "get": _operation(kind, "get"),
        "put": _operation(kind, "put", parameters=_WRITE_PARAMETERS, body=_body(kind)),
        "delete": _operation(kind, "delete", parameters=("dryRun", "propagationPolicy"), result=None),
        "patch": _operation(kind, "patch", parameters=_WRITE_PARAMETERS, body=_patch_body()),
        "parameters": named,
    }
    if kind.status_subresource:
        found[f"{collection}/{{name}}/status"] = {
            "get": _operation(kind, "get"),
            "put": _operation(kind, "put", parameters=_WRITE_PARAMETERS, body=_body(kind)),
            "patch": _operation(kind, "patch", parameters=_WRITE_PARAMETERS, body=_patch_body()),
            "parameters": named,
        }
    return found


def _operation(
    kind: Kind,
    action: str,
    *,
    parameters: tuple[str, ...] = (),
    body: Json | None = None,
    result: str | None = "",
) -> Json:
    answer = f"{_META}.Status" if result is None else _component(kind) + result
    operation: Json = {
        "description": f"{action} {kind.name}",
        "parameters": [{"name": name, "in": "query", "schema": {"type": "string"}} for name in parameters],
        "responses": {"200": {"description": "OK", "content": {"application/json": {"schema": _ref(answer)}}}},
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": _gvk(kind),
    }
    if body is not None:
        operation["requestBody"] = body
    return operation


def _body(kind: Kind) -> Json:
    schema = {"schema": _ref(_component(kind))}
    return {"required": True, "content": {"application/json": schema, "application/yaml": schema}}


def _patch_body() -> Json:
    return {"required": True, "content": {name: {"schema": _ref(f"{_META}.Patch")} for name in _PATCH_TYPES}}


def _path_parameter(name: str) -> Json:
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
