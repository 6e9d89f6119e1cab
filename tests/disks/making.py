"""Objects for tests of disks, as a store would hold them, and caches that hold such objects."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from quorate.api import core, finalizers, labels, names
from quorate.api.baremetal.drive import Drive, DriveHealth, DriveSpec, DriveStatus, OperationalStatus
from quorate.api.core.node import NodeSpec as MachineSpec
from quorate.api.longhorn import BackingImage, DiskSchedule, Node
from quorate.api.longhorn.backing_image import BackingImageSpec
from quorate.api.longhorn.disk_schedule import DiskScheduledResourcesStatus, DiskScheduleSpec, EntryState
from quorate.api.longhorn.node import DiskSpec, NodeSpec
from quorate.api.meta import Bytes, NodeName, ObjectMeta, Resource, VolumeName
from quorate.api.quantity import Quantity
from quorate.api.storage import LVMLogicalVolume, LVMVolumeGroup, ReplicatedVolume, ReplicatedVolumeReplica
from quorate.api.storage.drbd import ReplicaType
from quorate.api.storage.llv import LogicalVolumePhase, LogicalVolumeType, LVMLogicalVolumeSpec, LVMLogicalVolumeStatus
from quorate.api.storage.lvg import (
    GroupDevice,
    LocalGroup,
    LVMVolumeGroupSpec,
    LVMVolumeGroupStatus,
    ThinPool,
    ThinPoolStatus,
    VolumeGroupPhase,
)
from quorate.api.storage.rv import ReplicatedVolumeSpec
from quorate.api.storage.rvr import ReplicatedVolumeReplicaSpec
from quorate.api.struct import replace
from quorate.disks import CONTROLLERS
from quorate.engine import Controller, Index, Key, PatchStatus, Plan, Reader
from quorate.engine.cache import Cache
from quorate.engine.store import ObjectList

NOW = datetime(2030, 1, 1, tzinfo=UTC)
GI = 1024**3
UUID = "VGuuid-0000"


def meta(name: str, *, namespace: str = "", age: float = 0.0, **more: Any) -> ObjectMeta:
    """Metadata of an object that a store holds; ``age`` in seconds before NOW."""
    created = NOW - timedelta(seconds=age)
    return ObjectMeta(
        name=name,
        namespace=namespace,
        uid=f"uid-{name}",
        resource_version="1",
        generation=1,
        creation_timestamp=created,
        **more,
    )


def quantity(size: int | None) -> Quantity | None:
    return None if size is None else Quantity.of_bytes(size)


def group(
    name: str = "data",
    *,
    node: str = "n1",
    uuid: str = UUID,
    size: int = 100 * GI,
    free: int | None = None,
    phase: VolumeGroupPhase = VolumeGroupPhase.READY,
    pools: Sequence[ThinPoolStatus] = (),
    pool_specs: Sequence[ThinPool] = (),
    drives: Sequence[str] = (),
    message: str = "",
    annotations: Mapping[str, str] | None = None,
) -> LVMVolumeGroup:
    """A volume group, as its agent reports it."""
    devices = tuple(
        GroupDevice(path=f"/dev/sd{letter}", drive_uuid=drive, size=Quantity.of_bytes(size))
        for letter, drive in zip("bcdefgh", drives, strict=False)
    )
    return LVMVolumeGroup(
        metadata=meta(
            name, labels={labels.NODE: node}, annotations=annotations or {}, finalizers=(finalizers.CONTROLLER,)
        ),
        spec=LVMVolumeGroupSpec(
            actual_vg_name_on_the_node=name,
            local=LocalGroup(node_name=NodeName(node)),
            thin_pools=tuple(pool_specs),
        ),
        status=LVMVolumeGroupStatus(
            phase=phase,
            message=message,
            vg_uuid=uuid,
            vg_size=Quantity.of_bytes(size),
            vg_free=Quantity.of_bytes(size if free is None else free),
            extent_size=Quantity("4Mi"),
            thin_pools=tuple(pools),
            devices=devices,
        ),
    )


def pool(name: str = "thin", *, size: int | None = 40 * GI, used: int | None = 0, ready: bool = True) -> ThinPoolStatus:
    return ThinPoolStatus(
        name=name, uuid=f"Pool-{name}", ready=ready, actual_size=quantity(size), used_size=quantity(used)
    )


def inventory(name: str = "n1", spec: NodeSpec | None = None) -> Node:
    return Node(metadata=meta(name, namespace=names.NAMESPACE), spec=spec or NodeSpec())


def said(name: str, **spec: Any) -> NodeSpec:
    """What people say of one disk."""
    return NodeSpec(disks={name: DiskSpec(**spec)})


def machine(name: str = "n1", *, cordoned: bool = False, **metadata: Any) -> core.Node:
    return core.Node(metadata=meta(name, **metadata), spec=MachineSpec(unschedulable=cordoned))


def drive(
    name: str = "d1",
    *,
    health: DriveHealth | None = DriveHealth.GOOD,
    status: OperationalStatus = OperationalStatus.OPERATIVE,
    annotations: Mapping[str, str] | None = None,
) -> Drive:
    return Drive(
        metadata=meta(name, annotations=annotations or {}),
        spec=DriveSpec(uuid=name, serial_number=name, node_id=NodeName("n1")),
        status=DriveStatus(health=health, operational_status=status),
    )


def schedule(
    replicas: Mapping[str, int] | None = None,
    images: Mapping[str, int] | None = None,
    *,
    uuid: str = UUID,
    disk: str = "data",
    node: str = "n1",
) -> DiskSchedule:
    """A ledger of which nothing is decided yet."""
    return DiskSchedule(
        metadata=meta(names.disk_schedule(uuid), namespace=names.NAMESPACE, finalizers=(finalizers.LONGHORN,)),
        spec=DiskScheduleSpec(
            name=disk, node_id=NodeName(node), replicas=as_bytes(replicas or {}), backing_images=as_bytes(images or {})
        ),
    )


def as_bytes(sizes: Mapping[str, int]) -> dict[str, Bytes]:
    return {name: Bytes(size) for name, size in sizes.items()}


def granted(size: int, asked: int | None = None) -> DiskScheduledResourcesStatus:
    return DiskScheduledResourcesStatus(
        state=EntryState.SCHEDULED, scheduled_size=Bytes(size), requested_size=Bytes(size if asked is None else asked)
    )


def rejected(asked: int, *, held: int = 0, reason: str = "NoSpace", message: str = "") -> DiskScheduledResourcesStatus:
    return DiskScheduledResourcesStatus(
        state=EntryState.REJECTED,
        scheduled_size=Bytes(held),
        requested_size=Bytes(asked),
        reason=reason,
        message=message,
    )


def replica(name: str, *, age: float = 0.0) -> ReplicatedVolumeReplica:
    return ReplicatedVolumeReplica(
        metadata=meta(name, age=age),
        spec=ReplicatedVolumeReplicaSpec(
            replicated_volume_name=VolumeName(name.rpartition("-")[0]), type=ReplicaType.DISKFUL
        ),
    )


def volume(name: str, *, age: float = 0.0) -> ReplicatedVolume:
    return ReplicatedVolume(
        metadata=meta(name, age=age),
        spec=ReplicatedVolumeSpec(size=Quantity("1Gi"), replicated_storage_class_name="any"),
    )


def image(name: str = "os", **spec: Any) -> BackingImage:
    fields = {"size": Quantity("1Gi")} | spec
    return BackingImage(
        metadata=meta(name, namespace=names.NAMESPACE, finalizers=(finalizers.LONGHORN,)),
        spec=BackingImageSpec(**fields),
    )


def logical_volume(
    name: str, *, size: int = GI, phase: LogicalVolumePhase | None = LogicalVolumePhase.CREATED, **metadata: Any
) -> LVMLogicalVolume:
    return LVMLogicalVolume(
        metadata=meta(name, finalizers=finalizers.OF_A_NEW_LOGICAL_VOLUME, **metadata),
        spec=LVMLogicalVolumeSpec(
            actual_lv_name_on_the_node=name,
            type=LogicalVolumeType.THICK,
            size=Quantity.of_bytes(size),
            lvm_volume_group_name="data",
        ),
        status=LVMLogicalVolumeStatus(phase=phase, actual_size=Quantity.of_bytes(size)),
    )


def deleting(obj: Any) -> Any:
    return replace(obj, metadata=replace(obj.metadata, deletion_timestamp=NOW))


class FixedReader(Reader):
    """Reads what it was given, with the indexes of the real controllers."""

    def __init__(self, objects: Sequence[Resource], silent: Mapping[str, float]) -> None:
        indexes: defaultdict[type[Resource], list[Index[Any]]] = defaultdict(list)
        for controller in CONTROLLERS:
            for index in controller.indexes:
                indexes[index.cls].append(index)
        caches = []
        for cls in {watch.cls for controller in CONTROLLERS for watch in controller.watches}:
            cache: Cache[Any] = Cache(cls, indexes=indexes[cls])
            cache.replace(ObjectList(tuple(obj for obj in objects if type(obj) is cls), "1"))
            caches.append(cache)
        super().__init__(caches)
        self._silent = silent

    def silent_for(self, cls: type[Resource], name: str, namespace: str = "") -> float | None:
        assert cls is core.Lease
        return self._silent.get(name.removeprefix(names.agent_lease(NodeName(""))))


def reader(*objects: Resource, silent: Mapping[str, float] | None = None) -> Reader:
    """Caches with these objects. Agents of n1 to n4 have just been heard, unless told otherwise."""
    return FixedReader(objects, dict.fromkeys(["n1", "n2", "n3", "n4"], 0.0) if silent is None else silent)


def pass_over(
    controller: Controller[Any],
    name: str,
    *objects: Resource,
    now: datetime = NOW,
    silent: Mapping[str, float] | None = None,
) -> Plan:
    """What one pass over a key decides."""
    snapshot = controller.observe(reader(*objects, silent=silent), Key(names.NAMESPACE, name))
    return Plan() if snapshot is None else controller.decide(snapshot, now, Random(0))


def status_written(plan: Plan) -> Any:
    """The object with the status that a plan writes last."""
    assert plan.status is not None
    assert isinstance(plan.status, PatchStatus)
    return plan.status.intended


def observed(obj: Any) -> Any:
    """The object as it is when its status speaks of its current spec."""
    return replace(obj, status=replace(obj.status, observed_generation=obj.metadata.generation))
