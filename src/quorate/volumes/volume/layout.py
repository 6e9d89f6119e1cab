"""A volume's members, counted: what it is now beside what it promises."""

from __future__ import annotations

from quorate.api.meta import NodeName
from quorate.api.quantity import Quantity
from quorate.api.storage.datamesh import Member
from quorate.api.storage.drbd import ReplicaType, Role
from quorate.placement.layout import text
from quorate.volumes.view import VolumeView

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
    """The smallest usable size among diskful members, by those that are heard; as it was while nobody is."""
    sizes = [
        replica.report.devices[0].size * _KIB
        for replica in view.replicas
        if replica.member is not None
        and replica.member.type is ReplicaType.DISKFUL
        and replica.report is not None
        and replica.report.devices
        and replica.report.devices[0].size
    ]
    known = view.volume.status.actual_size
    if not sizes or (known is not None and int(known) == min(sizes)):
        return known
    return Quantity.of_bytes(min(sizes))


def published_on(view: VolumeView) -> tuple[NodeName, ...]:
    """Where the volume is Primary, by whoever counts."""
    return tuple(member.node_name for member in view.members if view.state_of(member.name).role == Role.PRIMARY)
