"""Many drives fail at once: what is moved, how long it takes, and whether any limit is exceeded meanwhile."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field

from quorate.api import core, labels
from quorate.api.baremetal import Drive
from quorate.api.baremetal.drive import OperationalStatus
from quorate.api.cluster_config import DrainLimits
from quorate.api.storage import LVMVolumeGroup
from quorate.api.storage.configuration import Replication
from quorate.engine.simulation import Simulation
from quorate.lab.kernel.block import BLOCK
from quorate.lab.kernel.resync import RATE
from quorate.lab.layout import Layout

from .laboratory import SETTLED, DriveLab, drive_lab

LIMITS = DrainLimits()
#: Seconds between two looks at what the kernels copy.
LOOK = 1.0


@dataclass(frozen=True, slots=True)
class Scale:
    """How many of what."""

    nodes: int
    drives: int
    volumes: int
    failing: int
    nodes_in_rack: int = 5
    size: int = 1 << 28

    @property
    def layout(self) -> Layout:
        return Layout(nodes=self.nodes, drives=self.drives)


@dataclass
class Outcome:
    """What came of it."""

    #: Replicas that lay on the failing drives, and those made instead of them.
    to_move: int = 0
    made: int = 0
    seconds: float = 0.0
    #: The least: every replica once, as many at a time as the limits allow, at the speed of a link.
    least_seconds: float = 0.0
    most_at_once: int = 0
    most_to_a_node: int = 0
    most_to_a_rack: int = 0
    troubles: list[str] = field(default_factory=list)


async def many_drives_fail(sim: Simulation, scale: Scale) -> Outcome:
    """All of them at the same moment; everything else of the cluster is well."""
    outcome = Outcome()
    async with drive_lab(sim, scale.layout) as lab:
        await _formed(lab, scale)
        failing = await _chosen(lab, sim, scale)
        before = {each.name for each in await lab.lab.replicas()}
        groups = {
            group.name
            for group in (await lab.store.list(LVMVolumeGroup)).items
            if any(device.drive_uuid in failing for device in group.status.devices)
        }
        outcome.to_move = sum(each.spec.lvm_volume_group_name in groups for each in await lab.lab.replicas())
        began = sim.clock.monotonic()
        for drive in failing.values():
            await lab.annotate(drive, health="BAD")
        looking = asyncio.create_task(_look(lab, outcome))
        try:
            for drive in failing.values():
                await lab.until_phase(drive, OperationalStatus.RELEASED, patience=20_000)
        finally:
            looking.cancel()
        outcome.seconds = sim.clock.monotonic() - began
        copied = outcome.to_move * scale.size / (BLOCK * RATE)
        outcome.least_seconds = copied / LIMITS.max_moves
        outcome.made = sum(each.name not in before for each in await lab.lab.replicas())
        for number in range(scale.volumes):
            name = "v" if not number else f"v{number}"
            if len(lab.up_to_date(name)) != 3:
                outcome.troubles.append(f"{name} has {lab.up_to_date(name)}")
        kept = [each for each in await lab.lab.replicas() if each.spec.lvm_volume_group_name in groups]
        if any(not each.deleting for each in kept):
            outcome.troubles.append("something is still on a drive that was released")
    return outcome


async def _formed(lab: DriveLab, scale: Scale) -> None:
    name = await lab.provide(Replication.CONSISTENCY_AND_AVAILABILITY, range(1, scale.drives + 1))
    await lab.sleep(SETTLED)
    for number in range(scale.nodes):
        said = {"metadata": {"labels": {labels.RACK: f"rack-{number // scale.nodes_in_rack}"}}}
        await lab.store.patch(core.Node, f"node-{number + 1}", patch=said)
    for number in range(scale.volumes):
        await lab.lab.create("v" if not number else f"v{number}", name, str(scale.size))
        if number % 20 == 19:
            await lab.sleep(5)
    for number in range(scale.volumes):
        await lab.lab.until_ready("v" if not number else f"v{number}", patience=6000)


async def _chosen(lab: DriveLab, sim: Simulation, scale: Scale) -> dict[str, Drive]:
    drives = sorted((await lab.store.list(Drive)).items, key=lambda each: each.name)
    return {each.name: each for each in sim.random("failing").sample(drives, scale.failing)}


async def _look(lab: DriveLab, outcome: Outcome) -> None:
    """What is being copied, by the kernels themselves."""
    racks = {node.name: node.metadata.labels.get(labels.RACK, "") for node in (await lab.store.list(core.Node)).items}
    while True:
        lab.lab.cluster.driver.catch_up()
        targets: Counter[str] = Counter()
        for name, node in lab.lab.cluster.nodes.items():
            for resource in node.host.kernel.status():
                states = [
                    peer["replication-state"] for link in resource["connections"] for peer in link["peer_devices"]
                ]
                targets[name] += any(state.startswith("SyncTarget") for state in states)
        by_rack: Counter[str] = Counter()
        for name, count in targets.items():
            by_rack[racks[name]] += count
        outcome.most_at_once = max(outcome.most_at_once, sum(targets.values()))
        outcome.most_to_a_node = max(outcome.most_to_a_node, *targets.values())
        outcome.most_to_a_rack = max(outcome.most_to_a_rack, *by_rack.values())
        await lab.sleep(LOOK)
