"""Refusals of an API server, and of what may stand in between."""

from __future__ import annotations

import json
from typing import Any

import pytest

from quorate import errors
from quorate.engine.kubernetes.answers import is_status, refusal
from quorate.errors import Cause


def body(**fields: Any) -> bytes:
    return json.dumps({"kind": "Status", "apiVersion": "v1", "status": "Failure", **fields}).encode()


@pytest.mark.parametrize(
    ("code", "reason", "error"),
    [
        (400, "BadRequest", errors.BadRequest),
        (401, "Unauthorized", errors.Unauthorized),
        (403, "Forbidden", errors.Forbidden),
        (404, "NotFound", errors.NotFound),
        (405, "MethodNotAllowed", errors.MethodNotAllowed),
        (406, "NotAcceptable", errors.NotAcceptable),
        (409, "AlreadyExists", errors.AlreadyExists),
        (409, "Conflict", errors.Conflict),
        (409, "", errors.Conflict),
        (410, "Expired", errors.Expired),
        (410, "Gone", errors.Expired),
        (413, "RequestEntityTooLarge", errors.TooLarge),
        (415, "UnsupportedMediaType", errors.UnsupportedMediaType),
        (422, "Invalid", errors.Invalid),
        (429, "TooManyRequests", errors.TooManyRequests),
        (500, "InternalError", errors.InternalError),
        (500, "ServerTimeout", errors.ServerTimeout),
        (500, "", errors.InternalError),
        (503, "ServiceUnavailable", errors.ServiceUnavailable),
        (504, "Timeout", errors.ServerTimeout),
        (418, "Teapot", errors.BadRequest),
        (599, "", errors.InternalError),
    ],
)
def test_a_status_becomes_the_error_of_its_reason_or_code(code: int, reason: str, error: type[errors.ApiError]) -> None:
    found = refusal(code, body(code=code, reason=reason, message="because"))
    assert type(found) is error
    assert str(found) == "because"


def test_details_and_causes_are_kept() -> None:
    details = {
        "group": "test.quorate.io",
        "kind": "Widget",
        "name": "w",
        "uid": "u-1",
        "causes": [{"reason": "FieldValueInvalid", "message": "too big", "field": "spec.size"}],
        "retryAfterSeconds": 7,
    }
    found = refusal(422, body(reason="Invalid", message="m", details=details))
    assert (found.group, found.kind, found.name, found.uid) == ("test.quorate.io", "Widget", "w", "u-1")
    assert found.causes == (Cause("FieldValueInvalid", "too big", "spec.size"),)
    assert found.retry_after == 7


@pytest.mark.parametrize(
    ("header", "seconds"), [(None, None), ("3", 3.0), ("0", 0.0), ("Wed, 21 Oct 2026 07:28:00 GMT", None)]
)
def test_the_header_says_when_to_come_back(header: str | None, seconds: float | None) -> None:
    assert refusal(429, body(reason="TooManyRequests"), retry_after=header).retry_after == seconds


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (b"404 page not found\n", "404 page not found"),
        (b"<html>" + b"x" * 1000, "<html>" + "x" * 294),
        (b"", "the server answered 404"),
        (b"\xff\xfe", "\ufffd\ufffd"),
        (b'{"kind": "Widget"}', "the server answered 404"),
        (b"[]", "[]"),
    ],
)
def test_what_is_no_status_is_judged_by_its_code(answer: bytes, message: str) -> None:
    found = refusal(404, answer)
    assert type(found) is errors.NotFound
    assert str(found) == message


def test_inside_a_watch_the_status_has_the_code() -> None:
    assert type(refusal(0, body(code=410, message="too old"))) is errors.Expired


def test_a_deleted_object_is_told_from_a_status() -> None:
    assert is_status(body(status="Success"))
    assert not is_status(b'{"kind": "Event", "reason": "Because", "code": "text"}')
