"""``quorate volume`` as a command: what it refuses, and in which words."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

from quorate.api.meta import ObjectMeta
from quorate.api.quantity import Quantity
from quorate.api.storage import ReplicatedVolume
from quorate.api.storage.rv import ReplicatedVolumeSpec
from tests.cli.test_controller import PATIENCE, api


async def volume(*words: str) -> tuple[int | None, str, str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "quorate", "volume", *words, stdout=PIPE, stderr=PIPE
    )
    async with asyncio.timeout(PATIENCE):
        out, complaints = await process.communicate()
    assert "Traceback" not in complaints.decode()
    return process.returncode, out.decode(), complaints.decode()


async def test_what_cannot_be_kept_is_told_of_and_nothing_is_written(tmp_path: Path) -> None:
    reach = ("--kubeconfig", str(tmp_path / "kubeconfig"))
    async with api(tmp_path) as store:
        code, _, complaints = await volume("keep", "v", "node-1", "--accept-data-loss", *reach)
        assert (code, complaints) == (1, "quorate: there is no volume v\n")
        spec = ReplicatedVolumeSpec(size=Quantity("1Gi"), replicated_storage_class_name="c")
        made = await store.create(ReplicatedVolume(metadata=ObjectMeta(name="v"), spec=spec))
        code, _, complaints = await volume("keep", "v", "node-1", "--accept-data-loss", *reach)
        assert (code, complaints) == (1, "quorate: there is no copy of v on node-1; copies are on no node\n")
        assert (await store.get(ReplicatedVolume, "v")).metadata == made.metadata
