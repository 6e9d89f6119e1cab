"""Whose object is woken when the ledger changes, and that nobody waits for a thousand changes to be told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest

from quorate.api.maintenance import PermissionRequest
from quorate.api.maintenance.action import AvailabilityMode, TenantPolicy
from quorate.api.maintenance.broker_config import BrokerConfigSpec
from quorate.api.maintenance.permission_request import PermissionRequestSpec
from quorate.api.meta import ObjectMeta
from quorate.engine import Key
from quorate.maintenance.entries import Ledger, RequestEntry
from quorate.maintenance.live.broker import LiveBroker
from quorate.maintenance.live.numbers import Names
from quorate.maintenance.live.objects import LedgerObjects
from quorate.maintenance.messages import Change, ChangeKind, ChangeVerb
from quorate.maintenance.model import ClusterModel
from tests.maintenance.broker.desk import StillClock


def entry(number: int) -> RequestEntry:
    return RequestEntry(
        id=f"alice-r-{number}",
        order=number,
        owner="alice",
        actions=(),
        partial_permission_allowed=False,
        reason="",
        duration=None,
        tenant_policy=TenantPolicy.DEFAULT,
        availability_mode=AvailabilityMode.MAX_AVAILABILITY,
        priority=0,
        stored_at=0,
        renewed_at=0,
        last_deadline=0,
        object_uid=f"u-{number}",
    )


def woken_by(*changes: Change) -> list[str]:
    """Of five objects that ask, and wait in this order."""
    broker: Any = SimpleNamespace(ledger=Ledger(requests=tuple(map(entry, range(1, 6)))))
    reader: Any = SimpleNamespace(
        find=lambda cls, index, uid: (
            [PermissionRequest(metadata=ObjectMeta(name=uid), spec=PermissionRequestSpec(user="alice", actions=()))]
            if cls is PermissionRequest
            else []
        )
    )
    objects = LedgerObjects(broker, ClusterModel(BrokerConfigSpec()), Names(), lambda work: None, StillClock())
    objects.follow(reader)
    woken: list[Key] = []
    objects._asked.signal.subscribe(woken.append)
    for change in changes:
        objects.tell(change)
    return sorted({key.name for key in woken})


@pytest.mark.parametrize(
    ("verb", "number", "woken"),
    [
        (ChangeVerb.ANSWER, 3, ["u-3"]),
        (ChangeVerb.CHANGED, 3, ["u-3"]),
        (ChangeVerb.ADDED, 3, ["u-3", "u-4", "u-5"]),
        (ChangeVerb.ADDED, 5, ["u-5"]),
        (ChangeVerb.ENDED, 6, ["u-1", "u-2", "u-3", "u-4", "u-5", "u-6"]),
    ],
)
def test_only_those_are_woken_whose_place_is_another(verb: ChangeVerb, number: int, woken: list[str]) -> None:
    kind = ChangeKind.REQUEST
    change = Change(kind=kind, verb=verb, id=f"alice-r-{number}", owner="alice", object_uid=f"u-{number}")
    assert woken_by(change) == woken


async def test_others_go_on_between_two_changes() -> None:
    heard: list[int] = []
    rounds = 0

    async def many(*, reasons: bool) -> AsyncIterator[Change]:
        for number in range(100):
            yield Change(kind=ChangeKind.REQUEST, verb=ChangeVerb.CHANGED, id=f"alice-r-{number}", owner="alice")

    live: Any = SimpleNamespace(
        broker=SimpleNamespace(changes=many),
        _objects=SimpleNamespace(wake_all=lambda: None, tell=lambda change: heard.append(rounds)),
        on_lost=lambda why: None,
    )
    listening = asyncio.ensure_future(LiveBroker._listen(live))
    while not listening.done():
        rounds += 1
        await asyncio.sleep(0)
    assert len(heard) == len(set(heard)) == 100
