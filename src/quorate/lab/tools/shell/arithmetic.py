"""``$((…))``: whole numbers, variables by name, and what is usual between them."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping

from quorate.lab.tools.shell.tree import ShellSyntaxError

_BINARY: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: lambda a, b: abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1),
    ast.Mod: lambda a, b: abs(a) % abs(b) * (-1 if a < 0 else 1),
}
_COMPARING: dict[type[ast.cmpop], Callable[[int, int], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_UNARY: dict[type[ast.unaryop], Callable[[int], int]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Not: lambda value: int(not value),
}
#: The shell's spelling of what Python spells otherwise; its ``/`` is a division of whole numbers.
_SPELLING = ((r"&&", " and "), (r"\|\|", " or "), (r"!(?!=)", " not "), (r"(?<!/)/(?!/)", "//"), (r"\$", ""))


def evaluate(text: str, variables: Mapping[str, str]) -> int:
    """The value of an expression. Raises ShellSyntaxError."""
    source = text.strip() or "0"
    for pattern, spelling in _SPELLING:
        source = re.sub(pattern, spelling, source)
    try:
        return _value(ast.parse(source.strip(), mode="eval").body, variables)
    except (SyntaxError, ValueError, KeyError, RecursionError):
        raise ShellSyntaxError(f"arithmetic syntax error: {text!r}") from None
    except ZeroDivisionError:
        raise ShellSyntaxError(f"divide by zero: {text!r}") from None


def _value(node: ast.expr, variables: Mapping[str, str]) -> int:
    match node:
        case ast.Constant(value=int(number)):
            return int(number)
        case ast.Name(id=name):
            return int(variables.get(name) or "0")
        case ast.BinOp(left=left, op=op, right=right):
            return _BINARY[type(op)](_value(left, variables), _value(right, variables))
        case ast.UnaryOp(op=op, operand=operand):
            return _UNARY[type(op)](_value(operand, variables))
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            return int(_COMPARING[type(op)](_value(left, variables), _value(right, variables)))
        case ast.BoolOp(op=op, values=values):
            found = [bool(_value(value, variables)) for value in values]
            return int(all(found) if isinstance(op, ast.And) else any(found))
    raise ValueError(node)
