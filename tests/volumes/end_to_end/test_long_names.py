"""A name may be longer than the value of a label: everything still finds what belongs to it."""

from __future__ import annotations

from quorate.api.meta import ObjectMeta
from quorate.api.storage import LVMLogicalVolume, ReplicatedStorageClass, ReplicatedVolume
from quorate.api.storage.configuration import Replication
from quorate.engine.simulation import Simulation, run
from quorate.lab.layout import Layout
from tests.volumes.laboratory import volume_lab

#: The longest that the door lets in, with a dot where a shortened label would end.
VOLUME = f"{'a' * 53}.{'b' * 66}"
CLASS = "c" * 100


def test_a_volume_with_the_longest_name_of_a_class_with_a_long_one_is_made_and_deleted() -> None:
    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, Layout(nodes=2, zones=1, drives=1)) as lab:
            short = await lab.store.get(ReplicatedStorageClass, await lab.provide(Replication.CONSISTENCY))
            await lab.store.create(ReplicatedStorageClass(metadata=ObjectMeta(name=CLASS), spec=short.spec))
            await lab.create(VOLUME, CLASS)
            assert len(VOLUME) == 120
            await lab.until_ready(VOLUME)
            await lab.store.delete(ReplicatedVolume, VOLUME)
            await lab.until_gone(VOLUME)
            assert not (await lab.store.list(LVMLogicalVolume)).items

    run(main, seed=3)
