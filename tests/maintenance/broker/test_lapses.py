"""What time alone does to permissions, notifications and stored requests."""

from __future__ import annotations

import pytest

from quorate.api.duration import Duration
from quorate.api.maintenance.action import AvailabilityMode, HostState, LockKind, StatusCode
from quorate.api.maintenance.broker_ledger import BrokerLedger
from quorate.api.maintenance.log_record import RecordType
from quorate.api.names import BROKER
from quorate.api.struct import replace
from quorate.maintenance.entries import NotificationEntry, PermissionEntry, RequestEntry
from quorate.maintenance.ledger.encoding import decode
from quorate.maintenance.messages import (
    Caller,
    ClusterStateRequest,
    LogTailRequest,
    ManageNotification,
    NotificationCommand,
    NotificationRequest,
    PermissionCommand,
    RequestCommand,
    WalleCheckTask,
    WalleCreateTask,
    WalleListTasks,
    WalleTask,
)
from quorate.maintenance.moments import SECOND, to_datetime
from tests.maintenance.broker.desk import ANYONE, BEGIN, Desk, shutdown

RETRY = 300
DAY = 24 * 3600
TEMP, ALLOW = StatusCode.DISALLOW_TEMP, StatusCode.ALLOW


FORCE = AvailabilityMode.FORCE_RESTART


class Table:
    """Implements :class:`quorate.maintenance.broker.ports.Locks`."""

    def __init__(self) -> None:
        self.held: set[str] = set()

    def take(self, permission: PermissionEntry) -> None:
        self.held.add(permission.id)

    def drop(self, permission_id: str) -> None:
        self.held.discard(permission_id)


async def state_of(desk: Desk, host: str) -> HostState:
    """As everybody is told."""
    (node,) = (await desk.broker.cluster_state(ClusterStateRequest(hosts=(host,)), ANYONE)).hosts
    return node.state


async def written(desk: Desk) -> list[str]:
    """Ids of the permissions and requests in the store."""
    ledger = decode(await desk.store.get(BrokerLedger, BROKER))
    entries: list[PermissionEntry | RequestEntry | NotificationEntry] = []
    entries += [*ledger.permissions, *ledger.requests, *ledger.notifications]
    return [entry.id for entry in entries]


@pytest.mark.parametrize(("duration", "forgotten"), [(None, 300), (60 * SECOND, 180)])
async def test_a_permission_is_forgotten_at_its_deadline_and_twice_its_duration(
    desk: Desk, duration: int | None, forgotten: int
) -> None:
    await desk.ask("h1", duration=duration)
    desk.clock.advance(forgotten - 1)
    assert await desk.held() == ["alice-p-1"]
    desk.clock.advance(1)
    assert await desk.held() == []
    await desk.settle()
    assert await written(desk) == []
    (last,) = (await desk.broker.get_log_tail(LogTailRequest(limit=1, include_data=True), Caller())).records
    assert (last.record_type, last.data["why"]) == (RecordType.PERMISSION_ENDED, "EXPIRED")


async def test_past_its_deadline_a_permission_of_a_host_that_is_up_blocks_nobody(desk: Desk) -> None:
    await desk.ask("h1")
    desk.clock.advance(60)
    assert (await desk.ask("h2", user="bob", dry_run=True)).status.code is ALLOW


async def test_a_host_that_is_down_keeps_its_lock_until_it_is_up(desk: Desk) -> None:
    """M16."""
    await desk.ask("h1")
    desk.put(1, HostState.DOWN)
    desk.clock.advance(DAY)
    assert await desk.held() == ["alice-p-1"]
    assert desk.broker.held_down == {"alice-p-1"}
    again = await desk.again()
    assert await again.held() == ["alice-p-1"]
    again.put(1, HostState.UP)
    assert await again.held() == []
    await again.broker.close()


async def test_a_host_that_goes_down_past_its_deadline_is_broken_not_restarting(desk: Desk) -> None:
    await desk.ask("h1", duration=3600 * SECOND)
    desk.clock.advance(3601)
    await desk.settle()
    desk.put(1, HostState.DOWN)
    assert await desk.held() == ["alice-p-1"]
    assert await state_of(desk, "h1") is HostState.DOWN
    assert (await desk.ask("h1", user="bob", dry_run=True)).status.code is ALLOW
    assert (await desk.ask("h2", user="bob", dry_run=True, availability_mode=FORCE)).status.code is ALLOW
    again = await desk.again()
    assert (await again.ask("h1", user="bob", dry_run=True)).status.code is ALLOW
    assert await again.held() == ["alice-p-1"]
    assert await again.done("alice-p-1") is StatusCode.OK
    await again.broker.close()


async def test_a_host_that_came_back_late_does_not_go_under_its_old_permission_again(desk: Desk) -> None:
    await desk.ask("h1")
    desk.put(1, HostState.DOWN)
    desk.clock.advance(70)
    assert await state_of(desk, "h1") is HostState.RESTART
    assert (await desk.ask("h1", user="bob", dry_run=True)).status.code is TEMP
    desk.put(1, HostState.UP)
    desk.put(1, HostState.DOWN)
    assert await state_of(desk, "h1") is HostState.DOWN
    assert (await desk.ask("h1", user="bob", dry_run=True)).status.code is ALLOW
    assert await desk.held() == ["alice-p-1"]


@pytest.mark.parametrize("down", [False, True])
async def test_ended_by_extend_to_now_a_permission_lets_go_unless_something_is_down(desk: Desk, down: bool) -> None:
    await desk.ask("h1")
    if down:
        desk.put(1, HostState.DOWN)
    await desk.manage(PermissionCommand.EXTEND, "alice-p-1", deadline=BEGIN)
    desk.put(1, HostState.DOWN)
    assert await desk.held() == ["alice-p-1"]
    assert await state_of(desk, "h1") is (HostState.RESTART if down else HostState.DOWN)
    assert (await desk.ask("h1", user="bob", dry_run=True)).status.code is (TEMP if down else ALLOW)


async def test_given_back_after_it_let_go_a_permission_is_gone_although_its_host_is_down(desk: Desk) -> None:
    await desk.ask("h1")
    desk.clock.advance(61)
    assert await desk.held() == ["alice-p-1"]
    desk.put(1, HostState.DOWN)
    assert (await desk.manage(PermissionCommand.REJECT, "alice-p-1")).status.code is StatusCode.OK
    assert await desk.held() == []


async def test_extended_after_it_let_go_a_permission_holds_again(desk: Desk) -> None:
    await desk.ask("h1")
    desk.clock.advance(61)
    assert (await desk.ask("h2", user="bob", dry_run=True)).status.code is ALLOW
    later = BEGIN + 600 * SECOND
    assert (await desk.manage(PermissionCommand.EXTEND, "alice-p-1", deadline=later)).status.code is ALLOW
    assert (await desk.ask("h2", user="bob", dry_run=True)).status.code is TEMP


async def test_what_lets_go_lets_go_of_the_shared_table_too_and_a_restart_does_not_take_it_again() -> None:
    table = Table()
    desk = await Desk.open(locks=table)
    await desk.ask("h1")
    assert table.held == {"alice-p-1"}
    desk.clock.advance(61)
    assert await desk.held() == ["alice-p-1"]
    assert table.held == set()
    await desk.settle()
    await desk.broker.start()
    assert await desk.held() == ["alice-p-1"]
    assert table.held == set()
    await desk.broker.close()


async def test_nothing_is_forgotten_before_the_model_is_filled(desk: Desk) -> None:
    await desk.ask("h1")
    desk.put(1, HostState.DOWN)
    desk.clock.advance(DAY)
    other = Desk(desk.store, desk.clock, type(desk.model)(desk.model.settings), holder="two")
    await other.broker.start(serve=False)
    await other.settle()
    assert (await other.ask("h2")).status.code is StatusCode.ERROR_TEMP
    assert not other.broker.leading
    for node in desk.model.nodes():
        other.model.put_node(node)
    other.broker.serve()
    assert await other.held() == ["alice-p-1"]
    await other.broker.close()


async def test_announced_work_is_over_action_by_action(desk: Desk) -> None:
    message = NotificationRequest(
        user="alice", actions=(shutdown("h1", 10 * SECOND), shutdown("h2", 20 * SECOND)), time=BEGIN
    )
    await desk.broker.notification(message, ANYONE)
    listing = ManageNotification(command=NotificationCommand.LIST, user="alice")
    desk.clock.advance(10)
    (left,) = (await desk.broker.manage_notification(listing, ANYONE)).notifications
    assert [action.host for action in left.actions] == ["h2"]
    assert (await desk.ask("h1", user="bob", dry_run=True)).status.code is TEMP
    desk.clock.advance(10)
    assert (await desk.broker.manage_notification(listing, ANYONE)).notifications == ()
    await desk.settle()
    assert await written(desk) == []
    assert (await desk.ask("h1", user="bob", dry_run=True)).status.code is ALLOW


async def waiting(desk: Desk) -> None:
    """Bob holds h1 for a minute; alice waits for h2 and was told to come back in a minute."""
    await desk.ask("h1", user="bob")
    answer = await desk.ask("h2", schedule=True)
    assert answer.deadline == BEGIN + 60 * SECOND


async def test_a_silent_request_stops_blocking_and_is_deleted_a_day_later(desk: Desk) -> None:
    """M16."""
    await waiting(desk)
    desk.clock.advance(60 + 3 * RETRY - 1)
    assert (await desk.ask("h3", user="carol", dry_run=True)).status.code is TEMP
    desk.clock.advance(1)
    assert (await desk.ask("h3", user="carol", dry_run=True)).status.code is ALLOW
    assert len((await desk.requests(RequestCommand.LIST)).requests) == 1
    desk.clock.advance(DAY - 1)
    assert len((await desk.requests(RequestCommand.LIST)).requests) == 1
    desk.clock.advance(1)
    assert (await desk.requests(RequestCommand.LIST)).requests == ()
    await desk.settle()
    assert await written(desk) == []


async def test_who_waits_for_a_request_is_told_when_it_falls_silent(desk: Desk) -> None:
    await waiting(desk)
    desk.clock.advance(60)
    silent = BEGIN + (60 + 3 * RETRY) * SECOND
    for late, deadline in ((0, BEGIN + (60 + RETRY) * SECOND), (2 * RETRY + 100, silent)):
        desk.clock.advance(late)
        answer = await desk.ask("h3", user="carol", dry_run=True)
        assert answer.deadline == deadline
        assert answer.refused[0].issue is not None
        (blocker,) = answer.refused[0].issue.blockers
        assert (blocker.lock, blocker.until) == (LockKind.SCHEDULED_REQUEST, to_datetime(silent))
    await desk.requests(RequestCommand.GET, "alice-r-1")
    await desk.settle()
    again = await desk.ask("h3", user="carol", dry_run=True)
    assert again.deadline == desk.clock.wall + RETRY * SECOND
    assert again.refused[0].issue is not None
    assert again.refused[0].issue.blockers[0].until == to_datetime(desk.clock.wall + 3 * RETRY * SECOND)


async def test_asking_about_a_silent_request_lets_it_block_again(desk: Desk) -> None:
    await waiting(desk)
    desk.clock.advance(60 + 3 * RETRY)
    assert (await desk.ask("h3", user="carol", dry_run=True)).status.code is ALLOW
    await desk.requests(RequestCommand.GET, "alice-r-1")
    await desk.settle()
    assert (await desk.ask("h3", user="carol", dry_run=True)).status.code is TEMP


async def test_a_dry_run_renews_nothing(desk: Desk) -> None:
    await waiting(desk)
    desk.clock.advance(60 + 3 * RETRY)
    await desk.requests(RequestCommand.GET, "alice-r-1", dry_run=True)
    await desk.check("alice-r-1", dry_run=True)
    await desk.requests(RequestCommand.LIST)
    await desk.settle()
    assert (await desk.ask("h3", user="carol", dry_run=True)).status.code is ALLOW


async def test_a_check_renews_and_a_restart_remembers_it(desk: Desk) -> None:
    await waiting(desk)
    desk.clock.advance(50)
    assert (await desk.check("alice-r-1")).status.code is TEMP
    again = await desk.again()
    assert again.broker.ledger.requests[0].renewed_at == BEGIN + 50 * SECOND
    desk.clock.advance(10 + 3 * RETRY - 1)
    assert (await again.ask("h3", user="carol", dry_run=True)).status.code is TEMP
    desk.clock.advance(1)
    assert (await again.ask("h3", user="carol", dry_run=True)).status.code is ALLOW
    await again.broker.close()


async def test_who_watches_a_request_need_not_ask(desk: Desk) -> None:
    await waiting(desk)
    watcher = desk.broker.changes(request_id="alice-r-1")
    for _ in range(20):
        desk.clock.advance(RETRY)
        await desk.settle()
    assert (await desk.ask("h3", user="carol", dry_run=True)).status.code is TEMP
    await watcher.aclose()
    desk.clock.advance(4 * RETRY)
    await desk.settle()
    assert (await desk.ask("h3", user="carol", dry_run=True)).status.code is ALLOW


async def test_a_task_of_walle_is_never_deleted_and_a_poll_renews_it(desk: Desk) -> None:
    desk.put(8, HostState.DOWN)
    task = WalleCreateTask(task=WalleTask(id="t", action="reboot", hosts=("h2",)))
    assert (await desk.broker.walle_create(task, ANYONE)).status.code is TEMP
    desk.clock.advance(10 * DAY)
    assert "Wall-E" not in str((await desk.ask("h2", user="carol", priority=30, dry_run=True)).refused)
    (listed,) = (await desk.broker.walle_list(WalleListTasks(), ANYONE)).tasks
    assert listed.status.code is TEMP
    assert (await desk.broker.walle_check(WalleCheckTask(task_id="t"), ANYONE)).status.code is TEMP
    assert desk.broker.ledger.requests[0].renewed_at == desk.clock.wall
    assert "Wall-E" in str((await desk.ask("h2", user="carol", priority=30, dry_run=True)).refused)


async def test_another_retry_time_counts_at_once(desk: Desk) -> None:
    await waiting(desk)
    desk.clock.advance(100)
    desk.broker.configure(replace(desk.model.settings, default_retry_time=Duration("10s")))
    assert (await desk.ask("h3", user="carol", dry_run=True)).status.code is ALLOW
