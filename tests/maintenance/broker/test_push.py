"""Watching instead of asking again."""

from __future__ import annotations

from contextlib import aclosing
from typing import Any

import pytest

from quorate.api.maintenance.action import HostState, StatusCode
from quorate.maintenance.broker import push, watchers
from quorate.maintenance.broker.watchers import Watcher
from quorate.maintenance.evaluation import Evaluation
from quorate.maintenance.messages import Change, ChangeKind, ChangeVerb, RequestCommand
from quorate.maintenance.slices import weigh
from tests.maintenance.broker.desk import Desk, ids

ADDED, CHANGED, ANSWER, ENDED = ChangeVerb


async def told(desk: Desk, watcher: Watcher) -> list[Change]:
    """Everything that a watcher has been told so far."""
    await desk.settle()
    waiting = watcher._changes
    return [change for _ in range(waiting.qsize()) if (change := waiting.get_nowait()) is not None]


def words(changes: list[Change]) -> list[tuple[ChangeVerb, str]]:
    return [(change.verb, change.id) for change in changes]


async def test_a_watcher_sees_what_is_stored_granted_and_ended(desk: Desk) -> None:
    async with aclosing(desk.broker.changes()) as watcher:
        await desk.ask("h1", "h2", partial_permission_allowed=True, schedule=True)
        assert words(await told(desk, watcher)) == [(ADDED, "alice-p-1"), (ADDED, "alice-r-1")]
        await desk.done("alice-p-1")
        assert words(await told(desk, watcher)) == [(ENDED, "alice-p-1"), (ANSWER, "alice-r-1")]
        await desk.check("alice-r-1")
        assert words(await told(desk, watcher)) == [(ADDED, "alice-p-2"), (ENDED, "alice-r-1")]
        desk.clock.advance(180)
        assert words(await told(desk, watcher)) == [(ENDED, "alice-p-2")]


async def test_being_told_is_not_being_granted(desk: Desk) -> None:
    await desk.ask("h1", user="bob")
    await desk.ask("h2", schedule=True)
    async with aclosing(desk.broker.changes(user="alice")) as watcher:
        await desk.done("bob-p-1", user="bob")
        (change,) = await told(desk, watcher)
        assert (change.kind, change.verb, change.id) == (ChangeKind.REQUEST, ANSWER, "alice-r-1")
        assert change.answer is not None
        assert (change.answer.status.code, ids(change.answer)) == (StatusCode.ALLOW, [""])
        assert await desk.held() == []
        assert (await desk.check("alice-r-1")).status.code is StatusCode.ALLOW


async def test_a_change_of_the_cluster_is_told_once_and_so_is_its_end(desk: Desk) -> None:
    desk.put(8, HostState.DOWN)
    await desk.ask("h2", schedule=True)
    async with aclosing(desk.broker.changes(request_id="alice-r-1")) as watcher:
        assert await told(desk, watcher) == []
        desk.put(8, HostState.UP)
        desk.put(7, HostState.UP)
        first = await told(desk, watcher)
        assert [change.answer.status.code for change in first if change.answer] == [StatusCode.ALLOW]
        desk.put(8, HostState.DOWN)
        second = await told(desk, watcher)
        assert [change.answer.status.code for change in second if change.answer] == [StatusCode.DISALLOW_TEMP]


async def test_whoever_begins_to_watch_learns_what_changed_before(desk: Desk) -> None:
    await desk.ask("h1", user="bob")
    await desk.ask("h2", schedule=True)
    await desk.done("bob-p-1", user="bob")
    async with aclosing(desk.broker.changes(user="alice")) as watcher:
        assert words(await told(desk, watcher)) == [(ANSWER, "alice-r-1")]


async def test_whoever_begins_to_watch_learns_what_others_were_told_before(desk: Desk) -> None:
    first = desk.broker.changes()
    await desk.ask("h1", user="bob")
    await desk.ask("h2", schedule=True)
    await desk.done("bob-p-1", user="bob")
    assert words(await told(desk, first))[-1] == (ANSWER, "alice-r-1")
    async with aclosing(desk.broker.changes(user="alice")) as second:
        assert words(await told(desk, second)) == [(ANSWER, "alice-r-1")]
        assert await told(desk, first) == []
    async with aclosing(desk.broker.changes(user="bob")) as third:
        assert await told(desk, third) == []
    await first.aclose()


async def test_while_nothing_changes_nothing_is_weighed_again(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.put(8, HostState.DOWN)
    await desk.ask("h2", schedule=True)
    weighed = []

    async def counted(*asked: Any) -> Evaluation:
        weighed.append(asked)
        return await weigh(*asked)

    monkeypatch.setattr(push, "weigh", counted)
    async with aclosing(desk.broker.changes(user="bob")):
        for _ in range(30):
            desk.clock.advance(5)
            await desk.settle()
    assert len(weighed) <= 2


async def test_a_watcher_of_one_user_is_told_nothing_of_others(desk: Desk) -> None:
    async with aclosing(desk.broker.changes(user="bob")) as watcher:
        await desk.ask("h1")
        await desk.ask("h2", schedule=True)
        assert await told(desk, watcher) == []


async def test_time_alone_may_make_the_answer_another(desk: Desk) -> None:
    await desk.ask("h1", user="bob")
    await desk.ask("h2", schedule=True)
    async with aclosing(desk.broker.changes(user="alice")) as watcher:
        desk.clock.advance(59)
        assert await told(desk, watcher) == []
        desk.clock.advance(5)
        assert words(await told(desk, watcher)) == [(ANSWER, "alice-r-1")]


async def test_watching_ends_when_another_broker_leads(desk: Desk) -> None:
    watcher = desk.broker.changes()
    other = await desk.again(holder="two")
    assert (await desk.ask("h1")).status.code is StatusCode.ERROR_TEMP
    with pytest.raises(StopAsyncIteration):
        await anext(watcher)
    with pytest.raises(StopAsyncIteration):
        await anext(watcher)
    await other.broker.close()


async def test_a_watcher_that_does_not_keep_up_is_let_go(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watchers, "BACKLOG", 3)
    slow = desk.broker.changes()
    quick = desk.broker.changes()
    for _ in range(3):
        answer = await desk.ask("h1")
        await desk.done(*ids(answer))
        await told(desk, quick)
    seen = [change async for change in slow]
    assert len(seen) == 3
    await desk.ask("h1")
    assert words(await told(desk, quick)) == [(ADDED, "alice-p-4")]
    await quick.aclose()


async def test_nothing_is_weighed_while_nobody_watches(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    await desk.ask("h1", user="bob")
    await desk.ask("h2", schedule=True)
    monkeypatch.setattr(push, "weigh", lambda *_: pytest.fail("weighed for nobody"))
    await desk.done("bob-p-1", user="bob")
    await desk.settle()
    assert len((await desk.requests(RequestCommand.LIST)).requests) == 1


async def test_a_broker_that_does_not_lead_has_nothing_to_watch(desk: Desk) -> None:
    desk.broker.step_down("another leads")
    assert [change async for change in desk.broker.changes()] == []


async def test_who_shows_reasons_is_told_when_a_request_waits_for_somebody_else(desk: Desk) -> None:
    await desk.ask("h1")
    await desk.ask("h2", user="bob", schedule=True)
    async with aclosing(desk.broker.changes(reasons=True)) as shows, aclosing(desk.broker.changes()) as waits:
        await desk.settle()
        await desk.done("alice-p-1")
        await desk.ask("h3", user="carol", priority=-1)
        await desk.settle()
        answers = [change for change in await told(desk, shows) if change.verb is ANSWER and change.owner == "bob"]
        blockers = [
            blocker.id
            for change in answers
            if change.answer is not None
            for action in change.answer.refused
            if action.issue is not None
            for blocker in action.issue.blockers
        ]
        assert blockers[-1:] == ["carol-p-2"]
        assert not any(change.only_reasons for change in await told(desk, waits))


async def test_what_the_ledger_keeps_in_short_is_no_other_answer(desk: Desk) -> None:
    """The fourth of those in the way is in the answer and not in the ledger; when it goes, that is told."""
    desk.model.remove_group(0)
    await desk.ask("h1", user="bob")
    for number in range(5):
        await desk.ask("h1", user=f"user-{number}", schedule=True)
    await desk.ask("h1", schedule=True)
    async with aclosing(desk.broker.changes(user="alice", reasons=True)) as watcher:
        assert words(await told(desk, watcher)) == []
        await desk.requests(RequestCommand.REJECT, "user-4-r-5", user="user-4")
        (change,) = await told(desk, watcher)
        assert (change.verb, change.id, change.only_reasons) == (ANSWER, "alice-r-6", True)
