"""The maintenance broker's messages as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tests.attacks.harness import JSON, Case

HEADERS = {"Content-Type": JSON}


def bodies() -> Iterator[tuple[str, Callable[[], str]]]:
    yield "a repeated field", lambda: "{" + '"User":"a",' * 200_000 + '"User":"a"}'
    yield "unknown fields", lambda: "{" + ",".join(f'"k{n}":1' for n in range(200_000)) + "}"
    yield "a long unknown field", lambda: '{"' + "k" * 2_000_000 + '":1}'
    yield "a long user", lambda: '{"User":"' + "x" * 2_000_000 + '"}'
    yield "depth", lambda: '{"Actions":' + "[" * 100_000 + "]" * 100_000 + "}"
    yield "an array", lambda: "[" + "1," * 700_000 + "1]"
    yield "actions that are none", lambda: '{"User":"a","Actions":[' + "1," * 500_000 + "1]}"
    yield "empty actions", lambda: '{"User":"a","Actions":[' + "{}," * 50_000 + "{}]}"
    yield "a number", lambda: "1" * 2_000_000
    yield "half a pair", lambda: '"' + r"\ud800" * 300_000 + '"'
    yield "backslashes", lambda: '"' + "\\" * 2_000_000
    yield "spaces", lambda: " " * 2_000_000


CASES = [
    Case(f"broker: {name} to {path}", "POST", f"/cms/api/{path}", lambda body=body: body().encode(), HEADERS)  # type: ignore[misc]
    for path in ("permissionrequest", "checkrequest", "notificationrequest")
    for name, body in bodies()
]
