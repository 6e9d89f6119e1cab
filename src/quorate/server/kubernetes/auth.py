"""Who may speak to the server.

Two ways to run it, and nothing between them:

- **open**, on a loopback address only: whoever can connect may do everything. Browsers can connect too, on behalf of
  any page they show, so requests that name another host or come from another origin are refused.
- **by token**, over TLS: every request but the health checks carries ``Authorization: Bearer <token>``.

In both, an agent is known by a token of its own (``callers``); what it may write, ``admission`` says. On an open server
an agent that shows none is nobody in particular, and may do everything; a token that is nobody's opens nothing
anywhere, or an agent whose token was taken away would be everybody.

Nobody acts as somebody else (``kubectl --as``): there are no other users here, and to ignore the wish would do with all
rights what somebody meant to try with few.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from quorate.errors import Forbidden, Unauthorized
from quorate.server.addresses import is_loopback
from quorate.server.kubernetes.callers import ADMIN, LOOPBACK, Caller, agent

#: Answered to anybody: a load balancer has no token, and a browser none before the page of the maintenance broker, in
#: which there is nothing yet, has asked for it.
#: A node that joins has no token yet that would be known here, and shows its invitation instead (``server/join.py``).
PUBLIC_PATHS = frozenset({"/healthz", "/livez", "/readyz", "/cms", "/join/v1/authority", "/join/v1/nodes"})
_IMPERSONATION = "impersonate-"


@dataclass(frozen=True, slots=True)
class Access:
    """The rule in force; without a token the server is open."""

    token: str | None = field(default=None, repr=False)
    #: The node whose agent has a token, or None.
    agent_of: Callable[[str], str | None] = lambda _: None
    #: The token as it is now, if it may change; empty while there is none that can be used.
    token_now: Callable[[], str] | None = field(default=None, repr=False)

    def identify(self, path: str, headers: Mapping[str, str]) -> Caller:
        """Who sends a request. Raises Unauthorized or Forbidden when it may not pass."""
        if self.token is None:
            _check_same_machine(headers)
        caller = self._caller(path, _bearer(headers.get("Authorization", "")))
        for name in headers:
            if name[: len(_IMPERSONATION)].lower() == _IMPERSONATION:
                raise Forbidden(
                    f"{caller.user} cannot act as {headers[name][:80]!r} ({name[:80]}, kubectl --as): this server knows"
                    " no users but the owners of its tokens. Leave it out, or use their kubeconfig"
                )
        return caller

    def _caller(self, path: str, given: str) -> Caller:
        node = self.agent_of(given) if given else None
        if node is not None:
            return agent(node)
        if path in PUBLIC_PATHS or (self.token is None and not given):
            return LOOPBACK
        token = self.token_now() if self.token_now is not None else self.token
        # Compared in constant time: the time of an answer must not tell how much of a guess was right.
        if not token or not hmac.compare_digest(given.encode(errors="surrogateescape"), token.encode()):
            raise Unauthorized("Unauthorized")
        return ADMIN


def _bearer(header: str) -> str:
    """The token in an Authorization header; empty when there is none."""
    scheme, _, given = header.partition(" ")
    return given.strip() if scheme.lower() == "bearer" else ""


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
