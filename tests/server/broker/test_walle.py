"""Wall-E's own words and codes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from quorate.api.maintenance.action import StatusCode
from quorate.errors import StorageFull
from quorate.maintenance.messages import (
    Status,
    WalleCheckTask,
    WalleCreateTask,
    WalleRemoveTask,
    WalleTask,
    WalleTaskAnswer,
    WalleTasksResponse,
)
from quorate.server.broker import walle
from tests.server.broker.conftest import Client
from tests.server.broker.fake import FakeBroker

TASKS = "/cms/api/walle/v11/tasks"
TASK = WalleTask(id="t-1", action="reboot", type="automated", issuer="i", hosts=("h1", "h2"), devices=("pdisk-1-1",))
POSTED = {
    "id": "t-1",
    "type": "automated",
    "issuer": "i",
    "action": "reboot",
    "hosts": ["h1", "h2"],
    "devices": ["pdisk-1-1"],
}


def answer(code: StatusCode, reason: str = "") -> WalleTaskAnswer:
    return WalleTaskAnswer(status=Status(code=code, reason=reason), task=TASK)


@pytest.mark.parametrize(
    ("code", "word"),
    [
        (StatusCode.OK, "ok"),
        (StatusCode.ALLOW, "ok"),
        (StatusCode.DISALLOW_TEMP, "in-process"),
        (StatusCode.DISALLOW, "rejected"),
    ],
)
async def test_a_task_has_a_status(client: Client, broker: FakeBroker, code: StatusCode, word: str) -> None:
    broker.answers |= {"walle_create": answer(code, "why"), "walle_check": answer(code, "why")}
    shown = {"id": "t-1", "hosts": ["h1", "h2"], "devices": ["pdisk-1-1"], "status": word, "message": "why"}
    assert await client.post(TASKS, POSTED) == (200, shown)
    assert await client.get(f"{TASKS}/t-1") == (200, shown)
    assert [asked for _, asked, _ in broker.asked] == [WalleCreateTask(task=TASK), WalleCheckTask(task_id="t-1")]


@pytest.mark.parametrize(
    ("query", "dry"), [("", False), ("?dry_run=true", True), ("?dry_run=True", True), ("?dry_run=false", False)]
)
async def test_a_rehearsal_is_one(client: Client, broker: FakeBroker, query: str, dry: bool) -> None:
    broker.answers["walle_create"] = answer(StatusCode.ALLOW)
    await client.post(TASKS + query, POSTED)
    assert broker.asked[0][1].dry_run is dry


async def test_the_list_has_every_task(client: Client, broker: FakeBroker) -> None:
    broker.answers["walle_list"] = WalleTasksResponse(
        status=Status(code=StatusCode.OK), tasks=(answer(StatusCode.ALLOW), answer(StatusCode.DISALLOW_TEMP))
    )
    one = {"id": "t-1", "hosts": ["h1", "h2"], "devices": ["pdisk-1-1"]}
    expected = {"result": [one | {"status": "ok"}, one | {"status": "in-process"}]}
    assert await client.get(TASKS) == (200, expected)


async def test_a_removed_task_leaves_nothing_to_say(client: Client, broker: FakeBroker) -> None:
    broker.answers["walle_remove"] = answer(StatusCode.OK)
    assert await client.call("DELETE", f"{TASKS}/a%2Fb%20c") == (204, None)
    assert broker.asked[0][1] == WalleRemoveTask(task_id="a/b c")


@pytest.mark.parametrize(
    ("code", "create", "others"),
    [
        (StatusCode.WRONG_REQUEST, 400, 404),
        (StatusCode.NO_SUCH_HOST, 400, 404),
        (StatusCode.NO_SUCH_DEVICE, 400, 404),
        (StatusCode.UNAUTHORIZED, 403, 403),
        (StatusCode.ERROR, 500, 500),
        (StatusCode.ERROR_TEMP, 500, 500),
    ],
)
async def test_anything_else_is_a_code(
    client: Client, broker: FakeBroker, code: StatusCode, create: int, others: int
) -> None:
    refused = answer(code, "because")
    broker.answers |= {"walle_create": refused, "walle_check": refused, "walle_remove": refused}
    assert await client.post(TASKS, POSTED) == (create, {"message": "because"})
    assert await client.get(f"{TASKS}/t-1") == (others, {"message": "because"})
    assert await client.call("DELETE", f"{TASKS}/t-1") == (others, {"message": "because"})


@pytest.mark.parametrize(
    ("body", "named"),
    [
        (b"", "JSON"),
        (b"[" * 3000, "object"),
        ([], "object"),
        ({"action": "reboot", "hosts": []}, "id"),
        ({"id": "", "action": "reboot"}, "id: "),
        ({"id": "t", "hosts": []}, "action"),
        ({"id": "t", "action": 1}, "action: "),
        ({"id": "t", "action": "reboot", "hosts": "h1"}, "hosts: "),
        ({"id": "t", "action": "reboot", "hosts": [1]}, "hosts[0]: "),
    ],
)
async def test_malformed_tasks_are_told_where(client: Client, broker: FakeBroker, body: Any, named: str) -> None:
    code, said = await client.post(TASKS, body)
    assert code == 400
    assert named in said["message"]
    assert broker.asked == []


async def test_a_rehearsal_must_be_true_or_false(client: Client) -> None:
    code, said = await client.post(f"{TASKS}?dry_run=perhaps", POSTED)
    assert (code, said["message"]) == (400, "dry_run: must be true or false, not 'perhaps'")


async def test_what_wall_e_sends_beside_is_its_own_business(client: Client, broker: FakeBroker) -> None:
    broker.answers["walle_create"] = answer(StatusCode.ALLOW)
    code, _ = await client.post(TASKS, POSTED | {"comment": "disk", "extra": {"a": 1}})
    assert code == 200


async def test_a_broker_that_cannot_write_is_an_error(client: Client, broker: FakeBroker) -> None:
    broker.answers["walle_create"] = StorageFull("no space left")
    assert await client.post(TASKS, POSTED) == (500, {"message": "no space left"})


async def test_an_answer_that_takes_too_long_is_given_up(
    client: Client, broker: FakeBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(walle, "_PATIENCE", 0.0)
    broker.answers["walle_create"] = released = asyncio.Event()
    code, said = await client.post(TASKS, POSTED)
    assert code == 408
    assert "whether anything was decided is not known" in said["message"]
    released.set()
