"""Two kinds made for tests: they use every feature of a declaration, so that engines can be compared on all of them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated

from msgspec import Meta, field

from quorate.api.kind import Column, Scope, kind
from quorate.api.meta import Condition, Resource
from quorate.api.quantity import Quantity
from quorate.api.struct import Rule, Struct, immutable, list_map, list_set, rule

GROUP = "test.quorate.io"


class Colour(StrEnum):
    RED = "Red"
    GREEN = "Green"


class Part(Struct):
    """One part of a widget."""

    name: Annotated[str, Meta(min_length=1, max_length=63)]
    count: Annotated[int, Meta(ge=0, le=100)] = 1


class WidgetSpec(Struct):
    """What somebody wants of a widget."""

    RULES = (
        Rule("!has(self.low) || !has(self.high) || self.low <= self.high", "low must not be above high"),
        Rule(
            "!has(oldSelf.nodeName) || (has(self.nodeName) && self.nodeName == oldSelf.nodeName)",
            "nodeName is immutable once set",
            field_path=".nodeName",
        ),
    )

    owner: Annotated[str, Meta(min_length=1, max_length=20, pattern="^[a-z]+$"), immutable("owner is immutable")]
    size: Quantity | None = None
    colour: Colour = Colour.RED
    node_name: str | None = None
    low: Annotated[int, Meta(ge=0, le=1000)] | None = None
    high: Annotated[int, Meta(ge=0, le=1000)] | None = None
    ratio: Annotated[float, Meta(gt=0, lt=1)] | None = None
    enabled: bool | None = None
    parts: Annotated[tuple[Part, ...], Meta(max_length=5), list_map("name")] = ()
    tags: Annotated[tuple[str, ...], Meta(max_length=5), list_set()] = ()
    weights: Mapping[str, Annotated[int, Meta(ge=0)]] = field(default_factory=dict)
    motto: Annotated[str, rule("!self.startsWith('TODO')", "a motto must be written")] | None = None


class WidgetStatus(Struct):
    """What is known of a widget."""

    observed_generation: int | None = None
    phase: str | None = None
    count: Annotated[int, Meta(ge=0)] | None = None
    conditions: Annotated[tuple[Condition, ...], list_map("type")] = ()


@kind(
    group=GROUP,
    version="v1",
    plural="widgets",
    short_names=("wg",),
    categories=("test",),
    columns=(
        Column("Owner", ".spec.owner"),
        Column("Ready", '.status.conditions[?(@.type=="Ready")].status'),
        Column("Node", ".spec.nodeName", priority=1),
    ),
    selectable_fields=(".spec.nodeName",),
)
class Widget(Resource):
    """A cluster-scoped kind for tests."""

    spec: WidgetSpec
    status: WidgetStatus = WidgetStatus()


@kind(group=GROUP, version="v1", plural="gadgets", scope=Scope.NAMESPACED)
class Gadget(Resource):
    """A namespaced kind for tests."""

    spec: WidgetSpec
    status: WidgetStatus = WidgetStatus()
