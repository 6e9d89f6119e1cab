"""The probes' own small server: what a kubelet and a Prometheus ask, and what goes wrong while they do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager

import pytest
from prometheus_client import CollectorRegistry, Gauge, Metric
from prometheus_client.registry import Collector

from quorate.engine.health import Health
from quorate.server.probes import Probes


@asynccontextmanager
async def served(
    health: Callable[[], Health] = Health, registry: CollectorRegistry | None = None, host: str = "127.0.0.1"
) -> AsyncIterator[int]:
    probes = Probes(health, registry or CollectorRegistry())
    port = await probes.listen(host, 0)
    try:
        yield port
    finally:
        await probes.close()


async def asked(port: int, request: bytes, host: str = "127.0.0.1") -> tuple[int, bytes]:
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(request)
    raw = await asyncio.wait_for(reader.read(), 5)
    writer.close()
    head, _, body = raw.partition(b"\r\n\r\n")
    assert b"Connection: close" in head
    return int(head.split()[1]), body


class Broken(Collector):
    def collect(self) -> Iterable[Metric]:
        raise RuntimeError("something inside")


async def test_a_kubelet_and_a_prometheus_get_what_they_ask_for() -> None:
    registry = CollectorRegistry()
    Gauge("height", "of it", registry=registry).set(3)
    async with served(registry=registry) as port:
        keep = b"Host: a\r\nConnection: keep-alive\r\nAccept-Encoding: gzip\r\n\r\n"
        assert await asked(port, b"GET /livez HTTP/1.1\r\n" + keep) == (200, b"ok")
        assert b"height 3.0" in (await asked(port, b"GET /metrics HTTP/1.1\r\n" + keep))[1]
        assert await asked(port, b"HEAD /metrics HTTP/1.1\r\n" + keep) == (200, b"")
        assert (await asked(port, b"POST /livez HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello"))[0] == 405


async def test_it_listens_on_ipv6_too() -> None:
    try:
        async with served(host="::1") as port:
            assert await asked(port, b"GET /readyz HTTP/1.1\r\n\r\n", "::1") == (200, b"ok")
    except OSError as error:
        pytest.skip(f"NOT TRIED: no IPv6 here: {error}")


async def test_what_cannot_be_told_is_an_answer_too() -> None:
    async with served(lambda: Health(not_live=("/srv/caf\udce9 hangs",))) as port:
        assert await asked(port, b"GET /livez HTTP/1.1\r\n\r\n") == (500, b"[-]/srv/caf\\udce9 hangs\ncheck failed\n")


async def test_an_error_of_a_metric_is_an_answer_and_in_the_log(capsys: pytest.CaptureFixture[str]) -> None:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(Broken())
    async with served(registry=registry) as port:
        status, body = await asked(port, b"GET /metrics HTTP/1.1\r\n\r\n")
        assert (status, b"something inside" in body) == (500, False)
        assert "something inside" in capsys.readouterr().err
        assert await asked(port, b"GET /livez HTTP/1.1\r\n\r\n") == (200, b"ok")
