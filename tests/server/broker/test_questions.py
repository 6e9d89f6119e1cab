"""A question that was put to the broker is answered there, whatever becomes of whoever asked."""

from __future__ import annotations

import asyncio

import pytest

from quorate.server.broker.questions import finished


class Deciding:
    """A decision that takes until it is let."""

    def __init__(self) -> None:
        self.begun, self.allowed = asyncio.Event(), asyncio.Event()
        self.made: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def decide(self) -> str:
        self.begun.set()
        await self.allowed.wait()
        self.made.set_result("granted")
        return "granted"


async def test_the_answer_comes_back() -> None:
    decision = Deciding()
    decision.allowed.set()
    assert await finished(decision.decide(), 10.0) == "granted"


async def test_who_hangs_up_does_not_undo_a_decision() -> None:
    decision = Deciding()
    asking = asyncio.ensure_future(finished(decision.decide(), 10.0))
    await decision.begun.wait()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    decision.allowed.set()
    assert await decision.made == "granted"


async def test_patience_ends_but_the_decision_does_not() -> None:
    decision = Deciding()
    with pytest.raises(TimeoutError, match="whether anything was decided is not known"):
        await finished(decision.decide(), 0.0)
    decision.allowed.set()
    assert await decision.made == "granted"
