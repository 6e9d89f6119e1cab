"""Listening: an address, a port, TLS or not, and a stop that lets requests finish."""

from __future__ import annotations

import ssl
from dataclasses import dataclass

from aiohttp import web

from quorate.errors import CannotListen
from quorate.server.kubernetes.app import Facade

#: Seconds that a stopping server gives to requests under way; watches are ended at once.
_PATIENCE = 5.0


@dataclass(frozen=True, slots=True)
class Listener:
    """A server that accepts connections."""

    host: str
    port: int
    secure: bool
    _runner: web.AppRunner

    @property
    def url(self) -> str:
        """Where a client on this machine finds it."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(self.host, self.host)  # noqa: S104
        return f"{'https' if self.secure else 'http'}://{f'[{host}]' if ':' in host else host}:{self.port}"

    async def close(self) -> None:
        """Accept nothing more, end the watches, let the rest finish."""
        await self._runner.cleanup()


async def listen(facade: Facade, *, host: str, port: int, tls: ssl.SSLContext | None = None) -> Listener:
    """Start serving. Port 0 lets the system choose; the Listener knows which it was."""
    # A client that hangs up ends its handler: that is how a watch learns that nobody listens any more.
    runner = web.AppRunner(facade.application(), handler_cancellation=True, access_log=None, shutdown_timeout=_PATIENCE)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port, ssl_context=tls).start()
    except OSError as error:
        await runner.cleanup()
        raise CannotListen(f"cannot listen on {host} port {port}: {error.strerror or error}") from None
    return Listener(host, runner.addresses[0][1], tls is not None, runner)
