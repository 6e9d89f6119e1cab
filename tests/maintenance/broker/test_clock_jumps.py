"""A broker whose wall clock is set."""

from __future__ import annotations

import pytest

from quorate.api.maintenance.action import StatusCode
from quorate.maintenance.messages import Caller, NotificationRequest, PermissionCommand
from quorate.maintenance.moments import SECOND
from tests.maintenance.broker.desk import ANYONE, BEGIN, Desk, shutdown

ERROR_TEMP, ALLOW, TEMP, OK = (
    StatusCode.ERROR_TEMP,
    StatusCode.ALLOW,
    StatusCode.DISALLOW_TEMP,
    StatusCode.OK,
)
HOUR = 3600


@pytest.mark.parametrize("step", [-HOUR, HOUR])
async def test_while_the_clock_is_in_doubt_nothing_is_decided_and_nothing_expires(desk: Desk, step: int) -> None:
    await desk.ask("h1")
    await desk.ask("h2", user="bob", schedule=True)
    desk.clock.jump(step)
    notification = NotificationRequest(user="alice", actions=(shutdown("h1"),), time=BEGIN + 10**9)
    for answer in (
        await desk.ask("h2"),
        await desk.ask("h2", dry_run=True),
        await desk.check("bob-r-1", user="bob"),
        await desk.manage(PermissionCommand.EXTEND, "alice-p-1", deadline=BEGIN),
        await desk.broker.notification(notification, ANYONE),
    ):
        assert answer.status.code is ERROR_TEMP
        assert "clock" in answer.status.reason
    assert (await desk.ask("h2")).deadline is not None
    assert await desk.held() == ["alice-p-1"]
    desk.clock.jump(-step)
    assert await desk.held() == ["alice-p-1"]
    assert (await desk.ask("h2", user="carol")).status.code is TEMP


async def test_what_is_done_may_be_said_although_the_clock_is_in_doubt(desk: Desk) -> None:
    await desk.ask("h1")
    desk.clock.jump(HOUR)
    assert await desk.done("alice-p-1") is OK


@pytest.mark.parametrize("step", [-HOUR, HOUR])
async def test_an_admin_accepts_the_time_and_every_promise_keeps_its_length(desk: Desk, step: int) -> None:
    await desk.ask("h1")
    await desk.ask("h2", user="bob", schedule=True)
    desk.clock.advance(20)
    desk.clock.jump(step)
    assert (await desk.ask("h3")).status.code is ERROR_TEMP
    assert (await desk.broker.accept_time(Caller(name="alice"))).code is StatusCode.UNAUTHORIZED
    assert (await desk.broker.accept_time(Caller(name="root", admin=True))).code is OK
    (permission,) = (await desk.manage(PermissionCommand.LIST)).permissions
    # The last look at the clock was before those twenty seconds: they are not taken off, rather than too many.
    assert permission.deadline - desk.clock.wall == 60 * SECOND
    refused = await desk.ask("h3", user="carol")
    assert refused.status.code is TEMP
    desk.clock.advance(60)
    assert (await desk.check("bob-r-1", user="bob")).status.code is ALLOW
    again = await desk.again()
    assert again.broker.now() == desk.clock.wall
    assert again.broker.ledger.permissions == desk.broker.ledger.permissions
    await again.broker.close()


async def test_accepting_a_time_that_is_not_in_doubt_changes_nothing(desk: Desk) -> None:
    await desk.ask("h1")
    before = desk.broker.ledger
    assert (await desk.broker.accept_time(ANYONE)).code is OK
    assert desk.broker.ledger == before


async def test_after_a_restart_with_a_clock_far_behind_decisions_wait(desk: Desk) -> None:
    await desk.ask("h1")
    desk.clock.jump(-HOUR)
    again = await desk.again(holder="two")
    assert (await again.ask("h2")).status.code is ERROR_TEMP
    assert await again.held() == ["alice-p-1"]
    desk.clock.advance(HOUR - 60)
    assert (await again.ask("h2", user="bob")).status.code is TEMP
    await again.broker.close()


async def test_an_alert_is_raised_and_ends() -> None:
    raised: list[bool] = []

    class Alarm:
        def __getattr__(self, name: str) -> object:
            return raised.append if name == "clock_jumped" else lambda *_, **__: None

    desk = await Desk.open(metrics=Alarm())
    desk.clock.advance(5)
    await desk.settle()
    for step, alarmed in ((0, False), (HOUR, True), (-HOUR, False)):
        desk.clock.jump(step)
        desk.clock.advance(5)
        await desk.settle()
        assert raised[-1] is alarmed
    await desk.broker.close()
