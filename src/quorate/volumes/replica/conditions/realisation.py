"""What the agent has made of it: DevicesReady, ConfigurationAdjusted, Configured, DRBDConfigured, InitialSync."""

from __future__ import annotations

from collections.abc import Iterator

from quorate.api.conditions import Verdict
from quorate.api.conditions.declaration import Reason
from quorate.api.conditions.rvr import (
    AddressConfigured,
    BackingVolumeReady,
    ConfigurationAdjusted,
    Configured,
    DevicesReady,
    DRBDConfigured,
    InitialSync,
    Scheduled,
)
from quorate.api.meta import ConditionStatus
from quorate.api.storage.drbd import CommandError, ConnectionState, DiskState, ReplicationState
from quorate.volumes.replica.subject import Subject, Verdicts
from quorate.volumes.view import link_to

_NO_ADDRESS = (AddressConfigured.NO_FREE_PORT_AVAILABLE.code, AddressConfigured.NO_INTERNAL_IP.code)


def devices_ready(subject: Subject) -> Verdict:
    """The kernel has the device, with a disk exactly when it should."""
    if subject.silent:
        return DevicesReady.AGENT_NOT_READY(subject.blind)
    device = subject.device
    if device is None:
        return DevicesReady.DEVICE_IS_NOT_READY(subject.on_node("the kernel has no such device"))
    has_disk = device.disk_state not in ("", DiskState.DISKLESS)
    if has_disk != subject.diskful:
        found = f"a disk ({device.disk_state}) although it should have none" if has_disk else "no disk"
        return DevicesReady.DEVICE_IS_NOT_READY(subject.on_node(f"the device has {found}"))
    return DevicesReady.DEVICE_IS_READY(f"/dev/drbd{device.minor}")


def configuration_adjusted(subject: Subject) -> Verdict:
    """The agent's last run succeeded; otherwise what failed, the first in the order of its work."""
    if subject.silent and not subject.blind:
        return ConfigurationAdjusted.AGENT_NOT_READY()
    for reason, error in _failures(subject):
        return reason(_words(subject, error))
    if not subject.config.datamesh_revision:
        paused = ConfigurationAdjusted.CONFIGURATION_ADJUSTMENT_PAUSED_UNTIL_INITIAL_SYNC
        return paused("nothing is configured before the replica is a member of the datamesh")
    if subject.is_member and not subject.config.down and subject.device is None:
        return ConfigurationAdjusted.RESOURCE_NOT_UP(subject.on_node("nothing has failed, and the device is not there"))
    return ConfigurationAdjusted.CONFIGURATION_ADJUSTMENT_SUCCEEDED()


def configured(subject: Subject) -> Verdict:
    """Everything realised equals its source, and no command failed."""
    if subject.silent and not subject.blind:
        return Configured.AGENT_NOT_READY()
    failed = [_words(subject, error) for _, error in _failures(subject)]
    if failed:
        return Configured.COMMAND_FAILED("; ".join(failed))
    missing = list(_unrealised(subject))
    return Configured.NOT_APPLIED(subject.on_node(", ".join(missing))) if missing else Configured.CONFIGURED()


def drbd_configured(subject: Subject, others: Verdicts) -> Verdict:
    """Configured, at the datamesh's revision; before membership, what is still to come before it."""
    if others[Scheduled.__name__].status is not ConditionStatus.TRUE:
        return DRBDConfigured.PENDING_SCHEDULING()
    if subject.silent:
        return DRBDConfigured.AGENT_NOT_READY(subject.blind)
    if not subject.is_member:
        if others[BackingVolumeReady.__name__].status is not ConditionStatus.TRUE:
            return DRBDConfigured.WAITING_FOR_BACKING_VOLUME(others[BackingVolumeReady.__name__].message)
        if subject.replica.address is None:
            return DRBDConfigured.APPLYING_CONFIGURATION(others[AddressConfigured.__name__].message)
        lost = f"there is no ReplicatedVolume {subject.view.name} to join" if subject.view.rv is None else ""
        return DRBDConfigured.PENDING_DATAMESH_JOIN(lost)
    adjusted = others[ConfigurationAdjusted.__name__]
    if adjusted.status is ConditionStatus.FALSE:
        return DRBDConfigured.CONFIGURATION_FAILED(f"{adjusted.reason}: {adjusted.message}")
    if adjusted.reason == ConfigurationAdjusted.RESOURCE_NOT_UP.code:
        return DRBDConfigured.APPLYING_CONFIGURATION(adjusted.message)
    shown, revision = subject.replica.replica.status.datamesh_revision, subject.config.datamesh_revision
    if shown < revision:
        words = f"the kernel shows revision {shown}, the datamesh has {revision}"
        return DRBDConfigured.APPLYING_CONFIGURATION(subject.on_node(words))
    return DRBDConfigured.CONFIGURED(f"revision {shown}")


def initial_sync(subject: Subject) -> Verdict:
    """The replica has been in sync once (M3)."""
    if subject.actual.initial_sync_completed:
        return InitialSync.INITIAL_DEVICE_READINESS_REACHED()
    away = [peer.name for peer in subject.peers if not _is_established(subject, peer.node_id)]
    device = subject.device
    if device is None or not subject.is_member:
        return InitialSync.INITIAL_SYNC_REQUIRED_BUT_NOT_READY(subject.on_node("the device is not there yet"))
    if away:
        return InitialSync.INITIAL_SYNC_REQUIRED_BUT_NOT_READY(subject.on_node(f"not in touch with {', '.join(away)}"))
    return InitialSync.SAFE_FOR_INITIAL_SYNC(subject.on_node(f"disk {device.disk_state}, all peers in touch"))


def _failures(subject: Subject) -> Iterator[tuple[Reason, CommandError]]:
    """What failed last, in the order in which an agent works."""
    errors, adjusted = subject.errors, ConfigurationAdjusted
    if errors.shared_secret_alg_selection_error is not None:
        yield adjusted.UNSUPPORTED_ALGORITHM, errors.shared_secret_alg_selection_error
    config_error = errors.last_config_error
    if config_error is not None and config_error.reason not in _NO_ADDRESS:
        yield adjusted.CONFIGURATION_FAILED, config_error
    metadata = errors.last_metadata_error
    if metadata is not None:
        yield _of_metadata(metadata), metadata
    if errors.last_status_error is not None:
        yield adjusted.STATUS_CHECK_FAILED, errors.last_status_error
    adjustment = errors.last_adjustment_error
    if adjustment is not None:
        yield _of_adjustment(adjustment), adjustment
    if errors.last_promotion_error is not None:
        yield adjusted.PROMOTION_DEMOTION_FAILED, errors.last_promotion_error
    if errors.last_resize_error is not None:
        yield adjusted.RESIZE_FAILED, errors.last_resize_error


def _of_adjustment(error: CommandError) -> Reason:
    if error.reason == ConfigurationAdjusted.METADATA_UNUSABLE.code:
        return ConfigurationAdjusted.METADATA_UNUSABLE
    up = " up " in f" {error.command} "
    return ConfigurationAdjusted.RESOURCE_UP_FAILED if up else ConfigurationAdjusted.CONFIGURATION_ADJUST_FAILED


def _of_metadata(error: CommandError) -> Reason:
    if error.reason == ConfigurationAdjusted.METADATA_MISSING.code:
        return ConfigurationAdjusted.METADATA_MISSING
    making = "create-md" in error.command or "lvchange" in error.command
    return ConfigurationAdjusted.METADATA_CREATION_FAILED if making else ConfigurationAdjusted.METADATA_CHECK_FAILED


def _words(subject: Subject, error: CommandError) -> str:
    said = error.output.strip() or "it said nothing"
    what = f"{error.command} (exit {error.exit_code}): {said}" if error.command else said
    return subject.on_node(f"{error.reason}: {what}" if error.reason else what)


def _unrealised(subject: Subject) -> Iterator[str]:
    """What of the config the kernel does not have."""
    config, actual, report = subject.config, subject.actual, subject.report
    if not config.datamesh_revision or not subject.is_member:
        yield "not a member of the datamesh"
        return
    if config.down:
        if report is not None:
            yield "the resource is still up"
        return
    if report is None:
        yield "the resource is not up"
        return
    intended = config.disk or ""
    if actual.disk != intended:
        yield f"disk {actual.disk or 'none'} instead of {intended or 'none'}"
    if actual.allow_two_primaries != config.allow_two_primaries:
        yield f"allowTwoPrimaries is {actual.allow_two_primaries}"
    unforgotten = [node_id for node_id in config.forget if node_id not in actual.forgotten]
    if unforgotten:
        yield f"node ids {unforgotten} are not forgotten"


def _is_established(subject: Subject, node_id: int) -> bool:
    link = link_to(subject.report, node_id)
    if link is None or link.connection_state != ConnectionState.CONNECTED:
        return False
    return all(device.replication_state != ReplicationState.OFF for device in link.peer_devices)
