"""What a PermissionRequest's status shows of an answer, when it is written, and when the broker is asked again."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, timedelta

import pytest

from quorate.api.duration import Duration
from quorate.api.maintenance import PermissionRequest
from quorate.api.maintenance.action import Action, ActionType, StatusCode
from quorate.api.maintenance.broker_config import BrokerConfigSpec, LogConfig
from quorate.api.maintenance.permission_request import PermissionRequestSpec
from quorate.api.meta import ObjectMeta
from quorate.api.struct import replace
from quorate.maintenance import messages
from quorate.maintenance.entries import PermissionEntry
from quorate.maintenance.live.applied import View
from quorate.maintenance.live.asking import Answer
from quorate.maintenance.live.config import judge
from quorate.maintenance.live.requests import Held, RequestView, composed, retry_after
from quorate.maintenance.live.shown import REFUSED
from quorate.maintenance.live.words import asked_by, shown, span
from quorate.maintenance.messages import PermissionResponse, Status
from quorate.maintenance.moments import FOREVER, SECOND, from_datetime

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
HOST = Action(type=ActionType.SHUTDOWN_HOST, host="n1", duration=Duration("90s"))


def request(*actions: Action) -> PermissionRequest:
    spec = PermissionRequestSpec(user="alice", actions=actions or (HOST,), duration=Duration("1h"), priority=-3)
    return PermissionRequest(metadata=ObjectMeta(name="r", uid="u", generation=2), spec=spec)


def response(code: StatusCode, *, wait: float | None = None, refused: int = 0) -> PermissionResponse:
    deadline = from_datetime(NOW + timedelta(seconds=wait)) if wait is not None else None
    action = messages.Action(type=ActionType.SHUTDOWN_HOST, host="n1")
    return PermissionResponse(status=Status(code=code, reason="so"), deadline=deadline, refused=(action,) * refused)


def view(said: PermissionResponse, this: PermissionRequest | None = None) -> RequestView:
    return View(this or request(), Answer(2, said, NOW), False, False, Held())


def test_an_object_asks_what_its_spec_says() -> None:
    asked = asked_by(request().spec)
    assert asked.user == "alice"
    assert asked.duration == 3600 * SECOND
    assert asked.priority == -3
    assert asked.actions == (messages.Action(type=ActionType.SHUTDOWN_HOST, host="n1", duration=90 * SECOND),)
    assert shown(asked.actions[0]) == HOST


@pytest.mark.parametrize(
    ("microseconds", "text"), [(0, "0s"), (90 * SECOND, "90s"), (1, "1us"), (FOREVER, "18446744073709551615us")]
)
def test_any_span_can_be_shown(microseconds: int, text: str) -> None:
    assert str(span(microseconds)) == text
    assert span(microseconds).microseconds == microseconds


def test_an_answer_that_says_nothing_new_is_not_written_again() -> None:
    said = response(StatusCode.DISALLOW_TEMP, wait=300, refused=1)
    first = composed(view(said), said, NOW)
    assert first.code is StatusCode.DISALLOW_TEMP
    assert first.last_checked_at == NOW
    later = NOW + timedelta(seconds=60)
    again = response(StatusCode.DISALLOW_TEMP, wait=360, refused=1)
    assert composed(view(again, replace(request(), status=first)), again, later) is first


def test_a_permission_that_has_lapsed_is_none() -> None:
    said = response(StatusCode.ALLOW)
    action = messages.Action(type=ActionType.SHUTDOWN_HOST, host="n1")
    held, lapsed = (
        PermissionEntry(
            id=f"a-p-{order}", order=order, owner="a", action=action, deadline=1, granted_at=0, lapsed=order == 2
        )
        for order in (1, 2)
    )
    got = dataclasses.replace(view(said), held=Held(permissions=(held, lapsed)))
    assert composed(got, said, NOW).permissions == ("a-p-1",)


def test_a_moment_that_has_passed_is_replaced_and_an_earlier_one_is_taken() -> None:
    said = response(StatusCode.DISALLOW_TEMP, wait=300)
    known = replace(request(), status=composed(view(said), said, NOW))
    sooner = response(StatusCode.DISALLOW_TEMP, wait=100)
    assert composed(view(sooner, known), sooner, NOW).deadline == NOW + timedelta(seconds=100)
    after = response(StatusCode.DISALLOW_TEMP, wait=700)
    assert composed(view(after, known), after, NOW + timedelta(seconds=301)).deadline == NOW + timedelta(seconds=700)


def test_no_more_refusals_are_shown_than_an_object_can_hold() -> None:
    said = response(StatusCode.DISALLOW_TEMP, wait=1, refused=REFUSED + 5)
    assert len(composed(view(said), said, NOW).refused) == REFUSED


@pytest.mark.parametrize(
    ("code", "wait", "expected"),
    [
        (StatusCode.ERROR_TEMP, 60, 60.0),
        (StatusCode.ERROR_TEMP, -1, 0.0),
        (StatusCode.ERROR_TEMP, None, 10.0),
        (StatusCode.DISALLOW_TEMP, 60, None),
        (StatusCode.ALLOW, None, None),
        (StatusCode.WRONG_REQUEST, None, None),
    ],
)
def test_only_a_broker_that_cannot_answer_is_asked_again_by_time(
    code: StatusCode, wait: float | None, expected: float | None
) -> None:
    assert retry_after(view(response(code, wait=wait)), NOW) == expected


def test_every_code_has_a_condition() -> None:
    for code in StatusCode:
        said = response(code)
        [condition] = composed(view(said), said, NOW).conditions
        assert condition.type == "Granted"
        assert (condition.status == "True") == (code in (StatusCode.ALLOW, StatusCode.OK))


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        (BrokerConfigSpec(), "Applied"),
        (BrokerConfigSpec(default_retry_time=Duration("0s")), "Invalid"),
        (BrokerConfigSpec(default_permission_duration=Duration("0ms")), "Invalid"),
        (BrokerConfigSpec(log_config=LogConfig(ttl=Duration("0s"))), "Invalid"),
    ],
)
def test_a_configuration_that_cannot_be_used_says_why(spec: BrokerConfigSpec, reason: str) -> None:
    verdict = judge(spec)
    assert verdict.reason == reason
    assert reason == "Applied" or "must be above zero" in verdict.message
