"""The log as objects: nothing is lost, nothing is told twice, and the old goes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from quorate.api.duration import Duration
from quorate.api.maintenance import LogRecord
from quorate.api.maintenance.broker_config import LogConfig, LogLevel
from quorate.api.maintenance.log_record import RecordType
from quorate.engine.embedded import EmbeddedStore
from quorate.engine.simulation import Simulation, run
from quorate.errors import OutcomeUnknown
from quorate.maintenance.log import ObjectLog, objects
from quorate.maintenance.messages import LogLine, LogTailRequest
from quorate.maintenance.moments import from_datetime
from tests.support.widgets import open_store

KINDS = (LogRecord.KIND,)
EVERYTHING = LogTailRequest(limit=10_000)


class Breaking(EmbeddedStore):
    """Gives no answer to writes of a status while told to: they happen, or they do not."""

    silent: str = ""

    async def patch_status(self, *args: Any, **kwargs: Any) -> Any:
        if self.silent == "and deaf":
            raise OutcomeUnknown("timed out")
        made = await super().patch_status(*args, **kwargs)
        if self.silent:
            raise OutcomeUnknown("timed out")
        return made


async def opened(sim: Simulation, store: EmbeddedStore, config: LogConfig | None = None) -> ObjectLog:
    log = ObjectLog(store, sim.clock, lambda: config or LogConfig())
    await log.open()
    return log


def fill(log: ObjectLog, sim: Simulation, *numbers: int) -> None:
    for number in numbers:
        sort = RecordType.PERMISSION_GRANTED if number % 2 == 0 else RecordType.PERMISSION_ENDED
        log.record(from_datetime(sim.clock.now()), sort, f"r{number}", {"n": number})


def told(lines: tuple[LogLine, ...]) -> list[int]:
    return [line.data["n"] for line in lines]


def test_records_are_told_at_once_after_a_write_and_after_a_restart() -> None:
    async def scenario(sim: Simulation) -> None:
        store = await open_store(sim, kinds=KINDS)
        log = await opened(sim, store)
        fill(log, sim, *range(450))
        before = await log.tail(EVERYTHING)
        assert told(before) == list(range(450))
        await log.flush()
        assert await log.tail(EVERYTHING) == before
        assert len((await store.list(LogRecord)).items) == 3
        assert await (await opened(sim, store)).tail(EVERYTHING) == before

    run(scenario, seed=1)


def test_no_two_records_have_the_same_time_also_over_a_restart() -> None:
    async def scenario(sim: Simulation) -> None:
        store = await open_store(sim, kinds=KINDS)
        log = await opened(sim, store)
        fill(log, sim, *range(10))
        await log.flush()
        log = await opened(sim, store)
        fill(log, sim, *range(10, 20))
        times = [line.timestamp for line in await log.tail(EVERYTHING)]
        assert times == sorted(set(times))
        assert len(times) == 20

    run(scenario, seed=1)


@pytest.mark.parametrize(
    ("asked", "numbers"),
    [
        (LogTailRequest(limit=3), [297, 298, 299]),
        (LogTailRequest(limit=3, offset=2), [295, 296, 297]),
        (LogTailRequest(limit=2, record_type=RecordType.PERMISSION_ENDED), [297, 299]),
        (LogTailRequest(limit=0), []),
        (LogTailRequest(limit=5, offset=1000), []),
    ],
)
def test_the_newest_that_fit_are_told_oldest_first(asked: LogTailRequest, numbers: list[int]) -> None:
    async def scenario(sim: Simulation) -> None:
        log = await opened(sim, await open_store(sim, kinds=KINDS))
        fill(log, sim, *range(250))
        await log.flush()
        fill(log, sim, *range(250, 300))
        assert told(await log.tail(asked)) == numbers

    run(scenario, seed=1)


def test_records_are_found_by_their_time() -> None:
    async def scenario(sim: Simulation) -> None:
        log = await opened(sim, await open_store(sim, kinds=KINDS))
        for number in range(300):
            await sim.clock.sleep(60)
            fill(log, sim, number)
        await log.flush()
        lines = await log.tail(EVERYTHING)
        asked = LogTailRequest(min_timestamp=lines[50].timestamp, max_timestamp=lines[60].timestamp)
        assert told(await log.tail(asked)) == list(range(50, 61))
        assert told(await log.tail(LogTailRequest(min_timestamp=lines[-1].timestamp))) == [299]

    run(scenario, seed=1)


@pytest.mark.parametrize("silent", ["and deaf", "but obeying"])
def test_a_store_that_does_not_answer_costs_no_record_and_doubles_none(silent: str) -> None:
    async def scenario(sim: Simulation) -> None:
        store = await open_store(sim, Breaking, kinds=KINDS)
        log = await opened(sim, store)
        writing = asyncio.create_task(log.run())
        fill(log, sim, *range(20))
        await sim.clock.sleep(0.5)
        store.silent = silent
        fill(log, sim, *range(20, 250))
        await sim.clock.sleep(10)
        fill(log, sim, *range(250, 300))
        await sim.clock.sleep(10)
        store.silent = ""
        await sim.clock.sleep(30)
        assert told(await log.tail(EVERYTHING)) == list(range(300))
        assert told(await (await opened(sim, store)).tail(EVERYTHING)) == list(range(300))
        writing.cancel()

    run(scenario, seed=1)


def test_two_leaders_leave_each_others_chunks_alone() -> None:
    async def scenario(sim: Simulation) -> None:
        store = await open_store(sim, kinds=KINDS)
        old = await opened(sim, store)
        fill(old, sim, 0, 1)
        await old.flush()
        new = await opened(sim, store)
        fill(new, sim, 2)
        await new.flush()
        fill(old, sim, 3)
        await old.flush()
        fill(new, sim, 4)
        await new.flush()
        assert sorted(told(await (await opened(sim, store)).tail(EVERYTHING))) == [0, 1, 2, 3, 4]

    run(scenario, seed=1)


def test_what_is_older_than_two_weeks_goes() -> None:
    async def scenario(sim: Simulation) -> None:
        store = await open_store(sim, kinds=KINDS)
        log = await opened(sim, store, LogConfig(ttl=Duration("1h")))
        fill(log, sim, *range(objects.CHUNK))
        await log.flush()
        await sim.clock.sleep(1800)
        fill(log, sim, *range(objects.CHUNK, 2 * objects.CHUNK))
        await log.flush()
        await sim.clock.sleep(1801)
        fill(log, sim, 2 * objects.CHUNK)
        await log.flush()
        assert told(await log.tail(EVERYTHING)) == list(range(objects.CHUNK, 2 * objects.CHUNK + 1))

    run(scenario, seed=1)


def test_a_log_that_is_switched_off_keeps_nothing() -> None:
    async def scenario(sim: Simulation) -> None:
        log = await opened(sim, await open_store(sim, kinds=KINDS), LogConfig(default_level=LogLevel.DISABLED))
        fill(log, sim, 1)
        assert await log.tail(EVERYTHING) == ()

    run(scenario, seed=1)


def test_an_idle_log_writes_nothing() -> None:
    async def scenario(sim: Simulation) -> None:
        store = await open_store(sim, kinds=KINDS)
        log = await opened(sim, store)
        writing = asyncio.create_task(log.run())
        fill(log, sim, 1)
        await sim.clock.sleep(10)
        before = (await store.list(LogRecord)).resource_version
        await sim.clock.sleep(3600)
        assert (await store.list(LogRecord)).resource_version == before
        writing.cancel()

    run(scenario, seed=1)
