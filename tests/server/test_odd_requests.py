"""Whatever is sent: the answer is never an error of the server, and what is refused changes nothing."""

from __future__ import annotations

from itertools import product

import pytest

from quorate.engine.embedded import EmbeddedStore
from tests.server.conftest import WIDGETS, Client, widget

NODES = "/api/v1/nodes"
NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}}

#: In place of a value: of the wrong type, too large, too deep, or no text that UTF-8 can have.
ODD = [
    *("null", "true", "5", "1e300", "-1e999", "9" * 30, "9" * 5000, '"x"', r'"\ud800"', r'"\u0000"'),
    *("[]", "[[]]", '[{"a":5}]', "{}", '{"a":{}}', '{"":null}', r'{"\ud800":1}'),
    *("[" * depth + "]" * depth for depth in (300, 900)),
]
#: Bodies; the @ is the odd value.
OBJECTS = [
    *("@", '{"kind":@}', '{"metadata":@}', '{"metadata":{"name":@}}', '{"metadata":{"name":"a","labels":@}}'),
    *('{"metadata":{"name":"a","finalizers":@}}', '{"metadata":{"name":"a","ownerReferences":@}}'),
    *('{"metadata":{"name":"a","resourceVersion":@}}', '{"metadata":{"name":"a"},"spec":@}'),
    *('{"metadata":{"name":"a"},"spec":{"owner":@}}', '{"metadata":{"name":"a"},"spec":{"owner":"me","other":@}}'),
    '{"metadata":{"name":"a"},"status":{"conditions":@}}',
]
DIRECTIVES = [
    *('{"$patch":@}', '{"spec":{"$retainKeys":@}}', '{"metadata":{"$setElementOrder/finalizers":@}}'),
    *('{"metadata":{"$deleteFromPrimitiveList/finalizers":@}}', '{"status":{"conditions":[@]}}'),
]
OPERATIONS = [
    *("@", "[@]", '[{"op":@,"path":"/spec"}]', '[{"op":"add","path":@,"value":1}]', '[{"op":"add","path":"/spec"}]'),
    *('[{"op":"add","path":"/spec/x","value":@}]', '[{"op":"replace","path":"/spec","value":@}]'),
    *('[{"op":"test","path":"/spec","value":@}]', '[{"op":"copy","from":@,"path":"/spec/x"}]'),
    *('[{"op":"replace","path":"","value":@}]', '[{"op":"move","from":@,"path":"/spec/x"}]'),
    '[{"op":"add","path":"/spec/x","value":@},{"op":"copy","from":"/spec/x","path":"/spec/y"}]',
]
#: What a whole object begins with: a node, a widget.
HEADS = ('{"apiVersion":"v1","kind":"Node",', '{"apiVersion":"test.quorate.io/v1","kind":"Widget",')
OPTIONS = ["@", '{"kind":@}', '{"preconditions":@}', '{"dryRun":@}', '{"propagationPolicy":@}']
OPTIONS += ['{"preconditions":{"uid":@}}', '{"preconditions":{"resourceVersion":@}}']


@pytest.mark.parametrize(
    ("method", "path", "kind", "bodies"),
    [
        ("POST", WIDGETS, "json", OBJECTS),
        ("POST", WIDGETS, "yaml", OBJECTS),
        ("POST", NODES, "json", OBJECTS),
        ("PUT", f"{WIDGETS}/a", "json", OBJECTS),
        ("PUT", f"{NODES}/a", "json", OBJECTS),
        ("PUT", f"{WIDGETS}/a/status", "json", OBJECTS),
        ("PATCH", f"{WIDGETS}/a", "merge-patch+json", OBJECTS),
        ("PATCH", f"{NODES}/a/status", "merge-patch+json", OBJECTS),
        ("PATCH", f"{NODES}/a", "strategic-merge-patch+json", OBJECTS + DIRECTIVES),
        ("PATCH", f"{WIDGETS}/a", "json-patch+json", OPERATIONS),
        ("DELETE", f"{WIDGETS}/a", "json", OPTIONS),
        ("DELETE", WIDGETS, "json", OPTIONS),
    ],
)
async def test_an_odd_body_is_the_clients_error(
    http: Client, store: EmbeddedStore, method: str, path: str, kind: str, bodies: list[str]
) -> None:
    assert (await http("POST", NODES, NODE)).code == 201
    for body, odd in product(bodies, ODD):
        await http("POST", WIDGETS, widget("a"))  # a DELETE before this one may have been right
        before = store.resource_version
        sent = body.replace("@", odd)
        if method in ("POST", "PUT"):
            sent = sent.replace('{"metadata"', HEADS["widgets" in path] + '"metadata"', 1)
        answer = await http(method, path, sent.encode(), kind=f"application/{kind}")
        about = f"{body} with {odd[:40]}: {answer.raw[:500]!r}"
        # The real server calls a version that is none, or in a new object, an error of its own; and so do we.
        assert answer.code < 500 or '"resourceVersion":@' in body, about
        if answer.code >= 400:
            assert answer.json["kind"] == "Status", about
            assert store.resource_version == before, about


@pytest.mark.parametrize("name", ["timeoutSeconds", "limit", "resourceVersion", "continue", "labelSelector", "watch"])
@pytest.mark.parametrize("value", ["9" * 400, "9" * 5000, "-1", "1e999", "\0", "%", "٣"])
async def test_an_odd_query_is_the_clients_error(http: Client, name: str, value: str) -> None:
    async with http.session.get(WIDGETS, params={"timeoutSeconds": "1", name: value}) as answer:
        # 504 is how Kubernetes says that a version is not reached yet.
        assert answer.status < 500 or (name, answer.status) == ("resourceVersion", 504), await answer.text()
