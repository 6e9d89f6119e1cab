"""Whether what a formation has made may be thrown away: only if every disk is shown, now, to have nothing on it.

What the API says of a formation may be old: its store may have been restored from a copy, and the volume may have lived
for years since (decision 0010). So no report is believed because it is there. Everybody is asked, by one more revision
of the datamesh: whoever shows that has looked at its kernel since we asked.

| a replica with a disk                                                              | its disk    |
|------------------------------------------------------------------------------------|-------------|
| was up to date once, or anybody in touch with it sees that it has data; or the     | has data    |
| logical volume was there before it                                                 |             |
| a member that shows the revision asked for, and is Inconsistent                    | is empty    |
| not a member yet, its agent is heard: an agent keeps a disk with DRBD's metadata   | is empty    |
| for a replica that never was a member (decision 0009)                              |             |
| its machine has left the cluster                                                   | is not ours |
| its agent is heard, and a drive's procedure keeps it whatever becomes of us        | is not ours |
| anything else, and every logical volume without its replica                        | is unknown  |

Data anywhere forbids it, in every phase: of a disk that is up to date nobody can tell whether users have written on it.
What is unknown forbids it for as long as it is: the volume waits, and says for whom, and what a person can do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from quorate.api.conditions.lvm import LogicalVolumeFailure
from quorate.api.scalars import ReplicaName
from quorate.api.storage.drbd import DiskState, ReplicaType
from quorate.volumes.view import ReplicaView, VolumeView
from quorate.volumes.volume import leftovers
from quorate.volumes.volume.formation.errors import first_error
from quorate.volumes.waits import Blocker, Wait, ids

_WITH_DATA: Final = frozenset({DiskState.UP_TO_DATE, DiskState.CONSISTENT, DiskState.OUTDATED})
#: An answer counts for so many times the time in which agents must be heard; then everybody is asked again.
_COUNTS: Final = 3


@dataclass(frozen=True, slots=True)
class Finding:
    """What is known of a volume's disks."""

    #: Whether there are any that are ours to throw away.
    disks: bool = False
    with_data: tuple[ReplicaName, ...] = ()
    #: Why it is not known, by replica or logical volume.
    unknown: Mapping[str, str] = field(default_factory=dict)


def look(view: VolumeView) -> Finding:
    """What every disk of the volume is known to be."""
    replicas = [each for each in view.replicas if _has_disk(each)]
    with_data = tuple(each.name for each in replicas if _has_data(view, each))
    unknown: dict[str, str] = {each.name: why for each in replicas if (why := _doubt(view, each))}
    kept = leftovers.of_earlier_volumes(view)
    unknown |= {piece.name: "its replica is missing" for piece in leftovers.strays(view) if piece not in kept}
    ours = any(each.node is None or not each.node.gone for each in replicas) or bool(unknown)
    return Finding(disks=ours, with_data=with_data, unknown=unknown)


def refusal(view: VolumeView, found: Finding, wait: Wait) -> Wait | None:
    """Why nothing may be thrown away, and what a person can do about it; None: as far as is known, it may."""
    if found.with_data:
        return Wait(
            "ReplicasHoldData",
            f"not started again, because {ids(found.with_data)} hold data; {wait.message}",
            tuple(Blocker("ReplicatedVolumeReplica", name) for name in found.with_data),
        )
    if not found.unknown:
        return None
    told = "; ".join(f"{name}: {why}" for name, why in found.unknown.items())
    message = (
        "not started again before every disk is known to be empty, for the volume may be older than the API knows:"
        f" {told}. It goes on when they have shown it. If {view.name} never held data, delete it and make it anew, or"
        f" delete the Node object of a machine that does not come back; {wait.message}"
    )
    return Wait("DisksNotKnownEmpty", message, tuple(_blocker(view, name) for name in found.unknown))


def time_to_answer(view: VolumeView, now: datetime) -> float | None:
    """Seconds that whoever was asked still has before an answer counts; None: nobody was asked lately.

    An agent that is silent counts as heard for so long after a leader's start: no answer of before that is believed.
    """
    formation, patience = view.formation, view.config.agent.lease_duration.seconds
    if formation is None or formation.asked_at is None:
        return None
    age = (now - formation.asked_at) / timedelta(seconds=1)
    return max(0.0, patience - age) if 0 <= age <= _COUNTS * patience else None


def serves(view: VolumeView) -> bool:
    """Whether a copy that is up to date has quorum, by its own word of the current revision: the volume can be used."""
    return any(
        replica.member is not None
        and replica.confirms(view.volume.status.datamesh_revision)
        and (state := view.state_of(replica.name)).disk == DiskState.UP_TO_DATE
        and bool(state.quorum)
        for replica in view.replicas
    )


def _has_disk(replica: ReplicaView) -> bool:
    member = replica.member
    return replica.diskful or bool(replica.volumes) or (member is not None and member.type is ReplicaType.DISKFUL)


def _has_data(view: VolumeView, replica: ReplicaView) -> bool:
    return (
        replica.replica.status.drbd.actual.initial_sync_completed
        or view.state_of(replica.name).disk in _WITH_DATA
        or any(volume.status.reason == LogicalVolumeFailure.LV_EXISTS.code for volume in replica.volumes)
    )


def _doubt(view: VolumeView, replica: ReplicaView) -> str:
    """Why it is not known that nothing is on its disk; "" if it is, or there is none, or none that is ours."""
    if replica.node is None or replica.node.gone:
        return ""
    if not replica.node.fresh:
        return f"{replica.node_name} is not heard"
    if replica.member is None or any(volume.name in view.kept for volume in replica.volumes):
        return ""
    revision, disk = view.volume.status.datamesh_revision, view.state_of(replica.name).disk
    if replica.confirms(revision) and disk == DiskState.INCONSISTENT:
        return ""
    # Also one that cannot look at its kernel.
    unshown = f"{replica.node_name} does not show revision {revision}"
    why = f"its disk is {disk}" if replica.confirms(revision) else unshown
    return f"{why}; {first_error(replica)}".removesuffix("; ")


def _blocker(view: VolumeView, name: str) -> Blocker:
    is_replica = any(each.name == name for each in view.replicas)
    return Blocker("ReplicatedVolumeReplica" if is_replica else "LVMLogicalVolume", name)
