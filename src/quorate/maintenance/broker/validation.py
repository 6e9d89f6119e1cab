"""What a question may look like.

Everything refused here is WRONG_REQUEST, and says which field, its value, and what is allowed. The bounds are those of
the Kubernetes objects that the ledger is shown in. What an action means (its type, its host, its devices) is for the
rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from quorate.api.maintenance.action import MAX_ACTIONS
from quorate.maintenance.broker.declined import wrong
from quorate.maintenance.messages import Action, NotificationRequest, PermissionRequest
from quorate.maintenance.moments import FOREVER

PRIORITIES: Final = range(-100, 101)

LONGEST_REASON: Final = 1024
LONGEST_RUN: Final = 128
LONGEST_HOST: Final = 253
LONGEST_SERVICE: Final = 63
MOST_SERVICES: Final = 8
LONGEST_DEVICE: Final = 128
MOST_DEVICES: Final = 64


def check_request(asked: PermissionRequest, *, longest: int) -> None:
    """Declined if it cannot be weighed; ``longest``: how long something may be away."""
    if asked.priority not in PRIORITIES:
        raise wrong(f"Priority is {asked.priority}: allowed are {PRIORITIES[0]} to {PRIORITIES[-1]}")
    check_span("Duration", asked.duration, longest)
    check_reason(asked.reason)
    if len(asked.run) > LONGEST_RUN:
        raise wrong(f"Run has {len(asked.run)} characters: at most {LONGEST_RUN} are allowed")
    check_actions(asked.actions, longest=longest)


def check_notification(asked: NotificationRequest, *, longest: int) -> None:
    """Declined if it says nothing that could be noted; ``longest``: how long something may be away."""
    if not asked.actions:
        raise wrong("Actions is empty: a notification says what will happen")
    check_span("Time", asked.time)
    check_reason(asked.reason)
    check_actions(asked.actions, longest=longest)


def check_reason(reason: str) -> None:
    """Declined if it is longer than an object can show."""
    if len(reason) > LONGEST_REASON:
        raise wrong(f"Reason has {len(reason)} characters: at most {LONGEST_REASON} are allowed")


def check_actions(actions: Sequence[Action], *, longest: int) -> None:
    """Declined at the first action that is not one."""
    if len(actions) > MAX_ACTIONS:
        raise wrong(f"{len(actions)} actions: at most {MAX_ACTIONS} are allowed in one request")
    for index, action in enumerate(actions):
        problem = _problem(action, longest)
        if problem:
            raise wrong(f"Actions[{index}].{problem}")


def _problem(action: Action, longest: int) -> str:
    """What is wrong with it, beginning with the field; empty if nothing is."""
    if action.issue is not None:
        return "Issue is set: it is the broker's answer, not part of a question"
    if action.duration is not None and not 0 <= action.duration <= longest:
        return f"Duration is {action.duration}: allowed are {_spans_up_to(longest)}"
    if len(action.host) > LONGEST_HOST or len(action.tenant) > LONGEST_HOST:
        return f"Host or Tenant is too long: at most {LONGEST_HOST} characters are allowed"
    if action.host and action.tenant:
        return "Host and Tenant are both given: one of them says where"
    if action.devices and (len(action.devices) > MOST_DEVICES or not _fit(action.devices, LONGEST_DEVICE)):
        return f"Devices: at most {MOST_DEVICES} are allowed, with 1 to {LONGEST_DEVICE} characters each"
    if action.services and (len(action.services) > MOST_SERVICES or not _fit(action.services, LONGEST_SERVICE)):
        return f"Services: at most {MOST_SERVICES} are allowed, with 1 to {LONGEST_SERVICE} characters each"
    return ""


def _fit(words: Sequence[str], longest: int) -> bool:
    return all(0 < len(word) <= longest for word in words)


def check_span(field: str, value: int | None, longest: int = FOREVER) -> None:
    """Declined if it is no span of time, or a longer one than may be."""
    if value is not None and not 0 <= value <= longest:
        raise wrong(f"{field} is {value}: allowed are {_spans_up_to(longest)}")


def _spans_up_to(longest: int) -> str:
    whose = " (quotas.duration of the BrokerConfig)" if longest < FOREVER else ""
    return f"0 to {longest} microseconds{whose}"
