"""The server's certificate: one that was given, or one of a small authority of our own, kept in the data directory.

The authority goes into the kubeconfig, so clients check the server properly. Ours is ``ca.crt``: the server's
certificate is made anew at start when it lacks a name, or has less than ninety days left; the authority is kept, so old
kubeconfigs stay valid. Of a certificate that was given it is the one that was given with it, or what the chain itself
ends in, if that has signed itself.
"""

from __future__ import annotations

import ipaddress
import ssl
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from quorate.errors import ConfigError
from quorate.server.private_file import write_private

_AUTHORITY_LIFE = timedelta(days=3650)
_SERVER_LIFE = timedelta(days=825)
_RENEW_BEFORE = timedelta(days=90)
#: A certificate is valid from a little before it was made: the client's clock may be behind.
_CLOCK_SKEW = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Certificates:
    """Files for a TLS server. ``authority`` is None where only the client's system can know whom to trust."""

    certificate: Path
    key: Path
    authority: Path | None = None

    def context(self) -> ssl.SSLContext:
        """What the listening socket needs; ConfigError if the files are not a matching pair."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            context.load_cert_chain(self.certificate, self.key)
        except (OSError, ssl.SSLError) as error:
            raise ConfigError(
                f"cannot use the certificate {self.certificate} with the key {self.key}: {error}"
            ) from None
        return context


def ensure_certificates(directory: Path, names: tuple[str, ...], now: datetime) -> Certificates:
    """Our own certificates in ``directory`` for these host names and addresses, made where they are missing."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    files = Certificates(directory / "server.crt", directory / "server.key", directory / "ca.crt")
    authority = _load(directory / "ca.crt", directory / "ca.key")
    if authority is None or _expires_soon(authority[0], now):
        authority = _make_authority(now)
        _save(directory / "ca.crt", directory / "ca.key", *authority)
    server = _load(files.certificate, files.key)
    if server is None or _expires_soon(server[0], now) or not _fits(server[0], names, authority[0]):
        _save(files.certificate, files.key, *_make_server(names, *authority, now))
    return files


def given_certificates(certificate: Path, key: Path, authority: Path | None) -> Certificates:
    """Certificates that somebody else made; ConfigError if clients that trust the authority would not trust them."""
    chain = _read_chain(certificate)
    if authority is None:
        # A chain that ends in what has signed itself brings its authority along. Of any other it is the system's.
        return Certificates(certificate, key, certificate if _is_self_signed(chain[-1]) else None)
    if not any(_is_issued_by(chain[-1], known) or known == chain[-1] for known in _read_chain(authority)):
        raise ConfigError(
            f"the authority {authority} has not signed {certificate}, or the last certificate of its chain: give the"
            " one that has, or add the certificates between them to the chain"
        )
    return Certificates(certificate, key, authority)


def _read_chain(path: Path) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(path.read_bytes())
    except OSError as error:
        raise ConfigError(f"cannot use the certificate {path}: {error.strerror}") from None
    except ValueError as error:
        raise ConfigError(f"cannot use the certificate {path}: it holds no PEM certificate: {error}") from None


def _is_self_signed(certificate: x509.Certificate) -> bool:
    return certificate.subject == certificate.issuer and _is_issued_by(certificate, certificate)


def _is_issued_by(certificate: x509.Certificate, issuer: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(issuer)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


_Pair = tuple[x509.Certificate, ec.EllipticCurvePrivateKey]


def _load(certificate: Path, key: Path) -> _Pair | None:
    """What is stored, or None where it is missing or cannot be read: it is ours to make again."""
    try:
        loaded = serialization.load_pem_private_key(key.read_bytes(), None)
        if not isinstance(loaded, ec.EllipticCurvePrivateKey):
            return None
        return x509.load_pem_x509_certificate(certificate.read_bytes()), loaded
    except (FileNotFoundError, ValueError):
        return None


def _save(path: Path, key_path: Path, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    write_private(key_path, private)
    write_private(path, certificate.public_bytes(serialization.Encoding.PEM))


def _expires_soon(certificate: x509.Certificate, now: datetime) -> bool:
    return certificate.not_valid_after_utc - now < _RENEW_BEFORE


def _fits(certificate: x509.Certificate, names: tuple[str, ...], authority: x509.Certificate) -> bool:
    if not _is_issued_by(certificate, authority):
        return False
    known = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return set(_alternative_names(names)) <= set(known)


def _make_authority(now: datetime) -> _Pair:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "quorate local authority")])
    usage = x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=True,
        crl_sign=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
    certificate = (
        _builder(name, name, key, now, _AUTHORITY_LIFE)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return certificate, key


def _make_server(
    names: tuple[str, ...], authority: x509.Certificate, authority_key: ec.EllipticCurvePrivateKey, now: datetime
) -> _Pair:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "quorate")])
    issuer_key = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key())
    certificate = (
        _builder(subject, authority.subject, key, now, _SERVER_LIFE)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName(_alternative_names(names)), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(issuer_key, critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    return certificate, key


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, now: datetime, life: timedelta
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SKEW)
        .not_valid_after(now + life)
    )


def _alternative_names(names: tuple[str, ...]) -> list[x509.GeneralName]:
    found: list[x509.GeneralName] = []
    for name in names:
        try:
            found.append(x509.IPAddress(ipaddress.ip_address(name)))
        except ValueError:
            found.append(x509.DNSName(name))
    return found
