"""Objects that are dear to judge, or to refuse: owners, labels, finalizers, unknown fields, long lists."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

from tests.attacks.bodies import HEADERS, NODES, VOLUMES
from tests.attacks.harness import Case, Cost

REQUESTS = "/apis/maintenance.quorate.io/v1alpha1/permissionrequests?dryRun=All"
EVENTS = "/api/v1/namespaces/default/events?dryRun=All"


def node(metadata: dict[str, Any] | None = None, **parts: Any) -> bytes:
    return json.dumps(
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a", **(metadata or {})}, **parts}
    ).encode()


def volume(spec: dict[str, Any] | None = None, **parts: Any) -> bytes:
    return json.dumps(
        {
            "apiVersion": "storage.deckhouse.io/v1alpha1",
            "kind": "ReplicatedVolume",
            "metadata": {"name": "a"},
            "spec": {"size": "1Gi", "replicatedStorageClassName": "c", **(spec or {})},
            **parts,
        }
    ).encode()


def owner(number: int, **parts: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "K", "name": f"n{number}", "uid": str(number), **parts}


def owners() -> Iterator[Case]:
    for count in (500, 2_000, 10_000, 30_000):
        for name, one in (
            ("owners", lambda number: owner(number)),
            ("times one owner", lambda _: owner(0)),
            ("owners that all control", lambda number: owner(number, controller=True)),
            ("owners without a version", lambda number: owner(number, apiVersion="")),
            ("owners that are Events", lambda number: owner(number, kind="Event")),
            ("owners of unknown fields", lambda number: owner(number, other=1)),
            ("empty owners", lambda _: {}),
        ):
            yield Case(
                f"objects: {count} {name}",
                "POST",
                NODES,
                lambda one=one, count=count: node({"ownerReferences": [one(n) for n in range(count)]}),  # type: ignore[misc]
                HEADERS,
            )


def metadata() -> Iterator[Case]:
    for count in (2_000, 20_000, 100_000):
        fields: dict[str, Any] = {
            "labels": {f"k{n}": "v" for n in range(count)},
            "labels with bad keys": {f"-{n}-": "v" for n in range(count)},
            "labels with bad values": {f"k{n}": "-v-" for n in range(count)},
            "labels with bad prefixes": {f"-x-/{n}": "v" for n in range(count)},
            "annotations with bad keys": {f"-{n}": "" for n in range(count)},
            "annotations": {f"k{n}": "x" for n in range(count)},
            "finalizers": [f"f{n}" for n in range(count)],
            "bad finalizers": [f"-{n}" for n in range(count)],
            "finalizers without a domain": [f"a.b{n}" for n in range(count)],
            "managedFields": [{"manager": "x", "fieldsV1": {"f:a": {}}} for _ in range(count // 4)],
        }
        for name, value in fields.items():
            key = "finalizers" if "finalizers" in name else name.split()[0]
            body = partial(node, {key: value})
            yield Case(f"objects: {count} {name}", "POST", NODES, body, HEADERS)
    megabytes: dict[str, dict[str, Any]] = {
        "a name": {"name": "x" * 1_000_000},
        "a prefix of names": {"name": "", "generateName": "x" * 1_000_000},
        "a namespace": {"namespace": "x" * 1_000_000},
        "a version": {"resourceVersion": "1" * 1_000_000},
        "a uid": {"uid": "x" * 1_000_000},
        "a time": {"creationTimestamp": "2" * 1_000_000},
        "a label's key": {"labels": {"k" * 1000: "v"}},
        "a label's value": {"labels": {"k": "v" * 1_000_000}},
        "a finalizer": {"finalizers": ["f" * 1_000_000]},
        "a finalizer of slashes": {"finalizers": ["/" * 1_000_000]},
        "an annotation": {"annotations": {"k": "v" * 1_000_000}},
    }
    for name, value in megabytes.items():
        yield Case(f"objects: {name} of a megabyte", "POST", NODES, partial(node, value), HEADERS)


def unknown() -> Iterator[Case]:
    for count in (1_000, 20_000, 100_000):
        many = {f"unknown-field-{n}": 1 for n in range(count)}
        for where, body in (
            ("a volume", partial(volume, None, **many)),
            ("a volume's spec", partial(volume, many)),
            ("metadata", partial(node, many)),
        ):
            for validation in ("Warn", "Strict"):
                path = NODES if where == "metadata" else VOLUMES
                yield Case(
                    f"objects: {count} unknown fields in {where}, {validation}",
                    "POST",
                    f"{path}&fieldValidation={validation}",
                    body,
                    HEADERS,
                    cost=Cost(answer=64 * 1024),
                )


def lists() -> Iterator[Case]:
    """Lists of the schema, with many items, of which all are wrong."""
    for count in (5_000, 12_000, 100_000):
        conditions = [{"type": f"t{n}", "status": "Maybe"} for n in range(count)]
        twice = [{"type": f"t{n % 7}", "status": "True"} for n in range(count)]
        actions = [{"action": "NONE", "node": f"n{n}", "duration": "x"} for n in range(count // 4)]
        taints = [{"key": f"k{n}", "effect": "Never"} for n in range(count)]
        request = {
            "apiVersion": "maintenance.quorate.io/v1alpha1",
            "kind": "PermissionRequest",
            "metadata": {"name": "a"},
            "spec": {"user": "u", "actions": actions},
        }
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": "a"},
            "involvedObject": {"x": list(range(count))},
        }
        yield Case(
            f"objects: {count} conditions", "POST", NODES, partial(node, status={"conditions": conditions}), HEADERS
        )
        yield Case(
            f"objects: {count} conditions of seven types",
            "POST",
            NODES,
            partial(node, status={"conditions": twice}),
            HEADERS,
        )
        yield Case(f"objects: {count} taints", "POST", NODES, partial(node, spec={"taints": taints}), HEADERS)
        yield Case(
            f"objects: {count // 4} actions",
            "POST",
            REQUESTS,
            lambda request=request: json.dumps(request).encode(),  # type: ignore[misc]
            HEADERS,
        )
        yield Case(
            f"objects: {count} numbers in an Event",
            "POST",
            EVENTS,
            lambda event=event: json.dumps(event).encode(),  # type: ignore[misc]
            HEADERS,
            cost=Cost(answer=1024 * 1024),
        )
        yield Case(
            f"objects: {count} texts for a size", "POST", VOLUMES, partial(volume, {"size": ["1Gi"] * count}), HEADERS
        )
    yield Case("objects: a size of a megabyte", "POST", VOLUMES, partial(volume, {"size": "1" * 1_000_000}), HEADERS)
    yield Case(
        "objects: a class of a megabyte",
        "POST",
        VOLUMES,
        partial(volume, {"replicatedStorageClassName": "c" * 1_000_000}),
        HEADERS,
    )
    yield Case(
        "objects: the largest that is taken",
        "POST",
        NODES,
        partial(node, None, spec={"x": "y" * 1_500_000}),
        HEADERS,
        cost=Cost(answer=2 * 1024 * 1024),
    )


CASES = [*owners(), *metadata(), *unknown(), *lists()]
