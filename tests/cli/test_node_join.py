"""``quorate node invite`` and ``join``: from a server on a real address to an agent that is held to its own node."""

from __future__ import annotations

import json
import os
import shutil
import ssl
import stat
import subprocess
import sys
import time
import urllib.error
import urllib.request
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import yaml

from quorate.server.kubernetes.tls import ensure_certificates

#: An address of this machine that nobody takes for its first: what a real address is for the server's rules, it must be
#: listened on, be in the certificate and in the printed command.
ADDRESS = "127.0.0.2"
PATIENCE = 60.0


def quorate(*arguments: str, text: str | None = None) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "quorate", *arguments],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        input=text,
        stdin=subprocess.DEVNULL if text is None else None,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done


@contextmanager
def up(data: Path, *arguments: str) -> Iterator[Path]:
    """A server with a token, over TLS; what it logs."""
    token = data.parent / "admin-token"
    token.write_text("0123456789abcdef0123456789abcdef")
    command = [sys.executable, "-m", "quorate", "up", "--data", str(data), "--port", "0", "--nodes", "0"]
    command += ["--listen", ADDRESS, "--token-file", str(token), *arguments]
    log = data.parent / "up.log"
    with (
        log.open("ab") as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as process,
    ):
        assert process.stdout is not None
        try:
            assert "ready" in process.stdout.readline()
            yield log
        finally:
            process.terminate()
            assert process.wait(PATIENCE) == 0


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Path]]:
    data = tmp_path_factory.mktemp("server") / "data"
    with up(data) as log:
        yield data, log


def invited(data: Path, node: str, *arguments: str) -> dict[str, Any]:
    done = quorate("node", "invite", node, "--data", str(data), "-o", "json", *arguments)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def join(invitation: dict[str, Any], directory: Path, *more: str) -> subprocess.CompletedProcess[str]:
    return quorate(*invitation["command"][1:], "--directory", str(directory), "--no-start", *more)


def asked(kubeconfig: Path, path: str, method: str = "GET", body: Any = None) -> int:
    """What the server answers to whoever has this kubeconfig."""
    config = yaml.safe_load(kubeconfig.read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    context = ssl.create_default_context(cadata=b64decode(cluster["certificate-authority-data"]).decode())
    headers = {"Authorization": f"Bearer {user['token']}", "Content-Type": "application/json"}
    data = json.dumps(body).encode() if body is not None else None
    request = urllib.request.Request(cluster["server"] + path, data=data, headers=headers, method=method)
    try:
        with urllib.request.urlopen(request, context=context, timeout=PATIENCE) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code


def test_the_printed_command_makes_a_node_with_a_credential_of_its_own(
    place: tuple[Path, Path], tmp_path: Path
) -> None:
    data, log = place
    done = quorate("node", "invite", "n1", "--zone", "z1", "--data", str(data))
    assert done.returncode == 0, done.stderr
    (command,) = (line.split() for line in done.stdout.splitlines() if line.startswith("    quorate node join "))
    assert command[3].startswith(f"https://{ADDRESS}:")
    joined = quorate(*command[1:], "--directory", str(tmp_path), "--no-start")
    assert joined.returncode == 0, joined.stderr
    assert "node n1, in zone z1, at 127.0.0.1" in joined.stdout.replace(ADDRESS, "127.0.0.1")
    assert "No other machine reaches it there" in joined.stderr, "by the server's own machine it is a loopback address"
    kubeconfig, settings = tmp_path / "agent.kubeconfig", tmp_path / "agent.yaml"
    assert {stat.S_IMODE(path.stat().st_mode) for path in (kubeconfig, settings)} == {0o600}
    found = yaml.safe_load(settings.read_text())
    assert found["nodeName"] == "n1"
    assert (found["zone"], found["registerNode"], found["kubeconfig"]) == ("z1", True, str(kubeconfig))

    def lease(node: str) -> int:
        about = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
        body = {**about, "metadata": {"name": f"quorate-agent-{node}"}, "spec": {"holderIdentity": "me"}}
        return asked(kubeconfig, "/apis/coordination.k8s.io/v1/namespaces/quorate-system/leases", "POST", body)

    assert asked(kubeconfig, "/api/v1/nodes") == 200
    assert (lease("n1"), lease("n2")) == (201, 403), "its own node's objects, and nobody else's"
    assert asked(kubeconfig, "/api/v1/secrets") == 403
    assert asked(kubeconfig, "/join/v1/invitations", "POST", {"node": "n2"}) == 403, "an agent invites nobody"
    assert asked(kubeconfig, "/join/v1/nodes/n1", "DELETE") == 403

    # Neither the token nor the credential is anywhere on the server in a form that could be used.
    credential = yaml.safe_load(kubeconfig.read_text())["users"][0]["user"]["token"]
    token = command[command.index("--token") + 1]
    kept = [path for path in data.rglob("*") if path.is_file()]
    assert data / "agents" / "n1" in kept
    for path in (*kept, log):
        assert token.encode() not in path.read_bytes(), path
        assert credential.encode() not in path.read_bytes(), path
    assert "nobody but itself has its token" in quorate("kubeconfig", "--data", str(data), "--agent", "n1").stderr


def test_an_agent_that_joined_registers_its_node_with_zone_and_address(
    place: tuple[Path, Path], tmp_path: Path
) -> None:
    data, _ = place
    assert join(invited(data, "n7", "--zone", "z7"), tmp_path / "etc").returncode == 0
    command = [sys.executable, "-m", "quorate", "agent", "--config", str(tmp_path / "etc" / "agent.yaml")]
    command += ["--state-dir", str(tmp_path / "state"), "--drbd-config-dir", str(tmp_path / "drbd.d")]
    command += ["--metrics-port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as agent:
        try:
            deadline = time.monotonic() + PATIENCE
            while asked(data / "kubeconfig", "/api/v1/nodes/n7") != 200:
                assert time.monotonic() < deadline, "the node was never registered"
                time.sleep(0.2)
            # Taken back while it works: it is refused from that moment on.
            assert asked(tmp_path / "etc" / "agent.kubeconfig", "/api/v1/nodes") == 200
            assert "void" in quorate("node", "revoke", "n7", "--data", str(data)).stdout
            assert asked(tmp_path / "etc" / "agent.kubeconfig", "/api/v1/nodes") == 401
        finally:
            agent.terminate()
            agent.wait(PATIENCE)
    assert "is forgotten" in quorate("node", "forget", "n7", "--yes", "--data", str(data)).stdout
    assert asked(data / "kubeconfig", "/api/v1/nodes/n7") == 404
    assert "There is no Node n7" in quorate("node", "forget", "n7", "--yes", "--data", str(data)).stdout


def test_a_token_is_good_once_and_the_second_learns_of_the_first(place: tuple[Path, Path], tmp_path: Path) -> None:
    data, _ = place
    invitation = invited(data, "n3")
    assert join(invitation, tmp_path / "first").returncode == 0
    second = join(invitation, tmp_path / "second")
    assert second.returncode == 1
    assert "used already" in second.stderr
    assert "quorate node invite n3" in second.stderr
    assert not (tmp_path / "second" / "agent.kubeconfig").exists()
    assert asked(tmp_path / "first" / "agent.kubeconfig", "/api/v1/nodes") == 200, "the first is not harmed"


def test_a_machine_that_was_installed_anew_joins_again_and_the_old_one_is_out(
    place: tuple[Path, Path], tmp_path: Path
) -> None:
    data, _ = place
    assert join(invited(data, "n4"), tmp_path / "old").returncode == 0
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "agent.yaml").write_text("version: 1\nmetricsPort: 9999\nzone: old\n")
    again = invited(data, "n4", "--zone", "z4")
    assert again["hasCredential"]
    assert asked(tmp_path / "old" / "agent.kubeconfig", "/api/v1/nodes") == 200, "an invitation alone takes nothing"
    assert join(again, tmp_path / "new").returncode == 0
    assert asked(tmp_path / "old" / "agent.kubeconfig", "/api/v1/nodes") == 401
    assert asked(tmp_path / "new" / "agent.kubeconfig", "/api/v1/nodes") == 200
    settings = yaml.safe_load((tmp_path / "new" / "agent.yaml").read_text())
    assert (settings["metricsPort"], settings["zone"]) == (9999, "z4"), "what somebody else has set stays"


def test_what_is_wrong_on_the_machine_is_said_before_the_token_is_used_up(
    place: tuple[Path, Path], tmp_path: Path
) -> None:
    data, _ = place
    invitation, settings = invited(data, "n12"), tmp_path / "agent.yaml"
    for content, problem in (
        ("a: [", "cannot be read"),
        ("- a", "has no settings in it"),
        ("nodeName: n1\n", "this machine is node n1, and the token is for n12"),
    ):
        settings.write_text(content)
        refused = join(invitation, tmp_path)
        assert refused.returncode != 0
        assert problem in refused.stderr
        assert settings.read_text() == content
        assert not (tmp_path / "agent.kubeconfig").exists()
    settings.write_text("nodeName: n12\nzone: z9\n")
    joined = join(invitation, tmp_path)
    assert joined.returncode == 0, joined.stderr
    assert "node n12, in zone z9" in joined.stdout, "what stays is told as it is"


def test_a_newer_invitation_voids_the_one_before(place: tuple[Path, Path], tmp_path: Path) -> None:
    data, _ = place
    before, after = invited(data, "n5"), invited(data, "n5")
    refused = join(before, tmp_path)
    assert refused.returncode == 1
    assert "not known here" in refused.stderr
    assert join(after, tmp_path).returncode == 0


def test_the_token_is_not_sent_to_a_server_that_is_not_the_one_that_was_meant(
    place: tuple[Path, Path], tmp_path: Path
) -> None:
    data, _ = place
    invitation = invited(data, "n6")
    wrong = dict(invitation)
    wrong["command"] = [*invitation["command"][:-1], "sha256:" + "0" * 64]
    refused = join(wrong, tmp_path)
    assert refused.returncode == 3
    assert "The token was not sent" in refused.stderr
    unasked = dict(invitation)
    unasked["command"] = invitation["command"][: invitation["command"].index("--fingerprint")]
    shown = join(unasked, tmp_path)
    assert shown.returncode == 3
    assert invitation["fingerprint"] in shown.stderr, "it is shown, and nobody is there to say yes"
    assert join(invitation, tmp_path).returncode == 0, "so it was not used up"


def test_an_authority_that_somebody_between_added_is_not_trusted(place: tuple[Path, Path], tmp_path: Path) -> None:
    data, _ = place
    invitation = invited(data, "n11")
    real = (data / "tls" / "ca.crt").read_bytes()
    theirs = ensure_certificates(tmp_path / "theirs", ("localhost", ADDRESS), datetime.now(UTC))
    assert theirs.authority is not None
    added = theirs.authority.read_bytes().replace(b"CERTIFICATE", b"X509 CERTIFICATE")
    sent: list[bytes] = []

    class Between(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(real + added)

        def do_POST(self) -> None:
            sent.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_error(500)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer((ADDRESS, 0), Between) as server:
        server.socket = theirs.context().wrap_socket(server.socket, server_side=True)
        Thread(target=server.serve_forever, daemon=True).start()
        invitation["command"][3] = f"https://{ADDRESS}:{server.server_port}"
        refused = join(invitation, tmp_path / "etc")
        server.shutdown()
    assert not sent, "they have the token"
    assert refused.returncode != 0
    assert "The token was not sent" in refused.stderr


def test_a_token_comes_from_standard_input_and_is_in_no_process_list(place: tuple[Path, Path], tmp_path: Path) -> None:
    data, _ = place
    invitation = invited(data, "n8")
    url, fingerprint = invitation["command"][3], invitation["fingerprint"]
    arguments = ["node", "join", url, "--fingerprint", fingerprint, "--directory", str(tmp_path), "--no-start"]
    assert quorate(*arguments, "--token-file", "-", text=invitation["token"] + "\n").returncode == 0
    assert quorate(*arguments).returncode == 3


def test_guesses_are_slowed_down_and_a_good_token_of_another_peer_is_not(tmp_path: Path) -> None:
    with up(tmp_path / "data") as log:
        data = tmp_path / "data"
        good = invited(data, "n1")
        guess = {"token": "x" * 32}
        answers = [asked(data / "kubeconfig", "/join/v1/nodes", "POST", guess) for _ in range(15)]
        assert answers == [401] * 10 + [429] * 5
        refused = join(good, tmp_path / "etc")
        # This machine's own attempts are one peer's: it has to wait too, and its token is still good.
        assert "too many attempts" in refused.stderr
        assert not (tmp_path / "etc" / "agent.kubeconfig").exists()
        assert log.read_text().count("an attempt to join was refused") == 10


def test_without_encryption_nothing_is_sent_to_another_machine(tmp_path: Path) -> None:
    refused = quorate("node", "join", "http://192.0.2.1:7480", "--token", "x", "--directory", str(tmp_path))
    assert refused.returncode == 3
    assert "in the clear" in refused.stderr


def test_whoever_cannot_write_the_files_is_told_before_anything_is_sent(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    directory = str(tmp_path / "file" / "etc")
    refused = quorate("node", "join", "https://192.0.2.1:1", "--token", "x", "--directory", directory)
    assert refused.returncode == 3
    assert "Are you root?" in refused.stderr


def test_a_server_on_every_address_has_them_in_its_certificate(tmp_path: Path) -> None:
    """Reached from elsewhere by an address that it was not told of; only the token and the certificate count."""
    with up(tmp_path / "data", "--listen", "0.0.0.0", "--advertise", "storage.example,127.0.0.3"):
        invitation = invited(tmp_path / "data", "n1")
        assert invitation["urls"][0].startswith("https://storage.example:")
        assert invitation["urls"][1].startswith("https://127.0.0.3:")
        for number, url in enumerate(invitation["urls"][1:]):
            invitation = invited(tmp_path / "data", "n1", "--server", url)
            done = join(invitation, tmp_path / str(number))
            assert done.returncode == 0, (url, done.stderr)
            assert asked(tmp_path / str(number) / "agent.kubeconfig", "/api/v1/nodes") == 200


def _ip(*words: str) -> bool:
    return subprocess.run(["ip", *words], capture_output=True, check=False).returncode == 0


@pytest.fixture
def elsewhere() -> Iterator[tuple[str, str]]:
    """A network namespace that reaches this machine by one address only: its name, and that address."""
    name, ours, theirs = f"quorate-{os.getpid()}", f"qj{os.getpid() % 10000}a", f"qj{os.getpid() % 10000}b"
    if shutil.which("ip") is None or not _ip("netns", "add", name):
        pytest.skip("NOT TRIED: no network namespace can be made here (root and iproute2 are needed)")
    try:
        made = _ip("link", "add", ours, "type", "veth", "peer", "name", theirs, "netns", name)
        if not made:
            pytest.skip("NOT TRIED: there are no veth devices here")
        assert _ip("addr", "add", "10.231.77.1/30", "dev", ours)
        assert _ip("link", "set", ours, "up")
        assert _ip("-n", name, "addr", "add", "10.231.77.2/30", "dev", theirs)
        assert _ip("-n", name, "link", "set", theirs, "up")
        assert _ip("-n", name, "link", "set", "lo", "up")
        yield name, "10.231.77.1"
    finally:
        _ip("link", "del", ours)
        _ip("netns", "del", name)


def test_a_machine_elsewhere_joins_and_its_agent_registers_it(elsewhere: tuple[str, str], tmp_path: Path) -> None:
    """Not by loopback, from another network: what was refused there (403) is a matter of the token alone."""
    namespace, address = elsewhere
    data, etc = tmp_path / "data", tmp_path / "etc"
    there = ["ip", "netns", "exec", namespace, sys.executable, "-m", "quorate"]
    with up(data, "--listen", "0.0.0.0"):
        (url,) = (one for one in invited(data, "n1")["urls"] if f"//{address}:" in one)
        command = invited(data, "n1", "--zone", "z1", "--server", url)["command"]
        joined = subprocess.run(
            [*there, *command[1:], "--directory", str(etc), "--no-start"], capture_output=True, text=True, check=False
        )
        assert joined.returncode == 0, joined.stderr
        assert "at 10.231.77.2" in joined.stdout
        state = ["--state-dir", str(tmp_path / "state"), "--drbd-config-dir", str(tmp_path / "drbd.d")]
        agent = [*there, "agent", "--config", str(etc / "agent.yaml"), "--metrics-port", "0", *state]
        with subprocess.Popen(agent, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            try:
                deadline = time.monotonic() + PATIENCE
                while asked(data / "kubeconfig", "/api/v1/nodes/n1") != 200:
                    assert time.monotonic() < deadline, "the node was never registered"
                    time.sleep(0.2)
            finally:
                process.terminate()
                process.wait(PATIENCE)
