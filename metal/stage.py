"""What a scenario is, and what it is played on: machines, what was seen, and what must be so."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from metal.errors import Failed
from metal.machines import Machines
from quorate.api.meta import Condition

Observation = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Scenario:
    """One story."""

    name: str
    about: str
    play: Callable[[Stage], Awaitable[None]]
    nodes: int = 1
    drives: int = 1
    #: With agents and a server; without them only the kernel and its tools are asked.
    agents: bool = True
    #: Needs the modules of DRBD 9.
    drbd: bool = False
    #: Whether the lab can play it, and so predict it.
    predicted: bool = True
    #: On hardware; machines that are slower have more, in proportion.
    seconds: float = 300.0


@dataclass
class Stage:
    """One playing of a scenario."""

    machines: Machines
    #: What was seen, by name, in order: what two playings are compared by.
    seen: dict[str, Any] = field(default_factory=dict)
    #: Answers to questions that nobody has promised anything about.
    answers: dict[str, Any] = field(default_factory=dict)
    checks: int = 0

    def see(self, name: str, value: Any) -> Any:
        """Note what is so now, to be compared with the other playing."""
        self.machines.journal.tell(self.machines.now(), "", f"seen, {name}: {value}")
        self.seen[name] = value
        return value

    def answer(self, question: str, value: Any) -> Any:
        """What came of a question that the facts left open."""
        self.machines.journal.tell(self.machines.now(), "", f"ANSWER, {question}: {value}")
        self.answers[question] = value
        return value

    def hold(self, what: str, true: object, found: object = None) -> None:
        """What must be so. Raises Failed."""
        self.checks += 1
        shown = "" if found is None else f": {found}"
        self.machines.journal.tell(self.machines.now(), "", f"{'ok' if true else 'FAILED'}: {what}{shown}")
        if not true:
            raise Failed(f"{what}{shown}")


T = TypeVar("T")


def differences(real: dict[str, Any], predicted: dict[str, Any]) -> list[str]:
    """In what two playings differ, a line each."""
    found = []
    for name in [*real, *(each for each in predicted if each not in real)]:
        one, other = real.get(name, "(not reached)"), predicted.get(name, "(not reached)")
        if one != other:
            found += _parts(name, one, other)
    return found


def _parts(name: str, real: Any, predicted: Any) -> list[str]:
    if isinstance(real, dict) and isinstance(predicted, dict):
        return [
            line
            for key in sorted({*real, *predicted}, key=str)
            if real.get(key) != predicted.get(key)
            for line in _parts(f"{name}, {key}", real.get(key), predicted.get(key))
        ]
    return [f"{name}: here {real!r}, the lab says {predicted!r}"]


def condition(found: Iterable[Condition], name: str) -> str:
    """``True``, ``False: Reason``, or nothing."""
    for each in found:
        if each.type == name:
            return str(each.status) if each.status == "True" else f"{each.status}: {each.reason}"
    return ""


__all__ = ["Failed", "Observation", "Scenario", "Stage", "condition", "differences"]
