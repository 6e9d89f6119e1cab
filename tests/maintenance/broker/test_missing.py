"""After a crash the log tells of every grant and marker that the ledger has."""

from __future__ import annotations

from random import Random

from quorate.api.maintenance import LogRecord
from quorate.api.maintenance.action import Marker
from quorate.engine.embedded import EmbeddedStore
from quorate.maintenance.broker import Broker
from quorate.maintenance.log import ObjectLog
from quorate.maintenance.messages import LogTailRequest, MarkedItems, SetMarker
from tests.maintenance.broker.desk import ANYONE, KINDS, Desk, StillClock, copied


async def messages(log: ObjectLog) -> list[str]:
    return [line.message for line in await log.tail(LogTailRequest())]


async def test_what_the_log_lost_is_told_again_and_nothing_twice() -> None:
    store = await EmbeddedStore.open(
        None, kinds=(*KINDS, LogRecord.KIND), clock=StillClock(), random=Random(1), inline=True
    )
    desk = await Desk.open(store=store)
    log = ObjectLog(store, desk.clock)
    await log.open()
    broker = Broker(store, desk.model, desk.clock, holder="one", log=log)
    await desk.broker.close()
    await broker.start()
    desk.broker = broker
    await desk.ask("h1")
    desk.clock.advance(1)
    await log.flush()
    await desk.done("alice-p-1")
    await desk.ask("h2")
    await broker.set_marker(SetMarker(marker=Marker.DISK_FAULTY, items=MarkedItems(drives=("pdisk-1-1",))), ANYONE)
    before = await messages(log)
    await broker.close()  # and the log is not flushed
    again = ObjectLog(store, desk.clock)
    await again.open()
    successor = Broker(store, copied(desk.model), desk.clock, holder="two", log=again)
    await successor.start()
    told = await messages(again)
    assert before[:2] == told[:2] == ["one has the ledger, epoch 2", "alice-p-1 granted: SHUTDOWN_HOST h1"]
    assert told[2:4] == [
        "alice-p-2 granted, as the ledger has it",
        "pdisk-1-1: MARKER_DISK_FAULTY set by anyone, as the ledger has it",
    ]
    await again.flush()
    third = ObjectLog(store, desk.clock)
    await third.open()
    await successor.close()
    last = Broker(store, copied(desk.model), desk.clock, holder="three", log=third)
    await last.start()
    assert [line for line in await messages(third) if "as the ledger has it" in line] == told[2:4]
    await last.close()
    await store.close()
