"""A log that forgets when the process ends."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

from quorate.api.maintenance.log_record import RecordType
from quorate.maintenance.messages import LogLine, LogTailRequest
from quorate.maintenance.moments import FOREVER

#: As many as may be asked for at once.
KEPT = 10_000


class MemoryLog:
    """Implements :class:`quorate.maintenance.broker.ports.Log`."""

    def __init__(self) -> None:
        self._lines: deque[LogLine] = deque(maxlen=KEPT)

    def record(self, at: int, record_type: RecordType, message: str, data: Mapping[str, Any]) -> None:
        if self._lines:
            at = max(at, self._lines[-1].timestamp + 1)
        self._lines.append(LogLine(timestamp=at, record_type=record_type, message=message, data=data))

    def newest(self) -> int:
        return FOREVER  # it keeps nothing, so it misses nothing

    async def tail(self, asked: LogTailRequest) -> tuple[LogLine, ...]:
        newest_first = [line for line in reversed(self._lines) if _fits(line, asked)]
        return tuple(reversed(newest_first[asked.offset : asked.offset + min(asked.limit, KEPT)]))


def _fits(line: LogLine, asked: LogTailRequest) -> bool:
    return (
        (asked.record_type is None or line.record_type is asked.record_type)
        and line.timestamp >= asked.min_timestamp
        and (not asked.max_timestamp or line.timestamp <= asked.max_timestamp)
    )
