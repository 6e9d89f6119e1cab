"""Clients learn what is served, in both forms of discovery and from OpenAPI, and all say the same."""

from __future__ import annotations

from typing import Any

import pytest

from quorate.server.kubernetes.discovery import AGGREGATED
from quorate.server.kubernetes.protobuf import message, text
from tests.server.conftest import KINDS, Client

KUBECTL = f"{AGGREGATED},application/json"


async def test_the_aggregated_document_has_every_kind(http: Client) -> None:
    found = []
    for path in ("/api", "/apis"):
        answer = await http("GET", path, Accept=KUBECTL)
        assert answer.headers["Content-Type"] == AGGREGATED
        for group in answer.json["items"]:
            for version in group["versions"]:
                assert version["freshness"] == "Current"
                name = group["metadata"].get("name", "")
                found += [(name, version["version"], resource["resource"]) for resource in version["resources"]]
    assert sorted(found) == sorted((kind.group, kind.version, kind.plural) for kind in KINDS)


async def test_the_plain_documents_have_every_kind(http: Client) -> None:
    assert (await http("GET", "/api")).json["versions"] == ["v1"]
    groups = (await http("GET", "/apis", Accept="application/json")).json["groups"]
    found = [("", "v1")] + [(group["name"], one["version"]) for group in groups for one in group["versions"]]
    for group, version in found:
        root = f"/apis/{group}/{version}" if group else f"/api/{version}"
        listed = (await http("GET", root)).json
        assert listed["groupVersion"] == root.removeprefix("/apis/").removeprefix("/api/")
        names = {resource["name"] for resource in listed["resources"]}
        kinds = [kind for kind in KINDS if (kind.group, kind.version) == (group, version)]
        assert {kind.plural for kind in kinds} <= names
        assert {f"{kind.plural}/status" for kind in kinds if kind.status_subresource} <= names


async def test_a_kind_is_announced_with_its_names_and_scope(http: Client) -> None:
    listed = (await http("GET", "/apis/test.quorate.io/v1")).json["resources"]
    widgets = next(one for one in listed if one["name"] == "widgets")
    assert widgets["shortNames"] == ["wg"]
    assert widgets["categories"] == ["test"]
    assert widgets["singularName"] == "widget"
    assert (widgets["kind"], widgets["namespaced"]) == ("Widget", False)
    group = (await http("GET", "/apis/test.quorate.io")).json
    assert group["preferredVersion"] == {"groupVersion": "test.quorate.io/v1", "version": "v1"}


async def openapi(http: Client, path: str) -> Any:
    index = (await http("GET", "/openapi/v3")).json["paths"]
    answer = await http("GET", index[path]["serverRelativeURL"])
    assert "immutable" in answer.headers["Cache-Control"]
    return answer.json


async def test_openapi_has_every_group_and_version(http: Client) -> None:
    index = (await http("GET", "/openapi/v3")).json["paths"]
    assert sorted(index) == ["api/v1", "apis/coordination.k8s.io/v1", "apis/test.quorate.io/v1"]


async def test_the_old_openapi_describes_nothing_so_that_kubectl_leaves_a_list_to_the_server(http: Client) -> None:
    answer = await http("GET", "/openapi/v2")
    assert answer.headers["Content-Type"] == "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
    described = message({1: ("swagger", text), 2: ("info", message({1: ("title", text), 2: ("version", text)}))})
    assert described(answer.raw) == {"swagger": "2.0", "info": {"title": "Quorate", "version": "unversioned"}}


async def test_a_schema_is_found_by_its_group_version_and_kind(http: Client) -> None:
    document = await openapi(http, "apis/test.quorate.io/v1")
    schema = document["components"]["schemas"]["io.quorate.test.v1.Widget"]
    assert schema["x-kubernetes-group-version-kind"] == [
        {"group": "test.quorate.io", "kind": "Widget", "version": "v1"}
    ]
    assert schema["properties"]["spec"]["properties"]["colour"]["enum"] == ["Red", "Green"]
    (reference,) = schema["properties"]["metadata"]["allOf"]
    assert reference["$ref"].rpartition("/")[2] in document["components"]["schemas"]


@pytest.mark.parametrize("parameter", ["fieldValidation", "dryRun"])
async def test_kubectl_sees_that_the_server_validates_and_can_try_without_writing(http: Client, parameter: str) -> None:
    document = await openapi(http, "apis/test.quorate.io/v1")
    for path in (
        "/apis/test.quorate.io/v1/widgets/{name}",
        "/apis/test.quorate.io/v1/namespaces/{namespace}/gadgets/{name}",
    ):
        patch = document["paths"][path]["patch"]
        assert patch["x-kubernetes-action"] == "patch"
        assert {"name": parameter, "in": "query", "schema": {"type": "string"}} in patch["parameters"]


async def test_every_reference_leads_somewhere(http: Client) -> None:
    for path in ("api/v1", "apis/coordination.k8s.io/v1", "apis/test.quorate.io/v1"):
        document = await openapi(http, path)
        known = {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}
        assert set(_references(document)) <= known


def _references(tree: Any) -> list[str]:
    if isinstance(tree, dict):
        own = [tree["$ref"]] if isinstance(tree.get("$ref"), str) else []
        return own + [found for value in tree.values() for found in _references(value)]
    return [found for value in tree for found in _references(value)] if isinstance(tree, list) else []
