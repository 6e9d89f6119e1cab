"""A real kube-apiserver with its etcd, on loopback, for as long as the tests run.

The binaries come from ``tools/apiserver/fetch``. Everything lives in one temporary directory: etcd's data (without
fsync: it is thrown away), certificates of a throw-away authority, logs. Both processes carry a parent-death signal,
so they are gone also when pytest is killed with -9.
"""

from __future__ import annotations

import http.client
import json
import secrets
import signal
import socket
import ssl
import subprocess
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quorate.api.crd import custom_resource_definition
from quorate.api.kind import Kind
from tests.support.certificates import Authority

FETCH = Path(__file__).parents[2] / "tools" / "apiserver" / "fetch"
START_TIMEOUT = 60.0
STOP_TIMEOUT = 10.0


class MissingBinaries(Exception):
    """There is no kube-apiserver or etcd to start."""


class StartFailed(Exception):
    """The server did not become ready; the message ends with its log."""


@dataclass(frozen=True)
class Answer:
    """What the server said."""

    code: int
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


def binaries() -> Path:
    """The directory with kube-apiserver, etcd and kubectl; never builds them: that takes minutes."""
    found = subprocess.run([FETCH, "--no-build"], capture_output=True, text=True, check=False)
    if found.returncode != 0:
        raise MissingBinaries(found.stderr.strip())
    return Path(found.stdout.strip())


@contextmanager
def running_apiserver(directory: Path) -> Iterator[ApiServer]:
    """Start one and stop it at the end, whatever happens."""
    server = ApiServer(binaries(), directory)
    try:
        server.start()
        yield server
    finally:
        server.stop()


class ApiServer:
    """One kube-apiserver and one etcd. Admin access by token, by client certificate, and as a kubeconfig."""

    def __init__(self, binaries: Path, directory: Path) -> None:
        self.kubectl = binaries / "kubectl"
        self._binaries = binaries
        self._directory = directory
        self.authority = Authority(directory)
        self.ca_file = self.authority.certificate
        self._serving = self.authority.server("serving", "127.0.0.1", "localhost", "apiserver.test")
        client = self.authority.client("certified-admin", "system:masters")
        self.client_certificate, self.client_key = client.certificate, client.key
        self._accounts_key = self.authority.bare_key("service-accounts")
        self.token = secrets.token_hex(16)
        (directory / "tokens.csv").write_text(f'{self.token},admin,1,"system:masters"\n')
        self.kubeconfig = directory / "kubeconfig"
        self.url = self.etcd_url = ""
        self._tls = ssl.create_default_context(cafile=str(self.ca_file))
        self._served: set[str] = set()
        self._etcd: subprocess.Popen[bytes] | None = None
        self._server: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Both processes, ready to serve; bounded."""
        etcd_port, peer_port, port = _free_ports(3)
        self.url, self.etcd_url = f"https://127.0.0.1:{port}", f"http://127.0.0.1:{etcd_port}"
        peer_url = f"http://127.0.0.1:{peer_port}"
        self._etcd = self._spawn(
            "etcd",
            f"--data-dir={self._directory / 'etcd'}",
            f"--listen-client-urls={self.etcd_url}",
            f"--advertise-client-urls={self.etcd_url}",
            f"--listen-peer-urls={peer_url}",
            f"--initial-advertise-peer-urls={peer_url}",
            f"--initial-cluster=default={peer_url}",
            "--unsafe-no-fsync",
            "--log-level=warn",
        )
        self._start_server()
        self._write_kubeconfig()

    def stop(self) -> None:
        """Kill both: their data is worth nothing."""
        for process in filter(None, (self._server, self._etcd)):
            process.kill()
            process.wait(STOP_TIMEOUT)
        self._server = self._etcd = None

    def pause(self) -> None:
        """Stop answering while connections stay open, as a hung machine does."""
        self._running_server().send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Undo :meth:`pause`."""
        self._running_server().send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """End the API server at once; etcd stays."""
        self._running_server().kill()
        self._running_server().wait(STOP_TIMEOUT)

    def restart(self) -> None:
        """A new API server process on the same address and data. It remembers no watch history from before."""
        self.kill()
        self._start_server()
        self._wait_for_apis()

    def compact(self) -> None:
        """Throw away all history in etcd, as happens every few minutes in a real cluster."""
        head = self._etcd_call("/v3/kv/range", {"key": "AA=="})["header"]["revision"]
        self._etcd_call("/v3/kv/compaction", {"revision": head, "physical": True})

    def request(
        self, method: str, path: str, body: object = None, content_type: str = "application/json", timeout: float = 30.0
    ) -> Answer:
        """One request as the administrator, without any client of ours in between."""
        connection = http.client.HTTPSConnection(self.url.removeprefix("https://"), timeout=timeout, context=self._tls)
        headers = {"Authorization": f"Bearer {self.token}", "Accept": "application/json", "Content-Type": content_type}
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            response = connection.getresponse()
            return Answer(response.status, response.read())
        finally:
            connection.close()

    def install_crds(self, kinds: Iterable[Kind]) -> None:
        """Create the CRDs that are missing, and wait until the server serves them."""
        definitions = [custom_resource_definition(kind) for kind in kinds]
        base = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        for definition in definitions:
            answer = self.request("POST", base, definition)
            if answer.code not in (201, 409):
                raise StartFailed(f"CRD {definition['metadata']['name']}: {answer.body.decode()}")
        for definition in definitions:
            spec, name = definition["spec"], definition["metadata"]["name"]
            self._wait(f"CRD {name}", lambda n=name: _established(self.request("GET", f"{base}/{n}")))
            self._served.add(f"/apis/{spec['group']}/{spec['versions'][0]['name']}/{spec['names']['plural']}?limit=1")
        self._wait_for_apis()

    def clear(self, *kinds: Kind) -> None:
        """Remove every object of these kinds, finalizers or not."""
        for kind in kinds:
            base = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
            held: dict[str, list[str]] = {}
            for item in self.request("GET", f"{base}/{kind.plural}").json()["items"]:
                metadata = item["metadata"]
                place = f"namespaces/{metadata['namespace']}/" if kind.namespaced else ""
                names = held.setdefault(f"{base}/{place}{kind.plural}", [])
                if metadata.get("finalizers"):
                    names.append(metadata["name"])
            for collection, names in held.items():
                for name in names:
                    freed = {"metadata": {"finalizers": None}}
                    self.request("PATCH", f"{collection}/{name}", freed, "application/merge-patch+json")
                self.request("DELETE", collection)

    def _wait_for_apis(self) -> None:
        """A CRD is served a moment after it is established, or after a new process has found it."""
        for path in sorted(self._served):
            self._wait(path, lambda path=path: self.request("GET", path).code == 200)

    def _start_server(self) -> None:
        key_file = self._accounts_key
        self._server = self._spawn(
            "kube-apiserver",
            f"--etcd-servers={self.etcd_url}",
            "--bind-address=127.0.0.1",
            f"--secure-port={self.url.rpartition(':')[2]}",
            f"--tls-cert-file={self._serving.certificate}",
            f"--tls-private-key-file={self._serving.key}",
            f"--client-ca-file={self.ca_file}",
            f"--token-auth-file={self._directory / 'tokens.csv'}",
            "--authorization-mode=RBAC",
            f"--service-account-key-file={key_file}",
            f"--service-account-signing-key-file={key_file}",
            "--service-account-issuer=https://apiserver.test",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--endpoint-reconciler-type=none",
            # Nobody here makes the accounts that it asks for.
            "--disable-admission-plugins=ServiceAccount",
            "--enable-priority-and-fairness=false",
        )
        self._wait("kube-apiserver", lambda: self.request("GET", "/readyz").code == 200)
        # Ready comes a moment before the first namespace does.
        self._wait("namespace default", lambda: self.request("GET", "/api/v1/namespaces/default").code == 200)

    def _spawn(self, program: str, *arguments: str) -> subprocess.Popen[bytes]:
        with (self._directory / f"{program}.log").open("ab") as log:
            command = ["setpriv", "--pdeathsig", "KILL", str(self._binaries / program), *arguments]
            return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def _wait(self, what: str, ready: Any) -> None:
        deadline = time.monotonic() + START_TIMEOUT
        while time.monotonic() < deadline:
            for program, process in (("etcd", self._etcd), ("kube-apiserver", self._server)):
                if process is not None and process.poll() is not None:
                    raise StartFailed(f"{program} exited with {process.returncode}:\n{self._log_tail(program)}")
            try:
                if ready():
                    return
            except OSError:
                pass
            time.sleep(0.05)
        raise StartFailed(f"{what} was not ready in {START_TIMEOUT:.0f} s:\n{self._log_tail('kube-apiserver')}")

    def _log_tail(self, program: str) -> str:
        return (self._directory / f"{program}.log").read_text(errors="replace")[-3000:]

    def _running_server(self) -> subprocess.Popen[bytes]:
        assert self._server is not None, "the server is not running"
        return self._server

    def _etcd_call(self, path: str, body: object) -> Any:
        connection = http.client.HTTPConnection(self.etcd_url.removeprefix("http://"), timeout=STOP_TIMEOUT)
        try:
            connection.request("POST", path, json.dumps(body))
            response = connection.getresponse()
            answer = response.read()
            assert response.status == 200, answer
            return json.loads(answer)
        finally:
            connection.close()

    def _write_kubeconfig(self) -> None:
        cluster = {"server": self.url, "certificate-authority": str(self.ca_file)}
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "test",
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": "admin", "user": {"token": self.token}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "admin"}}],
        }
        self.kubeconfig.write_text(json.dumps(content))
        self.kubeconfig.chmod(0o600)


def _established(answer: Answer) -> bool:
    conditions = answer.json().get("status", {}).get("conditions") or []
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()
