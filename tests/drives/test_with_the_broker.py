"""Drives and the real broker: no drive is taken while its host may go down; the broker's markers start it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from quorate import drives
from quorate.api import all_kinds, annotation_keys, core, names
from quorate.api.baremetal.drive import OperationalStatus
from quorate.api.maintenance import Permission, PermissionRequest
from quorate.api.maintenance.action import Marker
from quorate.api.storage.configuration import Replication
from quorate.drives.view import USER
from quorate.engine.embedded import EmbeddedStore
from quorate.engine.simulation import Simulation, run
from quorate.lab import faults
from quorate.lab.cluster import Cluster
from quorate.lab.delivery import deliver
from quorate.lab.layout import Layout
from quorate.maintenance.messages import Caller, MarkedItems, SetMarker
from tests.maintenance.live.laboratory import BrokerLab

from .laboratory import DriveLab

BOTH = Replication.CONSISTENCY_AND_AVAILABILITY
OPERATIVE, RELEASING, RELEASED, FAILED, REMOVING, REMOVED = OperationalStatus


@asynccontextmanager
async def both(sim: Simulation, layout: Layout) -> AsyncIterator[tuple[DriveLab, BrokerLab]]:
    """Everything that a leader runs, the broker included."""
    store = await EmbeddedStore.open(None, kinds=all_kinds(), clock=sim.clock, random=sim.random("store"), inline=True)
    cluster = Cluster(layout, clock=sim.clock, seed=sim.seed)
    lab = BrokerLab(sim, store, cluster, sim.process("network"), more=drives.CONTROLLERS)
    await deliver(store, cluster.plans)
    lab.start()
    async with cluster.running(lab._store_of):
        await lab.until_serving()
        yield DriveLab(lab), lab
        assert not [why for node in cluster.nodes.values() for why in node.agent_failures]
    lab.kill()
    await lab.sleep(5)
    await store.close()


def test_a_drive_is_not_taken_while_its_host_may_go_down() -> None:
    async def main(sim: Simulation) -> None:
        async with both(sim, Layout(nodes=6)) as (lab, broker):
            await lab.volumes(1, BOTH)
            node = await lab.node_of("v-0")
            drive = await lab.drive(node)
            await lab.annotate(drive, health="BAD")
            await lab.until_phase(drive, RELEASED)
            # Alice restarts the host; the drive waits for her, and says so.
            await broker.apply("restart", node)
            await broker.until_code("restart", "ALLOW")
            await lab.annotate(drive, replacement="ready")
            await lab.until_phase(drive, REMOVING)
            await lab.sleep(60)
            found = await lab.again(drive)
            assert found.status.operational_status is REMOVING
            assert not found.status.detach
            assert "alice" in found.status.message
            assert any(each.deleting for each in await lab.lab.replicas()), "nothing was destroyed meanwhile"
            await lab.store.delete(PermissionRequest, "restart")
            found = await lab.until_phase(drive, REMOVED)
            assert found.status.permission_id
            held = (await lab.store.list(Permission)).items
            assert [(each.spec.user, each.spec.action.host) for each in held] == [(USER, node)]
            assert [each.status.deadline for each in held] == [None], "however long the technician takes"
            # With the drive replaced, its permission is given back.
            lab.lab.cluster.inject(faults.DriveSwap(node=node, drive="1"))
            await lab.until_closed(drive)

            async def given_back() -> bool:
                return not (await lab.store.list(Permission)).items

            await lab.until("the permission is given back", given_back)
            assert not (await lab.store.list(PermissionRequest)).items

    run(main, seed=71)


def test_a_marker_that_somebody_sets_through_the_broker_starts_it_and_its_reset_ends_it() -> None:
    async def main(sim: Simulation) -> None:
        async with both(sim, Layout(nodes=5)) as (lab, broker):
            await lab.volumes(1, BOTH, size="4Gi")
            drive = await lab.again(await lab.drive(await lab.node_of("v-0")))
            machine = await lab.store.get(core.Node, drive.spec.node_id)
            ids = [int(obj.metadata.annotations[annotation_keys.BROKER_ID]) for obj in (machine, drive)]
            items = MarkedItems(drives=(names.pdisk(*ids),))
            service = broker.broker_of.broker
            admin = Caller(name="alice", admin=True)
            await service.set_marker(SetMarker(marker=Marker.DISK_FAULTY, items=items), admin)
            await lab.until_phase(drive, RELEASING)
            await service.set_marker(SetMarker(marker=Marker.DISK_FAULTY, items=items, reset=True), admin)
            await lab.until_phase(drive, OPERATIVE)
            await service.set_marker(SetMarker(marker=Marker.DISK_BROKEN, items=items), admin)
            # Said before that, it would be of a drive that nobody distrusts, and not count.
            await lab.until_phase(drive, RELEASING)
            await lab.annotate(drive, replacement="ready")
            await lab.until_phase(drive, REMOVED, patience=900)
            await lab.until_copies("v")

    run(main, seed=72)


def test_a_move_that_waits_for_a_permission_says_so_and_not_how_much_is_copied() -> None:
    async def main(sim: Simulation) -> None:
        async with both(sim, Layout(nodes=6)) as (lab, broker):
            await lab.volumes(1, BOTH, size="8Gi")
            drive = await lab.drive(await lab.node_of("v-0"))
            await lab.annotate(drive, health="BAD")

            async def copying() -> bool:
                return "% copied" in (await lab.again(drive)).status.message

            await lab.until("it is copied", copying)
            await broker.apply("restart", await lab.node_of("v-1"))
            seen: list[str] = []

            async def waits() -> bool:
                seen.append((await lab.again(drive)).status.message)
                return "alice" in seen[-1]

            await lab.until("it waits for alice", waits, patience=600)
            assert "99 % copied" not in seen[-1]
            assert "copied to" in seen[-1]
            await lab.store.delete(PermissionRequest, "restart")
            while (await lab.again(drive)).status.operational_status is RELEASING:
                seen.append((await lab.again(drive)).status.message)
                await lab.sleep(0.5)
            assert not [each for each in seen if "a replacement is being made" in each]

    run(main, seed=48)
