"""``quorate up`` as a process: it says when it is ready, stops when asked, and explains why it cannot start."""

from __future__ import annotations

import json
import socket
import ssl
import stat
import subprocess
import sys
import urllib.error
import urllib.request
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from signal import SIGINT, SIGTERM, Signals
from typing import Any

import pytest
import yaml

PATIENCE = 30.0
NAMESPACES = "/api/v1/namespaces"


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "quorate", "up", "--port", "0", "--nodes", "0", *arguments]


@contextmanager
def running(data: Path, *arguments: str, stop: Signals = SIGTERM) -> Iterator[dict[str, Any]]:
    """A server that stops at the end, and the kubeconfig it wrote."""
    with subprocess.Popen(
        command("--data", str(data), *arguments), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        try:
            assert "ready" in process.stdout.readline()
            yield yaml.safe_load((data / "kubeconfig").read_text())
        finally:
            process.send_signal(stop)
            assert process.wait(PATIENCE) == 0


def refused(*arguments: str) -> tuple[int, str]:
    done = subprocess.run(command(*arguments), capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert "Traceback" not in done.stderr
    return done.returncode, done.stderr


def server(config: dict[str, Any]) -> str:
    found: str = config["clusters"][0]["cluster"]["server"]
    return found


def call(config: dict[str, Any], path: str, body: dict[str, Any] | None = None, token: str | None = None) -> Any:
    authority = config["clusters"][0]["cluster"].get("certificate-authority-data")
    context = ssl.create_default_context(cadata=b64decode(authority).decode()) if authority else None
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
    data = json.dumps(body).encode() if body else None
    request = urllib.request.Request(server(config) + path, data=data, headers=headers)
    with urllib.request.urlopen(request, context=context, timeout=PATIENCE) as answer:
        return json.load(answer)


@pytest.mark.parametrize("stop", [SIGTERM, SIGINT])
def test_what_was_written_is_there_after_a_restart(tmp_path: Path, stop: Signals) -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kept"}}
    with running(tmp_path, stop=stop) as config:
        assert server(config).startswith("http://127.0.0.1:")
        uid = call(config, NAMESPACES, namespace)["metadata"]["uid"]
    with running(tmp_path) as config:
        assert call(config, f"{NAMESPACES}/kept")["metadata"]["uid"] == uid


def test_only_the_owner_may_read_what_it_writes(tmp_path: Path) -> None:
    data = tmp_path / "made"
    with running(data):
        assert stat.S_IMODE(data.stat().st_mode) == 0o700
        assert stat.S_IMODE((data / "kubeconfig").stat().st_mode) == 0o600


def test_secrets_are_safe_in_a_directory_that_others_may_read(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    with running(tmp_path):
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir() if path.is_file()}
    assert "quorate.db" in modes
    assert set(modes.values()) == {0o600}


def test_beyond_loopback_it_takes_tls_and_a_token(tmp_path: Path) -> None:
    with running(tmp_path, "--listen", "0.0.0.0") as config:
        assert server(config).startswith("https://127.0.0.1:")
        token = config["users"][0]["user"]["token"]
        assert token == (tmp_path / "token").read_text()
        assert call(config, NAMESPACES, token=token)["kind"] == "NamespaceList"
        for wrong in (None, token[:-1], token + "x"):
            with pytest.raises(urllib.error.HTTPError) as error:
                call(config, NAMESPACES, token=wrong)
            error.value.close()
            assert error.value.code == 401


def test_a_token_of_ones_own_makes_a_loopback_server_secure_too(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("0123456789abcdef\n")
    with running(tmp_path / "data", "--token-file", str(tmp_path / "mine")) as config:
        assert server(config).startswith("https://")
        assert call(config, NAMESPACES, token="0123456789abcdef")["kind"] == "NamespaceList"


def test_logs_are_json_unless_a_person_watches(tmp_path: Path) -> None:
    with subprocess.Popen(
        command("--data", str(tmp_path)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        try:
            assert json.loads(process.stderr.readline())["event"].startswith("open: every user")
        finally:
            process.terminate()


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        code, said = refused("--data", str(tmp_path), "--port", str(port))
    assert code == 7
    assert f"cannot listen on 127.0.0.1 port {port}" in said


def test_an_address_that_is_not_ours(tmp_path: Path) -> None:
    code, said = refused("--data", str(tmp_path), "--listen", "192.0.2.1")
    assert code == 7
    assert "cannot listen on 192.0.2.1" in said


def test_a_data_directory_that_is_in_use(tmp_path: Path) -> None:
    with running(tmp_path):
        code, said = refused("--data", str(tmp_path))
    assert code == 4
    assert str(tmp_path) in said


def test_a_damaged_file_is_left_as_it_is(tmp_path: Path) -> None:
    with running(tmp_path):
        pass
    database = tmp_path / "quorate.db"
    damaged = b"rubbish" * 1000
    database.write_bytes(damaged)
    code, said = refused("--data", str(tmp_path))
    assert code == 5
    assert str(database) in said
    assert database.read_bytes() == damaged


def test_a_lost_database_is_not_replaced_by_an_empty_one_unless_somebody_says_so(tmp_path: Path) -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kept"}}
    with running(tmp_path) as config:
        last = int(call(config, NAMESPACES, namespace)["metadata"]["resourceVersion"])
    (tmp_path / "quorate.db").unlink()
    code, said = refused("--data", str(tmp_path))
    assert code == 5
    assert "quorate.db is missing, and changes up to version" in said
    assert "--accept-loss" in said
    assert not (tmp_path / "quorate.db").exists()
    with running(tmp_path, "--accept-loss") as config:
        assert int(call(config, f"{NAMESPACES}/default")["metadata"]["resourceVersion"]) > last
    with running(tmp_path):
        pass


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--data", "/proc/nothing"], "the data directory /proc/nothing cannot be made"),
        (["--data", "{dir}", "--token-file", "{dir}/none"], "none cannot be read: No such file"),
        (["--data", "{dir}", "--token-file", "{dir}/short"], "must be at least 16 printable"),
        (["--data", "{dir}", "--listen", "0.0.0.0", "--tls-key", "x"], "must be given together"),
        (["--data", "{dir}", "--listen", "0.0.0.0", "--tls-key", "x", "--tls-certificate", "y"], "cannot use the cert"),
        (["--data", "{dir}", "--token-file", "{dir}/binary"], "binary is not text"),
        (["--data", "{dir}", "--tls-key", "x"], "must be given together"),
        (["--data", "{dir}", "--tls-key", "x", "--tls-certificate", "y"], "cannot use the cert"),
        (["--config", "{dir}/none.yaml"], "none.yaml: cannot be read"),
    ],
)
def test_a_setting_that_cannot_be_used(tmp_path: Path, arguments: list[str], problem: str) -> None:
    (tmp_path / "short").write_text("secret")
    (tmp_path / "binary").write_bytes(b"\xff" * 32)
    code, said = refused(*(argument.replace("{dir}", str(tmp_path)) for argument in arguments))
    assert code == 3
    assert problem in said
