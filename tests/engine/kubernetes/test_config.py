"""Which API server is used, and how a pod finds its own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from quorate.api.secret import Secret
from quorate.engine.kubernetes import in_cluster, load_connection
from quorate.engine.kubernetes.credentials import FixedCredentials, Identity
from quorate.engine.kubernetes.tls import ClientCertificate
from quorate.errors import ConfigError
from tests.engine.kubernetes.manual_clock import ManualClock
from tests.support.certificates import Authority

POD = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "6443"}


@pytest.fixture
def account(tmp_path: Path) -> Path:
    directory = tmp_path / "serviceaccount"
    directory.mkdir()
    (directory / "token").write_text("first")
    (directory / "ca.crt").write_text("PEM")
    (directory / "namespace").write_text("quorate-system\n")
    return directory


def write_config(path: Path, server: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {
        "current-context": "x",
        "clusters": [{"name": "x", "cluster": {"server": server}}],
        "contexts": [{"name": "x", "context": {"cluster": "x"}}],
    }
    path.write_text(json.dumps(content))
    return path


async def test_a_pod_uses_its_service_account(account: Path) -> None:
    connection = in_cluster(environ=POD, clock=ManualClock(), service_account=account)
    assert connection.server == "https://10.96.0.1:6443"
    assert connection.ca == b"PEM"
    assert connection.namespace == "quorate-system"
    assert await connection.credentials.identity() == Identity(Secret("first"))


def test_an_address_of_ip_version_6_is_put_in_brackets(account: Path) -> None:
    environ = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    assert in_cluster(environ=environ, clock=ManualClock(), service_account=account).server == "https://[fd00::1]:443"


@pytest.mark.parametrize("missing", ["token", "ca.crt"])
def test_a_pod_without_its_files_is_told_which_one(account: Path, missing: str) -> None:
    (account / missing).unlink()
    with pytest.raises(ConfigError, match=missing):
        in_cluster(environ=POD, clock=ManualClock(), service_account=account)


def test_outside_of_a_pod_there_is_no_service_account(account: Path) -> None:
    with pytest.raises(ConfigError, match="KUBERNETES_SERVICE_HOST"):
        in_cluster(environ={}, clock=ManualClock(), service_account=account)


def test_a_flag_beats_the_variable_beats_the_pod_beats_the_home_directory(tmp_path: Path, account: Path) -> None:
    write_config(tmp_path / ".kube" / "config", "https://home")
    variable = write_config(tmp_path / "variable", "https://variable")
    flag = write_config(tmp_path / "flag", "https://flag")
    environ = {"HOME": str(tmp_path), **POD, "KUBECONFIG": str(variable)}

    def server(kubeconfig: Path | None = None) -> str:
        return load_connection(
            environ=environ, clock=ManualClock(), kubeconfig=kubeconfig, service_account=account
        ).server

    assert server(flag) == "https://flag"
    assert server() == "https://variable"
    del environ["KUBECONFIG"]
    assert server() == "https://10.96.0.1:6443"
    del environ["KUBERNETES_SERVICE_HOST"]
    assert server() == "https://home"


def test_a_context_that_was_asked_for_is_looked_up_even_in_a_pod(tmp_path: Path, account: Path) -> None:
    write_config(tmp_path / ".kube" / "config", "https://home")
    environ = {"HOME": str(tmp_path), **POD}
    connection = load_connection(environ=environ, clock=ManualClock(), context="x", service_account=account)
    assert connection.server == "https://home"


def test_a_file_that_was_asked_for_must_exist(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such file"):
        load_connection(environ={}, clock=ManualClock(), kubeconfig=tmp_path / "nope")


class TestRotation:
    async def test_a_rotated_token_is_seen_within_a_minute(self, account: Path) -> None:
        clock = ManualClock()
        credentials = in_cluster(environ=POD, clock=clock, service_account=account).credentials
        first = await credentials.identity()
        (account / "token").write_text("second")
        clock.advance(59)
        assert await credentials.identity() is first
        clock.advance(1)
        assert await credentials.identity() == Identity(Secret("second"))

    async def test_a_refused_token_is_read_again_at_once(self, account: Path) -> None:
        credentials = in_cluster(environ=POD, clock=ManualClock(), service_account=account).credentials
        first = await credentials.identity()
        (account / "token").write_text("second")
        second = await credentials.renew(first)
        assert second == Identity(Secret("second"))
        (account / "token").write_text("third")
        assert await credentials.renew(first) is second, "that one was replaced already"

    async def test_a_token_that_did_not_change_stays_the_same_object(self, account: Path) -> None:
        clock = ManualClock()
        credentials = in_cluster(environ=POD, clock=clock, service_account=account).credentials
        first = await credentials.identity()
        clock.advance(61)
        assert await credentials.identity() is first

    @pytest.mark.parametrize("content", [None, "", b"\xff\xfe"])
    async def test_a_file_that_is_just_being_replaced_does_no_harm(
        self, account: Path, content: str | bytes | None
    ) -> None:
        clock = ManualClock()
        credentials = in_cluster(environ=POD, clock=clock, service_account=account).credentials
        first = await credentials.identity()
        if content is None:
            (account / "token").unlink()
        elif isinstance(content, bytes):
            (account / "token").write_bytes(content)
        else:
            (account / "token").write_text(content)
        clock.advance(61)
        assert await credentials.identity() is first
        (account / "token").write_text("second")
        clock.advance(61)
        assert await credentials.identity() == Identity(Secret("second"))

    async def test_a_certificate_whose_key_is_not_yet_there_is_waited_for(self, tmp_path: Path) -> None:
        authority = Authority(tmp_path)
        pair, second = authority.client("first"), authority.client("second")
        credentials = FixedCredentials(clock=(clock := ManualClock()), certificate=pair.certificate, key=pair.key)
        first = await credentials.identity()
        pair.certificate.write_bytes(second.certificate.read_bytes())
        clock.advance(61)
        assert await credentials.identity() is first
        pair.key.write_bytes(second.key.read_bytes())
        assert await credentials.identity() is first, "the files are read once a minute"
        clock.advance(61)
        rotated = ClientCertificate(second.certificate.read_bytes(), Secret(second.key.read_text()))
        assert await credentials.identity() == Identity(None, rotated)
