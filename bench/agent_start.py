"""What an agent costs its node: CPU until it works, and memory at rest, on a node with nothing on it.

``python -m bench.agent_start`` starts a server with a token, over TLS, and an agent as its unit does, and reads from
/proc what the agent's process used when it has been ready for some seconds. The programs of the node need not be there:
an agent that finds none goes on looking.
"""

from __future__ import annotations

import os
import re
import secrets
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Mapping
from pathlib import Path

from bench.harness import Report, alternate

QUORATE = (sys.executable, "-m", "quorate")
#: Seconds at rest before its memory is read.
REST = 5.0


def started() -> Mapping[str, float]:
    """One agent's CPU seconds and MiB."""
    with tempfile.TemporaryDirectory(prefix="quorate-bench-") as name:
        directory = Path(name)
        token = directory / "token"
        token.write_text(secrets.token_urlsafe(32))
        up = [*QUORATE, "up", "--data", f"{name}/data", "--port", "0", "--nodes", "0", "--token-file", str(token)]
        with subprocess.Popen(up, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
            try:
                assert server.stdout is not None
                server.stdout.readline()
                return _agent(directory)
            finally:
                server.terminate()


def _agent(directory: Path) -> Mapping[str, float]:
    asked = [*QUORATE, "kubeconfig", "--data", str(directory / "data"), "--agent", "n1"]
    (directory / "kubeconfig").write_bytes(subprocess.run(asked, check=True, capture_output=True).stdout)
    command = [*QUORATE, "agent", "--node-name", "n1", "--register-node", "--address", _own_address()]
    command += ["--kubeconfig", str(directory / "kubeconfig"), "--state-dir", str(directory / "state")]
    command += ["--drbd-config-dir", str(directory / "drbd.d"), "--metrics-port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            port = process.stdout.readline().split()[-1]
            _wait_until_ready(port)
            time.sleep(REST)
            return {"cpu": _cpu(process.pid), "mib": _resident(process.pid)}
        finally:
            process.terminate()


def _own_address() -> str:
    """An address of this machine that others could reach it by; nothing is sent to find it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))
        return str(probe.getsockname()[0])


def _wait_until_ready(port: str) -> None:
    for _ in range(300):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5):
                return
        except OSError:
            time.sleep(0.1)
    raise TimeoutError("the agent was not ready within half a minute")


def _cpu(pid: int) -> float:
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def _resident(pid: int) -> float:
    found = re.search(r"^VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1]) / 1024


def run() -> Report:
    """The figures."""
    report = Report("Agent (empty node, over TLS)")
    figures = alternate({"agent": started})["agent"]
    report.add("CPU from its start until it rests", f"{figures['cpu']:.2f} s", "under 0.5 s", figures["cpu"] < 0.5)
    report.add("memory at rest", f"{figures['mib']:.1f} MiB", "under 40 MiB", figures["mib"] < 40)
    return report


if __name__ == "__main__":
    run()
