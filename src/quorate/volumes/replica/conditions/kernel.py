"""What the kernel says: Quorum, InSync, DiskIOSuspended, FullyConnected, Primary, VolumeAccessReady.

The last word of an agent that is silent, or cannot look at its kernel, does not count: Unknown, AgentNotReady.
"""

from __future__ import annotations

from typing import Final

from quorate.api.conditions import Verdict
from quorate.api.conditions.declaration import Reason
from quorate.api.conditions.rvr import (
    DiskIOSuspended,
    DRBDMoving,
    FullyConnected,
    InSync,
    Primary,
    Quorum,
    VolumeAccessReady,
)
from quorate.api.meta import ConditionStatus
from quorate.api.storage.drbd import (
    ConnectionState,
    DiskState,
    DrbdStatus,
    ReplicationState,
    ReplicaType,
    Role,
)
from quorate.volumes.replica.subject import Subject
from quorate.volumes.stale import described, doubtful_copies, stale_copies
from quorate.volumes.view import link_to

#: A copy that is being brought up to date over such a link, or waits for its turn.
_CATCHING_UP: Final = frozenset(
    {
        ReplicationState.STARTING_SYNC_TARGET,
        ReplicationState.WAITING_BITMAP_TARGET,
        ReplicationState.WAITING_SYNC_UUID,
        ReplicationState.SYNC_TARGET,
        ReplicationState.PAUSED_SYNC_TARGET,
        ReplicationState.BEHIND,
    }
)
_BY_DISK: Final = {
    "": InSync.DISK_NOT_ATTACHED,
    DiskState.DISKLESS: InSync.DISK_NOT_ATTACHED,
    DiskState.ATTACHING: InSync.DISK_NOT_ATTACHED,
    DiskState.DETACHING: InSync.DISK_NOT_ATTACHED,
    DiskState.NEGOTIATING: InSync.DISK_NOT_ATTACHED,
    DiskState.FAILED: InSync.DISK_FAILED,
    DiskState.OUTDATED: InSync.OUTDATED,
    DiskState.CONSISTENT: InSync.OUTDATED,
}
_UNSYNCED: Final = (
    "it was made Secondary under its users; one write in flight may have been acknowledged and be lost, if not synced"
)
#: Why I/O stands, as the device says it and as its users see it; the first that fits.
_SUSPENSIONS: Final[tuple[tuple[str, Reason, Reason], ...]] = (
    ("suspended_user", DiskIOSuspended.DISK_IO_SUSPENDED_BY_USER, VolumeAccessReady.IO_SUSPENDED_BY_USER),
    ("suspended_no_data", DiskIOSuspended.DISK_IO_SUSPENDED_NO_DATA, VolumeAccessReady.IO_SUSPENDED_BY_NO_DATA),
    ("suspended_fencing", DiskIOSuspended.DISK_IO_SUSPENDED_FENCING, VolumeAccessReady.IO_SUSPENDED_BY_FENCING),
    ("suspended_quorum", DiskIOSuspended.DISK_IO_SUSPENDED_QUORUM, VolumeAccessReady.IO_SUSPENDED_BY_QUORUM),
    (
        "suspended",
        DiskIOSuspended.DISK_IO_SUSPENDED_UNKNOWN_REASON,
        VolumeAccessReady.IO_SUSPENDED_BY_UNKNOWN_REASON,
    ),
)


_STANDSTILLS: Final = {reason.code: reason for reason in DRBDMoving.reasons() if reason.status is ConditionStatus.FALSE}


def quorum(subject: Subject) -> Verdict:
    """``devices[0].quorum``."""
    if subject.silent:
        return Quorum.AGENT_NOT_READY(subject.blind)
    device = subject.device
    if device is None:
        return Quorum.NO_QUORUM_STATUS(subject.on_node("the device is not there"))
    if device.quorum:
        return Quorum.QUORUM_STATUS()
    return Quorum.NO_QUORUM_STATUS(subject.on_node(_absent(subject)))


def in_sync(subject: Subject) -> Verdict:
    """Diskful: UpToDate, otherwise how far; diskless: nothing to keep."""
    if not subject.diskful:
        return InSync.DISKLESS()
    if subject.silent:
        return InSync.AGENT_NOT_READY(subject.blind)
    device = subject.device
    state = device.disk_state if device is not None else ""
    if state == DiskState.UP_TO_DATE:
        return _not_what_it_seems(subject) or InSync.UP_TO_DATE()
    stalled = [
        each.message
        for each in subject.replica.replica.status.drbd.standstills
        if each.reason == DRBDMoving.SYNC_STALLED.code
    ]
    if stalled and state in (DiskState.INCONSISTENT, DiskState.OUTDATED, DiskState.CONSISTENT):
        return InSync.SYNC_STALLED(subject.on_node(stalled[0]))
    percent = percent_in_sync(subject.report)
    if percent is not None and state not in _BY_DISK:
        return InSync.SYNCHRONIZING(f"{percent} % in sync")
    reason = _BY_DISK.get(state, InSync.INCONSISTENT)
    return reason(subject.on_node(f"disk {state}" if state else "the device is not there"))


def _not_what_it_seems(subject: Subject) -> Verdict | None:
    """Whether a copy lacks something, or may, although the kernel calls it up to date."""
    name, view = subject.replica.name, subject.view
    if name not in doubtful_copies(view):
        return None
    told = described(view).message
    return InSync.STALE(told) if name in stale_copies(view) else InSync.NOT_COMPARED(told)


def drbd_moving(subject: Subject) -> Verdict:
    """What the agent says stands still; of several the first, with the words of all."""
    if subject.silent:
        return DRBDMoving.AGENT_NOT_READY(subject.blind)
    found = subject.replica.replica.status.drbd.standstills
    told = [each for each in found if each.reason in _STANDSTILLS]
    if not told:
        return DRBDMoving.MOVING()
    return _STANDSTILLS[told[0].reason](subject.on_node("; ".join(each.message for each in told)))


def disk_io_suspended(subject: Subject) -> Verdict:
    """The seed's flags. True is the bad news here."""
    if subject.silent:
        return DiskIOSuspended.AGENT_NOT_READY(subject.blind)
    if _is_held(subject):
        return DiskIOSuspended.DISK_IO_SUSPENDED_FOR_COPIES(subject.on_node(_copies(subject)))
    found = _suspension(subject.report)
    if found is None:
        return DiskIOSuspended.DISK_IO_NOT_SUSPENDED_STATUS()
    return found[0](subject.on_node(_absent(subject)))


def fully_connected(subject: Subject) -> Verdict:
    """Every peer that there should be a link to is Connected."""
    if not subject.is_member:
        return FullyConnected.NOT_CONNECTED("not a member of the datamesh")
    if subject.silent:
        return FullyConnected.AGENT_NOT_READY(subject.blind)
    peers = subject.peers
    if not peers:
        return FullyConnected.SOLE_MEMBER()
    away = disconnected(subject)
    if not away:
        return FullyConnected.FULLY_CONNECTED(f"{len(peers)} of {len(peers)} peers")
    reason = FullyConnected.NOT_CONNECTED if len(away) == len(peers) else FullyConnected.PARTIALLY_CONNECTED
    return reason(subject.on_node(f"not connected to {', '.join(away)}"))


def primary(subject: Subject) -> Verdict:
    """The role."""
    if subject.silent:
        return Primary.AGENT_NOT_READY(subject.blind)
    report = subject.report
    if report is not None and report.role == Role.PRIMARY:
        return Primary.RESOURCE_ROLE_IS_PRIMARY()
    return Primary.RESOURCE_ROLE_IS_NOT_PRIMARY(f"the role is {report.role}" if report is not None else "")


def volume_access_ready(subject: Subject) -> Verdict | None:
    """Usable here, and I/O flows. None: a tie-breaker is not there to be used."""
    if subject.replica.type is ReplicaType.TIE_BREAKER:
        return None
    if subject.silent:
        return VolumeAccessReady.AGENT_NOT_READY(subject.blind)
    report, device = subject.report, subject.device
    if report is not None and report.force_io_failures:
        return VolumeAccessReady.IO_FAILS(subject.on_node(_UNSYNCED))
    if report is None or device is None or report.role != Role.PRIMARY:
        return VolumeAccessReady.NOT_PUBLISHED()
    if _is_held(subject):
        return VolumeAccessReady.IO_SUSPENDED_FOR_COPIES(subject.on_node(_copies(subject)))
    found = _suspension(report)
    if found is not None:
        return found[1](subject.on_node(_absent(subject)))
    return VolumeAccessReady.VOLUME_ACCESS_READY() if device.quorum else VolumeAccessReady.NO_QUORUM()


def percent_in_sync(report: DrbdStatus | None) -> int | None:
    """How far a copy that is being brought up to date is; None: it is not being."""
    links = report.connections if report is not None else ()
    found = [
        device.percent_in_sync
        for link in links
        for device in link.peer_devices
        if device.replication_state in _CATCHING_UP
    ]
    return max(found) if found else None


def disconnected(subject: Subject) -> list[str]:
    """Peers, with their nodes, that there is no connection to."""
    report = subject.report
    found = []
    for peer in subject.peers:
        link = link_to(report, peer.node_id)
        if link is None or link.connection_state != ConnectionState.CONNECTED:
            # Of the states only this one is worth a word: the others come and go, and it does not.
            alone = link is not None and link.connection_state == ConnectionState.STAND_ALONE
            found.append(f"{peer.name} on {peer.node_name}{' (StandAlone)' if alone else ''}")
    return found


def _suspension(report: DrbdStatus | None) -> tuple[Reason, Reason] | None:
    if report is None:
        return None
    return next(((why, seen) for flag, why, seen in _SUSPENSIONS if getattr(report, flag)), None)


def _is_held(subject: Subject) -> bool:
    """Whether its agent has suspended I/O. Any other reason may hold as well; this one says what is missing."""
    report = subject.report
    return report is not None and report.suspended_user and subject.actual.held_for_copies


def _copies(subject: Subject) -> str:
    """How many good copies are connected of those that there have to be, and what is wrong with the others."""
    promised = subject.config.quorum_minimum_redundancy or 1
    counted = [peer for peer in subject.peers if peer.type is ReplicaType.DISKFUL and not peer.hidden]
    missing = []
    for peer in counted:
        link = link_to(subject.report, peer.node_id)
        disks = [each.peer_disk_state for each in link.peer_devices] if link is not None else []
        if link is None or link.connection_state != ConnectionState.CONNECTED:
            missing.append(f"{peer.name} on {peer.node_name} is not connected")
        elif DiskState.UP_TO_DATE not in disks:
            missing.append(f"{peer.name} on {peer.node_name} is {disks[0] if disks else 'without a disk'}")
    there = f"{len(counted) - len(missing)} of {promised} copies that a write has to be on are connected and up to date"
    if subject.diskful:
        missing.append(f"its own disk is {subject.device.disk_state if subject.device is not None else 'not there'}")
    return "; ".join((there, *missing))


def _absent(subject: Subject) -> str:
    """Why a device has no quorum, as far as its own links tell."""
    away = disconnected(subject)
    if away:
        return f"not connected to {', '.join(away)}"
    if subject.view.forming:
        return "the volume is being formed: too few of its copies are up to date yet"
    member = subject.replica.member
    if member is not None and member.hidden:
        return "it joins or leaves, and has no vote"
    return "all peers are connected, and too few of the copies are up to date"
