"""Every way to say who we are, to a server that checks."""

from __future__ import annotations

import json
import os
from pathlib import Path
from random import Random
from typing import Any

import pytest

from quorate.engine.clock import SystemClock
from quorate.engine.kubernetes import Connection, KubernetesStore, in_cluster, load_connection
from quorate.errors import Forbidden, StoreUnreachable, Unauthorized
from tests.engine.kubernetes.manual_clock import ManualClock
from tests.support.apiserver import ApiServer
from tests.support.kinds import Widget

pytestmark = pytest.mark.apiserver


def kubeconfig(apiserver: ApiServer, directory: Path, user: dict[str, Any], cluster: Any = None) -> Connection:
    place = {"server": apiserver.url, "certificate-authority": str(apiserver.ca_file), **(cluster or {})}
    content = {
        "current-context": "x",
        "clusters": [{"name": "x", "cluster": place}],
        "users": [{"name": "x", "user": user}],
        "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
    }
    file = directory / "config"
    file.write_text(json.dumps(content))
    return load_connection(environ=os.environ, clock=SystemClock(), kubeconfig=file)


async def lists(connection: Connection, clock: Any = None) -> int:
    """How many widgets this identity sees."""
    store = KubernetesStore(connection, clock=clock or SystemClock(), random=Random(1))
    try:
        return len((await store.list(Widget)).items)
    finally:
        await store.close()


@pytest.fixture(autouse=True)
def crds(apiserver: ApiServer) -> None:
    apiserver.install_crds([Widget.KIND])


async def test_a_token_is_accepted(apiserver: ApiServer, tmp_path: Path) -> None:
    assert await lists(kubeconfig(apiserver, tmp_path, {"token": apiserver.token})) == 0


async def test_a_client_certificate_is_accepted(apiserver: ApiServer, tmp_path: Path) -> None:
    user = {"client-certificate": str(apiserver.client_certificate), "client-key": str(apiserver.client_key)}
    assert await lists(kubeconfig(apiserver, tmp_path, user)) == 0


async def test_an_exec_plugins_token_is_accepted(apiserver: ApiServer, tmp_path: Path) -> None:
    credential = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": {"token": apiserver.token},
    }
    plugin = {
        "apiVersion": credential["apiVersion"],
        "interactiveMode": "IfAvailable",
        "command": "echo",
        "args": [json.dumps(credential)],
    }
    assert await lists(kubeconfig(apiserver, tmp_path, {"exec": plugin})) == 0


async def test_an_exec_plugins_certificate_is_accepted(apiserver: ApiServer, tmp_path: Path) -> None:
    status = {
        "clientCertificateData": apiserver.client_certificate.read_text(),
        "clientKeyData": apiserver.client_key.read_text(),
    }
    version = "client.authentication.k8s.io/v1beta1"
    answer = tmp_path / "answer"
    answer.write_text(json.dumps({"apiVersion": version, "kind": "ExecCredential", "status": status}))
    plugin = {"apiVersion": version, "command": "cat", "args": [str(answer)]}
    assert await lists(kubeconfig(apiserver, tmp_path, {"exec": plugin})) == 0


async def test_another_name_can_be_expected_of_the_server(apiserver: ApiServer, tmp_path: Path) -> None:
    user = {"token": apiserver.token}
    assert await lists(kubeconfig(apiserver, tmp_path, user, {"tls-server-name": "apiserver.test"})) == 0
    with pytest.raises(StoreUnreachable, match="certificate"):
        await lists(kubeconfig(apiserver, tmp_path, user, {"tls-server-name": "somebody.else"}))


async def test_a_wrong_token_is_refused(apiserver: ApiServer, tmp_path: Path) -> None:
    with pytest.raises(Unauthorized):
        await lists(kubeconfig(apiserver, tmp_path, {"token": "wrong"}))


class TestServiceAccounts:
    """As in a pod: the token in a file is rotated under a running process."""

    @pytest.fixture
    def account(self, apiserver: ApiServer, tmp_path: Path) -> Path:
        body = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "agent"}}
        assert apiserver.request("POST", "/api/v1/namespaces/default/serviceaccounts", body).code in (201, 409)
        (tmp_path / "ca.crt").write_bytes(apiserver.ca_file.read_bytes())
        (tmp_path / "token").write_text(self.new_token(apiserver))
        return tmp_path

    def new_token(self, apiserver: ApiServer) -> str:
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        answer = apiserver.request("POST", "/api/v1/namespaces/default/serviceaccounts/agent/token", body)
        token: str = answer.json()["status"]["token"]
        return token

    def allow(self, apiserver: ApiServer, name: str) -> None:
        binding = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"kind": "ServiceAccount", "name": "agent", "namespace": "default"}],
        }
        base = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
        assert apiserver.request("POST", base, binding).code == 201

    def connection(self, apiserver: ApiServer, account: Path, clock: ManualClock) -> Connection:
        host, port = apiserver.url.removeprefix("https://").split(":")
        environ = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
        return in_cluster(environ=environ, clock=clock, service_account=account)

    async def test_an_account_without_rights_is_forbidden(self, apiserver: ApiServer, account: Path) -> None:
        with pytest.raises(Forbidden, match=r"system:serviceaccount:default:agent.* cannot list"):
            await lists(self.connection(apiserver, account, ManualClock()))

    async def test_a_process_lives_through_the_rotation_of_its_token(self, apiserver: ApiServer, account: Path) -> None:
        self.allow(apiserver, "rotation")
        good = (account / "token").read_text()
        (account / "token").write_text("expired")
        clock = ManualClock()
        store = KubernetesStore(self.connection(apiserver, account, clock), clock=clock, random=Random(1))
        with pytest.raises(Unauthorized):
            await store.list(Widget)
        (account / "token").write_text(good)
        await store.list(Widget)
        (account / "token").write_text(self.new_token(apiserver))
        clock.advance(61)
        await store.list(Widget)
        await store.close()
        apiserver.request("DELETE", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/rotation")
