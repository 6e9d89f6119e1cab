"""How a condition and its reasons are declared.

    class Scheduled(ConditionType):
        '''A node and a disk are chosen and the space is granted.'''

        NO_SPACE = false("NoSpace", "No disk has room for it.", "Add disks, or free space on …")

``Scheduled.NO_SPACE`` then knows its condition, its status and its human text, and ``Scheduled.NO_SPACE("…")`` is a
verdict for :func:`quorate.api.conditions.merge`. Meaning and remedy are said here and nowhere else: the default
message, ``quorate explain`` and ``docs/conditions.md`` all come from here.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from quorate.api.meta import Condition, ConditionStatus


class Verdict(msgspec.Struct, frozen=True, gc=False):
    """What a reconciler found out about one condition, before it is put beside what was known."""

    type: str
    status: ConditionStatus
    reason: str
    message: str


@dataclass(frozen=True, slots=True, eq=False)
class Reason:
    """A code, what it means to a person, and what that person can do. It belongs to the class that declares it."""

    code: str
    status: ConditionStatus
    meaning: str
    #: Empty when there is nothing to do.
    remedy: str = ""
    #: The condition it is a reason of.
    condition: str = field(default="", init=False)
    #: This reason as a verdict that says its meaning: most do, and there are dozens in a pass.
    _plain: Verdict = field(init=False)

    def __set_name__(self, owner: type, name: str) -> None:
        object.__setattr__(self, "condition", owner.__name__)
        object.__setattr__(self, "_plain", Verdict(owner.__name__, self.status, self.code, self.meaning))

    def __call__(self, message: str = "") -> Verdict:
        """This reason as a verdict; without a message, its meaning."""
        return Verdict(self.condition, self.status, self.code, message) if message else self._plain

    def __str__(self) -> str:
        return self.code


class ReasonCodes:
    """A set of codes that belong together; the docstring says what they are reasons for."""

    @classmethod
    def reasons(cls) -> tuple[Reason, ...]:
        """All of them, as declared."""
        return tuple(value for value in vars(cls).values() if isinstance(value, Reason))


class ConditionType(ReasonCodes):
    """A condition: the class's name is its type on the wire, the docstring says when it is True."""

    @classmethod
    def mirror(cls, condition: Condition) -> Verdict:
        """Another object's condition, shown as this one."""
        return Verdict(cls.__name__, condition.status, condition.reason, condition.message)


def true(code: str, meaning: str, remedy: str = "") -> Reason:
    """A reason for True."""
    return Reason(code, ConditionStatus.TRUE, meaning, remedy)


def false(code: str, meaning: str, remedy: str = "") -> Reason:
    """A reason for False."""
    return Reason(code, ConditionStatus.FALSE, meaning, remedy)


def unknown(code: str, meaning: str, remedy: str = "") -> Reason:
    """A reason for Unknown."""
    return Reason(code, ConditionStatus.UNKNOWN, meaning, remedy)
