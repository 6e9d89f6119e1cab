"""CEL rules (``x-kubernetes-validations``) on the parts of an object that changed.

A rule that mentions ``oldSelf`` speaks of a change: it is tried only where there is an old value to compare with.
A rule on a part that did not change is not tried, as Kubernetes forgives what an update did not touch. (For rules
of change Kubernetes makes no such exception; a rule that forbids standing still would there refuse every write to
the object, status included, so no kind has one.) Nor is a rule tried again that looks at fields of which none
changed: what it said of them when they were written still holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from quorate.api.cel import Path, Program, program
from quorate.engine.embedded import causes
from quorate.engine.embedded.schema.trees import ABSENT, old_items, same
from quorate.errors import Cause, InvalidRule

if TYPE_CHECKING:
    from quorate.engine.embedded.schema.node import Node


@dataclass(frozen=True, slots=True)
class CompiledRule:
    """One rule, ready to be tried."""

    program: Program
    message: str
    #: Tells the message where it names values.
    wording: Program | None
    reason: str
    #: Where a violation is reported, relative to the value that has the rule.
    field_path: str

    @classmethod
    def compile(cls, rule: dict[str, str]) -> CompiledRule:
        """From the schema's form."""
        return cls(
            program=program(rule["rule"]),
            message=rule.get("message", f"failed rule: {rule['rule']}"),
            wording=program(rule["messageExpression"]) if "messageExpression" in rule else None,
            reason=rule.get("reason", "FieldValueInvalid"),
            field_path=rule.get("fieldPath", ""),
        )

    def concerns(self, value: Any, old: Any) -> bool:
        """Whether anything that the rule looks at has changed."""
        fields = self.program.fields
        if fields is None or type(value) is not dict or type(old) is not dict:
            return True
        return any(not _is_same_at(value, old, path) for path in self.program.paths)

    def violation(self, value: Any, old: Any, path: str, *, moment: bool = False) -> Cause | None:
        """What is wrong with the value, if anything; ``old`` is None where there is no old value.

        Moments are compared as such, as Kubernetes does: one moment can be written in many ways.
        """
        try:
            if self.program.holds(*(map(_moment, (value, old)) if moment else (value, old))):
                return None
        except InvalidRule as error:
            detail = f"{error} evaluating rule: {self.message}"
            return causes.invalid(path or causes.NO_FIELD, _type_name(value), detail)
        message = (self.wording.text(value, old) if self.wording is not None else "") or self.message
        return self._cause(value, (path + self.field_path).lstrip("."), message)

    def _cause(self, value: Any, path: str, message: str) -> Cause:
        field = path or causes.NO_FIELD
        match self.reason:
            case "FieldValueForbidden":
                return causes.forbidden(field, message)
            case "FieldValueRequired":
                return causes.required(field, message)
            case "FieldValueDuplicate":
                return Cause(self.reason, f"Duplicate value: {causes.shown(value)}: {message}", field)
            case _ if isinstance(value, dict | list):
                return Cause(self.reason, f"Invalid value: {message}", field)
            case _:
                return causes.invalid(field, value, message)


def _is_same_at(value: dict[str, Any], old: dict[str, Any], path: Path) -> bool:
    for name in path[:-1]:
        inner, before = value.get(name, ABSENT), old.get(name, ABSENT)
        if type(inner) is not dict or type(before) is not dict:
            return same(inner, before)
        value, old = inner, before
    return same(value.get(path[-1], ABSENT), old.get(path[-1], ABSENT))


def _moment(text: Any) -> Any:
    try:
        return datetime.fromisoformat(text).astimezone(UTC).isoformat()
    except (TypeError, ValueError):
        return text


def violations(value: Any, old: Any, node: Node, path: str = "") -> Iterator[Cause]:
    """The rules that a value breaks, its own and those of everything inside."""
    if not node.has_rules or value is None or (old is not ABSENT and same(value, old)):
        return
    for rule in node.rules:
        if not rule.concerns(value, old):
            continue
        violation = rule.violation(value, None if old is ABSENT else old, path, moment=node.format == "date-time")
        if violation is not None:
            yield violation
    if type(value) is dict:
        before = old if type(old) is dict else {}
        for name in node.ruled:
            if name in value:
                at = f"{path}.{name}" if path else name
                yield from violations(value[name], before.get(name, ABSENT), node.properties[name], at)
        if node.additional is not None and node.additional.has_rules:
            for name, part in value.items():
                yield from violations(part, before.get(name, ABSENT), node.additional, f"{path}[{name}]")
    elif type(value) is list and node.items is not None and node.items.has_rules:
        matched = old_items(old, node)
        for index, item in enumerate(value):
            yield from violations(item, matched(item), node.items, f"{path}[{index}]")


def _type_name(value: Any) -> str:
    return {dict: "object", list: "array", str: "string", bool: "boolean", int: "integer"}.get(type(value), "number")
