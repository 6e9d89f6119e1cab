"""A kind with every feature of a schema that Widget has not. Not registered: it is nobody else's business."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal

from msgspec import Meta, field

from quorate.api.duration import Duration
from quorate.api.kind import Kind, Scope
from quorate.api.meta import Resource
from quorate.api.quantity import Quantity
from quorate.api.secret import Secret
from quorate.api.struct import Rule, Struct, list_map, list_set, rule


class Inner(Struct):
    left: int
    right: str
    size: Quantity | None = None
    when: datetime | None = None
    level: int = 5


class ExoticSpec(Struct):
    anything: Mapping[str, Any] = field(default_factory=dict)
    blob: bytes | None = None
    code: Annotated[str, Meta(pattern=r"^\d+-\w$", min_length=2)] | None = None
    delay: Duration | None = None
    inner: Inner | None = None
    mode: Literal["on", "off"] | None = None
    numbers: Annotated[tuple[int, ...], list_set()] = ()
    pairs: Annotated[tuple[Inner, ...], list_map("left", "right")] = ()
    password: Secret | None = None
    quotas: Annotated[Mapping[str, Quantity], Meta(min_length=1, max_length=2)] | None = None
    ratio: Annotated[float, Meta(ge=0, le=1)] | None = None
    steps: Annotated[tuple[Annotated[int, Meta(multiple_of=5)], ...], Meta(min_length=1)] | None = None
    words: Mapping[str, Annotated[str, rule("self != 'never'", "never say never")]] = field(default_factory=dict)


class Exotic(Resource):
    RULES = (
        Rule("self.metadata.name != 'forbidden'", "that name is forbidden", reason="FieldValueForbidden"),
        Rule("!has(self.spec.mode) || self.spec.mode != 'off' || self.metadata.name != 'x'", "x is never off"),
        Rule("!has(self.status) || !has(self.status.mode) || has(self.spec.mode)", "nothing is found without a mode"),
    )

    spec: ExoticSpec = ExoticSpec()
    status: ExoticSpec = ExoticSpec()


EXOTIC = Kind("test.quorate.io", "v1", "Exotic", "exotics", Scope.CLUSTER, Exotic)
Exotic.KIND = EXOTIC
