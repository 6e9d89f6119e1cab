"""Listening: an address, a port, TLS or not, and a stop that lets requests finish."""

from __future__ import annotations

import ssl
from dataclasses import dataclass

from quorate.server.addresses import url
from quorate.server.connections import ConnectionLimits, HttpServer, serve
from quorate.server.kubernetes.app import Facade

#: Seconds that a stopping server gives to requests under way; watches are ended at once.
_PATIENCE = 5.0


@dataclass(frozen=True, slots=True)
class Listener:
    """A server that accepts connections."""

    host: str
    port: int
    secure: bool
    _server: HttpServer

    @property
    def url(self) -> str:
        """Where a client on this machine finds it."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(self.host, self.host)  # noqa: S104
        return url(host, self.port, secure=self.secure)

    async def close(self) -> None:
        """Accept nothing more, end the watches, let the rest finish."""
        await self._server.close()


async def listen(
    facade: Facade, *, host: str, port: int, tls: ssl.SSLContext | None = None, limits: ConnectionLimits | None = None
) -> Listener:
    """Start serving. Port 0 lets the system choose; the Listener knows which it was."""
    server = await serve(facade.application(), host, port, tls=tls, patience=_PATIENCE, limits=limits)
    return Listener(host, server.port, tls is not None, server)
