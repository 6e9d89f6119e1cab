"""Nobody passes who should not."""

from __future__ import annotations

import pytest

from quorate.errors import Forbidden, Unauthorized
from quorate.server.addresses import is_loopback
from quorate.server.kubernetes.auth import Access

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


@pytest.mark.parametrize("name", ["Impersonate-User", "impersonate-group", "Impersonate-Uid", "Impersonate-Extra-x"])
@pytest.mark.parametrize("path", ["/api", "/apis/storage.deckhouse.io/v1alpha1/replicatedvolumes", "/readyz"])
def test_nobody_acts_as_somebody_else(name: str, path: str) -> None:
    for access, headers in ((OPEN, {"Host": "localhost"}), (BY_TOKEN, {"Authorization": "Bearer s3cret"})):
        with pytest.raises(Forbidden, match=r"cannot act as 'bob'.*kubectl --as"):
            access.identify(path, {**headers, name: "bob"})


def test_the_page_that_asks_for_the_token_needs_none_and_what_it_shows_does() -> None:
    BY_TOKEN.identify("/cms", {})
    for path in ("/cms/", "/cms/api/json/log", "/cms/api/clusterstaterequest"):
        with pytest.raises(Unauthorized):
            BY_TOKEN.identify(path, {})


def test_the_token_is_not_shown() -> None:
    assert "s3cret" not in repr(BY_TOKEN)


@pytest.mark.parametrize(
    ("host", "loopback"), [("127.0.0.1", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("x", False)]
)
def test_loopback_is_what_only_this_machine_can_be(host: str, loopback: bool) -> None:
    assert is_loopback(host) is loopback
