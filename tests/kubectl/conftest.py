"""The servers that the script is played against: a real ``quorate up`` process, and a real API server."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from quorate.api import all_kinds
from tests.kubectl.run import PATIENCE, Kubectl
from tests.support.apiserver import ApiServer, MissingBinaries, binaries
from tests.support.optional import loud_skip


@pytest.fixture(scope="session")
def program() -> Path:
    """kubectl itself."""
    try:
        return binaries() / "kubectl"
    except MissingBinaries as missing:
        loud_skip(f"kubectl: {missing}")


@pytest.fixture(scope="session")
def facade(program: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    """``quorate up`` without controllers that would write beside kubectl."""
    data = tmp_path_factory.mktemp("up")
    command = [sys.executable, "-m", "tests.kubectl.bare_up", "up", "--data", str(data), "--port", "0", "--nodes", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        try:
            assert "ready" in process.stdout.readline()
            yield Kubectl(program, data / "kubeconfig", tmp_path_factory.mktemp("kubectl"))
        finally:
            process.terminate()
            assert process.wait(PATIENCE) == 0


@pytest.fixture(scope="session")
def real(program: Path, apiserver: ApiServer, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    """The oracle, with our definitions installed."""
    apiserver.install_crds(kind for kind in all_kinds() if kind.crd and not kind.group.startswith("test."))
    return Kubectl(program, apiserver.kubeconfig, tmp_path_factory.mktemp("kubectl-real"), real=True)
