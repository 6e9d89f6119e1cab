"""What the replicas ask of the datamesh, gathered in the volume's status (``ensureDatameshPendingReplicaTransitions``).

A sorted merge of what was known and what the replicas ask now: gone ones drop out, new ones are stamped with the time,
changed ones are stamped anew, equal ones keep their stamp and the answer that was given.
"""

from __future__ import annotations

from datetime import datetime

from quorate.api.storage.datamesh import PendingReplicaTransition
from quorate.api.storage.rv import ReplicatedVolumeStatus
from quorate.api.struct import replace
from quorate.volumes.view import VolumeView


def with_pending(view: VolumeView, status: ReplicatedVolumeStatus, now: datetime) -> ReplicatedVolumeStatus:
    """The status with the replicas' requests; the same one if nothing has changed."""
    known = {each.name: each for each in status.datamesh_pending_replica_transitions}
    merged = []
    for replica in view.replicas:
        asked = replica.replica.status.datamesh_pending_transition
        if asked is None:
            continue
        before = known.get(replica.name)
        if before is None or before.transition != asked:
            before = PendingReplicaTransition(name=replica.name, transition=asked, first_observed_at=now)
        merged.append(before)
    found = tuple(merged)
    if found == status.datamesh_pending_replica_transitions:
        return status
    return replace(status, datamesh_pending_replica_transitions=found)
