"""Answers of 200 that are not the API server's, such as the login page of a proxy in between."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

import pytest

from quorate.api.meta import ObjectMeta
from quorate.engine.kubernetes import Connection, KubernetesStore
from quorate.engine.kubernetes.credentials import FixedCredentials
from quorate.errors import InternalError, OutcomeUnknown
from tests.engine.kubernetes.manual_clock import ManualClock
from tests.engine.kubernetes.scripted import answer, scripted
from tests.support.kinds import Widget, WidgetSpec

WIDGET = Widget(metadata=ObjectMeta(name="w"), spec=WidgetSpec(owner="me"))

#: No JSON, no object, and objects that are not even nearly what was asked for.
FOREIGN = [b"", b"<html>Please log in</html>", b"[]", b'{"metadata": "no", "kind": 3}']

READS: list[Callable[[KubernetesStore], Awaitable[Any]]] = [
    lambda store: store.get(Widget, "w"),
    lambda store: store.list(Widget),
]
WRITES: list[Callable[[KubernetesStore], Awaitable[Any]]] = [
    lambda store: store.create(WIDGET),
    lambda store: store.patch(Widget, "w", patch={"spec": {}}),
    lambda store: store.patch_status(Widget, "w", patch={}),
    lambda store: store.delete(Widget, "w"),
]


async def ask(request: Callable[[KubernetesStore], Awaitable[Any]], body: bytes) -> None:
    clock = ManualClock()
    async with scripted(answer(200, body)) as server:
        connection = Connection(server=server.url, credentials=FixedCredentials(clock=clock), origin="test")
        store = KubernetesStore(connection, clock=clock, random=Random(1))
        try:
            await request(store)
        finally:
            await store.close()


@pytest.mark.parametrize("body", FOREIGN)
@pytest.mark.parametrize("request_", READS)
async def test_to_a_read_they_are_an_error_of_the_server(
    request_: Callable[[KubernetesStore], Awaitable[Any]], body: bytes
) -> None:
    with pytest.raises(InternalError, match="proxy"):
        await ask(request_, body)


@pytest.mark.parametrize("body", FOREIGN)
@pytest.mark.parametrize("request_", WRITES)
async def test_to_a_write_they_leave_its_outcome_unknown(
    request_: Callable[[KubernetesStore], Awaitable[Any]], body: bytes
) -> None:
    with pytest.raises(OutcomeUnknown, match="proxy"):
        await ask(request_, body)


@pytest.mark.parametrize("body", [b"{}", b'{"metadata": {}}', b'{"error": "log in first"}'])
async def test_an_object_that_is_no_list_is_not_taken_for_an_empty_one(body: bytes) -> None:
    with pytest.raises(InternalError, match="proxy"):
        await ask(READS[1], body)
