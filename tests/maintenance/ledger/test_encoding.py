"""The ledger as an object's status."""

from __future__ import annotations

import zlib
from random import Random

import pytest

from quorate.api import codec
from quorate.api.maintenance.action import AvailabilityMode, Issue, Marker, StatusCode, TenantPolicy
from quorate.api.maintenance.broker_ledger import MAX_CONTENTS, BrokerLedger, BrokerLedgerStatus, LedgerCounters
from quorate.api.meta import ObjectMeta
from quorate.api.names import BROKER
from quorate.api.struct import replace
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
from quorate.maintenance.ledger.encoding import RESERVE, Encoder, _Contents, decode, encode
from quorate.maintenance.messages import Action
from quorate.maintenance.moments import FOREVER
from tests.maintenance.broker.desk import BEGIN, StillClock, memory_store, replacement, shutdown

FULL = Ledger(
    epoch=7,
    holder="one",
    revision=12,
    time_high_water=BEGIN + 123_456,
    counters=LedgerCounters(requests=1, permissions=2, notifications=3, nodes=4, drives=5, groups=6),
    permissions=(
        PermissionEntry(
            id="a-p-2",
            order=2,
            owner="a",
            action=replacement("pdisk-1-1", duration=FOREVER),
            deadline=FOREVER,
            granted_at=BEGIN,
            request_id="a-r-1",
            reason="ü",
            object_uid="uid",
        ),
    ),
    requests=(
        RequestEntry(
            id="a-r-1",
            order=1,
            owner="a",
            actions=(replace(shutdown("h1"), issue=Issue(message="not now")), Action(host="x")),
            partial_permission_allowed=True,
            reason="",
            duration=0,
            tenant_policy=TenantPolicy.NONE,
            availability_mode=AvailabilityMode.FORCE_RESTART,
            priority=-100,
            stored_at=BEGIN,
            renewed_at=BEGIN,
            last_deadline=FOREVER,
        ),
    ),
    notifications=(
        NotificationEntry(id="a-n-3", order=3, owner="a", actions=(shutdown("h1"),), time=BEGIN, reason="r"),
    ),
    tasks=(
        TaskEntry(
            id="t",
            type="x",
            issuer="i",
            action="reboot",
            hosts=("h1",),
            devices=(),
            request_id="",
            permission_ids=("a-p-2",),
        ),
    ),
    served=(ServedEntry(object_uid="uid", code=StatusCode.ALLOW),),
    markers=(MarkerEntry(item="pdisk-1-1", marker=Marker.DISK_FAULTY, since=BEGIN, by="root"),),
)


@pytest.mark.parametrize("ledger", [FULL, Ledger()])
async def test_what_is_written_is_read_again(ledger: Ledger) -> None:
    store = await memory_store(StillClock())
    await store.create(BrokerLedger(metadata=ObjectMeta(name=BROKER)))
    written = await store.patch_status(BrokerLedger, BROKER, patch=encode(ledger).patch())
    assert decode(written) == ledger


async def test_nothing_of_an_older_ledger_shines_through() -> None:
    store = await memory_store(StillClock())
    await store.create(BrokerLedger(metadata=ObjectMeta(name=BROKER)))
    await store.patch_status(BrokerLedger, BROKER, patch=encode(FULL).patch())
    after = Ledger(epoch=8, counters=LedgerCounters(permissions=2))
    assert decode(await store.patch_status(BrokerLedger, BROKER, patch=encode(after).patch())) == after


async def test_people_see_who_holds_it_and_how_much_is_in_it() -> None:
    store = await memory_store(StillClock())
    await store.create(BrokerLedger(metadata=ObjectMeta(name=BROKER)))
    status = (await store.patch_status(BrokerLedger, BROKER, patch=encode(FULL).patch())).status
    assert (status.epoch, status.holder, status.entries, status.counters) == (7, "one", 3, FULL.counters)


@pytest.mark.parametrize("contents", [b"not zlib", zlib.compress(b"{"), zlib.compress(b"[]")])
def test_a_ledger_that_cannot_be_read_is_an_error_and_never_an_empty_one(contents: bytes) -> None:
    damaged = BrokerLedger(metadata=ObjectMeta(name=BROKER), status=BrokerLedgerStatus(epoch=3, contents=contents))
    with pytest.raises(UndecodableObject, match="broker"):
        decode(damaged)


def test_a_full_ledger_has_room_left_for_ending_things() -> None:
    noise = Random(1)
    ledger = Ledger()
    while not (encoded := encode(ledger)).full:
        more = (replace(FULL.permissions[0], reason=noise.randbytes(500).hex()) for _ in range(20))
        ledger = replace(ledger, permissions=(*ledger.permissions, *more))
    assert not encoded.too_large
    assert MAX_CONTENTS - RESERVE < len(encoded.contents) <= MAX_CONTENTS


def test_entries_are_encoded_once_and_the_contents_are_those_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    encoder, encoded = Encoder(), []
    encode_ = codec.encode

    def counted(value: object) -> bytes:
        encoded.append(value)
        return encode_(value)

    monkeypatch.setattr(codec, "encode", counted)
    fields = ("revision", "permissions", "requests", "notifications", "tasks", "served", "markers")
    changed = replace(FULL, revision=13, requests=tuple(replace(each, reason="other") for each in FULL.requests))
    fewer = replace(changed, revision=14, permissions=())
    for ledger, entries in ((FULL, None), (changed, len(FULL.requests)), (fewer, 0), (Ledger(), 0), (FULL, None)):
        encoded.clear()
        whole = encode_(_Contents(**{name: getattr(ledger, name) for name in fields}))
        assert zlib.decompress(encoder.encode(ledger).contents) == whole
        if entries is not None:
            assert len(encoded) == entries + 1
