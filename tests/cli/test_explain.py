"""``quorate explain`` as a command: what it answers when there is nothing to explain, and nobody to ask."""

from __future__ import annotations

import asyncio
import json
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest

from quorate.api.meta import ObjectMeta
from quorate.api.quantity import Quantity
from quorate.api.storage import ReplicatedVolume
from quorate.api.storage.rv import ReplicatedVolumeSpec
from tests.cli.test_controller import PATIENCE, api


async def explain(*words: str) -> tuple[int | None, str, str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "quorate", "explain", *words, stdout=PIPE, stderr=PIPE
    )
    async with asyncio.timeout(PATIENCE):
        out, complaints = await process.communicate()
    assert "Traceback" not in complaints.decode()
    return process.returncode, out.decode(), complaints.decode()


async def test_a_volume_that_nobody_has_looked_at_is_told_as_new(tmp_path: Path) -> None:
    async with api(tmp_path) as store:
        spec = ReplicatedVolumeSpec(size=Quantity("1Gi"), replicated_storage_class_name="fast")
        await store.create(ReplicatedVolume(metadata=ObjectMeta(name="v"), spec=spec))
        where = ("--kubeconfig", str(tmp_path / "kubeconfig"))
        code, out, _ = await explain("volume", "v", *where)
        assert code == 0
        assert out.startswith("volume v (1Gi asked for, class fast): new\n")
        assert "it has no configuration" in out
        # --data names the directory that the kubeconfig is in.
        code, out, _ = await explain("volume", "v", "--data", str(tmp_path), "-o", "json")
        assert code == 0
        assert json.loads(out)["storageClass"] == "fast"


@pytest.mark.parametrize(("kind", "name"), [("volume", "v"), ("replica", "v-0")])
async def test_what_is_not_there_is_said_not_to_be(tmp_path: Path, kind: str, name: str) -> None:
    async with api(tmp_path):
        code, out, complaints = await explain(kind, name, "--kubeconfig", str(tmp_path / "kubeconfig"))
    assert code not in (0, None)
    assert out == ""
    assert f"there is no {kind} {name}" in complaints


async def test_without_a_server_it_says_which_one_is_missing(tmp_path: Path) -> None:
    code, _, complaints = await explain("volume", "v", "--data", str(tmp_path))
    assert code not in (0, None)
    assert str(tmp_path) in complaints
