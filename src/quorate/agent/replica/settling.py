"""What a member without data shows on its way to having some, and how long that is not worth a write.

A new member is brought up, its links come one by one, its copy arrives: half a dozen states within a second or two,
of which somebody waits for the last. So as long as it has never had data, and is visibly on its way, its report waits
a few seconds for the state that it comes to. What is lost, fails or needs somebody is never held back, nor anything of
a member that has data: users may depend on it. Neither is a revision, but for the first: transitions wait for it.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from quorate.agent.replica.kernel import disk_state, is_diskful
from quorate.agent.replica.view import View
from quorate.api.storage.drbd import ConnectionState, DiskState, DrbdActual, DrbdStatus, ReplicationState
from quorate.api.storage.rvr import ReplicatedVolumeReplicaStatus
from quorate.api.struct import replace

#: Seconds that a state may wait for the one that follows it.
SETTLING: Final = 3.0

#: The same while the copy flows, which takes as long as it takes: that it has begun is worth a write if it lasts.
COPYING: Final = 30.0

#: Links that come up…
_COMING: Final = frozenset({ConnectionState.UNCONNECTED, ConnectionState.CONNECTING})
#: … and copies on their way. A paused one waits for somebody, and is told.
_COPYING: Final = frozenset(
    {
        ReplicationState.STARTING_SYNC_SOURCE,
        ReplicationState.STARTING_SYNC_TARGET,
        ReplicationState.WAITING_BITMAP_SOURCE,
        ReplicationState.WAITING_BITMAP_TARGET,
        ReplicationState.WAITING_SYNC_UUID,
        ReplicationState.SYNC_SOURCE,
        ReplicationState.SYNC_TARGET,
    }
)
_USUAL: Final = frozenset(
    {DiskState.ATTACHING, DiskState.NEGOTIATING, DiskState.INCONSISTENT, DiskState.CONSISTENT, DiskState.UP_TO_DATE}
)


def held_back(view: View, after: ReplicatedVolumeReplicaStatus, now: datetime) -> float | None:
    """Seconds for which a report is not worth a write yet; None: there is nothing new, or it is."""
    before = view.replica.status
    if before == after or not _is_on_its_way(view) or not _only_shows_more(before, after):
        return None
    since, patience = view.unreported_since, COPYING if _flows(view, before) else SETTLING
    left = patience - max(0.0, (now - since) / timedelta(seconds=1)) if since is not None else patience
    return left if left > 0 else None


def _flows(view: View, before: ReplicatedVolumeReplicaStatus) -> bool:
    """Whether all that is left to come is the first copy: its links are up, and its revision is reported.

    One that joins later joins hidden. People wait for it, and would look for the links that were not there before.
    """
    shown, config = view.status, view.config
    if shown is None or not before.datamesh_revision or before.datamesh_revision != config.datamesh_revision:
        return False
    if config.hidden:
        return False
    return all(link.connection_state == ConnectionState.CONNECTED for link in shown.connections)


def _is_on_its_way(view: View) -> bool:
    """Whether the kernel shows a member without data that will soon be somewhere else, by itself."""
    shown = view.status
    if shown is None or not is_diskful(view.config) or view.actual.initial_sync_completed:
        return False
    links = {link.connection_state for link in shown.connections}
    flows = {device.replication_state for link in shown.connections for device in link.peer_devices}
    if not links <= {*_COMING, ConnectionState.CONNECTED} or disk_state(shown) not in _USUAL:
        return False
    return bool(links & _COMING or flows & _COPYING)


def _only_shows_more(before: ReplicatedVolumeReplicaStatus, after: ReplicatedVolumeReplicaStatus) -> bool:
    """Whether the report differs in nothing that somebody acts on, now or if this agent should die."""
    if before.drbd.errors != after.drbd.errors or _recorded(before.drbd.actual) != _recorded(after.drbd.actual):
        return False
    if before.drbd.standstills != after.drbd.standstills:
        return False
    if before.datamesh_revision not in (0, after.datamesh_revision):
        return False
    reported, shown = before.drbd.status, after.drbd.status
    return shown is not None and (reported is None or not _lost(reported, shown))


def _recorded(actual: DrbdActual) -> DrbdActual:
    """What is written ahead of what it is about."""
    return replace(actual, disk="", initial_sync_completed=False, activity_log_at=None)


def _lost(reported: DrbdStatus, shown: DrbdStatus) -> bool:
    """Whether something that was there is there no more."""
    if shown.role != reported.role or (shown.suspended and not reported.suspended):
        return True
    if any(old.quorum and not new.quorum for old, new in zip(reported.devices, shown.devices, strict=False)):
        return True
    up = {link.peer_node_id for link in shown.connections if link.connection_state == ConnectionState.CONNECTED}
    return any(
        link.connection_state == ConnectionState.CONNECTED and link.peer_node_id not in up
        for link in reported.connections
    )
