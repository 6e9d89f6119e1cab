"""The broker's log, asked for."""

from __future__ import annotations

import pytest

from quorate.api.maintenance.log_record import RecordType
from quorate.maintenance.broker import MemoryLog
from quorate.maintenance.broker.log_tail import log_tail
from quorate.maintenance.messages import LogTailRequest, LogText

GRANTED, ENDED = RecordType.PERMISSION_GRANTED, RecordType.PERMISSION_ENDED


def written() -> MemoryLog:
    log = MemoryLog()
    for at, record_type, message in (
        (10, GRANTED, "a"),
        (10, ENDED, "b"),
        (20, GRANTED, "c"),
        (15, GRANTED, "late"),
        (30, ENDED, "d"),
    ):
        log.record(at, record_type, message, {"at": at})
    return log


@pytest.mark.parametrize(
    ("asked", "messages"),
    [
        (LogTailRequest(), ["a", "b", "c", "late", "d"]),
        (LogTailRequest(limit=2), ["late", "d"]),
        (LogTailRequest(limit=2, offset=1), ["c", "late"]),
        (LogTailRequest(offset=9), []),
        (LogTailRequest(limit=0), []),
        (LogTailRequest(limit=-5), []),
        (LogTailRequest(limit=10**12, offset=-3), ["a", "b", "c", "late", "d"]),
        (LogTailRequest(record_type=ENDED), ["b", "d"]),
        (LogTailRequest(record_type=ENDED, limit=1), ["d"]),
        (LogTailRequest(min_timestamp=11, max_timestamp=20), ["b", "c"]),
        (LogTailRequest(min_timestamp=31), []),
    ],
)
async def test_the_newest_that_fit_are_told_oldest_first(asked: LogTailRequest, messages: list[str]) -> None:
    assert [record.message for record in await log_tail(written(), asked)] == messages


async def test_no_two_records_have_the_same_time() -> None:
    stamps = [record.timestamp for record in await log_tail(written(), LogTailRequest())]
    assert stamps == [10, 11, 20, 21, 30]


@pytest.mark.parametrize(
    ("text", "message"), [(LogText.NONE, ""), (LogText.SHORT, "d"), (LogText.DETAILED, 'd {"at":30}')]
)
@pytest.mark.parametrize("include_data", [False, True])
async def test_as_much_is_told_as_was_asked_for(text: LogText, message: str, include_data: bool) -> None:
    (record,) = await log_tail(written(), LogTailRequest(limit=1, text_format=text, include_data=include_data))
    assert (record.message, record.data) == (message, {"at": 30} if include_data else {})
