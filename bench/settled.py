"""Volumes by the thousand that nobody had to form: what they cost at rest, and when a node is lost.

One volume is formed by agents that really run. Then the agents end, and the volume's objects are written again under
other names, on other nodes, as often as wanted: as agents and controllers would have left them. What agents say from
then on is played: their Leases, and that the peers of a lost node do not reach it any more. So what is measured is the
controllers alone, and ten thousand volumes take a minute to make and not an hour.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, TypeVar

from bench.beds import HOUSEKEEPING, bed_on, controlled, opened
from bench.shares import AGENTS, OWNER, Shares
from quorate.api import codec, labels, names
from quorate.api.core import Lease, Node
from quorate.api.longhorn import DiskSchedule
from quorate.api.meta import NodeName, Resource, VolumeName
from quorate.api.storage import (
    DRBDResourceOperation,
    LVMLogicalVolume,
    LVMVolumeGroup,
    ReplicatedVolume,
    ReplicatedVolumeReplica,
)
from quorate.api.storage.drbd import ConnectionState, DiskState, ReplicationState, Role
from quorate.engine.embedded import EmbeddedStore
from quorate.lab.layout import Layout, object_name

R = TypeVar("R", bound=Resource)

TEMPLATE: Final = "template-0"
#: Objects that are written at once.
_TOGETHER: Final = 64
#: Seconds without a write after which everything has come to rest; and how often agents renew their Leases.
_REST: Final = 5.0
_RENEWAL: Final = 10.0


@dataclass
class Settled:
    """Volumes at rest, controllers at work, and nobody on the nodes."""

    store: EmbeddedStore
    shares: Shares
    written: Counter[tuple[str, str, str]]
    #: Nodes whose agents do not speak any more.
    silent: set[NodeName]
    #: Whether any controller has something to do.
    busy: Callable[[], bool] = lambda: True

    async def until_rest(self) -> None:
        """Wait until there is nothing to do, and nothing has been written for a while, Leases apart."""
        while True:
            before = _changes(self.written)
            await asyncio.sleep(_REST)
            if _changes(self.written) == before and not self.busy():
                return

    async def lose(self, node: NodeName) -> int:
        """The power of a node fails: its agent is silent, and every peer says what it sees. Returns how many say it."""
        self.silent.add(node)
        found = (await self.store.list(ReplicatedVolumeReplica)).items
        lost = {each.spec.replicated_volume_name: each for each in found if each.spec.node_name == node}
        told: dict[str, list[ReplicatedVolumeReplica]] = defaultdict(list)
        for each in found:
            if each.spec.node_name != node and each.spec.replicated_volume_name in lost:
                told[each.spec.node_name or ""].append(each)
        token = OWNER.set(AGENTS)
        await asyncio.gather(*(self._say(each, lost) for each in told.values()))
        OWNER.reset(token)
        return sum(map(len, told.values()))

    async def _say(
        self, replicas: Iterable[ReplicatedVolumeReplica], lost: Mapping[VolumeName, ReplicatedVolumeReplica]
    ) -> None:
        """An agent's reports, one after the other."""
        for each in replicas:
            gone = lost[each.spec.replicated_volume_name].status.drbd.config.node_id
            report = codec.to_builtins(each.status.drbd.status)
            for link in report["connections"]:
                if link["peerNodeId"] == gone:
                    link.update(connectionState=ConnectionState.CONNECTING, peerRole=Role.UNKNOWN)
                    link["paths"][0]["established"] = False
                    device = link["peerDevices"][0]
                    device.update(replicationState=ReplicationState.OFF, peerDiskState=DiskState.UNKNOWN)
            patch = {"drbd": {"status": {"connections": report["connections"]}}}
            await self.store.patch_status(ReplicatedVolumeReplica, each.name, patch=patch)


@asynccontextmanager
async def settled(layout: Layout, volumes: int, shares: Shares) -> AsyncIterator[Settled]:
    """So many volumes, evenly on all nodes and disks."""
    nodes = tuple(NodeName(plan.name) for plan in layout.plans())
    async with opened() as store:
        async with bed_on(store, layout, shares) as forming:
            await forming.form(1, TEMPLATE.removesuffix("0"))
            while (await store.list(DRBDResourceOperation)).items:
                await asyncio.sleep(0.5)
            groups = (await store.list(LVMVolumeGroup)).items
        made = Settled(store, shares, Counter(), set())
        renewing = asyncio.create_task(_renew(made, nodes))
        template = await _Template.read(store, {group.name: group for group in groups})
        await _write(store, template, layout, volumes)
        async with controlled(store, made.written, shares) as made.busy:
            await made.until_rest()
            yield made
        renewing.cancel()


@dataclass(frozen=True, slots=True)
class _Template:
    """The objects of a volume as text, and what in it is the volume's own."""

    volume: ReplicatedVolume
    replicas: tuple[ReplicatedVolumeReplica, ...]
    pieces: tuple[LVMLogicalVolume, ...]
    #: By node.
    addresses: Mapping[str, str]
    zones: Mapping[str, str]
    groups: Mapping[str, LVMVolumeGroup]

    @classmethod
    async def read(cls, store: EmbeddedStore, groups: Mapping[str, LVMVolumeGroup]) -> _Template:
        """As it was formed."""
        nodes = (await store.list(Node)).items
        return cls(
            volume=await store.get(ReplicatedVolume, TEMPLATE),
            replicas=(await store.list(ReplicatedVolumeReplica)).items,
            pieces=(await store.list(LVMLogicalVolume)).items,
            addresses={node.name: node.status.addresses[0].address for node in nodes},
            zones={node.name: node.metadata.labels[labels.ZONE] for node in nodes},
            groups=groups,
        )

    async def write(self, store: EmbeddedStore, number: int, slot: str) -> dict[str, dict[str, int]]:
        """Another volume like it, with all disks in one slot. Returns what its replicas take, by disk."""
        changes = {TEMPLATE: f"v-{number}", 'deviceMinor":0': f'deviceMinor":{number + 1}'}
        changes["/dev/drbd0"] = f"/dev/drbd{number + 1}"
        taken: dict[str, dict[str, int]] = {}
        seats: Counter[str] = Counter()
        for replica, piece in zip(self.replicas, self.pieces, strict=True):
            here, zone = str(replica.spec.node_name), self.zones[str(replica.spec.node_name)]
            alike = sorted(node for node in self.zones if self.zones[node] == zone)
            node = alike[(number + seats[zone]) % len(alike)]
            seats[zone] += 1
            before, after = self.groups[piece.spec.lvm_volume_group_name], self.groups[object_name(node, slot)]
            changes |= {
                here: node,
                before.name: after.name,
                self.addresses[here]: self.addresses[node],
                names.logical_volume("", before.name): names.logical_volume("", after.name),
                before.spec.actual_vg_name_on_the_node: after.spec.actual_vg_name_on_the_node,
                before.status.devices[0].drive_uuid: after.status.devices[0].drive_uuid,
            }
            taken[after.name] = {f"v-{number}-{replica.name[-1]}": int(piece.spec.size)}
        volume = await _again(store, self.volume, changes)
        changes[self.volume.metadata.uid] = volume.metadata.uid
        for replica, piece in zip(self.replicas, self.pieces, strict=True):
            again = await _again(store, replica, changes)
            await _again(store, piece, {**changes, replica.metadata.uid: again.metadata.uid})
        return taken


async def _again(store: EmbeddedStore, obj: R, changes: Mapping[str, str]) -> R:
    """The same object under other names."""
    words = "|".join(re.escape(each) for each in sorted(changes, key=len, reverse=True))
    text = re.sub(rf"(?:{words})(?![0-9])", lambda found: changes[found[0]], codec.encode(obj).decode())
    tree = json.loads(text)
    for assigned in ("uid", "resourceVersion", "creationTimestamp", "generation"):
        tree["metadata"].pop(assigned, None)
    made = await store.create(codec.convert(type(obj), tree))
    return await store.patch_status(type(obj), made.name, patch=tree["status"])


async def _write(store: EmbeddedStore, template: _Template, layout: Layout, volumes: int) -> None:
    """All volumes, and what they take of every disk."""
    numbers = iter(range(volumes))
    ledgers: dict[str, dict[str, int]] = defaultdict(dict)

    async def work() -> None:
        for number in numbers:
            slot = str(1 + number // layout.nodes % layout.drives)
            for disk, entries in (await template.write(store, number, slot)).items():
                ledgers[disk] |= entries

    await asyncio.gather(*(work() for _ in range(_TOGETHER)))
    for ledger in (await store.list(DiskSchedule)).items:
        patch = {"spec": {"replicas": ledgers[ledger.spec.name]}}
        await store.patch(DiskSchedule, ledger.name, ledger.namespace, patch=patch)


async def _renew(made: Settled, nodes: tuple[NodeName, ...]) -> None:
    """What agents do to be believed."""
    OWNER.set(AGENTS)
    while True:
        for node in nodes:
            if node not in made.silent:
                said = {"holderIdentity": "played", "renewTime": datetime.now(UTC).isoformat()}
                await made.store.patch(Lease, names.agent_lease(node), names.NAMESPACE, patch={"spec": said})
            await asyncio.sleep(_RENEWAL / len(nodes))


def _changes(written: Counter[tuple[str, str, str]]) -> int:
    return sum(number for key, number in written.items() if key[2] not in HOUSEKEEPING)
