"""Lists, watches, headers and paths that are dear to understand."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

from tests.attacks.harness import JSON, Case, Cost

EVENTS = "/api/v1/namespaces/default/events"
VOLUMES = "/apis/storage.deckhouse.io/v1alpha1/replicatedvolumes"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
METADATA = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
#: An answer with all events.
LONG = Cost(answer=8 * 1024 * 1024)
#: The longest line that is read.
LINE = 7_500


def selectors() -> Iterator[Case]:
    for name, text in {
        "commas": "a," * 3000 + "a",
        "nothing but commas": "," * 6000,
        "open parentheses": "(" * 6000,
        "closed parentheses": ")" * 6000,
        "pairs of parentheses": "()" * 3000,
        "commas after a parenthesis": "a in (" + "b," * 3000,
        "values": "n in (" + ",".join(f"{n}" for n in range(1400)) + ")",
        "values that are not there": "n notin (" + ",".join(f"{n}" for n in range(1400)) + ")",
        "spaces": "a" + " " * 2000 + "in" + " " * 2000 + "(b)",
        "a long key": "a" * LINE,
        "a long key with a slash": "a" * 3500 + "/" + "b" * 3500,
        "dashes": "a" + "-" * 6000,
        "dots": "a." * 3500,
        "negations": "!" * 6000 + "a",
        "clauses": ",".join(f"a{n}=b" for n in range(900)),
        "comparisons": ",".join(f"n>{n}" for n in range(60)),
        "a long number": "n>" + "9" * 6000,
        "signs": "a=" + "=" * 6000,
    }.items():
        # What does not fit into a line is refused before it is read.
        encoded = quote(text, safe="()!=<>,./")[:LINE]
        yield Case(f"list: a label selector of {name}", "GET", f"{EVENTS}?labelSelector={encoded}", cost=LONG)
    for name, text in {
        "clauses": ",".join(["metadata.name!=e1"] * 350),
        "a few clauses": ",".join(["involvedObject.name=n1"] * 60),
        "one field": "involvedObject.name=n1",
        "a field of none": "involvedObject.name=other",
        "unknown fields": ",".join(f"x{n}=1" for n in range(900)),
        "signs": "a" + "=" * 6000,
        "exclamation marks": "a" + "!" * 6000,
        "commas": "," * 6000,
        "a long value": "metadata.name=" + "x" * 6000,
    }.items():
        yield Case(
            f"list: a field selector of {name}",
            "GET",
            f"{EVENTS}?fieldSelector={quote(text, safe='()!=,./')[:LINE]}",
            cost=LONG,
        )


def lists() -> Iterator[Case]:
    for name, accept in (("objects", JSON), ("a table", TABLE), ("metadata", METADATA)):
        for limit in ("", "?limit=1", "?limit=1000", "?limit=-5", "?limit=" + "9" * 300):
            yield Case(f"list: {name}{limit[:20]}", "GET", EVENTS + limit, None, {"Accept": accept}, cost=LONG)
    yield Case(
        "list: a table with all of it", "GET", f"{EVENTS}?includeObject=Object", None, {"Accept": TABLE}, cost=LONG
    )
    yield Case("list: deleted in a dry run", "DELETE", f"{EVENTS}?dryRun=All", cost=LONG)
    for name, query in {
        "a token": "continue=" + "A" * 6000,
        "a token that is one": "continue=WzEsWyIiLCIiXV0",
        "a token of the future": "continue=WzkyMjMzNzIwMzY4NTQ3NzU4MDcsWyIiLCIiXV0",
        "a version": "resourceVersion=" + "9" * 6000,
        "a version of the future": "resourceVersion=99999999999",
        "a match": "resourceVersionMatch=" + "x" * 6000,
        "a time": "timeoutSeconds=" + "9" * 6000,
        "many parameters": "&".join(f"a{n}=b" for n in range(1200)),
        "one parameter many times": "&".join(["limit=1"] * 900),
        "percent signs": "%" * 6000,
        "plus signs": "+" * 6000,
        "a table of": "includeObject=" + "x" * 6000,
    }.items():
        yield Case(f"list: {name} in the query", "GET", f"{EVENTS}?{query}", cost=LONG)
    for name, query in {
        "a second": "watch=1&timeoutSeconds=1",
        "a state": "watch=1&timeoutSeconds=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan",
        "a state of none": "watch=1&timeoutSeconds=1&fieldSelector=involvedObject.name%3Dnobody",
        "the past": "watch=1&timeoutSeconds=1&resourceVersion=2",
        "the future": "watch=1&timeoutSeconds=1&resourceVersion=99999999999",
    }.items():
        for kind, accept in (("objects", JSON), ("tables", TABLE)):
            yield Case(f"watch: {name}, {kind}", "GET", f"{EVENTS}?{query}", None, {"Accept": accept}, cost=LONG)


def headers() -> Iterator[Case]:
    for name, given in {
        "clauses to accept": {"Accept": "a/b," * 1800},
        "parameters to accept": {"Accept": "a/b" + ";q=1" * 1800},
        "qualities": {"Accept": ",".join(f"a/b;q=0.{n}" for n in range(700))},
        "a quality": {"Accept": "a/b;q=" + "9" * 7000},
        "signs to accept": {"Accept": "=" * 7000},
        "a media type": {"Content-Type": "x" * 7000},
        "a media type of semicolons": {"Content-Type": ";" * 7000},
        "a token": {"Authorization": "Bearer " + "x" * 7000},
        "a scheme": {"Authorization": " " * 7000},
        "an origin": {"Origin": "http://" + "x" * 7000},
        "somebody else": {"Impersonate-User": "x" * 7000},
        "a long header": {"X": "x" * 100_000},
        "many headers": {f"X-{n}": "x" for n in range(120)},
        "too many headers": {f"X-{n}": "x" for n in range(5_000)},
        "a body in gzip that is none": {"Content-Encoding": "gzip"},
        "an expectation": {"Expect": "x" * 100},
        "a range": {"Range": "bytes=" + "0-," * 2000},
        "a cookie": {"Cookie": "a=b;" * 1500},
        "an upgrade": {"Upgrade": "websocket", "Connection": "Upgrade"},
    }.items():
        yield Case(f"headers: {name}", "GET", VOLUMES, None, given)
    for name, path in {
        "slashes": "/" * 7000,
        "parts": "/api/v1" + "/x" * 3000,
        "dots": "/api/v1" + "/.." * 2000,
        "an encoded path": "/api/v1/" + "%2f" * 2000,
        "a name": f"{VOLUMES}/{'x' * 7000}",
        "a namespace": f"/api/v1/namespaces/{'x' * 7000}/events",
        "a subresource": f"{VOLUMES}/a/{'x' * 7000}",
        "a group": f"/apis/{'x' * 7000}",
        "a document": f"/openapi/v3/{'x' * 7000}",
        "a path that is too long": "/" + "x" * 100_000,
        "zeros": f"{VOLUMES}/%00%00",
        "bytes that are no text": f"{VOLUMES}/%ff%fe",
    }.items():
        yield Case(f"path: {name}", "GET", path)
    yield Case("path: all openapi", "GET", "/openapi/v3/apis/storage.deckhouse.io/v1alpha1", cost=LONG)
    yield Case("path: metrics", "GET", "/metrics", cost=LONG)
    for method in ("TRACE", "OPTIONS", "CONNECT", "PURGE", "BREW", "x" * 5000):
        yield Case(f"method: {method[:8]}", method, VOLUMES, codes=(400, 404, 405, 501))


CASES = [*selectors(), *lists(), *headers()]
