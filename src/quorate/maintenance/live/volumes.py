"""A ReplicatedVolume as a group: its parts, and what is known of its live quorum.

Parts are the shown members: those with a disk, and the one without that breaks ties. A hidden member is no part; but a
step that is not confirmed yet concerns it as well, so it is among the members that the facts name. A volume that is
not born yet, or is being deleted and not in use, has nothing to lose: it is no group.

A member counts as connected if it is on the side that serves. Who is up but cut off from that side cannot help it; but
its copy is there, whether or not its side serves.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from quorate.api.maintenance.action import HostState, Marker
from quorate.api.meta import NodeName
from quorate.api.scalars import ReplicaName
from quorate.api.storage import ReplicatedVolume
from quorate.api.storage.datamesh import Member
from quorate.api.storage.drbd import ConnectionState, DiskState, ReplicaType, Role
from quorate.locks import Change
from quorate.maintenance.nouns import DriveId, GroupInfo, MemberFacts, VDiskId, VDiskInfo, VolumeFacts
from quorate.placement.layout import majority
from quorate.volumes import effective
from quorate.volumes.effective import Mesh
from quorate.volumes.transitions import synchronizing_member, unconfirmed_vote_step
from quorate.volumes.view import VolumeView

_DISKFUL = ReplicaType.DISKFUL


@dataclass(frozen=True, slots=True)
class Naming:
    """What things of a volume are called in the model."""

    group: int
    nodes: Mapping[NodeName, int]
    #: Of its replicas; 0: it has none yet.
    replicas: Mapping[ReplicaName, int]
    #: The drives that each lies on.
    drives: Mapping[ReplicaName, tuple[DriveId, ...]]
    #: By the name of a VDisk.
    markers: Callable[[VDiskId], tuple[Marker, ...]]
    #: The claim that the volume was made for; empty: none.
    claim: str = ""

    def vdisk(self, member: Member) -> VDiskId:
        """A member's name."""
        return VDiskId(self.group, 1, 0, member.node_id, self.replicas[member.name])


def is_group(view: VolumeView) -> bool:
    """Whether there is something to lose."""
    rv = view.rv
    if rv is None or view.forming or rv.status.configuration is None or not view.members:
        return False
    return not rv.deleting or bool(attached_on(view))


def group_info(view: VolumeView, mesh: Mesh, naming: Naming, change: Change | None) -> GroupInfo:
    """The volume, for the model. ``change``: a step that is being written, and that no cache shows yet."""
    shown = [member for member in view.members if not member.hidden]
    return GroupInfo(
        id=naming.group,
        species=None,
        volume=_facts(view, mesh, naming, change),
        vdisks=tuple(_vdisk(view, naming, member) for member in shown),
    )


def attached_on(view: VolumeView) -> tuple[NodeName, ...]:
    """Where the volume is in use, or is meant to be."""
    return tuple(
        member.node_name
        for member in view.members
        if member.attached or ((state := view.state_of(member.name)).up and state.role == Role.PRIMARY)
    )


def suspended_on(view: VolumeView) -> tuple[NodeName, ...]:
    """Where somebody uses the volume, and I/O stands still, by the word of that node's own agent."""
    return tuple(
        member.node_name
        for member in view.members
        if (own := view.replica(member.name)) is not None
        and own.report is not None
        and own.report.suspended
        and own.report.role == Role.PRIMARY
    )


def out_of_touch(view: VolumeView) -> frozenset[NodeName]:
    """Nodes whose replica is silent, and that nobody whose word counts is in touch with. There may be nobody to ask."""
    return frozenset(
        member.node_name
        for member in view.members
        if not _speaks(view, member) and ConnectionState.CONNECTED not in _said_of(view, member)
    )


def _is_missed(view: VolumeView, member: Member) -> bool:
    """The same, by the word of at least one peer that counts."""
    said = _said_of(view, member)
    return not _speaks(view, member) and bool(said) and ConnectionState.CONNECTED not in said


def _speaks(view: VolumeView, member: Member) -> bool:
    own = view.replica(member.name)
    return own is not None and own.fresh


def _said_of(view: VolumeView, member: Member) -> list[str]:
    """How its peers whose word counts are connected with it."""
    return [
        link.connection_state
        for other in view.replicas
        if other.name != member.name and other.report is not None
        for link in other.report.connections
        if link.peer_node_id == member.node_id
    ]


def _facts(view: VolumeView, mesh: Mesh, naming: Naming, change: Change | None) -> VolumeFacts:
    rv, promise = view.volume, view.configuration
    side = effective.serving_side(mesh)
    return VolumeFacts(
        name=view.name,
        claim=naming.claim,
        members=tuple(_member(view, naming, member, side) for member in view.members),
        attached_on=frozenset(naming.nodes[node] for node in attached_on(view)),
        suspended_on=frozenset(naming.nodes[node] for node in suspended_on(view)),
        quorum=majority(len(mesh.voters)),
        quorum_minimum_redundancy=rv.status.drbd.config.quorum_minimum_redundancy or 1,
        survives=_survival(mesh, {naming.nodes[member.node_name]: member.node_id for member in view.members}),
        copies_kept=promise.guaranteed_minimum_data_redundancy + 1 if promise.failures_to_tolerate else 1,
        failures_to_tolerate=promise.failures_to_tolerate,
        unconfirmed_step=change.what if change is not None else _unconfirmed(rv),
        synchronizing=synchronizing_member(rv) or "",
    )


def _survival(mesh: Mesh, members: Mapping[int, int]) -> Callable[[frozenset[int]], bool]:
    """Whether the volume could be written to without some nodes, by the kernel's rule on live reports."""

    def survives(nodes: frozenset[int]) -> bool:
        return effective.after(mesh, frozenset(members[node] for node in nodes if node in members)).survives

    return survives


def _member(view: VolumeView, naming: Naming, member: Member, side: Collection[int]) -> MemberFacts:
    state = view.state_of(member.name)
    return MemberFacts(
        vdisk=naming.vdisk(member),
        node=naming.nodes[member.node_name],
        voter=member.type is _DISKFUL and not member.hidden,
        up_to_date=state.up and state.disk == DiskState.UP_TO_DATE,
        connected=state.up and member.node_id in side,
        tie_breaker=member.type is not _DISKFUL and not member.hidden,
        missed=_is_missed(view, member),
    )


def _vdisk(view: VolumeView, naming: Naming, member: Member) -> VDiskInfo:
    state = view.state_of(member.name)
    whole = state.up and (member.type is not _DISKFUL or state.disk == DiskState.UP_TO_DATE)
    name = naming.vdisk(member)
    return VDiskInfo(
        id=name,
        node=naming.nodes[member.node_name],
        drives=naming.drives[member.name] if member.type is _DISKFUL else (),
        state=HostState.UP if whole else HostState.DOWN,
        title=member.name,
        markers=naming.markers(name),
    )


def _unconfirmed(rv: ReplicatedVolume) -> str:
    found = unconfirmed_vote_step(rv)
    if found is None:
        return ""
    transition, step = found
    return f"{step.name} of {transition.replica_name}" if transition.replica_name is not None else step.name
