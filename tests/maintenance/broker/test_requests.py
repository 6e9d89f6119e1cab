"""PermissionRequest, CheckRequest, ManageRequest."""

from __future__ import annotations

from typing import Any

import pytest

from quorate.api.maintenance.action import (
    ActionType,
    AvailabilityMode,
    HostState,
    Issue,
    IssueType,
    LockKind,
    StatusCode,
    TenantPolicy,
)
from quorate.api.maintenance.broker_config import Limits
from quorate.api.struct import replace
from quorate.maintenance.entries import Ledger
from quorate.maintenance.messages import Action, PermissionRequest, RequestCommand
from quorate.maintenance.moments import FOREVER, SECOND
from quorate.maintenance.nouns import NodeInfo
from tests.maintenance.broker.desk import ANYONE, BEGIN, SETTINGS, Desk, hosts, ids, replacement, shutdown

ALLOW, PARTIAL, DISALLOW, TEMP = (
    StatusCode.ALLOW,
    StatusCode.ALLOW_PARTIAL,
    StatusCode.DISALLOW,
    StatusCode.DISALLOW_TEMP,
)
WRONG = StatusCode.WRONG_REQUEST
KEEP = AvailabilityMode.KEEP_AVAILABLE


async def test_a_grant_has_an_id_a_deadline_and_the_hosts_nodes(desk: Desk) -> None:
    answer = await desk.ask("h1", reason="new memory")
    (permission,) = answer.permissions
    assert (answer.status.code, answer.request_id, answer.deadline) == (ALLOW, "", None)
    assert (permission.id, permission.deadline) == ("alice-p-1", BEGIN + 60 * SECOND)
    assert permission.action == shutdown("h1")
    assert [(node.name, node.node_id, node.state) for node in permission.hosts] == [("h1", 1, HostState.UP)]
    assert desk.broker.ledger.permissions[0].reason == "new memory"


@pytest.mark.parametrize(
    ("action", "request_duration", "lasts"),
    [(60 * SECOND, 7 * SECOND, 60 * SECOND), (None, 7 * SECOND, 7 * SECOND), (None, None, 300 * SECOND)],
)
async def test_a_permission_lasts_as_its_action_says_or_its_request_or_the_settings(
    desk: Desk, action: int | None, request_duration: int | None, lasts: int
) -> None:
    answer = await desk.broker.permission_request(_request(shutdown("h1", action), duration=request_duration), ANYONE)
    assert answer.permissions[0].deadline == BEGIN + lasts


async def test_a_duration_without_end_is_for_quorates_own_users_and_ends_never(desk: Desk) -> None:
    answer = await desk.ask("h1", user="quorate-drives", duration=FOREVER)
    assert answer.permissions[0].deadline == FOREVER
    desk.clock.advance(10**9)
    assert await desk.held("quorate-drives") == ["quorate-drives-p-1"]


async def test_without_partial_it_is_all_or_nothing(desk: Desk) -> None:
    desk.model.put_node(NodeInfo(id=9, host="h9"))
    await desk.ask("h1", user="bob")
    answer = await desk.ask("h9", "h3")
    assert (answer.status.code, answer.permissions, answer.request_id) == (TEMP, (), "")
    assert answer.deadline == BEGIN + 60 * SECOND
    assert await desk.held() == []


async def test_with_partial_what_can_be_granted_is(desk: Desk) -> None:
    answer = await desk.ask("h1", "h2", "h3", partial_permission_allowed=True)
    assert (answer.status.code, ids(answer), answer.request_id) == (PARTIAL, ["alice-p-1"], "")
    assert hosts(answer.refused) == ["h2", "h3"]
    assert (await desk.requests(RequestCommand.LIST)).requests == ()


async def test_a_refusal_names_who_blocks_what_and_until_when(desk: Desk) -> None:
    await desk.ask("h1", user="bob")
    answer = await desk.ask("h1")
    issue = answer.refused[0].issue
    assert issue is not None
    (blocker,) = issue.blockers
    assert (blocker.lock, blocker.id, blocker.owner) == (LockKind.PERMISSION, "bob-p-1", "bob")
    assert "h1" in blocker.object
    assert answer.status.reason == issue.message


async def test_with_schedule_what_must_wait_is_stored(desk: Desk) -> None:
    answer = await desk.ask("h1", "h2", "h3", partial_permission_allowed=True, schedule=True, reason="update")
    assert (answer.status.code, answer.request_id) == (PARTIAL, "alice-r-1")
    (stored,) = (await desk.requests(RequestCommand.LIST)).requests
    assert (stored.request_id, stored.owner, stored.reason, stored.position) == ("alice-r-1", "alice", "update", 1)
    assert hosts(stored.actions) == ["h2", "h3"]
    assert all(action.issue is not None for action in stored.actions)
    assert stored.partial_permission_allowed


async def test_not_partial_with_schedule_stores_all_of_it(desk: Desk) -> None:
    await desk.ask("h1", user="bob")
    answer = await desk.ask(replacement("pdisk-2-1"), schedule=True)
    assert (answer.status.code, answer.request_id) == (TEMP, "alice-r-1")
    assert desk.broker.ledger.requests[0].last_deadline == answer.deadline


@pytest.mark.parametrize(
    ("actions", "code"),
    [
        ((shutdown("h1"), shutdown("h2")), DISALLOW),
        ((shutdown("nowhere"),), StatusCode.NO_SUCH_HOST),
        ((replacement("pdisk-9-9"),), StatusCode.NO_SUCH_DEVICE),
        ((Action(type=ActionType.ADD_HOST, host="h1"),), StatusCode.ERROR),
        ((Action(type=ActionType.RESTART_SERVICES, host="h1", services=("dynnode",)),), StatusCode.NO_SUCH_SERVICE),
        ((Action(host="h1"),), WRONG),
    ],
)
async def test_what_can_never_be_granted_is_not_stored(
    desk: Desk, actions: tuple[Action, ...], code: StatusCode
) -> None:
    answer = await desk.ask(*actions, schedule=True)
    assert (answer.status.code, answer.request_id, answer.permissions) == (code, "", ())
    assert answer.status.reason
    assert desk.broker.ledger.requests == ()


async def test_no_actions_are_allowed_and_change_nothing(desk: Desk) -> None:
    before = desk.broker.ledger
    answer = await desk.ask()
    assert (answer.status.code, answer.permissions) == (ALLOW, ())
    assert desk.broker.ledger == before


@pytest.mark.parametrize(
    ("request_", "word"),
    [
        ({"priority": 101}, "Priority is 101"),
        ({"priority": -101}, "Priority is -101"),
        ({"reason": "x" * 1025}, "Reason"),
        ({"duration": 2**64}, "Duration"),
        ({"actions": (shutdown("h1"),) * 2001}, "2001 actions"),
        ({"actions": (replace(shutdown("h1"), issue=Issue(type=IssueType.GENERIC)),)}, "Actions[0].Issue"),
        ({"actions": (shutdown("h1"), shutdown("h" * 254))}, "Actions[1].Host"),
        ({"actions": (replace(shutdown("h1"), tenant="t"),)}, "Tenant"),
        ({"actions": (shutdown("h1", -1),)}, "Actions[0].Duration"),
        ({"actions": (replacement(*["pdisk-1-1"] * 65),)}, "Devices"),
        ({"actions": (replacement(""),)}, "Devices"),
        ({"actions": (replace(shutdown("h1"), services=("",)),)}, "Services"),
        ({"user": ""}, "User"),
        ({"user": "u" * 129}, "User"),
    ],
)
async def test_a_wrong_request_is_told_which_field_is_wrong(desk: Desk, request_: dict[str, Any], word: str) -> None:
    before = desk.broker.ledger
    message = replace(_request(shutdown("h1")), **request_)
    answer = await desk.broker.permission_request(message, ANYONE)
    assert answer.status.code is WRONG
    assert word in answer.status.reason
    assert desk.broker.ledger == before


async def test_a_dry_run_answers_the_same_without_ids_and_changes_nothing(desk: Desk) -> None:
    before = desk.broker.ledger
    tried = await desk.ask("h1", "h2", partial_permission_allowed=True, schedule=True, dry_run=True)
    assert desk.broker.ledger == before
    real = await desk.ask("h1", "h2", partial_permission_allowed=True, schedule=True)
    assert ids(tried) == [""]
    assert (tried.status, tried.deadline, tried.refused) == (real.status, real.deadline, real.refused)
    assert [replace(one, id="") for one in real.permissions] == list(tried.permissions)
    assert (tried.request_id, real.request_id) == ("", "alice-r-1")


async def test_a_check_grants_what_has_become_possible_and_deletes_what_is_done(desk: Desk) -> None:
    first = await desk.ask("h1", "h2", partial_permission_allowed=True, schedule=True)
    assert (await desk.check("alice-r-1")).status.code is TEMP
    await desk.done(*ids(first))
    tried = await desk.check("alice-r-1", dry_run=True)
    assert (tried.status.code, tried.request_id, ids(tried)) == (ALLOW, "", [""])
    answer = await desk.check("alice-r-1")
    assert (answer.status.code, answer.request_id, ids(answer)) == (ALLOW, "", ["alice-p-2"])
    assert desk.broker.ledger.permissions[0].request_id == "alice-r-1"
    assert (await desk.check("alice-r-1")).status.code is WRONG


async def test_the_last_portion_is_allow_and_those_before_are_partial(desk: Desk) -> None:
    answer = await desk.ask("h1", "h2", "h3", partial_permission_allowed=True, schedule=True)
    codes = [answer.status.code]
    while answer.request_id:
        assert await desk.done(*ids(answer)) is StatusCode.OK
        answer = await desk.check("alice-r-1")
        codes.append(answer.status.code)
    assert codes == [PARTIAL, PARTIAL, ALLOW]


async def test_a_check_keeps_the_stored_mode_unless_one_is_given(desk: Desk) -> None:
    desk.put(8, HostState.DOWN)
    assert (await desk.ask("h1", schedule=True)).status.code is TEMP
    assert (await desk.check("alice-r-1")).status.code is TEMP
    assert (await desk.check("alice-r-1", mode=KEEP, dry_run=True)).status.code is ALLOW
    assert desk.broker.ledger.requests[0].availability_mode is AvailabilityMode.MAX_AVAILABILITY
    assert (await desk.check("alice-r-1")).status.code is TEMP
    assert (await desk.check("alice-r-1", mode=KEEP)).status.code is ALLOW


async def test_a_mode_given_in_a_check_stays(desk: Desk) -> None:
    desk.put(8, HostState.DOWN)
    await desk.ask("h1", "h2", partial_permission_allowed=True, schedule=True)
    answer = await desk.check("alice-r-1", mode=KEEP)
    assert answer.status.code is PARTIAL
    assert (await desk.requests(RequestCommand.GET, "alice-r-1")).requests[0].availability_mode is KEEP


async def test_a_check_that_is_refused_for_good_ends_the_request(desk: Desk) -> None:
    first = await desk.ask("h1", "h2", partial_permission_allowed=True, schedule=True)
    await desk.done(*ids(first))
    desk.model.remove_group(0)
    desk.model.remove_drive(next(iter(desk.model.drives_of(2))).id)
    desk.model.remove_node(2)
    answer = await desk.check("alice-r-1")
    assert (answer.status.code, answer.request_id) == (StatusCode.NO_SUCH_HOST, "")
    assert desk.broker.ledger.requests == ()


async def test_who_came_first_goes_first(desk: Desk) -> None:
    await desk.ask("h1", user="carol")
    await desk.ask("h2", schedule=True)
    await desk.ask("h3", user="bob", schedule=True)
    assert await desk.done("carol-p-1", user="carol") is StatusCode.OK
    blocked = await desk.check("bob-r-2", user="bob")
    assert blocked.status.code is TEMP
    assert blocked.refused[0].issue is not None
    assert blocked.refused[0].issue.blockers[0].lock is LockKind.SCHEDULED_REQUEST
    assert (await desk.ask("h4", user="dave")).status.code is TEMP
    assert (await desk.check("alice-r-1")).status.code is ALLOW


async def test_a_more_urgent_request_goes_before(desk: Desk) -> None:
    await desk.ask("h1", user="carol")
    await desk.ask("h2", schedule=True)
    await desk.ask("h3", user="bob", schedule=True, priority=-10)
    listed = (await desk.requests(RequestCommand.LIST)).requests + (
        await desk.requests(RequestCommand.LIST, user="bob")
    ).requests
    assert [(one.request_id, one.position) for one in listed] == [("alice-r-1", 2), ("bob-r-2", 1)]
    await desk.done("carol-p-1", user="carol")
    assert (await desk.check("alice-r-1")).status.code is TEMP
    assert (await desk.check("bob-r-2", user="bob")).status.code is ALLOW


async def test_a_tenant_stands_for_each_of_its_hosts() -> None:
    desk = await Desk.open(nodes=4)
    for number in (2, 3):
        desk.model.put_node(NodeInfo(id=number, host=f"h{number}", tenant="shop"))
    desk.model.remove_group(0)
    action = Action(type=ActionType.SHUTDOWN_HOST, tenant="shop", duration=SECOND)
    answer = await desk.ask(action)
    assert (answer.status.code, hosts(one.action for one in answer.permissions)) == (ALLOW, ["h2", "h3"])
    assert (await desk.ask(replace(action, tenant="nobody"))).status.code is StatusCode.NO_SUCH_HOST
    await desk.broker.close()


async def test_a_tenants_limits_count_unless_the_policy_says_none() -> None:
    desk = await Desk.open(nodes=4)
    desk.model.remove_group(0)
    for number in (1, 2, 3):
        desk.model.put_node(NodeInfo(id=number, host=f"h{number}", tenant="shop"))
    limits = Limits(disabled_nodes_limit=1, disabled_nodes_ratio_limit=0)
    desk.broker.configure(replace(SETTINGS, tenant_limits=limits))
    assert (await desk.ask("h1")).status.code is ALLOW
    assert (await desk.ask("h2")).status.code is TEMP
    assert (await desk.ask("h2", tenant_policy=TenantPolicy.NONE)).status.code is ALLOW
    await desk.broker.close()


@pytest.mark.parametrize("command", [RequestCommand.GET, RequestCommand.REJECT])
@pytest.mark.parametrize(("user", "request_id"), [("alice", "alice-r-9"), ("bob", "alice-r-1"), ("alice", "")])
async def test_only_the_owner_manages_a_request(
    desk: Desk, command: RequestCommand, user: str, request_id: str
) -> None:
    await desk.ask("h1", user="carol")
    await desk.ask("h2", schedule=True)
    answer = await desk.requests(command, request_id, user=user)
    assert (answer.status.code, answer.requests) == (WRONG, ())
    assert len(desk.broker.ledger.requests) == 1
    assert (await desk.check(request_id, user=user)).status.code is WRONG


async def test_a_request_that_is_rejected_blocks_nobody_and_its_permissions_stay(desk: Desk) -> None:
    await desk.ask("h1", "h2", partial_permission_allowed=True, schedule=True)
    assert (await desk.requests(RequestCommand.REJECT, "alice-r-1", dry_run=True)).status.code is StatusCode.OK
    assert len((await desk.requests(RequestCommand.LIST)).requests) == 1
    assert (await desk.requests(RequestCommand.REJECT, "alice-r-1")).status.code is StatusCode.OK
    assert desk.broker.ledger.requests == ()
    assert await desk.held() == ["alice-p-1"]
    await desk.done("alice-p-1")
    assert (await desk.ask("h2", user="bob")).status.code is ALLOW


async def test_a_request_without_a_command_is_wrong(desk: Desk) -> None:
    assert (await desk.requests(None)).status.code is WRONG


async def test_numbers_are_never_given_twice(desk: Desk) -> None:
    for _ in range(3):
        answer = await desk.ask("h1")
        await desk.done(*ids(answer))
    assert ids(answer) == ["alice-p-3"]
    again = await desk.again()
    assert ids(await again.ask("h1", user="bob")) == ["bob-p-4"]
    await again.broker.close()


async def test_the_ledger_is_as_it_was_after_a_restart(desk: Desk) -> None:
    await desk.ask("h1", "h2", partial_permission_allowed=True, schedule=True)
    before = desk.broker.ledger
    again = await desk.again(holder="two")
    assert _contents(again.broker.ledger) == _contents(before)
    assert again.broker.ledger.epoch == before.epoch + 1
    await again.broker.close()


def _contents(ledger: Ledger) -> tuple[object, ...]:
    return ledger.counters, ledger.permissions, ledger.requests, ledger.notifications, ledger.tasks, ledger.markers


def _request(*actions: Action, **more: Any) -> PermissionRequest:
    return PermissionRequest(user="alice", actions=actions, **more)


async def test_work_that_takes_no_time_locks_for_the_usual_time(desk: Desk) -> None:
    answers = [await desk.ask(f"h{number}", duration=0) for number in range(1, 9)]
    assert [answer.status.code for answer in answers] == [StatusCode.ALLOW] + 7 * [StatusCode.DISALLOW_TEMP]
    (first,) = answers[0].permissions
    assert first.deadline == BEGIN + SETTINGS.default_permission_duration.microseconds


async def test_a_request_that_contradicts_itself_is_not_stored_whoever_else_is_in_its_way(desk: Desk) -> None:
    await desk.ask("h1", user="bob")
    answer = await desk.ask("h2", "h3", schedule=True)
    assert (answer.status.code, answer.request_id) == (StatusCode.DISALLOW, "")
    assert desk.broker.ledger.requests == ()
