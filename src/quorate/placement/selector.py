"""Which nodes a pool's label selector means, as Kubernetes defines it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from quorate.api.storage.rsp import LabelRequirement, LabelSelector, SelectorOperator

_NAME: Final = r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_KEY: Final = re.compile(rf"([a-z0-9]([-a-z0-9.]{{0,251}}[a-z0-9])?/)?{_NAME}")
_VALUE: Final = re.compile(rf"({_NAME})?")
_OF_SEVERAL: Final = (SelectorOperator.IN, SelectorOperator.NOT_IN)


def flaw(selector: LabelSelector | None) -> str | None:
    """What is wrong with a selector; None: nothing."""
    return next(_flaws(selector), None) if selector is not None else None


def matches(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    """Whether a node with these labels is meant; without a selector all are."""
    if selector is None:
        return True
    return all(labels.get(key) == value for key, value in selector.match_labels.items()) and all(
        _holds(requirement, labels.get(requirement.key)) for requirement in selector.match_expressions
    )


def _holds(requirement: LabelRequirement, value: str | None) -> bool:
    match requirement.operator:
        case SelectorOperator.IN:
            return value is not None and value in requirement.values
        case SelectorOperator.NOT_IN:
            return value is None or value not in requirement.values
        case SelectorOperator.EXISTS:
            return value is not None
        case SelectorOperator.DOES_NOT_EXIST:
            return value is None


def _flaws(selector: LabelSelector) -> Iterator[str]:
    for key, value in selector.match_labels.items():
        yield from _bad_words(key, (value,))
    for requirement in selector.match_expressions:
        key, operator = requirement.key, requirement.operator
        yield from _bad_words(key, requirement.values)
        if operator in _OF_SEVERAL and not requirement.values:
            yield f"{key} {operator} has no values: it needs at least one"
        if operator not in _OF_SEVERAL and requirement.values:
            yield f"{key} {operator} has values: it takes none"


def _bad_words(key: str, values: tuple[str, ...]) -> Iterator[str]:
    if not _KEY.fullmatch(key):
        yield f"{key!r} is not a label's key: expected an optional prefix/, then letters, digits, - _ ."
    for value in values:
        if not _VALUE.fullmatch(value):
            yield f"{value!r} is not a label's value: expected at most 63 letters, digits, - _ ."
