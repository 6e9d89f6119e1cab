"""Wall-E's tasks."""

from __future__ import annotations

import pytest

from quorate.api.maintenance.action import ActionType, StatusCode
from quorate.api.maintenance.broker_config import CallerPriority
from quorate.api.struct import replace
from quorate.maintenance.messages import (
    ManagePermission,
    PermissionCommand,
    RequestCommand,
    WalleCheckTask,
    WalleCreateTask,
    WalleListTasks,
    WalleRemoveTask,
    WalleTask,
)
from quorate.maintenance.moments import FOREVER, SECOND
from quorate.maintenance.nouns import DriveId, DriveInfo
from tests.maintenance.broker.desk import ANYONE, Desk

OK, ALLOW, TEMP, DISALLOW, WRONG = (
    StatusCode.OK,
    StatusCode.ALLOW,
    StatusCode.DISALLOW_TEMP,
    StatusCode.DISALLOW,
    StatusCode.WRONG_REQUEST,
)


async def create(
    desk: Desk,
    name: str = "t",
    action: str = "reboot",
    *hosts: str,
    devices: tuple[str, ...] = (),
    dry_run: bool = False,
) -> StatusCode:
    task = WalleTask(id=name, action=action, type="manual", issuer="bob", hosts=hosts or ("h1",), devices=devices)
    answer = await desk.broker.walle_create(WalleCreateTask(task=task, dry_run=dry_run), ANYONE)
    assert answer.task == task
    assert answer.status.reason or answer.status.code in (OK, ALLOW)
    return answer.status.code


async def check(desk: Desk, name: str = "t") -> StatusCode:
    return (await desk.broker.walle_check(WalleCheckTask(task_id=name), ANYONE)).status.code


async def remove(desk: Desk, name: str = "t") -> StatusCode:
    return (await desk.broker.walle_remove(WalleRemoveTask(task_id=name), ANYONE)).status.code


async def tasks(desk: Desk) -> dict[str, StatusCode]:
    answer = await desk.broker.walle_list(WalleListTasks(), ANYONE)
    assert answer.status.code is OK
    return {one.task.id: one.status.code for one in answer.tasks}


@pytest.mark.parametrize(
    "action",
    [
        "reboot",
        "power-off",
        "change-memory",
        "profile",
        "redeploy",
        "repair-link",
        "repair-bmc",
        "repair-overheat",
        "repair-capping",
        "temporary-unreachable",
    ],
)
async def test_most_actions_take_the_host_down_without_end(desk: Desk, action: str) -> None:
    assert await create(desk, "t", action) is ALLOW
    (permission,) = desk.broker.ledger.permissions
    assert (permission.owner, permission.id, permission.deadline) == ("Wall-E", "Wall-E-p-1", FOREVER)
    assert (permission.action.type, permission.action.host) == (ActionType.SHUTDOWN_HOST, "h1")
    assert await create(desk, "u", action, "h2") is TEMP
    assert desk.broker.ledger.requests[0].priority == 0


async def test_a_task_that_came_first_is_not_overtaken_by_who_comes_later(desk: Desk) -> None:
    await create(desk, "t", "reboot")
    assert await create(desk, "u", "reboot", "h2") is TEMP
    later = await desk.ask("h2", user="alice", schedule=True)
    assert later.refused[0].issue is not None
    assert [blocker.owner for blocker in later.refused[0].issue.blockers] == ["Wall-E"]
    assert [entry.owner for entry in desk.broker.ledger.requests] == ["Wall-E", "alice"]
    await remove(desk, "t")
    assert (await desk.ask("h2", user="bob")).status.code is TEMP
    assert await check(desk, "u") is ALLOW


async def test_the_configuration_may_put_callers_before_or_behind_others(desk: Desk) -> None:
    desk.broker.configure(replace(desk.model.settings, priorities=(CallerPriority(user="Wall-E", priority=20),)))
    await create(desk, "t", "reboot")
    assert await create(desk, "u", "reboot", "h2") is TEMP
    asked = await desk.ask("h2", user="alice", schedule=True)
    assert [(entry.owner, entry.priority) for entry in desk.broker.ledger.requests] == [("Wall-E", 20), ("alice", 0)]
    await remove(desk, "t")
    assert (await desk.check(asked.request_id)).status.code is ALLOW
    # Who gives a priority has that one.
    await desk.ask("h2", user="Wall-E", schedule=True, priority=-1)
    assert desk.broker.ledger.requests[-1].priority == -1


@pytest.mark.parametrize("action", ["prepare", "deactivate"])
async def test_what_takes_nothing_down_is_ok_at_once_and_not_stored(desk: Desk, action: str) -> None:
    assert await create(desk, "t", action, "h1", "h2") is OK
    assert await tasks(desk) == {}
    assert await check(desk) is WRONG


async def test_a_task_goes_on_when_its_permission_comes_and_ends_when_it_is_removed(desk: Desk) -> None:
    await desk.ask("h1", user="bob")
    assert await create(desk, "t", "reboot", "h2") is TEMP
    assert await check(desk) is TEMP
    assert await tasks(desk) == {"t": TEMP}
    await desk.done("bob-p-1", user="bob")
    assert await tasks(desk) == {"t": TEMP}
    assert await check(desk) is ALLOW
    assert await tasks(desk) == {"t": ALLOW}
    assert await check(desk) is ALLOW
    assert [one.id for one in desk.broker.ledger.permissions] == ["Wall-E-p-2"]
    assert await remove(desk) is OK
    assert (desk.broker.ledger.permissions, desk.broker.ledger.tasks) == ((), ())
    assert await check(desk) is WRONG
    assert await remove(desk) is WRONG


async def test_a_task_that_waits_can_be_removed(desk: Desk) -> None:
    await desk.ask("h1", user="bob")
    await create(desk, "t", "reboot", "h2")
    assert await remove(desk) is OK
    assert (desk.broker.ledger.requests, desk.broker.ledger.tasks) == ((), ())


async def test_several_hosts_go_together_or_not_at_all(desk: Desk) -> None:
    assert await create(desk, "t", "reboot", "h1", "h2") is DISALLOW
    assert await tasks(desk) == {}
    desk.model.remove_group(0)
    assert await create(desk, "t", "reboot", "h1", "h2") is ALLOW
    assert await desk.held("Wall-E") == ["Wall-E-p-1", "Wall-E-p-2"]
    assert await remove(desk) is OK
    assert await desk.held("Wall-E") == []


@pytest.mark.parametrize(
    ("action", "hosts", "devices"),
    [
        ("dance", ("h1",), ()),
        ("", ("h1",), ()),
        ("reboot", (), ()),
        ("reboot", ("nowhere",), ()),
        ("reboot", ("h1", "nowhere"), ()),
        ("prepare", ("nowhere",), ()),
        ("prepare", ("h1", "nowhere"), ()),
        ("prepare", (), ()),
        ("deactivate", ("nowhere",), ()),
        ("change-disk", ("h1",), ("pdisk-2-1",)),
        ("change-disk", ("h1",), ("pdisk-1-1", "vdisk-0-1-0-1-0")),
        ("reboot", ("h1",), ("pdisk-1-1",)),
        ("change-disk", ("h1", "h2"), ("pdisk-1-1",)),
        ("change-disk", ("h1",), ("pdisk-1-7",)),
        ("change-disk", ("h1",), ("pdisk-1-1",) * 65),
    ],
)
@pytest.mark.parametrize("dry_run", [False, True])
async def test_a_task_that_makes_no_sense_is_wrong(
    desk: Desk, action: str, hosts: tuple[str, ...], devices: tuple[str, ...], dry_run: bool
) -> None:
    before = desk.broker.ledger
    task = WalleTask(id="t", action=action, hosts=hosts, devices=devices)
    answer = await desk.broker.walle_create(WalleCreateTask(task=task, dry_run=dry_run), ANYONE)
    assert answer.status.code is WRONG
    assert answer.status.reason
    assert desk.broker.ledger == before


@pytest.mark.parametrize("name", ["", "t" * 254])
async def test_a_task_needs_a_name(desk: Desk, name: str) -> None:
    assert await create(desk, name) is WRONG


async def test_change_disk_is_for_all_drives_of_each_host_or_those_listed(desk: Desk) -> None:
    desk.model.remove_group(0)
    desk.model.put_drive(DriveInfo(id=DriveId(1, 2), path="/dev/sdb"))
    assert await create(desk, "all", "change-disk", "h1", "h2") is ALLOW
    assert [(one.action.type, one.action.devices) for one in desk.broker.ledger.permissions] == [
        (ActionType.REPLACE_DEVICES, ("pdisk-1-1", "pdisk-1-2")),
        (ActionType.REPLACE_DEVICES, ("pdisk-2-1",)),
    ]
    assert await create(desk, "some", "change-disk", "h3", devices=("pdisk-3-1",)) is ALLOW
    assert await create(desk, "path", "change-disk", "h4", devices=("/dev/sda",)) is ALLOW


async def test_a_shelf_of_drives_is_changed_as_a_whole(desk: Desk) -> None:
    desk.model.remove_group(0)
    for number in range(2, 151):
        desk.model.put_drive(DriveInfo(id=DriveId(1, number)))
    assert await create(desk, "t", "change-disk") is ALLOW
    assert [len(one.action.devices) for one in desk.broker.ledger.permissions] == [64, 64, 22]


async def test_a_host_without_drives_has_none_to_change(desk: Desk) -> None:
    desk.model.remove_group(0)
    desk.model.remove_drive(DriveId(1, 1))
    assert await create(desk, "t", "change-disk") is WRONG


async def test_a_dry_run_answers_the_same_and_stores_nothing(desk: Desk) -> None:
    before = desk.broker.ledger
    assert await create(desk, "t", "reboot", dry_run=True) is ALLOW
    assert await create(desk, "t", "reboot", "h1", "h2", dry_run=True) is DISALLOW
    assert desk.broker.ledger == before
    await desk.ask("h8", user="bob")
    before = desk.broker.ledger
    assert await create(desk, "t", "reboot", dry_run=True) is TEMP
    assert desk.broker.ledger == before


async def test_creating_a_task_again_is_asking_again(desk: Desk) -> None:
    await desk.ask("h8", user="bob")
    assert await create(desk) is TEMP
    assert await create(desk) is TEMP
    assert len(desk.broker.ledger.requests) == 1
    await desk.done("bob-p-1", user="bob")
    assert await create(desk, dry_run=True) is ALLOW
    assert await tasks(desk) == {"t": TEMP}
    assert await create(desk) is ALLOW
    assert await create(desk) is ALLOW
    assert await create(desk, dry_run=True) is ALLOW
    assert len(desk.broker.ledger.permissions) == 1


async def test_another_task_of_the_same_name_is_wrong(desk: Desk) -> None:
    await create(desk)
    before = desk.broker.ledger
    assert await create(desk, "t", "reboot", "h2") is WRONG
    assert await create(desk, "t", "power-off", "h1", dry_run=True) is WRONG
    assert desk.broker.ledger == before


async def test_a_task_without_anything_left_is_gone(desk: Desk) -> None:
    await create(desk)
    message = ManagePermission(command=PermissionCommand.DONE, user="Wall-E", permissions=("Wall-E-p-1",))
    await desk.broker.manage_permission(message, ANYONE)
    assert desk.broker.ledger.tasks == ()
    assert await check(desk) is WRONG
    await desk.ask("h8", user="bob")
    assert await create(desk) is TEMP
    await desk.requests(RequestCommand.REJECT, "Wall-E-r-1", user="Wall-E")
    assert desk.broker.ledger.tasks == ()


async def test_a_task_whose_request_is_refused_for_good_is_gone(desk: Desk) -> None:
    await desk.ask("h8", user="bob")
    assert await create(desk) is TEMP
    desk.model.remove_group(0)
    desk.model.remove_drive(DriveId(1, 1))
    desk.model.remove_node(1)
    assert await check(desk) is WRONG
    assert await tasks(desk) == {}
    assert desk.broker.ledger.requests == ()


async def test_tasks_survive_a_restart(desk: Desk) -> None:
    desk.clock.advance(1)
    await create(desk, "t")
    await create(desk, "u", "reboot", "h2")
    again = await desk.again()
    assert await tasks(again) == {"t": ALLOW, "u": TEMP}
    desk.clock.advance(10**7)
    assert await check(again) is ALLOW
    await remove(again)
    assert await check(again, "u") is ALLOW
    assert again.broker.ledger.permissions[0].granted_at % SECOND == 0
    await again.broker.close()


async def test_a_task_has_what_its_request_got_whoever_asked(desk: Desk) -> None:
    await desk.ask("h8", user="bob")
    assert await create(desk) is TEMP
    await desk.done("bob-p-1", user="bob")
    assert (await desk.check("Wall-E-r-1", user="Wall-E")).status.code is ALLOW
    assert await tasks(desk) == {"t": ALLOW}
    assert await remove(desk) is OK
    assert desk.broker.ledger.permissions == ()


async def test_two_hosts_of_a_group_are_rejected_beside_a_foreign_permission_too(desk: Desk) -> None:
    await desk.ask("h1", user="alice")
    assert await create(desk, "t", "reboot", "h2", "h3") is DISALLOW
    assert desk.broker.ledger.requests == ()
