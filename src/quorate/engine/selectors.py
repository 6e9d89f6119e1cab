"""Label and field selectors, in Kubernetes' syntax.

``app=web,tier in (a,b),!legacy`` for labels; ``metadata.name=x,spec.nodeName!=n1`` for fields.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Operator(StrEnum):
    """What a requirement asks of a key."""

    EQUALS = "="
    NOT_EQUALS = "!="
    IN = "in"
    NOT_IN = "notin"
    EXISTS = "exists"
    NOT_EXISTS = "!"
    GREATER = ">"
    LESS = "<"


@dataclass(frozen=True, slots=True)
class Requirement:
    """One clause of a selector."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def matches(self, values: Mapping[str, str]) -> bool:
        """Whether a set of labels (or fields) satisfies this clause; != and notin match absent keys too."""
        present = values.get(self.key)
        match self.operator:
            case Operator.EQUALS | Operator.IN:
                return present is not None and present in self.values
            case Operator.NOT_EQUALS | Operator.NOT_IN:
                return present is None or present not in self.values
            case Operator.EXISTS:
                return present is not None
            case Operator.NOT_EXISTS:
                return present is None
            case Operator.GREATER | Operator.LESS:
                return self._compares(present)

    def _compares(self, present: str | None) -> bool:
        try:
            number, bound = int(present or ""), int(self.values[0])
        except ValueError:
            return False
        return number > bound if self.operator is Operator.GREATER else number < bound

    def __str__(self) -> str:
        match self.operator:
            case Operator.EXISTS:
                return self.key
            case Operator.NOT_EXISTS:
                return f"!{self.key}"
            case Operator.IN | Operator.NOT_IN:
                return f"{self.key} {self.operator.value} ({','.join(self.values)})"
            case _:
                return f"{self.key}{self.operator.value}{self.values[0]}"


@dataclass(frozen=True, slots=True)
class Selector:
    """All clauses must hold. The empty selector matches everything."""

    requirements: tuple[Requirement, ...] = ()

    def matches(self, values: Mapping[str, str]) -> bool:
        """Whether these labels (or fields) are selected."""
        return all(requirement.matches(values) for requirement in self.requirements)

    def __bool__(self) -> bool:
        return bool(self.requirements)

    def __str__(self) -> str:
        return ",".join(str(requirement) for requirement in self.requirements)


EVERYTHING = Selector()


def equals(**pairs: str) -> Selector:
    """A selector of exact values, for keys that are Python names; for others use :func:`match`."""
    return match(pairs)


def match(pairs: Mapping[str, str]) -> Selector:
    """A selector of exact values."""
    return Selector(tuple(Requirement(key, Operator.EQUALS, (value,)) for key, value in sorted(pairs.items())))


_NAME = r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?"
_KEY = re.compile(rf"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?{_NAME}$")
_VALUE = re.compile(rf"^({_NAME})?$")
#: A set in parentheses with all its commas, a comma, or what is between them.
_PARTS = re.compile(r"\([^()]*\)|,|[^,()]+|[()]")
#: A selector is tried on every object: so many clauses and values each are enough for anybody.
_MOST_CLAUSES, _MOST_VALUES = 64, 512
_SET = re.compile(r"^\s*(\S+)\s+(in|notin)\s*\(([^)]*)\)\s*$")
_COMPARISON = re.compile(r"^\s*([^\s=!<>]+)\s*(==|!=|=|>|<)\s*([^\s=!<>]*)\s*$")


def parse_labels(text: str) -> Selector:
    """A label selector; raises ValueError with the clause that is wrong."""
    return Selector(tuple(_parse_label(clause) for clause in _clauses(text)))


def parse_fields(text: str) -> Selector:
    """A field selector (=, ==, != only); raises ValueError with the clause that is wrong."""
    requirements = []
    clauses = [clause for part in text.split(",") if (clause := part.strip())]
    if len(clauses) > _MOST_CLAUSES:
        raise ValueError(f"invalid selector: {len(clauses)} clauses; at most {_MOST_CLAUSES} may be")
    for clause in clauses:
        comparison = re.match(r"^([^=!]+?)(==|!=|=)(.*)$", clause)
        if comparison is None:
            raise ValueError(f"invalid selector: {clause!r}; can't understand it: expected key=value or key!=value")
        key, operator, value = comparison.groups()
        wanted = Operator.NOT_EQUALS if operator == "!=" else Operator.EQUALS
        requirements.append(Requirement(key.strip(), wanted, (value.strip(),)))
    return Selector(tuple(requirements))


def _clauses(text: str) -> list[str]:
    """Split at commas that are not inside parentheses."""
    if not text.strip():
        return []
    clauses = [""]
    for part in _PARTS.findall(text):
        if part == ",":
            clauses.append("")
        else:
            clauses[-1] += part
    if len(clauses) > _MOST_CLAUSES:
        raise ValueError(f"unable to parse requirement: {len(clauses)} clauses; at most {_MOST_CLAUSES} may be")
    if not all(clause.strip() for clause in clauses):
        raise ValueError(f"unable to parse requirement: {text[:200]!r} has a comma with nothing on one side")
    return clauses


def _parse_label(clause: str) -> Requirement:
    if found := _SET.match(clause):
        key, word, listed = found.groups()
        values = tuple(sorted({value.strip() for value in listed.split(",")}))
        if len(values) > _MOST_VALUES:
            raise ValueError(f"unable to parse requirement: {len(values)} values; at most {_MOST_VALUES} may be")
        requirement = Requirement(key, Operator.IN if word == "in" else Operator.NOT_IN, values)
    elif found := _COMPARISON.match(clause):
        key, sign, value = found.groups()
        requirement = Requirement(key, Operator.EQUALS if sign == "==" else Operator(sign), (value,))
    else:
        key = clause.strip()
        negated = key.startswith("!")
        requirement = Requirement(key.lstrip("!").strip(), Operator.NOT_EXISTS if negated else Operator.EXISTS)
    if not _KEY.match(requirement.key):
        raise ValueError(f"unable to parse requirement: {requirement.key!r} is not a label key in {clause.strip()!r}")
    for value in requirement.values:
        if len(value) > 63 or not _VALUE.match(value):
            raise ValueError(f"unable to parse requirement: {value!r} is not a label value in {clause.strip()!r}")
    if requirement.operator in (Operator.GREATER, Operator.LESS) and not requirement.values[0].lstrip("-").isdigit():
        raise ValueError(f"unable to parse requirement: {clause.strip()!r} compares with something that is no number")
    return requirement
