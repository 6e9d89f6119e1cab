"""The real API server that other tests rely on does what they rely on."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.apiserver import ApiServer, MissingBinaries, binaries
from tests.support.kinds import Gadget, Widget
from tests.support.optional import loud_skip

pytestmark = pytest.mark.apiserver

WIDGETS = "/apis/test.quorate.io/v1/widgets"
WIDGET = {"apiVersion": "test.quorate.io/v1", "kind": "Widget", "metadata": {"name": "kept"}, "spec": {"owner": "me"}}


def test_installed_crds_are_served_at_once(apiserver: ApiServer) -> None:
    apiserver.install_crds([Widget.KIND, Gadget.KIND])
    apiserver.install_crds([Widget.KIND, Gadget.KIND])
    assert apiserver.request("GET", WIDGETS).code == 200


def test_a_restarted_server_has_the_objects_and_forgot_the_history(apiserver: ApiServer) -> None:
    apiserver.install_crds([Widget.KIND])
    before = apiserver.request("GET", WIDGETS).json()["metadata"]["resourceVersion"]
    apiserver.request("POST", WIDGETS, WIDGET)
    apiserver.compact()
    apiserver.restart()
    assert apiserver.request("GET", f"{WIDGETS}/kept").code == 200
    watch = apiserver.request("GET", f"{WIDGETS}?watch=1&timeoutSeconds=1&resourceVersion={before}")
    assert watch.json()["object"]["code"] == 410
    apiserver.request("DELETE", f"{WIDGETS}/kept")


def test_a_paused_server_answers_nothing_until_it_is_resumed(apiserver: ApiServer) -> None:
    apiserver.pause()
    try:
        with pytest.raises(TimeoutError):
            apiserver.request("GET", "/readyz", timeout=0.3)
    finally:
        apiserver.resume()
    assert apiserver.request("GET", "/readyz").code == 200


def test_the_servers_die_with_a_test_run_that_is_killed(tmp_path: Path) -> None:
    try:
        directory = binaries()
    except MissingBinaries as missing:
        loud_skip(f"kube-apiserver: {missing}")
    program = (
        "import sys, signal\nfrom pathlib import Path\nfrom tests.support.apiserver import ApiServer\n"
        "server = ApiServer(Path(sys.argv[1]), Path(sys.argv[2]))\nserver.start()\n"
        "print(server._etcd.pid, server._server.pid, flush=True)\nsignal.pause()\n"
    )
    command = [sys.executable, "-c", program, str(directory), str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]) as run:
        assert run.stdout is not None
        handles = [os.pidfd_open(int(pid)) for pid in run.stdout.readline().split()]
        assert len(handles) == 2
        run.send_signal(signal.SIGKILL)
    for handle in handles:
        exited, _, _ = select.select([handle], [], [], 10)
        assert exited, "still running after its test run was killed"
        os.close(handle)
