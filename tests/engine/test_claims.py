"""What a plan claims is claimed for as long as the outcome of its writes is open, and not a moment longer."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from datetime import datetime
from random import Random

import pytest

from quorate.engine.plan import Plan
from quorate.engine.simulation import Simulation, run
from quorate.errors import Conflict, Forbidden, OutcomeUnknown, ServerTimeout
from tests.engine.test_worker import TroubledStore, controller, finish, work
from tests.support.kinds import Widget


class Diary:
    """Notes in order what was claimed, given back, written and read past the cache."""

    def __init__(self, refusals: int = 0) -> None:
        self.lines: list[str] = []
        self.refusals = refusals

    def claim(self) -> Callable[[], None]:
        if self.refusals:
            self.refusals -= 1
            raise Conflict("held by somebody")
        self.lines.append("claimed")
        return lambda: self.lines.append("given back")

    def decide(self, this: Widget, now: datetime, random: Random) -> Plan:
        return dataclasses.replace(finish(this, now, random), claim=self.claim)


@pytest.mark.parametrize(
    ("failure", "applied", "expected"),
    [
        (None, False, ["claimed", "given back"]),
        (Conflict("stale"), False, ["claimed", "given back", "claimed", "given back"]),
        (Forbidden("no"), False, ["claimed", "given back", "claimed", "given back"]),
        # It may have been written: nobody may come in before that is known.
        (OutcomeUnknown("reset"), True, ["claimed", "given back"]),
        (ServerTimeout("slow"), False, ["claimed", "given back", "claimed", "given back"]),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)
def test_a_claim_lasts_until_the_outcome_is_known(
    failure: Exception | None, applied: bool, expected: list[str]
) -> None:
    async def main(sim: Simulation) -> None:
        diary = Diary()
        store, _, _ = await work(sim, lambda store: store.prepare(failure, applied=applied), controller(diary.decide))
        assert diary.lines == expected
        assert (await store.get(Widget, "w")).status.phase == "Done"

    run(main, seed=1)


def test_a_claim_in_doubt_is_given_back_only_after_the_object_was_read_again() -> None:
    async def main(sim: Simulation) -> None:
        diary = Diary()

        def prepare(store: TroubledStore) -> None:
            store.prepare(OutcomeUnknown("reset"), applied=True)
            store.got = Reads(diary)

        await work(sim, prepare, controller(diary.decide))
        assert diary.lines == ["claimed", "read w", "given back"]

    run(main, seed=1)


class Reads(list[str]):
    """A list that tells the diary what is put into it."""

    def __init__(self, diary: Diary) -> None:
        super().__init__()
        self._diary = diary

    def append(self, name: str) -> None:
        self._diary.lines.append(f"read {name}")
        super().append(name)


def test_a_claim_that_is_refused_is_a_conflict_and_nothing_is_written() -> None:
    async def main(sim: Simulation) -> None:
        diary = Diary(refusals=2)
        store, metrics, passes = await work(sim, lambda store: store.prepare(None), controller(diary.decide))
        assert metrics["controller_runtime_reconcile_total conflict"] == 2
        assert diary.lines == ["claimed", "given back"]
        assert len(passes) == 4
        assert (await store.get(Widget, "w")).status.phase == "Done"

    run(main, seed=1)


def test_a_plan_that_writes_nothing_claims_nothing() -> None:
    async def main(sim: Simulation) -> None:
        diary = Diary()
        this = controller(lambda *_: Plan(claim=diary.claim))
        await work(sim, lambda store: store.prepare(None), this)
        assert diary.lines == []

    run(main, seed=1)
