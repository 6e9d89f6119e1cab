"""What the tests of the embedded engine share."""

from __future__ import annotations

import random
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from quorate.api.core import Namespace
from quorate.api.kind import Kind
from quorate.engine.embedded import EmbeddedStore, HistoryLimits, Subscription
from quorate.engine.embedded.semantics import KindRules
from quorate.errors import ApiError
from tests.support.kinds import Gadget, Widget

WIDGET, GADGET, NAMESPACE = Widget.KIND, Gadget.KIND, Namespace.KIND

Tree = dict[str, Any]


class ManualClock:
    """Time moves when a test says so."""

    def __init__(self) -> None:
        self._now = datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC)

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return self._now.timestamp()

    async def sleep(self, seconds: float) -> None:
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        self._now += timedelta(seconds=seconds)


async def open_store(
    path: Path | None = None,
    *,
    kinds: Iterable[Kind] = (WIDGET, GADGET, NAMESPACE),
    clock: ManualClock | None = None,
    seed: int = 1,
    inline: bool = True,
    limits: HistoryLimits | None = None,
    accept_loss: bool = False,
) -> EmbeddedStore:
    return await EmbeddedStore.open(
        path,
        kinds=kinds,
        clock=clock or ManualClock(),
        random=random.Random(seed),
        inline=inline,
        limits=limits or HistoryLimits(),
        accept_loss=accept_loss,
    )


@cache
def rules_of(kind: Kind) -> KindRules:
    return KindRules(kind)


def widget(name: str = "w", spec: Any = None, *, metadata: Tree | None = None, **parts: Any) -> Tree:
    """A Widget as somebody would send it."""
    return {
        "apiVersion": WIDGET.api_version,
        "kind": "Widget",
        "metadata": {"name": name, **(metadata or {})},
        "spec": {"owner": "me"} if spec is None else spec,
        **parts,
    }


def gadget(name: str = "g", namespace: str | None = None) -> Tree:
    """A Gadget as somebody would send it."""
    metadata = {"name": name} if namespace is None else {"name": name, "namespace": namespace}
    return {"apiVersion": GADGET.api_version, "kind": "Gadget", "metadata": metadata, "spec": {"owner": "me"}}


def faults(error: ApiError) -> set[tuple[str, str]]:
    """Which fields were refused and why, without the causes that belong to none."""
    return {(cause.field, cause.reason.removeprefix("FieldValue")) for cause in error.causes if cause.field != "<nil>"}


async def read(subscription: Subscription, count: int) -> list[tuple[str, str, int]]:
    """The next events: type, name, version."""
    found = []
    for _ in range(count):
        change = await anext(subscription)
        found.append((change.type.value, change.record.name if change.record else "", change.version))
    return found
