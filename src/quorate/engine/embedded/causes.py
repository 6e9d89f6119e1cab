"""What is wrong with an object, as Kubernetes reports it: one Cause per field, gathered into one Invalid.

The reasons and the shape of the messages are part of the wire contract (``kubectl`` and clients read them); the
conformance suite compares them with a real API server.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from quorate.api.kind import Kind
from quorate.errors import Cause, Invalid

#: The field of a cause that belongs to no field.
NO_FIELD = "<nil>"

#: The most faults that are told of, and characters of a value in one.
MOST = 100
_LONGEST = 1024

#: An object with one of these is too broken for rules between its fields to be tried.
_BLOCKING = frozenset(
    {"FieldValueNotSupported", "FieldValueRequired", "FieldValueTooLong", "FieldValueTooMany", "FieldValueTypeInvalid"}
)


def invalid(field: str, value: Any, detail: str) -> Cause:
    """A value that breaks a rule."""
    return Cause("FieldValueInvalid", f"Invalid value: {shown(value)}: {detail}", field)


def type_invalid(field: str, found: str, detail: str) -> Cause:
    """A value of the wrong type; ``found`` is the name of the type it has."""
    return Cause("FieldValueTypeInvalid", f"Invalid value: {shown(found)}: {detail}", field)


def required(field: str, detail: str = "") -> Cause:
    """A value that must be there."""
    return Cause("FieldValueRequired", f"Required value: {detail}" if detail else "Required value", field)


def forbidden(field: str, detail: str) -> Cause:
    """A value that is fine elsewhere and not allowed here."""
    return Cause("FieldValueForbidden", f"Forbidden: {detail}", field)


def duplicate(field: str, value: Any) -> Cause:
    """A value that may appear once and does so again."""
    return Cause("FieldValueDuplicate", f"Duplicate value: {shown(value)}", field)


def not_supported(field: str, value: Any, supported: Iterable[Any]) -> Cause:
    """A value outside an enumeration."""
    listed = ", ".join(shown(one if isinstance(one, str) else json.dumps(one)) for one in supported)
    return Cause("FieldValueNotSupported", f"Unsupported value: {shown(value)}: supported values: {listed}", field)


def too_long(field: str, limit: int) -> Cause:
    """A text above its limit; it is not repeated."""
    return Cause("FieldValueTooLong", f"Too long: may not be more than {limit} byte{_s(limit)}", field)


def too_many(field: str, count: int, limit: int) -> Cause:
    """A list or map above its limit."""
    return Cause("FieldValueTooMany", f"Too many: {count}: must have at most {limit} item{_s(limit)}", field)


def blocks_rules(causes: Iterable[Cause]) -> bool:
    """Whether rules between fields cannot be tried on an object with these faults."""
    return any(cause.reason in _BLOCKING for cause in causes)


#: Says that an object has more rules than those reported on.
RULES_NOT_CHECKED = Cause(
    "FieldValueInvalid",
    "Invalid value: null: some validation rules were not checked because the object was invalid;"
    " correct the existing errors to complete validation",
    NO_FIELD,
)


def refusal(kind: Kind, name: str, causes: Sequence[Cause], *, resource: bool = False) -> Invalid:
    """The error for an object with these faults; ``resource`` names it by plural instead of kind, as few do."""
    what = kind.plural if resource else kind.name
    if len(causes) > MOST:
        more = Cause("FieldValueInvalid", f"there are {len(causes) - MOST} faults more, or more yet", NO_FIELD)
        causes = (*causes[:MOST], more)
    seen = dict.fromkeys(f"{cause.field}: {cause.message}" for cause in causes)
    problems = next(iter(seen)) if len(seen) == 1 else f"[{', '.join(seen)}]"
    qualified = f"{what}.{kind.group}" if kind.group else what
    return Invalid(
        f'{qualified} "{name}" is invalid: {problems}', group=kind.group, kind=what, name=name, causes=tuple(causes)
    )


def shown(value: Any) -> str:
    """A value as error messages print it; not more of it than anybody reads."""
    if isinstance(value, str):
        text = json.dumps(value[:_LONGEST], ensure_ascii=False)
        return text if len(value) <= _LONGEST else f'{text[:-1]}…"'
    if isinstance(value, list | dict) and len(value) > _LONGEST:
        return f'"{len(value)} items"'
    text = identity(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def identity(value: Any) -> str:
    """The whole value as text: what tells it from others."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _s(count: int) -> str:
    return "" if count == 1 else "s"
