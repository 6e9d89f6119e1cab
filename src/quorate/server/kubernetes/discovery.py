"""What is served here: the documents from which ``kubectl`` learns kinds, short names and verbs.

In two forms: one document per group and version (``/api/v1``, ``/apis/<group>/<version>``), and all in one
("aggregated"), which newer clients ask for by its media type.
"""

from __future__ import annotations

from typing import Any

from quorate.api.kind import Kind
from quorate.server.kubernetes.paths import Kinds

Json = dict[str, Any]

#: The media type of aggregated discovery, as clients spell it in Accept.
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
STATUS_VERBS = ["get", "patch", "update"]


def core_versions(address: str) -> Json:
    """``/api``"""
    return {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
    }


def groups(kinds: Kinds) -> Json:
    """``/apis``"""
    names = dict.fromkeys(group for group, _ in kinds.versions() if group)
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group(kinds, name) for name in names]}


def group(kinds: Kinds, name: str) -> Json | None:
    """``/apis/<group>``"""
    if not name or all(served != name for served, _ in kinds.versions()):
        return None
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(kinds, name)}


def resources(kinds: Kinds, group_name: str, version: str) -> Json | None:
    """``/api/v1`` and ``/apis/<group>/<version>``"""
    served = kinds.versions().get((group_name, version))
    if served is None:
        return None
    listed: list[Json] = []
    for kind in served:
        listed.append(_resource(kind))
        if kind.status_subresource:
            listed.append(_status_resource(kind))
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": f"{group_name}/{version}" if group_name else version,
        "resources": listed,
    }


def aggregated(kinds: Kinds, *, core: bool) -> Json:
    """All of ``/api`` (core) or all of ``/apis`` in one document."""
    by_group: dict[str, list[Json]] = {}
    for (name, version), served in kinds.versions().items():
        if (name == "") == core:
            document = {"version": version, "resources": [_aggregated(kind) for kind in served], "freshness": "Current"}
            by_group.setdefault(name, []).append(document)
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": [
            {"metadata": {"name": name} if name else {}, "versions": versions} for name, versions in by_group.items()
        ],
    }


def _group(kinds: Kinds, name: str) -> Json:
    versions = [
        {"groupVersion": f"{served}/{version}", "version": version}
        for served, version in kinds.versions()
        if served == name
    ]
    return {"name": name, "versions": versions, "preferredVersion": versions[0]}


def _resource(kind: Kind) -> Json:
    found: Json = {
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.name,
        "verbs": VERBS,
    }
    return found | _names(kind)


def _status_resource(kind: Kind) -> Json:
    return {
        "name": f"{kind.plural}/status",
        "singularName": "",
        "namespaced": kind.namespaced,
        "kind": kind.name,
        "verbs": STATUS_VERBS,
    }


def _aggregated(kind: Kind) -> Json:
    response_kind = {"group": kind.group, "version": kind.version, "kind": kind.name}
    found: Json = {
        "resource": kind.plural,
        "responseKind": response_kind,
        "scope": kind.scope.value,
        "singularResource": kind.singular,
        "verbs": VERBS,
    }
    if kind.status_subresource:
        found["subresources"] = [{"subresource": "status", "responseKind": response_kind, "verbs": STATUS_VERBS}]
    return found | _names(kind)


def _names(kind: Kind) -> Json:
    found: Json = {}
    if kind.short_names:
        found["shortNames"] = list(kind.short_names)
    if kind.categories:
        found["categories"] = list(kind.categories)
    return found
