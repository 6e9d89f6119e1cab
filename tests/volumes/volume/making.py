"""Pictures of volumes that are being born: each as a phase is when all goes well, to be spoilt in one respect."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace as changed
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from quorate.api import annotation_keys, core, finalizers, labels, names
from quorate.api.conditions.disks import Schedulable
from quorate.api.conditions.merging import merge
from quorate.api.conditions.rvr import Ready as ReplicaReady
from quorate.api.longhorn import DiskSchedule
from quorate.api.longhorn.disk_schedule import (
    DiskScheduledResourcesStatus,
    DiskScheduleSpec,
    DiskScheduleStatus,
    EntryState,
)
from quorate.api.meta import Bytes, NodeName, ObjectMeta, VolumeName
from quorate.api.quantity import Quantity
from quorate.api.scalars import ReplicaName
from quorate.api.secret import Secret
from quorate.api.storage import (
    DRBDResourceOperation,
    LVMLogicalVolume,
    LVMVolumeGroup,
    ReplicatedStorageClass,
    ReplicatedStoragePool,
    ReplicatedVolume,
    ReplicatedVolumeReplica,
)
from quorate.api.storage.configuration import Configuration, Replication, Topology, VolumeAccess
from quorate.api.storage.datamesh import (
    Datamesh,
    Formation,
    FormationPhase,
    Member,
    NetworkAddress,
    PendingTransition,
    Transition,
    TransitionGroup,
    TransitionType,
)
from quorate.api.storage.drbd import (
    Address,
    Connection,
    Device,
    DrbdConfig,
    DrbdStatus,
    PeerDevice,
    ReplicaDrbd,
    ReplicaType,
    SharedSecretAlgorithm,
)
from quorate.api.storage.drbdrop import DRBDResourceOperationStatus, OperationPhase
from quorate.api.storage.llv import (
    LogicalVolumePhase,
    LogicalVolumeType,
    LVMLogicalVolumeSpec,
    LVMLogicalVolumeStatus,
)
from quorate.api.storage.lvg import LocalGroup, LVMVolumeGroupSpec, LVMVolumeGroupStatus
from quorate.api.storage.rsc import ReplicatedStorageClassSpec, ReplicatedStorageClassStatus
from quorate.api.storage.rsp import (
    EligibleNode,
    EligibleVolumeGroup,
    PoolType,
    PoolVolumeGroup,
    ReplicatedStoragePoolSpec,
    ReplicatedStoragePoolStatus,
)
from quorate.api.storage.rv import ReplicatedVolumeSpec, ReplicatedVolumeStatus, VolumeDrbd, VolumeDrbdConfig
from quorate.api.storage.rvr import ReplicatedVolumeReplicaSpec, ReplicatedVolumeReplicaStatus
from quorate.api.struct import replace
from quorate.drbd.metadata import lower_size
from quorate.engine import Plan
from quorate.placement.layout import LEVELS
from quorate.volumes.datamesh import config_of
from quorate.volumes.disks import Disk
from quorate.volumes.view import NodeView, ReplicaView, VolumeView
from quorate.volumes.volume.controller import decide

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
MI = 1 << 20
GI = 1 << 30
VOLUME = VolumeName("v")
EXTENT = 4 * MI
SIZE = GI
D, A, TB = ReplicaType.DISKFUL, ReplicaType.ACCESS, ReplicaType.TIE_BREAKER
C = Replication.CONSISTENCY_AND_AVAILABILITY
SECRET = Secret("not to be seen anywhere")


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def node(number: int) -> NodeName:
    return NodeName(f"n{number}")


def group_name(number: int) -> str:
    return f"lvg-{number}"


def name(number: int) -> ReplicaName:
    return names.replica(VOLUME, number)


def piece_name(number: int) -> str:
    return names.logical_volume(name(number), group_name(number))


def types(replication: Replication) -> list[ReplicaType]:
    layout = LEVELS[replication]
    return [D] * layout.diskful + [TB] * layout.tie_breakers


def configuration(replication: Replication = C) -> Configuration:
    layout = LEVELS[replication]
    return Configuration(
        replicated_storage_pool_name="pool",
        replication=replication,
        topology=Topology.IGNORED,
        volume_access=VolumeAccess.PREFERABLY_LOCAL,
        failures_to_tolerate=layout.failures_to_tolerate,
        guaranteed_minimum_data_redundancy=layout.data_redundancy,
    )


def storage_class(replication: Replication = C, generation: int = 1, **status: Any) -> ReplicatedStorageClass:
    return ReplicatedStorageClass(
        metadata=ObjectMeta(name="class"),
        spec=ReplicatedStorageClassSpec(storage_pool="pool", replication=replication),
        status=replace(
            ReplicatedStorageClassStatus(configuration=configuration(replication), configuration_generation=generation),
            **status,
        ),
    )


def pool(numbers: Iterable[int] = range(5)) -> ReplicatedStoragePool:
    numbers = tuple(numbers)
    return ReplicatedStoragePool(
        metadata=ObjectMeta(name="pool"),
        spec=ReplicatedStoragePoolSpec(
            type=PoolType.LVM, lvm_volume_groups=tuple(PoolVolumeGroup(name=group_name(each)) for each in numbers)
        ),
        status=ReplicatedStoragePoolStatus(
            eligible_nodes=tuple(
                EligibleNode(
                    node_name=node(each),
                    zone_name=f"z{each}",
                    lvm_volume_groups=(EligibleVolumeGroup(name=group_name(each), ready=True),),
                    node_ready=True,
                    agent_ready=True,
                )
                for each in numbers
            )
        ),
    )


def ledger(
    number: int, entries: Mapping[str, DiskScheduledResourcesStatus | int] | None = None, *, available: int = 100 * GI
) -> DiskSchedule:
    """A number asks for so much; an answer is one to a request of that size."""
    told = entries or {}
    asked = {key: each if isinstance(each, int) else each.requested_size for key, each in told.items()}
    answers = {key: each for key, each in told.items() if not isinstance(each, int)}
    return DiskSchedule(
        metadata=ObjectMeta(name=f"uuid-{number}", namespace=names.NAMESPACE, resource_version="1"),
        spec=DiskScheduleSpec(
            name=group_name(number), node_id=node(number), replicas={key: Bytes(size) for key, size in asked.items()}
        ),
        status=DiskScheduleStatus(
            replicas=answers,
            storage_scheduled=Bytes(sum(each.scheduled_size for each in answers.values())),
            storage_available=Bytes(available),
            conditions=merge((), [Schedulable.SCHEDULABLE()], now=NOW),
        ),
    )


def lower() -> int:
    return -(-lower_size(Bytes(SIZE)) // EXTENT) * EXTENT


def granted(size: int | None = None) -> DiskScheduledResourcesStatus:
    size = lower() if size is None else size
    return DiskScheduledResourcesStatus(
        state=EntryState.SCHEDULED, scheduled_size=Bytes(size), requested_size=Bytes(size)
    )


def rejected(size: int | None = None) -> DiskScheduledResourcesStatus:
    return DiskScheduledResourcesStatus(
        state=EntryState.REJECTED,
        requested_size=Bytes(lower() if size is None else size),
        reason="InsufficientStorage",
        message="the disk is full",
    )


def node_view(number: int, *, fresh: bool = True, there: bool = True) -> NodeView:
    machine = core.Node(metadata=ObjectMeta(name=node(number))) if there else None
    return NodeView(node(number), machine, fresh)


def group(number: int) -> LVMVolumeGroup:
    return LVMVolumeGroup(
        metadata=ObjectMeta(name=group_name(number)),
        spec=LVMVolumeGroupSpec(actual_vg_name_on_the_node="vg", local=LocalGroup(node_name=node(number))),
        status=LVMVolumeGroupStatus(extent_size=Quantity.of_bytes(EXTENT)),
    )


def piece(number: int, *, phase: LogicalVolumePhase = LogicalVolumePhase.CREATED, **status: Any) -> LVMLogicalVolume:
    told: dict[str, Any] = {"phase": phase, "actual_size": Quantity.of_bytes(lower())} | status
    return LVMLogicalVolume(
        metadata=ObjectMeta(
            name=piece_name(number),
            resource_version="1",
            labels={labels.REPLICATED_VOLUME: VOLUME, labels.NODE: node(number), labels.VOLUME_UID: "uid-v"},
            finalizers=finalizers.OF_A_NEW_LOGICAL_VOLUME,
        ),
        spec=LVMLogicalVolumeSpec(
            actual_lv_name_on_the_node=piece_name(number),
            type=LogicalVolumeType.THICK,
            size=Quantity.of_bytes(lower()),
            lvm_volume_group_name=group_name(number),
        ),
        status=LVMLogicalVolumeStatus(**told),
    )


def address(number: int) -> Address:
    return Address(ipv4=f"10.0.0.{number + 1}", port=7000)


def unscheduled(number: int, replica_type: ReplicaType = D, **metadata: Any) -> ReplicaView:
    """A replica as it is created."""
    return ReplicaView(
        ReplicatedVolumeReplica(
            metadata=ObjectMeta(
                name=name(number),
                resource_version="1",
                uid=f"uid-{number}",
                labels={labels.REPLICATED_VOLUME: VOLUME},
                finalizers=(*finalizers.OF_A_NEW_REPLICA, *finalizers.OF_A_MEMBER),
                **metadata,
            ),
            spec=ReplicatedVolumeReplicaSpec(replicated_volume_name=VOLUME, type=replica_type),
        )
    )


def preconfigured(number: int, replica_type: ReplicaType = D, *, known_zero: bool = False) -> ReplicaView:
    """A replica that has everything before it is a member."""
    bare, disk = unscheduled(number, replica_type), replica_type is D
    asks = PendingTransition(member=True, type=replica_type, lvm_volume_group_name=group_name(number) if disk else "")
    spec = replace(
        bare.replica.spec, node_name=node(number), lvm_volume_group_name=group_name(number) if disk else None
    )
    status = ReplicatedVolumeReplicaStatus(
        datamesh_pending_transition=asks, drbd=ReplicaDrbd(config=DrbdConfig(address=address(number)))
    )
    return ReplicaView(
        replace(bare.replica, spec=spec, status=status),
        node=node_view(number),
        volumes=(piece(number, known_zero=known_zero),) if disk else (),
        group=group(number) if disk else None,
        ledgers=(ledger(number, {name(number): granted()}),) if disk else (),
    )


def member(number: int, replica_type: ReplicaType = D, **more: Any) -> Member:
    return Member(
        name=name(number),
        type=replica_type,
        node_name=node(number),
        node_id=number,
        zone=f"z{number}",
        addresses=(NetworkAddress(system_network_name="Internal", address=address(number)),),
        lvm_volume_group_name=group_name(number) if replica_type is D else "",
        **more,
    )


def shown(
    number: int,
    members: Iterable[Member],
    disk: str = "Inconsistent",
    *,
    peer_disk: str = "Inconsistent",
    link: str = "Connected",
    flow: str = "Established",
    role: str = "Secondary",
) -> DrbdStatus:
    """What the kernel of a member shows."""
    own = next(each for each in members if each.node_id == number)
    return DrbdStatus(
        name=VOLUME,
        node_id=number,
        role=role,
        devices=(Device(disk_state=disk if own.type is D else "Diskless", quorum=True, size=SIZE // 1024),),
        connections=tuple(
            Connection(
                peer_node_id=peer.node_id,
                connection_state=link,
                peer_devices=(
                    PeerDevice(replication_state=flow, peer_disk_state=peer_disk if peer.type is D else "Diskless"),
                ),
            )
            for peer in members
            if peer.node_id != number and D in (own.type, peer.type)
        ),
    )


def joined(
    number: int, members: tuple[Member, ...], disk: str = "Inconsistent", *, revision: int = 2, zero: bool = False
) -> ReplicaView:
    """A member that is in touch with the others."""
    own = next(each for each in members if each.node_id == number)
    before = preconfigured(number, own.type, known_zero=zero)
    status = replace(
        before.replica.status,
        datamesh_pending_transition=None,
        datamesh_revision=revision,
        drbd=replace(before.replica.status.drbd, status=shown(number, members, disk, peer_disk=disk)),
    )
    return changed(before, replica=replace(before.replica, status=status), member=own)


def volume(status: ReplicatedVolumeStatus | None = None, **metadata: Any) -> ReplicatedVolume:
    return ReplicatedVolume(
        metadata=replace(
            ObjectMeta(
                name=VOLUME,
                uid="uid-v",
                resource_version="1",
                generation=1,
                finalizers=(finalizers.RV_CONTROLLER,),
                creation_timestamp=ago(60),
            ),
            **metadata,
        ),
        spec=ReplicatedVolumeSpec(size=Quantity.of_bytes(SIZE), replicated_storage_class_name="class"),
        status=status or ReplicatedVolumeStatus(),
    )


def status(
    phase: FormationPhase | None,
    replication: Replication = C,
    *,
    members: tuple[Member, ...] = (),
    since: float = 4.0,
    minor: int | None = 3,
) -> ReplicatedVolumeStatus:
    """As it is when a phase has lasted so many seconds; without a phase, of a formed volume."""
    layout = LEVELS[replication]
    forming = (
        Transition(
            type=TransitionType.FORMATION,
            group=TransitionGroup.FORMATION,
            started_at=ago(since),
            formation=Formation(phase=phase or FormationPhase.PRECONFIGURE, phase_started_at=ago(since)),
        ),
    )
    config = VolumeDrbdConfig(device_minor=minor)
    if members:
        config = replace(
            config,
            shared_secret=SECRET,
            shared_secret_alg=SharedSecretAlgorithm.SHA256,
            quorum=layout.majority,
            quorum_minimum_redundancy=layout.minimum_redundancy,
        )
    return ReplicatedVolumeStatus(
        configuration=configuration(replication),
        configuration_generation=1,
        drbd=VolumeDrbd(config=config),
        datamesh=Datamesh(members=members, size=Quantity.of_bytes(SIZE), system_network_names=("Internal",)),
        datamesh_revision=2 if members else 1,
        datamesh_transitions=forming if phase is not None else (),
    )


def picture(rv: ReplicatedVolume | None, replicas: Iterable[ReplicaView] = (), **more: Any) -> VolumeView:
    """The view of a volume, put together as ``observe`` does it."""
    replicas = tuple(replicas)
    ledgers = {each.name: each for replica in replicas for each in replica.ledgers}
    homeless = any(not replica.scheduled for replica in replicas)
    disks = {group_name(number): Disk(ledgers.get(f"uuid-{number}", ledger(number)), EXTENT) for number in range(5)}
    found: Mapping[str, Any] = {
        "rsc": storage_class(),
        "rsp": pool(),
        "replicas": replicas,
        "pieces": tuple(each for replica in replicas for each in replica.volumes),
        "ledgers": tuple(ledgers.values()),
        "disks": disks if homeless else {},
        "nodes": {node(number): node_view(number) for number in range(5)},
    } | more
    return _configured(VolumeView(name=VOLUME, rv=rv, **found))


def _configured(view: VolumeView) -> VolumeView:
    """With what the replicas' reconciler tells each member's agent."""

    def told(each: ReplicaView) -> ReplicaView:
        config, found = config_of(view, each), each.replica.status
        if config is None:
            return each
        drbd = replace(found.drbd, config=config)
        return changed(each, replica=replace(each.replica, status=replace(found, drbd=drbd)))

    return changed(view, replicas=tuple(told(each) for each in view.replicas))


def preconfiguring(replication: Replication = C, *, since: float = 4.0, **more: Any) -> VolumeView:
    """Phase 1 at its end: everybody is ready to join."""
    replicas = [preconfigured(number, each) for number, each in enumerate(types(replication))]
    rv = volume(status(FormationPhase.PRECONFIGURE, replication, since=since))
    return picture(rv, replicas, **({"rsc": storage_class(replication)} | more))


def members_of(replication: Replication) -> tuple[Member, ...]:
    return tuple(member(number, each) for number, each in enumerate(types(replication)))


def connecting(replication: Replication = C, *, since: float = 4.0, **more: Any) -> VolumeView:
    """Phase 2 at its end: everybody is connected, and without data."""
    members = members_of(replication)
    rv = volume(status(FormationPhase.ESTABLISH_CONNECTIVITY, replication, members=members, since=since))
    return picture(rv, [joined(each.node_id, members) for each in members], rsc=storage_class(replication), **more)


def bootstrapping(
    replication: Replication = C, disk: str = "UpToDate", *, since: float = 4.0, zero: bool = False, **more: Any
) -> VolumeView:
    """Phase 3 at its end: everybody has the data; the operation is the test's business."""
    members = members_of(replication)
    rv = volume(status(FormationPhase.BOOTSTRAP_DATA, replication, members=members, since=since))
    replicas = [joined(each.node_id, members, disk, zero=zero) for each in members]
    return picture(rv, replicas, rsc=storage_class(replication), **more)


def formed(replication: Replication = C, **more: Any) -> VolumeView:
    """A volume that lives."""
    members = members_of(replication)
    rv = volume(status(None, replication, members=members))
    replicas = [joined(each.node_id, members, "UpToDate") for each in members]
    return picture(rv, replicas, rsc=storage_class(replication), **more)


def operation(
    view: VolumeView, phase: OperationPhase | None, *, mark: str = "", message: str = "", **spec: Any
) -> DRBDResourceOperation:
    """The operation that the view's volume needs, as far as that."""
    from quorate.volumes.volume.formation.bootstrap import operation_of

    found = operation_of(view)
    annotations = {annotation_keys.FORMATION: mark} if mark else found.metadata.annotations
    return replace(
        found,
        metadata=replace(
            found.metadata, annotations=annotations, creation_timestamp=NOW, resource_version="1", uid="uid-o"
        ),
        spec=replace(found.spec, **spec),
        status=DRBDResourceOperationStatus(phase=phase, message=message),
    )


def asked(view: VolumeView, age: float | None = 40.0) -> VolumeView:
    """The view of a formation in which everybody was asked to show its disk so many seconds ago."""
    found = view.volume.status
    [transition] = found.datamesh_transitions
    assert transition.formation is not None
    formation = replace(transition.formation, asked_at=ago(age) if age is not None else None)
    return view.with_status(replace(found, datamesh_transitions=(replace(transition, formation=formation),)))


def with_replica(view: VolumeView, number: int, change: Any) -> VolumeView:
    """The view with one replica changed by a function of its view."""
    replicas = tuple(change(each) if each.id == number else each for each in view.replicas)
    return changed(view, replicas=replicas, pieces=tuple(each for one in replicas for each in one.volumes))


def as_ready(each: ReplicaView) -> ReplicaView:
    """The replica, once it says that it is."""
    found = merge((), [ReplicaReady.READY()], now=NOW)
    return changed(each, replica=replace(each.replica, status=replace(each.replica.status, conditions=found)))


def decided(view: VolumeView, now: datetime = NOW) -> Plan:
    return decide(view, now, Random(1))


def phase_of(plan: Plan) -> FormationPhase | None:
    """The phase that a plan writes; the plan must be a step."""
    assert plan.transition is not None
    rv = plan.transition.intended
    assert isinstance(rv, ReplicatedVolume)
    found = rv.status.datamesh_transitions
    return found[0].formation.phase if found and found[0].formation is not None else None


def written(plan: Plan) -> ReplicatedVolumeStatus:
    """The volume's status as a plan writes it."""
    write = plan.transition or plan.status
    assert write is not None
    assert isinstance(write.intended, ReplicatedVolume)
    return write.intended.status


def waits(plan: Plan) -> tuple[str, str]:
    """Reason and message of the wait that a plan reports of the formation."""
    found = written(plan).datamesh_transitions[0]
    return found.reason, found.message
