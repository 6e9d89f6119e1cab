"""Who we are to an API server: a token, a client certificate, or both, and how they are kept fresh.

Tokens of service accounts are rotated in their file about every hour, client certificates by whoever manages
them; so what comes from a file is read again every minute, and at once when the server refuses it (401). Between
two reads the same ``Identity`` object is returned, which makes "has it changed?" a comparison of references.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from quorate.api.secret import Secret
from quorate.engine.clock import Clock
from quorate.engine.kubernetes.tls import ClientCertificate
from quorate.errors import ConfigError

REREAD_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Identity:
    """What is presented with a request."""

    token: Secret | None = None
    certificate: ClientCertificate | None = None


class Credentials(Protocol):
    """Where an identity comes from."""

    async def identity(self) -> Identity:
        """What to present now; the same object until it changes."""
        ...

    async def renew(self, refused: Identity) -> Identity:
        """The server refused this one: another if there is one, else the same again."""
        ...


class FixedCredentials:
    """Values and files from a kubeconfig or a pod. A ``Path`` is a file that somebody may rotate."""

    def __init__(
        self,
        *,
        clock: Clock,
        token: Secret | Path | None = None,
        certificate: bytes | Path | None = None,
        key: Secret | Path | None = None,
    ) -> None:
        self._clock = clock
        self._token, self._certificate, self._key = token, certificate, key
        self._rotates = any(isinstance(each, Path) for each in (token, certificate, key))
        self._identity = self._read()
        self._read_at = clock.monotonic()

    async def identity(self) -> Identity:
        if self._rotates and self._clock.monotonic() - self._read_at >= REREAD_SECONDS:
            self._read_again()
        return self._identity

    async def renew(self, refused: Identity) -> Identity:
        if self._rotates and self._identity is refused:
            self._read_again()
        return self._identity

    def _read_again(self) -> None:
        self._read_at = self._clock.monotonic()
        try:
            fresh = self._read()
        except ConfigError:
            # A file that is just being replaced: what we have is still the best we know.
            return
        if fresh == self._identity:
            return
        # A certificate and its key are two files, replaced one after the other; we may have come in between.
        if fresh.certificate is None or fresh.certificate.fits():
            self._identity = fresh

    def _read(self) -> Identity:
        token = Secret(_text(self._token).strip()) if isinstance(self._token, Path) else self._token
        if token is not None and not token.reveal():
            raise ConfigError(f"{self._token if isinstance(self._token, Path) else 'token'}: is empty")
        if self._certificate is None or self._key is None:
            return Identity(token)
        certificate = _bytes(self._certificate) if isinstance(self._certificate, Path) else self._certificate
        key = Secret(_text(self._key)) if isinstance(self._key, Path) else self._key
        return Identity(token, ClientCertificate(certificate, key))


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error


def _text(path: Path) -> str:
    try:
        return _bytes(path).decode()
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: is not text") from error
