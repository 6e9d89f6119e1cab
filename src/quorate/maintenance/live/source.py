"""The live source: the model follows the caches.

A change in a cache only notes what it concerns (``notes``): a node, a drive, a volume. ``settle`` then looks at what
was noted, and at nothing else, and tells the model what has become different. It is called soon after every change; at
once when a volume claims its members for a step (``quorate.locks``), because a decision of the broker may come next;
and when time alone changes something: an agent has been silent for too long, or a node's grace is over.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from quorate.api import core, longhorn, names
from quorate.api.baremetal import Drive
from quorate.api.cluster_config import ClusterConfig, ClusterConfigSpec
from quorate.api.core import Lease, PersistentVolumeClaim
from quorate.api.maintenance.action import Marker
from quorate.api.meta import NodeName, Resource, VolumeName
from quorate.api.scalars import MAX_MEMBERS
from quorate.api.storage import LVMVolumeGroup, ReplicatedVolume, ReplicatedVolumeReplica
from quorate.engine import Index, Reader
from quorate.engine.cache import Cache
from quorate.engine.clock import Clock
from quorate.locks import LockTable
from quorate.maintenance.entries import MarkerEntry
from quorate.maintenance.live import places, volumes
from quorate.maintenance.live.notes import Noted, Notes
from quorate.maintenance.live.numbers import Names
from quorate.maintenance.live.picture import drives_under, picture
from quorate.maintenance.model import ClusterModel
from quorate.maintenance.nouns import DriveId, DriveInfo, GroupInfo, NodeInfo, parse_device
from quorate.placement.grace import grace_left
from quorate.volumes.effective import Mesh, mesh_of
from quorate.volumes.observe import agent_is_fresh
from quorate.volumes.view import VolumeView

DRIVES_ON: Final = "drives on a node"
GROUPS_ON: Final = "volume groups on a node"
CLAIMS_TO: Final = "claims to a volume"

#: What ``settle`` reads beside the indexes of ``quorate.volumes``.
INDEXES: Final[tuple[Index[Any], ...]] = (
    Index(Drive, DRIVES_ON, lambda drive: (drive.spec.node_id,)),
    Index(LVMVolumeGroup, GROUPS_ON, lambda group: (group.spec.local.node_name,)),
    Index(PersistentVolumeClaim, CLAIMS_TO, lambda claim: filter(None, (claim.spec.volume_name,))),
)

#: How the ledger's markers name a node: this, and its number.
_NODE_ITEM: Final = "node-"
#: So many volumes are looked at before others are let through.
SLICE: Final = 200
#: Seconds after which something that is due by time is surely so.
_A_MOMENT: Final = 0.001


class LiveSource:
    """Keeps a model like the cluster, as far as the caches show it."""

    def __init__(self, model: ClusterModel, table: LockTable, clock: Clock) -> None:
        self.names = Names()
        #: Grows whenever a node is not as it was.
        self.nodes_version = 0
        self._model = model
        self._table = table
        self._clock = clock
        self._reader: Reader | None = None
        self._listeners: list[Callable[[], None]] = []
        self._notes = Notes(self._heard)
        #: What the model was told last.
        self._nodes: dict[NodeName, NodeInfo] = {}
        self._drives: dict[str, DriveInfo] = {}
        self._groups: dict[VolumeName, tuple[GroupInfo, Mesh]] = {}
        #: Agents whose word counts.
        self._fresh: dict[NodeName, bool] = {}
        #: By volume: where its members are, and which of these are out of touch; and the other way round.
        self._members: dict[VolumeName, frozenset[NodeName]] = {}
        self._out_of_touch: dict[VolumeName, frozenset[NodeName]] = {}
        self._volumes_on: dict[NodeName, set[VolumeName]] = {}
        #: What the groups of a node lie on.
        self._devices: dict[NodeName, tuple[str, ...]] = {}
        #: When a node must be looked at again by time alone; at most one entry for each.
        self._due: list[tuple[float, NodeName]] = []
        self._due_for: set[NodeName] = set()
        self._markers: Mapping[str, tuple[Marker, ...]] = {}
        table.on_claim(self._claim_changed)

    def follow(self, caches: Mapping[type[Resource], Cache[Any]], reader: Reader) -> None:
        """From now on, be like these."""
        self._reader = reader
        self._notes.follow(caches)

    def on_change(self, listener: Callable[[], None]) -> None:
        """Call it whenever something is noted that ``settle`` should look at. It must not fail."""
        self._listeners.append(listener)

    def set_markers(self, entries: Iterable[MarkerEntry]) -> None:
        """What the ledger says is marked."""
        found: dict[str, tuple[Marker, ...]] = {}
        for entry in entries:
            found[entry.item] = (*found.get(entry.item, ()), entry.marker)
        changed = [item for item in {**found, **self._markers} if found.get(item, ()) != self._markers.get(item, ())]
        self._markers = found
        if changed:
            for item in changed:
                self._note_marked(item)
            self._heard()

    @property
    def unsettled(self) -> bool:
        """Whether there is anything to look at."""
        return bool(self._notes.open) or (bool(self._due) and self._due[0][0] <= self._clock.monotonic())

    def due_in(self) -> float | None:
        """Seconds until something must be looked at by time alone."""
        return max(0.001, self._due[0][0] - self._clock.monotonic()) if self._due else None

    def settle(self) -> bool:
        """Bring the model up to date, or nearer to it where there is much to look at; whether it is another now."""
        if self._reader is None or not self.unsettled:
            return False
        noted = self._notes.take()
        self._take_due(noted)
        if noted.everything:
            self._note_all(self._reader, noted)
        self._note_disputed(noted)
        for volume in tuple(noted.volumes)[SLICE:]:
            del noted.volumes[volume]
            self._notes.open.volumes[volume] = None
        return self._look(self._reader, noted)

    async def catch_up(self) -> None:
        """Look at everything once, with others let through in between: it may take longer than a lease lasts."""
        assert self._reader is not None
        noted = self._notes.take()
        self._note_all(self._reader, noted)
        nodes, drives, volumes_ = list(noted.nodes), list(noted.drives), list(noted.volumes)
        for at in range(0, len(nodes), SLICE):
            self._look(self._reader, Noted(nodes=dict.fromkeys(nodes[at : at + SLICE])))
            await asyncio.sleep(0)
        for at in range(0, len(drives), SLICE):
            self._look(self._reader, Noted(drives=dict.fromkeys(drives[at : at + SLICE])))
            await asyncio.sleep(0)
        for at in range(0, len(volumes_), SLICE):
            self._look(self._reader, Noted(volumes=dict.fromkeys(volumes_[at : at + SLICE])))
            await asyncio.sleep(0)
        while self._notes.open:  # what changed meanwhile
            self.settle()
            await asyncio.sleep(0)

    def _look(self, reader: Reader, noted: Noted) -> bool:
        """At what is noted; whether the model is another."""
        before = self._model.version
        found = reader.get(ClusterConfig, names.CLUSTER)
        config = found.spec if found is not None else ClusterConfigSpec()
        for node in tuple(noted.nodes):
            self._hear(reader, config, node, noted)
        for drive in noted.drives:
            self._read_drive(reader, drive, noted)
        groups = {volume: self._look_at(reader, config, volume, noted) for volume in noted.volumes}
        for node in noted.nodes:
            self._tell_node(reader, config, node)
        for drive in noted.drives:
            self._tell_drive(reader, drive)
        for volume, info in groups.items():
            self._tell_group(volume, info)
        for node in noted.nodes:
            self._drop_node(reader, node)
        return self._model.version != before

    # What is to be looked at

    def _take_due(self, noted: Noted) -> None:
        now = self._clock.monotonic()
        while self._due and self._due[0][0] <= now:
            _, node = heapq.heappop(self._due)
            self._due_for.discard(node)
            noted.nodes[node] = None

    def _note_all(self, reader: Reader, noted: Noted) -> None:
        noted.nodes |= dict.fromkeys((*(NodeName(each.name) for each in reader.list(core.Node)), *self._nodes))
        noted.drives |= dict.fromkeys((*(each.name for each in reader.list(Drive)), *self._drives))
        volumes_there = (VolumeName(each.name) for each in reader.list(ReplicatedVolume))
        noted.volumes |= dict.fromkeys((*volumes_there, *self._members))

    def _note_disputed(self, noted: Noted) -> None:
        """Whoever could not have its number may have it now."""
        noted.nodes |= dict.fromkeys(sorted(self.names.nodes.disputed))
        noted.drives |= dict.fromkeys(sorted(self.names.drives.disputed))
        noted.volumes |= dict.fromkeys(sorted(self.names.groups.disputed))
        noted.volumes |= dict.fromkeys(names.volume_of_replica(name) for name in sorted(self.names.replicas.disputed))

    def _note_marked(self, item: str) -> None:
        noted, device = self._notes.open, parse_device(item)
        if isinstance(device, DriveId):
            if (drive := self.names.drives.name(device.drive)) is not None:
                noted.drives[drive] = None
        elif device is not None:
            if (volume := self.names.groups.name(device.group)) is not None:
                noted.volumes[volume] = None
        elif (node := self._node_of_item(item)) is not None:
            noted.nodes[node] = None

    def _node_of_item(self, item: str) -> NodeName | None:
        number = item.removeprefix(_NODE_ITEM)
        return self.names.nodes.name(int(number)) if item.startswith(_NODE_ITEM) and number.isdecimal() else None

    def _heard(self) -> None:
        for listener in self._listeners:
            listener()

    def _claim_changed(self, volume: VolumeName) -> None:
        """A step is about to be written, or its outcome is known. The next decision must see that."""
        if self._reader is not None and self._look(self._reader, Noted(volumes={volume: None})):
            self._heard()

    # Nodes

    def _hear(self, reader: Reader, config: ClusterConfigSpec, node: NodeName, noted: Noted) -> None:
        """Find out whether an agent's word counts. If that has changed, so has all that is known of what is there."""
        fresh = agent_is_fresh(reader, config, node)
        machine = reader.get(core.Node, node)
        before = self.names.nodes.of(node)
        number = self.names.nodes.read(node, machine) if machine is not None else before
        changed = self._fresh.get(node) != fresh or number != before or node not in self._nodes
        if changed:
            noted.drives |= dict.fromkeys(each.name for each in reader.find(Drive, DRIVES_ON, node))
        if self._groups_changed(reader, node) or changed:
            noted.volumes |= dict.fromkeys(sorted(self._volumes_on.get(node, ())))
        self._fresh[node] = fresh

    def _groups_changed(self, reader: Reader, node: NodeName) -> bool:
        """Whether the node's groups lie on other drives than before: so may the replicas in them."""
        groups = reader.find(LVMVolumeGroup, GROUPS_ON, node)
        devices = tuple(device.drive_uuid for group in groups for device in group.status.devices)
        before, self._devices[node] = self._devices.get(node), devices
        return before != devices

    def _tell_node(self, reader: Reader, config: ClusterConfigSpec, node: NodeName) -> None:
        machine = reader.get(core.Node, node)
        if machine is None:
            return
        here = self._volumes_on.get(node, ())
        inventory = reader.get(longhorn.Node, node, names.NAMESPACE)
        view = places.NodeView(
            machine=machine,
            lease=reader.get(Lease, names.agent_lease(node), names.NAMESPACE),
            fresh=self._fresh[node],
            holds_disks=bool(reader.find(LVMVolumeGroup, GROUPS_ON, node)),
            out_of_touch=all(node in self._out_of_touch[volume] for volume in here),
            grace=config.grace_periods.node_not_ready,
            stuck=inventory is not None and bool(inventory.status.stuck_commands),
        )
        number = self.names.nodes.of(node)
        info = places.node_info(number, view, self._clock.now(), self._markers.get(f"{_NODE_ITEM}{number}", ()))
        before = self._nodes.get(node)
        if before is not None and before.id != number:
            self._model.remove_node(before.id)
        if info != before:
            self._nodes[node] = info
            self._model.put_node(info)
            self.nodes_version += 1
        self._look_again(reader, config, node, machine)

    def _look_again(self, reader: Reader, config: ClusterConfigSpec, node: NodeName, machine: core.Node) -> None:
        """Note when time alone would change something."""
        if node in self._due_for:
            return
        if self._fresh[node]:
            silence = reader.silent_for(Lease, names.agent_lease(node), names.NAMESPACE) or 0.0
            left: float | None = config.agent.lease_duration.seconds - silence
        else:
            left = grace_left(machine, config.grace_periods.node_not_ready, self._clock.now()) or None
        if left is not None:
            heapq.heappush(self._due, (self._clock.monotonic() + max(left, 0.0) + _A_MOMENT, node))
            self._due_for.add(node)

    def _drop_node(self, reader: Reader, node: NodeName) -> None:
        if reader.get(core.Node, node) is None and (before := self._nodes.pop(node, None)) is not None:
            self._model.remove_node(before.id)
            self.nodes_version += 1

    # Drives

    def _read_drive(self, reader: Reader, name: str, noted: Noted) -> None:
        """A drive that goes by another number goes by it in the volumes that lie on it as well."""
        drive = reader.get(Drive, name)
        if drive is not None and self.names.drives.of(name) != self.names.drives.read(name, drive):
            noted.volumes |= dict.fromkeys(sorted(self._volumes_on.get(drive.spec.node_id, ())))

    def _tell_drive(self, reader: Reader, name: str) -> None:
        drive, before = reader.get(Drive, name), self._drives.get(name)
        info = None
        if drive is not None:
            drive_id = DriveId(self.names.nodes.of(drive.spec.node_id), self.names.drives.read(name, drive))
            info = places.drive_info(drive_id, drive, self._markers.get(str(drive_id), ()))
        else:
            self.names.drives.forget(name)
        if before is not None and (info is None or info.id != before.id):
            self._model.remove_drive(before.id)
            del self._drives[name]
        if info is not None and info != before:
            self._model.put_drive(info)
            self._drives[name] = info

    # Volumes

    def _look_at(
        self, reader: Reader, config: ClusterConfigSpec, volume: VolumeName, noted: Noted
    ) -> tuple[GroupInfo, Mesh] | None:
        rv = reader.get(ReplicatedVolume, volume)
        view = picture(reader, rv, config, self._fresh) if rv is not None else None
        members = frozenset(member.node_name for member in view.members) if view is not None else frozenset()
        away = volumes.out_of_touch(view) if view is not None else frozenset()
        self._place(volume, members, away, noted)
        if view is None:
            self.names.groups.forget(volume)
            for number in range(MAX_MEMBERS):
                self.names.replicas.forget(names.replica(volume, number))
            return None
        number = self.names.groups.read(volume, rv)
        if not volumes.is_group(view):
            return None
        mesh = mesh_of(view)
        naming = self._naming(reader, number, view)
        return volumes.group_info(view, mesh, naming, self._table.change_of(volume)), mesh

    def _place(self, volume: VolumeName, members: frozenset[NodeName], away: frozenset[NodeName], noted: Noted) -> None:
        """Note where a volume is. A node that is down depends on whether all that is there is out of touch."""
        before = self._members.get(volume, frozenset())
        changed = (before ^ members) | (self._out_of_touch.get(volume, frozenset()) ^ away)
        for node in before - members:
            self._volumes_on[node].discard(volume)
        for node in members - before:
            self._volumes_on.setdefault(node, set()).add(volume)
        self._members[volume], self._out_of_touch[volume] = members, away
        if not members:
            del self._members[volume], self._out_of_touch[volume]
        noted.nodes |= dict.fromkeys(sorted(node for node in changed if node in self._nodes))

    def _naming(self, reader: Reader, group: int, view: VolumeView) -> volumes.Naming:
        replicas = {each.name: each.replica for each in view.replicas}
        claims = reader.find(PersistentVolumeClaim, CLAIMS_TO, view.name)
        return volumes.Naming(
            group=group,
            nodes={member.node_name: self.names.nodes.of(member.node_name) for member in view.members},
            replicas={
                member.name: self.names.replicas.read(member.name, replicas.get(member.name)) for member in view.members
            },
            drives={
                member.name: self._drives_under(reader, member.node_name, replicas.get(member.name))
                for member in view.members
            },
            markers=lambda vdisk: self._markers.get(str(vdisk), ()),
            claim=next((f"{each.namespace}/{each.name}" for each in claims), ""),
        )

    def _drives_under(
        self, reader: Reader, node: NodeName, replica: ReplicatedVolumeReplica | None
    ) -> tuple[DriveId, ...]:
        if replica is None:
            return ()
        number = self.names.nodes.of(node)
        return tuple(
            DriveId(number, self.names.drives.read(name, reader.get(Drive, name)))
            for name in drives_under(reader, replica)
        )

    def _tell_group(self, volume: VolumeName, found: tuple[GroupInfo, Mesh] | None) -> None:
        """The mesh is what the group is judged by, and is not seen when two groups are compared."""
        before = self._groups.get(volume)
        if before is not None and (found is None or found[0].id != before[0].id):
            self._model.remove_group(before[0].id)
            del self._groups[volume]
        if found is not None and found != before:
            self._model.put_group(found[0])
            self._groups[volume] = found
