"""2D+1TB whose copies do not see one another: a person names the side to keep, and the other goes."""

from __future__ import annotations

import pytest

from quorate.api import annotation_keys
from quorate.api.storage import ReplicatedVolume
from quorate.api.storage.configuration import Replication
from quorate.api.storage.drbd import ReplicaType
from quorate.cli.volume import keep_copy
from quorate.engine.simulation import Simulation, run
from quorate.errors import QuorateError
from quorate.lab import faults
from quorate.lab.layout import Layout
from tests.support.faults import Sent
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
            await lab.until("another copy is in its place", lambda: _is_whole_without(story, lost), 900)
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


@pytest.mark.parametrize("returns", [True, False], ids=["it returns", "it is gone for good"])
@pytest.mark.parametrize("keeps_quorate", [True, False], ids=["the quorate side", "the other side"])
def test_a_copy_that_gave_way_is_kept_while_the_one_it_gave_way_for_is_away(keeps_quorate: bool, returns: bool) -> None:
    """The copy to keep loses power after the other went down for it: the other's is the only one left."""

    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, Layout(nodes=5)) as lab:
            story = await Story.of(lab, Replication.AVAILABILITY)
            one, other = await story.nodes(D)
            [tie] = await story.nodes(TB)
            await story.attach(one)
            await story.until_primary(one)
            assert await story.write(one, "before")
            await story.detach(one)
            await story.until_primary()
            for peer in (one, tie):
                lab.cluster.inject(faults.Cut(other, peer))
            await lab.sleep(60)
            kept, lost = (one, other) if keeps_quorate else (other, one)
            off = False

            def power_off(write: Sent) -> None:
                nonlocal off
                [volume] = [record.typed for record in lab.store.read_page(ReplicatedVolume.KIND).records]
                assert isinstance(volume, ReplicatedVolume)
                steps = [step for each in volume.status.datamesh_transitions for step in each.steps]
                if not off and any(step.name == "GiveWay" and step.status.value == "Active" for step in steps):
                    off = True
                    lab.cluster.inject(faults.NodeDown(kept))

            lab.watcher = power_off
            await keep_copy(lab.store, "v", kept, True)
            await lab.sleep(600)
            lab.watcher = None
            assert off
            volume = await story.volume()
            given_way = next(each for each in volume.status.datamesh.members if each.node_name == lost)
            assert given_way.down
            assert not given_way.hidden
            assert f"on {lost} has given way for" in volume.status.message
            assert story.copies()[lost] == "before"
            if returns:
                lab.cluster.inject(faults.NodeUp(kept))
                await lab.until("the named side is kept", lambda: _is_whole_without(story, lost), 900)
                await story.attach(kept)
                await story.until_primary(kept)
                assert await story.write(kept, "goes on", 4096)
                assert story.copies()[kept] == "before"
                return
            # The word is taken back, and said of the one that is gone instead.
            said: dict[str, str | None] = {annotation_keys.FORCE_REMOVE: None, annotation_keys.ACCEPT_DATA_LOSS: None}
            await lab.store.patch(ReplicatedVolume, "v", patch={"metadata": {"annotations": said}})
            await lab.sleep(60)
            volume = await story.volume()
            assert not any(each.down for each in volume.status.datamesh.members)
            for peer in (one, tie):
                lab.cluster.inject(faults.Heal(other, peer))
            await lab.sleep(60)
            await keep_copy(lab.store, "v", lost, True)
            await lab.until("the copy that is left is kept", lambda: _is_whole_without(story, kept), 900)
            await story.attach(lost)
            await story.until_primary(lost)
            assert await story.write(lost, "goes on", 4096)
            # Its object was deleted by the first word, so new copies have taken its place, or are about to.
            held = [
                each for each in (await story.volume()).status.datamesh.members if each.type is D and not each.hidden
            ]
            assert {story.copies()[each.node_name] for each in held} == {"before"}

    run(main, seed=3)


async def _is_whole_without(story: Story, lost: str) -> bool:
    volume = await story.volume()
    copies = [each.node_name for each in volume.status.datamesh.members if each.type is D and not each.hidden]
    return lost not in copies and len(copies) == 2 and not volume.metadata.annotations
