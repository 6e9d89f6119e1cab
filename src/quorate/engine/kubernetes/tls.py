"""The TLS side of a connection."""

from __future__ import annotations

import os
import ssl
from dataclasses import dataclass

from quorate.api.secret import Secret
from quorate.errors import ConfigError


@dataclass(frozen=True, slots=True)
class ClientCertificate:
    """A certificate (chain) and its private key, both PEM."""

    certificate: bytes
    key: Secret

    def fits(self) -> bool:
        """Whether the two belong together."""
        try:
            _present(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), self, "")
        except ConfigError:
            return False
        return True


def tls_context(
    *, ca: bytes | None, verify: bool, certificate: ClientCertificate | None, origin: str
) -> ssl.SSLContext:
    """A client context; without a CA the system's roots are trusted."""
    try:
        context = ssl.create_default_context(cadata=ca.decode("ascii") if ca is not None else None)
    except (ssl.SSLError, UnicodeDecodeError, ValueError) as error:
        raise ConfigError(f"{origin}: certificate-authority is not a PEM certificate") from error
    # Python 3.13 turned this on by default; the CA of many a cluster lacks the key identifiers that it asks for,
    # and every other Kubernetes client accepts them.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if certificate is not None:
        _present(context, certificate, origin)
    return context


def _present(context: ssl.SSLContext, certificate: ClientCertificate, origin: str) -> None:
    """Load a certificate and key that we have in memory.

    OpenSSL's Python binding only takes file names, so the bytes go through an anonymous file in memory: a private
    key never touches a disk on its way.
    """
    descriptor = os.memfd_create("client-certificate", os.MFD_CLOEXEC)
    try:
        with os.fdopen(descriptor, "wb", closefd=False) as file:
            file.write(certificate.certificate.rstrip() + b"\n" + certificate.key.reveal().encode())
        # An encrypted key must fail; without this OpenSSL would ask for the password at the terminal.
        context.load_cert_chain(f"/proc/self/fd/{descriptor}", password=b"")
    except (ssl.SSLError, ValueError, OSError) as error:
        raise ConfigError(f"{origin}: the client certificate and its key cannot be used together: {error}") from error
    finally:
        os.close(descriptor)
