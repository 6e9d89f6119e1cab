"""Which HTTP proxy leads to a server, by the environment variables that every HTTP client reads.

Written out here because the common Python helpers do not know CIDR blocks in NO_PROXY, and clusters are full of
``NO_PROXY=10.0.0.0/8``: the API server's own address would go through the proxy.
"""

from __future__ import annotations

import base64
import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit

from yarl import URL

from quorate.errors import ConfigError


def proxy_for(server: str, environ: Mapping[str, str]) -> str | None:
    """The proxy for this URL, or None to connect directly."""
    url = urlsplit(server)
    variable = f"{url.scheme}_proxy"
    proxy = environ.get(variable) or environ.get(variable.upper())
    if not proxy or _bypasses(url.hostname or "", url.port, environ.get("no_proxy") or environ.get("NO_PROXY") or ""):
        return None
    return checked_proxy(proxy if "://" in proxy else f"http://{proxy}", f"environment variable {variable.upper()}")


def checked_proxy(proxy: str, origin: str) -> str:
    """The proxy's URL, if it is one that we can use."""
    # No error shows the URL itself: it may hold a password.
    try:
        url = URL(proxy)
    except ValueError:
        raise ConfigError(f"{origin}: is not a URL") from None
    if url.scheme not in ("http", "https"):
        raise ConfigError(f"{origin}: only http and https proxies are supported, not {url.scheme!r}")
    if not url.host:
        raise ConfigError(f"{origin}: the URL names no host")
    return proxy


def without_password(proxy: str) -> tuple[URL, dict[str, str]]:
    """The proxy's URL as it may be shown, and the header that says who we are to it.

    Left in the URL, a password would be in every error that names the URL.
    """
    url = URL(proxy)
    if url.raw_user is None and url.raw_password is None:
        return url, {}
    credentials = base64.b64encode(f"{url.user or ''}:{url.password or ''}".encode()).decode()
    return url.with_user(None), {"Proxy-Authorization": f"Basic {credentials}"}


def _bypasses(host: str, port: int | None, no_proxy: str) -> bool:
    address = _address(host)
    if host == "localhost" or (address is not None and address.is_loopback):
        return True
    return any(_matches(entry.strip().lower(), host, address, port) for entry in no_proxy.split(",") if entry.strip())


def _matches(
    entry: str, host: str, address: ipaddress.IPv4Address | ipaddress.IPv6Address | None, port: int | None
) -> bool:
    if entry == "*":
        return True
    if address is not None and "/" in entry:
        try:
            return address in ipaddress.ip_network(entry, strict=False)
        except ValueError:
            return False
    name, colon, entry_port = entry.rpartition(":")
    if colon and entry_port.isdigit() and _address(entry) is None:
        if int(entry_port) != port:
            return False
        entry = name
    if address is not None:
        return _address(entry.strip("[]")) == address
    domain = entry.removeprefix("*").removeprefix(".")
    return host.endswith(f".{domain}") or (host == domain and not entry.startswith((".", "*")))


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None
