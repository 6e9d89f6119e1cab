"""Which objects wake which volumes, and how soon. All reconcilers have the volume's name as their key.

An object that names its volume wakes it directly; one that concerns many volumes does so through ``fanning``. A ledger
wakes a volume while the volume's request and its answer differ; so it does, with both asked, in the moment when the
answer comes. What is only said of a volume or its replicas does not wake their reconciler.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from operator import attrgetter
from typing import Any, Final

from quorate.api import conditions, core, longhorn
from quorate.api.baremetal import Volume
from quorate.api.cluster_config import ClusterConfig
from quorate.api.conditions.rvr import Ready as ReplicaReady
from quorate.api.core import Lease
from quorate.api.longhorn import DiskSchedule
from quorate.api.longhorn.disk_schedule import DiskScheduledResourcesStatus, EntryState
from quorate.api.meta import ObjectMeta, Resource
from quorate.api.names import volume_of_replica
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
from quorate.api.storage.drbd import ConnectionState
from quorate.api.storage.rv import ReplicatedVolumeStatus
from quorate.api.storage.rvr import ReplicatedVolumeReplicaStatus
from quorate.api.struct import replace
from quorate.engine import Key, Watch, no_keys, own_key
from quorate.volumes import evacuation

#: What happens to a volume comes in bursts: three replicas, three agents. One pass is for all that came within so many
#: seconds of the first, or of a pass that found nothing to do.
BURST: Final = 0.1
REST: Final = 0.15
#: A link that is lost goes through several states, and its peers do not notice together: so many seconds pass before
#: anybody looks. The kernels have acted already, and nobody can do anything about it but say so.
UNTIL_LOST: Final = 2.0


def key(volume: str) -> Key:
    """The key of a volume."""
    return Key("", volume)


def _of_replica(replica: ReplicatedVolumeReplica) -> Iterable[Key]:
    return (key(replica.spec.replicated_volume_name),)


def _of_attachment(attachment: ReplicatedVolumeAttachment) -> Iterable[Key]:
    return (key(attachment.spec.replicated_volume_name),)


def _of_operation(operation: DRBDResourceOperation) -> Iterable[Key]:
    return (key(volume_of_replica(operation.spec.drbd_resource_name)),)


def _of_piece(piece: LVMLogicalVolume) -> Iterable[Key]:
    return (key(piece.volume_name),) if piece.volume_name else ()


def _of_orphans(node: longhorn.Node) -> Iterable[Key]:
    """Volumes that are not formed beside what is left of them."""
    return tuple(key(name) for name in dict.fromkeys(each.volume_name for each in node.status.orphans) if name)


def _orphans_changed(before: longhorn.Node | None, after: longhorn.Node | None) -> bool:
    return before is None or after is None or before.status.orphans != after.status.orphans


#: The last two states of each ledger, and whom they concern: every reconciler asks for both, one after the other.
_open: Final[dict[str, tuple[tuple[DiskSchedule, tuple[Key, ...]], ...]]] = {}


def _of_open_entries(schedule: DiskSchedule) -> Iterable[Key]:
    """Volumes whose request this ledger has not answered as asked."""
    known = _open.get(schedule.name, ())
    for state, keys in known:
        if state is schedule:
            return keys
    found = _with_open_entries(schedule)
    _open[schedule.name] = (*known[-1:], (schedule, found))
    return found


def _with_open_entries(schedule: DiskSchedule) -> tuple[Key, ...]:
    asked, told = schedule.spec.replicas, schedule.status.replicas
    unanswered = [name for name, size in asked.items() if not _settled(told.get(name), size)]
    returned = [name for name in told if name not in asked]
    return tuple(key(volume) for volume in dict.fromkeys(name[:-2] for name in (*unanswered, *returned)))


def _settled(answer: DiskScheduledResourcesStatus | None, size: int) -> bool:
    return answer is not None and answer.requested_size == size and answer.state is EntryState.SCHEDULED


#: What is only said of a volume, or of a replica: for people, and for whoever asks how it is. Nothing is decided by it.
_WORDS_OF_A_VOLUME: Final = ("observed_generation", "phase", "message", "conditions", "effective_layout")
_WORDS_OF_A_REPLICA: Final = (
    "observed_generation",
    "phase",
    "message",
    "conditions",
    "addresses",
    "backing_volume",
    "size",
    "peers",
)


def _all_but(cls: Any, names: Collection[str]) -> Callable[[Any], object]:
    """What gets everything of a struct but these fields, to be compared."""
    return attrgetter(*(name for name in cls.__struct_fields__ if name not in names))


_OF_METADATA: Final = _all_but(ObjectMeta, ("resource_version",))
_OF_A_VOLUME: Final = _all_but(ReplicatedVolumeStatus, _WORDS_OF_A_VOLUME)
_OF_A_REPLICA: Final = _all_but(ReplicatedVolumeReplicaStatus, _WORDS_OF_A_REPLICA)


def _volume_changed(before: ReplicatedVolume | None, after: ReplicatedVolume | None) -> bool:
    """Whether a volume changes in more than words."""
    return before is None or after is None or _differ(before, after, _OF_A_VOLUME)


def _replica_changed(before: ReplicatedVolumeReplica | None, after: ReplicatedVolumeReplica | None) -> bool:
    """The same; of a replica's words its volume looks at Ready alone, and knows for itself whose agent is silent."""
    if before is None or after is None or _differ(before, after, _OF_A_REPLICA):
        return True
    return _is_ready(before) != _is_ready(after) and not _is_silent(after)


def _until_settled(before: ReplicatedVolumeReplica | None, after: ReplicatedVolumeReplica | None) -> float:
    """Seconds that a change of a replica can wait: what its agent says of it, for what the other agents say."""
    if before is None or after is None or before.metadata.generation != after.metadata.generation:
        return 0.0
    return UNTIL_LOST if _only_loses_links(before, after) else BURST


def _only_loses_links(before: ReplicatedVolumeReplica, after: ReplicatedVolumeReplica) -> bool:
    old, new = before.status.drbd.status, after.status.drbd.status
    if old is None or new is None or len(old.connections) != len(new.connections):
        return False
    if old.connections == new.connections:
        return False
    for one, other in zip(old.connections, new.connections, strict=True):
        if one != other and (
            one.peer_node_id != other.peer_node_id or other.connection_state == ConnectionState.CONNECTED
        ):
            return False
    same = replace(after.status.drbd, status=replace(new, connections=old.connections))
    return not _differ(before, replace(after, status=replace(after.status, drbd=same)), _OF_A_REPLICA)


def _until_numbered(before: ReplicatedVolume | None, after: ReplicatedVolume | None) -> float:
    """Seconds that a change of a volume can wait: a new one is about to get its minor."""
    return BURST if before is None and after is not None and after.status.drbd.config.device_minor is None else 0.0


def _a_moment(before: Resource | None, after: Resource | None) -> float:
    """Seconds that it can wait for others of its sort."""
    return BURST


def _is_ready(replica: ReplicatedVolumeReplica | None) -> bool:
    return replica is not None and conditions.is_true(replica.status.conditions, ReplicaReady)


def _is_silent(replica: ReplicatedVolumeReplica | None) -> bool:
    found = conditions.find(replica.status.conditions, ReplicaReady) if replica is not None else None
    return found is not None and found.reason == ReplicaReady.AGENT_NOT_READY.code


def _differ(before: Any, after: Any, of_status: Callable[[Any], object]) -> bool:
    """Whether two states of an object differ in its spec, in what counts of its status, or in its metadata."""
    return (
        of_status(before.status) != of_status(after.status)
        or before.spec != after.spec
        or _OF_METADATA(before.metadata) != _OF_METADATA(after.metadata)
    )


#: For every reconciler of this package, beside its own signal from ``fan_out``.
WATCHES: Final[tuple[Watch[Any], ...]] = (
    Watch(ReplicatedVolume),
    Watch(ReplicatedVolumeReplica, _of_replica, patience=_a_moment),
    Watch(ReplicatedVolumeAttachment, _of_attachment),
    Watch(DRBDResourceOperation, _of_operation, patience=_a_moment),
    Watch(LVMLogicalVolume, _of_piece, patience=_a_moment),
    Watch(Volume, evacuation.of_volume),
    Watch(DiskSchedule, _of_open_entries),
    Watch(ReplicatedStorageClass, no_keys),
    Watch(ReplicatedStoragePool, no_keys),
    Watch(LVMVolumeGroup, no_keys),
    Watch(core.Node, no_keys),
    Watch(longhorn.Node, _of_orphans, when=_orphans_changed),
    Watch(Lease, no_keys),
    Watch(ClusterConfig, no_keys),
)


#: The same for the reconciler of volumes and their replicas, who looks at all of a volume: what it only says of its
#: objects does not wake it. The pass that said it would say the same again.
OF_VOLUMES: Final[tuple[Watch[Any], ...]] = (
    Watch(ReplicatedVolume, own_key, _volume_changed, _until_numbered),
    Watch(ReplicatedVolumeReplica, _of_replica, _replica_changed, _until_settled),
    *WATCHES[2:],
)
