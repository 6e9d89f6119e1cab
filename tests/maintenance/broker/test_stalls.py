"""Nobody waits for a decision who has not asked for it: however long the queue, the event loop goes round."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import TypeVar

import pytest

from quorate.api.maintenance.action import HostState, StatusCode
from quorate.maintenance import slices
from quorate.maintenance.broker.turns import SHARING
from quorate.maintenance.messages import Action, PermissionResponse, PlanRequest
from quorate.maintenance.model.items import Item
from quorate.maintenance.moments import SECOND
from quorate.maintenance.nouns import NodeInfo
from quorate.maintenance.rules import obstacles
from quorate.maintenance.rules import request as rules
from quorate.maintenance.rules.inquiry import ACTION_WORK, Inquiry
from tests.maintenance.broker.desk import ANYONE, Desk, StillClock, memory_store, new_model

T = TypeVar("T")

#: As it was found: 1,095 requests in the queue, and somebody tries 200 actions.
QUEUED, TRIED = 1095, 200
USERS = 15
#: Seconds of this thread's own time that the loop may stand still: what else the machine does is not in them.
LONGEST = 0.1
HOSTS = [f"h{number}" for number in range(1, 9)]


@pytest.fixture
async def crowded() -> AsyncIterator[Desk]:
    """Everybody waits for everything: one host is away for good and the group lets nobody else go."""
    desk = await Desk.open()
    desk.put(8, HostState.DOWN)
    waiting = (
        desk.ask(*HOSTS[:7], user=f"user-{number % USERS}", partial_permission_allowed=True, schedule=True)
        for number in range(QUEUED)
    )
    answers = await asyncio.gather(*waiting)
    assert {answer.status.code for answer in answers} == {StatusCode.DISALLOW_TEMP}
    assert len(desk.broker.ledger.requests) == QUEUED
    yield desk
    await desk.broker.close()
    await desk.store.close()


class Rounds:
    """How the event loop goes round: the work of the rules in one round, and the time it took, at most."""

    def __init__(self) -> None:
        self.work = 0
        self.seconds = 0.0
        self.count = 0


@asynccontextmanager
async def watched(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Rounds]:
    """Count while this lasts."""
    rounds, work, over = Rounds(), 0, False
    attempt, take_in_turn = rules.attempt, rules._take_in_turn

    def attempted(inquiry: Inquiry, action: Action) -> object:
        nonlocal work
        work += ACTION_WORK
        return attempt(inquiry, action)

    def taken(inquiry: Inquiry, items: Sequence[Item]) -> object:
        nonlocal work
        work += sum(len(item.replicas) for item in items)
        return take_in_turn(inquiry, items)

    monkeypatch.setattr(rules, "attempt", attempted)
    monkeypatch.setattr(rules, "_take_in_turn", taken)

    async def go_round() -> None:
        nonlocal work
        last = time.thread_time()
        while not over:
            await asyncio.sleep(0)
            now = time.thread_time()
            rounds.seconds, last = max(rounds.seconds, now - last), now
            rounds.work, work = max(rounds.work, work), 0
            rounds.count += 1

    # What other tests have left is not the broker's to look through when garbage is collected.
    gc.collect()
    gc.freeze()
    task = asyncio.ensure_future(go_round())
    await asyncio.sleep(0)
    try:
        yield rounds
    finally:
        gc.unfreeze()
        over = True
        task.cancel()


async def tried(desk: Desk, *, partial: bool = True) -> PermissionResponse:
    hosts = [HOSTS[number % 7] for number in range(TRIED)]
    return await desk.ask(*hosts, user="zoe", dry_run=True, partial_permission_allowed=partial)


async def tried_by_many(desk: Desk) -> None:
    await asyncio.gather(*(tried(desk) for _ in range(10)))


async def asked(desk: Desk) -> PermissionResponse:
    hosts = [HOSTS[number % 7] for number in range(TRIED)]
    return await desk.ask(*hosts, user="zoe", schedule=True, partial_permission_allowed=True)


async def planned(desk: Desk) -> object:
    return await desk.broker.plan(PlanRequest(user="zoe"), ANYONE)


async def looked_at_again(desk: Desk) -> None:
    """The whole queue, because something changed and somebody watches."""
    async with aclosing(desk.broker.changes(user="user-1")):
        desk.put(7, HostState.DOWN)
        for _ in range(QUEUED):
            await asyncio.sleep(0)


async def test_a_large_question_before_a_long_queue_lets_everybody_through(
    crowded: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    questions: tuple[Callable[[Desk], Awaitable[object]], ...] = (tried, tried_by_many, asked, planned, looked_at_again)
    for question in questions:
        await crowded.settle()
        with monkeypatch.context() as patched:
            async with watched(patched) as rounds:
                await question(crowded)
        what = question.__name__
        assert 0 < rounds.work <= slices.SLICE + 8 * ACTION_WORK, f"{what}: too much was weighed in one go"
        assert rounds.count > 3, what
        assert rounds.seconds < LONGEST, f"{what}: the loop stood still"


class TickingClock(StillClock):
    """Every look at it takes a while, so that not all decisions share one write."""

    def monotonic(self) -> float:
        self.ticks = getattr(self, "ticks", 0) + 1
        return super().monotonic() + self.ticks * SHARING / 20


async def test_a_queue_that_grows_lets_everybody_through(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = TickingClock()
    desk = Desk(await memory_store(clock), clock, new_model())
    await desk.broker.start()
    desk.put(8, HostState.DOWN)
    before = desk.broker.ledger.revision
    async with watched(monkeypatch) as rounds:
        for first in range(0, QUEUED, 73):
            await asyncio.gather(
                *(
                    desk.ask(*HOSTS[:7], user=f"user-{number % USERS}", partial_permission_allowed=True, schedule=True)
                    for number in range(first, first + 73)
                )
            )
    assert len(desk.broker.ledger.requests) == QUEUED
    assert desk.broker.ledger.revision - before > 30
    assert rounds.seconds < LONGEST
    await desk.broker.close()
    await desk.store.close()


async def test_of_who_is_in_the_way_the_ledger_keeps_a_few_and_the_answer_tells_all(desk: Desk) -> None:
    desk.model.remove_group(0)
    await desk.ask("h1", user="bob")
    for number in range(9):
        await desk.ask("h1", user=f"user-{number}", schedule=True)
    answer = await desk.ask("h1", schedule=True)
    (refused,) = answer.refused
    assert refused.issue is not None
    assert len(refused.issue.blockers) == 10
    stored = desk.broker.ledger.requests[-1].actions[0].issue
    assert stored is not None
    assert (stored.message, stored.blockers) == (refused.issue.message, refused.issue.blockers[:3])


async def test_a_request_is_weighed_anew_when_the_cluster_changes_in_between(desk: Desk) -> None:
    """What was true of the first actions is not true any more: the answer is that of the cluster in the end."""
    desk.model.remove_group(0)
    for number in range(9, 300):
        desk.model.put_node(NodeInfo(id=number, host=f"h{number}"))
    hosts = [f"h{number}" for number in range(1, 300)]
    asking = asyncio.ensure_future(desk.ask(*hosts, partial_permission_allowed=True))
    for _ in range(5):
        await asyncio.sleep(0)
    assert not asking.done()
    desk.put(1, HostState.UNKNOWN)
    answer = await asking
    assert [action.host for action in answer.refused] == ["h1"]
    assert len(answer.permissions) == len(hosts) - 1


@pytest.mark.parametrize("partial", [True, False])
async def test_a_cluster_that_never_rests_puts_off_some_or_is_told_of(desk: Desk, partial: bool) -> None:
    desk.model.remove_group(0)
    for number in range(9, 300):
        desk.model.put_node(NodeInfo(id=number, host=f"h{number}"))
    hosts = [f"h{number}" for number in range(2, 300)]
    asking = asyncio.ensure_future(desk.ask(*hosts, partial_permission_allowed=partial, schedule=True))
    restless = 0
    while not asking.done():
        restless += 1
        desk.put(1, HostState.DOWN if restless % 2 else HostState.UP)
        await asyncio.sleep(0)
    answer = await asking
    if partial:
        assert answer.status.code is StatusCode.ALLOW_PARTIAL
        assert 0 < len(answer.permissions) < len(hosts)
        assert "changes too fast" in (answer.refused[0].issue.message if answer.refused[0].issue else "")
        rest = await desk.check(answer.request_id)
        assert rest.status.code is StatusCode.ALLOW
        assert len(answer.permissions) + len(rest.permissions) == len(hosts)
    else:
        assert answer.status.code is StatusCode.ERROR_TEMP
        assert answer.permissions == ()
        assert "changed 5 times while 298 actions were weighed" in answer.status.reason
        assert desk.broker.ledger.permissions == ()


async def never_resting(desk: Desk, asking: asyncio.Future[T]) -> T:
    """The model is another after every round of the loop."""
    restless = 0
    while not asking.done():
        restless += 1
        desk.put(1, HostState.DOWN if restless % 2 else HostState.UP)
        await asyncio.sleep(0)
    return await asking


async def test_a_cluster_that_never_rests_starves_nobody(desk: Desk) -> None:
    """What was put off comes first the next time: behind hosts that somebody else has for long are free ones."""
    desk.model.remove_group(0)
    for number in range(9, 300):
        desk.model.put_node(NodeInfo(id=number, host=f"h{number}"))
    hosts = [f"h{number}" for number in range(2, 300)]
    await desk.ask(*hosts[:99], user="bob", duration=3600 * SECOND)
    ask = desk.ask(*hosts, partial_permission_allowed=True, schedule=True)
    answer = await never_resting(desk, asyncio.ensure_future(ask))
    granted = len(answer.permissions)
    for _ in range(4):
        answer = await never_resting(desk, asyncio.ensure_future(desk.check(answer.request_id)))
        granted += len(answer.permissions)
    assert granted == len(hosts) - 99


async def test_a_cluster_that_never_rests_is_not_planned_for_as_if_it_refused(desk: Desk) -> None:
    desk.model.remove_group(0)
    for number in range(9, 300):
        desk.model.put_node(NodeInfo(id=number, host=f"h{number}"))
    asked = PlanRequest(user="zoe", hosts=tuple(f"h{number}" for number in range(2, 300)))
    answer = await never_resting(desk, asyncio.ensure_future(desk.broker.ok_to_stop(asked, ANYONE)))
    assert answer.status.code is StatusCode.ERROR_TEMP
    assert "changes too fast for a plan of 298 hosts" in answer.status.reason
    plan = await never_resting(desk, asyncio.ensure_future(desk.broker.plan(asked, ANYONE)))
    assert plan.status.code is StatusCode.ERROR_TEMP
    assert len((await desk.broker.ok_to_stop(asked, ANYONE)).hosts) == 298


async def test_a_long_queue_costs_no_more_to_look_at_than_a_short_one(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(200):
        await desk.ask("h1", user=f"user-{number}", schedule=True)
    await desk.ask("h1", user="first", schedule=True, priority=-1)
    desk.clock.advance(1)
    looked = 0
    moves = obstacles.queue_moves

    def counted(inquiry: Inquiry, request_id: str) -> int:
        nonlocal looked
        looked += 1
        return moves(inquiry, request_id)

    monkeypatch.setattr(obstacles, "queue_moves", counted)
    await desk.ask("h1", user="zoe", dry_run=True)
    assert 0 < looked < 100


async def test_no_other_decision_is_made_while_one_is_weighed_in_slices(desk: Desk) -> None:
    """A small request that comes in between does not take what a large one, which came first, is about to get."""
    desk.model.remove_group(0)
    for number in range(9, 300):
        desk.model.put_node(NodeInfo(id=number, host=f"h{number}"))
    hosts = [f"h{number}" for number in range(1, 300)]
    first = asyncio.ensure_future(desk.ask(*hosts))
    for _ in range(5):
        await asyncio.sleep(0)
    second = asyncio.ensure_future(desk.ask("h299", user="bob"))
    assert (await first).status.code is StatusCode.ALLOW
    assert (await second).status.code is StatusCode.DISALLOW_TEMP
    assert len(desk.broker.ledger.permissions) == len(hosts)
