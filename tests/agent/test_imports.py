"""What every node pays for: the modules that ``quorate agent`` loads, as it is started by its unit.

Measured by running the command itself, up to where it looks for the API server: its configuration is read, the machine
and the lock are made. ``bench/agent_start.py`` measures what that costs.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

#: Packages of others. Before one is added here: what it brings along is on every node (docs/dependencies.md).
OTHERS = {
    "click",
    "httptools",
    "idna",
    "msgspec",
    "multidict",
    "prometheus_client",
    "propcache",
    "typing_extensions",
    "yaml",
    "yarl",
}
#: Our own, by the first two names.
OURS = {
    "quorate.agent",
    "quorate.api",
    "quorate.cli",
    "quorate.config",
    "quorate.drbd",
    "quorate.engine",
    "quorate.errors",
    "quorate.server",
}
#: And where those are large, by their own modules.
OF_THE_COMMANDS = {"agent", "failures", "main", "output", "process_log"}
OF_THE_SERVER = {"addresses", "agent", "probes"}


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """Everything that is loaded when it gives up, because it is shown no API server."""
    directory = tmp_path_factory.mktemp("agent")
    code = (
        "import atexit, json, sys\n"
        "atexit.register(lambda: print(json.dumps(sorted(sys.modules))))\n"
        "from quorate.cli import main\n"
        "main()\n"
    )
    command = [sys.executable, "-c", code, "agent", "--node-name", "n1"]
    command += ["--state-dir", str(directory / "state"), "--drbd-config-dir", str(directory / "drbd.d")]
    command += ["--kubeconfig", str(directory / "missing")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 3, done.stderr
    assert "missing" in done.stderr
    return set(json.loads(done.stdout))


def test_an_agent_loads_no_packages_but_those_it_needs(modules: set[str]) -> None:
    tops = {name.partition(".")[0] for name in modules}
    known = {*sys.stdlib_module_names, "quorate", "cython_runtime"}
    # With an underline: what a virtual environment starts by itself, in every process.
    found = {top for top in tops - known if not top.startswith("_")}
    assert found == OTHERS


def test_an_agent_loads_of_our_own_only_what_it_needs(modules: set[str]) -> None:
    ours = {name for name in modules if name.startswith("quorate.")}
    assert {".".join(name.split(".")[:2]) for name in ours} == OURS
    assert {name.split(".")[2] for name in ours if name.startswith("quorate.cli.")} == OF_THE_COMMANDS
    assert {name.split(".")[2] for name in ours if name.startswith("quorate.server.")} == OF_THE_SERVER
    assert not {name for name in ours if name.startswith(("quorate.engine.embedded", "quorate.agent.check"))}
