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


def certificates_in(authority: bytes) -> bytes:
    """The certificates of a PEM file, and nothing else that is in it.

    What is recognised by its fingerprint must be what is trusted: OpenSSL reads certificates under other headings too
    (``X509 CERTIFICATE``), which somebody between could have added to the real ones.
    """
    return "".join(map(ssl.DER_cert_to_PEM_cert, _found_in(authority))).encode("ascii")


def fingerprint(authority: bytes) -> str:
    """Of a PEM file; of one certificate it is the one that ``openssl x509 -fingerprint -sha256`` shows."""
    return f"{_PREFIX}{hashlib.sha256(b''.join(_found_in(authority))).hexdigest()}"


def is_fingerprint_of(given: str, authority: bytes) -> bool:
    """Whether somebody means this authority; also as other programs write it, in capitals and with colons."""
    plain = given.strip().lower().removeprefix(_PREFIX).replace(":", "")
    return hmac.compare_digest(plain.encode(), fingerprint(authority).removeprefix(_PREFIX).encode())


def _found_in(authority: bytes) -> list[bytes]:
    found = _CERTIFICATE.findall(authority.decode("ascii", errors="replace"))
    try:
        certificates = [ssl.PEM_cert_to_DER_cert(certificate) for certificate in found]
    except ValueError:
        certificates = []
    if not certificates:
        raise ConfigError("there is no certificate in what should be the server's authority")
    return certificates
