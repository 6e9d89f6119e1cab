"""Nodes and drives as the broker sees them.

Whether a node is up is its agent's to show: while its Lease is fresh it is up, when it has fallen silent it is down, as
far as others' limits go. Without an agent the node's own Ready condition says so. It is *surely down* only when it has
not been Ready for longer than its grace, and no peer whose word counts is in touch with a replica on it: a node that
merely cannot reach the API server still serves. Where there is no such peer, nobody can hear it at all: it is down.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from quorate.api import core, labels
from quorate.api.baremetal import Drive
from quorate.api.baremetal.drive import Presence
from quorate.api.core import Lease
from quorate.api.duration import Duration
from quorate.api.maintenance.action import HostState, Marker
from quorate.maintenance.moments import from_datetime
from quorate.maintenance.nouns import DYNAMIC, STORAGE, DriveId, DriveInfo, NodeInfo
from quorate.placement.grace import grace_left, is_ready


@dataclass(frozen=True, slots=True)
class NodeView:
    """A node, and what else tells how it is."""

    machine: core.Node
    #: Its agent's; None: it has never had one.
    lease: Lease | None
    #: The agent's word counts.
    fresh: bool
    #: It has a volume group.
    holds_disks: bool
    #: No fresh peer is in touch with any replica on it.
    out_of_touch: bool
    grace: Duration
    #: Commands hang in its kernel.
    stuck: bool = False


def node_info(number: int, view: NodeView, now: datetime, markers: tuple[Marker, ...]) -> NodeInfo:
    """The node, for the model."""
    found = view.machine.metadata.labels
    return NodeInfo(
        id=number,
        host=view.machine.name,
        tenant=found.get(labels.TENANT, ""),
        data_center=found.get(labels.ZONE, ""),
        room=found.get(labels.ROOM, ""),
        rack=found.get(labels.RACK, ""),
        state=_state(view),
        start_time=_start_time(view.lease),
        services=(STORAGE,) if view.holds_disks else (DYNAMIC,),
        surely_down=not view.fresh and view.out_of_touch and grace_left(view.machine, view.grace, now) == 0.0,
        stuck=view.stuck,
        markers=markers,
    )


def drive_info(drive_id: DriveId, drive: Drive, markers: tuple[Marker, ...]) -> DriveInfo:
    """The drive, for the model, as its agent last saw it. While that is silent, peers tell of the replicas on it."""
    states = {Presence.ONLINE: HostState.UP, Presence.OFFLINE: HostState.DOWN, None: HostState.UNKNOWN}
    spec = drive.spec
    return DriveInfo(
        id=drive_id,
        state=states[drive.status.presence],
        path=spec.path,
        # As ``quorate drive`` takes it: the slot, or the device.
        title=f"{spec.node_id}/{spec.slot or spec.path.rpartition('/')[2] or drive.name}",
        markers=markers,
    )


def _state(view: NodeView) -> HostState:
    if view.lease is not None:
        return HostState.UP if view.fresh else HostState.DOWN
    if not any(condition.type == "Ready" for condition in view.machine.status.conditions):
        return HostState.UNKNOWN
    return HostState.UP if is_ready(view.machine) else HostState.DOWN


def _start_time(lease: Lease | None) -> int:
    """When its agent took its Lease, which it does when it starts; 0: nobody knows."""
    acquired = lease.spec.acquire_time if lease is not None else None
    try:
        return from_datetime(datetime.fromisoformat(acquired)) if acquired else 0
    except ValueError:
        return 0
