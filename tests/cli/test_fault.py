"""``quorate fault`` and ``quorate lab status`` against a running ``quorate up``."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from click.testing import CliRunner

from quorate.cli.fault import fault, troubles
from quorate.lab.faults import FAULTS
from quorate.lab.truth import DriveTruth, NodeTruth, Truth
from quorate.server.kubernetes import AgentTokens
from tests.cli.test_up import running, server

NODE = NodeTruth("n1", "a", "10.0.0.1", True, 1, True, True, (DriveTruth("S1", "1", "/dev/sda"),))


def quorate(*arguments: str) -> tuple[int, str]:
    """A command, and all that it says."""
    done = subprocess.run(
        [sys.executable, "-m", "quorate", *arguments], capture_output=True, text=True, timeout=60, check=False
    )
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout + done.stderr


def test_hardware_is_broken_shown_and_mended(tmp_path: Path) -> None:
    with running(tmp_path, "--nodes", "2", "--drives", "1"):
        where = ("--data", str(tmp_path))
        assert quorate("fault", *where, "list") == (0, "nothing is broken\n")
        assert quorate("fault", *where, "node-down", "node-2") == (0, "node-2 has lost its power\n")
        code, said = quorate("fault", *where, "drive-pull", "node-1", "sda")
        assert code == 1, "slot 1 is an NVMe drive"
        assert "node-1 has no drive 'sda'; it has: nvme0n1 (slot 1, serial QL" in said
        assert quorate("fault", *where, "drive-pull", "node-1", "/dev/nvme0n1")[0] == 0
        assert quorate("fault", *where, "cut", "node-1", "node-2", "--one-way")[0] == 0
        code, said = quorate("fault", *where, "list")
        assert [line.partition(":")[0] for line in said.splitlines()] == ["node-1", "node-2", "node-1 -> node-2"]
        truth = json.loads(quorate("lab", "status", *where, "-o", "json")[1])
        assert [node["powered"] for node in truth["nodes"]] == [True, False]
        assert quorate("fault", *where, "node-up", "node-9") == (
            1,
            "quorate: there is no simulated node 'node-9'; there are: node-1, node-2\n",
        )
        for words in (("node-up", "node-2"), ("drive-insert", "node-1"), ("heal",)):
            assert quorate("fault", *where, *words)[0] == 0
        assert quorate("fault", *where, "list") == (0, "nothing is broken\n")
        assert "node-2" in quorate("lab", "status", *where)[1]


def test_an_agent_may_not_break_anything(tmp_path: Path) -> None:
    with running(tmp_path, "--nodes", "1") as config:
        token = AgentTokens(tmp_path / "agents").token("node-1")
        for path, body in (("/lab/v1/faults", b'{"fault": "node-down", "node": "node-1"}'), ("/lab/v1/truth", None)):
            request = urllib.request.Request(server(config) + path, body, {"Authorization": f"Bearer {token}"})
            with pytest.raises(urllib.error.HTTPError) as error:
                urllib.request.urlopen(request, timeout=30)
            error.value.close()
            assert error.value.code == 403


def test_without_a_server_it_says_where_it_looked(tmp_path: Path) -> None:
    code, said = quorate("fault", "--data", str(tmp_path), "list")
    assert code == 3
    assert f"{tmp_path} is not the data directory of a running `quorate up`" in said


@pytest.mark.parametrize("word", FAULTS)
def test_every_fault_is_a_command_that_explains_itself(word: str) -> None:
    done = CliRunner().invoke(fault, [word, "--help"])
    assert done.exit_code == 0
    assert (FAULTS[word].__doc__ or "?").split(":")[0] in " ".join(done.output.split())


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["node-down"], "Missing argument 'NODE'"),
        (["meteor"], "No such command 'meteor'"),
        (["smart", "n1", "sda", "hello"], "'hello' is not one of 'good', 'wearing', 'failing'"),
        (["slow", "n1", "drbdadm", "much"], "'much' is not a valid float"),
    ],
)
def test_a_wrong_command_line_is_refused_before_anything_is_asked(arguments: list[str], problem: str) -> None:
    done = CliRunner().invoke(fault, arguments)
    assert done.exit_code == 2
    assert problem in done.output


@pytest.mark.parametrize(
    ("truth", "said"),
    [
        (Truth((NODE,)), []),
        (Truth((NODE,), ("n1 <-> n2",)), ["n1 <-> n2: cut"]),
        (Truth((NodeTruth("n1", "a", "1", False, 1, False, True, ()),)), ["n1: no power"]),
        (Truth((NodeTruth("n1", "a", "1", True, 1, False, True, (), is_stopping=True),)), ["n1: is shutting down"]),
        (Truth((NodeTruth("n1", "a", "1", True, 1, False, False, ()),)), ["n1: its agent does not run", "n1: cut off"]),
        (
            Truth((NodeTruth("n1", "a", "1", True, 1, True, True, (DriveTruth("S", "1", "/dev/sda", failing=True),)),)),
            ["n1: drive S of slot 1 (/dev/sda): fails"],
        ),
    ],
)
def test_troubles_are_told_in_a_line_each(truth: Truth, said: list[str]) -> None:
    told = troubles(truth)
    assert len(told) == len(said)
    assert all(line.startswith(beginning) for line, beginning in zip(told, said, strict=True))
