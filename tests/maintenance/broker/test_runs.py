"""Two rolling restarts have no host in common, whoever began them and wherever."""

from __future__ import annotations

import asyncio

import pytest

from quorate.api.maintenance.action import HostState, StatusCode
from quorate.maintenance.messages import PermissionResponse, RequestCommand
from tests.maintenance.broker.desk import Desk

ALLOW, PARTIAL, WRONG, TEMP = (
    StatusCode.ALLOW,
    StatusCode.ALLOW_PARTIAL,
    StatusCode.WRONG_REQUEST,
    StatusCode.DISALLOW_TEMP,
)


async def run(desk: Desk, name: str, *hosts: str, user: str = "alice", dry_run: bool = False) -> PermissionResponse:
    return await desk.ask(*hosts, user=user, run=name, partial_permission_allowed=True, schedule=True, dry_run=dry_run)


@pytest.mark.parametrize("user", ["alice", "bob"])
@pytest.mark.parametrize("host", ["h1", "1", "h2", "h3"])
async def test_a_second_run_of_a_host_is_refused_with_the_name_of_the_first(desk: Desk, user: str, host: str) -> None:
    assert (await run(desk, "first", "h1", "h2", "h3")).status.code is PARTIAL
    before = desk.broker.ledger
    for dry_run in (True, False):
        answer = await run(desk, "second", "h8", host, user=user, dry_run=dry_run)
        assert answer.status.code is WRONG
        assert answer.status.reason.startswith(f"run first of alice is restarting {host} (alice-")
        assert "--take-over first" in answer.status.reason
    assert desk.broker.ledger == before


async def test_of_two_that_begin_at_once_one_goes(desk: Desk) -> None:
    """Each looked before either asked: only the broker can tell them apart."""
    answers = await asyncio.gather(*(run(desk, name, "h1", "h2") for name in ("one", "two")))
    assert sorted(answer.status.code for answer in answers) == sorted([PARTIAL, WRONG])


async def test_a_run_goes_on_by_its_name_and_what_it_has_carries_it(desk: Desk) -> None:
    first = await run(desk, "first", "h1", "h2")
    assert [permission.run for permission in desk.broker.ledger.permissions] == ["first"]
    (stored,) = (await desk.requests(RequestCommand.LIST)).requests
    assert stored.run == "first"
    assert (await run(desk, "first", "h3")).status.code is TEMP, "the same run may ask for more"
    await desk.done("alice-p-1")
    assert (await desk.check(first.request_id)).permissions[0].run == "first"


async def test_a_run_is_over_with_its_last_permission(desk: Desk) -> None:
    assert (await run(desk, "first", "h1")).status.code is ALLOW
    assert (await run(desk, "second", "h1")).status.code is WRONG
    await desk.done("alice-p-1")
    assert (await run(desk, "second", "h1")).status.code is ALLOW


async def test_a_run_that_died_is_over_when_it_has_fallen_silent_and_nothing_of_it_is_down(desk: Desk) -> None:
    await run(desk, "first", "h1", "h2")
    desk.put(1, HostState.DOWN)
    desk.clock.advance(3600)
    assert (await run(desk, "second", "h2", "h3")).status.code is TEMP, "nobody asks about the first any more"
    assert (await run(desk, "third", "h1")).status.code is WRONG, "but the host that it took down is its own"
    desk.put(1, HostState.UP)
    assert (await run(desk, "third", "h1")).status.code is TEMP


async def test_who_only_asks_is_no_run_and_waits_for_the_lock(desk: Desk) -> None:
    await run(desk, "first", "h1")
    assert (await desk.ask("h1", user="bob")).status.code is TEMP


async def test_the_name_is_its_users(desk: Desk) -> None:
    await run(desk, "first", "h1")
    answer = await run(desk, "first", "h9", user="bob")
    assert (answer.status.code, answer.status.reason) == (WRONG, "Run is 'first', which is a run of alice")
    answer = await run(desk, "x" * 129, "h2")
    assert answer.status.reason == "Run has 129 characters: at most 128 are allowed"


async def test_a_run_that_was_silent_too_long_does_not_come_back_to_hosts_of_another(desk: Desk) -> None:
    first = await run(desk, "first", "h1", "h2")
    await desk.done("alice-p-1")
    desk.clock.advance(3600)
    assert (await run(desk, "second", "h2", user="bob")).status.code is ALLOW
    answer = await desk.check(first.request_id)
    assert answer.status.code is StatusCode.DISALLOW
    assert answer.status.reason.startswith("run second of bob is restarting h2 (bob-p-2)")
    assert (answer.request_id, answer.permissions, desk.broker.ledger.requests) == ("", (), ())


async def test_one_that_was_silent_and_is_in_nobodys_way_goes_on(desk: Desk) -> None:
    first = await run(desk, "first", "h1", "h2")
    await desk.done("alice-p-1")
    desk.clock.advance(3600)
    assert (await desk.check(first.request_id)).status.code is ALLOW
