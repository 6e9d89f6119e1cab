"""Which proxy leads to a server."""

from __future__ import annotations

from base64 import b64encode

import pytest
from yarl import URL

from quorate.engine.kubernetes.proxy import proxy_for, without_password
from quorate.errors import ConfigError

PROXY = {"HTTPS_PROXY": "http://proxy:3128"}


@pytest.mark.parametrize(
    ("server", "environ", "proxy"),
    [
        ("https://api.test", {}, None),
        ("https://api.test", PROXY, "http://proxy:3128"),
        ("https://api.test", {"https_proxy": "http://lower:1", **PROXY}, "http://lower:1"),
        ("https://api.test", {"HTTPS_PROXY": "proxy:3128"}, "http://proxy:3128"),
        ("http://api.test", PROXY, None),
        ("http://api.test", {"http_proxy": "http://plain:1"}, "http://plain:1"),
        ("https://localhost:6443", PROXY, None),
        ("https://127.0.0.1:6443", PROXY, None),
        ("https://[::1]:6443", PROXY, None),
    ],
)
def test_the_proxy_comes_from_the_environment(server: str, environ: dict[str, str], proxy: str | None) -> None:
    assert proxy_for(server, environ) == proxy


@pytest.mark.parametrize(
    ("server", "no_proxy", "direct"),
    [
        ("https://api.test", "*", True),
        ("https://api.test", "api.test", True),
        ("https://api.test", "other, api.test", True),
        ("https://api.test", "API.TEST", True),
        ("https://api.test", "test", True),
        ("https://api.test", ".test", True),
        ("https://api.test", "*.test", True),
        ("https://api.test", ".api.test", False),
        ("https://api.test", "*.api.test", False),
        ("https://api.test", "pi.test", False),
        ("https://api.test:6443", "api.test:6443", True),
        ("https://api.test:6443", "api.test:443", False),
        ("https://10.96.0.1", "10.96.0.1", True),
        ("https://10.96.0.1", "10.0.0.0/8", True),
        ("https://10.96.0.1", "10.97.0.0/16", False),
        ("https://10.96.0.1", "10.96.0.0/none", False),
        ("https://10.96.0.1:6443", "10.96.0.1:6443", True),
        ("https://[fd00::1]", "fd00::/8", True),
        ("https://[fd00::1]", "fd00::1", True),
        ("https://[fd00::1]", "[fd00::1]", True),
        ("https://[fd00::1]", "fd00::2", False),
        ("https://api.test", "", False),
    ],
)
def test_no_proxy_lists_what_is_reached_directly(server: str, no_proxy: str, direct: bool) -> None:
    assert (proxy_for(server, {**PROXY, "NO_PROXY": no_proxy}) is None) is direct


@pytest.mark.parametrize(
    ("proxy", "problem"),
    [
        ("socks5://me:hunter2@proxy", "'socks5'"),
        ("http://me:hunter2@proxy:port", "not a URL"),
        ("http://me:hunter2@[proxy", "not a URL"),
        ("http:///hunter2", "no host"),
    ],
)
def test_a_proxy_that_cannot_be_used_is_refused_without_its_password(proxy: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=f"HTTPS_PROXY.*{problem}") as caught:
        proxy_for("https://api.test", {"HTTPS_PROXY": proxy})
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("proxy", "shown", "credentials"),
    [
        ("http://proxy:3128", "http://proxy:3128", None),
        ("http://me:hunter2@proxy:3128", "http://proxy:3128", b"me:hunter2"),
        ("http://me@proxy", "http://proxy", b"me:"),
        ("https://m%40e:p%C3%A4ss%3A@proxy/", "https://proxy/", "m@e:päss:".encode()),
    ],
)
def test_the_password_of_a_proxy_goes_into_a_header(proxy: str, shown: str, credentials: bytes | None) -> None:
    header = {"Proxy-Authorization": f"Basic {b64encode(credentials).decode()}"} if credentials else {}
    assert without_password(proxy) == (URL(shown), header)
