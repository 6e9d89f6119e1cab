"""Where the broker may listen, and whom a certificate lets in."""

from __future__ import annotations

import hashlib
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import grpc
import pytest
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from quorate.api.maintenance.action import StatusCode
from quorate.errors import CannotListen, ConfigError
from quorate.maintenance.messages import Caller, PermissionResponse, Status
from quorate.server.broker import mount, serve_grpc
from quorate.server.broker.listening import Address, secured, serve_http
from quorate.server.broker.proto import cms_pb2
from quorate.server.kubernetes.tls import ensure_certificates
from tests.server.broker.fake import FakeBroker

LOOPBACK = [Address("127.0.0.1", 0), Address("::1", 0)]
BEYOND = [Address("127.0.0.1", 0), Address("0.0.0.0", 0)]


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:80", Address("127.0.0.1", 80)),
        ("[::1]:0", Address("::1", 0)),
        ("localhost:65535", Address("localhost", 65535)),
    ],
)
def test_an_address_is_a_host_and_a_port(text: str, address: Address) -> None:
    assert Address.parse(text) == address
    assert str(address) == text


@pytest.mark.parametrize("text", ["", "127.0.0.1", ":80", "127.0.0.1:", "127.0.0.1:65536", "::1:80", "h:x", "[]:1"])
def test_anything_else_is_not(text: str) -> None:
    with pytest.raises(ConfigError, match="expected HOST:PORT") as refused:
        Address.parse(text)
    assert repr(text) in str(refused.value)


@pytest.fixture
def users(tmp_path: Path) -> Path:
    path = tmp_path / "users"
    path.write_text(f"users: [{{name: alice, tokenSha256: {hashlib.sha256(b'token').hexdigest()}}}]")
    return path


def test_on_loopback_it_may_be_open() -> None:
    assert secured(LOOPBACK).access.open


def test_beyond_loopback_it_is_never_open(users: Path, tmp_path: Path) -> None:
    file = tmp_path / "file"
    with pytest.raises(ConfigError, match=r"0.0.0.0:0 can be reached from other machines: say who may ask"):
        secured(BEYOND, certificate=file, key=file)
    with pytest.raises(ConfigError, match="give --tls-certificate and --tls-key"):
        secured(BEYOND, users=users)
    assert not secured(BEYOND, users=users, certificate=file, key=file).access.open
    assert not secured(BEYOND, certificate=file, key=file, client_authority=file).access.open


def test_halves_of_a_setting_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "file"
    with pytest.raises(ConfigError, match="given together"):
        secured(LOOPBACK, certificate=file)
    with pytest.raises(ConfigError, match="over TLS"):
        secured(LOOPBACK, client_authority=file)


def test_files_that_are_not_what_they_should_be_are_named(tmp_path: Path) -> None:
    made = ensure_certificates(tmp_path / "tls", ("localhost",), datetime.now(UTC))
    rubbish = tmp_path / "rubbish"
    rubbish.write_text("rubbish")
    for authority in (rubbish, tmp_path / "nothing"):
        security = secured(LOOPBACK, certificate=made.certificate, key=made.key, client_authority=authority)
        with pytest.raises(ConfigError, match=f"cannot use the client authority {authority}"):
            security.tls()


def client_certificate(directory: Path, name: str) -> tuple[Path, Path]:
    """Issued by the authority in ``directory``."""
    authority = x509.load_pem_x509_certificate((directory / "ca.crt").read_bytes())
    authority_key = serialization.load_pem_private_key((directory / "ca.key").read_bytes(), None)
    assert isinstance(authority_key, ec.EllipticCurvePrivateKey)
    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime.now(UTC)
    parts = [(NameOID.COMMON_NAME, name), (NameOID.ORGANIZATION_NAME, "quorate:admin")]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(oid, value) for oid, value in parts]))
        .issuer_name(authority.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    files = directory / "client.crt", directory / "client.key"
    files[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    files[1].write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return files


async def test_a_client_certificate_is_the_caller_on_both_interfaces(tmp_path: Path, broker: FakeBroker) -> None:
    made = ensure_certificates(tmp_path, ("localhost", "127.0.0.1"), datetime.now(UTC))
    assert made.authority is not None
    certificate, key = client_certificate(tmp_path, "carol")
    security = secured(LOOPBACK, certificate=made.certificate, key=made.key, client_authority=made.authority)
    broker.answers["permission_request"] = PermissionResponse(status=Status(code=StatusCode.ALLOW))
    app = web.Application()
    mount(app, broker.as_broker, security.access)
    http = await serve_http(app, Address("127.0.0.1", 0), security.tls())
    rpc = await serve_grpc(
        broker.as_broker, security.access, host="127.0.0.1", port=0, credentials=security.grpc_credentials()
    )
    try:
        known = ssl.create_default_context(cafile=str(made.authority))
        known.load_cert_chain(certificate, key)
        stranger = ssl.create_default_context(cafile=str(made.authority))
        url = f"https://{http.address}/cms/api/permissionrequest"
        async with aiohttp.ClientSession() as session:
            async with session.post(url, json={}, ssl=known) as answer:
                assert answer.status == 200
            with pytest.raises(aiohttp.ClientError):
                await session.post(url, json={}, ssl=stranger)
        credentials = grpc.ssl_channel_credentials(
            made.authority.read_bytes(), key.read_bytes(), certificate.read_bytes()
        )
        async with grpc.aio.secure_channel(f"127.0.0.1:{rpc.port}", credentials) as channel:
            call: Any = channel.unary_unary(
                "/quorate.cms.Cms/Call", response_deserializer=cms_pb2.TCmsResponse.FromString
            )
            asked = cms_pb2.TCmsRequest(PermissionRequest=cms_pb2.TPermissionRequest())
            assert (await call(asked.SerializeToString())).Status.Code == cms_pb2.TStatus.ALLOW
    finally:
        await http.close()
        await rpc.close()
    assert [caller for _, _, caller in broker.asked] == [Caller(name="carol", admin=True)] * 2


async def test_a_port_that_is_taken() -> None:
    first = await serve_http(web.Application(), Address("127.0.0.1", 0), None)
    try:
        with pytest.raises(CannotListen, match=f"cannot listen on 127.0.0.1 port {first.address.port}"):
            await serve_http(web.Application(), first.address, None)
    finally:
        await first.close()
