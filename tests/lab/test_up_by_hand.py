"""The whole in real time: ``quorate up``, kubectl, a volume, and faults from the command line."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from quorate.server.kubernetes import AgentTokens
from tests.cli.test_fault import quorate
from tests.cli.test_up import PATIENCE, running
from tests.support.apiserver import MissingBinaries, binaries
from tests.support.optional import loud_skip

GUIDE = Path(__file__).parents[2] / "docs" / "lab.md"
QUICK = '{"spec": {"agent": {"leaseDuration": "3s", "renewInterval": "1s"}}}'


@pytest.fixture(scope="module")
def kubectl() -> Path:
    try:
        return binaries() / "kubectl"
    except MissingBinaries as missing:
        loud_skip(f"kubectl: {missing}")


class Kubectl:
    """kubectl with one kubeconfig."""

    def __init__(self, program: Path, kubeconfig: Path) -> None:
        self._command = [str(program), "--kubeconfig", str(kubeconfig)]

    def __call__(self, *words: str) -> str:
        done = subprocess.run(
            [*self._command, *words], capture_output=True, text=True, timeout=PATIENCE * 2, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def items(self, *words: str) -> list[Any]:
        found: list[Any] = json.loads(self("get", *words, "-o", "json"))["items"]
        return found

    def wait_for_groups(self, count: int) -> None:
        """Until all volume groups are Ready; they are made before the server says that it is."""
        assert len(self.items("lvg")) == count
        self("wait", "lvg", "--all", "--for=jsonpath={.status.phase}=Ready", f"--timeout={PATIENCE}s")


VOLUME = """
apiVersion: storage.deckhouse.io/v1alpha1
kind: ReplicatedStoragePool
metadata: {name: pool}
spec: {type: LVM, lvmVolumeGroups: [{name: node-1-disk-1}, {name: node-2-disk-1}, {name: node-3-disk-1}]}
---
apiVersion: storage.deckhouse.io/v1alpha1
kind: ReplicatedStorageClass
metadata: {name: available}
spec: {storagePool: pool, replication: Availability, topology: TransZonal}
---
apiVersion: storage.deckhouse.io/v1alpha1
kind: ReplicatedVolume
metadata: {name: pvc-1}
spec: {size: 128Mi, replicatedStorageClassName: available, publishOn: [node-1]}
"""


def test_a_newcomers_first_hour(tmp_path: Path, kubectl: Path) -> None:
    where = ("--data", str(tmp_path))
    patience = f"--timeout={PATIENCE}s"
    (tmp_path / "volume.yaml").write_text(VOLUME)
    with running(tmp_path, "--nodes", "3", "--zones", "3", "--drives", "2"):
        run = Kubectl(kubectl, tmp_path / "kubeconfig")
        run.wait_for_groups(6)
        shown = run("get", "nodes,lvg,drives")
        assert shown.count("node/node-") == 3
        assert shown.count("drive.csi-baremetal.dell.com/") == 6
        run("patch", "clusterconfig", "cluster", "--type=merge", "-p", QUICK)
        run("apply", "-f", str(tmp_path / "volume.yaml"))
        run("wait", "rv/pvc-1", "--for=condition=Ready", patience)
        run("wait", "rv/pvc-1", "--for=jsonpath={.status.publishedOn[0]}=node-1", patience)
        assert quorate("fault", *where, "node-down", "node-2")[0] == 0
        run("wait", "node/node-2", "--for=condition=Ready=Unknown", patience)
        run("wait", "rv/pvc-1", "--for=condition=Resilient=False", patience)
        assert "pvc-1 Primary/" in quorate("lab", "status", *where)[1]
        assert quorate("fault", *where, "node-up", "node-2")[0] == 0
        run("wait", "node/node-2", "--for=condition=Ready", patience)
        run("wait", "rv/pvc-1", "--for=condition=Resilient", patience)
    # Tomorrow the nodes, their drives and the volume are as they were.
    with running(tmp_path, "--nodes", "3", "--zones", "3", "--drives", "2"):
        run("wait", "rv/pvc-1", "--for=jsonpath={.status.publishedOn[0]}=node-1", patience)
        run("wait", "rv/pvc-1", "--for=condition=Ready", patience)
        run("delete", "rv/pvc-1", patience)
        truth = json.loads(quorate("lab", "status", *where, "-o", "json")[1])
        assert [node["replicas"] for node in truth["nodes"]] == [[], [], []]


def test_the_guide_does_what_it_says(tmp_path: Path, kubectl: Path) -> None:
    (script,) = re.findall(r"```sh\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    with running(tmp_path, "--nodes", "1", "--drives", "1"):
        run = Kubectl(kubectl, tmp_path / "kubeconfig")
        run.wait_for_groups(1)
        environment = {
            "PATH": f"{kubectl.parent}:{os.environ['PATH']}",
            "KUBECONFIG": str(tmp_path / "kubeconfig"),
            "HOME": str(tmp_path),  # kubectl keeps a cache there
        }
        done = subprocess.run(
            ["bash", "-eu", "-c", script],
            env=environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE * 4,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert quorate("fault", "--data", str(tmp_path), "reboot", "node-1")[0] == 0
        run("wait", "rvr/try-0", "--for=jsonpath={.status.drbd.status.role}=Primary", f"--timeout={PATIENCE}s")


@contextmanager
def attached(kubeconfig: Path, *arguments: str) -> Iterator[None]:
    """``quorate lab nodes``, until the end of the block."""
    command = [sys.executable, "-m", "quorate", "lab", "nodes", "--kubeconfig", str(kubeconfig), *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        try:
            assert "are attached to" in process.stdout.readline()
            yield
        finally:
            process.terminate()
            assert process.wait(PATIENCE) == 0


def test_simulated_nodes_of_another_process_use_their_own_tokens(tmp_path: Path, kubectl: Path) -> None:
    # Guarded, and so over TLS: kubectl sends no token over plain HTTP.
    (tmp_path / "admin").write_text("0123456789abcdef")
    with running(tmp_path, "--token-file", str(tmp_path / "admin")):
        tokens = AgentTokens(tmp_path / "agents")
        for node in ("far-1", "far-2"):
            tokens.token(node)
        run = Kubectl(kubectl, tmp_path / "kubeconfig")
        arguments = ("--nodes", "2", "--drives", "1", "--prefix", "far", "--credentials", str(tmp_path / "agents"))
        with attached(tmp_path / "kubeconfig", *arguments):
            run.wait_for_groups(2)
            drives = {item["spec"]["NodeId"]: item["metadata"]["name"] for item in run.items("drives")}
        (tmp_path / "as-agent").write_text(quorate("kubeconfig", "--data", str(tmp_path), "--agent", "far-1")[1])
        agent = Kubectl(kubectl, tmp_path / "as-agent")
        moved = ("--type=merge", "-p", '{"spec":{"Slot":"7"}}')
        agent("patch", "drive", drives["far-1"], *moved)
        with pytest.raises(AssertionError, match="the agent of node far-1 may write only objects with its label"):
            agent("patch", "drive", drives["far-2"], *moved)
        with pytest.raises(AssertionError, match="may change nothing of a Drive but its spec and status"):
            agent("annotate", "drive", drives["far-1"], "health=GOOD")
