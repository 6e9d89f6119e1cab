"""The broker over an embedded file, over HTTP, and over a real API server: the same answers, and the same fences."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from random import Random

import pytest

from quorate.api.duration import Duration
from quorate.api.maintenance.action import StatusCode
from quorate.api.maintenance.broker_config import BrokerConfigSpec
from quorate.api.maintenance.broker_ledger import BrokerLedger
from quorate.api.names import BROKER
from quorate.engine.clock import SystemClock
from quorate.engine.kubernetes import KubernetesStore, load_connection
from quorate.engine.store import Store
from quorate.maintenance.broker import Broker
from quorate.maintenance.ledger.encoding import decode
from quorate.maintenance.messages import (
    GetConfig,
    ManagePermission,
    PermissionCommand,
    PermissionRequest,
    PermissionResponse,
    SetConfig,
)
from tests.conformance.targets import embedded, facade
from tests.maintenance.broker.desk import ANYONE, KINDS, new_model, shutdown

ALLOW, TEMP, ERROR_TEMP = StatusCode.ALLOW, StatusCode.DISALLOW_TEMP, StatusCode.ERROR_TEMP


@pytest.fixture(params=["embedded", "facade", pytest.param("apiserver", marks=pytest.mark.apiserver)])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    async with AsyncExitStack() as ending:
        if request.param == "embedded":
            yield (await ending.enter_async_context(embedded(tmp_path, KINDS))).store
        elif request.param == "facade":
            yield (await ending.enter_async_context(facade(tmp_path, KINDS))).store
        else:
            apiserver = request.getfixturevalue("apiserver")
            apiserver.install_crds(KINDS)
            clock = SystemClock()
            connection = load_connection(environ={}, clock=clock, kubeconfig=apiserver.kubeconfig)
            made = KubernetesStore(connection, clock=clock, random=Random(1))
            ending.push_async_callback(made.close)
            ending.callback(apiserver.clear, *KINDS)
            yield made


async def ask(broker: Broker, host: str, user: str = "alice") -> PermissionResponse:
    return await broker.permission_request(PermissionRequest(user=user, actions=(shutdown(host),)), ANYONE)


async def done(broker: Broker, *ids: str) -> StatusCode:
    message = ManagePermission(command=PermissionCommand.DONE, user="alice", permissions=ids)
    return (await broker.manage_permission(message, ANYONE)).status.code


async def test_a_permission_survives_its_broker_and_is_granted_by_one_only(store: Store) -> None:
    first = Broker(store, new_model(), SystemClock(), holder="first")
    await first.start()
    assert (await ask(first, "h1")).status.code is ALLOW
    second = Broker(store, new_model(), SystemClock(), holder="second")
    await second.start()
    assert (await ask(second, "h2", "bob")).status.code is TEMP
    assert await done(first, "alice-p-1") is ERROR_TEMP
    assert not first.leading
    assert await done(second, "alice-p-1") is StatusCode.OK
    answers = await asyncio.gather(*(ask(second, f"h{number}") for number in range(1, 9)))
    assert [answer.status.code for answer in answers].count(ALLOW) == 1
    written = decode(await store.get(BrokerLedger, BROKER))
    assert (written.holder, written.epoch, len(written.permissions)) == ("second", 2, 1)
    assert written.permissions == second.ledger.permissions
    await first.close()
    await second.close()


async def test_a_label_on_the_ledger_disturbs_nobody(store: Store) -> None:
    broker = Broker(store, new_model(), SystemClock(), holder="first")
    await broker.start()
    await store.patch(BrokerLedger, BROKER, patch={"metadata": {"labels": {"looked-at": "yes"}}})
    assert (await ask(broker, "h1")).status.code is ALLOW
    await broker.close()


async def test_the_configuration_is_an_object(store: Store) -> None:
    broker = Broker(store, new_model(), SystemClock(), holder="first")
    await broker.start()
    for config in (
        BrokerConfigSpec(default_retry_time=Duration("7s")),
        BrokerConfigSpec(default_permission_duration=Duration("9s")),
    ):
        assert (await broker.set_config(SetConfig(config=config), ANYONE)).status.code is StatusCode.OK
        assert (await broker.get_config(GetConfig(), ANYONE)).config == config
    await broker.close()
    again = Broker(store, new_model(), SystemClock(), holder="second")
    await again.start()
    assert (await again.get_config(GetConfig(), ANYONE)).config == config
    await again.close()
