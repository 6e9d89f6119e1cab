"""ObjectLog: records in chunks, each a LogRecord object of the store."""

from __future__ import annotations

import asyncio
from bisect import insort
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from quorate.api.codec import to_builtins
from quorate.api.maintenance import LogRecord
from quorate.api.maintenance.broker_config import LogConfig, LogLevel
from quorate.api.maintenance.log_record import LogEntry, RecordType
from quorate.api.meta import ObjectMeta
from quorate.engine.clock import Clock
from quorate.engine.logs import get_logger
from quorate.engine.store import Store
from quorate.errors import AlreadyExists, Conflict, NotFound, QuorateError
from quorate.maintenance.messages import LogLine, LogTailRequest
from quorate.maintenance.moments import SECOND, from_datetime, to_datetime

#: Records of one chunk. Each write of a chunk writes all of them.
CHUNK: Final = 200
#: Chunks kept, whatever their age: a log is not what fills the store.
CHUNKS: Final = 1000
#: Records that wait while the store cannot be written. The oldest go first.
WAITING: Final = 10_000
#: The most that one question gets.
MAX_TAIL: Final = 10_000
#: Between two writes, in seconds.
PACE: Final = 1.0
#: The kind's own bound.
_MESSAGE: Final = 1024

_logger = get_logger(__name__)


@dataclass(frozen=True, slots=True, order=True)
class _Chunk:
    """A chunk that is not added to any more."""

    first: int
    last: int
    name: str


class ObjectLog:
    """Implements :class:`quorate.maintenance.broker.ports.Log` on a store."""

    def __init__(self, store: Store, clock: Clock, config: Callable[[], LogConfig] = LogConfig) -> None:
        self._store = store
        self._clock = clock
        self._config = config
        self._closed: list[_Chunk] = []
        #: The chunk that is being filled: its name, its resourceVersion, and what is in it.
        self._open: tuple[str, str] | None = None
        self._written: list[LogLine] = []
        self._waiting: deque[LogLine] = deque(maxlen=WAITING)
        self._last = 0
        self._lost = 0
        self._wake = asyncio.Event()

    async def open(self) -> None:
        """Read which chunks there are. A new chunk is begun for what comes: the old ones may be another leader's."""
        self._closed = sorted(
            _Chunk(from_datetime(each.status.first_timestamp), from_datetime(each.status.last_timestamp), each.name)
            for each in (await self._store.list(LogRecord)).items
            if each.status.first_timestamp is not None and each.status.last_timestamp is not None
        )
        self._last = max((chunk.last for chunk in self._closed), default=0)

    def record(self, at: int, record_type: RecordType, message: str, data: Mapping[str, Any]) -> None:
        if self._config().default_level is LogLevel.DISABLED:
            return
        self._last = max(at, self._last + 1)
        if len(self._waiting) == WAITING:
            self._lost += 1
        self._waiting.append(
            LogLine(timestamp=self._last, record_type=record_type, message=message[:_MESSAGE], data=data)
        )
        self._wake.set()

    def newest(self) -> int:
        return self._last

    async def tail(self, asked: LogTailRequest) -> tuple[LogLine, ...]:
        found: list[LogLine] = []
        enough = asked.offset + min(asked.limit, MAX_TAIL)
        async with aclosing(self._newest_first(asked)) as lines:
            async for line in lines:
                if len(found) >= enough:
                    break
                if asked.record_type is None or line.record_type is asked.record_type:
                    found.append(line)
        return tuple(reversed(found[asked.offset : enough]))

    async def run(self) -> None:
        """Write what comes, until cancelled."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            try:
                await self.flush()
            except QuorateError as error:
                _logger.warning("broker log not written yet", error=str(error), waiting=len(self._waiting))
                self._wake.set()
            await self._clock.sleep(PACE)

    async def flush(self) -> None:
        """Write what waits, and remove what is too old."""
        while self._waiting:
            if self._open is None or len(self._written) >= CHUNK:
                await self._begin()
            await self._add(min(len(self._waiting), CHUNK - len(self._written)))
        if self._lost:
            _logger.warning("records of the broker's log were dropped: the store could not be written", lost=self._lost)
            self._lost = 0
        await self._forget()

    async def _begin(self) -> None:
        """A new chunk, named by its first record: a retry finds its own."""
        if self._open is not None:
            self._close_chunk()
        name = f"log-{self._waiting[0].timestamp:020}"
        try:
            made = await self._store.create(LogRecord(metadata=ObjectMeta(name=name)))
        except AlreadyExists:
            made = await self._store.get(LogRecord, name)
        self._open = (name, made.metadata.resource_version)

    async def _add(self, count: int) -> None:
        assert self._open is not None
        name, version = self._open
        new = [self._waiting[index] for index in range(count)]
        lines = [*self._written, *new]
        patch = {
            "firstTimestamp": to_builtins(_moment(lines[0].timestamp)),
            "lastTimestamp": to_builtins(_moment(lines[-1].timestamp)),
            "entries": [to_builtins(_entry(line)) for line in lines],
        }
        try:
            made = await self._store.patch_status(LogRecord, name, patch=patch, resource_version=version)
        except (Conflict, NotFound):
            # Another leader writes it, or somebody deleted it, or a write of ours arrived that we had given up.
            await self._leave(name)
            return
        self._open, self._written = (name, made.metadata.resource_version), lines
        for _ in new:
            self._waiting.popleft()

    def _close_chunk(self) -> None:
        assert self._open is not None
        insort(self._closed, _Chunk(self._written[0].timestamp, self._written[-1].timestamp, self._open[0]))
        self._open, self._written = None, []

    async def _leave(self, name: str) -> None:
        """Go on in another chunk; what is in this one need not be written again."""
        self._open, self._written = None, []
        with suppress(NotFound):
            found = await self._store.get(LogRecord, name)
            lines = [_line(entry) for entry in found.status.entries]
            arrived = {line.timestamp for line in lines}
            while self._waiting and self._waiting[0].timestamp in arrived:
                self._waiting.popleft()
            if lines:
                insort(self._closed, _Chunk(lines[0].timestamp, lines[-1].timestamp, name))

    async def _forget(self) -> None:
        oldest = from_datetime(self._clock.now()) - int(self._config().ttl.seconds * SECOND)
        while self._closed and (self._closed[0].last < oldest or len(self._closed) > CHUNKS):
            with suppress(NotFound):
                await self._store.delete(LogRecord, self._closed[0].name)
            del self._closed[0]

    async def _newest_first(self, asked: LogTailRequest) -> AsyncGenerator[LogLine]:
        def fits(line: LogLine) -> bool:
            return line.timestamp >= asked.min_timestamp and (
                not asked.max_timestamp or line.timestamp <= asked.max_timestamp
            )

        for line in (*reversed(self._waiting), *reversed(self._written)):
            if fits(line):
                yield line
        for chunk in reversed(tuple(self._closed)):
            if chunk.last < asked.min_timestamp:
                return
            if asked.max_timestamp and chunk.first > asked.max_timestamp:
                continue
            try:
                found = await self._store.get(LogRecord, chunk.name)
            except NotFound:
                continue
            for entry in reversed(found.status.entries):
                if fits(line := _line(entry)):
                    yield line


def _entry(line: LogLine) -> LogEntry:
    return LogEntry(
        timestamp=_moment(line.timestamp), record_type=line.record_type, message=line.message, data=line.data
    )


def _line(entry: LogEntry) -> LogLine:
    return LogLine(
        timestamp=from_datetime(entry.timestamp),
        record_type=entry.record_type,
        message=entry.message,
        data=entry.data,
    )


def _moment(moment: int) -> datetime:
    return to_datetime(moment) or datetime.max.replace(tzinfo=UTC)
