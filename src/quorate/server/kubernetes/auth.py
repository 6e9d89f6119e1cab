"""Who may speak to the server.

Two ways to run it, and nothing between them:

- **open**, on a loopback address only: whoever can connect may do everything. Browsers can connect too, on behalf of
  any page they show, so requests that name another host or come from another origin are refused.
- **by token**, over TLS: every request but the health checks carries ``Authorization: Bearer <token>``.
"""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field

from quorate.errors import Forbidden, Unauthorized

#: Answered to anybody: a load balancer has no token.
PUBLIC_PATHS = frozenset({"/healthz", "/livez", "/readyz"})


@dataclass(frozen=True, slots=True)
class Access:
    """The rule in force; without a token the server is open."""

    token: str | None = field(default=None, repr=False)

    @property
    def user(self) -> str:
        """What ``kubectl auth whoami`` says."""
        return "quorate:loopback" if self.token is None else "quorate:admin"

    def check(self, path: str, headers: Mapping[str, str]) -> None:
        """Raises Unauthorized or Forbidden for a request that may not pass."""
        if self.token is None:
            _check_same_machine(headers)
        elif path not in PUBLIC_PATHS:
            _check_token(self.token, headers.get("Authorization", ""))


def is_loopback(host: str) -> bool:
    """Whether an address or host name can only mean this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _check_token(expected: str, header: str) -> None:
    scheme, _, given = header.partition(" ")
    # Compared in constant time: the time of an answer must not tell how much of a guess was right.
    same = hmac.compare_digest(given.strip().encode(errors="surrogateescape"), expected.encode())
    if scheme.lower() != "bearer" or not same:
        raise Unauthorized("Unauthorized")


def _check_same_machine(headers: Mapping[str, str]) -> None:
    host = headers.get("Host", "")
    # A name that resolves to 127.0.0.1 is not ours just because the connection arrived (DNS rebinding).
    if not is_loopback(_host_name(host)):
        raise Forbidden(f"this server answers only to a loopback address, not to {host!r}: use 127.0.0.1 or a token")
    origin = headers.get("Origin")
    if origin is not None and origin.partition("://")[2] != host:
        raise Forbidden(f"requests of pages from {origin!r} are refused")


def _host_name(header: str) -> str:
    """The host of a Host header, without port and brackets."""
    if header.startswith("["):
        return header[1:].partition("]")[0]
    return header.partition(":")[0]
