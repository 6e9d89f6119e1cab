"""No user fills the broker for all others; nobody locks anything for ever by mistake."""

from __future__ import annotations

import dataclasses

import pytest

from quorate.api.duration import Duration
from quorate.api.maintenance.action import StatusCode
from quorate.api.maintenance.broker_config import BrokerConfigSpec, Quotas
from quorate.api.struct import replace
from quorate.maintenance.messages import (
    Caller,
    NotificationRequest,
    NotificationResponse,
    PermissionCommand,
    PermissionRequest,
    PlanRequest,
    SetConfig,
)
from quorate.maintenance.moments import FOREVER, SECOND
from tests.maintenance.broker.desk import ANYONE, BEGIN, SETTINGS, Desk, shutdown

TEMP, BUSY, WRONG, ALLOW = (
    StatusCode.DISALLOW_TEMP,
    StatusCode.ERROR_TEMP,
    StatusCode.WRONG_REQUEST,
    StatusCode.ALLOW,
)
ADMIN = Caller(name="root", admin=True)
LONGEST = BrokerConfigSpec().quotas.duration.microseconds
WHERE = "of the BrokerConfig"


async def limit(desk: Desk, quotas: Quotas) -> None:
    answer = await desk.broker.set_config(SetConfig(config=replace(SETTINGS, quotas=quotas)), ADMIN)
    assert answer.status.code is StatusCode.OK


async def announce(desk: Desk, *hosts: str, user: str = "alice", duration: int = 60 * SECOND) -> NotificationResponse:
    told = NotificationRequest(user=user, actions=tuple(shutdown(host, duration) for host in hosts), time=BEGIN)
    return await desk.broker.notification(told, ANYONE)


async def test_a_user_has_so_many_stored_requests_and_others_have_their_own(desk: Desk) -> None:
    await limit(desk, Quotas(requests=3))
    await desk.ask("h1", user="bob")
    assert [(await desk.ask("h2", schedule=True)).status.code for _ in range(3)] == [TEMP] * 3
    fourth = await desk.ask("h2", schedule=True)
    assert (fourth.status.code, fourth.deadline) == (BUSY, BEGIN + 300 * SECOND)
    assert fourth.status.reason.startswith(
        f"Schedule: alice has 3 stored requests, and at most 3 are allowed (quotas.requests {WHERE})"
    )
    assert (await desk.ask("h2", schedule=True, dry_run=True)).status == fourth.status
    assert (await desk.ask("h2")).status.code is TEMP, "what is not stored takes no place"
    assert (await desk.ask("h2", user="carol", schedule=True)).status.code is TEMP
    assert len(desk.broker.ledger.requests) == 4


async def test_the_default_holds_back_whoever_queues_a_thousand(desk: Desk) -> None:
    await desk.ask("h1", user="bob")
    codes = [(await desk.ask("h2", schedule=True)).status.code for _ in range(110)]
    assert codes == [TEMP] * 100 + [BUSY] * 10


@pytest.mark.parametrize(
    ("user", "caller"),
    [
        ("quorate-drives", Caller(name="quorate-drives")),
        ("Wall-E", Caller(name="Wall-E")),
        ("root", ADMIN),
        ("alice", ADMIN),
    ],
)
async def test_admins_and_quorates_own_users_are_never_held_back(desk: Desk, user: str, caller: Caller) -> None:
    await limit(desk, Quotas(requests=1, actions=1))
    await desk.ask("h1", user="bob")
    for _ in range(4):
        assert (await desk.ask("h2", user=user, caller=caller, schedule=True)).status.code is TEMP


async def test_a_user_has_so_many_actions_in_all(desk: Desk) -> None:
    desk.model.remove_group(0)
    await limit(desk, Quotas(actions=4))
    assert (await desk.ask("h1")).status.code is ALLOW
    assert (await announce(desk, "h2")).status.code is StatusCode.OK
    assert (await desk.ask("h1", schedule=True)).status.code is TEMP
    two = await desk.ask("h3", "h4")
    assert two.status.code is BUSY
    has = "Actions has 2, and alice has 3 in requests, notifications and permissions"
    assert two.status.reason.startswith(f"{has}: at most 4 are allowed (quotas.actions {WHERE})")
    assert (await desk.ask("h3")).status.code is ALLOW
    assert (await announce(desk, "h5")).status.code is BUSY
    five = await desk.ask("h1", "h2", "h3", "h4", "h5", user="carol")
    assert (five.status.code, five.status.reason) == (
        WRONG,
        f"Actions has 5: one user may have 4 (quotas.actions {WHERE})",
    )
    assert await desk.done("alice-p-1") is StatusCode.OK
    assert (await desk.ask("h4")).status.code is ALLOW


async def test_a_user_has_so_many_notifications(desk: Desk) -> None:
    await limit(desk, Quotas(requests=2))
    answers = [await announce(desk, "h1") for _ in range(3)]
    assert [answer.status.code for answer in answers] == [StatusCode.OK, StatusCode.OK, BUSY]
    assert "alice has 2 notifications, and at most 2 are allowed" in answers[2].status.reason


async def test_hosts_of_a_tenant_are_counted_each(desk: Desk) -> None:
    for number in range(1, 9):
        node = desk.model.node(number)
        assert node is not None
        desk.model.put_node(dataclasses.replace(node, tenant="t"))
    await limit(desk, Quotas(actions=7))
    answer = await desk.ask(replace(shutdown(""), tenant="t"))
    assert (answer.status.code, "Actions has 8" in answer.status.reason) == (WRONG, True)


@pytest.mark.parametrize("duration", [LONGEST + 1, 2**63, FOREVER])
@pytest.mark.parametrize("caller", [ANYONE, ADMIN])
async def test_nothing_is_away_for_ever(desk: Desk, duration: int, caller: Caller) -> None:
    allowed = f"is {duration}: allowed are 0 to {LONGEST} microseconds (quotas.duration {WHERE})"
    by_action = await desk.ask("h1", caller=caller, duration=duration)
    assert (by_action.status.code, by_action.status.reason) == (WRONG, f"Actions[0].Duration {allowed}")
    message = PermissionRequest(user="alice", actions=(shutdown("h1", None),), duration=duration)
    by_request = await desk.broker.permission_request(message, caller)
    assert (by_request.status.code, by_request.status.reason) == (WRONG, f"Duration {allowed}")
    by_object = await desk.broker.submit(message, Caller(name="alice"), object_uid="u")
    assert by_object.status == by_request.status
    assert (await announce(desk, "h1", duration=duration)).status.code is WRONG
    planned = await desk.broker.plan(PlanRequest(user="alice", duration=duration), caller)
    assert planned.status == by_request.status
    assert desk.broker.ledger.permissions == ()


async def test_nor_is_a_permission_extended_for_ever(desk: Desk) -> None:
    await desk.ask("h1")
    latest = BEGIN + LONGEST
    for deadline in (latest + 1, 2**63, FOREVER):
        answer = await desk.manage(PermissionCommand.EXTEND, "alice-p-1", deadline=deadline)
        assert answer.status.code is WRONG
        assert answer.status.reason == f"Deadline is {deadline}: allowed is {latest} at most (quotas.duration {WHERE})"
    assert (await desk.manage(PermissionCommand.EXTEND, "alice-p-1", deadline=latest)).status.code is ALLOW


async def test_zero_is_no_limit(desk: Desk) -> None:
    await limit(desk, Quotas(requests=0, actions=0, duration=Duration("0s")))
    await desk.ask("h1", user="bob", duration=FOREVER)
    for _ in range(5):
        assert (await desk.ask("h2", schedule=True, duration=2**63)).status.code is TEMP


async def test_a_permission_that_has_lapsed_takes_no_place(desk: Desk) -> None:
    await limit(desk, Quotas(actions=1))
    desk.model.remove_group(0)
    assert (await desk.ask("h1")).status.code is ALLOW
    assert (await desk.ask("h2")).status.code is BUSY
    desk.clock.advance(90)
    desk.broker.cluster_changed()
    await desk.settle()
    assert [entry.lapsed for entry in desk.broker.ledger.permissions] == [True]
    assert (await desk.ask("h2")).status.code is ALLOW
