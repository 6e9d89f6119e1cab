"""Kubernetes objects that ask."""

from __future__ import annotations

from typing import Any

from quorate.api.maintenance.action import AvailabilityMode, HostState, StatusCode
from quorate.maintenance.messages import Caller, PermissionRequest, PermissionResponse, RequestCommand
from tests.maintenance.broker.desk import Desk, ids, shutdown

ALLOW, PARTIAL, TEMP, OK = (
    StatusCode.ALLOW,
    StatusCode.ALLOW_PARTIAL,
    StatusCode.DISALLOW_TEMP,
    StatusCode.OK,
)
ALICE = Caller(name="alice")


async def submit(desk: Desk, *hosts: str, uid: str = "uid-1", **more: Any) -> PermissionResponse:
    more = {"schedule": True, "partial_permission_allowed": len(hosts) > 1, **more}
    message = PermissionRequest(user="alice", actions=tuple(shutdown(host) for host in hosts), **more)
    return await desk.broker.submit(message, ALICE, object_uid=uid)


async def test_an_object_asks_once_however_often_it_is_submitted(desk: Desk) -> None:
    first = await submit(desk, "h1")
    assert (first.status.code, ids(first)) == (ALLOW, ["alice-p-1"])
    for _ in range(3):
        assert ids(await submit(desk, "h1")) == ["alice-p-1"]
    again = await desk.again()
    assert ids(await submit(again, "h1")) == ["alice-p-1"]
    await again.broker.close()


async def test_what_waits_is_asked_again_and_every_permission_is_told(desk: Desk) -> None:
    first = await submit(desk, "h1", "h2", "h3")
    assert (first.status.code, first.request_id, ids(first)) == (PARTIAL, "alice-r-1", ["alice-p-1"])
    assert (await submit(desk, "h1", "h2", "h3")).status.code is TEMP
    await desk.done("alice-p-1")
    second = await submit(desk, "h1", "h2", "h3")
    assert (second.status.code, ids(second)) == (PARTIAL, ["alice-p-2"])
    assert ids(await submit(desk, "h1", "h2", "h3")) == ["alice-p-2"]
    await desk.done("alice-p-2")
    third = await submit(desk, "h1", "h2", "h3")
    assert (third.status.code, third.request_id, ids(third)) == (ALLOW, "", ["alice-p-3"])


async def test_an_object_whose_work_is_done_gets_nothing_more(desk: Desk) -> None:
    await submit(desk, "h1")
    await desk.done("alice-p-1")
    answer = await submit(desk, "h1")
    assert (answer.status.code, answer.permissions) == (ALLOW, ())
    assert await desk.held() == []


async def test_another_mode_in_the_object_counts(desk: Desk) -> None:
    desk.put(8, HostState.DOWN)
    assert (await submit(desk, "h1")).status.code is TEMP
    answer = await submit(desk, "h1", availability_mode=AvailabilityMode.KEEP_AVAILABLE)
    assert answer.status.code is ALLOW


async def test_an_object_that_is_refused_and_not_stored_may_ask_again(desk: Desk) -> None:
    await desk.ask("h2", user="bob")
    assert (await submit(desk, "h1", schedule=False)).status.code is TEMP
    assert (await submit(desk, "nowhere", uid="uid-2")).status.code is StatusCode.NO_SUCH_HOST
    await desk.done("bob-p-1", user="bob")
    assert (await submit(desk, "h1", schedule=False)).status.code is ALLOW


async def test_an_object_is_not_silent_as_long_as_it_is_there(desk: Desk) -> None:
    await desk.ask("h2", user="bob")
    await submit(desk, "h1")
    desk.clock.advance(10**7)
    assert (await desk.ask("h3", user="carol")).status.code is TEMP


async def test_deleting_an_object_withdraws_what_waits_and_gives_back_what_it_got(desk: Desk) -> None:
    await submit(desk, "h1", "h2")
    await submit(desk, "h5", uid="uid-2", schedule=True)
    assert (await desk.broker.withdraw("uid-1")).code is OK
    assert await desk.held() == []
    assert [entry.object_uid for entry in desk.broker.ledger.requests] == ["uid-2"]
    assert (await desk.broker.withdraw("uid-1")).code is OK
    assert (await desk.broker.withdraw("uid-2")).code is OK
    assert (desk.broker.ledger.requests, desk.broker.ledger.served) == ((), ())
    assert (await submit(desk, "h1")).status.code is ALLOW


async def test_deleting_an_object_whose_host_is_down_leaves_it_locked_until_it_is_up(desk: Desk) -> None:
    await submit(desk, "h1")
    desk.put(1, HostState.DOWN)
    assert (await desk.broker.withdraw("uid-1")).code is OK
    assert await desk.held() == ["alice-p-1"]
    desk.clock.advance(3600)
    desk.put(1, HostState.UP)
    assert await desk.held() == []


async def test_a_request_that_its_owner_withdrew_is_not_asked_again_for_its_object(desk: Desk) -> None:
    await desk.ask("h2", user="bob")
    await submit(desk, "h1")
    await desk.requests(RequestCommand.REJECT, "alice-r-1")
    answer = await submit(desk, "h1")
    assert answer.status.code is StatusCode.WRONG_REQUEST
    assert "withdrawn by alice" in answer.status.reason
    assert desk.broker.ledger.requests == ()


async def test_what_its_owner_got_for_an_object_by_asking_is_not_given_to_it_again(desk: Desk) -> None:
    await desk.ask("h2", user="bob")
    await submit(desk, "h1")
    await desk.done("bob-p-1", user="bob")
    assert (await desk.check("alice-r-1")).status.code is ALLOW
    answer = await submit(desk, "h1")
    assert (answer.status.code, ids(answer)) == (ALLOW, ["alice-p-2"])
    await desk.done("alice-p-2")
    assert (await submit(desk, "h1")).permissions == ()
    assert await desk.held() == []


async def test_a_dry_run_of_an_object_changes_nothing(desk: Desk) -> None:
    before = desk.broker.ledger
    answer = await submit(desk, "h1", dry_run=True)
    assert (answer.status.code, ids(answer)) == (ALLOW, [""])
    assert desk.broker.ledger == before


async def test_an_object_asks_only_for_its_own_user(desk: Desk) -> None:
    message = PermissionRequest(user="bob", actions=(shutdown("h1"),))
    answer = await desk.broker.submit(message, ALICE, object_uid="uid-1")
    assert answer.status.code is StatusCode.UNAUTHORIZED


async def test_looking_at_an_object_again_writes_nothing(desk: Desk) -> None:
    await desk.ask("h2", user="bob", duration=None)
    await submit(desk, "h1")
    before = desk.broker.ledger.revision
    for _ in range(3):
        assert (await submit(desk, "h1")).status.code is TEMP
    assert desk.broker.ledger.revision == before
