"""What the disks controller says of an LVMVolumeGroup itself: whose it is, and whether it can be used.

People create groups and do not know the label by which agents find theirs, so it is set here. What is on the node is
reported by its agent, in status; the condition is composed here, because only we know when the agent has gone silent.
"""

from __future__ import annotations

from datetime import datetime

from quorate.api import conditions, labels
from quorate.api.conditions import Verdict
from quorate.api.conditions.lvm import Ready
from quorate.api.storage.lvg import LVMVolumeGroup, VolumeGroupPhase
from quorate.api.struct import replace
from quorate.engine import Patch, PatchStatus


def look_after(group: LVMVolumeGroup, agent_is_fresh: bool, now: datetime) -> tuple[Patch | PatchStatus, ...]:
    """The label, where it is missing, and the condition."""
    return _labelled(group), _judged(group, readiness(group, agent_is_fresh), now)


def readiness(group: LVMVolumeGroup, agent_is_fresh: bool) -> Verdict:
    """Whether the group and its pools can be used."""
    status = group.status
    if not agent_is_fresh:
        return Ready.AGENT_NOT_READY()
    if status.phase is VolumeGroupPhase.READY:
        return Ready.READY()
    if not status.vg_uuid:
        return Ready.VOLUME_GROUP_NOT_FOUND(status.message)
    if any(not pool.ready for pool in status.thin_pools):
        return Ready.THIN_POOL_NOT_READY(status.message)
    return Ready.VOLUME_GROUP_INCOMPLETE(status.message)


def _labelled(group: LVMVolumeGroup) -> Patch:
    metadata = group.metadata
    if labels.NODE in metadata.labels:
        return Patch(group, group)
    marked = {**metadata.labels, labels.NODE: group.spec.local.node_name}
    return Patch(group, replace(group, metadata=replace(metadata, labels=marked)))


def _judged(group: LVMVolumeGroup, verdict: Verdict, now: datetime) -> PatchStatus:
    merged = conditions.merge(group.status.conditions, [verdict], now=now, generation=group.metadata.generation)
    return PatchStatus(group, replace(group, status=replace(group.status, conditions=merged)))
