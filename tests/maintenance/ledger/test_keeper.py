"""Writing the ledger when the store does not answer as it should."""

from __future__ import annotations

import asyncio

import pytest

from quorate.api.maintenance.action import Marker
from quorate.api.maintenance.broker_ledger import BrokerLedger
from quorate.api.names import BROKER
from quorate.api.struct import replace
from quorate.engine.embedded import EmbeddedStore
from quorate.errors import Invalid, NotLeader
from quorate.maintenance.entries import Ledger, MarkerEntry
from quorate.maintenance.ledger.encoding import decode, encode
from quorate.maintenance.ledger.keeper import LedgerKeeper, LedgerLost, NotWritten, Unsettled
from tests.maintenance.broker.desk import StillClock, memory_store
from tests.maintenance.broker.faults import FaultyStore


class Restless(StillClock):
    """Nobody waits here: a pause passes at once."""

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)
        self.advance(seconds)


class Rig:
    """A keeper with a ledger of its own."""

    store: EmbeddedStore
    faulty: FaultyStore
    keeper: LedgerKeeper
    ledger: Ledger

    @classmethod
    async def open(cls, *script: str) -> Rig:
        rig = cls()
        clock = Restless()
        rig.store = await memory_store(clock)
        rig.faulty = FaultyStore(rig.store)
        rig.keeper = LedgerKeeper(rig.faulty, clock, holder="one")
        rig.ledger = await rig.keeper.take_over(None)
        rig.faulty.script = list(script)
        rig.faulty.history.clear()
        return rig

    def next(self, word: str = "x") -> Ledger:
        """One write further."""
        marker = MarkerEntry(item=word, marker=Marker.DISK_ACTIVE, since=0, by="me")
        return replace(self.ledger, revision=self.ledger.revision + 1, markers=(marker,))

    async def write(self, ledger: Ledger) -> None:
        await self.keeper.write(encode(ledger))
        self.ledger = ledger

    async def stored(self) -> Ledger:
        return decode(await self.store.get(BrokerLedger, BROKER))


async def test_the_first_who_comes_makes_the_ledger_and_writes_its_epoch() -> None:
    rig = await Rig.open()
    assert await rig.stored() == rig.ledger
    assert (rig.ledger.epoch, rig.ledger.holder) == (1, "one")


@pytest.mark.parametrize(
    "script",
    [
        ["done"],
        ["lost", "done"],
        ["unheard"],
        ["lost", "lost", "unheard"],
        ["away", "away", "done"],
        ["touched"],
        ["touched", "lost", "unheard"],
    ],
)
async def test_a_write_arrives_once_whatever_became_of_its_answers(script: list[str]) -> None:
    rig = await Rig.open(*script)
    ledger = rig.next()
    await rig.write(ledger)
    assert await rig.stored() == ledger
    assert rig.faulty.history.count("done") + rig.faulty.history.count("unheard") <= 1
    await rig.write(rig.next("y"))
    assert (await rig.stored()).markers[0].item == "y"


async def test_a_write_that_arrives_late_finds_that_it_has_been_made() -> None:
    rig = await Rig.open("late", "done")
    ledger = rig.next()
    await rig.write(ledger)
    assert await rig.faulty.deliver() == ["conflict"]
    assert await rig.stored() == ledger


async def test_a_refused_write_is_certainly_not_made() -> None:
    rig = await Rig.open("refused")
    with pytest.raises(NotWritten, match="disk full"):
        await rig.keeper.write(encode(rig.next()))
    assert await rig.stored() == rig.ledger


async def test_a_store_that_is_away_for_long_means_not_written() -> None:
    rig = await Rig.open(*["away"] * 1000)
    with pytest.raises(NotWritten, match="no connection"):
        await rig.keeper.write(encode(rig.next()))
    assert await rig.stored() == rig.ledger


@pytest.mark.parametrize("first", ["lost", "unheard", "late"])
async def test_when_nobody_answers_for_long_nothing_is_claimed_and_the_next_write_settles_it(first: str) -> None:
    rig = await Rig.open(first, *["away"] * 1000)
    rig.faulty.deaf = True
    in_doubt = rig.next("doubt")
    with pytest.raises(Unsettled):
        await rig.keeper.write(encode(in_doubt))
    rig.faulty.deaf, rig.faulty.script = False, []
    settled = replace(rig.ledger, revision=in_doubt.revision + 1)
    await rig.write(settled)
    assert await rig.stored() == settled
    assert set(await rig.faulty.deliver()) <= {"conflict"}
    assert await rig.stored() == settled


async def test_a_late_write_between_reading_and_settling_is_settled_too() -> None:
    rig = await Rig.open("late", *["away"] * 1000)
    rig.faulty.deaf = True
    in_doubt = rig.next("doubt")
    with pytest.raises(Unsettled):
        await rig.keeper.write(encode(in_doubt))
    rig.faulty.deaf, rig.faulty.script = False, []
    assert await rig.faulty.deliver() == ["done"]
    settled = replace(rig.ledger, revision=in_doubt.revision + 1)
    await rig.write(settled)
    assert await rig.stored() == settled


async def test_whoever_takes_over_ends_the_others_writing() -> None:
    rig = await Rig.open()
    other = LedgerKeeper(rig.store, StillClock(), holder="two")
    after = await other.take_over(None)
    assert after.epoch == rig.ledger.epoch + 1
    with pytest.raises(LedgerLost, match="epoch 2 of two"):
        await rig.write(rig.next())
    assert await rig.stored() == after


async def test_a_write_of_the_last_leader_that_arrives_late_is_refused() -> None:
    rig = await Rig.open("late", *["away"] * 1000)
    rig.faulty.deaf = True
    with pytest.raises(Unsettled):
        await rig.keeper.write(encode(rig.next("doubt")))
    after = await LedgerKeeper(rig.store, StillClock(), holder="two").take_over(None)
    assert await rig.faulty.deliver() == ["conflict"]
    assert await rig.stored() == after


async def test_the_store_itself_refuses_an_older_epoch() -> None:
    rig = await Rig.open()
    await LedgerKeeper(rig.store, StillClock(), holder="two").take_over(None)
    with pytest.raises(Invalid, match="another leader"):
        await rig.store.patch_status(BrokerLedger, BROKER, patch=encode(rig.next()).patch())


async def test_somebody_who_writes_under_our_name_is_noticed() -> None:
    rig = await Rig.open()
    forged = replace(rig.ledger, revision=99)
    await rig.store.patch_status(BrokerLedger, BROKER, patch=encode(forged).patch())
    with pytest.raises(LedgerLost, match="revision 99"):
        await rig.write(rig.next())


async def test_an_elected_leader_with_an_old_epoch_is_turned_away() -> None:
    rig = await Rig.open()
    keeper = LedgerKeeper(rig.store, StillClock(), holder="two")
    assert (await keeper.take_over(5)).epoch == 5
    for late in (4, 5):
        with pytest.raises(NotLeader, match="epoch 5 of two"):
            await LedgerKeeper(rig.store, StillClock(), holder="three").take_over(late)
    assert (await keeper.take_over(5)).epoch == 5


@pytest.mark.parametrize("script", [["unheard"], ["lost"]])
async def test_taking_over_may_be_tried_again_when_it_got_no_answer(script: list[str]) -> None:
    rig = await Rig.open()
    faulty = FaultyStore(rig.store, script)
    keeper = LedgerKeeper(faulty, StillClock(), holder="two")
    with pytest.raises(Exception, match="no answer"):
        await keeper.take_over(7)
    assert (await keeper.take_over(7)).epoch == 7


async def test_a_ledger_that_is_written_while_it_is_taken_over_is_read_again() -> None:
    rig = await Rig.open()

    class Racing(FaultyStore):
        async def get(self, cls, name, namespace=""):  # type: ignore[no-untyped-def]
            found = await super().get(cls, name, namespace)
            if not self.history:
                self.history.append("raced")
                await rig.write(rig.next("last words"))
            return found

    taken = await LedgerKeeper(Racing(rig.store), StillClock(), holder="two").take_over(None)
    assert taken.markers[0].item == "last words"


async def test_a_ledger_that_somebody_deleted_is_made_again_with_all_that_was_in_it() -> None:
    rig = await Rig.open()
    await rig.store.delete(BrokerLedger, BROKER)
    ledger = rig.next()
    await rig.write(ledger)
    assert await rig.stored() == ledger
