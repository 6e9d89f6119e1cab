"""Whole lives: all levels, thick and thin, all topologies; every loss and partition, growth, replacement, the end."""

from __future__ import annotations

from itertools import combinations

import pytest

from quorate.api import annotation_keys, core
from quorate.api.storage import ReplicatedVolume
from quorate.api.storage.configuration import Replication, Topology
from quorate.engine.simulation import Simulation, run
from quorate.lab import faults
from quorate.lab.layout import Layout
from tests.volumes.attach.stories import ALL, NAMES
from tests.volumes.laboratory import volume_lab

from .life import MIB, NOTICED, D, Life

#: A zone has room for a whole volume and one replica more; of one in several zones each has room for two replicas.
CLUSTERS = {
    Topology.IGNORED: Layout(nodes=5, zones=1, drives=1),
    Topology.ZONAL: Layout(nodes=8, zones=2, drives=1),
    Topology.TRANS_ZONAL: Layout(nodes=6, zones=3, drives=1),
}
SORTS = [
    (level, topology, thin)
    for level in ALL
    for topology in CLUSTERS
    for thin in (False, True)
    if level is not Replication.NONE or topology is Topology.IGNORED  # a single copy has no topology
]
#: Each loses power at another moment of its growth, in seconds after it is asked for.
KINDS = [
    pytest.param(*sort, 0.02 * 1.3**number, id=f"{NAMES[sort[0]]}, {sort[1].value}, {'thin' if sort[2] else 'thick'}")
    for number, sort in enumerate(SORTS)
]


@pytest.mark.parametrize(("replication", "topology", "thin", "moment"), KINDS)
def test_a_life(replication: Replication, topology: Topology, thin: bool, moment: float) -> None:
    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, CLUSTERS[topology]) as lab:
            life = await Life.begin(lab, replication, topology, thin=thin)
            configuration = (await life.volume()).status.configuration
            assert configuration is not None
            await life.check_placement(configuration)
            await every_loss(life)
            await every_zone(life, topology)
            await every_partition(life)
            await growth(life, moment)
            await replacement(life)
            await life.check_placement(configuration)
            await life.check_that_nothing_is_written()
            await end(life)

    run(main, seed=7)


async def every_loss(life: Life) -> None:
    """Each node in turn loses its power."""
    for node in life.home:
        life.lose([node])
        await life.lab.sleep(NOTICED)
        await life.check(f"{node} is down")
        served = await life.writes(f"without {node}")
        assert served == (node != life.user and life.layout.failures_to_tolerate > 0), node
        life.bring_back([node])
        await life.until_whole(f"{node} was down")


async def every_zone(life: Life, topology: Topology) -> None:
    """All nodes of a zone lose their power; a volume in several zones goes on where it is promised."""
    zones: dict[str, list[str]] = {}
    for plan in life.lab.cluster.plans:
        zones.setdefault(plan.zone, []).append(plan.name)
    for zone, nodes in zones.items():
        if not set(nodes) & set(life.home):
            continue
        life.lose(nodes)
        await life.lab.sleep(NOTICED)
        await life.check(f"{zone} is down")
        promised = topology is Topology.TRANS_ZONAL and life.layout.failures_to_tolerate > 0
        if promised and life.user not in nodes:
            assert await life.writes(f"without {zone}"), zone
        life.bring_back(nodes)
        await life.until_whole(f"{zone} was down")


async def every_partition(life: Life) -> None:
    """Links between three nodes are cut in every way, so that sides overlap or do not.

    Whoever uses the volume goes on exactly if those that it is in touch with are enough.
    """
    spare = [name for name in life.lab.cluster.nodes if name not in life.home]
    links = list(combinations([*life.home, *spare][:3], 2))
    for cut in (cut for count in (1, 2, 3) for cut in combinations(links, count)):
        words = f"cut {', '.join('-'.join(link) for link in cut)}"
        for one, other in cut:
            life.lab.cluster.inject(faults.Cut(one, other))
        await life.lab.sleep(NOTICED)
        await life.check(words)
        away = {node for link in cut if life.user in link for node in link} - {life.user}
        assert await life.writes(words) == may_go_on(life, frozenset(life.lab.cluster.nodes) - away), words
        await life.check(words)
        life.lab.cluster.inject(faults.Heal())
        await life.until_whole(words)


def may_go_on(life: Life, side: frozenset[str]) -> bool:
    """Whether those that the user is in touch with have the votes and the copies."""
    copies = [node for node in life.home[: life.layout.diskful] if node in side]
    tie_broken = any(node in side for node in life.home[life.layout.diskful :])
    half = 2 * len(copies) == life.layout.diskful
    votes = 2 * len(copies) > life.layout.diskful or (half and tie_broken)
    return votes and len(copies) >= life.layout.minimum_redundancy


async def growth(life: Life, moment: float) -> None:
    """It grows in use, and a node with a copy loses its power on the way; 2D waits until it is detached."""
    last = (await life.nodes(D))[-1]
    await life.resize("128Mi")
    await life.lab.sleep(moment)
    life.lose([last])
    await life.lab.sleep(NOTICED)
    await life.check("down while it grows")
    life.bring_back([last])
    waits = life.layout.diskful == life.layout.minimum_redundancy > 1
    if waits:
        await life.detach(life.user)

    async def grown() -> bool:
        status = (await life.volume()).status
        return status.actual_size is not None and int(status.actual_size) >= 128 * MIB and not status.comparisons

    await life.lab.until("it has grown", grown, 600)
    if waits:
        await life.attach(life.user)
    await life.until_whole("it grew")


async def replacement(life: Life) -> None:
    """A copy moves away from a node that is to be emptied; 1D only while nobody uses it."""
    node = (await life.nodes(D))[-1]
    alone = life.layout.diskful == 1
    if alone:
        await life.detach(life.user)
    for value in ("true", None):
        patch = {"metadata": {"annotations": {annotation_keys.EVACUATE: value}}}
        await life.lab.store.patch(core.Node, node, patch=patch)
        if value is not None:

            async def left() -> bool:
                there = await life.nodes(D)
                calm = not (await life.volume()).status.datamesh_transitions
                return node not in there and len(there) == life.layout.diskful and calm

            await life.lab.until(f"{node} is empty", left, 600)
            await life.check(f"{node} is empty")
    await life.settle_in()
    if alone:
        await life.attach(life.user)
        await life.until_primary(life.user)
    await life.until_whole("a copy has moved")


async def end(life: Life) -> None:
    """Detached and deleted; nothing is left."""
    await life.detach(life.user)
    await life.until_primary()
    await life.lab.store.delete(ReplicatedVolume, "v")
    await life.lab.until_gone()
    await life.lab.sleep(5)
    await life.check_that_nothing_is_left()
