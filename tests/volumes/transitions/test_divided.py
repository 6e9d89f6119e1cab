"""2D+1TB whose copies do not see one another: a person names the side to keep, and the other goes."""

from __future__ import annotations

import pytest

from quorate.api.storage.configuration import Replication
from quorate.api.storage.drbd import ReplicaType
from quorate.cli.volume import keep_copy
from quorate.engine.simulation import Simulation, run
from quorate.errors import QuorateError
from quorate.lab import faults
from quorate.lab.layout import Layout
from tests.volumes.attach.stories import Story
from tests.volumes.laboratory import volume_lab

D, TB = ReplicaType.DISKFUL, ReplicaType.TIE_BREAKER


@pytest.mark.parametrize("used", [True, False], ids=["in use", "unused"])
@pytest.mark.parametrize("keeps_quorate", [True, False], ids=["the quorate side", "the other side"])
def test_the_side_that_is_named_goes_on_and_gets_another_copy(used: bool, keeps_quorate: bool) -> None:
    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, Layout(nodes=5)) as lab:
            story = await Story.of(lab, Replication.AVAILABILITY)
            one, other = await story.nodes(D)
            [tie] = await story.nodes(TB)
            await story.attach(one)
            await story.until_primary(one)
            assert await story.write(one, "before")
            if not used or not keeps_quorate:
                await story.detach(one)
                await story.until_primary()
            with pytest.raises(QuorateError, match="no copy stands in the way"):
                await keep_copy(lab.store, "v", one, True)
            for peer in (one, tie):
                lab.cluster.inject(faults.Cut(other, peer))
            await lab.sleep(60)
            kept, lost = (one, other) if keeps_quorate else (other, one)
            asked = await keep_copy(lab.store, "v", kept, False)
            assert asked["message"].startswith(f"the copy on {kept} is kept, and v-{int(keeps_quorate)} on {lost} is")
            assert (await story.volume()).metadata.annotations == {}
            await keep_copy(lab.store, "v", kept, True)

            async def whole() -> bool:
                volume = await story.volume()
                copies = [
                    each.node_name for each in volume.status.datamesh.members if each.type is D and not each.hidden
                ]
                return lost not in copies and len(copies) == 2 and not volume.metadata.annotations

            await lab.until("another copy is in its place", whole, 900)
            if used and keeps_quorate:
                assert story.primaries() == [kept]
            else:
                await story.attach(kept)
                await story.until_primary(kept)
            assert await story.write(kept, "goes on", 4096)
            assert set(story.copies().values()) >= {"before"}
            for peer in (one, tie):
                lab.cluster.inject(faults.Heal(other, peer))
            await lab.sleep(120)
            assert story.primaries() == [kept]
            assert await story.write(kept, "mended", 8192)

    run(main, seed=3)
