"""Where a replica is, and what it has there: Scheduled, AddressConfigured, BackingVolumeReady, SatisfyEligibleNodes."""

from __future__ import annotations

from typing import Final

import msgspec

from quorate.api import labels
from quorate.api.conditions import Verdict
from quorate.api.conditions.lvm import LogicalVolumeFailure
from quorate.api.conditions.rvr import AddressConfigured, BackingVolumeReady, SatisfyEligibleNodes, Scheduled
from quorate.api.names import disk as disk_name
from quorate.api.storage import LVMLogicalVolume
from quorate.api.storage.llv import LogicalVolumePhase
from quorate.disks.requests import amount
from quorate.volumes.places import in_the_way
from quorate.volumes.replica import disk
from quorate.volumes.replica.subject import Subject
from quorate.volumes.sizes import size_needed

#: Why the agent has no address to give, by the reason in ``errors.lastConfigError``.
_WHY_NO_ADDRESS: Final = {
    AddressConfigured.NO_FREE_PORT_AVAILABLE.code: AddressConfigured.NO_FREE_PORT_AVAILABLE,
    AddressConfigured.NO_INTERNAL_IP.code: AddressConfigured.NO_INTERNAL_IP,
}


def scheduled(subject: Subject) -> Verdict:
    """Node and disk are chosen, which they are only once the space is granted."""
    replica, view = subject.replica, subject.view
    if replica.scheduled:
        group = replica.replica.spec.lvm_volume_group_name
        pool = replica.replica.spec.lvm_volume_group_thin_pool_name or ""
        where = f"{replica.node_name}, disk {disk_name(group, pool)}" if group else f"{replica.node_name}"
        return Scheduled.REPLICA_SCHEDULED(f"placed on {where}")
    if view.rv is None:
        return Scheduled.WAITING_FOR_REPLICATED_VOLUME(f"volume {view.name} does not exist")
    if view.rv.status.configuration is None:
        return Scheduled.WAITING_FOR_REPLICATED_VOLUME(f"volume {view.name} has no configuration yet")
    if view.rsp is None:
        pool_name = view.rv.status.configuration.replicated_storage_pool_name
        return Scheduled.STORAGE_POOL_NOT_READY(f"there is no storage pool {pool_name}")
    return _on_its_way(subject)


def _on_its_way(subject: Subject) -> Verdict:
    """How far a replica without a place is, by the same answer that the volume's reconciler acts on."""
    name, places, view = subject.replica.name, subject.snapshot.places, subject.view
    refused = places.refusals.get(name)
    if refused is not None:
        verdict = refused.verdict()
        words = in_the_way(view) if subject.replica.diskful else ""
        return msgspec.structs.replace(verdict, message=f"{verdict.message}{words}")
    if name in places.granted:
        return Scheduled.WAITING_FOR_ANOTHER_REPLICA("its space is granted; another replica's is not yet")
    asked = places.pending.get(name) or places.rejected.get(name)
    if asked is not None:
        words = f"disk {asked.spec.name} on {asked.spec.node_id}"
        return Scheduled.WAITING_FOR_RESERVATION(f"{words} has been asked for space")
    choice = places.placement.choices.get(name)
    if choice is not None and choice.group is not None:
        return Scheduled.WAITING_FOR_RESERVATION(f"disk {choice.disk} on {choice.node} is to be asked for space")
    return Scheduled.WAITING_FOR_ANOTHER_REPLICA()


def address_configured(subject: Subject) -> Verdict:
    """The agent has chosen an address; until then its error says why it has not."""
    address = subject.replica.address
    if address is not None:
        return AddressConfigured.ADDRESS_CONFIGURED(f"listens on {address.ipv4}:{address.port}")
    error = subject.errors.last_config_error
    reason = _WHY_NO_ADDRESS.get(error.reason) if error is not None and not subject.silent else None
    if error is not None and reason is not None:
        return reason(subject.on_node(error.output))
    if subject.replica.node_name is None:
        return AddressConfigured.WAITING_FOR_AGENT("no node is chosen yet")
    if other := subject.replica.other_label:
        words = (
            f"its label {labels.NODE} says {other}, its nodeName {subject.replica.node_name}: neither agent acts on it"
        )
        return AddressConfigured.WRONG_LABEL(f"{words}. Delete it, and make it without that label")
    return AddressConfigured.WAITING_FOR_AGENT(f"the agent of {subject.replica.node_name} has not chosen one yet")


def backing_volume_ready(subject: Subject) -> Verdict:
    """The logical volume is there, at the size that is needed."""
    replica, view = subject.replica, subject.view
    if not replica.diskful:
        return BackingVolumeReady.NOT_APPLICABLE()
    if not replica.scheduled:
        return BackingVolumeReady.PENDING_SCHEDULING()
    volume, needed = replica.logical_volume, size_needed(view, replica)
    if volume is None:
        has = disk.granted(replica)
        if needed is not None and has < needed:
            why = disk.refused(replica, needed)
            words = f"the disk has granted {amount(has)}, needed are {amount(needed)}{why}"
            return BackingVolumeReady.PROVISIONING(words)
        return BackingVolumeReady.PROVISIONING("its logical volume is about to be made")
    if volume.deleting and disk.is_needed(view, replica, volume):
        words = f"logical volume {volume.name} is deleted, and kept while {replica.name} is a member"
        return BackingVolumeReady.DELETION_HELD(f"{words}: to have it replaced, delete {replica.name}")
    if volume.deleting:
        return BackingVolumeReady.PROVISIONING(f"logical volume {volume.name} is being removed")
    return _of_volume(volume, needed)


def satisfy_eligible_nodes(subject: Subject) -> Verdict:
    """Node and disk are what the pool offers (002)."""
    view, spec = subject.view, subject.replica.replica.spec
    configuration = view.rv.status.configuration if view.rv is not None else None
    if configuration is None:
        return SatisfyEligibleNodes.WAITING_FOR_REPLICATED_VOLUME()
    if view.rsp is None:
        words = f"there is no ReplicatedStoragePool {configuration.replicated_storage_pool_name}"
        return SatisfyEligibleNodes.WAITING_FOR_REPLICATED_VOLUME(words)
    if spec.node_name is None:
        return SatisfyEligibleNodes.PENDING_SCHEDULING()
    pool, node = view.rsp.name, view.eligible(spec.node_name)
    if node is None:
        return SatisfyEligibleNodes.NODE_MISMATCH(f"pool {pool} does not list node {spec.node_name}")
    if spec.lvm_volume_group_name is None:
        return SatisfyEligibleNodes.SATISFIED()
    groups = [group for group in node.lvm_volume_groups if group.name == spec.lvm_volume_group_name]
    if not groups:
        words = f"volume group {spec.lvm_volume_group_name} of node {spec.node_name} is not in pool {pool}"
        return SatisfyEligibleNodes.LVM_VOLUME_GROUP_MISMATCH(words)
    if all(group.thin_pool_name != spec.lvm_volume_group_thin_pool_name for group in groups):
        thin = spec.lvm_volume_group_thin_pool_name or "(none)"
        words = f"thin pool {thin} of group {spec.lvm_volume_group_name} on {spec.node_name} is not in pool {pool}"
        return SatisfyEligibleNodes.THIN_POOL_MISMATCH(words)
    return SatisfyEligibleNodes.SATISFIED()


def _of_volume(volume: LVMLogicalVolume, needed: int | None) -> Verdict:
    status, size = volume.status, volume.status.actual_size
    words = f"{volume.name}: {status.message}" if status.message else volume.name
    if status.reason == LogicalVolumeFailure.LV_EXISTS.code:
        return BackingVolumeReady.LV_EXISTS(words)
    if size is None:
        if status.phase is LogicalVolumePhase.FAILED:
            return BackingVolumeReady.PROVISIONING_FAILED(f"{volume.name}: {status.reason}: {status.message}")
        return BackingVolumeReady.PROVISIONING(words)
    if status.phase is LogicalVolumePhase.FAILED:
        # It was there, and something is wrong with it now.
        return BackingVolumeReady.PROVISIONING_FAILED(f"{volume.name}: {status.reason}: {status.message}")
    if int(size) < max(needed or 0, int(volume.spec.size)):
        if status.reason:
            return BackingVolumeReady.RESIZE_FAILED(f"{volume.name}: {status.reason}: {status.message}")
        return BackingVolumeReady.RESIZING(f"{volume.name} has {amount(int(size))}, needed are {amount(needed or 0)}")
    return BackingVolumeReady.READY(f"{volume.name} has {amount(int(size))}")
