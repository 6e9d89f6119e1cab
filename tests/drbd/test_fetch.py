"""tools/drbd-utils/fetch finds a drbdadm or downloads one; the package manager here is a script."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.drbd_utils import FETCH

APT_GET = """#!/bin/sh
echo "$1" >>"$HOME/calls"
[ "$1" = update ] && { touch "$HOME/lists"; exit; }
[ -e "$HOME/lists" ] || exit 100
sleep "${APT_SLEEPS:-0}"
touch drbd-utils_9.22.0-1_amd64.deb
"""
DPKG = """#!/bin/sh
mkdir -p "$3/sbin" && touch "$3/sbin/drbdadm" && chmod +x "$3/sbin/drbdadm"
"""


class Machine:
    """A home directory, and a PATH with the system's own tools and what the test puts before them."""

    def __init__(self, directory: Path) -> None:
        self.home = directory / "home"
        self.bin = directory / "bin"
        self.cache = self.home / ".cache" / "quorate"
        self.home.mkdir()
        self.bin.mkdir()

    def install(self, name: str, script: str) -> None:
        (self.bin / name).write_text(script)
        (self.bin / name).chmod(0o755)

    def start(self, *arguments: str, **environ: str) -> subprocess.Popen[str]:
        kept = {"HOME": str(self.home), "PATH": f"{self.bin}:/usr/bin:/bin", **environ}
        return subprocess.Popen(
            [FETCH, *arguments], env=kept, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )

    def fetch(self, *arguments: str, **environ: str) -> tuple[int, str, str]:
        process = self.start(*arguments, **environ)
        output, complaint = process.communicate(timeout=30)
        return process.returncode, output.strip(), complaint

    @property
    def calls(self) -> list[str]:
        calls = self.home / "calls"
        return calls.read_text().split() if calls.exists() else []


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    if any(os.path.exists(f"{directory}/drbdadm") for directory in ("/usr/bin", "/bin", "/usr/sbin", "/sbin")):
        pytest.skip("this machine has it among the system's own tools")
    made = Machine(tmp_path)
    made.install("apt-get", APT_GET)
    made.install("dpkg", DPKG)
    return made


def test_it_is_downloaded_once_and_kept_also_where_package_lists_were_missing(machine: Machine) -> None:
    code, program, _ = machine.fetch()
    assert (code, Path(program)) == (0, machine.cache / "drbd-utils" / "sbin" / "drbdadm")
    assert machine.fetch() == (0, program, "")
    assert machine.calls == ["download", "update", "download"]
    assert not list(machine.cache.glob("*downloading*"))


def test_two_at_once_download_once(machine: Machine) -> None:
    (machine.home / "lists").touch()
    both = [machine.start(APT_SLEEPS="0.2") for _ in range(2)]
    outputs = [process.communicate(timeout=30)[0] for process in both]
    assert outputs[0] == outputs[1] != ""
    assert machine.calls == ["download"]


def test_one_on_the_path_is_used_as_it_is(machine: Machine) -> None:
    machine.install("drbdadm", "#!/bin/sh\n")
    assert machine.fetch() == (0, str(machine.bin / "drbdadm"), "")
    assert machine.calls == []


def test_it_does_not_download_unasked(machine: Machine) -> None:
    code, _, complaint = machine.fetch("--no-download")
    assert code == 3
    assert "run tools/drbd-utils/fetch" in complaint
    assert machine.calls == []


def test_a_download_that_fails_says_so_and_leaves_nothing_behind(machine: Machine) -> None:
    machine.install("apt-get", "#!/bin/sh\nexit 100\n")
    code, _, complaint = machine.fetch()
    assert code == 1
    assert "cannot download drbd-utils" in complaint
    assert [file.name for file in machine.cache.iterdir()] == ["drbd-utils.lock"]


def test_what_it_does_not_know_is_refused(machine: Machine) -> None:
    assert machine.fetch("--what")[0] == 2
