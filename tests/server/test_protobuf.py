"""What typed Go clients send as protobuf is read as what they would have sent as JSON."""

from __future__ import annotations

import json
import ssl
import urllib.request
from typing import Any

import pytest

from quorate.api.codec import convert
from quorate.api.core import Event, Lease, Namespace, Node, PersistentVolumeClaim
from quorate.api.kind import Kind
from quorate.api.meta import Resource
from quorate.api.schema import metadata_schema, structural_schema
from quorate.errors import UnsupportedMediaType
from quorate.server.kubernetes.core_messages import parse_protobuf
from quorate.server.kubernetes.protobuf import Many, Map, flag, integer, message, micro_time, quantity, text, time
from tests.server.conftest import Client
from tests.support.apiserver import ApiServer

PROTOBUF = "application/vnd.kubernetes.protobuf"


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    parts = []
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*parts, value])


def field(number: int, value: int | bytes) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def wrapped(api_version: str, kind: str, body: bytes) -> bytes:
    kind_of = field(1, api_version.encode()) + field(2, kind.encode())
    return b"k8s\0" + field(1, kind_of) + field(2, body) + field(3, b"") + field(4, b"")


TABLE = message(
    {
        1: ("text", text),
        2: ("number", integer),
        3: ("flag", flag),
        4: ("time", time),
        5: ("micro", micro_time),
        6: ("size", quantity),
        7: ("many", Many(text)),
        8: ("map", Map(text)),
    }
)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", {}),
        (field(1, b"hello"), {"text": "hello"}),
        (field(1, b""), {}),
        (field(2, 300), {"number": 300}),
        (field(2, -1), {"number": -1}),
        (field(3, 1), {"flag": True}),
        (field(3, 0), {}),
        (field(4, field(1, 1767225600)), {"time": "2026-01-01T00:00:00Z"}),
        (field(4, field(1, -62135596800)), {}),
        (field(5, field(1, 1767225600) + field(2, 5000)), {"micro": "2026-01-01T00:00:00.000005Z"}),
        (field(6, field(1, b"10Gi")), {"size": "10Gi"}),
        (field(7, b"a") + field(7, b""), {"many": ["a", ""]}),
        (field(8, field(1, b"k") + field(2, b"v")) + field(8, field(1, b"l")), {"map": {"k": "v", "l": ""}}),
        (field(99, b"unknown") + field(98, 7) + varint(97 << 3 | 1) + b"8 bytes." + varint(96 << 3 | 5) + b"four", {}),
    ],
)
def test_the_wire_format_is_read_by_a_table(data: bytes, expected: dict[str, Any]) -> None:
    assert TABLE(data) == expected


@pytest.mark.parametrize(
    "data",
    [
        b"\x80",
        varint(1 << 3 | 2) + varint(100) + b"short",
        varint(1 << 3 | 3),
        field(1, 5),
        field(2, b"text"),
        field(1, b"\xff"),
        field(4, field(1, 1 << 62)),
        b"\xff" * 20,
    ],
)
def test_what_is_no_message_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError):
        TABLE(data)


def test_a_kind_that_is_not_kubernetes_own_must_be_json() -> None:
    with pytest.raises(UnsupportedMediaType, match="application/json"):
        parse_protobuf(wrapped("test.quorate.io/v1", "Widget", b""))


@pytest.mark.parametrize("data", [b"", b"{}", b"k8s\0\x80"])
def test_what_is_not_in_the_envelope_is_refused(data: bytes) -> None:
    with pytest.raises((ValueError, UnsupportedMediaType)):
        parse_protobuf(data)


async def test_a_typed_client_creates_and_deletes_without_json(http: Client) -> None:
    metadata = field(1, field(1, b"made") + field(2, b""))
    created = await http("POST", "/api/v1/namespaces", wrapped("v1", "Namespace", metadata), kind=PROTOBUF)
    assert (created.code, created.json["metadata"]["name"]) == (201, "made")
    options = wrapped("v1", "DeleteOptions", field(2, field(1, b"another-uid")))
    refused = await http("DELETE", "/api/v1/namespaces/made", options, kind=PROTOBUF)
    assert (refused.code, refused.json["reason"]) == (409, "Conflict")


async def test_an_object_is_not_replaced_by_protobuf_which_would_lose_its_other_fields(http: Client) -> None:
    made = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "made"}}
    assert (await http("POST", "/api/v1/namespaces", made)).code == 201
    body = wrapped("v1", "Namespace", field(1, field(1, b"made")))
    refused = await http("PUT", "/api/v1/namespaces/made", body, kind=PROTOBUF)
    assert (refused.code, refused.json["reason"]) == (415, "UnsupportedMediaType")
    assert "application/json" in refused.json["message"]


TIME, MICRO = "2026-01-01T00:00:00Z", "2026-01-01T00:00:00.000005Z"
REFERENCE = {
    "apiVersion": "v1",
    "kind": "Node",
    "name": "n",
    "namespace": "default",
    "uid": "u",
    "resourceVersion": "1",
    "fieldPath": "spec",
}
#: Every field of core kinds that our types know, as JSON.
OBJECTS: dict[type[Resource], dict[str, Any]] = {
    Namespace: {"metadata": {"name": "protobuf"}},
    Node: {
        "metadata": {
            "name": "protobuf",
            "labels": {"a": "b"},
            "annotations": {"c": "d"},
            "finalizers": ["test.quorate.io/x"],
            "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u", "controller": True}],
        },
        "spec": {
            "podCIDR": "10.0.0.0/24",
            "providerID": "p://1",
            "unschedulable": True,
            "taints": [{"key": "k", "value": "v", "effect": "NoSchedule", "timeAdded": TIME}],
        },
        "status": {
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
            "conditions": [
                {
                    "type": "Ready",
                    "status": "True",
                    "reason": "R",
                    "message": "m",
                    "lastHeartbeatTime": TIME,
                    "lastTransitionTime": TIME,
                }
            ],
            "nodeInfo": {"machineID": "m", "bootID": "b", "kernelVersion": "6.1", "osImage": "o"},
        },
    },
    Event: {
        "metadata": {"name": "protobuf", "namespace": "default"},
        "involvedObject": REFERENCE,
        "reason": "Tested",
        "message": "m",
        "type": "Normal",
        "action": "Testing",
        "count": 3,
        "firstTimestamp": TIME,
        "lastTimestamp": TIME,
        "eventTime": MICRO,
        "series": {"count": 2, "lastObservedTime": MICRO},
        "source": {"component": "c", "host": "h"},
        "related": REFERENCE,
        "reportingComponent": "test.quorate.io/c",
        "reportingInstance": "i",
    },
    PersistentVolumeClaim: {
        "metadata": {"name": "protobuf", "namespace": "default"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "10Gi"}},
            "volumeName": "v",
            "storageClassName": "s",
            "volumeMode": "Block",
        },
    },
    Lease: {
        "metadata": {"name": "protobuf", "namespace": "default"},
        "spec": {
            "holderIdentity": "me",
            "leaseDurationSeconds": 15,
            "acquireTime": MICRO,
            "renewTime": MICRO,
            "leaseTransitions": 3,
        },
    },
}


def url(kind: Kind, name: str = "") -> str:
    root = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
    place = "/namespaces/default" if kind.namespaced else ""
    return f"{root}{place}/{kind.plural}" + (f"/{name}" if name else "")


@pytest.mark.apiserver
@pytest.mark.parametrize("cls", OBJECTS)
def test_protobuf_of_a_real_server_says_the_same_as_its_json(apiserver: ApiServer, cls: type[Resource]) -> None:
    kind = cls.KIND
    body = {"apiVersion": kind.api_version, "kind": kind.name, **OBJECTS[cls]}
    assert apiserver.request("POST", url(kind), body).code == 201
    try:
        name = body["metadata"]["name"]
        as_json = apiserver.request("GET", url(kind, name)).json()
        request = urllib.request.Request(
            apiserver.url + url(kind, name),
            headers={"Authorization": f"Bearer {apiserver.token}", "Accept": PROTOBUF},
        )
        trusted = ssl.create_default_context(cafile=str(apiserver.ca_file))
        with urllib.request.urlopen(request, context=trusted) as answer:
            as_protobuf = parse_protobuf(answer.read())
    finally:
        freed = json.loads('{"metadata": {"finalizers": null}}')
        apiserver.request("PATCH", url(kind, name), freed, "application/merge-patch+json")
        apiserver.request("DELETE", url(kind, name))
    assert convert(cls, as_protobuf) == convert(cls, as_json)
    assert as_protobuf["metadata"]["name"] == name


@pytest.mark.parametrize("cls", OBJECTS)
def test_no_field_that_our_types_know_was_left_out_of_the_comparison(cls: type[Resource]) -> None:
    schema = structural_schema(cls.KIND)
    missing = set(_leaves({**schema["properties"], "metadata": metadata_schema()})) - set(_values(OBJECTS[cls]))
    # Set by the server; equal by the comparison of what it returned.
    by_server = {"apiVersion", "kind", "status.phase", "status.capacity", "spec.finalizers"}
    assert {path for path in missing if not path.startswith("metadata.")} <= by_server


def _leaves(properties: dict[str, Any], prefix: str = "") -> list[str]:
    found = []
    for name, schema in properties.items():
        inner = schema.get("items", schema)
        path = f"{prefix}{name}"
        found += _leaves(inner["properties"], f"{path}.") if inner.get("properties") else [path]
    return found


def _values(tree: Any, prefix: str = "") -> list[str]:
    if isinstance(tree, list):
        return _values(tree[0], prefix) if tree and isinstance(tree[0], dict) else [prefix.rstrip(".")]
    if isinstance(tree, dict):
        return [
            prefix.rstrip("."),
            *(path for name, value in tree.items() for path in _values(value, f"{prefix}{name}.")),
        ]
    return [prefix.rstrip(".")]
