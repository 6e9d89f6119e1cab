"""What a crash took from the log. The ledger is written first, so it knows of things that no record tells."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from quorate.api.maintenance.log_record import RecordType
from quorate.maintenance.broker.draft import permission_data
from quorate.maintenance.entries import Ledger


class Record(NamedTuple):
    """As the log takes it."""

    at: int
    record_type: RecordType
    message: str
    data: Mapping[str, Any]


def missing_records(ledger: Ledger, newest: int) -> list[Record]:
    """Grants and markers that are younger than the log's newest record. What ended in that moment is not known."""
    return sorted((record for record in _records(ledger) if record.at > newest), key=lambda record: record.at)


def _records(ledger: Ledger) -> Iterator[Record]:
    for entry in ledger.permissions:
        told = f"{entry.id} granted, as the ledger has it"
        yield Record(entry.granted_at, RecordType.PERMISSION_GRANTED, told, permission_data(entry))
    for marker in ledger.markers:
        told = f"{marker.item}: {marker.marker} set by {marker.by}, as the ledger has it"
        data = {"item": marker.item, "after": [str(marker.marker)], "by": marker.by}
        yield Record(marker.since, RecordType.MARKERS_MODIFICATION, told, data)
