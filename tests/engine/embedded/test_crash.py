"""``kill -9`` at any instant: every acknowledged write is there, and none is there twice."""

from __future__ import annotations

import os
import random
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.engine.embedded.support import WIDGET, open_store
from tests.support.kinds import Widget

KILLS = 20
ROOT = Path(__file__).parents[3]


def run_until_killed(path: Path, seconds: float) -> list[list[str]]:
    """The words of a child that was killed this long after it was ready."""
    command = [sys.executable, "-m", "tests.engine.embedded.crash_child", str(path)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        output = b""
        deadline = time.monotonic() + 30
        while (left := deadline - time.monotonic()) > 0:
            if select.select([child.stdout], [], [], left)[0]:
                output += (chunk := os.read(child.stdout.fileno(), 65536))
                if not chunk:
                    pytest.fail(f"the child died by itself: {child.stderr.read().decode()}")
                if b"ready" in output and deadline > time.monotonic() + seconds:
                    deadline = time.monotonic() + seconds
        child.send_signal(signal.SIGKILL)
        output += child.stdout.read()
    return [line.split() for line in output.decode().splitlines()]


@pytest.mark.crash
async def test_what_was_acknowledged_survives_and_nothing_is_doubled(tmp_path: Path) -> None:
    path = tmp_path / "quorate.db"
    instants = random.Random(20260102)
    counted: dict[str, int] = {}
    highest = 0
    for _ in range(KILLS):
        found: dict[str, int] = {}
        for line in run_until_killed(path, instants.uniform(0.0, 0.25)):
            match line:
                case ["found", name, number, _]:
                    found[name] = int(number)
                case ["ready"]:
                    survived(counted, found)
                    counted = found
                case ["wrote", name, number, version]:
                    assert int(number) == counted.get(name, 0) + 1
                    assert int(version) > highest, "no version is given twice"
                    counted[name], highest = int(number), int(version)
    assert sum(counted.values()) > 10 * KILLS, "it did write"
    store = await open_store(path, kinds=[WIDGET])
    final = {record.name: record.typed for record in store.read_page(WIDGET).records}
    await store.close()
    survived(counted, {name: obj.status.count or 0 for name, obj in final.items() if isinstance(obj, Widget)})


def survived(counted: dict[str, int], found: dict[str, int]) -> None:
    """Every object counts what was acknowledged; at most the one write that was on its way came on top."""
    assert counted.keys() <= found.keys()
    for name, number in counted.items():
        assert found[name] in (number, number + 1), name
