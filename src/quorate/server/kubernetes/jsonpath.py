"""Kubernetes' JSONPath, as far as printer columns use it.

Fields (``.spec.nodeName``, ``['a.b']``), indexes and slices (``[0]``, ``[-1]``, ``[1:3]``), ``[*]``, and filters
(``[?(@.type=="Ready")]``). A path that does not fit the object finds nothing, as for a CRD's columns on a real
API server. A path that is not in this language is refused when it is compiled, so a test finds it and not a user.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

#: One step of a path: from a value to the values it leads to.
Step = Callable[[Any], Iterator[Any]]

_FIELD = re.compile(r"\.?((?:\\.|[^.\[\]\\\s])+)")
_BRACKET = re.compile(
    r"\[\s*(?:'(?P<key>[^']*)'|\?\((?P<filter>.*?)\)|(?P<all>\*)|(?P<slice>-?\d*(?::-?\d*){0,2}))\s*\]"
)
_FILTER = re.compile(r"^\s*@(?P<path>[^!<>=]*?)\s*(?:(?P<sign>==|!=|<=|>=|<|>)\s*(?P<value>.+?))?\s*$")
_COMPARISONS = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class Path:
    """A compiled path."""

    def __init__(self, steps: tuple[Step, ...]) -> None:
        self._steps = steps

    def find(self, tree: Any) -> list[Any]:
        """Every value the path leads to, in the object's order."""
        values = [tree]
        for step in self._steps:
            values = [found for value in values for found in step(value)]
        return values

    def first(self, tree: Any) -> Any:
        """The first value the path leads to, or None."""
        found = self.find(tree)
        return found[0] if found else None


@cache
def compile_path(text: str) -> Path:
    """Read a path; raises ValueError where it stops making sense."""
    steps: list[Step] = []
    rest = text.strip()
    while rest:
        if found := _BRACKET.match(rest):
            steps.append(_bracket(found, text))
        elif (found := _FIELD.match(rest)) and (steps or rest.startswith(".")):
            steps.append(_field(re.sub(r"\\(.)", r"\1", found[1])))
        else:
            raise ValueError(f"{text!r} is not a JSONPath of a printer column: cannot read {rest!r}")
        rest = rest[found.end() :]
    return Path(tuple(steps))


def _bracket(found: re.Match[str], text: str) -> Step:
    if found["key"] is not None:
        return _field(found["key"])
    if found["filter"] is not None:
        return _filter(found["filter"], text)
    if found["all"]:
        return _everything
    if not found["slice"]:
        raise ValueError(f"{text!r} is not a JSONPath of a printer column: [] selects nothing")
    return _slice(found["slice"])


def _field(name: str) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, dict) and name in value:
            yield value[name]

    return step


def _everything(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def _slice(text: str) -> Step:
    numbers = [int(part) if part else None for part in text.split(":")]
    index = numbers[0]
    # [-1] is the last item, and -1:0 as a slice would be nothing.
    bounds = slice(*numbers) if len(numbers) > 1 else slice(index, None if index == -1 else (index or 0) + 1)

    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, list):
            yield from value[bounds]

    return step


def _filter(text: str, whole: str) -> Step:
    found = _FILTER.match(text)
    if found is None:
        raise ValueError(f"{whole!r} is not a JSONPath of a printer column: cannot read the filter {text!r}")
    path = compile_path(found["path"])
    if found["sign"] is None:
        return lambda value: (item for item in _items(value) if path.find(item))
    compare, expected = _COMPARISONS[found["sign"]], _literal(found["value"], whole)

    def step(value: Any) -> Iterator[Any]:
        for item in _items(value):
            # Values of different types have no order and are not equal: the item is left out either way.
            if any(_comparable(left, expected) and compare(left, expected) for left in path.find(item)):
                yield item

    return step


def _comparable(left: Any, right: Any) -> bool:
    if isinstance(left, bool) or isinstance(right, bool):
        return isinstance(left, bool) and isinstance(right, bool)
    return isinstance(left, int | float) if isinstance(right, int | float) else isinstance(left, type(right))


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _literal(text: str, whole: str) -> Any:
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    if text in ("true", "false"):
        return text == "true"
    try:
        return int(text) if re.fullmatch(r"-?\d+", text) else float(text)
    except ValueError:
        raise ValueError(f"{whole!r} is not a JSONPath of a printer column: {text} is not a literal") from None
