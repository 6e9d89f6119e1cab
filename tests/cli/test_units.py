"""The units of systemd that are shipped: that systemd takes them, and that they say what the devices depend on."""

from __future__ import annotations

import configparser
import os
import shutil
import subprocess
from importlib import import_module
from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner

from quorate.agent.lock import AgentLock
from quorate.cli.node import join
from quorate.cli.node.join import UNITS, unit_text
from quorate.errors import QuorateError

ROOT = Path(__file__).parents[2]
SHIPPED = sorted((ROOT / "deploy" / "systemd").iterdir())
SYSTEM = "/lib/systemd/system"


def read(unit: str) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(strict=False, interpolation=None, delimiters=("=",))
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string((ROOT / "deploy" / "systemd" / unit).read_text())
    return parser


def test_what_is_shipped_is_what_join_installs() -> None:
    assert [path.name for path in SHIPPED] == ["quorate-agent.service", "quorate-server.service", UNITS[1]]
    for unit in UNITS:
        shipped = (ROOT / "deploy" / "systemd" / unit).read_text()
        assert unit_text(unit, "/usr/bin/quorate") == shipped
        assert unit_text(unit, "/opt/quorate/bin/quorate") == shipped.replace("/usr/bin/", "/opt/quorate/bin/")


def test_an_update_of_the_agent_touches_nothing() -> None:
    service = read("quorate-agent.service")["Service"]
    assert service["KillMode"] == "process", "a command that hangs in the kernel, or LVM in its middle, is left alone"
    assert not [key for key in service if key.startswith("ExecStop")]
    assert service["Restart"] == "always"
    # These would give it a mount namespace of its own, in which a mounted volume stays busy.
    assert not {"ProtectSystem", "ProtectHome", "PrivateTmp", "PrivateDevices", "PrivateMounts"} & set(service)


def test_devices_are_taken_down_after_their_users_and_before_the_network() -> None:
    unit, service = read(UNITS[1])["Unit"], read(UNITS[1])["Service"]
    assert "quorate node shutdown --if-stopping" in service["ExecStop"]
    assert unit["RefuseManualStop"] == "yes", "an update of the package must not stop it"
    assert {"network.target", "network-online.target"} <= set(unit["After"].split())
    text = (ROOT / "deploy" / "systemd" / UNITS[1]).read_text()
    before = {word for line in text.splitlines() if line.startswith("Before=") for word in line[7:].split()}
    assert {"quorate-agent.service", "kubelet.service", "kubepods.slice", "remote-fs-pre.target"} <= before
    deadline = float(service["ExecStop"].split()[-1])
    # Half a minute is what a machine is given; what hangs then has four seconds to end.
    assert deadline + 4 < float(service["TimeoutStopSec"]) <= 30


@pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="NOT CHECKED: there is no systemd-analyze (apt install systemd)"
)
def test_systemd_takes_them_and_finds_no_cycle(tmp_path: Path) -> None:
    wants = tmp_path / "multi-user.target.wants"
    wants.mkdir()
    for path in SHIPPED:
        (tmp_path / path.name).write_text(path.read_text().replace("/usr/bin/quorate", "/bin/true"))
        (wants / path.name).symlink_to(tmp_path / path.name)
    environment = {**os.environ, "SYSTEMD_UNIT_PATH": f"{tmp_path}:{SYSTEM}"}
    done = subprocess.run(
        ["systemd-analyze", "verify", "multi-user.target"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    ours = [line for line in done.stderr.splitlines() if "quorate" in line or "cycle" in line]
    assert ours == []
    # That it would have been found: ordered before a slice that everything starts after, it is a cycle.
    broken = tmp_path / UNITS[1]
    broken.write_text(broken.read_text().replace("Before=remote-fs-pre.target", "Before=user.slice"))
    again = subprocess.run(
        ["systemd-analyze", "verify", "multi-user.target"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "ordering cycle" in again.stderr


@pytest.mark.parametrize("installed", [False, True], ids=["by pip", "by a package"])
def test_join_installs_what_no_package_has_and_never_stops_the_unit_for_power_off(
    installed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, ...]] = []

    def systemctl(*words: str) -> subprocess.CompletedProcess[str]:
        asked.append(words)
        return subprocess.CompletedProcess(words, 0 if installed or words[0] != "cat" else 1, "", "")

    monkeypatch.setattr(join, "_systemctl", systemctl)
    monkeypatch.setattr(join, "_UNIT_DIRECTORY", tmp_path)
    monkeypatch.setattr(join, "_SYSTEMD", tmp_path)
    monkeypatch.setattr("sys.argv", ["/opt/quorate/bin/quorate"])
    join._start(Path("/etc/quorate/agent.yaml"))
    written = sorted(path.name for path in tmp_path.iterdir())
    assert written == ([] if installed else sorted(UNITS))
    done = [words for words in asked if words[0] != "cat"]
    assert done == [("daemon-reload",), ("enable", *UNITS), ("start", *UNITS), ("restart", "quorate-agent.service")]


def test_join_says_what_systemd_said_and_that_the_token_is_not_needed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(join, "_SYSTEMD", tmp_path)
    monkeypatch.setattr(
        join,
        "_systemctl",
        lambda *words: subprocess.CompletedProcess(words, int(words[0] == "start"), "", "it is masked"),
    )
    with pytest.raises(QuorateError, match=r"has joined, but `systemctl start .*it is masked.*no token is needed"):
        join._start(Path("/etc/quorate/agent.yaml"))


@pytest.mark.parametrize(
    ("arguments", "answer", "is_done"),
    [([], "n\n", False), ([], "", False), ([], "y\n", True), (["--yes"], "", True), (["--if-stopping"], "", False)],
)
def test_nobody_takes_the_devices_of_a_living_machine_away_by_mistake(
    arguments: list[str], answer: str, is_done: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[float] = []

    async def shut_down(deadline: float, dry_run: bool) -> bool:
        done.append(deadline)
        return True

    command = import_module("quorate.cli.node.shutdown")
    monkeypatch.setattr(command, "_shut_down", shut_down)
    monkeypatch.setattr(command, "_is_stopping", lambda: False)
    lock = AgentLock(tmp_path, random=Random(1))
    try:
        found = CliRunner().invoke(command.shutdown, ["--state-dir", str(tmp_path), *arguments], input=answer)
    finally:
        lock.release()
    assert bool(done) == is_done, found.output
    assert ("The agent runs" in found.output) == ("--if-stopping" not in arguments)
