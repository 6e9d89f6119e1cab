"""What ``quorate up`` is made of."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random, SystemRandom
from typing import NoReturn

import aiohttp
import pytest

from quorate.api.core import Namespace
from quorate.config import Config
from quorate.engine.clock import SystemClock
from quorate.engine.embedded import Database
from quorate.engine.kubernetes import KubernetesStore, load_connection
from quorate.errors import StorageFull
from quorate.server import standalone
from quorate.server.kubernetes.tls import ensure_certificates


class Enough(Exception):
    pass


async def test_secrets_are_made_from_chance_that_nobody_can_guess(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Random] = []

    def note(*_: object, chance: Random, **__: object) -> NoReturn:
        given.append(chance)
        raise Enough

    monkeypatch.setattr(standalone, "standalone", note)
    with pytest.raises(Enough):
        await standalone.run(Config(), announce=print)
    assert [type(chance) for chance in given] == [SystemRandom]


async def asked(url: str, path: str) -> tuple[int, str]:
    async with aiohttp.ClientSession() as session, session.get(url + path) as answer:
        return answer.status, await answer.text()


async def test_it_is_not_ready_while_no_write_succeeds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = Config(data=str(tmp_path), port=0, nodes=0)
    async with standalone.standalone(config, clock=SystemClock(), chance=Random(1)) as up:
        async with asyncio.timeout(20):
            while (await asked(up.url, "/readyz"))[0] != 200:  # noqa: ASYNC110 - only asking tells
                await asyncio.sleep(0.05)

        def refuse(*_: object) -> None:
            raise StorageFull("no space left on the disk")

        append = Database.append
        monkeypatch.setattr(Database, "append", refuse)
        async with aiohttp.ClientSession() as session:
            space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}}
            async with session.post(f"{up.url}/api/v1/namespaces", json=space) as answer:
                assert answer.status == 500
            code, said = await asked(up.url, "/readyz")
            assert code == 500
            assert "the last write failed: no space left on the disk" in said
            assert (await asked(up.url, "/livez"))[0] == 200, "a restart would not help"
            monkeypatch.setattr(Database, "append", append)
            async with session.post(f"{up.url}/api/v1/namespaces", json=space) as answer:
                assert answer.status == 201
        assert (await asked(up.url, "/readyz"))[0] == 200


@pytest.mark.parametrize("given", ["authority", "chain", "chain and key"])
async def test_a_kubeconfig_for_ones_own_certificate_is_one_that_clients_trust(tmp_path: Path, given: str) -> None:
    clock = SystemClock()
    own = ensure_certificates(tmp_path / "own", ("localhost", "127.0.0.1"), clock.now())
    assert own.authority is not None
    chain = tmp_path / "chain.crt"
    ends_in = own.authority.read_bytes() if given != "authority" else b""
    key = own.key.read_bytes() if given == "chain and key" else b""
    chain.write_bytes(own.certificate.read_bytes() + ends_in + key)
    config = Config(
        data=str(tmp_path / "data"),
        port=0,
        nodes=0,
        tls_certificate=str(chain),
        tls_key=str(chain if key else own.key),
        tls_authority=str(own.authority) if given == "authority" else "",
    )
    async with standalone.standalone(config, clock=clock, chance=Random(1)):
        connection = load_connection(environ={}, clock=clock, kubeconfig=tmp_path / "data" / "kubeconfig")
        address = f"{connection.server}/join/v1/authority"
        async with aiohttp.ClientSession() as session, session.get(address, ssl=False) as answer:
            assert "PRIVATE KEY" not in await answer.text(), "anybody may ask for it"
        store = KubernetesStore(connection, clock=clock, random=Random(1))
        try:
            assert (await store.list(Namespace)).items
        finally:
            await store.close()
