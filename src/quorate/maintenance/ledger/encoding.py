"""A Ledger as the status of a BrokerLedger, and back."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

import msgspec

from quorate.api import codec
from quorate.api.maintenance.broker_ledger import MAX_CONTENTS, BrokerLedger, BrokerLedgerStatus, LedgerCounters
from quorate.api.struct import Struct
from quorate.errors import UndecodableObject
from quorate.maintenance.entries import (
    Ledger,
    MarkerEntry,
    NotificationEntry,
    PermissionEntry,
    RequestEntry,
    ServedEntry,
    TaskEntry,
)
from quorate.maintenance.moments import from_datetime, to_datetime

#: Kept free for what makes the ledger smaller in the end: ending a permission must never fail for want of room.
RESERVE = 16 * 1024

#: The fastest: the ledger is written with every decision, and entries are so alike that it is small all the same
#: (1,000 permissions: 240 kB of JSON, 22 kB at level 1 in 0.5 ms, 19 kB at level 6 in 1.6 ms).
_LEVEL = 1


def _fields(struct: type[Struct]) -> dict[str, None]:
    """A patch that removes every field."""
    return dict.fromkeys(field.encode_name for field in msgspec.structs.fields(cast("type[msgspec.Struct]", struct)))


#: Made once: asking msgspec for the fields takes longer than compressing the ledger.
_NO_STATUS: Final = _fields(BrokerLedgerStatus)
_NO_COUNTERS: Final = _fields(LedgerCounters)


class _Contents(Struct):
    """What is compressed. The rest of a Ledger is in fields of the status, where people can see it."""

    revision: int = 0
    permissions: tuple[PermissionEntry, ...] = ()
    requests: tuple[RequestEntry, ...] = ()
    notifications: tuple[NotificationEntry, ...] = ()
    tasks: tuple[TaskEntry, ...] = ()
    served: tuple[ServedEntry, ...] = ()
    markers: tuple[MarkerEntry, ...] = ()


class _RawContents(Struct):
    """The same, with every entry encoded already."""

    revision: int = 0
    permissions: tuple[msgspec.Raw, ...] = ()
    requests: tuple[msgspec.Raw, ...] = ()
    notifications: tuple[msgspec.Raw, ...] = ()
    tasks: tuple[msgspec.Raw, ...] = ()
    served: tuple[msgspec.Raw, ...] = ()
    markers: tuple[msgspec.Raw, ...] = ()


class Encoded(Struct):
    """A ledger, ready to be written."""

    ledger: Ledger
    contents: bytes

    @property
    def full(self) -> bool:
        """No room for more entries."""
        return len(self.contents) > MAX_CONTENTS - RESERVE

    @property
    def too_large(self) -> bool:
        """No room for what there is."""
        return len(self.contents) > MAX_CONTENTS

    def patch(self) -> dict[str, Any]:
        """What goes under ``status``; every field, so that nothing of an older ledger shines through."""
        ledger = self.ledger
        status = BrokerLedgerStatus(
            epoch=ledger.epoch,
            holder=ledger.holder,
            time_high_water=to_datetime(ledger.time_high_water),
            counters=ledger.counters,
            entries=len(ledger.permissions) + len(ledger.requests) + len(ledger.notifications),
            contents=self.contents,
        )
        patch = {**_NO_STATUS, **codec.to_builtins(status)}
        patch["counters"] = {**_NO_COUNTERS, **(patch["counters"] or {})}
        return patch


class Encoder:
    """Of ledgers that follow one another: entries never change, and most are in the next ledger too."""

    def __init__(self) -> None:
        #: By identity, of the last ledger; with the entry itself, so that nothing else gets its identity.
        self._known: dict[int, tuple[Struct, msgspec.Raw]] = {}

    def encode(self, ledger: Ledger) -> Encoded:
        """Compressed, and measured."""
        before, self._known = self._known, {}
        contents = _RawContents(
            revision=ledger.revision,
            permissions=self._raw(ledger.permissions, before),
            requests=self._raw(ledger.requests, before),
            notifications=self._raw(ledger.notifications, before),
            tasks=self._raw(ledger.tasks, before),
            served=self._raw(ledger.served, before),
            markers=self._raw(ledger.markers, before),
        )
        return Encoded(ledger=ledger, contents=zlib.compress(codec.encode(contents), _LEVEL))

    def _raw(
        self, entries: Iterable[Struct], before: Mapping[int, tuple[Struct, msgspec.Raw]]
    ) -> tuple[msgspec.Raw, ...]:
        raw: list[msgspec.Raw] = []
        for entry in entries:
            found = before.get(id(entry)) or (entry, msgspec.Raw(codec.encode(entry)))
            self._known[id(entry)] = found
            raw.append(found[1])
        return tuple(raw)


def encode(ledger: Ledger) -> Encoded:
    """A single one."""
    return Encoder().encode(ledger)


def decode(found: BrokerLedger) -> Ledger:
    """What the object holds. UndecodableObject: it cannot be read, and must not be overwritten."""
    status = found.status
    try:
        contents = codec.decode(_Contents, zlib.decompress(status.contents)) if status.contents else _Contents()
    except (zlib.error, msgspec.DecodeError) as error:
        raise UndecodableObject(kind="BrokerLedger", namespace="", name=found.name, problem=str(error)) from error
    return Ledger(
        epoch=status.epoch,
        holder=status.holder,
        revision=contents.revision,
        time_high_water=from_datetime(status.time_high_water) if status.time_high_water is not None else 0,
        counters=status.counters,
        permissions=contents.permissions,
        requests=contents.requests,
        notifications=contents.notifications,
        tasks=contents.tasks,
        served=contents.served,
        markers=contents.markers,
    )
