"""The files of ``examples/maintenance``, applied as they are: in virtual time, and with kubectl on both engines."""

from __future__ import annotations

import json
import re
import subprocess
import urllib.request
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

from quorate.api import all_kinds
from quorate.api.names import NAMESPACE
from quorate.engine.simulation import Simulation, run
from quorate.lab.layout import Layout
from tests.examples import files
from tests.examples.test_with_kubectl import (
    ROLE,
    SIZES,
    Walker,
    _clear,
    _credentials,
    _kubeconfig,
    kubectl,
    quorate,
)
from tests.maintenance.live.laboratory import broker_lab
from tests.support import policies
from tests.support.apiserver import ApiServer

__all__ = ["kubectl"]

DIRECTORY = files.DIRECTORY / "maintenance"
FILES = tuple(sorted(path.name for path in DIRECTORY.glob("*.yaml")))


def test_the_walk_mentions_every_file_and_no_other() -> None:
    walk = (DIRECTORY / "README.md").read_text()
    assert set(re.findall(r"examples/maintenance/([\w-]+\.yaml)", walk)) == set(FILES)


def test_every_file_is_taken_and_answered() -> None:
    async def main(sim: Simulation) -> None:
        async with broker_lab(sim, Layout(nodes=6)) as lab:
            last = "rolling-restart.yaml"
            for file in FILES:
                if file != last:
                    await files.apply(lab.store, f"maintenance/{file}")
            await lab.until_code("restart-node-1", "ALLOW")
            await lab.until_code("replace-a-drive", "ALLOW")
            # Asked together with them, it might be first, and leave nothing for them.
            await files.apply(lab.store, f"maintenance/{last}")
            partial = await lab.until_code("rolling-restart", "ALLOW_PARTIAL")
            assert partial.status.permissions
            assert len(partial.status.refused) + len(partial.status.permissions) == 6

    run(main, seed=1)


class Operator(Walker):
    """Somebody who maintains the cluster."""

    def apply(self, *names: str) -> None:
        self.kubectl("apply", *(word for name in names for word in ("-f", str(DIRECTORY / name))))

    def permissions(self) -> dict[str, str]:
        """Hosts by the names of permissions."""
        found = self.get("permissions")["items"]
        return {each["metadata"]["name"]: each["spec"]["action"]["host"] for each in found}

    def limit(self) -> None:
        self.until("the broker is configured", lambda: bool(self.get("brokerconfigs")["items"]))
        self.apply("limits.yaml")
        self.wait("--for=condition=Applied", "brokerconfig/broker")

    def restart_a_host(self) -> None:
        self.apply("restart-a-host.yaml")
        self.wait("--for=condition=Granted", "permissionrequest/restart-node-1")
        self.until("it is shown", lambda: "node-1" in self.permissions().values())
        [name] = self.permissions()
        shown = self.kubectl("get", "permissions")
        assert re.search(rf"{name}\s+alice\s+SHUTDOWN_HOST\s+node-1", shown), shown
        self.kubectl("delete", "permission", name, "--timeout=30s")
        self.until("it is done", lambda: not self.permissions())
        self.kubectl("delete", "permissionrequest", "restart-node-1", "--timeout=30s")

    def restart_all(self) -> None:
        """Six hosts, two at a time at most."""
        self.apply("rolling-restart.yaml")
        served: list[str] = []
        while len(served) < 6:
            self.until("somebody may", lambda: bool(self.permissions()))
            found = self.permissions()
            assert len(found) <= 2
            for name, host in sorted(found.items()):
                served.append(host)
                self.kubectl("delete", "permission", name, "--timeout=30s")
        assert sorted(served) == [f"node-{number}" for number in range(1, 7)]
        self.wait("--for=jsonpath={.status.code}=ALLOW", "permissionrequest/rolling-restart")
        self.kubectl("delete", "permissionrequest", "rolling-restart", "--timeout=30s")


def test_on_quorate_up_with_kubectl_and_over_http(kubectl: Path, tmp_path: Path) -> None:
    with quorate("up", "--data", str(tmp_path), "--port", "0", *SIZES, says="ready"):
        operator = Operator(kubectl, tmp_path / "kubeconfig")
        operator.until("nodes are there", lambda: len(operator.get("nodes")["items"]) == 6)
        operator.limit()
        operator.restart_a_host()
        operator.restart_all()
        url = yaml.safe_load((tmp_path / "kubeconfig").read_text())["clusters"][0]["cluster"]["server"]
        asked = {
            "User": "bob",
            "Actions": [{"Type": "SHUTDOWN_HOST", "Host": "node-4", "Duration": 60_000_000}],
            "Schedule": True,
        }
        answer = _post(f"{url}/cms/api/permissionrequest", asked)
        assert answer["Status"]["Code"] == "ALLOW", answer
        operator.until("it is shown", lambda: "node-4" in operator.permissions().values())
        assert _post(f"{url}/cms/api/clusterstaterequest", {})["Status"]["Code"] == "OK"


def _post(url: str, body: dict[str, Any]) -> Any:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


@pytest.mark.apiserver
def test_on_a_real_api_server_where_everybody_asks_in_their_own_name(
    apiserver: ApiServer,
    kubectl: Path,
    tmp_path: Path,
) -> None:
    apiserver.install_crds(kind for kind in all_kinds() if kind.crd and not kind.group.startswith("test."))
    admin = Operator(kubectl, apiserver.kubeconfig)
    with ExitStack() as ending:
        ending.callback(_clear, apiserver)
        policies.apply(apiserver)
        ending.callback(policies.remove, apiserver)
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
        assert apiserver.request("POST", "/api/v1/namespaces", namespace).code in (201, 409)
        admin.kubectl("apply", "-f", str(ROLE))
        alice, bob = (Operator(kubectl, _person(apiserver, tmp_path, name, ending)) for name in ("alice", "bob"))
        controller = ("controller", "--kubeconfig", str(_kubeconfig(apiserver, tmp_path)), "--metrics-port", "0")
        ending.enter_context(quorate(*controller, says="starts"))
        nodes = ("--kubeconfig", str(apiserver.kubeconfig), "--credentials", str(_credentials(apiserver, tmp_path)))
        ending.enter_context(quorate("lab", "nodes", *nodes, *SIZES, says="are attached to"))
        admin.until("nodes are there", lambda: len(admin.get("nodes")["items"]) == 6)
        admin.limit()
        admin.until("the policy is in force", lambda: "in their own name" in _refused(bob, "restart-a-host.yaml"))
        alice.restart_a_host()
        alice.apply("restart-a-host.yaml")
        alice.wait("--for=condition=Granted", "permissionrequest/restart-node-1")
        refusal = _complaint(bob, "delete", "permissionrequest", "restart-node-1", "--timeout=5s")
        assert "spec.user is alice, and you are bob" in refusal
        admin.kubectl("delete", "permissionrequest", "restart-node-1", "--timeout=30s")
        alice.restart_all()


def _refused(who: Operator, file: str) -> str:
    return _complaint(who, "apply", "--dry-run=server", "-f", str(DIRECTORY / file))


def _complaint(who: Operator, *words: str) -> str:
    command = (str(who.program), "--kubeconfig", str(who.kubeconfig), *words)
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return done.stderr if done.returncode else ""


def _person(apiserver: ApiServer, directory: Path, name: str, ending: ExitStack) -> Path:
    """A user who may do as she likes with objects of the broker, as far as RBAC goes."""
    rights = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": f"test-{name}"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name}],
    }
    bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
    assert apiserver.request("POST", bindings, rights).code in (201, 409)
    ending.callback(apiserver.request, "DELETE", f"{bindings}/test-{name}")
    pair = apiserver.authority.client(name)
    found = yaml.safe_load(apiserver.kubeconfig.read_text())
    found["users"][0]["user"] = {"client-certificate": str(pair.certificate), "client-key": str(pair.key)}
    path = directory / f"{name}.kubeconfig"
    path.write_text(yaml.safe_dump(found))
    return path
