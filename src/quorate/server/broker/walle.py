"""Wall-E's CMS API, version 1.1: its words and codes over the broker's tasks."""

from __future__ import annotations

from collections.abc import Awaitable
from http import HTTPStatus
from typing import Annotated, Any, Final, TypeVar

import msgspec
from aiohttp import web
from msgspec import Meta

from quorate.api.maintenance.action import StatusCode
from quorate.errors import QuorateError
from quorate.maintenance.broker import Broker
from quorate.maintenance.messages import (
    Caller,
    Status,
    WalleCheckTask,
    WalleCreateTask,
    WalleListTasks,
    WalleRemoveTask,
    WalleTask,
    WalleTaskAnswer,
)
from quorate.server.broker.access import Access
from quorate.server.broker.answering import guarded, json, message
from quorate.server.broker.json_trees import Malformed, not_json
from quorate.server.broker.questions import finished
from quorate.server.broker.translation.answers import WALLE_WORDS

T = TypeVar("T")

TASKS: Final = "/cms/api/walle/v11/tasks"
#: Seconds that Wall-E waits for an answer.
_PATIENCE: Final = 60.0


class NewTask(msgspec.Struct, frozen=True):
    """What Wall-E posts. Fields that we do not know are its own business."""

    id: Annotated[str, Meta(min_length=1)]
    action: Annotated[str, Meta(min_length=1)]
    type: str = ""
    issuer: str = ""
    hosts: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()


_CALLERS_MISTAKES: Final = frozenset(
    {StatusCode.WRONG_REQUEST, StatusCode.NO_SUCH_HOST, StatusCode.NO_SUCH_DEVICE, StatusCode.NO_SUCH_SERVICE}
)
_new_tasks: Final = msgspec.json.Decoder(NewTask)


def routes(broker: Broker, access: Access) -> list[web.RouteDef]:
    """What Wall-E calls."""

    async def tasks(_: web.Request, caller: Caller) -> web.Response:
        answer = await _asked(broker.walle_list(WalleListTasks(), caller))
        if answer.status.code is not StatusCode.OK:
            return _refused(answer.status, HTTPStatus.NOT_FOUND)
        return json({"result": [_shown(task) for task in answer.tasks]})

    async def create(request: web.Request, caller: Caller) -> web.Response:
        asked = WalleCreateTask(task=_posted(await request.read()), dry_run=_dry_run(request))
        answer = await _asked(broker.walle_create(asked, caller))
        if answer.status.code not in WALLE_WORDS:
            return _refused(answer.status, HTTPStatus.BAD_REQUEST)
        return json(_shown(answer) | {"message": answer.status.reason})

    async def check(request: web.Request, caller: Caller) -> web.Response:
        answer = await _asked(broker.walle_check(WalleCheckTask(task_id=request.match_info["id"]), caller))
        if answer.status.code not in WALLE_WORDS:
            return _refused(answer.status, HTTPStatus.NOT_FOUND)
        return json(_shown(answer) | {"message": answer.status.reason})

    async def remove(request: web.Request, caller: Caller) -> web.Response:
        answer = await _asked(broker.walle_remove(WalleRemoveTask(task_id=request.match_info["id"]), caller))
        if answer.status.code is not StatusCode.OK:
            return _refused(answer.status, HTTPStatus.NOT_FOUND)
        return web.Response(status=HTTPStatus.NO_CONTENT)

    one = f"{TASKS}/{{id}}"
    return [
        web.get(TASKS, guarded(access, tasks, message)),
        web.post(TASKS, guarded(access, create, message)),
        web.get(one, guarded(access, check, message)),
        web.delete(one, guarded(access, remove, message)),
    ]


async def _asked(asking: Awaitable[T]) -> T:
    try:
        return await finished(asking, _PATIENCE)
    except TimeoutError as error:
        raise _problem(web.HTTPRequestTimeout, str(error)) from None
    except QuorateError as error:
        raise _problem(web.HTTPInternalServerError, str(error)) from None


def _problem(kind: type[web.HTTPException], said: str) -> web.HTTPException:
    return kind(text=msgspec.json.encode({"message": said}).decode(), content_type="application/json")


def _posted(body: bytes) -> WalleTask:
    try:
        task = _new_tasks.decode(body)
    except msgspec.ValidationError as error:
        problem, _, field = str(error).partition(" - at `$.")
        raise Malformed(problem, field.rstrip("`")) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Malformed(not_json(body, error)) from None
    return WalleTask(
        id=task.id, action=task.action, type=task.type, issuer=task.issuer, hosts=task.hosts, devices=task.devices
    )


def _dry_run(request: web.Request) -> bool:
    word = request.query.get("dry_run", "false").lower()
    if word not in ("true", "false", "1", "0"):
        raise Malformed(f"must be true or false, not {word[:60]!r}", "dry_run")
    return word in ("true", "1")


def _shown(answer: WalleTaskAnswer) -> dict[str, Any]:
    task = answer.task
    return {"id": task.id, "hosts": task.hosts, "devices": task.devices, "status": WALLE_WORDS[answer.status.code]}


def _refused(status: Status, wrong: HTTPStatus) -> web.Response:
    """``wrong``: what a request that cannot be right is answered with."""
    if status.code is StatusCode.UNAUTHORIZED:
        code = HTTPStatus.FORBIDDEN
    else:
        code = wrong if status.code in _CALLERS_MISTAKES else HTTPStatus.INTERNAL_SERVER_ERROR
    return json({"message": status.reason or status.code.value}, code)
