"""A volume's members, counted: what it is now beside what it promises, and whether they are ready."""

from __future__ import annotations

from quorate.api import conditions
from quorate.api.conditions import Verdict, rvr
from quorate.api.conditions.rv import AllReplicasReady
from quorate.api.meta import NodeName
from quorate.api.quantity import Quantity
from quorate.api.storage.datamesh import Member
from quorate.api.storage.drbd import ReplicaType, Role
from quorate.placement.layout import text
from quorate.volumes.naming import named
from quorate.volumes.resize.activity_log import is_proven
from quorate.volumes.view import ReplicaView, VolumeView

_KIB = 1024


def voters(view: VolumeView) -> tuple[Member, ...]:
    """Diskful members that count."""
    return tuple(
        [
            member
            for member in view.members
            if member.type is ReplicaType.DISKFUL and not member.hidden and not member.down
        ]
    )


def membership_layout(view: VolumeView) -> str:
    """Such as ``2D+1TB``: of those that count. Empty before there are members."""
    if not view.members:
        return ""
    diskless = [each for each in view.members if each.type is not ReplicaType.DISKFUL and not each.hidden]
    return text(len(voters(view)), len(diskless))


def actual_size(view: VolumeView) -> Quantity | None:
    """The smallest usable size among diskful members, by those that are heard; as it was while nobody is.

    More than before is told only when it would outlast a power loss: whoever grew has its activity log.
    """
    known = view.volume.status.actual_size
    sizes = [
        replica.report.devices[0].size * _KIB
        if known is None or is_proven(replica)
        else min(replica.report.devices[0].size * _KIB, int(known))
        for replica in view.replicas
        if replica.member is not None
        and replica.member.type is ReplicaType.DISKFUL
        and replica.report is not None
        and replica.report.devices
        and replica.report.devices[0].size
    ]
    if not sizes or (known is not None and int(known) == min(sizes)):
        return known
    return Quantity.of_bytes(min(sizes))


def published_on(view: VolumeView) -> tuple[NodeName, ...]:
    """Where the volume is Primary, by whoever counts."""
    return tuple(member.node_name for member in view.members if view.state_of(member.name).role == Role.PRIMARY)


def all_replicas_ready(view: VolumeView) -> Verdict:
    """Every member that counts says so itself; while the volume forms, everybody who is to be one.

    Whoever is to join is told of beside it: what is promised is there without them. One that has left has no say,
    however long its node keeps its disk.
    """
    replicas = [each for each in view.replicas if _has_a_say(view, each)]
    lost = [member.name for member in view.members if member.name not in view.by_name and _counts(member)]
    if not replicas and not lost:
        return AllReplicasReady.NO_REPLICAS()
    waits = [*(each.name for each in replicas if not _is_ready(each)), *lost]
    if waits:
        return AllReplicasReady.REPLICAS_NOT_READY(f"not ready: {named(view, waits)}")
    coming = [each.name for each in view.replicas if each not in replicas and not _leaves(each)]
    return AllReplicasReady.ALL_REPLICAS_READY(f"to join: {named(view, coming)}" if coming else "")


def _has_a_say(view: VolumeView, replica: ReplicaView) -> bool:
    member = replica.member
    if member is None:
        return view.forming and not replica.replica.deleting
    return _counts(member)


def _counts(member: Member) -> bool:
    """A copy that joins or leaves does not."""
    return member.type is not ReplicaType.DISKFUL or not member.hidden


def _leaves(replica: ReplicaView) -> bool:
    asked = replica.replica.status.datamesh_pending_transition
    return replica.replica.deleting or (asked is not None and asked.member is False)


def _is_ready(replica: ReplicaView) -> bool:
    """By its own word, which counts while its agent is heard: what it will say of itself then needs not be awaited."""
    silent = replica.node is not None and not replica.fresh
    return not silent and conditions.is_true(replica.replica.status.conditions, rvr.Ready)
