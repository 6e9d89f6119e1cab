"""Decisions one after the other: shared writes, failed writes, unknown outcomes, and who is told what."""

from __future__ import annotations

import asyncio

import pytest

from quorate.api.maintenance.action import StatusCode
from quorate.api.maintenance.broker_ledger import BrokerLedger
from quorate.api.names import BROKER
from quorate.errors import Conflict
from quorate.maintenance.entries import Ledger, PermissionEntry
from quorate.maintenance.ledger import encoding
from quorate.maintenance.ledger.encoding import decode
from quorate.maintenance.messages import PermissionCommand, RequestCommand
from tests.maintenance.broker.desk import Desk, StillClock, ids, memory_store, new_model
from tests.maintenance.broker.faults import FaultyStore

ALLOW, TEMP, OK, ERROR_TEMP = StatusCode.ALLOW, StatusCode.DISALLOW_TEMP, StatusCode.OK, StatusCode.ERROR_TEMP


class Restless(StillClock):
    """A pause passes at once, except the long ones."""

    async def sleep(self, seconds: float) -> None:
        if seconds > 2:
            await super().sleep(seconds)
        else:
            await asyncio.sleep(0)
            self.advance(seconds)


async def faulty_desk(*script: str) -> tuple[Desk, FaultyStore]:
    clock = Restless()
    store = FaultyStore(await memory_store(clock))
    desk = Desk(store, clock, new_model())
    await desk.broker.start()
    store.script = list(script)
    store.history.clear()
    return desk, store


async def stored(store: FaultyStore) -> Ledger:
    return decode(await store.store.get(BrokerLedger, BROKER))


async def test_decisions_that_wait_together_share_a_write() -> None:
    desk, store = await faulty_desk()
    desk.model.remove_group(0)
    answers = await asyncio.gather(*(desk.ask(f"h{number}") for number in range(1, 9)))
    assert {answer.status.code for answer in answers} == {ALLOW}
    assert len({permission for answer in answers for permission in ids(answer)}) == 8
    assert store.history == ["done"]


async def test_those_who_share_a_write_see_each_other() -> None:
    desk, store = await faulty_desk()
    answers = await asyncio.gather(*(desk.ask(f"h{number}") for number in range(1, 9)))
    assert [answer.status.code for answer in answers] == [ALLOW, *[TEMP] * 7]
    assert store.history == ["done"]


async def test_whoever_asks_after_an_end_is_answered_as_if_it_had_been_written_alone() -> None:
    desk, store = await faulty_desk()
    await desk.ask("h1")
    codes = await asyncio.gather(
        desk.done("alice-p-1"), desk.ask("h2", user="bob"), desk.ask("h3", user="carol"), desk.held()
    )
    assert codes[0] is OK
    assert (codes[1].status.code, codes[2].status.code) == (ALLOW, TEMP)
    assert store.history == ["done", "done", "done"]


async def test_what_changes_nothing_writes_nothing() -> None:
    desk, store = await faulty_desk()
    await desk.ask("h1", "h2")
    await desk.ask("nowhere")
    await desk.ask("h1", dry_run=True)
    await desk.held()
    assert store.history == []


@pytest.mark.parametrize("fate", ["refused", "away"])
async def test_when_it_cannot_be_written_nobody_gets_anything_and_nothing_stays_locked(fate: str) -> None:
    desk, store = await faulty_desk(*[fate] * 100)
    before = desk.broker.ledger
    answers = await asyncio.gather(desk.ask("h1"), desk.ask("h2", user="bob", schedule=True))
    assert [answer.status.code for answer in answers] == [ERROR_TEMP, ERROR_TEMP]
    assert all(answer.deadline and answer.status.reason for answer in answers)
    store.script = []
    assert desk.broker.ledger.permissions == before.permissions == ()
    assert (await desk.ask("h3", dry_run=True)).status.code is ALLOW
    assert ids(await desk.ask("h1")) == ["alice-p-1"]


async def test_an_end_that_cannot_be_written_has_not_happened() -> None:
    desk, _ = await faulty_desk("done", "refused")
    await desk.ask("h1")
    assert await desk.done("alice-p-1") is ERROR_TEMP
    assert await desk.held() == ["alice-p-1"]
    assert (await desk.ask("h2", user="bob")).status.code is TEMP
    assert await desk.done("alice-p-1") is OK


@pytest.mark.parametrize("first", ["lost", "unheard", "late"])
async def test_what_nobody_can_tell_is_taken_back_before_anything_else_is_decided(first: str) -> None:
    desk, store = await faulty_desk(first, *["away"] * 1000)
    store.deaf = True
    assert (await desk.ask("h1")).status.code is ERROR_TEMP
    assert (await desk.ask("h2", user="bob")).status.code is ERROR_TEMP
    store.deaf, store.script = False, []
    for _ in range(200):
        await asyncio.sleep(0)
    assert await desk.held() == []
    assert (await stored(store)).permissions == ()
    assert set(await store.deliver()) <= {"conflict"}
    answer = await desk.ask("h2", user="bob")
    assert answer.status.code is ALLOW
    assert [one.id for one in (await stored(store)).permissions] == ids(answer)


async def test_while_an_outcome_is_unknown_everything_stays_locked() -> None:
    desk, store = await faulty_desk("done", "late", *["away"] * 1000)
    await desk.ask("h1")
    store.deaf = True
    assert await desk.done("alice-p-1") is ERROR_TEMP
    held = desk.model.known_node(1).locks
    assert held is not None
    assert [lock.id for lock in held.held] == ["alice-p-1"]
    store.deaf, store.script = False, []
    assert await store.deliver() == ["done"]
    for _ in range(200):
        await asyncio.sleep(0)
    assert await desk.held() == ["alice-p-1"]
    assert [one.id for one in (await stored(store)).permissions] == ["alice-p-1"]


async def test_a_broker_that_is_overtaken_steps_down_and_grants_nothing_more() -> None:
    desk, store = await faulty_desk()
    await desk.ask("h1")
    other = await desk.again(holder="two", store=store.store)
    assert await desk.done("alice-p-1") is ERROR_TEMP
    assert not desk.broker.leading
    for answer in (await desk.ask("h3"), await desk.check("alice-r-1"), await desk.manage(PermissionCommand.LIST)):
        assert answer.status.code is ERROR_TEMP
    assert (await desk.requests(RequestCommand.LIST)).status.code is ERROR_TEMP
    assert await other.held() == ["alice-p-1"]
    assert (await other.ask("h2", user="bob")).status.code is TEMP
    await other.done("alice-p-1")
    await desk.broker.start()
    assert await desk.held() == []
    assert (await desk.ask("h2")).status.code is ALLOW
    assert (await other.ask("h3")).status.code is ERROR_TEMP


async def test_two_brokers_never_grant_against_each_other() -> None:
    clock = Restless()
    store = await memory_store(clock)
    desks = [Desk(store, clock, new_model(), holder=name) for name in ("one", "two")]
    for desk in desks:
        await desk.broker.start()
    granted = 0
    for number in range(1, 9):
        answers = await asyncio.gather(*(desk.ask(f"h{number}", user=f"u{number}") for desk in desks))
        granted += sum(answer.status.code is ALLOW for answer in answers)
        if number % 3 == 0:
            await desks[number % 2].broker.start()
    assert granted == 1


async def test_a_caller_who_goes_away_before_its_turn_changes_nothing() -> None:
    desk, store = await faulty_desk()
    asking = asyncio.ensure_future(desk.ask("h1"))
    await asyncio.sleep(0)
    asking.cancel()
    await desk.settle()
    assert await desk.held() == []
    assert store.history == []


async def test_a_full_ledger_refuses_more_and_still_ends_things(monkeypatch: pytest.MonkeyPatch) -> None:
    desk, _ = await faulty_desk()
    desk.model.remove_group(0)
    await desk.ask("h1")
    size = len(encoding.encode(desk.broker.ledger).contents)
    monkeypatch.setattr(encoding, "MAX_CONTENTS", size + 40 + encoding.RESERVE)
    answers = await asyncio.gather(
        desk.ask("h2", reason="Tq9 zX0 pL4 mN8 vB2 hG7 kR5 sW1 dF6 jY3 cA0 uE9"), desk.done("alice-p-1")
    )
    assert (answers[0].status.code, answers[1]) == (ERROR_TEMP, OK)
    assert "full" in answers[0].status.reason
    assert await desk.held() == []
    assert (await desk.ask("h3")).status.code is ALLOW


async def test_a_request_that_does_not_fit_is_refused_and_leaves_no_trace() -> None:
    desk, _ = await faulty_desk()
    desk.model.remove_group(0)
    before = desk.broker.ledger

    class Table:
        def take(self, permission: PermissionEntry) -> None:
            if permission.action.host == "h2":
                raise Conflict("a volume is just changing its members there")

        def drop(self, permission_id: str) -> None:
            pass

    desk.broker._core.locks = Table()
    answer = await desk.ask("h1", "h2")
    assert (answer.status.code, answer.permissions) == (TEMP, ())
    assert "just changing" in answer.status.reason
    assert desk.broker.ledger == before
    assert (await desk.ask("h1", user="bob")).status.code is ALLOW


async def test_the_lock_table_has_a_permission_before_it_is_written_and_until_its_end_is() -> None:
    events: list[str] = []

    class Table:
        def take(self, permission: PermissionEntry) -> None:
            events.append(f"take {permission.id}")

        def drop(self, permission_id: str) -> None:
            events.append(f"drop {permission_id}")

    class Watched(FaultyStore):
        async def patch_status(self, *args, **kwargs):  # type: ignore[no-untyped-def]
            events.append("write")
            return await super().patch_status(*args, **kwargs)

    clock = Restless()
    store = Watched(await memory_store(clock))
    desk = Desk(store, clock, new_model(), locks=Table())
    await desk.broker.start()
    await desk.ask("h1")
    await desk.done("alice-p-1")
    store.script = ["refused"]
    await desk.ask("h2")
    assert events == [
        "write",
        "take alice-p-1",
        "write",
        "write",
        "drop alice-p-1",
        "take alice-p-2",
        "write",
        "drop alice-p-2",
    ]


async def test_a_fault_in_one_turn_is_its_callers_alone() -> None:
    desk, _ = await faulty_desk()

    def broken(_: object) -> None:
        raise ZeroDivisionError

    failing = desk.broker._turns.take(broken, weighs=False)
    results = await asyncio.gather(desk.ask("h1"), failing, return_exceptions=True)
    assert isinstance(results[1], ZeroDivisionError)
    assert await desk.held() == ["alice-p-1"]


async def test_numbers_are_written_before_they_are_given() -> None:
    desk, store = await faulty_desk()
    assert await desk.broker.take_numbers(nodes=2, drives=1) == (range(1, 3), range(1, 2), range(1, 1))
    again = await desk.again(holder="two", store=store.store)
    assert await again.broker.take_numbers(nodes=1, groups=3) == (range(3, 4), range(2, 2), range(1, 4))


async def test_a_stopped_broker_answers_that_it_is_stopped(desk: Desk) -> None:
    await desk.broker.close()
    assert (await desk.ask("h1")).status.code is ERROR_TEMP
    await desk.broker.start()
    assert (await desk.ask("h1")).status.code is ALLOW
