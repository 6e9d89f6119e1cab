"""Who asks: tokens, certificates, and nobody."""

from __future__ import annotations

import hashlib
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import grpc
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from quorate.api.maintenance.action import StatusCode
from quorate.errors import ConfigError, Unauthorized
from quorate.maintenance.messages import Caller, PermissionResponse, Status
from quorate.server.broker import Access, Users, serve_grpc
from quorate.server.broker.proto import cms_pb2
from tests.server.broker.conftest import serving
from tests.server.broker.fake import FakeBroker

ALICE, ROOT = "alice-token-0123456789", "root-token-0123456789"


def digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "users.yaml"
    path.write_text(
        f"users:\n- {{name: alice, tokenSha256: {digest(ALICE)}}}\n"
        f"- {{name: root, role: admin, tokenSha256: {digest(ROOT)}}}\n"
    )
    return path


@pytest.fixture
def access(file: Path) -> Access:
    return Access(Users(file))


def certificate(name: str, organization: str = "") -> x509.Certificate:
    key = ec.generate_private_key(ec.SECP256R1())
    parts = [x509.NameAttribute(NameOID.COMMON_NAME, name)] if name else []
    parts += [x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization)] if organization else []
    now = datetime(2026, 1, 1, tzinfo=UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name(parts))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "ca")]))
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now)
        .not_valid_after(now + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )


def test_a_token_says_who_and_in_which_role(access: Access) -> None:
    assert access.caller(ALICE) == Caller(name="alice")
    assert access.caller(ROOT) == Caller(name="root", admin=True)
    assert access.identify(ALICE) == Caller(name="alice")


@pytest.mark.parametrize("token", ["", ALICE[:-1], ALICE + "x", digest(ALICE)])
def test_any_other_token_is_nobodys(access: Access, token: str) -> None:
    with pytest.raises(Unauthorized):
        access.caller(token)


def test_whoever_is_taken_out_of_the_file_is_unknown_from_then_on(file: Path, access: Access) -> None:
    assert access.identify(ALICE) is not None
    text = file.read_text()
    file.write_text(text.replace(digest(ALICE), digest("another")))
    os.utime(file, ns=(1, 1))
    assert access.identify(ALICE) is None
    assert access.identify("another") == Caller(name="alice")


@pytest.mark.parametrize("damage", ["", "users: [", "users: 1", None])
def test_with_a_file_that_went_bad_nobody_is_known(file: Path, access: Access, damage: str | None) -> None:
    if damage is None:
        file.unlink()
    else:
        file.write_text(damage)
        os.utime(file, ns=(1, 1))
    assert access.identify(ALICE) is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "cannot be read"),
        ("users: [", "is not YAML"),
        ("", "it must hold `users:`"),
        ("users: [{name: a}]", "tokenSha256"),
        ("users: [{name: a, tokenSha256: plain}]", r"\$.users\[0\].tokenSha256"),
        (f"users: [{{name: a, role: king, tokenSha256: {digest('x')}}}]", "role"),
        (f"users: [{{name: '', tokenSha256: {digest('x')}}}]", "name"),
        (f"users: [{{name: a, tokenSha256: {digest('x')}, extra: 1}}]", "extra"),
    ],
)
def test_a_file_that_cannot_be_used_says_why(tmp_path: Path, text: str | None, said: str) -> None:
    path = tmp_path / "users.yaml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ConfigError, match=said) as refused:
        Users(path)
    assert str(path) in str(refused.value)


@pytest.mark.parametrize("encoding", [serialization.Encoding.PEM, serialization.Encoding.DER])
def test_a_certificate_says_who_and_in_which_role(encoding: serialization.Encoding) -> None:
    access = Access(certificates=True)
    assert access.caller("", certificate("carol").public_bytes(encoding)) == Caller(name="carol")
    admin = certificate("dora", "quorate:admin").public_bytes(encoding)
    assert access.caller("", admin) == Caller(name="dora", admin=True)


def test_a_certificate_without_a_name_is_nobodys() -> None:
    with pytest.raises(Unauthorized, match="one common name"):
        Access(certificates=True).caller("", certificate("").public_bytes(serialization.Encoding.PEM))
    with pytest.raises(Unauthorized, match="cannot be read"):
        Access(certificates=True).caller("", b"rubbish")


def test_a_wrong_token_is_not_mended_by_a_certificate(file: Path) -> None:
    pem = certificate("carol").public_bytes(serialization.Encoding.PEM)
    both = Access(Users(file), certificates=True)
    assert both.caller(ALICE, pem) == Caller(name="alice")
    assert both.caller("", pem) == Caller(name="carol")
    with pytest.raises(Unauthorized):
        both.caller("wrong", pem)


def test_certificates_that_nobody_checked_do_not_count(access: Access) -> None:
    with pytest.raises(Unauthorized):
        access.caller("", certificate("carol").public_bytes(serialization.Encoding.PEM))


def test_secrets_do_not_show(access: Access) -> None:
    assert digest(ALICE) not in repr(access)


@pytest.mark.parametrize("header", [None, "Bearer wrong", "Basic YWxpY2U6eA==", "Bearer", f"Token {ALICE}"])
async def test_over_http_nobody_gets_401(broker: FakeBroker, access: Access, header: str | None) -> None:
    headers = {"Authorization": header} if header is not None else {}
    async with (
        serving(broker, access) as client,
        client.session.post("/cms/api/permissionrequest", json={}, headers=headers) as answer,
    ):
        assert answer.status == 401
        assert answer.headers["WWW-Authenticate"] == "Bearer"
        assert (await answer.json())["Status"]["Code"] == "UNAUTHORIZED"
    assert broker.asked == []


@pytest.mark.parametrize(
    "path", ["/openapi.json", "/cms/api/json/log", "/cms/api/events", "/cms/api/walle/v11/tasks", "/cms/api/json/proto"]
)
async def test_no_path_is_open_to_nobody(broker: FakeBroker, access: Access, path: str) -> None:
    async with serving(broker, access) as client:
        code, _ = await client.get(path)
    assert code == 401


async def test_over_http_a_token_is_the_caller(broker: FakeBroker, access: Access) -> None:
    broker.answers["permission_request"] = PermissionResponse(status=Status(code=StatusCode.UNAUTHORIZED, reason="no"))
    async with serving(broker, access) as client:
        headers = {"Authorization": f"Bearer {ALICE}", "Host": "broker.example"}
        code, answer = await client.post("/cms/api/permissionrequest", {"User": "bob"}, headers=headers)
    # Whom one may speak for is the broker's to say: in its own words, not in HTTP's.
    assert (code, answer["Status"]["Code"]) == (200, "UNAUTHORIZED")
    assert broker.asked[0][2] == Caller(name="alice")


async def test_over_grpc_a_token_is_the_caller(broker: FakeBroker, access: Access) -> None:
    broker.answers["permission_request"] = PermissionResponse(status=Status(code=StatusCode.ALLOW))
    listener = await serve_grpc(broker.as_broker, access, host="127.0.0.1", port=0)
    asked = cms_pb2.TCmsRequest(PermissionRequest=cms_pb2.TPermissionRequest()).SerializeToString()
    codes = []
    async with grpc.aio.insecure_channel(f"127.0.0.1:{listener.port}") as channel:
        method: Any = channel.unary_unary(
            "/quorate.cms.Cms/Call", response_deserializer=cms_pb2.TCmsResponse.FromString
        )
        for token in (ALICE, "wrong", None):
            metadata = (("authorization", f"Bearer {token}"),) if token else ()
            codes.append((await method(asked, metadata=metadata)).PermissionResponse.Status.Code)
        watch: Any = channel.unary_stream("/quorate.cms.Cms/Watch")
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            [one async for one in watch(b"")]
        assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            bobs = cms_pb2.TWatchRequest(User="bob").SerializeToString()
            [one async for one in watch(bobs, metadata=(("authorization", f"Bearer {ALICE}"),))]
        assert refused.value.code() is grpc.StatusCode.PERMISSION_DENIED
    await listener.close()
    assert codes == [cms_pb2.TStatus.ALLOW, cms_pb2.TStatus.UNAUTHORIZED, cms_pb2.TStatus.UNAUTHORIZED]
    assert [caller for _, _, caller in broker.asked] == [Caller(name="alice")]
