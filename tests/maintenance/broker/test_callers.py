"""Who may ask for whom."""

from __future__ import annotations

import pytest

from quorate.api.maintenance.action import StatusCode
from quorate.maintenance.broker.callers import user_of
from quorate.maintenance.broker.declined import Declined
from quorate.maintenance.messages import (
    Caller,
    ManagePermission,
    PermissionCommand,
    SetConfig,
    Status,
    WalleCheckTask,
    WalleListTasks,
)
from tests.maintenance.broker.desk import Desk

ALICE = Caller(name="alice")
ADMIN = Caller(name="root", admin=True)
ANYONE = Caller(anyone=True)
NOBODY = Caller()


@pytest.mark.parametrize(
    ("named", "caller", "user"),
    [
        ("", ALICE, "alice"),
        ("alice", ALICE, "alice"),
        ("", ADMIN, "root"),
        ("bob", ADMIN, "bob"),
        ("bob", ANYONE, "bob"),
        ("Björn Ågren", ANYONE, "Björn Ågren"),
    ],
)
def test_the_user_is_the_caller_or_whom_an_admin_names_or_whoever_is_believed(
    named: str, caller: Caller, user: str
) -> None:
    assert user_of(named, caller) == user


@pytest.mark.parametrize(
    ("named", "caller", "code"),
    [
        ("bob", ALICE, StatusCode.UNAUTHORIZED),
        ("", NOBODY, StatusCode.UNAUTHORIZED),
        ("bob", NOBODY, StatusCode.UNAUTHORIZED),
        ("", ANYONE, StatusCode.WRONG_REQUEST),
        ("x" * 129, ANYONE, StatusCode.WRONG_REQUEST),
        ("a\nb", ANYONE, StatusCode.WRONG_REQUEST),
        ("a\x00", ADMIN, StatusCode.WRONG_REQUEST),
        ("\x85", ANYONE, StatusCode.WRONG_REQUEST),
        ("\ud800", ANYONE, StatusCode.WRONG_REQUEST),
    ],
)
def test_others_are_turned_away(named: str, caller: Caller, code: StatusCode) -> None:
    with pytest.raises(Declined) as declined:
        user_of(named, caller)
    assert declined.value.status.code is code


async def test_an_admin_ends_what_another_owns_by_naming_them(desk: Desk) -> None:
    await desk.ask("h1")
    message = ManagePermission(command=PermissionCommand.DONE, user="alice", permissions=("alice-p-1",))
    mallory = await desk.broker.manage_permission(message, Caller(name="mallory"))
    assert mallory.status.code is StatusCode.UNAUTHORIZED
    assert await desk.held() == ["alice-p-1"]
    assert (await desk.broker.manage_permission(message, ADMIN)).status.code is StatusCode.OK
    assert await desk.held() == []


async def test_the_same_user_over_an_open_interface_and_by_name_is_one_user(desk: Desk) -> None:
    await desk.ask("h1", user="", caller=ALICE)
    assert await desk.held("alice") == ["alice-p-1"]


@pytest.mark.parametrize(
    ("caller", "code"),
    [
        (ALICE, StatusCode.UNAUTHORIZED),
        (NOBODY, StatusCode.UNAUTHORIZED),
        (ADMIN, StatusCode.OK),
        (ANYONE, StatusCode.OK),
    ],
)
async def test_settings_and_the_clock_are_for_admins(desk: Desk, caller: Caller, code: StatusCode) -> None:
    assert (await desk.broker.set_config(SetConfig(), caller)).status.code is code
    assert (await desk.broker.accept_time(caller)).code is code


@pytest.mark.parametrize(
    ("caller", "allowed"),
    [(ALICE, False), (NOBODY, False), (Caller(name="Wall-E"), True), (ADMIN, True), (ANYONE, True)],
)
async def test_walle_is_for_walle_and_admins(desk: Desk, caller: Caller, allowed: bool) -> None:
    answers: list[Status] = [
        (await desk.broker.walle_list(WalleListTasks(), caller)).status,
        (await desk.broker.walle_check(WalleCheckTask(task_id="t"), caller)).status,
    ]
    refused = [status.code is StatusCode.UNAUTHORIZED for status in answers]
    assert refused == [not allowed, not allowed]
