"""Answers that are not objects: Kubernetes ``Status``, for failures and for a deletion that is done."""

from __future__ import annotations

from typing import Any

import msgspec

from quorate.api.kind import Kind
from quorate.engine.logs import get_logger
from quorate.errors import ApiError, BadRequest, Cause, InternalError, Invalid, QuorateError

Json = dict[str, Any]

_log = get_logger(__name__)

#: Characters of a message, of one of its causes, and of a name: much of it may be what somebody sent.
_LONGEST, _LONGEST_CAUSE, _LONGEST_NAME = 16 * 1024, 2048, 1024


def explained(error: Exception) -> ApiError:
    """What a client is told of an error; what nobody foresaw goes to the log instead."""
    if isinstance(error, ApiError):
        return error
    if isinstance(error, QuorateError):  # the data file: the message is for people
        return InternalError(str(error))
    if isinstance(error, RecursionError):
        return BadRequest("the object is nested too deeply")
    _log.error("a request failed in a way nobody foresaw", exc_info=error)
    return InternalError("an error of the server; its log has the details")


def failure(error: ApiError) -> Json:
    """An error as the Status that Kubernetes clients understand."""
    details = {
        name: value
        for name, value in (
            ("name", error.name[:_LONGEST_NAME]),
            ("group", error.group),
            ("kind", error.kind),
            ("uid", error.uid),
            ("causes", [_cause(cause) for cause in error.causes]),
            ("retryAfterSeconds", round(error.retry_after or 0)),
        )
        if value
    }
    status: Json = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": _shortened(error.message, _LONGEST),
        "reason": error.reason,
    }
    if details:
        status["details"] = details
    status["code"] = error.code
    return status


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}…"


def deleted(kind: Kind, name: str, uid: str) -> Json:
    """The answer to a DELETE after which the object is gone."""
    details = {"name": name, "group": kind.group, "kind": kind.plural, "uid": uid}
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {key: value for key, value in details.items() if value},
    }


def encode(status: Json) -> bytes:
    """A Status as it goes out."""
    return msgspec.json.encode(status)


def invalid_options(kind: str, causes: list[Cause]) -> Invalid:
    """Request options (query parameters, DeleteOptions) that cannot be followed."""
    listed = [f"{cause.field}: {cause.message}" for cause in causes]
    said = listed[0] if len(listed) == 1 else f"[{', '.join(listed)}]"
    return Invalid(f'{kind}.meta.k8s.io "" is invalid: {said}', group="meta.k8s.io", kind=kind, causes=tuple(causes))


def _cause(cause: Cause) -> Json:
    message, field = _shortened(cause.message, _LONGEST_CAUSE), _shortened(cause.field, _LONGEST_CAUSE)
    found = {"reason": cause.reason, "message": message, "field": field}
    return {key: value for key, value in found.items() if value}
