"""Around every HTTP request: who asks, and how what went wrong is said."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import lru_cache
from http import HTTPStatus
from typing import Any, Final

import msgspec
from aiohttp import web

from quorate.api.maintenance.action import StatusCode
from quorate.engine.logs import get_logger
from quorate.errors import ApiError, Unauthorized
from quorate.maintenance.messages import Caller
from quorate.server.broker.access import Access, bearer
from quorate.server.broker.json_trees import Malformed
from quorate.server.broker.questions import refusal
from quorate.server.kubernetes import Access as SameMachine

_log = get_logger(__name__)

Handler = Callable[[web.Request, Caller], Awaitable[web.StreamResponse]]
RawHandler = Callable[[web.Request], Awaitable[web.StreamResponse]]
#: What the body of a failure looks like: the broker's own status, or for Wall-E and others a message.
Explain = Callable[[StatusCode, str], Any]

#: Of a body. 2,000 actions fit many times over.
MAX_BODY: Final = 4 * 1024 * 1024

_LOOPBACK_ONLY: Final = SameMachine()


def guarded(access: Access, handler: Handler, explain: Explain = refusal) -> RawHandler:
    """The handler, for those who may ask; every failure has a body that says what is wrong."""

    async def handle(request: web.Request) -> web.StreamResponse:
        try:
            if access.open:
                # Any page in a browser can connect to loopback: requests that it makes are refused.
                _check_same_machine(request.headers.get("Host", ""), request.headers.get("Origin"))
            caller = access.caller(bearer(request.headers.get("Authorization", "")), _certificate(request))
            return await handler(request, caller)
        except Malformed as error:
            return json(explain(StatusCode.WRONG_REQUEST, str(error)), HTTPStatus.BAD_REQUEST)
        except Unauthorized as error:
            headers = {"WWW-Authenticate": "Bearer"}
            return json(explain(StatusCode.UNAUTHORIZED, error.message), HTTPStatus.UNAUTHORIZED, headers)
        except ApiError as error:
            return json(explain(StatusCode.WRONG_REQUEST, error.message), error.code)
        except web.HTTPRequestEntityTooLarge:
            problem = f"the body is larger than {MAX_BODY} bytes"
            return json(explain(StatusCode.WRONG_REQUEST, problem), HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        except (web.HTTPException, ConnectionError):
            raise
        except Exception as error:
            _log.error("a request failed in a way nobody foresaw", path=request.path, exc_info=error)
            problem = "an error of the server; its log has the details"
            return json(explain(StatusCode.ERROR, problem), HTTPStatus.INTERNAL_SERVER_ERROR)

    return handle


@lru_cache(maxsize=256)
def _check_same_machine(host: str, origin: str | None) -> None:
    headers = {"Host": host} if origin is None else {"Host": host, "Origin": origin}
    _LOOPBACK_ONLY.identify("", headers)


def message(_: StatusCode, reason: str) -> dict[str, str]:
    """A failure outside the broker's own messages."""
    return {"message": reason}


def json(value: Any, code: int = HTTPStatus.OK, headers: dict[str, str] | None = None) -> web.Response:
    """A JSON body."""
    return encoded(msgspec.json.encode(value), code, headers)


def encoded(body: bytes, code: int = HTTPStatus.OK, headers: dict[str, str] | None = None) -> web.Response:
    """A body that is JSON already."""
    return web.Response(status=code, body=body, content_type="application/json", headers=headers)


@web.middleware
async def explained(request: web.Request, handler: RawHandler) -> web.StreamResponse:
    """For a server of its own: paths and methods that nobody serves are told of in JSON too."""
    try:
        return await handler(request)
    except web.HTTPNotFound:
        return json(refusal(StatusCode.WRONG_REQUEST, f"there is nothing at {request.path}"), HTTPStatus.NOT_FOUND)
    except web.HTTPMethodNotAllowed as error:
        allowed = ", ".join(sorted(error.allowed_methods))
        problem = f"{request.path} takes {allowed}, not {request.method}"
        headers = {"Allow": allowed}
        return json(refusal(StatusCode.WRONG_REQUEST, problem), HTTPStatus.METHOD_NOT_ALLOWED, headers)


def _certificate(request: web.Request) -> bytes:
    secured = request.transport.get_extra_info("ssl_object") if request.transport is not None else None
    return (secured.getpeercert(binary_form=True) or b"") if secured is not None else b""
