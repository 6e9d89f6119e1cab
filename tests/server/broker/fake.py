"""A broker that answers what it is told to, and remembers what it was asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, cast

from quorate.maintenance.broker import Broker
from quorate.maintenance.messages import Caller, Change


class FakeBroker:
    """Every method of Broker, by one rule: note the question, give the prepared answer (or raise it)."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Any, Caller]] = []
        self.answers: dict[str, Any] = {}
        self.happening: asyncio.Queue[Change | None] = asyncio.Queue()
        self.watched: list[tuple[str, str]] = []
        self.leading = True

    def __getattr__(self, name: str) -> Any:
        if name not in vars(Broker):
            raise AttributeError(name)

        async def method(question: Any, caller: Caller) -> Any:
            self.asked.append((name, question, caller))
            answer = self.answers[name]
            if isinstance(answer, Exception):
                raise answer
            if isinstance(answer, asyncio.Event):
                await answer.wait()
            return answer

        return method

    async def changes(self, *, user: str = "", request_id: str = "") -> AsyncIterator[Change]:
        self.watched.append((user, request_id))
        while (change := await self.happening.get()) is not None:
            yield change

    @property
    def as_broker(self) -> Broker:
        return cast("Broker", self)
