"""tools/apiserver/fetch finds or builds the binaries; the compiler here is a script, so that it takes no minutes."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.apiserver import FETCH

GO = """#!/bin/sh
echo "$@" >>"$HOME/calls"
while [ $# -gt 0 ]; do [ "$1" = -o ] && target=$2; shift; done
sleep "${GO_SLEEPS:-0}"
echo '#!/bin/sh' >"$target" && chmod +x "$target"
"""


class Machine:
    """A home directory, and a PATH with the system's own tools and what the test puts beside them."""

    def __init__(self, directory: Path) -> None:
        self.home = directory / "home"
        self.bin = directory / "bin"
        self.cache = self.home / ".cache" / "quorate"
        self.home.mkdir()
        self.bin.mkdir()

    def install(self, name: str, script: str, directory: Path | None = None) -> None:
        file = (directory or self.bin) / name
        file.write_text(script)
        file.chmod(0o755)

    def start(self, *arguments: str, **environ: str) -> subprocess.Popen[str]:
        kept = {"HOME": str(self.home), "PATH": f"{self.bin}:/usr/bin:/bin", **environ}
        pipe = subprocess.PIPE
        return subprocess.Popen([FETCH, *arguments], env=kept, text=True, stdout=pipe, stderr=pipe)

    def fetch(self, *arguments: str, **environ: str) -> tuple[int, str, str]:
        process = self.start(*arguments, **environ)
        output, complaint = process.communicate(timeout=30)
        return process.returncode, output.strip(), complaint

    @property
    def builds(self) -> int:
        calls = self.home / "calls"
        return len(calls.read_text().splitlines()) if calls.exists() else 0


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    if os.path.exists("/usr/bin/go") or os.path.exists("/usr/bin/etcd"):
        pytest.skip("this machine has them among the system's own tools")
    return Machine(tmp_path)


def test_what_is_missing_is_built_once_and_kept(machine: Machine) -> None:
    machine.install("go", GO)
    code, directory, _ = machine.fetch()
    assert code == 0
    assert Path(directory).parent == machine.cache
    assert {file.name for file in Path(directory).iterdir()} == {"kube-apiserver", "etcd", "kubectl"}
    assert machine.fetch() == (0, directory, "")
    assert machine.builds == 3


def test_two_at_once_build_once(machine: Machine) -> None:
    machine.install("go", GO)
    both = [machine.start(GO_SLEEPS="0.2") for _ in range(2)]
    outputs = [process.communicate(timeout=30)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert outputs[0] == outputs[1]
    assert machine.builds == 3


def test_a_build_that_fails_leaves_nothing_behind(machine: Machine) -> None:
    machine.install("go", "#!/bin/sh\nexit 7\n")
    assert machine.fetch()[0] == 7
    assert [file.name for file in machine.cache.iterdir()] == ["apiserver.lock"]


def test_without_a_compiler_it_says_what_is_needed(machine: Machine) -> None:
    code, _, complaint = machine.fetch()
    assert code == 1
    assert "no Go 1.21+" in complaint


def test_it_does_not_build_unasked(machine: Machine) -> None:
    machine.install("go", GO)
    code, _, complaint = machine.fetch("--no-build")
    assert code == 3
    assert "run tools/apiserver/fetch" in complaint
    assert machine.builds == 0


def versions(machine: Machine, directory: Path, *, apiserver: str = "1.36.3", etcd: str = "3.6.8") -> None:
    machine.install("kube-apiserver", f"#!/bin/sh\necho Kubernetes v{apiserver}\n", directory)
    machine.install("etcd", f"#!/bin/sh\necho etcd Version: {etcd}\n", directory)


def test_given_assets_are_used_as_they_are(machine: Machine, tmp_path: Path) -> None:
    versions(machine, tmp_path)
    machine.install("kubectl", "#!/bin/sh\n", tmp_path)
    assert machine.fetch(KUBEBUILDER_ASSETS=str(tmp_path)) == (0, str(tmp_path), "")


@pytest.mark.parametrize(
    ("found", "problem"),
    [
        ({"apiserver": "1.31.9"}, "kube-apiserver is 1.31.9, 1.32 or newer is needed"),
        ({"etcd": "3.4.23"}, "etcd is 3.4.23, 3.5 or newer is needed"),
        ({}, "no kubectl"),
    ],
)
def test_given_assets_that_will_not_do_are_refused(
    machine: Machine, tmp_path: Path, found: dict[str, str], problem: str
) -> None:
    versions(machine, tmp_path, **found)
    code, _, complaint = machine.fetch(KUBEBUILDER_ASSETS=str(tmp_path))
    assert code == 1
    assert problem in complaint


def test_those_of_the_path_are_used_with_a_kubectl_of_our_own(machine: Machine) -> None:
    machine.install("go", GO)
    machine.install("kubectl", "#!/bin/sh\necho somebody else\n")
    versions(machine, machine.bin)
    code, directory, _ = machine.fetch()
    assert code == 0
    assert (Path(directory) / "etcd").resolve() == machine.bin / "etcd"
    assert (Path(directory) / "kubectl").resolve().parent != machine.bin
    assert machine.builds == 1


def test_those_of_the_path_that_are_too_old_are_passed_over(machine: Machine) -> None:
    machine.install("go", GO)
    versions(machine, machine.bin, etcd="3.4.23")
    code, directory, complaint = machine.fetch()
    assert code == 0
    assert "3.4.23" in complaint
    assert not (Path(directory) / "etcd").is_symlink()
    assert machine.builds == 3
