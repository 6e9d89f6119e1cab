"""The files can be applied as they are, and say what their text says of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from quorate.api import all_kinds
from quorate.api.storage import (
    LVMVolumeGroup,
    ReplicatedStorageClass,
    ReplicatedStoragePool,
    ReplicatedVolume,
    ReplicatedVolumeAttachment,
)
from quorate.api.storage.configuration import Replication
from quorate.engine.embedded import EmbeddedStore
from quorate.engine.simulation import Simulation, run
from quorate.lab.layout import Layout, object_name
from tests.examples.files import DIRECTORY, FILES, apply, resources

LAYOUT = Layout(nodes=6, zones=3)
EVERYTHING = [obj for file in FILES for obj in resources(file)]


def test_the_schema_takes_them_all() -> None:
    async def main(sim: Simulation) -> None:
        store = await EmbeddedStore.open(
            None, kinds=all_kinds(), clock=sim.clock, random=sim.random("store"), inline=True
        )
        for file in FILES:
            await apply(store, file)
        await store.close()

    run(main, seed=1)


def test_they_name_only_what_quorate_up_with_six_nodes_has_or_they_bring() -> None:
    nodes = [plan.name for plan in LAYOUT.plans()]
    groups = {object_name(node, str(slot)) for node in nodes for slot in range(1, LAYOUT.drives + 1)}
    pools = {obj.name for obj in EVERYTHING if isinstance(obj, ReplicatedStoragePool)}
    classes = {obj.name for obj in EVERYTHING if isinstance(obj, ReplicatedStorageClass)}
    volumes = {obj.name for obj in EVERYTHING if isinstance(obj, ReplicatedVolume)}
    for obj in EVERYTHING:
        match obj:
            case LVMVolumeGroup():
                assert obj.name in groups
                assert obj.spec.local.node_name in nodes
            case ReplicatedStoragePool():
                assert {group.name for group in obj.spec.lvm_volume_groups} <= groups
            case ReplicatedStorageClass():
                assert obj.spec.storage_pool in pools
            case ReplicatedVolume():
                assert obj.spec.replicated_storage_class_name in classes
                assert set(obj.spec.publish_on) <= set(nodes)
            case ReplicatedVolumeAttachment():
                assert obj.spec.replicated_volume_name in volumes
                assert obj.spec.node_name in nodes
            case _:
                pytest.fail(f"{obj.KIND.name} {obj.name}: what is it for?")


def test_there_is_a_class_and_a_volume_of_every_level() -> None:
    levels = {obj.name: obj.spec.replication for obj in EVERYTHING if isinstance(obj, ReplicatedStorageClass)}
    assert set(levels.values()) == set(Replication)
    used = {obj.spec.replicated_storage_class_name for obj in EVERYTHING if isinstance(obj, ReplicatedVolume)}
    assert used == set(levels)


def test_the_walk_mentions_every_file_and_no_other() -> None:
    walk = (DIRECTORY / "README.md").read_text()
    assert set(re.findall(r"examples/([\w-]+\.yaml)", walk)) == set(FILES)


def test_nothing_else_is_in_the_directory() -> None:
    assert {path.name for path in Path(DIRECTORY).iterdir() if path.is_file()} == {*FILES, "README.md"}
