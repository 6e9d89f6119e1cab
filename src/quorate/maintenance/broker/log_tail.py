"""The end of the log, with as much text and data as was asked for."""

from __future__ import annotations

from typing import Final

from quorate.api.codec import encode
from quorate.api.struct import replace
from quorate.maintenance.broker.ports import Log
from quorate.maintenance.messages import LogLine, LogTailRequest, LogText

#: The most records that one question gets.
MOST_RECORDS: Final = 10_000


async def log_tail(log: Log, asked: LogTailRequest) -> tuple[LogLine, ...]:
    """The newest records that fit, oldest first."""
    within = replace(asked, limit=min(max(asked.limit, 0), MOST_RECORDS), offset=max(asked.offset, 0))
    return tuple(_told(record, within) for record in await log.tail(within))


def _told(record: LogLine, asked: LogTailRequest) -> LogLine:
    message = record.message
    if asked.text_format is LogText.NONE:
        message = ""
    elif asked.text_format is LogText.DETAILED and record.data:
        message = f"{message} {encode(record.data).decode()}"
    return replace(record, message=message, data=record.data if asked.include_data else {})
