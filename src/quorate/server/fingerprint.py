"""How a person recognises a server's authority: a short text that is read out, or copied with a command."""

from __future__ import annotations

import hashlib
import hmac
import re
import ssl
from typing import Final

from quorate.errors import ConfigError

_PREFIX: Final = "sha256:"
_CERTIFICATE: Final = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)


def fingerprint(authority: bytes) -> str:
    """Of a PEM file; of one certificate it is the one that ``openssl x509 -fingerprint -sha256`` shows."""
    found = _CERTIFICATE.findall(authority.decode("ascii", errors="replace"))
    if not found:
        raise ConfigError("there is no certificate in what should be the server's authority")
    digest = hashlib.sha256()
    for certificate in found:
        digest.update(ssl.PEM_cert_to_DER_cert(certificate))
    return f"{_PREFIX}{digest.hexdigest()}"


def is_fingerprint_of(given: str, authority: bytes) -> bool:
    """Whether somebody means this authority; also as other programs write it, in capitals and with colons."""
    plain = given.strip().lower().removeprefix(_PREFIX).replace(":", "")
    return hmac.compare_digest(plain.encode(), fingerprint(authority).removeprefix(_PREFIX).encode())
