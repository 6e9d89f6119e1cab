"""The walk of ``examples/README.md`` with a real kubectl, in real time: on ``quorate up``, and on a real API server.

There ``quorate controller`` and simulated nodes do the work, each with the rights that ``deploy`` gives it and no
others.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from quorate.api import all_kinds
from quorate.api.names import NAMESPACE
from quorate.lab.layout import Layout
from tests.examples.files import DIRECTORY
from tests.support import policies
from tests.support.apiserver import ApiServer, MissingBinaries, binaries
from tests.support.optional import loud_skip

PATIENCE = 120.0
LAYOUT = Layout(nodes=6, zones=3)
SIZES = ("--nodes", str(LAYOUT.nodes), "--zones", str(LAYOUT.zones))
#: So that a lost node is noticed in seconds.
QUICK = '{"spec":{"agent":{"leaseDuration":"4s","renewInterval":"1s"}}}'
SHORT_GRACE = '{"spec":{"eligibleNodesPolicy":{"notReadyGracePeriod":"5s"}}}'
ROLE = DIRECTORY.parent / "deploy" / "controller" / "role.yaml"
ACCOUNT = f"system:serviceaccount:{NAMESPACE}:quorate-controller"


@dataclass(frozen=True)
class Walker:
    """Whoever walks: kubectl and quorate, with one kubeconfig."""

    program: Path
    kubeconfig: Path

    def kubectl(self, *words: str) -> str:
        return _run(str(self.program), "--kubeconfig", str(self.kubeconfig), *words)

    def apply(self, *files: str) -> None:
        self.kubectl("apply", *(word for file in files for word in ("-f", str(DIRECTORY / file))))

    def get(self, *words: str) -> Any:
        return json.loads(self.kubectl("get", *words, "-o", "json"))

    def wait(self, *words: str) -> None:
        self.kubectl("wait", f"--timeout={PATIENCE:.0f}s", *words)

    def explain(self, volume: str) -> Any:
        command = (sys.executable, "-m", "quorate", "explain", "volume", volume)
        return json.loads(_run(*command, "--kubeconfig", str(self.kubeconfig), "-o", "json"))

    def until(self, what: str, holds: Callable[[], bool]) -> None:
        end = time.monotonic() + PATIENCE
        while not holds():
            assert time.monotonic() < end, f"{what}: not in {PATIENCE:.0f} s\n{self.kubectl('get', 'rv,rvr', '-owide')}"
            time.sleep(0.2)

    def make(self) -> None:
        """Pools, classes, volumes: all of them Ready, with every level's layout."""
        self.apply("pool.yaml", "classes.yaml", "volumes.yaml", "thin.yaml")
        self.wait("--for=condition=Ready", "rv", "--all")
        layouts = {each["metadata"]["name"]: each["status"]["membershipLayout"] for each in self.get("rv")["items"]}
        assert layouts == {"scratch": "1D", "web": "2D+1TB", "ledger": "2D", "demo": "3D", "sparse": "3D"}
        shown = self.kubectl("get", "rv,rvr,rva,diskschedules", "-A")
        assert "replicatedvolumereplica.storage.deckhouse.io/demo-0" in shown

    def use(self) -> None:
        """By an attachment, and by publishOn."""
        self.apply("attachment.yaml")
        self.wait("--for=condition=Ready", "rva/demo-on-node-1")
        assert self.get("rva", "demo-on-node-1")["status"]["devicePath"].startswith("/dev/drbd")
        self.apply("published.yaml")
        self.wait("--for=jsonpath={.status.publishedOn[0]}=node-2", "rv/web")

    def grow(self) -> None:
        before = self.get("rv", "demo")["status"]["actualSize"]
        self.kubectl("patch", "rv", "demo", "--type", "merge", "-p", '{"spec":{"size":"1200Mi"}}')
        self.until("it has grown", lambda: self.get("rv", "demo")["status"]["actualSize"] != before)

    def delete(self) -> None:
        """Everything, and nothing is left."""
        self.kubectl("delete", "rva", "demo-on-node-1")
        self.kubectl("delete", "rv", "--all", f"--timeout={PATIENCE:.0f}s")
        for kind in ("rv", "rvr", "rva", "llv", "drbdrop"):
            assert self.get(kind)["items"] == []
        ledgers = self.get("diskschedules", "-A")["items"]
        assert ledgers
        self.until(
            "the space is given back",
            lambda: not any(each["status"].get("replicas") for each in self.get("diskschedules", "-A")["items"]),
        )


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE + 10, check=False)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
    return done.stdout


@contextmanager
def quorate(*words: str, says: str) -> Iterator[None]:
    """A command that runs until the block ends; it has said that it is ready."""
    command = [sys.executable, "-m", "quorate", *words, "--log-level", "error"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        try:
            assert says in process.stdout.readline()
            yield
        finally:
            process.terminate()
            assert process.wait(PATIENCE) == 0


@pytest.fixture
def kubectl() -> Path:
    try:
        return binaries() / "kubectl"
    except MissingBinaries as missing:
        loud_skip(f"kubectl: {missing}")


def test_on_quorate_up_with_nothing_but_kubectl(kubectl: Path, tmp_path: Path) -> None:
    with quorate("up", "--data", str(tmp_path), "--port", "0", *SIZES, says="ready"):
        walker = Walker(kubectl, tmp_path / "kubeconfig")
        walker.until("the cluster is configured", lambda: bool(walker.get("clusterconfig")["items"]))
        walker.kubectl("patch", "clusterconfig", "cluster", "--type", "merge", "-p", QUICK)
        walker.make()
        walker.kubectl("patch", "rsc", "safe", "--type", "merge", "-p", SHORT_GRACE)
        walker.use()
        story = walker.explain("demo")
        assert all(loss["survives"] for loss in story["losses"])
        # Not of node-1's zone: that has two nodes, and the other one could not be replaced.
        lost = next(each for each in story["replicas"] if each["zone"] != "zone-a" and each["disk"])
        _run(sys.executable, "-m", "quorate", "fault", "--data", str(tmp_path), "node-down", lost["node"])
        walker.wait("--for=condition=Resilient=False", "rv/demo")
        assert walker.get("rv", "demo")["status"]["publishedOn"] == ["node-1"]
        assert not walker.get("rva", "demo-on-node-1")["status"].get("ioSuspended"), "it stays writable"
        walker.wait("--for=condition=Resilient", "rv/demo")
        assert lost["name"] not in {each["name"] for each in walker.get("rv", "demo")["status"]["datamesh"]["members"]}
        _run(sys.executable, "-m", "quorate", "fault", "--data", str(tmp_path), "node-up", lost["node"])
        walker.wait("--for=condition=Ready", "rv", "--all")
        walker.grow()
        walker.delete()


@pytest.mark.apiserver
def test_on_a_real_api_server_with_the_rights_that_are_deployed(
    apiserver: ApiServer, kubectl: Path, tmp_path: Path
) -> None:
    apiserver.install_crds(kind for kind in all_kinds() if kind.crd and not kind.group.startswith("test."))
    walker = Walker(kubectl, apiserver.kubeconfig)
    with ExitStack() as ending:
        ending.callback(_clear, apiserver)
        policies.apply(apiserver)
        ending.callback(policies.remove, apiserver)
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
        assert apiserver.request("POST", "/api/v1/namespaces", namespace).code in (201, 409)
        walker.kubectl("apply", "-f", str(ROLE))
        controller = ("controller", "--kubeconfig", str(_kubeconfig(apiserver, tmp_path)), "--metrics-port", "0")
        ending.enter_context(quorate(*controller, says="starts"))
        nodes = ("--kubeconfig", str(apiserver.kubeconfig), "--credentials", str(_credentials(apiserver, tmp_path)))
        ending.enter_context(quorate("lab", "nodes", *nodes, *SIZES, says="are attached to"))
        walker.make()
        walker.use()
        assert all(loss["survives"] for loss in walker.explain("demo")["losses"])
        walker.grow()
        walker.delete()


def _kubeconfig(apiserver: ApiServer, directory: Path) -> Path:
    """Of the controllers' service account, by a certificate."""
    pair = apiserver.authority.client(ACCOUNT)
    found = yaml.safe_load(apiserver.kubeconfig.read_text())
    found["users"][0]["user"] = {"client-certificate": str(pair.certificate), "client-key": str(pair.key)}
    path = directory / "controller.kubeconfig"
    path.write_text(yaml.safe_dump(found))
    return path


def _credentials(apiserver: ApiServer, directory: Path) -> Path:
    """A certificate for the agent of every node."""
    found = directory / "agents"
    found.mkdir()
    for plan in LAYOUT.plans():
        pair = apiserver.authority.client(f"system:quorate:agent:{plan.name}", "system:quorate:agents")
        pair.certificate.rename(found / f"{plan.name}.crt")
        pair.key.rename(found / f"{plan.name}.key")
    return found


def _clear(apiserver: ApiServer) -> None:
    """Other tests share the server."""
    apiserver.clear(*(kind for kind in all_kinds() if kind.crd and not kind.group.startswith("test.")))
    for plan in LAYOUT.plans():
        apiserver.request("DELETE", f"/api/v1/nodes/{plan.name}")
    apiserver.request("DELETE", f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases")
