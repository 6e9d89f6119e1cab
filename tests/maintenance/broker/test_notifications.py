"""Notifications: what is told, and what it means for those who ask."""

from __future__ import annotations

import pytest

from quorate.api.maintenance.action import ActionType, LockKind, StatusCode
from quorate.maintenance.messages import (
    Action,
    ManageNotification,
    ManageNotificationResponse,
    NotificationCommand,
    NotificationRequest,
    NotificationResponse,
)
from quorate.maintenance.moments import SECOND
from tests.maintenance.broker.desk import ANYONE, BEGIN, Desk, replacement, shutdown

OK, WRONG = StatusCode.OK, StatusCode.WRONG_REQUEST


async def tell(desk: Desk, *actions: Action, at: int = 0, user: str = "alice") -> NotificationResponse:
    message = NotificationRequest(user=user, actions=actions, time=BEGIN + at * SECOND, reason="new switch")
    return await desk.broker.notification(message, ANYONE)


async def manage(
    desk: Desk, command: NotificationCommand | None, name: str = "", *, user: str = "alice", dry_run: bool = False
) -> ManageNotificationResponse:
    message = ManageNotification(command=command, user=user, notification_id=name, dry_run=dry_run)
    return await desk.broker.manage_notification(message, ANYONE)


async def test_a_notification_gets_a_number_and_is_kept(desk: Desk) -> None:
    assert (await tell(desk, shutdown("h1"), at=1000)).notification_id == "alice-n-1"
    assert (await tell(desk, replacement("pdisk-2-1"), user="bob")).notification_id == "bob-n-2"
    for answer in (
        await manage(desk, NotificationCommand.LIST),
        await manage(desk, NotificationCommand.GET, "alice-n-1"),
    ):
        (kept,) = answer.notifications
        assert answer.status.code is OK
        assert (kept.notification_id, kept.owner, kept.time, kept.reason, kept.actions) == (
            "alice-n-1",
            "alice",
            BEGIN + 1000 * SECOND,
            "new switch",
            (shutdown("h1"),),
        )


async def test_telling_is_not_asking(desk: Desk) -> None:
    everything = tuple(shutdown(f"h{number}") for number in range(1, 9))
    assert (await tell(desk, *everything)).status.code is OK


@pytest.mark.parametrize(
    ("actions", "at", "code"),
    [
        ((), 0, WRONG),
        ((shutdown("h1", None),), 0, WRONG),
        ((shutdown("h1", 0),), 0, WRONG),
        ((shutdown("h1", 60 * SECOND),), -61, WRONG),
        ((shutdown("h1"), shutdown("h2", 5 * SECOND)), -10, WRONG),
        ((shutdown("h1", -5),), 0, WRONG),
        ((shutdown("nowhere"),), 0, StatusCode.NO_SUCH_HOST),
        ((shutdown("nowhere"), shutdown("h1", 0)), 0, StatusCode.NO_SUCH_HOST),
        ((replacement("pdisk-1-9"),), 0, StatusCode.NO_SUCH_DEVICE),
        ((Action(type=ActionType.STOP_SERVICES, host="h1", duration=SECOND),), 0, StatusCode.ERROR),
        ((Action(host="h1", duration=SECOND),), 0, WRONG),
    ],
)
async def test_what_makes_no_sense_is_not_noted(
    desk: Desk, actions: tuple[Action, ...], at: int, code: StatusCode
) -> None:
    before = desk.broker.ledger
    answer = await tell(desk, *actions, at=at)
    assert (answer.status.code, answer.notification_id) == (code, "")
    assert answer.status.reason
    assert desk.broker.ledger == before


async def test_work_that_overlaps_what_was_announced_waits_for_its_end(desk: Desk) -> None:
    await tell(desk, shutdown("h1", 100 * SECOND), at=100)
    answer = await desk.ask("h1", user="bob")
    assert (answer.status.code, answer.deadline) == (StatusCode.DISALLOW_TEMP, BEGIN + 200 * SECOND + 1)
    issue = answer.refused[0].issue
    assert issue is not None
    assert (issue.blockers[0].lock, issue.blockers[0].id, issue.blockers[0].owner) == (
        LockKind.NOTIFICATION,
        "alice-n-1",
        "alice",
    )


async def test_work_that_is_over_before_what_was_announced_is_granted(desk: Desk) -> None:
    await tell(desk, shutdown("h1", 100 * SECOND), at=121)
    assert (await desk.ask("h1", user="bob")).status.code is StatusCode.ALLOW


async def test_a_notification_that_is_taken_back_blocks_nobody(desk: Desk) -> None:
    await tell(desk, shutdown("h1"))
    assert (await manage(desk, NotificationCommand.REJECT, "alice-n-1", dry_run=True)).status.code is OK
    assert (await desk.ask("h1", user="bob")).status.code is StatusCode.DISALLOW_TEMP
    assert (await manage(desk, NotificationCommand.REJECT, "alice-n-1")).status.code is OK
    assert (await manage(desk, NotificationCommand.LIST)).notifications == ()
    assert (await desk.ask("h1", user="bob")).status.code is StatusCode.ALLOW


@pytest.mark.parametrize("command", [NotificationCommand.GET, NotificationCommand.REJECT, None])
@pytest.mark.parametrize(("name", "user"), [("alice-n-1", "bob"), ("alice-n-2", "alice"), ("", "alice")])
async def test_only_the_owner_manages_a_notification(
    desk: Desk, command: NotificationCommand | None, name: str, user: str
) -> None:
    await tell(desk, shutdown("h1"))
    answer = await manage(desk, command, name, user=user)
    assert (answer.status.code, answer.notifications) == (WRONG, ())
    assert len(desk.broker.ledger.notifications) == 1


async def test_the_same_object_tells_once(desk: Desk) -> None:
    message = NotificationRequest(user="alice", actions=(shutdown("h1"),), time=BEGIN)
    first = await desk.broker.notification(message, ANYONE, object_uid="uid-1")
    assert await desk.broker.notification(message, ANYONE, object_uid="uid-1") == first
    assert len((await manage(desk, NotificationCommand.LIST)).notifications) == 1
    assert (await desk.broker.withdraw("uid-1")).code is OK
    assert (await manage(desk, NotificationCommand.LIST)).notifications == ()
