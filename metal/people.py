"""What people do with the API, and what they see there: groups, pools, volumes, attachments."""

from __future__ import annotations

from collections.abc import Iterable

from metal.errors import Failed
from metal.stage import Stage, condition
from quorate.api import finalizers, labels
from quorate.api.meta import NodeName, ObjectMeta, VolumeName
from quorate.api.quantity import Quantity
from quorate.api.storage import (
    LVMLogicalVolume,
    LVMVolumeGroup,
    ReplicatedStorageClass,
    ReplicatedStoragePool,
    ReplicatedVolume,
    ReplicatedVolumeAttachment,
    ReplicatedVolumeReplica,
)
from quorate.api.storage.configuration import Replication, Topology
from quorate.api.storage.drbd import ReplicaType
from quorate.api.storage.llv import LogicalVolumePhase, LogicalVolumeType, LVMLogicalVolumeSpec, ThinSource
from quorate.api.storage.lvg import DeviceSelector, LocalGroup, LVMVolumeGroupSpec, ThinPool, VolumeGroupPhase
from quorate.api.storage.rsc import ReplicatedStorageClassSpec
from quorate.api.storage.rsp import PoolType, PoolVolumeGroup, ReplicatedStoragePoolSpec
from quorate.api.storage.rv import ReplicatedVolumeSpec
from quorate.api.storage.rva import ReplicatedVolumeAttachmentSpec
from quorate.errors import NotFound

GROUP = "vg0"
THIN = "thin"


async def make_group(
    stage: Stage, node: str, serial: str, *, group: str = GROUP, thin: bool = False, wait: bool = True
) -> str:
    """A volume group of the drive with that serial number; the object's name."""
    name = f"{node}-{group}"
    spec = LVMVolumeGroupSpec(
        actual_vg_name_on_the_node=group,
        local=LocalGroup(node_name=NodeName(node)),
        device_selector=DeviceSelector(serial_numbers=(serial,)),
        thin_pools=(ThinPool(name=THIN, size="50%"),) if thin else (),
    )
    meta = ObjectMeta(name=name, labels={labels.NODE: node})
    await stage.machines.store.create(LVMVolumeGroup(metadata=meta, spec=spec))
    if wait:
        await until_group(stage, name)
    return name


async def until_group(stage: Stage, name: str, seconds: float = 90.0) -> None:
    """Until a group, and its thin pools, can be used."""

    async def check() -> bool:
        found = await stage.machines.store.get(LVMVolumeGroup, name)
        stage.machines.journal.tell(stage.machines.now(), "", f"{name}: {found.status.phase} {found.status.message}")
        pools = {pool.name: pool.ready for pool in found.status.thin_pools}
        wanted = {pool.name for pool in found.spec.thin_pools}
        return found.status.phase is VolumeGroupPhase.READY and all(pools.get(pool) for pool in wanted)

    await stage.machines.until(f"{name} is Ready", check, seconds, every=1.0)


async def make_logical_volume(
    stage: Stage, node: str, name: str, size: str, *, thin: bool = False, zeroed: bool = False, group: str = GROUP
) -> None:
    """A logical volume that is nobody's replica."""
    spec = LVMLogicalVolumeSpec(
        actual_lv_name_on_the_node=name,
        type=LogicalVolumeType.THIN if thin else LogicalVolumeType.THICK,
        size=Quantity(size),
        lvm_volume_group_name=f"{node}-{group}",
        thin=ThinSource(pool_name=THIN) if thin else None,
        zeroed=zeroed,
    )
    meta = ObjectMeta(name=name, labels={labels.NODE: node}, finalizers=(finalizers.AGENT,))
    await stage.machines.store.create(LVMLogicalVolume(metadata=meta, spec=spec))


async def until_created(stage: Stage, *names: str, seconds: float = 90.0) -> None:
    """Until logical volumes can be used."""

    async def check() -> bool:
        found = [await stage.machines.store.get(LVMLogicalVolume, name) for name in names]
        for each in found:
            text = f"{each.name}: {each.status.phase} {each.status.reason} {each.status.message}"
            stage.machines.journal.tell(stage.machines.now(), "", text)
        return all(each.status.phase is LogicalVolumePhase.CREATED for each in found)

    await stage.machines.until(f"{', '.join(names)}: Created", check, seconds, every=1.0)


async def until_gone(stage: Stage, cls: type, name: str, seconds: float = 120.0) -> float:
    """Until an object is no more; how long it took."""

    async def check() -> bool:
        try:
            await stage.machines.store.get(cls, name)
        except NotFound:
            return True
        return False

    return await stage.machines.until(f"{cls.__name__} {name} is gone", check, seconds, every=1.0)


# --- volumes ---

LEVELS = {
    "1D": Replication.NONE,
    "2D": Replication.CONSISTENCY,
    "2D+1TB": Replication.AVAILABILITY,
    "3D": Replication.CONSISTENCY_AND_AVAILABILITY,
}


async def make_pool(stage: Stage, *levels: str, thin: bool = False, nodes: Iterable[str] = ()) -> None:
    """Groups on every node's first drive, a pool of them, and a class for each level, ``2d-1tb`` say."""
    members = []
    for node in nodes or stage.machines.nodes:
        name = await make_group(stage, node, stage.machines.drives(node)[0], thin=thin, wait=False)
        members.append(PoolVolumeGroup(name=name, thin_pool_name=THIN if thin else None))
    for member in members:
        await until_group(stage, member.name)
    spec = ReplicatedStoragePoolSpec(type=PoolType.LVM_THIN if thin else PoolType.LVM, lvm_volume_groups=tuple(members))
    await stage.machines.store.create(ReplicatedStoragePool(metadata=ObjectMeta(name="pool"), spec=spec))
    for level in levels:
        made = ReplicatedStorageClassSpec(storage_pool="pool", replication=LEVELS[level], topology=Topology.IGNORED)
        await stage.machines.store.create(ReplicatedStorageClass(metadata=ObjectMeta(name=class_of(level)), spec=made))
    stage.machines.journal.recording = True


def class_of(level: str) -> str:
    """The class of a level."""
    return f"level-{level.lower().replace('+', '-')}"


async def make_volume(stage: Stage, level: str, name: str = "v", size: str = "64Mi") -> None:
    """A volume; does not wait."""
    spec = ReplicatedVolumeSpec(size=Quantity(size), replicated_storage_class_name=class_of(level))
    await stage.machines.store.create(ReplicatedVolume(metadata=ObjectMeta(name=name), spec=spec))


async def until_condition(stage: Stage, name: str, wanted: str = "Ready", seconds: float = 180.0) -> float:
    """Until a volume's condition is True; how long it took."""

    async def check() -> bool:
        found = await stage.machines.store.get(ReplicatedVolume, name)
        told = ", ".join(f"{each.type}={each.status}" for each in found.status.conditions)
        stage.machines.journal.tell(stage.machines.now(), "", f"{name}: {found.status.message} [{told}]")
        return condition(found.status.conditions, wanted) == "True"

    return await stage.machines.until(f"{name} is {wanted}", check, seconds, every=1.0)


async def replicas(stage: Stage, name: str = "v") -> dict[str, ReplicatedVolumeReplica]:
    """Of a volume, by node."""
    found = (await stage.machines.store.list(ReplicatedVolumeReplica)).items
    return {
        str(each.spec.node_name): each
        for each in sorted(found, key=lambda each: each.name)
        if each.spec.replicated_volume_name == name and each.spec.node_name
    }


async def homes(stage: Stage, name: str = "v") -> tuple[list[str], list[str]]:
    """Nodes with a copy of a volume, and with a replica without one."""
    found = await replicas(stage, name)
    diskful = [node for node, each in found.items() if each.spec.type is ReplicaType.DISKFUL]
    return diskful, [node for node in found if node not in diskful]


async def attach(stage: Stage, node: str, name: str = "v", seconds: float = 120.0) -> str:
    """Have a volume on a node; the device."""
    spec = ReplicatedVolumeAttachmentSpec(replicated_volume_name=VolumeName(name), node_name=NodeName(node))
    meta = ObjectMeta(name=f"{name}-on-{node}")
    await stage.machines.store.create(ReplicatedVolumeAttachment(metadata=meta, spec=spec))
    device = [""]

    async def check() -> bool:
        found = await stage.machines.store.get(ReplicatedVolumeAttachment, meta.name)
        device[0] = found.status.device_path
        stage.machines.journal.tell(
            stage.machines.now(), node, f"attachment: {found.status.phase} {found.status.message}"
        )
        return condition(found.status.conditions, "Ready") == "True" and bool(device[0])

    await stage.machines.until(f"{name} is attached on {node}", check, seconds, every=1.0)
    return device[0]


async def detach(stage: Stage, node: str, name: str = "v", seconds: float = 120.0) -> None:
    """Let a node have it no more."""
    await stage.machines.store.delete(ReplicatedVolumeAttachment, f"{name}-on-{node}")
    await until_gone(stage, ReplicatedVolumeAttachment, f"{name}-on-{node}", seconds)


async def backing_device(stage: Stage, node: str, name: str = "v") -> str:
    """The logical volume under a copy."""
    replica = (await replicas(stage, name)).get(node)
    if replica is None:
        raise Failed(f"{name} has no replica on {node}")
    for each in (await stage.machines.store.list(LVMLogicalVolume)).items:
        if each.name.startswith(f"{replica.name}-") or each.name == replica.name:
            return f"/dev/{GROUP}/{each.spec.actual_lv_name_on_the_node}"
    raise Failed(f"{replica.name} has no logical volume")


async def state(stage: Stage, name: str = "v") -> dict[str, str]:
    """A volume and its members as the kernels and the API have them, to be compared."""
    volume = await stage.machines.store.get(ReplicatedVolume, name)
    found = {each.type: condition((each,), each.type) for each in volume.status.conditions}
    for node in await replicas(stage, name):
        for resource in await stage.machines.status(node, "state", name):
            device = (resource.get("devices") or [{}])[0]
            links = sorted(link["connection-state"] for link in resource.get("connections", ()))
            quorum = "quorum" if device.get("quorum") else "no quorum"
            found[f"kernels, {node}"] = f"{resource['role']} {device.get('disk-state')} {quorum} {links}"
    return found


async def nothing_left(stage: Stage) -> dict[str, str]:
    """What is left on the nodes of volumes that are no more; empty values are what it must be."""
    found = {}
    for node in stage.machines.nodes:
        said = await stage.machines.run(node, f"lvs --noheadings -o lv_name {GROUP}")
        volumes = sorted(word for word in said.output.split() if word.startswith("replica-"))
        found[f"{node}: logical volumes"] = " ".join(volumes)
        found[f"{node}: resources"] = " ".join(each["name"] for each in await stage.machines.status(node, "the end"))
        for what, command in (
            ("configuration", "ls /var/lib/quorate/drbd.d /etc/drbd.d"),
            ("grown disks", "ls /var/lib/drbd"),
            ("mappings", "ls /dev/mapper"),
        ):
            listed = (await stage.machines.run(node, command)).output.split()
            left = [word for word in listed if word.endswith((".res", ".lkbd", ".res_tmp")) or "replica--" in word]
            found[f"{node}: {what}"] = " ".join(left)
    return found
