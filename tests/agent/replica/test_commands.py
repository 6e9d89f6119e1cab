"""Our command lines before the real drbdadm: what it would run."""

from __future__ import annotations

import asyncio
import resource
from pathlib import Path

import pytest

from quorate.agent.hands import Hands
from quorate.agent.linux import LinuxMachine
from quorate.agent.memory import Memory
from quorate.agent.operations.case import Case
from quorate.agent.operations.first_data import command
from quorate.agent.replica import commands
from quorate.agent.replica.guard import cut
from quorate.agent.steps import Run
from quorate.engine.clock import SystemClock
from tests.agent.replica.builders import FILE, link, view
from tests.agent.test_operations import case
from tests.support.drbd_utils import drbdadm

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


def test_a_link_is_cut_as_drbdadm_itself_would_cut_it(tmp_path: Path) -> None:
    """By number, and so without the file, which may be out of reach."""
    intended = view().intended
    assert intended is not None
    file = tmp_path / "pvc-1.res"
    file.write_text(intended.content)
    said = drbdadm()._run("-c", str(file), "--dry-run", "disconnect", "--force", "pvc-1", node="n0")
    would_run = [line.rpartition("/")[2] for line in said.stdout.splitlines()]
    assert [" ".join(cut("pvc-1", link(node_id)).argv) for node_id in (1, 2)] == would_run


async def test_a_disk_that_is_full_costs_the_new_file_and_not_the_one_in_use(tmp_path: Path) -> None:
    file = tmp_path / "pvc-1.res"
    file.write_text("resource old {}")
    memory, machine = Memory(), LinuxMachine()
    hands, ended = Hands(machine, memory, clock=SystemClock()), asyncio.Event()
    # It gets full after the copy that is tested was written.
    steps = commands.write_config(view(file=str(file)), "resource new {}" * 10_000, "")[2:]
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        hands.start("drbd/pvc-1", steps, ended.set)
        await asyncio.wait_for(ended.wait(), 30)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    last = memory.last("drbd/pvc-1", commands.CONFIG)
    assert last is not None
    assert not last.succeeded
    assert file.read_text() == "resource old {}"
    ended.clear()
    hands.start("drbd/pvc-1", steps, ended.set)
    await asyncio.wait_for(ended.wait(), 30)
    assert file.read_text() == "resource new {}" * 10_000
    assert file.stat().st_mode & 0o777 == 0o600
    assert await machine.list_directory(str(tmp_path)) == ("pvc-1.res",)
    sighting = memory.file(str(file))
    assert sighting.current
    assert sighting.value == "resource new {}" * 10_000
