"""Invariant 7: taking down all that is permitted, at once, leaves every volume writable that is in use elsewhere.

Each round of a history breaks something, moves something, asks for much in MAX and KEEP mode, lets the controller be
killed now and then, and at some moment takes down every permitted host together. What counts is what the kernels then
say, not what any object does.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from random import Random

from quorate.api.annotation_keys import EVACUATE
from quorate.api.core import Node
from quorate.api.maintenance import BrokerConfig
from quorate.api.maintenance.action import AvailabilityMode
from quorate.api.meta import ObjectMeta
from quorate.api.storage import ReplicatedStorageClass, ReplicatedVolume
from quorate.api.storage.configuration import Replication
from quorate.api.storage.rsc import ReplicatedStorageClassSpec
from quorate.engine.simulation import Simulation, for_each_seed
from quorate.lab import faults
from quorate.lab.layout import Layout
from quorate.lab.truth import ReplicaTruth, truth_of
from quorate.maintenance import messages
from quorate.maintenance.moments import SECOND
from tests.maintenance.live.laboratory import ALICE, KEEP, MAX, REPLACE, BrokerLab, broker_lab
from tests.volumes.laboratory import POOL, NeverHappened

ROUNDS = 3
#: The drive that all volumes lie on, of every node.
SLOT, DRIVE = "1", "/dev/nvme0n1"
LEVELS = (
    Replication.AVAILABILITY,
    Replication.CONSISTENCY_AND_AVAILABILITY,
    Replication.CONSISTENCY,
    Replication.AVAILABILITY,
    Replication.CONSISTENCY_AND_AVAILABILITY,
)


@dataclass
class History:
    """One cluster's, with all its chance from one seed."""

    lab: BrokerLab
    chance: Random
    volumes: list[str] = field(default_factory=list)
    #: Hosts whose drive may be pulled.
    drives: set[str] = field(default_factory=set)
    granted: int = 0
    refused: int = 0
    taken_down: int = 0

    @property
    def nodes(self) -> list[str]:
        return sorted(self.lab.cluster.nodes)

    async def prepare(self) -> None:
        """Volumes of every level, most of them in use, and no limits but theirs."""
        limits = {"disabledNodesRatioLimit": 0}
        await self.lab.store.patch(
            BrokerConfig, "broker", patch={"spec": {"clusterLimits": limits, "tenantLimits": limits}}
        )
        first = await self.lab.provide(Replication.AVAILABILITY)
        for level in sorted({*LEVELS} - {Replication.AVAILABILITY}):
            spec = ReplicatedStorageClassSpec(storage_pool=POOL, replication=level, topology="Ignored")  # type: ignore[arg-type]
            await self.lab.store.create(
                ReplicatedStorageClass(metadata=ObjectMeta(name=level.value.lower()), spec=spec)
            )
        assert first == "availability"
        for number, level in enumerate(LEVELS):
            name = f"v{number}"
            self.volumes.append(name)
            await self.lab.create(name, level.value.lower())
        for name in self.volumes:
            await self.lab.until_ready(name)

    async def play(self) -> None:
        for _ in range(ROUNDS):
            await self.attach_somewhere()
            down = await self.break_something()
            await self.move_something()
            permitted = await self.ask_for_much(down)
            await self.take_down(permitted, down)
            await self.mend(permitted)

    async def attach_somewhere(self) -> None:
        for name in self.volumes:
            where = self.chance.choice(self.nodes) if self.chance.random() < 0.8 else None
            wanted = [where] if where is not None else []
            await self.lab.store.patch(ReplicatedVolume, name, patch={"spec": {"publishOn": wanted}})
        await self.lab.sleep(self.chance.choice((5, 40)))

    async def break_something(self) -> set[str]:
        """Perhaps a node that is dead, cut off from the API or from everybody."""
        if self.chance.random() < 0.5:
            return set()
        victim = self.chance.choice(self.nodes)
        fault = self.chance.choice((faults.NodeDown(victim), faults.CutApi(victim), faults.Isolate(victim)))
        self.lab.cluster.inject(fault)
        await self.lab.sleep(self.chance.choice((3, 30, 60, 700)))
        return {victim}

    async def move_something(self) -> None:
        """Perhaps replicas that are on their way elsewhere: members change while permissions are asked for."""
        if self.chance.random() < 0.6:
            node = self.chance.choice(self.nodes)
            await self.lab.store.patch(Node, node, patch={"metadata": {"annotations": {EVACUATE: "true"}}})
            await self.lab.sleep(self.chance.random() * 20)

    async def ask_for_much(self, down: set[str]) -> set[str]:
        permitted: set[str] = set()
        for number in range(6):
            hosts = self.chance.sample(self.nodes, self.chance.choice((1, 1, 2, 4)))
            mode = self.chance.choice((MAX, KEEP))
            # Drives only of hosts that everybody reaches: what is broken already is no drive's fault.
            whole = [host for host in hosts if host not in down]
            if self.chance.random() < 0.25 and whole:
                answer = await self.ask_for_drive(whole[0], mode)
                self.drives |= {found.action.host for found in answer.permissions}
            else:
                answer = await self.lab.ask(*hosts, mode=mode, partial=True, duration=3600)
                permitted |= {found.action.host for found in answer.permissions}
            self.granted += len(answer.permissions)
            self.refused += len(answer.refused)
            if self.chance.random() < 0.15 and number < 5:
                self.lab.kill()
                await self.lab.sleep(1)
                self.lab.start()
                await self.lab.until_serving()
            await self.lab.sleep(self.chance.random() * 8)
        in_force = {entry.action.host for entry in self.lab.broker_of.broker.ledger.permissions}
        assert permitted | self.drives == in_force
        return permitted

    async def ask_for_drive(self, host: str, mode: AvailabilityMode) -> messages.PermissionResponse:
        """May the drive that volumes are on be pulled?"""
        action = messages.Action(type=REPLACE, host=host, devices=(DRIVE,), duration=3600 * SECOND)
        asked = messages.PermissionRequest(user="alice", actions=(action,), availability_mode=mode)
        return await self.lab.broker_of.broker.permission_request(asked, ALICE)

    async def take_down(self, permitted: set[str], down: set[str]) -> None:
        """All at once; whoever used a volume on a host that stays up, and could, still can."""
        before = self.in_use()
        self.taken_down += len(permitted)
        for host in sorted(permitted - down):
            self.lab.cluster.inject(faults.NodeDown(host))
        self.taken_down += len(self.drives)
        for host in sorted(self.drives - permitted):
            self.lab.cluster.inject(faults.DrivePull(host, SLOT))
        for seconds in (1, 5, 30):
            await self.lab.sleep(seconds)
            now = self.in_use()
            for (host, volume), truth in before.items():
                if host in permitted | down or not truth.quorum:
                    continue
                found = now.get((host, volume))
                assert found is None or found.quorum, (
                    f"{volume} cannot be written to on {host} any more: {found}; permitted were {sorted(permitted)}, "
                    f"drives of {sorted(self.drives)}, broken was {sorted(down)}"
                )

    def in_use(self) -> dict[tuple[str, str], ReplicaTruth]:
        """Primaries, as the kernels have them."""
        return {
            (node.name, replica.resource): replica
            for node in truth_of(self.lab.cluster).nodes
            for replica in node.replicas
            if replica.role == "Primary"
        }

    async def mend(self, permitted: set[str]) -> None:
        lab = self.lab
        lab.cluster.inject(faults.Heal())
        for host in sorted(self.drives - permitted):
            lab.cluster.inject(faults.DriveInsert(host))
        self.drives.clear()
        for node in self.nodes:
            if not lab.cluster.nodes[node].host.powered:
                lab.cluster.inject(faults.NodeUp(node))
            await lab.store.patch(Node, node, patch={"metadata": {"annotations": {EVACUATE: None}}})
        await lab.until_serving()
        ids = tuple(entry.id for entry in lab.broker_of.broker.ledger.permissions)
        done = messages.ManagePermission(command=messages.PermissionCommand.DONE, user="alice", permissions=ids)
        assert (await lab.broker_of.broker.manage_permission(done, ALICE)).status.code == "OK"
        for name in self.volumes:  # a replica that is to go does not while it is in use
            await lab.store.patch(ReplicatedVolume, name, patch={"spec": {"publishOn": []}})
        for name in self.volumes:  # that all of them heal is shown elsewhere; here the next round goes on in any case
            with suppress(NeverHappened):
                await lab.until_ready(name, 300)


def test_taking_down_all_that_is_permitted_leaves_volumes_in_use_writable() -> None:
    totals = {"granted": 0, "refused": 0, "taken down": 0}

    async def main(sim: Simulation) -> None:
        async with broker_lab(sim, Layout(nodes=7)) as lab:
            history = History(lab, sim.random("history"))
            await history.prepare()
            await history.play()
            totals["granted"] += history.granted
            totals["refused"] += history.refused
            totals["taken down"] += history.taken_down

    for_each_seed(main, range(2))
    # A campaign that grants nothing, or everything, shows nothing.
    assert totals["granted"] > 6, totals
    assert totals["refused"] > 6, totals
