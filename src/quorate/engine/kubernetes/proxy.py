"""Which HTTP proxy leads to a server, by the environment variables that every HTTP client reads.

Written out here because the common Python helpers do not know CIDR blocks in NO_PROXY, and clusters are full of
``NO_PROXY=10.0.0.0/8``: the API server's own address would go through the proxy.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit

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
    if urlsplit(proxy).scheme not in ("http", "https"):
        # Not the URL itself: it may hold a password.
        raise ConfigError(f"{origin}: only http and https proxies are supported, not {urlsplit(proxy).scheme!r}")
    return proxy


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
