"""A growth that was refused for want of space is tried again when there is space."""

from __future__ import annotations

from quorate.api.longhorn import DiskSchedule
from quorate.api.storage import ReplicatedVolume
from quorate.api.storage.configuration import Replication
from quorate.engine.simulation import Simulation, run
from quorate.lab.layout import Layout
from tests.volumes.attach.stories import SETTLED
from tests.volumes.laboratory import volume_lab


def test_a_volume_grows_when_another_one_on_its_disk_is_deleted() -> None:
    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, Layout(nodes=1)) as lab:
            name = await lab.provide(Replication.NONE)
            await lab.sleep(SETTLED)
            ledgers = (await lab.store.list(DiskSchedule)).items
            space = min(int(each.status.storage_available) for each in ledgers)
            await lab.create("v", name)
            await lab.create("big", name, str(space * 8 // 10))
            await lab.until_ready()
            await lab.until_ready("big")
            asked = space // 2
            await lab.store.patch(ReplicatedVolume, "v", patch={"spec": {"size": str(asked)}})
            await lab.sleep(60)
            assert "NoSpace" in (await lab.volume()).status.message
            await lab.store.delete(ReplicatedVolume, "big")
            await lab.until_gone("big")

            async def grown() -> bool:
                return int((await lab.volume()).status.actual_size or 0) >= asked

            await lab.until("it has grown", grown, 120)

    run(main, seed=5)
