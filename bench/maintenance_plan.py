"""Plans for a whole cluster of 5,000 nodes with 200,000 replicas, beside plain DSATUR of the same run.

``python -m bench.maintenance_plan``: three clusters that differ in where groups put their parts: in fixed blocks of
eight nodes, one in each of twenty racks, and anywhere.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable, Sequence

from bench.harness import Report, cpu_seconds
from quorate.api.maintenance.action import AvailabilityMode, TenantPolicy
from quorate.api.maintenance.broker_config import BrokerConfigSpec
from quorate.maintenance.model import ClusterModel
from quorate.maintenance.moments import SECOND
from quorate.maintenance.nouns import DriveId, DriveInfo, GroupInfo, NodeInfo, Species, VDiskId, VDiskInfo
from quorate.maintenance.planner.colouring import dsatur
from quorate.maintenance.planner.extraction import problem
from quorate.maintenance.planner.plan import Question, ok_to_stop, plan

NODES, DRIVES, REPLICAS_PER_NODE, RACKS, BLOCK = 5000, 10, 40, 20, 8
NOW = 1_800_000_000 * SECOND

Places = Callable[[random.Random, int], Sequence[int]]


def blocks(chance: random.Random, group: int) -> Sequence[int]:
    first = group % (NODES // BLOCK) * BLOCK
    return range(first, first + BLOCK)


def racks(chance: random.Random, group: int) -> Sequence[int]:
    return [rack + RACKS * chance.randrange(NODES // RACKS) for rack in chance.sample(range(RACKS), BLOCK)]


def anywhere(chance: random.Random, group: int) -> Sequence[int]:
    return chance.sample(range(NODES), BLOCK)


def build(places: Places) -> ClusterModel:
    chance = random.Random(7)
    model = ClusterModel(BrokerConfigSpec())
    for node in range(NODES):
        model.put_node(NodeInfo(id=node, host=f"host-{node}", rack=f"rack-{node % RACKS}"))
        for drive in range(1, DRIVES + 1):
            model.put_drive(DriveInfo(id=DriveId(node, drive)))
    for group in range(NODES * REPLICAS_PER_NODE // BLOCK):
        model.put_group(
            GroupInfo(id=group, species=Species.BLOCK_4_2, vdisks=tuple(_parts(group, places(chance, group), chance)))
        )
    return model


def _parts(group: int, nodes: Iterable[int], chance: random.Random) -> Iterable[VDiskInfo]:
    for domain, node in enumerate(nodes):
        drive = DriveId(node, chance.randint(1, DRIVES))
        yield VDiskInfo(id=VDiskId(group, 1, 0, domain, 0), node=node, drives=(drive,))


def run() -> Report:
    """The figures."""
    report = Report(f"Plans for a whole cluster ({NODES:,} nodes, {NODES * REPLICAS_PER_NODE:,} replicas)")
    for word, places in (("blocks of eight", blocks), ("over twenty racks", racks), ("anywhere", anywhere)):
        model = build(places)
        hosts = tuple(node.host for node in model.nodes())
        mode, policy = AvailabilityMode.MAX_AVAILABILITY, TenantPolicy.DEFAULT
        question = Question(hosts, mode, policy, duration=300 * SECOND, order=1)
        begun = cpu_seconds()
        found = asyncio.run(plan(model, question, NOW))
        took = cpu_seconds() - begun
        numbers = problem(model, hosts, mode, policy)
        baseline = len(dsatur(numbers, numbers.groups_of()))
        report.add(f"groups in {word}: a plan for all", f"{took:.1f} s", "under 10 s", took < 10)
        wanted = found.bound.rounds if places is blocks else baseline
        reach = f"the lower bound, {wanted}" if places is blocks else f"no more than DSATUR's {baseline}"
        rounds = len(found.rounds)
        report.add("its rounds", f"{rounds} (bound {found.bound.rounds}, DSATUR {baseline})", reach, rounds <= wanted)
        begun = cpu_seconds()
        together = asyncio.run(ok_to_stop(model, question, NOW))
        took = cpu_seconds() - begun
        report.add("the largest set that may stop now", f"{len(together.hosts)} hosts, {took:.1f} s", "-")
    return report


if __name__ == "__main__":
    run()
