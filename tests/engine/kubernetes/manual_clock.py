"""Time that passes only when somebody sleeps or the test says so."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

START = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)


class ManualClock:
    def __init__(self) -> None:
        self.seconds = 1000.0
        self.slept: list[float] = []

    def now(self) -> datetime:
        return START + timedelta(seconds=self.seconds - 1000.0)

    def monotonic(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.seconds += seconds

    def advance(self, seconds: float) -> None:
        self.seconds += seconds
