"""Who asks the broker: a bearer token, a client certificate, or, on loopback, whoever can connect.

The identity is the user that messages speak for; only an admin may speak for others. Tokens are kept as digests, in a
file that is read again when it changes: whoever is taken out of it is unknown from then on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec
import yaml
from cryptography import x509
from cryptography.x509.oid import NameOID
from msgspec import Meta

from quorate.api.maintenance.action import UserName
from quorate.engine.logs import get_logger
from quorate.errors import ConfigError, Unauthorized
from quorate.maintenance.messages import Caller

_log = get_logger(__name__)

#: The organization in the certificate of an admin; the common name is the user.
ADMIN_ORGANIZATION: Final = "quorate:admin"
#: Who has the one token of a server that knows no users.
ADMIN_USER: Final = "quorate:admin"


class _User(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    name: UserName
    token_sha256: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
    role: Literal["user", "admin"] = "user"


class _UsersFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    users: tuple[_User, ...]


class Users:
    """The users in a file: ``users: [{name: alice, role: user, tokenSha256: …}]``."""

    def __init__(self, path: Path) -> None:
        """Read it; ConfigError says what is wrong with it."""
        self._path = path
        self._changed = self._stamp()
        self._known = self._read()

    def find(self, token: str) -> Caller | None:
        """Whose token it is."""
        self._refresh()
        # By digest: how long it takes tells nothing of how much of a guess was right.
        return self._known.get(_digest(token))

    def _refresh(self) -> None:
        try:
            changed = self._stamp()
            if changed != self._changed:
                self._changed = changed
                self._known = self._read()
        except ConfigError as error:
            _log.error("nobody is known: the users' file cannot be used any more", error=str(error))
            self._known = {}

    def _stamp(self) -> tuple[int, int]:
        try:
            found = self._path.stat()
        except OSError as error:
            raise ConfigError(f"the users' file {self._path} cannot be read: {error.strerror}") from None
        return found.st_mtime_ns, found.st_ino

    def _read(self) -> Mapping[str, Caller]:
        try:
            content = yaml.safe_load(self._path.read_bytes())
            found = msgspec.convert(content, _UsersFile)
        except OSError as error:
            raise ConfigError(f"the users' file {self._path} cannot be read: {error.strerror}") from None
        except yaml.YAMLError as error:
            raise ConfigError(f"the users' file {self._path} is not YAML: {error}") from None
        except msgspec.ValidationError as error:
            raise ConfigError(
                f"the users' file {self._path}: {error}; it must hold `users:`, a list of name, tokenSha256 (of the"
                " token, in hex) and role (user or admin)"
            ) from None
        return {user.token_sha256: Caller(name=user.name, admin=user.role == "admin") for user in found.users}


class OneToken(Users):
    """Where there is one token for everything: whoever has it may do everything, and is an admin."""

    def __init__(self, token_now: Callable[[], str]) -> None:
        self._token_now = token_now

    def find(self, token: str) -> Caller | None:
        known = self._token_now()
        return Caller(name=ADMIN_USER, admin=True) if known and _digest(token) == _digest(known) else None


@dataclass(frozen=True, slots=True)
class Access:
    """The rule in force; without users and certificates, the broker is open."""

    users: Users | None = field(default=None, repr=False)
    #: Whether the listener checks client certificates.
    certificates: bool = False

    @property
    def open(self) -> bool:
        """Whoever can connect is believed."""
        return self.users is None and not self.certificates

    def caller(self, token: str, certificate: bytes = b"") -> Caller:
        """Who shows this token, or this certificate (PEM or DER, already checked); Unauthorized for nobody."""
        if self.open:
            return Caller(anyone=True)
        if token:
            found = self.identify(token)
            if found is None:
                raise Unauthorized("the bearer token is not one of a user's")
            return found
        if certificate and self.certificates:
            return _subject(certificate)
        raise Unauthorized(f"say who you are: {' or '.join(self._ways())}")

    def identify(self, token: str) -> Caller | None:
        """Whose token it is; also of a token that came inside a message."""
        return self.users.find(token) if self.users is not None else None

    def _ways(self) -> list[str]:
        return ["by a bearer token"] * (self.users is not None) + ["by a client certificate"] * self.certificates


def bearer(header: str) -> str:
    """The token in an Authorization header; empty when there is none."""
    scheme, _, given = header.partition(" ")
    return given.strip() if scheme.lower() == "bearer" else ""


@lru_cache(maxsize=1024)
def _subject(certificate: bytes) -> Caller:
    try:
        pem = certificate.startswith(b"-----BEGIN")
        subject = (x509.load_pem_x509_certificate if pem else x509.load_der_x509_certificate)(certificate).subject
    except ValueError:
        raise Unauthorized("the client certificate cannot be read") from None
    names = [str(name.value) for name in subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    if len(names) != 1 or not names[0]:
        raise Unauthorized("the client certificate must have one common name: it is the user")
    organizations = [name.value for name in subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)]
    return Caller(name=names[0], admin=ADMIN_ORGANIZATION in organizations)


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode(errors="surrogateescape")).hexdigest()
