"""Patches that are dear to apply: many operations, long paths, deep merges, directives."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.attacks.harness import Case

#: It is there from the start.
NAMESPACE = "/api/v1/namespaces/kube-public?dryRun=All"
MERGE = "application/merge-patch+json"
OPERATIONS = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"


def case(name: str, kind: str, patch: Any) -> Case:
    return Case(f"patch: {name}", "PATCH", NAMESPACE, lambda: json.dumps(patch).encode(), {"Content-Type": kind})


def operations() -> Iterator[Case]:
    long = "/a" * 400_000
    add_list = {"op": "add", "path": "/spec/x", "value": [0] * 20_000}
    for count in (1_000, 10_000):
        yield case(f"{count} tests", OPERATIONS, [{"op": "test", "path": "/kind", "value": "Namespace"}] * count)
        yield case(f"{count} tests of all", OPERATIONS, [{"op": "test", "path": "", "value": {}}] * count)
        yield case(f"{count} additions", OPERATIONS, [{"op": "add", "path": "/spec/x", "value": 1}] * count)
        insert = {"op": "add", "path": "/spec/x/0", "value": 1}
        yield case(f"{count} insertions in front", OPERATIONS, [add_list, *[insert] * (count - 1)])
        remove = {"op": "remove", "path": "/spec/x/0"}
        yield case(f"{count} removals in front", OPERATIONS, [add_list, *[remove] * (count - 1)])
        double = {"op": "copy", "from": "/spec", "path": "/spec/x"}
        yield case(f"{count} copies that double", OPERATIONS, [double] * count)
        yield case(
            f"{count} copies of a list",
            OPERATIONS,
            [add_list, *[{"op": "copy", "from": "/spec/x", "path": "/spec/y"}] * (count - 1)],
        )
        yield case(f"{count} moves", OPERATIONS, [{"op": "move", "from": "/metadata", "path": "/metadata"}] * count)
        yield case(f"{count} unknown operations", OPERATIONS, [{"op": "x", "path": "/"}] * count)
        yield case(f"{count} replacements of all", OPERATIONS, [{"op": "replace", "path": "", "value": {}}] * count)
    yield case("a long path", OPERATIONS, [{"op": "add", "path": long, "value": 1}])
    yield case("a long path to copy from", OPERATIONS, [{"op": "copy", "from": long, "path": "/x"}])
    yield case("many long paths", OPERATIONS, [{"op": "test", "path": "/a" * 1000, "value": 1}] * 900)
    yield case("a path of tildes", OPERATIONS, [{"op": "add", "path": "/" + "~1" * 500_000, "value": 1}])
    yield case(
        "an index beyond reason", OPERATIONS, [add_list, {"op": "add", "path": "/spec/x/" + "9" * 100_000, "value": 1}]
    )


def merges() -> Iterator[Case]:
    deep: Any = 1
    for _ in range(90):
        deep = {"a": deep}
    wide: dict[str, Any] = {f"k{number}": {} for number in range(30_000)}
    for kind, name in ((MERGE, "merge"), (STRATEGIC, "strategic")):
        yield case(f"{name} of depth", kind, {"spec": deep})
        yield case(f"{name} of breadth", kind, {"spec": wide})
        yield case(f"{name} of labels", kind, {"metadata": {"labels": {f"-{n}": "x" for n in range(40_000)}}})
        yield case(
            f"{name} of owners", kind, {"metadata": {"ownerReferences": [{"uid": str(n)} for n in range(30_000)]}}
        )
        yield case(f"{name} of finalizers", kind, {"metadata": {"finalizers": [f"a/{n}" for n in range(40_000)]}})
        yield case(f"{name} of nulls", kind, {"spec": {f"k{number}": None for number in range(45_000)}})
        yield case(f"{name} of a long key", kind, {"k" * 1_000_000: {f"k{n}": {} for n in range(20_000)}})
        yield case(f"{name} of numbers", kind, {"spec": {"x": list(range(45_000))}})
        yield case(f"{name} of a kind", kind, {"kind": "x" * 1_000_000})
        yield case(f"{name} that is a list", kind, [1] * 500_000)


def directives() -> Iterator[Case]:
    many = [f"a/{number}" for number in range(20_000)]
    owners = [{"uid": str(number)} for number in range(20_000)]
    for name, metadata in {
        "an order": {"$setElementOrder/finalizers": many, "finalizers": many},
        "an order backwards": {"$setElementOrder/finalizers": many[::-1], "finalizers": many},
        "an order of owners": {"$setElementOrder/ownerReferences": owners, "ownerReferences": owners},
        "deletions": {"$deleteFromPrimitiveList/finalizers": many, "finalizers": many},
        "deleted owners": {"ownerReferences": [{**one, "$patch": "delete"} for one in owners]},
        "replacements": {"ownerReferences": [{"$patch": "replace"}] * 40_000},
        "retained keys": {"$retainKeys": many},
        "unknown directives": {f"$x{number}": 1 for number in range(40_000)},
        "orders of nothing": {f"$setElementOrder/k{number}": [] for number in range(20_000)},
    }.items():
        yield case(f"strategic: {name}", STRATEGIC, {"metadata": metadata})


CASES = [*operations(), *merges(), *directives()]
