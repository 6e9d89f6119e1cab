"""``quorate orphan`` as a command: what it shows, what it refuses, and what it says to the cluster."""

from __future__ import annotations

import asyncio
import json
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest

from quorate.api import names
from quorate.api.annotation_keys import REMOVE_ORPHANS
from quorate.api.longhorn import Node
from quorate.api.meta import NodeName, ObjectMeta, VolumeName
from quorate.api.quantity import Quantity
from quorate.api.storage import LVMLogicalVolume, LVMVolumeGroup, ReplicatedVolume, ReplicatedVolumeReplica
from quorate.api.storage.drbd import ReplicaType
from quorate.api.storage.llv import LogicalVolumeType, LVMLogicalVolumeSpec
from quorate.api.storage.lvg import LocalGroup, LVMVolumeGroupSpec
from quorate.api.storage.rv import ReplicatedVolumeSpec
from quorate.api.storage.rvr import ReplicatedVolumeReplicaSpec
from quorate.engine.store import Store
from tests.cli.test_controller import PATIENCE, api

DISK = "vg0/replica-web-0-01234567"


async def orphan(*words: str, typed: str = "") -> tuple[int | None, str, str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "quorate", "orphan", *words, stdin=PIPE, stdout=PIPE, stderr=PIPE
    )
    async with asyncio.timeout(PATIENCE):
        out, complaints = await process.communicate(typed.encode())
    assert "Traceback" not in complaints.decode()
    return process.returncode, out.decode(), complaints.decode()


async def reported(store: Store) -> None:
    """A node with a logical volume and a resource of volume ``web``, and one with nothing."""
    for name in ("node-1", "node-2"):
        await store.create(Node(metadata=ObjectMeta(name=name, namespace=names.NAMESPACE)))
    disk = {"id": "uuid-1", "type": "LogicalVolume", "name": DISK, "volumeName": "web", "size": 1 << 30}
    resource = {"id": "drbd/web", "type": "Resource", "name": "web", "volumeName": "web"}
    found = [{**disk, "holdsData": True}, resource]
    await store.patch_status(Node, "node-1", names.NAMESPACE, patch={"orphans": found})


async def asked(store: Store) -> str | None:
    return (await store.get(Node, "node-1", names.NAMESPACE)).metadata.annotations.get(REMOVE_ORPHANS)


async def test_orphans_are_listed(tmp_path: Path) -> None:
    async with api(tmp_path) as store:
        where = ("--kubeconfig", str(tmp_path / "kubeconfig"))
        code, out, _ = await orphan("list", "-o", "json", *where)
        assert (code, json.loads(out)) == (0, [])
        await reported(store)
        code, out, _ = await orphan("list", *where)
        assert code == 0
        assert DISK in out
        _, out, _ = await orphan("list", "-o", "json", *where)
        assert [(each["node"], each["name"]) for each in json.loads(out)] == [("node-1", DISK), ("node-1", "web")]


async def test_one_is_removed_only_when_a_person_has_seen_what_is_lost_and_says_yes(tmp_path: Path) -> None:
    async with api(tmp_path) as store:
        await reported(store)
        where = ("--no-wait", "--kubeconfig", str(tmp_path / "kubeconfig"))
        code, out, _ = await orphan("remove", f"node-1/{DISK}", *where, typed="n\n")
        assert code == 1
        assert "may be the last copy" in out
        assert await asked(store) is None
        code, out, _ = await orphan("remove", f"node-1/{DISK}", *where, typed="y\n")
        assert code == 0
        assert await asked(store) == "uuid-1"
        code, _, _ = await orphan("remove", "node-1/web", "--yes", *where)
        assert code == 0
        assert await asked(store) == "uuid-1,drbd/web"


async def test_waiting_for_one_that_does_not_go_fails_and_says_why(tmp_path: Path) -> None:
    async with api(tmp_path) as store:
        await reported(store)
        words = ("--yes", "--timeout", "0.1", "--kubeconfig", str(tmp_path / "kubeconfig"))
        code, _, complaints = await orphan("remove", "node-1/web", *words)
        assert code == 1
        assert "node-1/web is still there" in complaints


@pytest.mark.parametrize("name", ["node-1/other", "node-2/web", "web"])
async def test_what_is_no_orphan_is_not_removed(tmp_path: Path, name: str) -> None:
    async with api(tmp_path) as store:
        await reported(store)
        code, _, complaints = await orphan("remove", name, "--yes", "--kubeconfig", str(tmp_path / "kubeconfig"))
        assert code == 1
        assert "there is no orphan" in complaints
        assert await asked(store) is None


async def test_an_orphan_that_an_object_claims_is_refused_whatever_its_label_says(tmp_path: Path) -> None:
    """An agent sees objects by their label alone: one without it has an object all the same."""
    async with api(tmp_path) as store:
        await reported(store)
        where = ("--yes", "--kubeconfig", str(tmp_path / "kubeconfig"))
        local = LocalGroup(node_name=NodeName("node-1"))
        group = LVMVolumeGroupSpec(actual_vg_name_on_the_node="vg0", local=local)
        await store.create(LVMVolumeGroup(metadata=ObjectMeta(name="disk"), spec=group))
        piece = LVMLogicalVolumeSpec(
            actual_lv_name_on_the_node=DISK.partition("/")[2],
            type=LogicalVolumeType.THICK,
            size=Quantity("1Gi"),
            lvm_volume_group_name="disk",
        )
        await store.create(LVMLogicalVolume(metadata=ObjectMeta(name="web-0-01234567"), spec=piece))
        code, _, complaints = await orphan("remove", f"node-1/{DISK}", *where)
        assert code == 1
        assert "LVMLogicalVolume web-0-01234567 is its object" in complaints
        replica = ReplicatedVolumeReplicaSpec(
            replicated_volume_name=VolumeName("web"), type=ReplicaType.DISKFUL, node_name=NodeName("node-1")
        )
        await store.create(ReplicatedVolumeReplica(metadata=ObjectMeta(name="web-0"), spec=replica))
        code, _, complaints = await orphan("remove", "node-1/web", *where)
        assert code == 1
        assert "ReplicatedVolumeReplica web-0 is its object" in complaints
        assert await asked(store) is None


async def test_whoever_waits_for_an_empty_volume_is_told_that_it_will_be_empty(tmp_path: Path) -> None:
    async with api(tmp_path) as store:
        await reported(store)
        spec = ReplicatedVolumeSpec(size=Quantity("1Gi"), replicated_storage_class_name="fast")
        await store.create(ReplicatedVolume(metadata=ObjectMeta(name="web"), spec=spec))
        where = ("--no-wait", "--kubeconfig", str(tmp_path / "kubeconfig"))
        _, out, _ = await orphan("remove", f"node-1/{DISK}", *where, typed="n\n")
        assert "formed EMPTY" in out


@pytest.mark.parametrize(
    ("replicas", "said"),
    [
        # Of one copy whose LVMLogicalVolume was lost, the orphan is all there is.
        ({"web-0": ("node-1", ReplicaType.DISKFUL)}, "it may be the disk of web-0"),
        ({"web-1": ("node-2", ReplicaType.DISKFUL)}, "which lives on in web-1."),
        # It has no data.
        ({"web-1": ("node-2", ReplicaType.ACCESS)}, "has no copy on another node"),
    ],
)
async def test_what_lives_on_is_what_other_nodes_have_on_disk(
    tmp_path: Path, replicas: dict[str, tuple[str, ReplicaType]], said: str
) -> None:
    async with api(tmp_path) as store:
        await reported(store)
        spec = ReplicatedVolumeSpec(size=Quantity("1Gi"), replicated_storage_class_name="fast")
        await store.create(ReplicatedVolume(metadata=ObjectMeta(name="web"), spec=spec))
        for name, (node, sort) in replicas.items():
            replica = ReplicatedVolumeReplicaSpec(
                replicated_volume_name=VolumeName("web"), type=sort, node_name=NodeName(node)
            )
            await store.create(ReplicatedVolumeReplica(metadata=ObjectMeta(name=name), spec=replica))
        where = ("--no-wait", "--kubeconfig", str(tmp_path / "kubeconfig"))
        _, out, complaints = await orphan("remove", f"node-1/{DISK}", *where, typed="n\n")
        assert said in out + complaints
