"""The frozen picture of one volume: everything that a decision about it may depend on, and questions to ask of it.

Everything about a volume is decided on the same picture. Gathering it is cheap: a handful of look-ups by name and by
index, whatever the size of the cluster; the disks of a whole pool are looked at only while a replica has no place.

**Whose word counts.** A node's report counts only while its agent's Lease is fresh, judged by when we saw it change; a
Lease that nobody holds is stale at once. A stale member's state is what its fresh peers say of it; when nobody says,
it is down. ``VolumeView.state_of`` is that rule; nothing else should read ``rvr.status.drbd.status``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property, partial

import msgspec

from quorate.api import annotation_keys, core, labels
from quorate.api import struct as structs
from quorate.api.cluster_config import ClusterConfigSpec
from quorate.api.longhorn import DiskSchedule
from quorate.api.longhorn.node import Orphan
from quorate.api.meta import NodeName, VolumeName
from quorate.api.names import logical_volume, replica_id
from quorate.api.names import replica as replica_name
from quorate.api.scalars import MAX_MEMBERS, ReplicaName
from quorate.api.storage import (
    DRBDResourceOperation,
    LVMLogicalVolume,
    LVMVolumeGroup,
    ReplicatedStorageClass,
    ReplicatedStoragePool,
    ReplicatedVolume,
    ReplicatedVolumeAttachment,
    ReplicatedVolumeReplica,
)
from quorate.api.storage.configuration import Configuration
from quorate.api.storage.datamesh import Datamesh, Formation, Member, Transition, TransitionType
from quorate.api.storage.drbd import (
    Address,
    Connection,
    ConnectionState,
    DiskState,
    DrbdStatus,
    ReplicationState,
    ReplicaType,
    Role,
)
from quorate.api.storage.rsp import EligibleNode
from quorate.api.storage.rv import ReplicatedVolumeStatus
from quorate.drbd.marks import marked_peers
from quorate.locks import Hold, Thing
from quorate.volumes.disks import Disk
from quorate.volumes.evacuation import Evacuation


class NodeView(msgspec.Struct, frozen=True, gc=False):
    """A node that bears on the volume."""

    name: NodeName
    #: None: there is no such core Node (any more).
    machine: core.Node | None
    #: Its agent has renewed its Lease lately: what it reports counts.
    fresh: bool

    @property
    def gone(self) -> bool:
        """Whether it has left the cluster: there is no core Node, and no agent that speaks for the machine.

        An object can be deleted by mistake, or be missing for a moment; a machine that speaks is there.
        """
        return self.machine is None and not self.fresh


@dataclass(frozen=True, slots=True)
class ReplicaView:
    """A replica, and everything that belongs to it."""

    replica: ReplicatedVolumeReplica
    #: Its place in the datamesh; None: it is not a member.
    member: Member | None = None
    #: Its node; None: it has none yet.
    node: NodeView | None = None
    #: Every logical volume of it, on whatever disk.
    volumes: tuple[LVMLogicalVolume, ...] = ()
    #: The group that its disk is of.
    group: LVMVolumeGroup | None = None
    #: Every ledger that has an entry of it, asked for or granted.
    ledgers: tuple[DiskSchedule, ...] = ()
    #: The ledger of its disk, which has none: a person chose that disk, and nobody has asked it for space.
    unasked: DiskSchedule | None = None
    #: Its drive is on its way out; None: it is not, or it is not this one's turn.
    evacuation: Evacuation | None = None
    # What follows from these, and is asked for dozens of times in a pass.
    name: ReplicaName = field(init=False, compare=False)
    #: What it is intended to be; what it is now is the member's.
    type: ReplicaType = field(init=False, compare=False)
    #: Whether it is intended to have a disk.
    diskful: bool = field(init=False, compare=False)
    #: Where it is.
    node_name: NodeName | None = field(init=False, compare=False)
    #: Whether its agent's word counts: it lives, and can look at its kernel. What it saw before says nothing.
    fresh: bool = field(init=False, compare=False)
    #: What its kernel shows, while its agent's word counts; None: nothing is known, or the resource is not up.
    report: DrbdStatus | None = field(init=False, compare=False)
    #: Of the logical volumes, the one on the disk that is chosen.
    logical_volume: LVMLogicalVolume | None = field(init=False, compare=False)

    def __post_init__(self) -> None:
        replica, spec, drbd = self.replica, self.replica.spec, self.replica.status.drbd
        fresh = self.node is not None and self.node.fresh and drbd.errors.last_status_error is None
        piece = piece_of(replica) if self.volumes else None
        derive = partial(object.__setattr__, self)
        derive("name", ReplicaName(replica.name))
        derive("type", spec.type)
        derive("diskful", spec.type is ReplicaType.DISKFUL)
        derive("node_name", spec.node_name)
        derive("fresh", fresh)
        derive("report", drbd.status if fresh else None)
        derive("logical_volume", next((volume for volume in self.volumes if volume.name == piece), None))

    @property
    def id(self) -> int:
        """The number in its name; also its DRBD node id."""
        return replica_id(self.name)

    @property
    def scheduled(self) -> bool:
        """Whether it has a node and, if it needs one, a disk. Both are given only once the space is granted."""
        spec = self.replica.spec
        return spec.node_name is not None and (not self.diskful or spec.lvm_volume_group_name is not None)

    @property
    def other_label(self) -> str:
        """Another node than its own, by its label: no agent acts on it, and the label cannot change. "": none."""
        said = self.replica.metadata.labels.get(labels.NODE)
        return said if said is not None and self.node_name is not None and said != self.node_name else ""

    @property
    def address(self) -> Address | None:
        """Where its agent listens."""
        return self.replica.status.drbd.config.address

    def confirms(self, revision: int) -> bool:
        """Whether its kernel shows this revision, by the word of a living agent."""
        return self.fresh and self.replica.status.datamesh_revision >= revision


def piece_of(replica: ReplicatedVolumeReplica) -> str | None:
    """What the logical volume on the disk that is chosen is called; None: none is chosen."""
    group, pool = replica.spec.lvm_volume_group_name, replica.spec.lvm_volume_group_thin_pool_name
    return logical_volume(replica.name, group, pool or "") if group is not None else None


class MemberState(msgspec.Struct, frozen=True, gc=False):
    """What is known of a member now."""

    #: Whether anybody who counts has it in touch.
    up: bool
    disk: str = DiskState.UNKNOWN
    role: str = Role.UNKNOWN
    #: Whether it has quorum, by its own word; None: it does not say.
    quorum: bool | None = None
    #: Whose word it is; empty: nobody's.
    said_by: tuple[ReplicaName, ...] = ()


DOWN = MemberState(up=False)


class Mark(msgspec.Struct, frozen=True, gc=False):
    """Bits that one good copy shows against another."""

    by: ReplicaName
    against: ReplicaName
    #: KiB.
    amount: int

    @property
    def pair(self) -> str:
        """Both, as a comparison remembers them."""
        return f"{self.by}/{self.against}"


@dataclass(frozen=True)
class VolumeView:
    """One volume."""

    name: VolumeName
    #: None: there is none; children may be left.
    rv: ReplicatedVolume | None
    rsc: ReplicatedStorageClass | None = None
    #: The pool of the volume's own configuration; without one, of its class's.
    rsp: ReplicatedStoragePool | None = None
    #: By id.
    replicas: tuple[ReplicaView, ...] = ()
    attachments: tuple[ReplicatedVolumeAttachment, ...] = ()
    #: The one that gives a new volume its first data.
    operation: DRBDResourceOperation | None = None
    #: Those that compare its copies, overwrite a part of them, or bring back who has yielded.
    comparisons: tuple[DRBDResourceOperation, ...] = ()
    #: Every logical volume of its replicas, also of replicas that are gone.
    pieces: tuple[LVMLogicalVolume, ...] = ()
    #: Of these, the names of those that a drive's procedure keeps until a person says ``ready``.
    kept: frozenset[str] = frozenset()
    #: Every ledger with an entry of its replicas, also of replicas that are gone.
    ledgers: tuple[DiskSchedule, ...] = ()
    #: The pool's, by the names of ``names.disk``; looked at only while a replica has no place, otherwise empty.
    disks: Mapping[str, Disk] = field(default_factory=dict)
    #: Of its replicas, and those that are to use it.
    nodes: Mapping[NodeName, NodeView] = field(default_factory=dict)
    config: ClusterConfigSpec = field(default_factory=ClusterConfigSpec)
    #: Of a volume whose formation has not begun: since when the phases of others have lasted.
    others_forming: tuple[datetime, ...] = ()
    #: While it is being formed: on which nodes something with data of a volume of its name belongs to no object.
    orphans: tuple[tuple[NodeName, Orphan], ...] = ()
    #: Of a volume whose formation has not begun: nodes whose agent has yet to look for such, and since when.
    not_looked_at: Mapping[NodeName, datetime] = field(default_factory=dict)
    #: By member: the permissions by which its node, its drives or itself may go down.
    holds: Mapping[ReplicaName, tuple[tuple[Thing, Hold], ...]] = field(default_factory=dict)

    @property
    def volume(self) -> ReplicatedVolume:
        """The volume, for those who know that there is one."""
        assert self.rv is not None
        return self.rv

    @property
    def configuration(self) -> Configuration:
        """What the volume promises, for those who know that it has been told."""
        found = self.volume.status.configuration
        assert found is not None
        return found

    @cached_property
    def possible_names(self) -> tuple[ReplicaName, ...]:
        """All that its replicas can ever be called."""
        return tuple(replica_name(self.name, number) for number in range(MAX_MEMBERS))

    @cached_property
    def by_name(self) -> Mapping[ReplicaName, ReplicaView]:
        """Replicas by name."""
        return {replica.name: replica for replica in self.replicas}

    @cached_property
    def datamesh(self) -> Datamesh:
        """Who takes part."""
        return self.rv.status.datamesh if self.rv is not None else Datamesh()

    @cached_property
    def members(self) -> tuple[Member, ...]:
        """All of them, by id, hidden and excused ones included."""
        return self.rv.status.datamesh.members if self.rv is not None else ()

    @cached_property
    def members_by_name(self) -> Mapping[ReplicaName, Member]:
        """Members by name."""
        return {member.name: member for member in self.members}

    @property
    def diskful_members(self) -> tuple[Member, ...]:
        """Those that hold a copy."""
        return tuple(member for member in self.members if member.type is ReplicaType.DISKFUL)

    def replica(self, name: ReplicaName) -> ReplicaView | None:
        """A replica by its name."""
        return self.by_name.get(name)

    def on_node(self, node: NodeName) -> ReplicaView | None:
        """The replica on a node, deleting ones included."""
        return next((replica for replica in self.replicas if replica.node_name == node), None)

    @property
    def formation(self) -> Formation | None:
        """The birth that is under way; None: it is over, or has not begun."""
        found = self.transition(TransitionType.FORMATION)
        return found.formation if found is not None else None

    @cached_property
    def forming(self) -> bool:
        """Whether the volume has yet to be born (002: revision 0, or a Formation under way)."""
        return self.rv is not None and (self.rv.status.datamesh_revision == 0 or self.formation is not None)

    def transition(self, kind: TransitionType) -> Transition | None:
        """The first of this type that is under way."""
        if self.rv is None:
            return None
        return next((each for each in self.rv.status.datamesh_transitions if each.type is kind), None)

    @cached_property
    def access_nodes(self) -> tuple[NodeName, ...]:
        """Nodes that are to use the volume: the queue first, then whoever has only just asked. No deleting ones."""
        if self.rv is None:
            return ()
        asked = {each.spec.node_name: None for each in self.attachments if not each.deleting}
        if not self.rv.deleting:
            asked.update(dict.fromkeys(self.rv.spec.publish_on))
        queued = [each.node_name for each in self.rv.status.attach_requests if each.node_name in asked]
        return tuple(dict.fromkeys([*queued, *asked]))

    @property
    def forced_off(self) -> NodeName | None:
        """The node that a person wants detached by force, with all that this takes said."""
        said = self.rv.metadata.annotations if self.rv is not None else {}
        node = said.get(annotation_keys.FORCE_DETACH) if said.get(annotation_keys.ACCEPT_DATA_LOSS) == "true" else None
        return NodeName(node) if node is not None else None

    def with_status(self, status: ReplicatedVolumeStatus) -> VolumeView:
        """The same volume, as if its status were this: for deciding further before anything is written."""
        if self.rv is None or status is self.rv.status:
            return self
        rv = structs.replace(self.rv, status=status)
        if status.datamesh is self.rv.status.datamesh:
            found = dataclasses.replace(self, rv=rv)
            # What follows from members and their reports alone is still so.
            found.__dict__.update({name: value for name, value in self.__dict__.items() if name in _OF_MEMBERS})
            return found
        members = {member.name: member for member in status.datamesh.members}
        replicas = tuple(dataclasses.replace(each, member=members.get(each.name)) for each in self.replicas)
        return dataclasses.replace(self, rv=rv, replicas=replicas)

    def is_gone(self, node: NodeName) -> bool:
        """Whether it has left the cluster, or never was in it."""
        known = self.nodes.get(node)
        return known is not None and known.gone

    def eligible(self, node: NodeName | None) -> EligibleNode | None:
        """The node as the pool lists it."""
        return self._eligible.get(node) if node is not None else None

    def offers(self, replica: ReplicatedVolumeReplica) -> bool:
        """Whether the pool lists the replica's node and, once it has one, its disk."""
        spec, node = replica.spec, self.eligible(replica.spec.node_name)
        if node is None or spec.lvm_volume_group_name is None:
            return node is not None
        chosen = (spec.lvm_volume_group_name, spec.lvm_volume_group_thin_pool_name)
        return any((group.name, group.thin_pool_name) == chosen for group in node.lvm_volume_groups)

    def is_misplaced(self, replica: ReplicaView) -> bool:
        """Whether the pool lists others and not this one's node, or not its disk. One that lists nobody says nothing.

        An access replica is where somebody uses the volume, whatever the pool lists.
        """
        if self.rsp is None or not self.rsp.status.eligible_nodes or replica.type is ReplicaType.ACCESS:
            return False
        if self.eligible(replica.node_name) is None:
            known = self.nodes.get(replica.node_name) if replica.node_name is not None else None
            # One that is silent or not ready drops out of the list too: that is for its grace to decide.
            return known is not None and known.fresh
        return replica.diskful and not self.offers(replica.replica)

    @property
    def _eligible(self) -> Mapping[NodeName, EligibleNode]:
        return _listed(self.rsp) if self.rsp is not None else {}

    # Whose word counts.

    def state_of(self, name: ReplicaName) -> MemberState:
        """What is known of a member: its own word while it is fresh; otherwise what fresh peers say; otherwise down."""
        return self._states[name]

    @cached_property
    def _states(self) -> Mapping[ReplicaName, MemberState]:
        known = {replica.name: self._state(replica.name) for replica in self.replicas}
        known.update({member.name: self._state(member.name) for member in self.members if member.name not in known})
        return known

    def _state(self, name: ReplicaName) -> MemberState:
        own = self.by_name.get(name)
        if own is not None and own.fresh:
            return _own_word(name, own.report)
        return _word_of_peers(self._links_to(name, replica_id(name)))

    def _links_to(self, name: ReplicaName, node_id: int) -> Iterator[tuple[ReplicaName, Connection]]:
        """How fresh others see a member."""
        for other in self.replicas:
            if other.name != name and (link := link_to(other.report, node_id)) is not None:
                yield other.name, link

    @cached_property
    def marks(self) -> tuple[Mark, ...]:
        """All bits that living agents report between members with a disk that are both good."""
        names = {member.node_id: member.name for member in self.diskful_members}
        return tuple(
            Mark(member.name, names[node_id], amount)
            for member in self.diskful_members
            if (replica := self.by_name.get(member.name)) is not None
            for node_id, amount in marked_peers(replica.report).items()
            if node_id in names
        )

    def connected(self, one: ReplicaName, other: ReplicaName) -> bool:
        """Whether two members are in touch: every fresh end says so, and there is one."""
        said = [
            link is not None and link.connection_state == ConnectionState.CONNECTED
            for here, there in ((one, other), (other, one))
            if (replica := self.by_name.get(here)) is not None and replica.fresh
            for link in (link_to(replica.report, replica_id(there)),)
        ]
        return bool(said) and all(said)

    def replication(self, one: ReplicaName, other: ReplicaName) -> str:
        """What flows from one member to another, by the one's own word; empty: it does not say."""
        replica = self.by_name.get(one)
        link = link_to(replica.report, replica_id(other)) if replica is not None else None
        return link.peer_devices[0].replication_state if link is not None and link.peer_devices else ""

    def resyncing(self) -> bool:
        """Whether any fresh member is copying or comparing."""
        return any(
            device.replication_state not in _AT_REST
            for replica in self.replicas
            if replica.report is not None
            for link in replica.report.connections
            for device in link.peer_devices
        )


#: What a view has worked out that depends on nothing but its members and their reports.
_OF_MEMBERS = frozenset({"possible_names", "by_name", "datamesh", "members", "members_by_name", "_states", "marks"})

#: The nodes of each pool, with the very object they were read from: a pool may have thousands, and objects are frozen.
_nodes_of: dict[str, tuple[ReplicatedStoragePool, Mapping[NodeName, EligibleNode]]] = {}


def _listed(pool: ReplicatedStoragePool) -> Mapping[NodeName, EligibleNode]:
    known = _nodes_of.get(pool.name)
    if known is None or known[0] is not pool:
        known = _nodes_of[pool.name] = pool, {node.node_name: node for node in pool.status.eligible_nodes}
    return known[1]


_AT_REST = frozenset({"", ReplicationState.OFF, ReplicationState.ESTABLISHED})


def link_to(report: DrbdStatus | None, node_id: int) -> Connection | None:
    """A member's link to another."""
    if report is not None:
        for link in report.connections:
            if link.peer_node_id == node_id:
                return link
    return None


def disk_of(report: DrbdStatus | None) -> str:
    """The state of a member's own disk."""
    return report.devices[0].disk_state if report is not None and report.devices else DiskState.UNKNOWN


def _own_word(name: ReplicaName, report: DrbdStatus | None) -> MemberState:
    if report is None:
        return MemberState(up=False, said_by=(name,))
    quorum = report.devices[0].quorum if report.devices else None
    return MemberState(up=True, disk=disk_of(report), role=report.role, quorum=quorum, said_by=(name,))


def _word_of_peers(links: Iterable[tuple[ReplicaName, Connection]]) -> MemberState:
    """Only a peer that has it in touch knows anything: what a cut link shows is remembered."""
    in_touch = [(name, link) for name, link in links if link.connection_state == ConnectionState.CONNECTED]
    if not in_touch:
        return DOWN
    _, link = in_touch[0]
    disk = link.peer_devices[0].peer_disk_state if link.peer_devices else DiskState.UNKNOWN
    role = Role.PRIMARY if any(link.peer_role == Role.PRIMARY for _, link in in_touch) else link.peer_role
    return MemberState(up=True, disk=disk, role=role, said_by=tuple(name for name, _ in in_touch))
