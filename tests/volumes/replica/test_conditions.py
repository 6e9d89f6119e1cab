"""The table of conditions: every reason of every condition has a state of things that gives it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace as changed
from typing import Any

import pytest

from quorate.api.conditions import Verdict, find, rvr
from quorate.api.conditions.catalogue import declared_in
from quorate.api.conditions.declaration import Reason
from quorate.api.meta import ConditionStatus
from quorate.api.quantity import Quantity
from quorate.api.scalars import ReplicaName
from quorate.api.storage.configuration import Replication
from quorate.api.storage.datamesh import Formation, FormationPhase, Transition, TransitionGroup, TransitionType
from quorate.api.storage.drbd import (
    AlgorithmError,
    CommandError,
    Device,
    DrbdConfig,
    DrbdErrors,
    PeerDevice,
    Standstill,
)
from quorate.api.storage.llv import LogicalVolumePhase
from quorate.api.storage.rsp import EligibleVolumeGroup
from quorate.api.storage.rv import Comparison, ComparisonReason, VolumeDrbd
from quorate.api.storage.rvr import ReplicaPhase
from quorate.api.struct import replace
from quorate.volumes.disks import Disk
from quorate.volumes.replica.conditions import verdicts
from quorate.volumes.replica.conditions.kernel import percent_in_sync
from quorate.volumes.replica.phase import summary
from quorate.volumes.replica.snapshot import Snapshot
from quorate.volumes.replica.subject import Subject
from quorate.volumes.view import ReplicaView, VolumeView
from tests.volumes.replica.making import (
    EXTENT,
    NEEDED,
    NOW,
    REVISION,
    TB,
    A,
    D,
    deleting,
    doomed,
    ledger,
    logical_volume,
    name,
    picture,
    settled,
    spoilt,
    with_device,
    with_drbd,
    with_member,
    with_metadata,
    with_rv,
    with_spec,
    with_status,
    without_membership,
    written,
)

Change = Callable[[ReplicaView], ReplicaView]


def failed(**errors: Any) -> VolumeView:
    return spoilt(picture(), 0, with_drbd(errors=DrbdErrors(**errors)))


def error(command: str = "drbdadm -c /x adjust pvc-1", reason: str = "", output: str = "no") -> CommandError:
    return CommandError(command=command, exit_code=1, output=output, reason=reason)


def links(**changes: Any) -> Change:
    """Every link of a member changed; ``device`` changes what flows over it."""

    def change(found: ReplicaView) -> ReplicaView:
        status = found.replica.status.drbd.status
        assert status is not None
        device = changes.pop("device", {})
        changed_links = tuple(
            replace(link, **changes, peer_devices=tuple(replace(each, **device) for each in link.peer_devices))
            for link in status.connections
        )
        return with_drbd(status=replace(status, connections=changed_links))(found)

    return change


def shown(**changes: Any) -> Change:
    """What the kernel shows of the resource."""

    def change(found: ReplicaView) -> ReplicaView:
        status = found.replica.status.drbd.status
        assert status is not None
        return with_drbd(status=replace(status, **changes))(found)

    return change


def stands(reason: str) -> VolumeView:
    """Something stands still, as the agent says."""
    return spoilt(picture(), 0, with_drbd(standstills=(Standstill(reason=reason, since=NOW, message="it stands"),)))


def disk(state: LogicalVolumePhase, **status: Any) -> VolumeView:
    found = logical_volume(0, NEEDED, phase=state, **status)
    return spoilt(picture(), 0, lambda each: changed(each, volumes=(found,)))


def unplaced(view: VolumeView, *numbers: int) -> VolumeView:
    """Replicas that have no place yet, with the pool's disks in sight."""
    for number in numbers:
        view = spoilt(view, number, with_spec(node_name=None, lvm_volume_group_name=None))
        view = spoilt(view, number, lambda each: changed(each, node=None, volumes=(), ledgers=(), group=None))
    disks = {f"g{each}": Disk(ledger(each, None), EXTENT) for each in range(5)}
    return changed(without_membership(view, *numbers), disks=disks)


def forming(view: VolumeView) -> VolumeView:
    return without_membership(view, 0, 1, 2, datamesh_revision=0)


def being_formed(view: VolumeView) -> VolumeView:
    """Its members know one another, and have no data yet."""
    formation = Transition(
        type=TransitionType.FORMATION,
        group=TransitionGroup.FORMATION,
        started_at=NOW,
        formation=Formation(phase=FormationPhase.ESTABLISH_CONNECTIVITY),
    )
    return with_rv(view, datamesh_transitions=(formation,))


def full(view: VolumeView) -> VolumeView:
    disks = {
        found: changed(each, ledger=replace(each.ledger, status=replace(each.ledger.status, storage_available=0)))
        for found, each in view.disks.items()
    }
    return changed(view, disks=disks)


def asked(view: VolumeView, granted: int | None = None) -> VolumeView:
    return spoilt(view, 0, lambda each: changed(each, ledgers=(ledger(0, NEEDED, granted),)))


def nobody_ready(view: VolumeView) -> VolumeView:
    assert view.rsp is not None
    nodes = tuple(replace(each, node_ready=False) for each in view.rsp.status.eligible_nodes)
    return changed(view, rsp=replace(view.rsp, status=replace(view.rsp.status, eligible_nodes=nodes)))


def groups(*found: EligibleVolumeGroup) -> VolumeView:
    view = picture()
    assert view.rsp is not None
    nodes = tuple(replace(each, lvm_volume_groups=found) for each in view.rsp.status.eligible_nodes)
    return changed(view, rsp=replace(view.rsp, status=replace(view.rsp.status, eligible_nodes=nodes)))


def unlisted() -> VolumeView:
    view = picture()
    assert view.rsp is not None
    return changed(view, rsp=replace(view.rsp, status=replace(view.rsp.status, eligible_nodes=())))


def without_configuration(view: VolumeView) -> VolumeView:
    return with_rv(view, configuration=None)


NO_VOLUME = changed(picture(), rv=None)


def _doubted(**fields: Any) -> VolumeView:
    """A loss of quorum of the second member, with which the others have yet to be compared."""
    reason = ComparisonReason.QUORUM_LOST
    doubt = Comparison(revision=6, reason=reason, since=NOW, reference=ReplicaName(name(1)), **fields)
    return with_rv(picture(), comparisons=(doubt,))


STALE = picture(stale=(0,))
NEWCOMER = without_membership(
    spoilt(picture(), 0, with_drbd(config=replace(picture().replicas[0].replica.status.drbd.config), status=None)), 0
)
HOMELESS = unplaced(picture(), 0)
NO_ADDRESS = spoilt(
    without_membership(picture(), 0), 0, with_drbd(config=DrbdConfig(node_id=0), status=None, errors=DrbdErrors())
)
UNSYNCED = spoilt(
    spoilt(picture(), 0, with_device(disk_state="Inconsistent")),
    0,
    lambda each: with_drbd(actual=replace(each.replica.status.drbd.actual, initial_sync_completed=False))(each),
)
PRIMARY = spoilt(picture(), 0, shown(role="Primary"))


def suspended(view: VolumeView, **flags: bool) -> VolumeView:
    return spoilt(view, 0, shown(suspended=True, **flags))


def held(view: VolumeView, link: Mapping[str, str] | None = None) -> VolumeView:
    """Its agent has suspended I/O: the disk of member 1 is gone, or what is said of all links."""
    actual = view.by_name[name(0)].replica.status.drbd.actual  # type: ignore[index]
    view = suspended(view, suspended_user=True)
    view = spoilt(view, 0, with_drbd(actual=replace(actual, held_for_copies=True)))
    if link:
        return spoilt(view, 0, links(**link))

    def without_its_disk(found: ReplicaView) -> ReplicaView:
        report = found.replica.status.drbd.status
        assert report is not None
        first, *rest = report.connections
        gone = tuple(replace(each, peer_disk_state="Diskless") for each in first.peer_devices)
        return shown(connections=(replace(first, peer_devices=gone), *rest))(found)

    return spoilt(view, 0, without_its_disk)


def first_link_only(found: ReplicaView) -> ReplicaView:
    report = found.replica.status.drbd.status
    assert report is not None
    return shown(connections=report.connections[:1])(found)


SHARED = picture().rv.status.drbd.config  # type: ignore[union-attr]
SCHEDULED = [
    (picture(), rvr.Scheduled.REPLICA_SCHEDULED, "n0, disk g0"),
    (asked(HOMELESS), rvr.Scheduled.WAITING_FOR_RESERVATION, "disk g0 on n0"),
    (HOMELESS, rvr.Scheduled.WAITING_FOR_RESERVATION, "is to be asked"),
    (
        asked(forming(unplaced(picture(), 0, 1, 2)), NEEDED),
        rvr.Scheduled.WAITING_FOR_ANOTHER_REPLICA,
        "its space is granted",
    ),
    (nobody_ready(HOMELESS), rvr.Scheduled.NO_AVAILABLE_NODES, "n3"),
    (full(HOMELESS), rvr.Scheduled.NO_SPACE, "n3"),
    (
        full(unplaced(with_member(picture((D, D, D, A)), 3, attached=True), 0)),
        rvr.Scheduled.NO_SPACE,
        "n3 is taken by pvc-1-3, through which the volume is in use there: once it is detached, a copy can be there",
    ),
    (changed(HOMELESS, rsp=None), rvr.Scheduled.STORAGE_POOL_NOT_READY, "fast"),
    (changed(HOMELESS, rv=None), rvr.Scheduled.WAITING_FOR_REPLICATED_VOLUME, "does not exist"),
    (without_configuration(HOMELESS), rvr.Scheduled.WAITING_FOR_REPLICATED_VOLUME, "no configuration"),
]
PLACE = [
    (picture(), rvr.AddressConfigured.ADDRESS_CONFIGURED, "10.0.0.1:7000"),
    (NO_ADDRESS, rvr.AddressConfigured.WAITING_FOR_AGENT, "n0"),
    (HOMELESS, rvr.AddressConfigured.ADDRESS_CONFIGURED, ""),
    (
        spoilt(NO_ADDRESS, 0, with_drbd(errors=DrbdErrors(last_config_error=error("", "NoFreePortAvailable", "none")))),
        rvr.AddressConfigured.NO_FREE_PORT_AVAILABLE,
        "none",
    ),
    (
        spoilt(NO_ADDRESS, 0, with_drbd(errors=DrbdErrors(last_config_error=error("", "NoInternalIP", "no address")))),
        rvr.AddressConfigured.NO_INTERNAL_IP,
        "no address",
    ),
    (
        spoilt(NO_ADDRESS, 0, with_metadata(labels={"quorate.io/node": "n9"})),
        rvr.AddressConfigured.WRONG_LABEL,
        "says n9, its nodeName n0",
    ),
    (picture(), rvr.BackingVolumeReady.READY, "pvc-1-0-"),
    (HOMELESS, rvr.BackingVolumeReady.PENDING_SCHEDULING, ""),
    (picture(disks={}), rvr.BackingVolumeReady.PROVISIONING, "about to be made"),
    (
        spoilt(picture(disks={}), 0, lambda each: changed(each, ledgers=())),
        rvr.BackingVolumeReady.PROVISIONING,
        "granted 0",
    ),
    (disk(LogicalVolumePhase.PENDING, actual_size=None), rvr.BackingVolumeReady.PROVISIONING, "pvc-1-0-"),
    (
        disk(LogicalVolumePhase.FAILED, actual_size=None, reason="NoSpace", message="full"),
        rvr.BackingVolumeReady.PROVISIONING_FAILED,
        "NoSpace: full",
    ),
    (
        disk(LogicalVolumePhase.FAILED, reason="LVMissing", message="gone"),
        rvr.BackingVolumeReady.PROVISIONING_FAILED,
        "LVMissing",
    ),
    (disk(LogicalVolumePhase.FAILED, actual_size=None, reason="LVExists"), rvr.BackingVolumeReady.LV_EXISTS, ""),
    (doomed(picture()), rvr.BackingVolumeReady.DELETION_HELD, "to have it replaced, delete pvc-1-0"),
    (doomed(without_membership(picture(), 0)), rvr.BackingVolumeReady.PROVISIONING, "is being removed"),
    (disk(LogicalVolumePhase.RESIZING, actual_size=Quantity("1Gi")), rvr.BackingVolumeReady.RESIZING, "1028Mi"),
    (
        disk(LogicalVolumePhase.RESIZING, actual_size=Quantity("1Gi"), reason="NoSpace", message="full"),
        rvr.BackingVolumeReady.RESIZE_FAILED,
        "full",
    ),
    (picture(), rvr.SatisfyEligibleNodes.SATISFIED, ""),
    (unlisted(), rvr.SatisfyEligibleNodes.NODE_MISMATCH, "n0"),
    (groups(), rvr.SatisfyEligibleNodes.LVM_VOLUME_GROUP_MISMATCH, "g0"),
    (
        groups(EligibleVolumeGroup(name="g0", thin_pool_name="thin")),
        rvr.SatisfyEligibleNodes.THIN_POOL_MISMATCH,
        "(none)",
    ),
    (HOMELESS, rvr.SatisfyEligibleNodes.PENDING_SCHEDULING, ""),
    (NO_VOLUME, rvr.SatisfyEligibleNodes.WAITING_FOR_REPLICATED_VOLUME, ""),
    (
        changed(picture(), rsp=None),
        rvr.SatisfyEligibleNodes.WAITING_FOR_REPLICATED_VOLUME,
        "there is no ReplicatedStoragePool",
    ),
]
REALISED = [
    (picture(), rvr.InitialSync.INITIAL_DEVICE_READINESS_REACHED, ""),
    (UNSYNCED, rvr.InitialSync.SAFE_FOR_INITIAL_SYNC, "Inconsistent"),
    (
        spoilt(UNSYNCED, 0, links(connection_state="Connecting")),
        rvr.InitialSync.INITIAL_SYNC_REQUIRED_BUT_NOT_READY,
        "pvc-1-1, pvc-1-2",
    ),
    (spoilt(UNSYNCED, 0, with_drbd(status=None)), rvr.InitialSync.INITIAL_SYNC_REQUIRED_BUT_NOT_READY, "not there"),
    (picture(), rvr.DevicesReady.DEVICE_IS_READY, "/dev/drbd1000"),
    (spoilt(picture(), 0, with_drbd(status=None)), rvr.DevicesReady.DEVICE_IS_NOT_READY, "no such device"),
    (spoilt(picture(), 0, with_device(disk_state="Diskless")), rvr.DevicesReady.DEVICE_IS_NOT_READY, "no disk"),
    (STALE, rvr.DevicesReady.AGENT_NOT_READY, ""),
    (picture(), rvr.ConfigurationAdjusted.CONFIGURATION_ADJUSTMENT_SUCCEEDED, ""),
    (spoilt(picture(), 0, with_drbd(status=None)), rvr.ConfigurationAdjusted.RESOURCE_NOT_UP, "is not there"),
    (spoilt(picture(), 0, with_drbd(status=None)), rvr.DRBDConfigured.APPLYING_CONFIGURATION, "is not there"),
    (
        failed(shared_secret_alg_selection_error=AlgorithmError(output="no sha256", unsupported_alg="sha256")),
        rvr.ConfigurationAdjusted.UNSUPPORTED_ALGORITHM,
        "sha256",
    ),
    (failed(last_config_error=error("sh-nop")), rvr.ConfigurationAdjusted.CONFIGURATION_FAILED, "sh-nop (exit 1)"),
    (
        failed(last_metadata_error=error("drbdadm dump-md")),
        rvr.ConfigurationAdjusted.METADATA_CHECK_FAILED,
        "dump-md",
    ),
    (
        failed(last_metadata_error=error("drbdadm create-md")),
        rvr.ConfigurationAdjusted.METADATA_CREATION_FAILED,
        "create-md",
    ),
    (failed(last_metadata_error=error("", "MetadataMissing")), rvr.ConfigurationAdjusted.METADATA_MISSING, ""),
    (failed(last_adjustment_error=error("", "MetadataUnusable")), rvr.ConfigurationAdjusted.METADATA_UNUSABLE, ""),
    (failed(last_status_error=error()), rvr.ConfigurationAdjusted.STATUS_CHECK_FAILED, ""),
    (
        failed(last_adjustment_error=error("drbdadm -c /x up pvc-1")),
        rvr.ConfigurationAdjusted.RESOURCE_UP_FAILED,
        "",
    ),
    (failed(last_adjustment_error=error()), rvr.ConfigurationAdjusted.CONFIGURATION_ADJUST_FAILED, "adjust"),
    (NEWCOMER, rvr.ConfigurationAdjusted.CONFIGURATION_ADJUSTMENT_PAUSED_UNTIL_INITIAL_SYNC, "member"),
    (
        spoilt(NO_ADDRESS, 0, with_drbd(errors=DrbdErrors(last_config_error=error("", "NoInternalIP")))),
        rvr.ConfigurationAdjusted.CONFIGURATION_ADJUSTMENT_PAUSED_UNTIL_INITIAL_SYNC,
        "member",
    ),
    (failed(last_promotion_error=error()), rvr.ConfigurationAdjusted.PROMOTION_DEMOTION_FAILED, ""),
    (failed(last_resize_error=error()), rvr.ConfigurationAdjusted.RESIZE_FAILED, ""),
    (STALE, rvr.ConfigurationAdjusted.AGENT_NOT_READY, ""),
    (picture(), rvr.Configured.CONFIGURED, ""),
    (
        spoilt(
            picture(), 0, lambda each: with_drbd(actual=replace(each.replica.status.drbd.actual, disk="/dev/x"))(each)
        ),
        rvr.Configured.NOT_APPLIED,
        "/dev/x instead of /dev/data/replica-pvc-1-0-",
    ),
    (NEWCOMER, rvr.Configured.NOT_APPLIED, "not a member"),
    (with_member(picture(), 0, down=True), rvr.Configured.NOT_APPLIED, "still up"),
    (failed(last_resize_error=error(output="too small")), rvr.Configured.COMMAND_FAILED, "too small"),
    (STALE, rvr.Configured.AGENT_NOT_READY, ""),
    (picture(), rvr.DRBDConfigured.CONFIGURED, "7"),
    (HOMELESS, rvr.DRBDConfigured.PENDING_SCHEDULING, ""),
    (without_membership(picture(disks={}), 0), rvr.DRBDConfigured.WAITING_FOR_BACKING_VOLUME, ""),
    (NEWCOMER, rvr.DRBDConfigured.PENDING_DATAMESH_JOIN, ""),
    (changed(NEWCOMER, rv=None), rvr.DRBDConfigured.PENDING_DATAMESH_JOIN, "there is no ReplicatedVolume pvc-1"),
    (NO_ADDRESS, rvr.DRBDConfigured.APPLYING_CONFIGURATION, ""),
    (
        spoilt(picture(), 0, with_status(datamesh_revision=REVISION - 1)),
        rvr.DRBDConfigured.APPLYING_CONFIGURATION,
        "shows revision 6, the datamesh has 7",
    ),
    (failed(last_adjustment_error=error()), rvr.DRBDConfigured.CONFIGURATION_FAILED, "ConfigurationAdjustFailed"),
    (STALE, rvr.DRBDConfigured.AGENT_NOT_READY, ""),
]
KERNEL = [
    (picture(), rvr.Quorum.QUORUM_STATUS, ""),
    (
        spoilt(spoilt(picture(), 0, with_device(quorum=False)), 0, links(connection_state="StandAlone")),
        rvr.Quorum.NO_QUORUM_STATUS,
        "pvc-1-1 on n1 (StandAlone)",
    ),
    (
        spoilt(picture(), 0, with_device(quorum=False)),
        rvr.Quorum.NO_QUORUM_STATUS,
        "all peers are connected, and too few of the copies are up to date",
    ),
    (
        spoilt(with_member(picture(), 0, hidden=True), 0, with_device(quorum=False)),
        rvr.Quorum.NO_QUORUM_STATUS,
        "it joins or leaves, and has no vote",
    ),
    (
        spoilt(being_formed(picture()), 0, with_device(quorum=False)),
        rvr.Quorum.NO_QUORUM_STATUS,
        "the volume is being formed: too few of its copies are up to date yet",
    ),
    (STALE, rvr.Quorum.AGENT_NOT_READY, ""),
    (picture(), rvr.InSync.UP_TO_DATE, ""),
    (
        spoilt(
            spoilt(picture(), 0, with_device(disk_state="Inconsistent")),
            0,
            links(device={"replication_state": "SyncTarget", "percent_in_sync": 42}),
        ),
        rvr.InSync.SYNCHRONIZING,
        "42 %",
    ),
    (spoilt(picture(), 0, with_device(disk_state="Inconsistent")), rvr.InSync.INCONSISTENT, "pvc-1-0 on n0"),
    (spoilt(picture(), 0, with_device(disk_state="Outdated")), rvr.InSync.OUTDATED, ""),
    (spoilt(picture(), 0, with_device(disk_state="Failed")), rvr.InSync.DISK_FAILED, ""),
    (spoilt(picture(), 0, with_device(disk_state="Diskless")), rvr.InSync.DISK_NOT_ATTACHED, ""),
    (spoilt(picture(), 0, with_drbd(status=None)), rvr.InSync.DISK_NOT_ATTACHED, "not there"),
    (spoilt(picture(), 0, with_device(disk_state="Brandnew")), rvr.InSync.INCONSISTENT, "Brandnew"),
    (STALE, rvr.InSync.AGENT_NOT_READY, ""),
    (_doubted(stale=(name(0),)), rvr.InSync.STALE, "pvc-1-0 on n0 may lack something of what others have"),
    (_doubted(resumed=True), rvr.InSync.NOT_COMPARED, "lost quorum while in use"),
    (picture(), rvr.DiskIOSuspended.DISK_IO_NOT_SUSPENDED_STATUS, ""),
    (suspended(picture()), rvr.DiskIOSuspended.DISK_IO_SUSPENDED_UNKNOWN_REASON, ""),
    (suspended(picture(), suspended_user=True), rvr.DiskIOSuspended.DISK_IO_SUSPENDED_BY_USER, ""),
    (
        held(picture()),
        rvr.DiskIOSuspended.DISK_IO_SUSPENDED_FOR_COPIES,
        "1 of 2 copies that a write has to be on are connected and up to date; pvc-1-1 on n1 is Diskless",
    ),
    (
        held(picture(), link={"connection_state": "Connecting"}),
        rvr.DiskIOSuspended.DISK_IO_SUSPENDED_FOR_COPIES,
        "0 of 2 copies that a write has to be on are connected and up to date; pvc-1-1 on n1 is not connected",
    ),
    (suspended(picture(), suspended_no_data=True), rvr.DiskIOSuspended.DISK_IO_SUSPENDED_NO_DATA, ""),
    (suspended(picture(), suspended_fencing=True), rvr.DiskIOSuspended.DISK_IO_SUSPENDED_FENCING, ""),
    (suspended(picture(), suspended_quorum=True), rvr.DiskIOSuspended.DISK_IO_SUSPENDED_QUORUM, ""),
    (STALE, rvr.DiskIOSuspended.AGENT_NOT_READY, ""),
    (picture(), rvr.DRBDMoving.MOVING, ""),
    (STALE, rvr.DRBDMoving.AGENT_NOT_READY, ""),
    (stands("AttachStalled"), rvr.DRBDMoving.ATTACH_STALLED, "pvc-1-0 on n0: it stands"),
    (stands("SyncStalled"), rvr.DRBDMoving.SYNC_STALLED, "it stands"),
    (stands("LinkStandAlone"), rvr.DRBDMoving.LINK_STAND_ALONE, "it stands"),
    (stands("ReconnectLoop"), rvr.DRBDMoving.RECONNECT_LOOP, "it stands"),
    (stands("PortTaken"), rvr.DRBDMoving.PORT_TAKEN, "it stands"),
    (stands("CommandHung"), rvr.DRBDMoving.COMMAND_HUNG, "it stands"),
    (stands("OfANewerAgent"), rvr.DRBDMoving.MOVING, ""),
    (spoilt(stands("SyncStalled"), 0, shown(devices=(Device(disk_state="Outdated"),))), rvr.InSync.SYNC_STALLED, "it"),
    (stands("SyncStalled"), rvr.InSync.UP_TO_DATE, ""),
    (picture(), rvr.FullyConnected.FULLY_CONNECTED, "2 of 2"),
    (picture((D,), Replication.NONE), rvr.FullyConnected.SOLE_MEMBER, ""),
    (spoilt(picture(), 0, first_link_only), rvr.FullyConnected.PARTIALLY_CONNECTED, "pvc-1-2 on n2"),
    (spoilt(picture(), 0, links(connection_state="Connecting")), rvr.FullyConnected.NOT_CONNECTED, "pvc-1-1 on n1"),
    (NEWCOMER, rvr.FullyConnected.NOT_CONNECTED, "not a member"),
    (STALE, rvr.FullyConnected.AGENT_NOT_READY, ""),
    (picture(), rvr.Primary.RESOURCE_ROLE_IS_NOT_PRIMARY, "Secondary"),
    (PRIMARY, rvr.Primary.RESOURCE_ROLE_IS_PRIMARY, ""),
    (STALE, rvr.Primary.AGENT_NOT_READY, ""),
    (picture(), rvr.VolumeAccessReady.NOT_PUBLISHED, ""),
    (PRIMARY, rvr.VolumeAccessReady.VOLUME_ACCESS_READY, ""),
    (spoilt(PRIMARY, 0, with_device(quorum=False)), rvr.VolumeAccessReady.NO_QUORUM, ""),
    (
        spoilt(picture(), 0, shown(force_io_failures=True)),
        rvr.VolumeAccessReady.IO_FAILS,
        "pvc-1-0 on n0: it was made Secondary under its users; one write in flight may",
    ),
    (suspended(PRIMARY), rvr.VolumeAccessReady.IO_SUSPENDED_BY_UNKNOWN_REASON, ""),
    (suspended(PRIMARY, suspended_user=True), rvr.VolumeAccessReady.IO_SUSPENDED_BY_USER, ""),
    (held(PRIMARY), rvr.VolumeAccessReady.IO_SUSPENDED_FOR_COPIES, "pvc-1-1 on n1 is Diskless"),
    (suspended(PRIMARY, suspended_no_data=True), rvr.VolumeAccessReady.IO_SUSPENDED_BY_NO_DATA, ""),
    (suspended(PRIMARY, suspended_fencing=True), rvr.VolumeAccessReady.IO_SUSPENDED_BY_FENCING, ""),
    (suspended(PRIMARY, suspended_quorum=True), rvr.VolumeAccessReady.IO_SUSPENDED_BY_QUORUM, ""),
    (STALE, rvr.VolumeAccessReady.AGENT_NOT_READY, ""),
]
READY = [
    (picture(), rvr.Ready.READY, ""),
    (HOMELESS, rvr.Ready.NOT_SCHEDULED, "WaitingForReservation"),
    (NO_ADDRESS, rvr.Ready.ADDRESS_NOT_CONFIGURED, "WaitingForAgent"),
    (UNSYNCED, rvr.Ready.WAITING_FOR_INITIAL_SYNC, "SafeForInitialSync"),
    (spoilt(picture(), 0, with_drbd(status=None)), rvr.Ready.DEVICES_ARE_NOT_READY, ""),
    (failed(last_adjustment_error=error()), rvr.Ready.ADJUSTMENT_FAILED, "ConfigurationAdjustFailed"),
    (NEWCOMER, rvr.Ready.NOT_CONFIGURED, "not a member"),
    (
        with_rv(picture(), drbd=VolumeDrbd(config=replace(SHARED, allow_two_primaries=True))),
        rvr.Ready.NOT_CONFIGURED,
        "allowTwoPrimaries",
    ),
    (spoilt(picture(), 0, with_device(quorum=False)), rvr.Ready.NO_QUORUM, ""),
    (suspended(picture(), suspended_user=True), rvr.Ready.DISK_IO_SUSPENDED, "DiskIOSuspendedByUser"),
    (spoilt(picture(), 0, with_device(disk_state="Outdated")), rvr.Ready.OUT_OF_SYNC, "Outdated"),
    (spoilt(picture(), 0, deleting), rvr.Ready.TERMINATING, "still a member"),
    (
        spoilt(with_rv(STALE, deleting=True), 0, deleting),
        rvr.Ready.NODE_DOWN,
        "n0 is down",
    ),
    (STALE, rvr.Ready.AGENT_NOT_READY, "n0"),
]
TABLE = [*SCHEDULED, *PLACE, *REALISED, *KERNEL, *READY]
#: Reasons that this reconciler does not give by itself.
ELSEWHERE = {
    # Placement's own, mirrored as it gives them; its tests have them.
    rvr.Scheduled.TOPOLOGY_CONSTRAINTS_FAILED,
    rvr.Scheduled.PUBLISH_NODE_UNAVAILABLE,
    # Reserved by the seed for later.
    rvr.DiskIOSuspended.IO_SUSPENDED_BY_SNAPSHOTTER,
    rvr.VolumeAccessReady.IO_SUSPENDED_BY_SNAPSHOTTER,
    # Given to diskless replicas: see below.
    rvr.BackingVolumeReady.NOT_APPLICABLE,
    rvr.InSync.DISKLESS,
}


def judged(view: VolumeView, number: int = 0) -> dict[str, Verdict]:
    return verdicts(Subject.of(Snapshot(view), view.by_name[name(number)]))  # type: ignore[index]


@pytest.mark.parametrize(
    ("view", "reason", "words"), TABLE, ids=[f"{reason.condition}-{reason}-{words[:12]}" for _, reason, words in TABLE]
)
def test_each_state_of_things_gives_its_reason(view: VolumeView, reason: Reason, words: str) -> None:
    """M3, M19, M23, M28: composed from live reports, at the corrected places, with the reason that the seed forgot."""
    found = judged(view)[reason.condition]
    assert (found.reason, found.status) == (reason.code, reason.status), found.message
    assert words in found.message


def test_every_reason_is_in_the_table() -> None:
    declared = {reason for condition in declared_in(rvr) for reason in condition.reasons()}
    assert declared - {reason for _, reason, _ in TABLE} == ELSEWHERE


def test_a_replica_without_a_disk_has_none_to_be_ready_or_in_sync() -> None:
    """What keeps no copy is never behind, even while its agent is silent."""
    view = picture((D, D, TB), Replication.AVAILABILITY)
    found = judged(view, 2)
    assert found["BackingVolumeReady"].reason == "NotApplicable"
    assert found["InSync"].reason == "Diskless"
    assert found["InSync"].status is ConditionStatus.TRUE
    silent = judged(picture((D, D, TB), Replication.AVAILABILITY, stale=(2,)), 2)
    assert silent["InSync"].reason == "Diskless"
    assert silent["Quorum"].reason == "AgentNotReady"


@pytest.mark.parametrize(("sort", "there"), [(D, True), (A, True), (TB, False)])
def test_only_replicas_that_can_be_used_say_whether_they_can(sort: Any, there: bool) -> None:
    view = picture((D, D, sort), Replication.AVAILABILITY)
    assert ("VolumeAccessReady" in judged(view, 2)) is there


def test_a_replica_that_becomes_a_tie_breaker_loses_the_condition_of_those_that_can_be_used() -> None:
    view = settled(picture((D, D, A), Replication.AVAILABILITY))
    assert find(view.replicas[2].replica.status.conditions, rvr.VolumeAccessReady) is not None
    retyped = spoilt(view, 2, with_spec(type=TB))
    assert find(written(retyped, 2).status.conditions, rvr.VolumeAccessReady) is None


def test_progress_is_that_of_the_link_that_is_furthest() -> None:
    """The others wait for their turn, and would only find less to do."""
    report = picture().replicas[0].replica.status.drbd.status
    assert report is not None
    one, other = report.connections
    catching_up = (
        replace(one, peer_devices=(PeerDevice(replication_state="SyncTarget", percent_in_sync=42),)),
        replace(other, peer_devices=(PeerDevice(replication_state="PausedSyncT", percent_in_sync=7),)),
    )
    assert percent_in_sync(replace(report, connections=catching_up)) == 42
    assert percent_in_sync(report) is None


def test_a_silent_agents_word_does_not_count() -> None:
    """00 Freshness: what it said last stays in status, and no condition is composed from it."""
    view = spoilt(STALE, 0, suspended_by_quorum)
    found = judged(view)
    unknown = {kind for kind, verdict in found.items() if verdict.status is ConditionStatus.UNKNOWN}
    assert unknown == {
        "DevicesReady",
        "ConfigurationAdjusted",
        "Configured",
        "DRBDConfigured",
        "Quorum",
        "InSync",
        "DiskIOSuspended",
        "FullyConnected",
        "DRBDMoving",
        "Primary",
        "VolumeAccessReady",
        "Ready",
    }


def test_the_last_word_of_an_agent_that_cannot_look_at_its_kernel_does_not_count_and_it_is_said_why() -> None:
    found = judged(failed(last_status_error=CommandError(output="drbdsetup status --json: silent for 10 s, killed")))
    adjusted = {"ConfigurationAdjusted", "Configured"}
    of_kernel = {kind for kind, verdict in found.items() if verdict.status is ConditionStatus.UNKNOWN}
    silent = judged(STALE)
    assert of_kernel == {kind for kind in silent if silent[kind].status is ConditionStatus.UNKNOWN} - adjusted
    assert all("silent for 10 s, killed" in found[kind].message for kind in of_kernel | adjusted)
    assert {found[kind].status for kind in adjusted} == {ConditionStatus.FALSE}


def suspended_by_quorum(found: ReplicaView) -> ReplicaView:
    return shown(suspended=True, suspended_quorum=True)(found)


def test_messages_name_no_secret() -> None:
    for view, _, _ in TABLE:
        assert all("s3cret" not in verdict.message for verdict in judged(view).values())


PHASES = [
    (spoilt(picture(), 0, deleting), ReplicaPhase.TERMINATING),
    (HOMELESS, ReplicaPhase.PENDING),
    (STALE, ReplicaPhase.AGENT_NOT_READY),
    (without_membership(picture(disks={}), 0), ReplicaPhase.PROVISIONING),
    (NO_ADDRESS, ReplicaPhase.CONFIGURING),
    (NEWCOMER, ReplicaPhase.WAITING_FOR_DATAMESH),
    (spoilt(UNSYNCED, 0, with_device(quorum=False)), ReplicaPhase.PROGRESSING),
    (spoilt(picture(), 0, with_status(datamesh_revision=REVISION - 1)), ReplicaPhase.PROGRESSING),
    (spoilt(picture(), 0, with_device(quorum=False)), ReplicaPhase.CRITICAL),
    (suspended(picture()), ReplicaPhase.CRITICAL),
    (spoilt(being_formed(picture()), 0, with_device(quorum=False)), ReplicaPhase.PROGRESSING),
    (
        spoilt(
            spoilt(picture(), 0, with_device(disk_state="Inconsistent")),
            0,
            links(device={"replication_state": "PausedSyncT"}),
        ),
        ReplicaPhase.SYNCHRONIZING,
    ),
    (spoilt(picture(), 0, with_device(disk_state="Outdated")), ReplicaPhase.DEGRADED),
    (spoilt(picture(), 0, first_link_only), ReplicaPhase.PARTIALLY_DEGRADED),
    (picture(), ReplicaPhase.HEALTHY),
]


@pytest.mark.parametrize(("view", "phase"), PHASES, ids=[phase.value for _, phase in PHASES])
def test_the_phase_is_the_first_that_fits(view: VolumeView, phase: ReplicaPhase) -> None:
    subject = Subject.of(Snapshot(view), view.by_name[name(0)])  # type: ignore[index]
    found = summary(subject, verdicts(subject))
    assert found.phase is phase
    assert bool(found.message) is (phase is not ReplicaPhase.HEALTHY)


def test_every_phase_is_in_the_table() -> None:
    assert {phase for _, phase in PHASES} == set(ReplicaPhase)
