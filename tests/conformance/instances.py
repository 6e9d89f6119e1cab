"""Objects made at random from a kind's schema: some good, some broken in one place or in several."""

from __future__ import annotations

import re
from random import Random
from typing import Any

from quorate.api.kind import Kind
from quorate.api.schema import Schema, structural_schema

#: Text of many shapes; what fits a pattern or a format is preferred.
_TEXTS = (
    "a", "abc", "node-1", "n1.example.com", "Name", "A b", "", "-", "x" * 64, "x" * 300, "10Gi", "1.5Gi", "100", "-1",
    "10%", "1m", "30s", "1h30m", "2026-11-16T00:00:00Z", "2026-11-16T00:00:00.000000Z", "yesterday",
    "10.0.0.1", "10.0.0.1:7000", "2001:db8::1", "http://example.com", "/dev/sda", "quorate.io/x", "sha256", "{}",
    "True", "Ready", "AllGood", "WWN-1234", "0123456789abcdef",
)  # fmt: skip
_WRONG: tuple[Any, ...] = (None, True, 0, -1, 1.5, "text", [], {}, [1], {"a": 1})


def instance(kind: Kind, random: Random, *, careful: bool) -> dict[str, Any]:
    """A whole object to create. A ``careful`` one keeps to its schema, if not to every rule."""
    body = _Maker(random, careful).object(structural_schema(kind))
    spec = body.get("spec")
    # Some kinds have one object with a fixed name, and a replica is named after its volume.
    volume = spec.get("replicatedVolumeName", "rv") if isinstance(spec, dict) else "rv"
    name = random.choice(("cluster", "broker", f"{volume}-{random.randrange(9)}"))
    return {**body, "apiVersion": kind.api_version, "kind": kind.name, "metadata": {"name": name}}


def part(kind: Kind, name: str, random: Random) -> dict[str, Any]:
    """The spec or status of an object, with a few faults and a few nulls in it: something to patch with."""
    schema = structural_schema(kind)["properties"].get(name, {})
    made = _Maker(random, careful=random.random() < 0.7).object(schema)
    return {key: None if random.random() < 0.1 else value for key, value in made.items() if random.random() < 0.5}


class _Maker:
    def __init__(self, random: Random, careful: bool) -> None:
        self._random = random
        self._careful = careful

    def object(self, schema: Schema) -> dict[str, Any]:
        made: dict[str, Any] = {}
        required = set(schema.get("required", ()))
        for name, part in schema.get("properties", {}).items():
            if (name in required and not self._fault(0.03)) or self._random.random() < 0.5:
                made[name] = self.value(part)
        values = schema.get("additionalProperties")
        if values is not None:
            for _ in range(self._random.randrange(3)):
                made[self._random.choice(("a", "b", "c", "d-e", "f/g"))] = self.value(values)
        if self._fault(0.02):
            made["surprise"] = 1
        return made

    def value(self, schema: Schema) -> Any:
        if self._fault(0.03):
            unsuitable = self._random.choice(_WRONG)
            # The real server takes a list for a date-time. That is its mistake, and not one to copy.
            return "no time" if schema.get("format") == "date-time" and isinstance(unsuitable, list) else unsuitable
        if "enum" in schema:
            return "Nonsense" if self._fault(0.2) else self._random.choice(schema["enum"])
        if schema.get("x-kubernetes-int-or-string"):
            return self._random.choice([self._random.randrange(1, 10**6), "10Gi", "500Mi", "1", self._text(schema)])
        match schema.get("type"):
            case "object":
                return self.object(schema)
            case "array":
                return self._array(schema)
            case "boolean":
                return self._random.random() < 0.5
            case "integer":
                return self._integer(schema)
            case "number":
                return self._random.choice([self._integer(schema), round(self._random.random(), 3)])
            case _:
                return self._text(schema)

    def _array(self, schema: Schema) -> list[Any]:
        most = min(schema.get("maxItems", 3), 40)
        count = self._random.randint(min(schema.get("minItems", 0), most), min(most, 3))
        return [self.value(schema["items"]) for _ in range(most + 1 if self._fault(0.05) else count)]

    def _integer(self, schema: Schema) -> int:
        low, high = int(schema.get("minimum", -10)), int(schema.get("maximum", 10**6))
        if schema.get("exclusiveMinimum"):
            low += 1
        if self._fault(0.15):
            return low - 1
        return self._random.choice([low, high, self._random.randint(low, high)])

    def _text(self, schema: Schema) -> str:
        fitting = [text for text in _TEXTS if _fits(schema, text)]
        return self._random.choice(_TEXTS if not fitting or self._fault(0.1) else fitting)

    def _fault(self, chance: float) -> bool:
        return not self._careful and self._random.random() < chance


def _fits(schema: Schema, text: str) -> bool:
    if schema.get("format") == "date-time" and not text.startswith("2026"):
        return False
    if not schema.get("minLength", 0) <= len(text) <= schema.get("maxLength", 10**9):
        return False
    return re.search(schema.get("pattern", ""), text) is not None
