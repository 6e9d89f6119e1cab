"""Requests to an API server that misbehaves in every way there is."""

from __future__ import annotations

import asyncio
import socket
import ssl
import traceback
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from quorate.api.secret import Secret
from quorate.engine.kubernetes.connection import Connection
from quorate.engine.kubernetes.credentials import FixedCredentials, Identity
from quorate.engine.kubernetes.tls import ClientCertificate
from quorate.engine.kubernetes.transport import Limits, Transport
from quorate.errors import (
    ConfigError,
    Forbidden,
    InternalError,
    NotFound,
    OutcomeUnknown,
    QuorateError,
    ServiceUnavailable,
    StoreUnreachable,
    TooManyRequests,
    Unauthorized,
)
from tests.engine.kubernetes.manual_clock import ManualClock
from tests.engine.kubernetes.scripted import (
    Action,
    ScriptedServer,
    answer,
    cut,
    cut_in_answer,
    hang,
    scripted,
    status,
    stream,
)
from tests.support.certificates import Authority

QUICK = Limits(write_timeout=0.3, read_timeout=0.3, connect_timeout=0.2, watch_silence=0.2, retries=3)


class Renewable:
    """Credentials that get better when they are refused, a given number of times."""

    def __init__(self, renewals: int) -> None:
        self.renewals = renewals
        self.current = Identity(Secret("token-0"))

    async def identity(self) -> Identity:
        return self.current

    async def renew(self, refused: Identity) -> Identity:
        if self.renewals > 0:
            self.renewals -= 1
            self.current = Identity(Secret(f"token-{self.renewals}-renewed"))
        return self.current


class Rig:
    def __init__(self, server: ScriptedServer, transport: Transport, clock: ManualClock) -> None:
        self.server, self.transport, self.clock = server, transport, clock
        self.seen: list[tuple[str, str]] = []


@asynccontextmanager
async def rig(*script: Action, limits: Limits = QUICK, renewals: int = 0) -> AsyncIterator[Rig]:
    clock = ManualClock()
    async with scripted(*script) as server:
        made = Rig(server, None, clock)  # type: ignore[arg-type]
        made.transport = Transport(
            Connection(server=server.url, credentials=Renewable(renewals), origin="test"),
            clock=clock,
            limits=limits,
            observe=lambda method, _host, code, _seconds: made.seen.append((method, code)),
        )
        try:
            yield made
        finally:
            await made.transport.close()


class TestAnswers:
    async def test_a_read_gives_the_body(self) -> None:
        async with rig(answer(200, {"a": 1})) as it:
            assert await it.transport.read("/x?y=z") == b'{"a": 1}'
            request = it.server.requests[0]
            assert (request.method, request.target) == ("GET", "/x?y=z")
            assert request.headers["authorization"] == "Bearer token-0"
            assert request.headers["accept"] == "application/json"
            assert request.headers["user-agent"].startswith("quorate/")
            assert "content-type" not in request.headers

    async def test_a_write_carries_its_body_and_type(self) -> None:
        async with rig(answer(200, {})) as it:
            await it.transport.write("PATCH", "/x", b'{"a":1}', "application/merge-patch+json")
            request = it.server.requests[0]
            assert (request.method, request.body) == ("PATCH", b'{"a":1}')
            assert request.headers["content-type"] == "application/merge-patch+json"

    async def test_connections_are_reused(self) -> None:
        async with rig(answer(200)) as it:
            for _ in range(3):
                await it.transport.read("/x")
            assert it.server.connections == 1

    async def test_a_refusal_is_raised_as_what_it_says(self) -> None:
        async with rig(status(404, "NotFound", 'widgets "x" not found')) as it:
            with pytest.raises(NotFound, match='widgets "x" not found'):
                await it.transport.read("/x")

    async def test_a_redirect_is_not_followed_because_it_could_lead_the_token_elsewhere(self) -> None:
        async with rig(answer(302, {}, Location="http://127.0.0.1:1/")) as it:
            with pytest.raises(QuorateError, match="302"):
                await it.transport.read("/x")
            assert len(it.server.requests) == 1

    async def test_every_answer_and_every_failure_is_observed(self) -> None:
        async with rig(answer(200), status(404, "NotFound"), cut, cut, cut, cut, cut) as it:
            await it.transport.read("/x")
            with pytest.raises(NotFound):
                await it.transport.write("POST", "/x", b"{}")
            with pytest.raises(OutcomeUnknown):
                await it.transport.write("PATCH", "/x", b"{}")
            assert it.seen == [("GET", "200"), ("POST", "404"), ("PATCH", "<error>")]


class TestTooManyRequests:
    async def test_retry_after_is_waited_out(self) -> None:
        later = status(429, "TooManyRequests", Retry_After="1")
        async with rig(later, later, answer(200, b"done"), limits=Limits()) as it:
            assert await it.transport.write("POST", "/x", b"{}") == b"done"
            assert it.clock.slept == [1.0, 1.0]

    async def test_patience_ends(self) -> None:
        async with rig(status(429, "TooManyRequests", Retry_After="1"), limits=Limits(retries=2)) as it:
            with pytest.raises(TooManyRequests) as caught:
                await it.transport.read("/x")
            assert caught.value.retry_after == 1.0
            assert len(it.server.requests) == 3

    async def test_a_write_does_not_wait_beyond_its_deadline(self) -> None:
        async with rig(status(429, "TooManyRequests", Retry_After="3"), limits=Limits(write_timeout=4.0)) as it:
            with pytest.raises(TooManyRequests):
                await it.transport.write("POST", "/x", b"{}")
            assert it.clock.slept == [3.0], "a second pause would have ended 2 s after the deadline"

    async def test_a_server_that_is_just_starting_is_waited_for(self) -> None:
        async with rig(status(503, "ServiceUnavailable", Retry_After="1"), answer(200, b"ok"), limits=Limits()) as it:
            assert await it.transport.read("/x") == b"ok"

    async def test_a_write_is_not_repeated_because_a_gateway_may_have_passed_it_on(self) -> None:
        async with rig(status(503, "ServiceUnavailable", Retry_After="1"), answer(200), limits=Limits()) as it:
            with pytest.raises(ServiceUnavailable):
                await it.transport.write("POST", "/x", b"{}")
            assert len(it.server.requests) == 1

    @pytest.mark.parametrize(("code", "error"), [(429, TooManyRequests), (503, ServiceUnavailable)])
    async def test_without_retry_after_it_is_the_callers_business(self, code: int, error: type[QuorateError]) -> None:
        async with rig(status(code, "")) as it:
            with pytest.raises(error):
                await it.transport.write("POST", "/x", b"{}")
            assert len(it.server.requests) == 1


class TestCredentials:
    async def test_a_refused_token_is_renewed_and_the_request_repeated(self) -> None:
        async with rig(status(401, "Unauthorized"), answer(200, b"ok"), renewals=1) as it:
            assert await it.transport.write("POST", "/x", b"{}") == b"ok"
            sent = [request.headers["authorization"] for request in it.server.requests]
            assert sent == ["Bearer token-0", "Bearer token-0-renewed"]

    async def test_it_is_renewed_only_once(self) -> None:
        async with rig(status(401, "Unauthorized"), renewals=9) as it:
            with pytest.raises(Unauthorized):
                await it.transport.read("/x")
            assert len(it.server.requests) == 2

    async def test_without_another_token_the_refusal_stands(self) -> None:
        async with rig(status(401, "Unauthorized")) as it:
            with pytest.raises(Unauthorized):
                await it.transport.read("/x")
            assert len(it.server.requests) == 1

    async def test_a_forbidden_request_is_not_repeated(self) -> None:
        async with rig(status(403, "Forbidden"), renewals=1) as it:
            with pytest.raises(Forbidden):
                await it.transport.read("/x")
            assert len(it.server.requests) == 1


class TestBrokenConnections:
    @pytest.mark.parametrize("method", ["POST", "PATCH", "DELETE"])
    async def test_a_write_cut_off_before_its_answer_has_an_unknown_outcome(self, method: str) -> None:
        async with rig(cut) as it:
            with pytest.raises(OutcomeUnknown, match=f"{method} /x"):
                await it.transport.write(method, "/x", b"{}")
            assert len(it.server.requests) == 1, "it must not be sent twice"

    @pytest.mark.parametrize("method", ["POST", "PATCH", "DELETE"])
    async def test_a_write_on_a_kept_connection_that_breaks_is_not_repeated_either(self, method: str) -> None:
        async with rig(answer(200), cut) as it:
            await it.transport.read("/x")
            with pytest.raises(OutcomeUnknown):
                await it.transport.write(method, "/x", b"{}")
            assert [request.method for request in it.server.requests] == ["GET", method]
            assert it.server.connections == 1

    async def test_a_write_cut_off_in_its_answer_has_an_unknown_outcome(self) -> None:
        async with rig(cut_in_answer) as it:
            with pytest.raises(OutcomeUnknown):
                await it.transport.write("POST", "/x", b"{}")

    async def test_a_write_without_an_answer_has_an_unknown_outcome_at_its_deadline(self) -> None:
        async with rig(hang) as it:
            with pytest.raises(OutcomeUnknown, match=r"within 0\.3 s"):
                await it.transport.write("POST", "/x", b"{}")

    async def test_a_write_that_a_gateway_lost_has_an_unknown_outcome(self) -> None:
        async with rig(answer(502, b"<html>Bad Gateway</html>")) as it:
            with pytest.raises(OutcomeUnknown, match="Bad Gateway"):
                await it.transport.write("POST", "/x", b"{}")
            with pytest.raises(ServiceUnavailable):
                await it.transport.read("/x")

    async def test_a_write_that_a_gateway_lost_is_not_repeated_even_if_the_gateway_says_when(self) -> None:
        async with rig(answer(502, b"Bad Gateway", Retry_After="1"), answer(200), limits=Limits()) as it:
            with pytest.raises(OutcomeUnknown):
                await it.transport.write("POST", "/x", b"{}")
            assert [request.method for request in it.server.requests] == ["POST"]
            it.server.script.insert(0, answer(502, b"Bad Gateway", Retry_After="1"))
            assert await it.transport.read("/x") == b"{}"

    async def test_a_write_that_waits_for_its_turn_until_the_deadline_was_not_sent(self) -> None:
        async with rig(hang, limits=Limits(in_flight=1, write_timeout=0.2)) as it:
            first = asyncio.create_task(it.transport.read("/hangs"))
            await it.server.asked.wait()
            with pytest.raises(StoreUnreachable, match="not sent"):
                await it.transport.write("POST", "/x", b"{}")
            first.cancel()
            assert [request.method for request in it.server.requests] == ["GET"]

    async def test_a_read_is_tried_again(self) -> None:
        async with rig(cut, cut_in_answer, answer(200, b"ok")) as it:
            assert await it.transport.read("/x") == b"ok"
            assert it.clock.slept, "with a pause in between"

    async def test_a_read_is_not_tried_for_ever(self) -> None:
        async with rig(cut) as it:
            with pytest.raises(StoreUnreachable, match="GET /x broke"):
                await it.transport.read("/x")

    async def test_a_read_without_an_answer_gives_up(self) -> None:
        async with rig(hang) as it:
            with pytest.raises(StoreUnreachable, match=r"within 0\.3 s"):
                await it.transport.read("/x")

    @pytest.mark.parametrize("method", ["GET", "POST"])
    async def test_a_refused_connection_means_that_nothing_was_sent(self, method: str) -> None:
        with socket.socket() as reserved:
            reserved.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{reserved.getsockname()[1]}"
            transport = Transport(
                Connection(server=url, credentials=Renewable(0), origin="test"), clock=ManualClock(), limits=QUICK
            )
            with pytest.raises(StoreUnreachable, match=url):
                await (transport.read("/x") if method == "GET" else transport.write(method, "/x", b"{}"))
            await transport.close()

    async def test_a_server_that_does_not_accept_is_unreachable_before_the_deadline(self) -> None:
        with socket.socket() as full:
            full.bind(("127.0.0.1", 0))
            full.listen(0)
            address = full.getsockname()
            with socket.socket() as filler, socket.socket() as second:
                for each in (filler, second):
                    each.setblocking(False)
                    each.connect_ex(address)
                transport = Transport(
                    Connection(server=f"http://127.0.0.1:{address[1]}", credentials=Renewable(0), origin="test"),
                    clock=ManualClock(),
                    limits=Limits(connect_timeout=0.1, write_timeout=5),
                )
                with pytest.raises(StoreUnreachable):
                    await transport.write("POST", "/x", b"{}")
                await transport.close()


class TestProxies:
    @pytest.mark.parametrize("server", ["https://api.test:6443", "http://api.test"])
    async def test_the_proxy_is_told_who_we_are_and_the_server_only_if_the_proxy_reads_everything(
        self, server: str
    ) -> None:
        async with scripted(answer(407)) as proxy:
            with pytest.raises(QuorateError):
                await self.read(server, proxy)
            asked = proxy.requests[0]
            assert asked.headers["proxy-authorization"] == "Basic bWU6aHVudGVyMg=="
            assert ("authorization" in asked.headers) == (asked.method == "GET")

    async def test_a_proxy_that_refuses_us_is_reported_without_its_password(self) -> None:
        async with scripted(answer(407)) as proxy:
            with pytest.raises(StoreUnreachable, match="the proxy answered 407") as caught:
                await self.read("https://api.test:6443", proxy)
        assert "hunter2" not in "".join(traceback.format_exception(caught.value))
        assert "Basic" not in repr(caught.value.__cause__)

    async def read(self, server: str, proxy: ScriptedServer) -> None:
        address = proxy.url.replace("http://", "http://me:hunter2@")
        connection = Connection(server=server, credentials=Renewable(0), origin="test", proxy=address)
        transport = Transport(connection, clock=ManualClock(), limits=Limits())
        try:
            await transport.read("/x")
        finally:
            await transport.close()


class TestLoad:
    async def test_no_more_than_the_allowed_requests_are_in_flight(self) -> None:
        async def slow(request: object, writer: asyncio.StreamWriter) -> bool:
            await asyncio.sleep(0.01)
            return await answer(200)(None, writer)  # type: ignore[arg-type]

        async with rig(slow, limits=Limits(in_flight=3)) as it:
            await asyncio.gather(*(it.transport.read("/x") for _ in range(12)))
            assert it.server.busiest == 3
            assert len(it.server.requests) == 12

    async def test_watches_do_not_count(self) -> None:
        limits = Limits(in_flight=1)
        async with rig(stream(then="silent"), answer(200, b"ok"), limits=limits) as it, it.transport.stream("/w"):
            assert await it.transport.read("/x") == b"ok"


async def lines(transport: Transport) -> list[bytes]:
    async with transport.stream("/w") as source:
        return [line async for line in source]


class TestStreams:
    async def test_lines_are_put_together_from_chunks(self) -> None:
        async with rig(stream(b"on", b"e\ntwo\nthr", b"ee\n", b"cut off")) as it:
            assert await lines(it.transport) == [b"one", b"two", b"three"]

    async def test_a_silent_connection_is_given_up(self) -> None:
        async with rig(stream(b"one\n", then="silent")) as it, it.transport.stream("/w") as source:
            assert await anext(source) == b"one"
            with pytest.raises(StoreUnreachable, match=r"nothing came .* for 0\.2 s"):
                await anext(source)

    async def test_a_broken_connection_is_told_from_an_end(self) -> None:
        async with rig(stream(b"one\n", then="cut")) as it:
            with pytest.raises(StoreUnreachable, match="broke"):
                await lines(it.transport)

    async def test_a_stream_that_does_not_begin_is_given_up(self) -> None:
        async with rig(hang) as it:
            with pytest.raises(StoreUnreachable):
                await lines(it.transport)

    async def test_a_stream_that_is_refused_says_why(self) -> None:
        async with rig(status(500, "InternalError", "etcd is ill")) as it:
            with pytest.raises(InternalError, match="etcd is ill"):
                await lines(it.transport)

    async def test_a_stream_renews_credentials_too(self) -> None:
        async with rig(status(401, "Unauthorized"), stream(b"one\n"), renewals=1) as it:
            assert await lines(it.transport) == [b"one"]


class TestTls:
    @pytest.fixture
    def authority(self, tmp_path: Path) -> Authority:
        return Authority(tmp_path)

    def context(self, authority: Authority, *names: str) -> ssl.SSLContext:
        made = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        pair = authority.server("server", *names)
        made.load_cert_chain(pair.certificate, pair.key)
        return made

    async def read(self, server: ScriptedServer, **settings: object) -> bytes:
        connection = Connection(
            server=server.url,
            origin="test",
            **{"credentials": Renewable(0), **settings},  # type: ignore[arg-type]
        )
        transport = Transport(connection, clock=ManualClock(), limits=Limits())
        try:
            return await transport.read("/x")
        finally:
            await transport.close()

    async def test_the_given_authority_is_trusted(self, authority: Authority) -> None:
        async with scripted(answer(200, b"ok"), tls=self.context(authority, "localhost")) as server:
            assert await self.read(server, ca=authority.certificate.read_bytes()) == b"ok"

    async def test_another_authority_is_not(self, authority: Authority, tmp_path: Path) -> None:
        (tmp_path / "other").mkdir()
        other = Authority(tmp_path / "other")
        async with scripted(answer(200), tls=self.context(authority, "localhost")) as server:
            with pytest.raises(StoreUnreachable, match="certificate"):
                await self.read(server, ca=other.certificate.read_bytes())
            with pytest.raises(StoreUnreachable, match="certificate"):
                await self.read(server)
            assert await self.read(server, verify=False) == b"{}"

    async def test_the_name_in_the_certificate_must_be_the_servers_or_the_one_given(self, authority: Authority) -> None:
        ca = authority.certificate.read_bytes()
        async with scripted(answer(200, b"ok"), tls=self.context(authority, "inner.test")) as server:
            with pytest.raises(StoreUnreachable, match="certificate"):
                await self.read(server, ca=ca)
            assert await self.read(server, ca=ca, tls_server_name="inner.test") == b"ok"

    async def test_a_client_certificate_is_presented_and_its_rotation_makes_new_connections(
        self, authority: Authority, tmp_path: Path
    ) -> None:
        context = self.context(authority, "localhost")
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(authority.certificate)
        ca = authority.certificate.read_bytes()
        pair, second = authority.client("first"), authority.client("second")
        credentials = FixedCredentials(clock=(clock := ManualClock()), certificate=pair.certificate, key=pair.key)
        async with scripted(answer(200, b"ok"), tls=context) as server:
            connection = Connection(server=server.url, origin="test", credentials=credentials, ca=ca)
            transport = Transport(connection, clock=clock)
            assert await transport.read("/x") == b"ok"
            assert await transport.read("/x") == b"ok"
            assert server.connections == 1
            pair.certificate.write_bytes(second.certificate.read_bytes())
            pair.key.write_bytes(second.key.read_bytes())
            clock.advance(61)
            assert await transport.read("/x") == b"ok"
            assert server.connections == 2
            await transport.close()

    @pytest.mark.parametrize(
        ("settings", "problem"),
        [
            ({"ca": b"no PEM"}, "certificate-authority"),
            ({"ca": b"\xff"}, "certificate-authority"),
            (
                {
                    "credentials": FixedCredentials(
                        clock=ManualClock(), certificate=b"no PEM", key=Secret("hunter2-in-key")
                    )
                },
                "client certificate",
            ),
        ],
    )
    async def test_what_is_no_certificate_is_a_configuration_error(
        self, authority: Authority, settings: dict[str, object], problem: str
    ) -> None:
        async with scripted(answer(200), tls=self.context(authority, "localhost")) as server:
            with pytest.raises(ConfigError, match=problem) as caught:
                await self.read(server, **settings)
            assert "hunter2" not in str(caught.value)

    def test_a_certificate_shows_no_key(self) -> None:
        assert "hunter2" not in repr(ClientCertificate(b"PEM", Secret("hunter2")))
