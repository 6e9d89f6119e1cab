"""Two primaries in the lab: their links are cut in every way; afterwards all copies are alike and nobody is alone."""

from __future__ import annotations

from itertools import combinations

import pytest

from quorate.api import annotation_keys, conditions, core
from quorate.api.conditions.rv import DualPrimaryLinkLost
from quorate.api.meta import ConditionStatus
from quorate.api.storage.configuration import Replication
from quorate.api.storage.drbd import ReplicaType
from quorate.engine.simulation import Simulation, run
from quorate.lab import faults
from tests.volumes.attach.stories import FIVE, Story
from tests.volumes.laboratory import VolumeLab, volume_lab

D = ReplicaType.DISKFUL
MIB = 1024 * 1024
#: Links between the older primary (0), the younger (1) and the third member (2).
LINKS = ((0, 1), (0, 2), (1, 2))
CUTS = [pytest.param(cut, id=str(cut)) for size in (1, 2, 3) for cut in combinations(LINKS, size)]


async def two_primaries(lab: VolumeLab, replication: Replication) -> tuple[Story, list[str]]:
    """A volume that is used on its first two nodes; all nodes with a copy, the older user first."""
    story = await Story.of(lab, replication)
    nodes = await story.nodes(D)
    await story.attach(nodes[0])
    await story.until_primary(nodes[0])
    await story.attach(nodes[1])
    await story.until_primary(nodes[0], nodes[1])
    assert await story.write(nodes[0], "older", 0)
    assert await story.write(nodes[1], "younger", MIB)
    return story, nodes


def in_touch(lab: VolumeLab, nodes: list[str]) -> bool:
    """Whether the two are connected: then they are one side, and both may write."""
    if not all(lab.cluster.node(node).host.powered for node in nodes[:2]):
        return False
    links = lab.cluster.node(nodes[0]).host.kernel.status("v")[0]["connections"]
    return any(link["peer-node-id"] == 1 and link["connection-state"] == "Connected" for link in links)


async def healed(story: Story, nodes: list[str]) -> None:
    """Both are users again, nothing is open, nobody is alone, and all copies are alike."""
    lab = story.lab
    lab.cluster.inject(faults.Heal())
    await story.until_primary(nodes[0], nodes[1], patience=600)
    await story.until_calm(600)
    found = conditions.find((await story.volume()).status.conditions, DualPrimaryLinkLost)
    assert found is not None
    assert found.status is ConditionStatus.FALSE
    for place in range(0, 8 * MIB, MIB):
        assert len(set(story.copies(place).values())) == 1
    for node in nodes:
        status = lab.cluster.node(node).host.kernel.status("v")[0]
        assert [link["connection-state"] for link in status["connections"]] == ["Connected"] * (len(nodes) - 1)


@pytest.mark.parametrize("cut", CUTS)
def test_on_3d_however_the_links_are_cut_at_most_one_writes_once_the_guard_has_acted(
    cut: tuple[tuple[int, int], ...],
) -> None:
    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, FIVE) as lab:
            story, nodes = await two_primaries(lab, Replication.CONSISTENCY_AND_AVAILABILITY)
            for one, other in cut:
                lab.cluster.inject(faults.Cut(nodes[one], nodes[other]))
            for node in nodes[:2]:
                story.begin_write(node, f"early {node}", 2 * MIB)
            await lab.sleep(30)
            late = {}
            for at, node in enumerate(nodes[:2]):
                if node in story.primaries():
                    late[node] = await story.write(node, f"late {node}", (4 + at) * MIB)
            assert sum(late.values()) <= (2 if in_touch(lab, nodes) else 1)
            if (0, 1) in cut and len(cut) == 1:
                # Only their own link: the older goes on.
                assert late[nodes[0]]
                assert not late.get(nodes[1], False)
                found = conditions.find((await story.volume()).status.conditions, DualPrimaryLinkLost)
                assert found is not None
                assert found.status is ConditionStatus.TRUE
            await healed(story, nodes)
            for at, node in enumerate(nodes[:2]):
                if late.get(node):
                    assert set(story.copies((4 + at) * MIB).values()) == {f"late {node}"}
            assert set(story.copies(0).values()) == {"older"}
            assert set(story.copies(MIB).values()) == {"younger"}

    run(main, seed=1)


@pytest.mark.parametrize("lost", [0, 1, 2])
def test_on_3d_a_node_that_is_cut_off_from_everything_costs_no_acknowledged_write(lost: int) -> None:
    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, FIVE) as lab:
            story, nodes = await two_primaries(lab, Replication.CONSISTENCY_AND_AVAILABILITY)
            lab.cluster.inject(faults.Isolate(nodes[lost]))
            await lab.sleep(60)
            late = {
                node: await story.write(node, f"late {node}", (4 + at) * MIB)
                for at, node in enumerate(nodes[:2])
                if node in story.primaries()
            }
            assert sum(late.values()) <= (2 if in_touch(lab, nodes) else 1)
            await healed(story, nodes)
            for at, node in enumerate(nodes[:2]):
                if late.get(node):
                    assert set(story.copies((4 + at) * MIB).values()) == {f"late {node}"}

    run(main, seed=2)


def test_on_2d_a_cut_stops_both_and_they_come_back() -> None:
    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, FIVE) as lab:
            story, nodes = await two_primaries(lab, Replication.CONSISTENCY)
            lab.cluster.inject(faults.Cut(nodes[0], nodes[1]))
            await lab.sleep(30)
            writes = [await story.write(node, "late", 4 * MIB) for node in nodes if node in story.primaries()]
            assert not any(writes)
            await healed(story, nodes)
            said = {event.reason: (event.type, event.count) for event in (await lab.store.list(core.Event)).items}
            assert said["LinkLost"] == ("Warning", 1)
            assert said["CopiesAgree"] == ("Normal", 1)

    run(main, seed=3)


@pytest.mark.parametrize("lost", [0, 1, 2])
def test_on_3d_power_that_is_lost_anywhere_costs_no_acknowledged_write(lost: int) -> None:
    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, FIVE) as lab:
            story, nodes = await two_primaries(lab, Replication.CONSISTENCY_AND_AVAILABILITY)
            lab.cluster.inject(faults.NodeDown(nodes[lost]))
            await lab.sleep(60)
            late = {
                node: await story.write(node, f"late {node}", (4 + at) * MIB)
                for at, node in enumerate(nodes[:2])
                if node in story.primaries()
            }
            assert sum(late.values()) <= (2 if in_touch(lab, nodes) else 1)
            lab.cluster.inject(faults.NodeUp(nodes[lost]))
            await healed(story, nodes)
            assert set(story.copies(0).values()) == {"older"}
            for at, node in enumerate(nodes[:2]):
                if late.get(node):
                    assert set(story.copies((4 + at) * MIB).values()) == {f"late {node}"}

    run(main, seed=4)


def test_a_copy_is_moved_while_two_use_the_volume_and_neither_is_thrown_out() -> None:
    """M29: who joins and who leaves is hidden, and its links come and go."""

    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, FIVE) as lab:
            story, nodes = await two_primaries(lab, Replication.CONSISTENCY_AND_AVAILABILITY)
            evacuate = {"metadata": {"annotations": {annotation_keys.EVACUATE: "true"}}}
            await lab.store.patch(core.Node, nodes[2], patch=evacuate)
            for _ in range(60):
                await lab.sleep(0.5)
                assert sorted(story.primaries()) == sorted(nodes[:2])
            assert nodes[2] not in await story.nodes(D)
            assert len(await story.nodes(D)) == 3
            assert await story.write(nodes[1], "still", MIB)

    run(main, seed=1)
