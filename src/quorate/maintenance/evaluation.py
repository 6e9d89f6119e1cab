"""What the rules answer to a request: grants, refusals, and the code that sums them up. No ids, nothing stored."""

from __future__ import annotations

from dataclasses import dataclass

from quorate.api.maintenance.action import Issue, StatusCode
from quorate.maintenance.messages import Action


@dataclass(frozen=True, slots=True)
class Grant:
    """An action that may be done."""

    action: Action
    #: How long the permission to begin it lasts.
    permission_duration: int
    #: What it spoils, where it is only granted by force; for a person.
    cost: str = ""


@dataclass(frozen=True, slots=True)
class Refusal:
    """An action that may not, and the earliest moment at which that can change."""

    action: Action
    code: StatusCode
    issue: Issue
    deadline: int | None = None


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A request, weighed. Not partial: either all is granted or nothing."""

    code: StatusCode
    reason: str = ""
    deadline: int | None = None
    grants: tuple[Grant, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    #: What a request with ``schedule`` keeps.
    left: tuple[Action, ...] = ()
    #: Some refusals are none: the cluster did not rest long enough to weigh these actions.
    put_off: bool = False
