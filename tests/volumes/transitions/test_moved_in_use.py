"""Who uses a volume on a node that goes away, or is to be emptied: nothing is deleted that could not be taken back."""

from __future__ import annotations

import pytest

from quorate.api.storage.configuration import Replication
from quorate.engine.simulation import Simulation, run
from quorate.lab import faults
from quorate.placement.layout import LEVELS
from tests.volumes.attach.stories import FIVE, Story
from tests.volumes.laboratory import volume_lab
from tests.volumes.transitions.test_in_the_lab import evacuate, until_without

BOTH, AVAILABILITY = Replication.CONSISTENCY_AND_AVAILABILITY, Replication.AVAILABILITY


@pytest.mark.parametrize("replication", [BOTH, AVAILABILITY], ids=lambda level: str(LEVELS[level]))
def test_a_user_without_a_disk_that_comes_back_after_its_grace_goes_on_with_the_replica_it_had(
    replication: Replication,
) -> None:
    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, FIVE) as lab:
            story = await Story.of(lab, replication)
            user = await story.free_node()
            await story.attach(user)
            await story.until_primary(user)
            await story.until_calm()
            before = await story.replica_on(user)
            lab.cluster.inject(faults.NodeDown(user))
            await lab.sleep(1200)
            lab.cluster.inject(faults.NodeUp(user))
            await story.until_primary(user)
            await lab.until_ready()
            after = await story.replica_on(user)
            assert before is not None
            assert after is not None
            assert (after.metadata.uid, after.deleting) == (before.metadata.uid, False)

    run(main, seed=4)


def test_a_node_to_be_emptied_keeps_what_is_in_use_until_it_is_detached_and_says_so() -> None:
    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, FIVE) as lab:
            story = await Story.of(lab, BOTH)
            user = await story.free_node()
            await story.attach(user)
            await story.until_primary(user)
            await evacuate(lab, user)
            await lab.sleep(120)
            volume = await lab.until_ready()
            assert "stays until it is detached there" in volume.status.message
            await evacuate(lab, user, None)
            await lab.sleep(120)
            assert (await lab.until_ready()).status.message == ""
            await evacuate(lab, user)
            await story.detach(user)
            await until_without(lab, user, BOTH)

    run(main, seed=4)
