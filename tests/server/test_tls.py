"""Certificates are made once, kept for their owner, and renewed in time."""

from __future__ import annotations

import ipaddress
import os
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509

from quorate.errors import ConfigError
from quorate.server.kubernetes.tls import Certificates, ensure_certificates, given_certificates
from quorate.server.private_file import write_private

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NAMES = ("localhost", "127.0.0.1")


def certificate(path: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(path.read_bytes())


def test_the_server_is_signed_by_the_authority_for_its_names(tmp_path: Path) -> None:
    made = ensure_certificates(tmp_path / "tls", NAMES, NOW)
    server, authority = certificate(made.certificate), certificate(tmp_path / "tls" / "ca.crt")
    server.verify_directly_issued_by(authority)
    names = server.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["localhost"]
    assert names.get_values_for_type(x509.IPAddress) == [ipaddress.ip_address("127.0.0.1")]
    assert server.not_valid_before_utc < NOW < server.not_valid_after_utc
    made.context()


def test_only_the_owner_may_read_the_files(tmp_path: Path) -> None:
    ensure_certificates(tmp_path / "tls", NAMES, NOW)
    assert stat.S_IMODE((tmp_path / "tls").stat().st_mode) == 0o700
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "tls").iterdir()}
    assert modes == dict.fromkeys(("ca.crt", "ca.key", "server.crt", "server.key"), 0o600)


def test_a_file_is_on_the_disk_before_it_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[tuple[bytes, bool]] = []
    path = tmp_path / "token"

    def note(number: int) -> None:
        file = Path(f"/proc/self/fd/{number}")
        synced.append((b"the directory" if file.is_dir() else file.read_bytes(), path.exists()))

    monkeypatch.setattr(os, "fsync", note)
    write_private(path, b"secret")
    assert synced == [(b"secret", False), (b"the directory", True)], "and the name is, before anybody relies on it"
    assert path.read_bytes() == b"secret"


def test_what_is_still_good_is_kept(tmp_path: Path) -> None:
    first = ensure_certificates(tmp_path, NAMES, NOW).certificate.read_bytes()
    assert ensure_certificates(tmp_path, NAMES, NOW + timedelta(days=30)).certificate.read_bytes() == first
    assert ensure_certificates(tmp_path, NAMES[:1], NOW).certificate.read_bytes() == first


@pytest.mark.parametrize(("names", "later"), [((*NAMES, "storage.example"), timedelta()), (NAMES, timedelta(days=740))])
def test_a_new_name_or_an_old_certificate_makes_a_new_one_from_the_same_authority(
    tmp_path: Path, names: tuple[str, ...], later: timedelta
) -> None:
    first = ensure_certificates(tmp_path, NAMES, NOW)
    server, authority = first.certificate.read_bytes(), (tmp_path / "ca.crt").read_bytes()
    ensure_certificates(tmp_path, names, NOW + later)
    assert first.certificate.read_bytes() != server
    assert (tmp_path / "ca.crt").read_bytes() == authority


def test_an_authority_that_ends_soon_is_replaced_with_all_it_signed(tmp_path: Path) -> None:
    first = ensure_certificates(tmp_path, NAMES, NOW)
    authority = (tmp_path / "ca.crt").read_bytes()
    ensure_certificates(tmp_path, NAMES, NOW + timedelta(days=3600))
    assert (tmp_path / "ca.crt").read_bytes() != authority
    certificate(first.certificate).verify_directly_issued_by(certificate(tmp_path / "ca.crt"))


def test_damaged_files_are_made_again(tmp_path: Path) -> None:
    made = ensure_certificates(tmp_path, NAMES, NOW)
    made.key.write_text("rubbish")
    ensure_certificates(tmp_path, NAMES, NOW).context()


def test_files_that_do_not_fit_together_are_a_configuration_error(tmp_path: Path) -> None:
    one, other = ensure_certificates(tmp_path / "a", NAMES, NOW), ensure_certificates(tmp_path / "b", NAMES, NOW)
    with pytest.raises(ConfigError, match="cannot use the certificate"):
        Certificates(one.certificate, other.key).context()
    with pytest.raises(ConfigError, match="No such file"):
        Certificates(tmp_path / "none.crt", tmp_path / "none.key").context()


def test_a_given_certificate_that_signed_itself_is_its_own_authority(tmp_path: Path) -> None:
    made = ensure_certificates(tmp_path, NAMES, NOW)
    alone = tmp_path / "ca.crt"
    assert given_certificates(alone, tmp_path / "ca.key", None).authority == alone
    assert given_certificates(made.certificate, made.key, None).authority is None
    assert given_certificates(made.certificate, made.key, alone).authority == alone


def test_an_authority_that_did_not_sign_the_certificate_is_a_configuration_error(tmp_path: Path) -> None:
    one, other = ensure_certificates(tmp_path / "a", NAMES, NOW), ensure_certificates(tmp_path / "b", NAMES, NOW)
    with pytest.raises(ConfigError, match="has not signed"):
        given_certificates(one.certificate, one.key, other.authority)
    with pytest.raises(ConfigError, match="no PEM certificate"):
        given_certificates(one.certificate, one.key, one.key)
    with pytest.raises(ConfigError, match="No such file"):
        given_certificates(tmp_path / "none.crt", one.key, None)
