"""Pictures of volumes: healthy ones of any layout, to be spoilt by a test in one respect."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from dataclasses import replace as changed
from datetime import UTC, datetime
from random import Random
from typing import Any

from quorate.api import core, finalizers, labels, names
from quorate.api.conditions.disks import Schedulable
from quorate.api.conditions.merging import merge
from quorate.api.longhorn import DiskSchedule
from quorate.api.longhorn.disk_schedule import (
    DiskScheduledResourcesStatus,
    DiskScheduleSpec,
    DiskScheduleStatus,
    EntryState,
)
from quorate.api.meta import Bytes, NodeName, ObjectMeta, VolumeName
from quorate.api.quantity import Quantity
from quorate.api.secret import Secret
from quorate.api.storage import (
    LVMLogicalVolume,
    LVMVolumeGroup,
    ReplicatedStoragePool,
    ReplicatedVolume,
    ReplicatedVolumeAttachment,
    ReplicatedVolumeReplica,
)
from quorate.api.storage.configuration import Configuration, Replication, Topology, VolumeAccess
from quorate.api.storage.datamesh import Datamesh, Member, NetworkAddress
from quorate.api.storage.drbd import (
    Address,
    Connection,
    Device,
    DrbdActual,
    DrbdStatus,
    PeerDevice,
    ReplicaDrbd,
    ReplicaType,
    SharedSecretAlgorithm,
)
from quorate.api.storage.llv import LogicalVolumePhase, LVMLogicalVolumeStatus
from quorate.api.storage.lvg import LocalGroup, LVMVolumeGroupSpec, LVMVolumeGroupStatus
from quorate.api.storage.rsp import (
    EligibleNode,
    EligibleVolumeGroup,
    PoolType,
    PoolVolumeGroup,
    ReplicatedStoragePoolSpec,
    ReplicatedStoragePoolStatus,
)
from quorate.api.storage.rv import ReplicatedVolumeSpec, ReplicatedVolumeStatus, VolumeDrbd, VolumeDrbdConfig
from quorate.api.storage.rva import ReplicatedVolumeAttachmentSpec
from quorate.api.storage.rvr import ReplicatedVolumeReplicaSpec, ReplicatedVolumeReplicaStatus
from quorate.api.struct import replace
from quorate.engine import Create, Delete, Patch, PatchStatus, Plan, ReleaseFinalizer, Write
from quorate.placement.layout import LEVELS
from quorate.volumes.replica.controller import decide
from quorate.volumes.replica.snapshot import Snapshot
from quorate.volumes.view import NodeView, ReplicaView, VolumeView

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
MI = 1024**2
GI = 1024**3
VOLUME = VolumeName("pvc-1")
REVISION = 7
D, A, TB = ReplicaType.DISKFUL, ReplicaType.ACCESS, ReplicaType.TIE_BREAKER
EXTENT = 4 * MI


def name(number: int) -> str:
    return f"{VOLUME}-{number}"


def node_name(number: int) -> NodeName:
    return NodeName(f"n{number}")


def address(number: int) -> Address:
    return Address(ipv4=f"10.0.0.{number + 1}", port=7000 + number)


def group(number: int) -> LVMVolumeGroup:
    return LVMVolumeGroup(
        metadata=ObjectMeta(name=f"g{number}"),
        spec=LVMVolumeGroupSpec(actual_vg_name_on_the_node="data", local=LocalGroup(node_name=node_name(number))),
        status=LVMVolumeGroupStatus(extent_size=Quantity.of_bytes(EXTENT)),
    )


def member(number: int, sort: ReplicaType, **changes: Any) -> Member:
    fields: dict[str, Any] = {
        "name": name(number),
        "type": sort,
        "node_name": node_name(number),
        "node_id": number,
        "addresses": (NetworkAddress(system_network_name="Internal", address=address(number)),),
        "lvm_volume_group_name": f"g{number}" if sort is D else "",
    }
    return Member(**{**fields, **changes})


def report(number: int, layout: tuple[ReplicaType, ...], **changes: Any) -> DrbdStatus:
    """What a healthy member's kernel shows."""
    own = layout[number]
    disks = {True: "UpToDate", False: "Diskless"}
    links = tuple(
        Connection(
            peer_node_id=other,
            name=node_name(other),
            connection_state="Connected",
            peer_role="Secondary",
            peer_devices=(PeerDevice(replication_state="Established", peer_disk_state=disks[sort is D]),),
        )
        for other, sort in enumerate(layout)
        if other != number and (own is D or sort is D)
    )
    device = Device(minor=1000, disk_state=disks[own is D], client=own is not D, quorum=True, size=GI // 1024)
    return replace(
        DrbdStatus(name=VOLUME, node_id=number, role="Secondary", devices=(device,), connections=links), **changes
    )


def ledger(number: int, asked: int | None, granted: int | None = None, *, key: str | None = None) -> DiskSchedule:
    key = key or name(number)
    answers = {}
    if granted is not None:
        answers[key] = DiskScheduledResourcesStatus(
            state=EntryState.SCHEDULED, scheduled_size=Bytes(granted), requested_size=Bytes(asked or granted)
        )
    return DiskSchedule(
        metadata=ObjectMeta(name=f"u{number}", namespace=names.NAMESPACE),
        spec=DiskScheduleSpec(
            name=f"g{number}", node_id=node_name(number), replicas={} if asked is None else {key: Bytes(asked)}
        ),
        status=DiskScheduleStatus(
            replicas=answers,
            storage_available=Bytes(100 * GI),
            conditions=merge((), [Schedulable.SCHEDULABLE()], now=NOW),
        ),
    )


def replica(number: int, layout: tuple[ReplicaType, ...], **status: Any) -> ReplicatedVolumeReplica:
    """A healthy member, as its agent has left it."""
    sort = layout[number]
    fields: dict[str, Any] = {
        "actual_type": sort,
        "datamesh_revision": REVISION,
        "lvm_logical_volume_name": names.logical_volume(name(number), f"g{number}") if sort is D else "",
        "drbd": ReplicaDrbd(
            status=report(number, layout),
            actual=DrbdActual(
                disk=f"/dev/data/replica-{names.logical_volume(name(number), f'g{number}')}" if sort is D else "",
                initial_sync_completed=True,
                metadata_created=names.logical_volume(name(number), f"g{number}") if sort is D else "",
                activity_log_at=Quantity.of_bytes(GI),
            ),
        ),
    }
    made = ReplicatedVolumeReplica(
        metadata=ObjectMeta(
            name=name(number),
            uid=f"uid-{number}",
            generation=1,
            resource_version="1",
            creation_timestamp=NOW,
            labels={labels.NODE: node_name(number), labels.REPLICATED_VOLUME: VOLUME},
            finalizers=(*finalizers.OF_A_NEW_REPLICA, *finalizers.OF_A_MEMBER),
        ),
        spec=ReplicatedVolumeReplicaSpec(
            replicated_volume_name=VOLUME,
            type=sort,
            node_name=node_name(number),
            lvm_volume_group_name=f"g{number}" if sort is D else None,
        ),
        status=ReplicatedVolumeReplicaStatus(**{**fields, **status}),
    )
    config = replace(made.status.drbd.config, address=address(number), node_id=number)
    return replace(made, status=replace(made.status, drbd=replace(made.status.drbd, config=config)))


def pool(count: int) -> ReplicatedStoragePool:
    return ReplicatedStoragePool(
        metadata=ObjectMeta(name="fast"),
        spec=ReplicatedStoragePoolSpec(
            type=PoolType.LVM, lvm_volume_groups=tuple(PoolVolumeGroup(name=f"g{number}") for number in range(count))
        ),
        status=ReplicatedStoragePoolStatus(
            eligible_nodes=tuple(
                EligibleNode(
                    node_name=node_name(number),
                    node_ready=True,
                    agent_ready=True,
                    lvm_volume_groups=(EligibleVolumeGroup(name=f"g{number}", ready=True),),
                )
                for number in range(count)
            )
        ),
    )


def configuration(replication: Replication, access: VolumeAccess = VolumeAccess.PREFERABLY_LOCAL) -> Configuration:
    level = LEVELS[replication]
    return Configuration(
        replicated_storage_pool_name="fast",
        replication=replication,
        topology=Topology.IGNORED,
        volume_access=access,
        failures_to_tolerate=level.failures_to_tolerate,
        guaranteed_minimum_data_redundancy=level.data_redundancy,
    )


LAYOUTS: Mapping[Replication, tuple[ReplicaType, ...]] = {
    Replication.NONE: (D,),
    Replication.AVAILABILITY: (D, D, TB),
    Replication.CONSISTENCY: (D, D),
    Replication.CONSISTENCY_AND_AVAILABILITY: (D, D, D),
}


def volume(replication: Replication, layout: tuple[ReplicaType, ...], **status: Any) -> ReplicatedVolume:
    level = LEVELS[replication]
    fields: dict[str, Any] = {
        "configuration": configuration(replication),
        "datamesh_revision": REVISION,
        "datamesh": Datamesh(
            members=tuple(member(number, sort, hidden=sort is A) for number, sort in enumerate(layout)),
            size=Quantity.of_bytes(GI),
            system_network_names=("Internal",),
        ),
        "drbd": VolumeDrbd(
            config=VolumeDrbdConfig(
                device_minor=1000,
                shared_secret=Secret("s3cret"),
                shared_secret_alg=SharedSecretAlgorithm.SHA256,
                quorum=level.majority,
                quorum_minimum_redundancy=level.minimum_redundancy,
            )
        ),
    }
    return ReplicatedVolume(
        metadata=ObjectMeta(
            name=VOLUME, uid="uid-rv", generation=1, resource_version="1", finalizers=(finalizers.RV_CONTROLLER,)
        ),
        spec=ReplicatedVolumeSpec(size=Quantity("1Gi"), replicated_storage_class_name="fast"),
        status=ReplicatedVolumeStatus(**{**fields, **status}),
    )


def logical_volume(number: int, size: int, **status: Any) -> LVMLogicalVolume:
    """As the reconciler itself makes it, and the agent reports it."""
    view = picture((D,) * (number + 1), disks={})
    (created,) = [
        write.obj
        for write in decided(view).writes
        if isinstance(write, Create) and write.obj.name.startswith(f"{name(number)}-")
    ]
    assert isinstance(created, LVMLogicalVolume)
    fields: dict[str, Any] = {"phase": LogicalVolumePhase.CREATED, "actual_size": Quantity.of_bytes(size)}
    return replace(
        created,
        metadata=replace(created.metadata, uid=f"uid-llv-{number}", resource_version="1"),
        spec=replace(created.spec, size=Quantity.of_bytes(size)),
        status=LVMLogicalVolumeStatus(**{**fields, **status}),
    )


NEEDED = 1077936128  # 1 GiB with DRBD's metadata, in extents of 4 MiB


def picture(
    layout: tuple[ReplicaType, ...] = (D, D, D),
    replication: Replication = Replication.CONSISTENCY_AND_AVAILABILITY,
    *,
    disks: Mapping[int, tuple[LVMLogicalVolume, ...]] | None = None,
    stale: tuple[int, ...] = (),
    gone: tuple[int, ...] = (),
    rv: ReplicatedVolume | None = None,
    attachments: tuple[ReplicatedVolumeAttachment, ...] = (),
) -> VolumeView:
    """A healthy volume of this layout."""
    rv = rv or volume(replication, layout)
    nodes = {node_name(number): node(number, number not in stale, number in gone) for number in range(len(layout) + 2)}
    members = {each.name: each for each in rv.status.datamesh.members}
    views = []
    for number, sort in enumerate(layout):
        found = disks.get(number, ()) if disks is not None else ((logical_volume(number, NEEDED),) if sort is D else ())
        views.append(
            ReplicaView(
                replica=replica(number, layout),
                member=members.get(name(number)),  # type: ignore[call-overload]
                node=nodes[node_name(number)],
                volumes=found,
                group=group(number) if sort is D else None,
                ledgers=(ledger(number, NEEDED, NEEDED),) if sort is D else (),
            )
        )
    return assembled(VolumeView(VOLUME, rv, rsp=pool(len(layout) + 2), nodes=nodes, attachments=attachments), views)


def node(number: int, fresh: bool = True, gone: bool = False) -> NodeView:
    machine = None if gone else core.Node(metadata=ObjectMeta(name=node_name(number)))
    return NodeView(node_name(number), machine, fresh and not gone)


def assembled(view: VolumeView, replicas: list[ReplicaView]) -> VolumeView:
    return changed(
        view,
        replicas=tuple(replicas),
        pieces=tuple(piece for each in replicas for piece in each.volumes),
        ledgers=tuple(each for found in replicas for each in found.ledgers),
    )


def spoilt(view: VolumeView, number: int, change: Callable[[ReplicaView], ReplicaView]) -> VolumeView:
    """The same, with one replica changed."""
    return assembled(view, [change(each) if each.id == number else each for each in view.replicas])


def with_status(**changes: Any) -> Callable[[ReplicaView], ReplicaView]:
    def change(found: ReplicaView) -> ReplicaView:
        return changed(found, replica=replace(found.replica, status=replace(found.replica.status, **changes)))

    return change


def with_drbd(**changes: Any) -> Callable[[ReplicaView], ReplicaView]:
    def change(found: ReplicaView) -> ReplicaView:
        return with_status(drbd=replace(found.replica.status.drbd, **changes))(found)

    return change


def with_device(**changes: Any) -> Callable[[ReplicaView], ReplicaView]:
    def change(found: ReplicaView) -> ReplicaView:
        status = found.replica.status.drbd.status
        assert status is not None
        return with_drbd(status=replace(status, devices=(replace(status.devices[0], **changes),)))(found)

    return change


def with_metadata(**changes: Any) -> Callable[[ReplicaView], ReplicaView]:
    def change(found: ReplicaView) -> ReplicaView:
        return changed(found, replica=replace(found.replica, metadata=replace(found.replica.metadata, **changes)))

    return change


def with_spec(**changes: Any) -> Callable[[ReplicaView], ReplicaView]:
    def change(found: ReplicaView) -> ReplicaView:
        return changed(found, replica=replace(found.replica, spec=replace(found.replica.spec, **changes)))

    return change


def without_membership(view: VolumeView, *numbers: int, **status: Any) -> VolumeView:
    """The same, where these are no members."""
    assert view.rv is not None
    left = tuple(each for each in view.members if each.node_id not in numbers)
    datamesh = replace(view.rv.status.datamesh, members=left)
    rv = replace(view.rv, status=replace(view.rv.status, **{"datamesh": datamesh, **status}))
    views = [changed(each, member=None) if each.id in numbers else each for each in view.replicas]
    return assembled(changed(view, rv=rv), views)


def doomed(view: VolumeView, **metadata: Any) -> VolumeView:
    """The same, where the logical volume of replica 0 is being deleted."""

    def change(found: ReplicaView) -> ReplicaView:
        (volume,) = found.volumes
        fields = {"deletion_timestamp": NOW, **metadata}
        return changed(found, volumes=(replace(volume, metadata=replace(volume.metadata, **fields)),))

    return spoilt(view, 0, change)


def with_rv(view: VolumeView, *, deleting: bool = False, size: str | None = None, **status: Any) -> VolumeView:
    assert view.rv is not None
    rv = replace(view.rv, status=replace(view.rv.status, **status))
    if deleting:
        rv = replace(rv, metadata=replace(rv.metadata, deletion_timestamp=NOW))
    if size is not None:
        rv = replace(rv, spec=replace(rv.spec, size=Quantity(size)))
    members = {each.name: each for each in rv.status.datamesh.members}
    views = [changed(each, member=members.get(each.name)) for each in view.replicas]
    return assembled(changed(view, rv=rv), views)


def with_member(view: VolumeView, number: int, **changes: Any) -> VolumeView:
    """The same, with one member's place changed."""
    assert view.rv is not None
    members = tuple(replace(each, **changes) if each.node_id == number else each for each in view.members)
    return with_rv(view, datamesh=replace(view.rv.status.datamesh, members=members))


deleting = with_metadata(deletion_timestamp=NOW)


def attachment(number: int, **metadata: Any) -> ReplicatedVolumeAttachment:
    return ReplicatedVolumeAttachment(
        metadata=replace(
            ObjectMeta(
                name=f"csi-{number}", uid=f"uid-rva-{number}", generation=1, finalizers=(finalizers.RV_CONTROLLER,)
            ),
            **metadata,
        ),
        spec=ReplicatedVolumeAttachmentSpec(replicated_volume_name=VOLUME, node_name=node_name(number)),
    )


def decided(view: VolumeView, kept: frozenset[str] = frozenset()) -> Plan:
    return decide(Snapshot(changed(view, kept=kept)), NOW, Random(0))


def written(view: VolumeView, number: int) -> ReplicatedVolumeReplica:
    """A replica, with the status that a pass gives it."""
    for write in decided(view).steps:
        if isinstance(write, PatchStatus) and write.observed.name == name(number):
            assert isinstance(write.intended, ReplicatedVolumeReplica)
            return write.intended
    return view.by_name[name(number)].replica  # type: ignore[index]


def after(view: VolumeView) -> VolumeView:
    """The picture once what a pass decides is written."""
    for number in [each.id for each in view.replicas]:
        status = written(view, number).status
        view = spoilt(view, number, lambda found, status=status: with_(found, status))  # type: ignore[misc]
    return view


def with_(found: ReplicaView, status: ReplicatedVolumeReplicaStatus) -> ReplicaView:
    return changed(found, replica=replace(found.replica, status=status))


@dataclass
class Told:
    """The writes of a plan, by sort, as a test names them."""

    created: list[str] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    released: list[tuple[str, str]] = field(default_factory=list)
    added: list[tuple[str, str]] = field(default_factory=list)
    patched: list[str] = field(default_factory=list)
    reported: list[str] = field(default_factory=list)


def told(plan: Plan) -> Told:
    found = Told()
    for write in plan.steps:
        _sort(write, found)
    return found


def _sort(write: Write, found: Told) -> None:
    match write:
        case Create():
            found.created.append(write.obj.name)
        case Delete():
            found.deleted.append(write.obj.name)
        case ReleaseFinalizer():
            found.released.append((write.obj.name, write.finalizer.rpartition("/")[2]))
        case Patch():
            found.patched.append(write.observed.name)
        case PatchStatus():
            found.reported.append(write.observed.name)
        case _:
            found.added.append((write.obj.name, write.finalizer.rpartition("/")[2]))


def settled(view: VolumeView) -> VolumeView:
    """The picture once nothing more is reported of it, with owners in place."""
    assert view.rv is not None
    for each in view.replicas:
        plan = decided(view)
        for write in plan.steps:
            if isinstance(write, Patch) and write.observed.name == each.name:
                view = spoilt(view, each.id, with_metadata(owner_references=write.intended.metadata.owner_references))
    return after(view)
