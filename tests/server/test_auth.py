"""Nobody passes who should not."""

from __future__ import annotations

import pytest

from quorate.errors import Forbidden, Unauthorized
from quorate.server.kubernetes.auth import Access, is_loopback

OPEN = Access()
BY_TOKEN = Access("s3cret")


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:7480", "localhost:1", "[::1]:7480", "127.8.8.8"])
def test_an_open_server_answers_to_loopback_names(host: str) -> None:
    OPEN.identify("/api", {"Host": host})


@pytest.mark.parametrize("host", ["", "evil.example", "evil.example:7480", "10.0.0.1", "localhost.evil.example", "["])
def test_an_open_server_answers_to_no_other_name(host: str) -> None:
    with pytest.raises(Forbidden, match="loopback"):
        OPEN.identify("/api", {"Host": host})


def test_an_open_server_refuses_pages_of_other_origins() -> None:
    OPEN.identify("/api", {"Host": "127.0.0.1:80", "Origin": "http://127.0.0.1:80"})
    for origin in ("http://evil.example", "http://127.0.0.1:81", "null", ""):
        with pytest.raises(Forbidden, match="pages"):
            OPEN.identify("/api", {"Host": "127.0.0.1:80", "Origin": origin})


@pytest.mark.parametrize("header", ["Bearer s3cret", "bearer  s3cret "])
def test_the_token_opens(header: str) -> None:
    BY_TOKEN.identify("/api", {"Authorization": header, "Host": "anywhere"})


@pytest.mark.parametrize(
    "header", ["", "s3cret", "Bearer", "Bearer ", "Bearer s3cre", "Bearer s3crets", "Basic s3cret", "Bearer \udcff"]
)
def test_anything_else_does_not(header: str) -> None:
    with pytest.raises(Unauthorized):
        BY_TOKEN.identify("/api", {"Authorization": header})


def test_health_needs_no_token_and_metrics_do() -> None:
    for path in ("/healthz", "/livez", "/readyz"):
        BY_TOKEN.identify(path, {})
    with pytest.raises(Unauthorized):
        BY_TOKEN.identify("/metrics", {})


def test_the_token_is_not_shown() -> None:
    assert "s3cret" not in repr(BY_TOKEN)


@pytest.mark.parametrize(
    ("host", "loopback"), [("127.0.0.1", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("x", False)]
)
def test_loopback_is_what_only_this_machine_can_be(host: str, loopback: bool) -> None:
    assert is_loopback(host) is loopback
