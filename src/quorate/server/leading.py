"""What a process leads with: every cluster-wide controller, and the broker beside them, under one leadership."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from prometheus_client import CollectorRegistry

from quorate.api import longhorn
from quorate.api.baremetal import Drive, Volume
from quorate.api.storage import ReplicatedVolume, ReplicatedVolumeReplica
from quorate.disks.metrics import InventoryMetrics
from quorate.drives.metrics import DriveMetrics
from quorate.engine.clock import Clock
from quorate.engine.manager import Election, Manager
from quorate.engine.store import Store
from quorate.locks import LockTable
from quorate.maintenance.broker import Broker, Identities
from quorate.maintenance.broker.metrics import BrokerMetrics
from quorate.maintenance.live import LiveBroker
from quorate.server.controllers import cluster_wide, resync_interval
from quorate.volumes.metrics import VolumeMetrics
from quorate.volumes.volume.shared_secrets import KEPT, SELECTION


@dataclass(frozen=True, slots=True)
class Leading:
    """A manager, and the broker that comes and goes with its terms."""

    manager: Manager
    live: LiveBroker

    @property
    def broker(self) -> Broker:
        """What the interfaces ask. While this process does not lead, it answers so."""
        return self.live.broker

    async def run(self) -> None:
        """Until the manager is stopped."""
        try:
            await self.manager.run()
        finally:
            await self.live.close()


def leading(
    store: Store,
    *,
    clock: Clock,
    random: Random,
    identity: str,
    registry: CollectorRegistry,
    component: str = "quorate-controller",
    election: Election | None = None,
    identities: Identities | None = None,
) -> Leading:
    """Put together; nothing runs yet. ``identities`` knows whose a token in a message is; None: it is believed."""
    table = LockTable()
    live = LiveBroker(store, clock, table, holder=identity, metrics=BrokerMetrics(registry), identities=identities)
    manager = Manager(
        store,
        (*cluster_wide(table), *live.controllers()),
        clock=clock,
        random=random,
        identity=identity,
        component=component,
        election=election,
        tenures=(live,),
        registry=registry,
        selections=dict.fromkeys(KEPT, SELECTION),
        resync_interval=resync_interval,
        freeze_gc=True,
    )
    _count(manager, registry)
    live.follow(manager.caches, manager.reader)
    live.on_lost = manager.step_down
    return Leading(manager, live)


def _count(manager: Manager, registry: CollectorRegistry) -> None:
    """Show how many volumes and drives there are in which state."""
    caches = manager.caches

    def leads() -> bool:
        return manager.leading

    VolumeMetrics(registry, caches[ReplicatedVolume], caches[ReplicatedVolumeReplica], leads)
    InventoryMetrics(registry, caches[longhorn.Node], leads)
    DriveMetrics(registry, caches[Drive], caches[Volume], leads)
