"""The rules between fields (CEL), evaluated in this process as a Kubernetes API server does.

The embedded engine walks a schema and asks :func:`evaluate` about each ``x-kubernetes-validations`` entry it meets.
Rules stay within what both sides understand: the CEL language itself, and the functions for quantities below.

Not used in rules, because this evaluator differs from Kubernetes': ``size()`` of text (it counts bytes; names are
ASCII, where that is the same), optional field selection (``?.``), two-variable comprehensions, and equality of lists
that Kubernetes compares without order (list-type set and map).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import cel

from quorate.api.quantity import Quantity
from quorate.errors import InvalidRule

_OLD = re.compile(r"\boldSelf\b")
#: ``self`` or ``oldSelf``, with the field that follows, if one does and not a function.
_SUBJECT = re.compile(r"\b(?:self|oldSelf)\b(?:\.(\w+)\b(?!\())?")


@dataclass(frozen=True, slots=True)
class _Compiled:
    program: cel.Program
    is_transition: bool
    #: The fields of self that the rule looks at; None: it looks at self as a whole.
    fields: tuple[str, ...] | None


def is_transition(rule: str) -> bool:
    """Whether a rule compares with the old value: such a rule holds for an object that is being created."""
    return _compiled(rule).is_transition


def evaluate(rule: str, value: Any, old_value: Any = None) -> bool:
    """Whether a rule holds for a JSON value. A transition rule holds where there is no old value to compare with."""
    compiled = _compiled(rule)
    if compiled.is_transition and old_value is None:
        return True
    context = cel.Context(functions=_FUNCTIONS)
    context.add_variable("self", _narrowed(value, compiled.fields))
    if compiled.is_transition:
        context.add_variable("oldSelf", _narrowed(old_value, compiled.fields))
    try:
        return compiled.program.execute(context) is True
    except (RuntimeError, TypeError, ValueError) as error:
        # Kubernetes too refuses the object when a rule cannot be evaluated on it.
        raise InvalidRule(f"rule {rule!r}: {error}") from error


@cache
def _compiled(rule: str) -> _Compiled:
    try:
        program = cel.compile(rule)
    except ValueError as error:
        raise InvalidRule(f"rule {rule!r} does not compile: {error}") from error
    fields = dict.fromkeys(match[1] for match in _SUBJECT.finditer(rule))
    return _Compiled(program, _OLD.search(rule) is not None, None if None in fields else tuple(fields))


def _narrowed(value: Any, fields: tuple[str, ...] | None) -> Any:
    """Only what the rule looks at: handing a whole object over costs more than evaluating the rule."""
    if fields is None or not isinstance(value, dict):
        return value
    return {name: value[name] for name in fields if name in value}


def _quantity(text: str) -> str:
    """``quantity('10Gi')``. The evaluator has no types of ours: a quantity travels as its exact count of billionths."""
    return str(Quantity(text).nanos)


def _compare(left: str, right: str) -> int:
    """``a.compareTo(b)``: -1, 0 or 1."""
    difference = int(left) - int(right)
    return (difference > 0) - (difference < 0)


_FUNCTIONS: dict[str, Callable[..., Any]] = {"quantity": _quantity, "compareTo": _compare}
