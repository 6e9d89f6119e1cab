"""ManagePermission: LIST, GET, DONE, EXTEND, REJECT."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from quorate.api.maintenance.action import AvailabilityMode, HostState, IssueType, LockKind, StatusCode
from quorate.api.maintenance.log_record import RecordType
from quorate.errors import Conflict
from quorate.maintenance.entries import PermissionEntry
from quorate.maintenance.messages import Caller, LogTailRequest, PermissionCommand
from quorate.maintenance.moments import SECOND
from tests.maintenance.broker.desk import BEGIN, Desk, replacement

OK, ALLOW, DISALLOW, WRONG = StatusCode.OK, StatusCode.ALLOW, StatusCode.DISALLOW, StatusCode.WRONG_REQUEST
LIST, GET, DONE, EXTEND, REJECT = PermissionCommand


async def test_everybody_sees_their_own_permissions_in_the_order_they_were_given(desk: Desk) -> None:
    desk.model.remove_group(0)
    await desk.ask("h2", "h1")
    await desk.ask("h3", user="bob")
    await desk.manage(EXTEND, "alice-p-1", deadline=BEGIN + 90 * SECOND)
    assert await desk.held() == ["alice-p-1", "alice-p-2"]
    assert await desk.held("bob") == ["bob-p-3"]
    assert await desk.held("carol") == []


async def test_get_answers_in_the_order_asked(desk: Desk) -> None:
    desk.model.remove_group(0)
    await desk.ask("h1", "h2")
    answer = await desk.manage(GET, "alice-p-2", "alice-p-1")
    assert [one.id for one in answer.permissions] == ["alice-p-2", "alice-p-1"]
    assert answer.permissions[0].hosts[0].name == "h2"


@pytest.mark.parametrize("command", [GET, DONE, EXTEND, REJECT])
@pytest.mark.parametrize("unknown", ["alice-p-9", "bob-p-2", ""])
@pytest.mark.parametrize("dry_run", [False, True])
async def test_one_unknown_or_foreign_id_spoils_the_whole_command(
    desk: Desk, command: PermissionCommand, unknown: str, dry_run: bool
) -> None:
    desk.model.remove_group(0)
    await desk.ask("h1")
    await desk.ask("h2", user="bob")
    before = desk.broker.ledger
    answer = await desk.manage(command, "alice-p-1", unknown, deadline=BEGIN + 2 * SECOND, dry_run=dry_run)
    assert (answer.status.code, answer.permissions) == (WRONG, ())
    assert repr(unknown) in answer.status.reason
    assert desk.broker.ledger == before


async def test_a_command_must_be_given(desk: Desk) -> None:
    assert (await desk.manage(None)).status.code is WRONG


@pytest.mark.parametrize("command", [DONE, REJECT])
async def test_done_and_reject_free_what_was_locked(desk: Desk, command: PermissionCommand) -> None:
    await desk.ask("h1")
    answer = await desk.manage(command, "alice-p-1", "alice-p-1", dry_run=True)
    assert (answer.status.code, await desk.held()) == (OK, ["alice-p-1"])
    assert (await desk.manage(command, "alice-p-1", "alice-p-1")).status.code is OK
    assert await desk.held() == []
    assert (await desk.ask("h2", user="bob")).status.code is ALLOW


async def test_what_is_given_back_while_its_host_is_down_stays_locked_until_it_is_up(desk: Desk) -> None:
    await desk.ask("h1")
    desk.put(1, HostState.DOWN)
    desk.clock.advance(10)
    assert (await desk.manage(REJECT, "alice-p-1")).status.code is OK
    (left,) = (await desk.manage(LIST)).permissions
    assert left.deadline == BEGIN + 10 * SECOND
    assert (await desk.ask("h1", user="bob")).status.code is StatusCode.DISALLOW_TEMP
    desk.clock.advance(3600)
    assert await desk.held() == ["alice-p-1"]
    desk.put(1, HostState.UP)
    assert await desk.held() == []
    assert (await desk.ask("h1", user="bob")).status.code is ALLOW


async def test_done_frees_also_a_host_that_is_down(desk: Desk) -> None:
    await desk.ask("h1")
    desk.put(1, HostState.DOWN)
    await desk.manage(DONE, "alice-p-1")
    assert await desk.held() == []
    assert (await desk.ask("h1", user="bob")).status.code is ALLOW


async def test_extend_moves_the_deadline_if_it_would_be_granted_again(desk: Desk) -> None:
    await desk.ask("h1")
    answer = await desk.manage(EXTEND, "alice-p-1", deadline=BEGIN + 900 * SECOND)
    assert (answer.status.code, answer.permissions[0].deadline) == (ALLOW, BEGIN + 900 * SECOND)
    desk.clock.advance(800)
    assert (await desk.ask("h2", user="bob")).status.code is StatusCode.DISALLOW_TEMP


async def test_extend_is_refused_when_something_has_broken_meanwhile(desk: Desk) -> None:
    await desk.ask("h1")
    desk.put(2, HostState.DOWN)
    answer = await desk.manage(EXTEND, "alice-p-1", deadline=BEGIN + 61 * SECOND)
    assert answer.status.code is DISALLOW
    assert "alice-p-1" in answer.status.reason
    (refused,) = answer.permissions
    assert (refused.id, refused.deadline) == ("alice-p-1", BEGIN + 60 * SECOND)
    assert refused.action.issue is not None
    assert [blocker.object for blocker in refused.action.issue.blockers] == ["vdisk-0-1-0-1-0"]
    assert (await desk.manage(LIST)).permissions[0].deadline == BEGIN + 60 * SECOND


async def test_extend_names_who_is_in_the_way_and_changes_nothing_that_is_kept(desk: Desk) -> None:
    await desk.ask("h1")
    desk.clock.advance(60)
    await desk.ask("h2", user="bob")
    answer = await desk.manage(EXTEND, "alice-p-1", deadline=BEGIN + 900 * SECOND)
    (refused,) = answer.permissions
    assert refused.action.issue is not None
    (blocker,) = refused.action.issue.blockers
    assert (blocker.lock, blocker.id, blocker.owner) == (LockKind.PERMISSION, "bob-p-2", "bob")
    assert [one.action.issue for one in (await desk.manage(LIST)).permissions] == [None]


async def test_extend_asks_under_the_mode_it_was_granted_in(desk: Desk) -> None:
    desk.put(2, HostState.DOWN)
    await desk.ask("h1", availability_mode=AvailabilityMode.KEEP_AVAILABLE)
    answer = await desk.manage(EXTEND, "alice-p-1", deadline=BEGIN + 900 * SECOND)
    assert answer.status.code is ALLOW
    desk.put(3, HostState.DOWN)
    assert (await desk.manage(EXTEND, "alice-p-1", deadline=BEGIN + 901 * SECOND)).status.code is DISALLOW


async def test_extend_yields_to_a_volume_that_is_changing(desk: Desk) -> None:
    class Table:
        def take(self, permission: PermissionEntry) -> None:
            raise Conflict("a volume is just changing its members there")

        def drop(self, permission_id: str) -> None:
            pass

    await desk.ask("h1")
    desk.broker._core.locks = Table()
    answer = await desk.manage(EXTEND, "alice-p-1", deadline=BEGIN + 900 * SECOND)
    assert (answer.status.code, "just changing" in answer.status.reason) == (DISALLOW, True)
    assert "just changing" in str(answer.permissions[0].action.issue)
    assert (await desk.manage(EXTEND, "alice-p-1", deadline=BEGIN + 30 * SECOND)).status.code is ALLOW
    assert (await desk.manage(LIST)).permissions[0].deadline == BEGIN + 30 * SECOND


async def test_extend_is_all_or_nothing(desk: Desk) -> None:
    desk.model.remove_group(0)
    await desk.ask("h1")
    await desk.ask("h2", duration=600 * SECOND)
    desk.model.remove_node(1)
    answer = await desk.manage(EXTEND, "alice-p-2", "alice-p-1", deadline=BEGIN + 100 * SECOND)
    assert answer.status.code is DISALLOW
    assert [one.id for one in answer.permissions] == ["alice-p-1"]
    assert [one.deadline for one in (await desk.manage(LIST)).permissions] == [
        BEGIN + 60 * SECOND,
        BEGIN + 600 * SECOND,
    ]


async def test_shortening_is_always_allowed(desk: Desk) -> None:
    await desk.ask("h1")
    desk.put(2, HostState.DOWN)
    answer = await desk.manage(EXTEND, "alice-p-1", deadline=BEGIN + 5 * SECOND)
    assert (answer.status.code, answer.permissions[0].deadline) == (ALLOW, BEGIN + 5 * SECOND)
    desk.put(2, HostState.UP)
    desk.clock.advance(5)
    assert (await desk.ask("h2", user="bob")).status.code is ALLOW


@pytest.mark.parametrize("deadline", [BEGIN + 5 * SECOND, BEGIN + 900 * SECOND])
async def test_a_dry_run_of_extend_answers_the_same(desk: Desk, deadline: int) -> None:
    await desk.ask("h1")
    before = desk.broker.ledger
    tried = await desk.manage(EXTEND, "alice-p-1", deadline=deadline, dry_run=True)
    assert desk.broker.ledger == before
    assert tried == await desk.manage(EXTEND, "alice-p-1", deadline=deadline)


@pytest.mark.parametrize("deadline", [None, -1, 2**64])
async def test_extend_needs_a_deadline(desk: Desk, deadline: int | None) -> None:
    await desk.ask("h1")
    assert (await desk.manage(EXTEND, "alice-p-1", deadline=deadline)).status.code is WRONG


async def test_replaced_devices_have_no_hosts_to_show(desk: Desk) -> None:
    answer = await desk.ask(replacement("pdisk-1-1"))
    assert answer.permissions[0].hosts == ()


async def test_grants_and_ends_are_in_the_log(desk: Desk) -> None:
    await desk.ask("h1")
    await desk.ask("h1", user="bob")
    await desk.done("alice-p-1")
    records = (await desk.broker.get_log_tail(LogTailRequest(include_data=True), Caller(name="someone"))).records
    assert [(one.record_type, one.data.get("id"), one.data.get("why")) for one in records] == [
        (RecordType.CMS_LOADED, None, None),
        (RecordType.PERMISSION_GRANTED, "alice-p-1", None),
        (RecordType.PERMISSION_ENDED, "alice-p-1", "DONE"),
    ]
    assert len({one.timestamp for one in records}) == 3


async def test_refusals_are_counted_by_reason() -> None:
    counted = Counted()
    desk = await Desk.open(metrics=counted)
    await desk.ask("h1")
    await desk.ask("h2", user="bob")
    await desk.ask("h2", user="bob", dry_run=True)
    assert counted.grants == 1
    assert counted.refusals == [IssueType.TOO_MANY_UNAVAILABLE_VDISKS]
    desk.clock.advance(7)
    assert (counted.oldest_lock(), counted.held(), counted.stored()) == (7.0, 1, 0)
    await desk.broker.close()


class Counted:
    """Implements the Metrics port, for looking at."""

    def __init__(self) -> None:
        self.refusals: list[IssueType] = []
        self.grants = 0

    def answered(self, question: str, code: StatusCode) -> None:
        pass

    def refused(self, reason: IssueType) -> None:
        self.refusals.append(reason)

    def granted(self, permissions: int) -> None:
        self.grants += permissions

    def clock_jumped(self, jumped: bool) -> None:
        pass

    def watch(self, *, oldest_lock: Callable[[], float], held: Callable[[], int], stored: Callable[[], int]) -> None:
        self.oldest_lock, self.held, self.stored = oldest_lock, held, stored
