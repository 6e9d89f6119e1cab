"""What an API server answers when it refuses: a ``Status``, turned into an error of our tree."""

from __future__ import annotations

import msgspec

from quorate import errors
from quorate.api import codec
from quorate.api.struct import Struct
from quorate.errors import ApiError, Cause

_KNOWN: tuple[type[ApiError], ...] = (
    errors.BadRequest,
    errors.Unauthorized,
    errors.Forbidden,
    errors.NotFound,
    errors.MethodNotAllowed,
    errors.NotAcceptable,
    errors.Conflict,
    errors.AlreadyExists,
    errors.Expired,
    errors.TooLarge,
    errors.UnsupportedMediaType,
    errors.Invalid,
    errors.TooManyRequests,
    errors.InternalError,
    errors.ServiceUnavailable,
    errors.ServerTimeout,
)
_BY_REASON: dict[str, type[ApiError]] = {each.reason: each for each in _KNOWN} | {
    "Gone": errors.Expired,
    # Code 500 in Kubernetes, but it means the same as 504: the server gave up waiting.
    "ServerTimeout": errors.ServerTimeout,
}
# Of the two classes with 409 the plain one is Conflict: AlreadyExists always comes with its reason.
_BY_CODE: dict[int, type[ApiError]] = {each.code: each for each in _KNOWN} | {
    409: errors.Conflict,
    502: errors.ServiceUnavailable,
}


class _Kind(Struct):
    kind: str = ""


class _StatusCause(Struct):
    reason: str = ""
    message: str = ""
    field: str = ""


class _StatusDetails(Struct):
    group: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    causes: tuple[_StatusCause, ...] | None = None
    retry_after_seconds: int = 0


class _Status(Struct):
    kind: str = ""
    message: str = ""
    reason: str = ""
    code: int = 0
    details: _StatusDetails | None = None


def is_status(body: bytes) -> bool:
    """Whether an answer is a Status and not the object that was asked for."""
    return codec.decode(_Kind, body).kind == "Status"


def refusal(code: int, body: bytes, *, retry_after: str | None = None) -> ApiError:
    """The error that an answer stands for. ``code`` is HTTP's; 0 when the Status came inside a watch."""
    status = _decoded(body)
    details = status.details or _StatusDetails()
    code = code or status.code
    wanted = _BY_REASON.get(status.reason) or _BY_CODE.get(code)
    if wanted is None:
        wanted = errors.BadRequest if code < 500 else errors.InternalError
    seconds: float | None = details.retry_after_seconds or None
    if retry_after is not None and retry_after.isdigit():
        seconds = float(retry_after)
    return wanted(
        status.message or f"the server answered {code}",
        group=details.group,
        kind=details.kind,
        name=details.name,
        uid=details.uid,
        causes=tuple(Cause(each.reason, each.message, each.field) for each in details.causes or ()),
        retry_after=seconds,
    )


def _decoded(body: bytes) -> _Status:
    """The Status, or one made from whatever a proxy in between has said instead."""
    try:
        status = codec.decode(_Status, body)
    except msgspec.DecodeError:
        return _Status(message=body[:300].decode(errors="replace").strip())
    return status if status.kind == "Status" else _Status()
