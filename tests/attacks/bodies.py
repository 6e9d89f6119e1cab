"""Bodies that are dear to read: keys given twice, depth, width, numbers, YAML and protobuf."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from tests.attacks.harness import JSON, YAML, Case, Cost

NODES = "/api/v1/nodes?dryRun=All"
VOLUMES = "/apis/storage.deckhouse.io/v1alpha1/replicatedvolumes?dryRun=All"
NAMESPACES = "/api/v1/namespaces?dryRun=All"
NODE = '{"apiVersion":"v1","kind":"Node","metadata":{"name":"a"%s}%s}'
VOLUME = (
    '{"apiVersion":"storage.deckhouse.io/v1alpha1","kind":"ReplicatedVolume","metadata":{"name":"a"%s},'
    '"spec":{"size":"1Gi","replicatedStorageClassName":"c"%s}%s}'
)
HEADERS = {"Content-Type": JSON}
#: The largest body that is taken.
LARGEST = 3 * 1024 * 1024
PROTOBUF = {"Content-Type": "application/vnd.kubernetes.protobuf"}


def text(template: str, *parts: str) -> bytes:
    return (template % parts).encode()


def repeated(count: int, *, distinct: bool) -> str:
    """Members of an object that come twice: one many times, or many twice."""
    return "".join(f',"k{number if distinct else 0}":1,"k{number if distinct else 0}":2' for number in range(count))


def keys_given_twice() -> Iterator[Case]:
    for count in (3_000, 30_000, 90_000):
        for distinct in (False, True):
            inside = repeated(count, distinct=distinct)
            how = f"{count} {'keys twice' if distinct else 'times one key'}"
            nested = ',"spec":{"x":1' + inside + "}"
            labels = ',"labels":{"x":"1"' + inside.replace(":1", ':"1"').replace(":2", ':"2"') + "}"
            in_list = ',"spec":{"taints":[{"key":"x"' + inside + "}]}"
            deep = ',"spec":' + '{"a":' * 60 + '{"x":1' + inside + "}" + "}" * 60
            for where, template, parts in (
                ("the object", NODE, ("", inside)),
                ("metadata", NODE, (inside, "")),
                ("labels", NODE, (labels, "")),
                ("the spec", NODE, ("", nested)),
                ("a list", NODE, ("", in_list)),
                ("the depth", NODE, ("", deep)),
                ("a volume's spec", VOLUME, ("", inside, "")),
            ):
                for validation in ("Strict",) if where != "the object" else ("Strict", "Warn", "Ignore"):
                    path = f"{VOLUMES if template is VOLUME else NODES}&fieldValidation={validation}"
                    yield Case(
                        f"json: {how} in {where}, {validation}",
                        "POST",
                        path,
                        partial(text, template, *parts),
                        HEADERS,
                    )


def odd_json() -> Iterator[Case]:
    bodies: dict[str, Callable[[], str]] = {
        "an array of numbers": lambda: "[" + "1," * 1_000_000 + "1]",
        "an array of arrays": lambda: "[" + "[]," * 700_000 + "[]]",
        "an array of objects": lambda: "[" + "{}," * 700_000 + "{}]",
        "an array of small objects": lambda: "[" + '{"a":1},' * 300_000 + "{}]",
        "deep arrays": lambda: "[" * 100_000 + "]" * 100_000,
        "deep objects": lambda: '{"a":' * 100_000 + "1" + "}" * 100_000,
        "depth below the parser's limit": lambda: '{"a":' * 900 + "1" + "}" * 900,
        "a long number": lambda: "1" * 2_000_000,
        "a long fraction": lambda: "0." + "1" * 2_000_000,
        "a long exponent": lambda: "1e" + "9" * 2_000_000,
        "many long numbers": lambda: "[" + ",".join(["1" * 4000] * 500) + "]",
        "many floats": lambda: "[" + "1e300," * 400_000 + "1]",
        "a long text": lambda: '"' + "x" * 2_900_000 + '"',
        "many escapes": lambda: '"' + r"\u0041" * 450_000 + '"',
        "half surrogates": lambda: '["' + r"\ud800" * 400_000 + '"]',
        "spaces": lambda: " " * 2_900_000,
        "nothing but an open bracket": lambda: "{" * 2_900_000,
        "one long key": lambda: '{"' + "k" * 2_900_000 + '":1}',
        "many long keys": lambda: "{" + ",".join(f'"{"k" * 2000}{number}":1' for number in range(1400)) + "}",
        "keys that look alike": lambda: "{" + ",".join(f'"k{number}":{{}}' for number in range(200_000)) + "}",
    }
    for name, body in bodies.items():
        for path in (NODES, VOLUMES):
            kind = "node" if path is NODES else "volume"
            yield Case(f"json: {name} for a {kind}", "POST", path, lambda body=body: body().encode(), HEADERS)  # type: ignore[misc]
        if name != "nothing but an open bracket":
            yield Case(
                f"json: {name} in a node's spec",
                "POST",
                NODES,
                lambda body=body: text(NODE, "", f',"spec":{{"x":{body()}}}'),  # type: ignore[misc]
                HEADERS,
            )
    yield Case("json: a body that is too large", "POST", NODES, lambda: b"[" + b"1," * LARGEST + b"1]", HEADERS)


def yaml() -> Iterator[Case]:
    head = "apiVersion: v1\nkind: Node\nmetadata:\n  name: a\n"
    bodies = {
        "a number in base 60": head + "spec: {x: " + "1:" * 100_000 + "1}\n",
        "many numbers in base 60": head + "spec:\n" + "".join(f"  k{n}: {'59:' * 500}1\n" for n in range(60)),
        "a fraction in base 60": head + "spec: {x: " + "1:" * 100_000 + "1.5}\n",
        "a long number": head + "spec: {x: " + "1" * 200_000 + "}\n",
        "a long octal number": head + "spec: {x: 0" + "7" * 200_000 + "}\n",
        "a long hexadecimal number": head + "spec: {x: 0x" + "f" * 200_000 + "}\n",
        "a long binary number": head + "spec: {x: 0b" + "1" * 200_000 + "}\n",
        "underscores": head + "spec: {x: 1" + "_" * 200_000 + "}\n",
        "a long fraction": head + "spec: {x: 1." + "1" * 200_000 + "}\n",
        "deep flow": head + "spec: " + "[" * 100_000,
        "deep flow that closes": head + "spec: " + "[" * 400 + "]" * 400,
        "deep maps": head + "spec: " + "{a: " * 50_000,
        "deep blocks": head + "spec:\n" + "".join(" " * n + "a:\n" for n in range(1, 600)),
        "an alias bomb": "a: &a [x]\n" + "".join(f"b{n}: [*a, *a]\n" for n in range(10_000)),
        "many anchors": head + "spec:\n" + "".join(f"  k{n}: &a{n} x\n" for n in range(8_000)),
        "a key many times": head + "spec:\n" + "  k: 1\n" * 25_000,
        "keys twice": head + "spec:\n" + "".join(f"  k{n}: 1\n  k{n}: 1\n" for n in range(8_000)),
        "keys that are lists": head + "spec:\n" + "  ? [a]\n  : b\n" * 10_000,
        "many documents": "---\n" * 60_000,
        "many comments": "#\n" * 120_000 + head,
        "tags": head + "spec: {x: " + "!!str " * 30_000 + "y}\n",
        "a tag of Python": "!!python/object/apply:os.system ['true']\n",
        "a long plain text": head + "spec: {x: " + "x " * 100_000 + "}\n",
        "a long key": head + "spec: {" + "k" * 200_000 + ": 1}\n",
        "times": head + "spec:\n" + "".join(f"  k{n}: 2026-01-01\n" for n in range(8_000)),
        "too much": "x: y\n" * 300_000,
    }
    for name, body in bodies.items():
        yield Case(
            f"yaml: {name}",
            "POST",
            NODES,
            lambda body=body: body.encode(),  # type: ignore[misc]
            {"Content-Type": YAML},
            cost=Cost(cpu=6.0),
        )


def varint(number: int) -> bytes:
    found = b""
    while number > 127:
        found, number = found + bytes([number & 127 | 128]), number >> 7
    return found + bytes([number])


def field(number: int, data: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(data)) + data


def protobuf() -> Iterator[Case]:
    def enveloped(raw: bytes) -> bytes:
        return b"k8s\0" + field(1, field(1, b"v1") + field(2, b"Namespace")) + field(2, raw)

    metadata = {
        "finalizers": field(14, b"") * 900_000,
        "labels": field(11, field(1, b"k") + field(2, b"v")) * 200_000,
        "owners": field(13, field(3, b"x")) * 300_000,
        "names": field(1, b"x") * 600_000,
        "unknown fields": field(99, b"") * 600_000,
        "unknown numbers": (varint(99 << 3) + b"\1") * 700_000,
        "numbers that do not end": b"\xff" * 2_000_000,
        "a length beyond the end": varint(14 << 3 | 2) + varint(2**62),
        "a wire type that is none": varint(14 << 3 | 7) * 100,
    }
    for name, content in metadata.items():
        yield Case(
            f"protobuf: {name}",
            "POST",
            NAMESPACES,
            lambda content=content: enveloped(field(1, content)),  # type: ignore[misc]
            PROTOBUF,
            cost=Cost(cpu=3.0),
        )
    yield Case("protobuf: no envelope", "POST", NAMESPACES, lambda: b"\0" * LARGEST, PROTOBUF)
    yield Case("protobuf: an envelope of envelopes", "POST", NAMESPACES, lambda: enveloped(enveloped(b"")), PROTOBUF)
    yield Case("protobuf: many envelopes", "POST", NAMESPACES, lambda: b"k8s\0" + field(2, b"") * 900_000, PROTOBUF)


CASES = [*keys_given_twice(), *odd_json(), *yaml(), *protobuf()]
