"""``quorate broker`` as a process: it says when it is ready, stops when asked, and explains why it cannot start."""

from __future__ import annotations

import json
import re
import socket
import stat
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from signal import SIGINT, SIGKILL, SIGTERM, Signals
from typing import Any, cast

import grpc
import pytest

from quorate.server.broker.proto import cms_pb2, cms_pb2_grpc

PATIENCE = 30.0
CLUSTER = {
    "nodes": [{"id": node, "host": f"h{node}"} for node in (1, 2)],
    "config": {"clusterLimits": {"disabledNodesLimit": 1, "disabledNodesRatioLimit": 0}},
}


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    path = tmp_path / "cluster.yaml"
    path.write_text(json.dumps(CLUSTER))
    return path


def command(cluster: Path, *arguments: str) -> list[str]:
    ports = ["--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0"]
    return [sys.executable, "-m", "quorate", "broker", "--cluster", str(cluster), *ports, *arguments]


@contextmanager
def running(cluster: Path, *arguments: str, stop: Signals = SIGTERM) -> Iterator[tuple[str, str]]:
    """Where it serves HTTP and gRPC; it is stopped at the end."""
    with subprocess.Popen(
        command(cluster, *arguments), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        try:
            ready = re.search(r"ready: HTTP on (http://\S+), gRPC on (\S+)", process.stdout.readline())
            assert ready is not None
            yield ready[1], ready[2]
        finally:
            process.send_signal(stop)
            assert process.wait(PATIENCE) == (-SIGKILL if stop is SIGKILL else 0)


def post(url: str, path: str, body: Any) -> Any:
    request = urllib.request.Request(url + path, data=json.dumps(body).encode(), method="POST")
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        return json.load(answer)


def shutdown(url: str, host: str) -> Any:
    action = {"Type": "SHUTDOWN_HOST", "Host": host, "Duration": 600_000_000}
    return post(url, "/cms/api/permissionrequest", {"User": "u", "Actions": [action]})


def permissions(url: str) -> list[str]:
    answer = post(url, "/cms/api/managepermissionrequest", {"User": "u", "Command": "LIST"})
    return [permission["Id"] for permission in answer.get("Permissions", [])]


@pytest.mark.parametrize("stop", [SIGTERM, SIGINT, SIGKILL])
def test_what_was_granted_is_granted_after_a_restart(cluster: Path, tmp_path: Path, stop: Signals) -> None:
    state = ["--state", str(tmp_path / "state")]
    with running(cluster, *state, stop=stop) as (url, _):
        assert shutdown(url, "h1")["Status"]["Code"] == "ALLOW"
    with running(cluster, *state) as (url, _):
        assert permissions(url) == ["u-p-1"]
        assert shutdown(url, "h2")["Status"]["Code"] == "DISALLOW_TEMP"


def test_both_interfaces_are_one_broker(cluster: Path) -> None:
    with running(cluster) as (url, address), grpc.insecure_channel(address) as channel:
        shutdown(url, "h1")
        asked = cms_pb2.TManagePermissionRequest(User="u", Command=cms_pb2.TManagePermissionRequest.LIST)
        stub = cast("Any", cms_pb2_grpc).CmsStub(channel)
        answer = stub.Call(cms_pb2.TCmsRequest(ManagePermissionRequest=asked), timeout=PATIENCE)
    assert [permission.Id for permission in answer.ManagePermissionResponse.Permissions] == ["u-p-1"]


def test_it_stops_at_once_although_somebody_listens(cluster: Path) -> None:
    with running(cluster) as (url, address), grpc.insecure_channel(address) as channel:
        events = urllib.request.urlopen(f"{url}/cms/api/events", timeout=PATIENCE)
        assert events.readline() == b": listening\n"
        changes = cast("Any", cms_pb2_grpc).CmsStub(channel).Watch(cms_pb2.TWatchRequest())
        changes.initial_metadata()
        begun = time.monotonic()
    assert time.monotonic() - begun < 4  # sooner than it would give to requests under way
    events.close()


def test_it_says_that_it_is_open(cluster: Path) -> None:
    with subprocess.Popen(command(cluster), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        try:
            lines = [process.stdout.readline() for _ in range(3)]
        finally:
            process.terminate()
    assert "ready" in lines[0]
    assert lines[1].startswith("open: every user")
    assert "--state" in lines[2]


def test_only_the_owner_may_read_what_it_keeps(cluster: Path, tmp_path: Path) -> None:
    with running(cluster, "--state", str(tmp_path / "kept" / "state")):
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "kept").iterdir()}
    assert "state" in modes
    assert set(modes.values()) == {0o600}


def refused(cluster: Path, *arguments: str) -> tuple[int, str]:
    done = subprocess.run(command(cluster, *arguments), capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert "Traceback" not in done.stderr
    return done.returncode, done.stderr


#: Starting Python for each of them would take longer than all of them together.
ONE_AFTER_ANOTHER = """
import contextlib, io, json, sys
from quorate.cli import main
for arguments in json.loads(sys.argv[1]):
    said, sys.argv = io.StringIO(), ["quorate", *arguments]
    with contextlib.redirect_stderr(said):
        try:
            main()
        except SystemExit as end:
            print(json.dumps([end.code, said.getvalue()]))
"""
UNUSABLE = [
    (["--http", "127.0.0.1"], "'127.0.0.1' is not an address: expected HOST:PORT"),
    (["--http", "0.0.0.0:0"], "0.0.0.0:0 can be reached from other machines: say who may ask"),
    (["--grpc", "[::]:0"], "[::]:0 can be reached from other machines"),
    (["--users", "{dir}/none"], "none cannot be read"),
    (["--tls-key", "x"], "must be given together"),
    (["--tls-key", "x", "--tls-certificate", "y"], "cannot use the certificate y with the key x"),
    (["--state", "{dir}"], "is a directory"),
    (["--cluster", "{dir}/wrong.yaml"], "wrong.yaml: nodes[0].state: 'AWAY' is not one of"),
    (["--cluster", "{dir}/none.yaml"], "none.yaml: cannot be read"),
]


def test_settings_that_cannot_be_used_are_refused_by_name(cluster: Path, tmp_path: Path) -> None:
    (tmp_path / "wrong.yaml").write_text("nodes: [{id: 1, host: h1, state: AWAY}]")
    tried = [
        command(cluster, *(argument.replace("{dir}", str(tmp_path)) for argument in arguments))[3:]
        for arguments, _ in UNUSABLE
    ]
    done = subprocess.run(
        [sys.executable, "-c", ONE_AFTER_ANOTHER, json.dumps(tried)],
        stdout=subprocess.PIPE,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [code for code, _ in found] == [3] * len(UNUSABLE)
    for (_, said), (_, problem) in zip(found, UNUSABLE, strict=True):
        assert problem in said


@pytest.mark.parametrize("interface", ["--http", "--grpc"])
def test_a_port_that_is_taken(cluster: Path, interface: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        code, said = refused(cluster, interface, f"127.0.0.1:{port}")
    assert code == 7
    assert f"cannot listen on 127.0.0.1 port {port}" in said


def test_a_state_file_that_is_in_use(cluster: Path, tmp_path: Path) -> None:
    state = ["--state", str(tmp_path / "state")]
    with running(cluster, *state):
        code, said = refused(cluster, *state)
    assert code == 4
    assert str(tmp_path / "state") in said
