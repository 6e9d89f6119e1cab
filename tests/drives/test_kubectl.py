"""The seed's annotations, by a real kubectl, on both engines: with the controllers, agents and broker that run there.

``quorate up`` is one process with everything in it. On a real API server the controllers and the simulated nodes are
processes of their own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from quorate.api import all_kinds
from quorate.api.kind import Kind
from tests.support.apiserver import ApiServer, MissingBinaries, binaries
from tests.support.optional import loud_skip

pytestmark = pytest.mark.kubectl

#: Seconds, of a machine that does other things as well.
PATIENCE = 150
NODES = 5
VOLUMES = "volumes.csi-baremetal.dell.com"
STOP = 30.0


def objects(prefix: str) -> str:
    groups = ", ".join(f"{{name: {prefix}-{number}-disk-1}}" for number in range(1, NODES + 1))
    return f"""
apiVersion: storage.deckhouse.io/v1alpha1
kind: ReplicatedStoragePool
metadata: {{name: {prefix}}}
spec: {{type: LVM, lvmVolumeGroups: [{groups}]}}
---
apiVersion: storage.deckhouse.io/v1alpha1
kind: ReplicatedStorageClass
metadata: {{name: {prefix}}}
spec: {{storagePool: {prefix}, replication: ConsistencyAndAvailability, topology: Ignored}}
---
apiVersion: storage.deckhouse.io/v1alpha1
kind: ReplicatedVolume
metadata: {{name: {prefix}-pvc}}
spec: {{size: 128Mi, replicatedStorageClassName: {prefix}}}
"""


class Person:
    """Somebody with kubectl."""

    def __init__(self, program: Path, kubeconfig: Path, home: Path) -> None:
        self._command = [str(program), f"--kubeconfig={kubeconfig}", f"--cache-dir={home / 'cache'}"]
        self._environment = {"HOME": str(home), "PATH": os.environ["PATH"]}

    def says(self, *words: str, stdin: str = "") -> str:
        done = subprocess.run(
            [*self._command, *words],
            input=stdin,
            capture_output=True,
            text=True,
            env=self._environment,
            timeout=PATIENCE + 30,
            check=False,
        )
        assert done.returncode == 0, f"kubectl {' '.join(words)}: {done.stderr}{done.stdout}"
        return done.stdout

    def sees(self, *words: str) -> Any:
        return json.loads(self.says("get", *words, "-o", "json"))

    def waits(self, what: str, *condition: str) -> None:
        self.says("wait", f"--timeout={PATIENCE}s", what, *condition)

    def waits_for_status(self, drive: str, status: str) -> None:
        self.waits(f"drive/{drive}", f"--for=jsonpath={{.status.operationalStatus}}={status}")

    def drive_of(self, replica: str) -> str:
        node = self.sees("rvr", replica)["spec"]["nodeName"]
        drives = self.sees("drives")["items"]
        return next(
            str(each["metadata"]["name"])
            for each in drives
            if each["spec"]["NodeId"] == node and each["spec"]["Slot"] == "1"
        )


@contextmanager
def running(*arguments: str) -> Iterator[str]:
    """A process of ours; the first line that it says."""
    command = [sys.executable, "-m", "quorate", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline()
        finally:
            process.terminate()
            try:
                process.wait(STOP)
            except subprocess.TimeoutExpired:
                process.kill()


@pytest.fixture(scope="module")
def program() -> Path:
    try:
        return binaries() / "kubectl"
    except MissingBinaries as missing:
        loud_skip(f"kubectl: {missing}")


def play(person: Person, prefix: str) -> None:
    person.says("apply", "-f", "-", stdin=objects(prefix))
    person.waits(f"rv/{prefix}-pvc", "--for=condition=Ready")
    drive = person.drive_of(f"{prefix}-pvc-0")

    # A word that means nothing is told of, and changes nothing.
    person.says("annotate", "drive", drive, "health=broken")
    person.waits(f"drive/{drive}", "--for=jsonpath={.status.operationalStatus}=OPERATIVE")

    # The bare key of the seed's last lines.
    person.says("annotate", "--overwrite", "drive", drive, "health=BAD")
    person.waits_for_status(drive, "RELEASED")
    (volume,) = [
        each
        for each in person.sees(VOLUMES, "-n", "quorate-system")["items"]
        if each["metadata"]["name"].startswith(f"{prefix}-pvc-0-")
    ]
    said = volume["metadata"]["annotations"]
    assert said["volumehealth.csi-baremetal/health"] == "bad"
    assert said["volumerelease.csi-baremetal/process"] == "start"
    assert said["volumerelease.csi-baremetal/release"] == "completed"
    assert said["volumerelease.csi-baremetal/recovery"] == "100"
    assert volume["status"]["usage"] == "RELEASED"

    # The user's word, and the broker's.
    person.says("annotate", "drive", drive, "driveremove.csi-baremetal/replacement=ready")
    person.waits_for_status(drive, "REMOVED")
    request = person.sees("permissionrequest", f"drive-{drive}")
    assert request["spec"]["user"] == "quorate-drives"
    assert request["status"]["code"] == "ALLOW"
    assert not [
        each
        for each in person.sees(VOLUMES, "-n", "quorate-system")["items"]
        if each["metadata"]["name"].startswith(f"{prefix}-pvc-")
    ]

    # Another one, which a person takes back.
    drive = person.drive_of(f"{prefix}-pvc-1")
    person.says("annotate", "drive", drive, "driveremove.csi-baremetal/health=SUSPECT")
    person.waits_for_status(drive, "RELEASED")
    person.says(
        "annotate", "--overwrite", "drive", drive, "driveremove.csi-baremetal/health=GOOD", "replacement=restart"
    )
    person.waits_for_status(drive, "OPERATIVE")
    person.waits(f"rv/{prefix}-pvc", "--for=condition=Ready")
    person.says("annotate", "drive", drive, "driveremove.csi-baremetal/health-")
    found = person.sees("drive", drive)
    assert "replacement" not in found["metadata"].get("annotations", {})
    assert found["status"]["health"] in ("GOOD", "UNKNOWN")


def test_annotations_by_kubectl_on_the_embedded_engine(program: Path, tmp_path: Path) -> None:
    data = tmp_path / "up"
    with running("up", "--data", str(data), "--port", "0", "--nodes", str(NODES)) as line:
        assert "ready" in line
        play(Person(program, data / "kubeconfig", tmp_path), "node")


def _cleared(apiserver: ApiServer, ours: list[Kind]) -> None:
    """Leave the server to the next tests as it was."""
    apiserver.clear(*ours)
    for number in range(1, NODES + 1):
        apiserver.request("DELETE", f"/api/v1/nodes/drv-{number}")


@pytest.mark.apiserver
def test_annotations_by_kubectl_on_a_real_api_server(program: Path, apiserver: ApiServer, tmp_path: Path) -> None:
    ours = [kind for kind in all_kinds() if kind.crd and not kind.group.startswith("test.")]
    apiserver.install_crds(ours)
    config = str(apiserver.kubeconfig)
    with ExitStack() as stack:
        stack.callback(_cleared, apiserver, ours)
        stack.enter_context(running("controller", "--kubeconfig", config, "--metrics-port", "0"))
        stack.enter_context(
            running("lab", "nodes", "--kubeconfig", config, "--nodes", str(NODES), "--prefix", "drv", "--drives", "1")
        )
        play(Person(program, apiserver.kubeconfig, tmp_path), "drv")
