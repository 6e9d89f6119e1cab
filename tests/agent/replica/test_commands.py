"""Our command lines before the real drbdadm: what it would run."""

from __future__ import annotations

from pathlib import Path

import pytest

from quorate.agent.operations.case import Case
from quorate.agent.operations.first_data import command
from quorate.agent.replica import commands
from quorate.agent.replica.guard import Guarded, guard
from quorate.agent.steps import Run
from tests.agent.replica.builders import FILE, NOW, config, kernel, link, view
from tests.agent.test_operations import case
from tests.support.drbd_utils import drbdadm

CUT = Guarded("pvc-1", FILE, config(yields=True), True, kernel(role="Primary", links=(link(1), link(2, "Connecting"))))
RUNNING: Case = case()


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (commands.create_metadata(view(), ""), ["create-md 7 --force"]),
        (commands.probe(view(), ""), ["internal dump-md"]),
        (commands.promote(view(), ""), ["drbdsetup primary pvc-1"]),
        (commands.demote(view(), ""), ["drbdsetup secondary pvc-1"]),
        (commands.resize(view(), "", assume_clean=True), ["drbdsetup resize 1000 --assume-clean"]),
        (commands.resize(view(), "", assume_clean=False), ["drbdsetup resize 1000"]),
        (guard(CUT, NOW).steps[0], ["drbdsetup disconnect pvc-1 1 --force", "drbdsetup disconnect pvc-1 2 --force"]),
        (command(RUNNING), ["drbdsetup new-current-uuid 1000 --clear-bitmap"]),
        (commands.adjust(view(), "")[0], ["drbdsetup new-resource pvc-1 0", "drbdsetup connect pvc-1 2"]),
        (commands.up_and_adjust(view(), "")[0], ["drbdsetup new-resource pvc-1 0", "drbdsetup connect pvc-1 2"]),
    ],
)
def test_the_real_drbdadm_understands_it(step: Run, expected: list[str], tmp_path: Path) -> None:
    intended = view().intended
    assert intended is not None
    file = tmp_path / "pvc-1.res"
    file.write_text(intended.content)
    program, option, named, *rest = step.argv
    assert (program, option, named) == ("drbdadm", "-c", FILE)
    said = drbdadm()._run("-c", str(file), "--dry-run", *rest, node="n0")
    assert said.exit_code == 0, said
    for each in expected:
        assert each in said.stdout
