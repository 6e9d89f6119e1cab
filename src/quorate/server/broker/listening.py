"""Where the broker listens, for whom, and over what: open on loopback; anywhere else with TLS and known users only."""

from __future__ import annotations

import re
import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import grpc
from aiohttp import web

from quorate.errors import ConfigError
from quorate.server.addresses import is_loopback
from quorate.server.broker.access import Access, Users
from quorate.server.connections import HttpServer, serve
from quorate.server.kubernetes.tls import Certificates

#: Seconds that a stopping server gives to requests under way; streams are ended at once.
_PATIENCE: Final = 5.0
_ADDRESS: Final = re.compile(r"(?:\[(?P<six>[0-9a-fA-F:.]+)\]|(?P<name>[^:\[\]]+)):(?P<port>[0-9]{1,5})")


@dataclass(frozen=True, slots=True)
class Address:
    """``127.0.0.1:7480``, ``[::1]:7480``, ``localhost:0``; port 0 lets the system choose."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Address:
        """ConfigError with the value and what is allowed."""
        found = _ADDRESS.fullmatch(text)
        if found is None or int(found["port"]) > 65535:
            raise ConfigError(f"{text!r} is not an address: expected HOST:PORT, such as 127.0.0.1:8790 or [::1]:0")
        return cls(found["six"] or found["name"], int(found["port"]))

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Security:
    """Who may ask, and the files that prove who answers."""

    access: Access = field(default_factory=Access)
    certificates: Certificates | None = None
    #: Whose certificates callers must show.
    client_authority: Path | None = None

    def tls(self) -> ssl.SSLContext | None:
        """For HTTP."""
        if self.certificates is None:
            return None
        context = self.certificates.context()
        if self.client_authority is not None:
            try:
                context.load_verify_locations(self.client_authority)
            except (OSError, ssl.SSLError) as error:
                raise ConfigError(f"cannot use the client authority {self.client_authority}: {error}") from None
            context.verify_mode = ssl.CERT_REQUIRED
        return context

    def grpc_credentials(self) -> grpc.ServerCredentials | None:
        """For gRPC. The files were read for HTTP already, so they are there."""
        if self.certificates is None:
            return None
        pair = (self.certificates.key.read_bytes(), self.certificates.certificate.read_bytes())
        authority = self.client_authority.read_bytes() if self.client_authority is not None else None
        return grpc.ssl_server_credentials([pair], authority, require_client_auth=authority is not None)


def secured(
    addresses: list[Address],
    *,
    users: Path | None = None,
    certificate: Path | None = None,
    key: Path | None = None,
    client_authority: Path | None = None,
) -> Security:
    """What was asked for, if it is safe; ConfigError says what is missing."""
    if (certificate is None) != (key is None):
        raise ConfigError("--tls-certificate and --tls-key must be given together")
    if client_authority is not None and certificate is None:
        raise ConfigError("--client-authority needs --tls-certificate and --tls-key: certificates are shown over TLS")
    access = Access(Users(users) if users is not None else None, certificates=client_authority is not None)
    beyond = [address for address in addresses if not is_loopback(address.host)]
    if beyond and access.open:
        raise ConfigError(
            f"{beyond[0]} can be reached from other machines: say who may ask, by --users or --client-authority"
        )
    if beyond and certificate is None:
        raise ConfigError(f"{beyond[0]} can be reached from other machines: give --tls-certificate and --tls-key")
    certificates = Certificates(certificate, key) if certificate is not None and key is not None else None
    return Security(access, certificates, client_authority)


@dataclass(frozen=True, slots=True)
class HttpListener:
    """A server that accepts connections."""

    address: Address
    _server: HttpServer

    async def close(self) -> None:
        """Accept nothing more, end the streams, let the rest finish."""
        await self._server.close()


async def serve_http(app: web.Application, address: Address, tls: ssl.SSLContext | None) -> HttpListener:
    """Start serving."""
    # Whoever hangs up ends their stream; a question that was asked is finished all the same (``questions.finished``).
    server = await serve(app, address.host, address.port, tls=tls, patience=_PATIENCE)
    return HttpListener(Address(address.host, server.port), server)
