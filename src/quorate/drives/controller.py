"""The controller of drives: one pass over all drives of a node.

A pass decides, for each drive, how it is and how far it is on its way out, and writes its status; keeps the Volumes of
what lies on drives that leave (``objects``) and says of copies and foreign data how far they are (``others``); asks the
broker (``removal``); and closes the book on a drive that another one has replaced.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from random import Random
from typing import Any, Final

from quorate.api import annotation_keys, conditions, core, labels, names
from quorate.api.annotation_keys import Replacement
from quorate.api.baremetal import Drive, Volume
from quorate.api.baremetal.drive import DriveStatus, OperationalStatus, Presence
from quorate.api.cluster_config import ClusterConfig
from quorate.api.core import Lease, PersistentVolumeClaim
from quorate.api.longhorn import BackingImage, DiskSchedule
from quorate.api.maintenance import PermissionRequest
from quorate.api.meta import NodeName
from quorate.api.storage import LVMLogicalVolume, LVMVolumeGroup, ReplicatedVolumeReplica
from quorate.api.struct import replace
from quorate.drives import asked, closing, events, health, objects, others, removal, report
from quorate.drives.phases import Facts, next_phase
from quorate.drives.view import INDEXES, DriveView, NodeView, hosts_in, observe
from quorate.engine import Controller, Delete, Key, Patch, PatchStatus, Plan, PlanEvent, Watch, Write, no_keys

#: A node with a drive on its way out is looked at so often, in seconds, for what does not wake it: images and space.
_WHILE_LEAVING: Final = 10.0
#: … and one of which a device is away: its agent may have fallen silent.
_WHILE_AWAY: Final = 5.0


def decide(view: NodeView, now: datetime, _: Random) -> Plan:
    """One pass over the drives of a node."""
    grace = view.config.grace_periods.drive_missing.seconds
    around = health.Surroundings(view.machine, view.up, grace, view.up_since)
    writes: list[Write] = []
    told: list[PlanEvent] = []
    opinions = {each.drive.name: health.judge(each.drive, around, now) for each in view.drives}
    statuses = {each.drive.name: status_of(each, view, opinions[each.drive.name], now) for each in view.drives}
    given_up = {
        group.name
        for each in view.drives
        if removal.may_be_given_up(each, statuses[each.drive.name].operational_status)
        for group in each.groups
    }
    withdrawn = {
        group.name
        for each in view.drives
        if statuses[each.drive.name].operational_status is OperationalStatus.FAILED
        and asked.replacement(each.drive) is not Replacement.READY
        for group in each.groups
    }
    writes += objects.writes(view, given_up, withdrawn - given_up)
    writes += others.writes(view, given_up, now)
    writes += closing.requests_given_back(view)
    for each in view.drives:
        if each.drive.deleting:
            continue
        successor = closing.successor(each, view)
        if successor is not None and closing.is_noted(each.drive, successor):
            writes.append(Delete(each.drive))
            told.append(events.closed(each.drive, successor))
            continue
        opinion, status = opinions[each.drive.name], statuses[each.drive.name]
        writes += removal.writes(each, view)
        writes += _spent(each, status)
        if status != each.drive.status:
            writes.append(PatchStatus(each.drive, replace(each.drive, status=status)))
            told += events.of_change(each.drive, status, opinion, closing.hint(each, view))
    return Plan(writes=tuple(writes), events=tuple(told), requeue_after=_look_again(view, around, now))


def status_of(each: DriveView, view: NodeView, opinion: health.Opinion, now: datetime) -> DriveStatus:
    """The drive's whole status as it should be; what its agent writes stays."""
    drive, before = each.drive, each.drive.status
    facts = Facts(
        health=opinion.health,
        system=drive.spec.is_system,
        contents=each.contents,
        replacement=asked.replacement(drive),
        removal=removal.state_of(each),
        permitted=removal.is_permitted(each),
        leftovers=any(group.volumes and not group.leaving for group in each.groups),
    )
    phase = next_phase(each.phase, facts)
    verdicts = (
        opinion.verdict,
        report.present(each),
        report.clean(each),
        report.released(each, phase),
        report.removed(each, phase, view),
        report.light(each),
    )
    generation = drive.metadata.generation
    permission = each.request.status.permissions[0] if removal.is_permitted(each) and each.request else ""
    return replace(
        before,
        observed_generation=generation,
        health=opinion.health,
        operational_status=phase,
        operational_status_since=before.operational_status_since if phase is before.operational_status else now,
        progress=report.progress(each, phase),
        permission_id=permission,
        detach=_is_to_be_detached(each, phase),
        replaces=closing.replaced(each, view),
        message=" ".join(filter(None, (report.message(each, phase, opinion, verdicts), closing.doubt(each, view)))),
        conditions=conditions.merge(before.conditions, verdicts, now=now, generation=generation),
    )


def _is_to_be_detached(each: DriveView, phase: OperationalStatus) -> bool:
    """The order to the agent: from when nothing is on it any more, for as long as the person says ``ready``."""
    if phase is OperationalStatus.REMOVED:
        return each.drive.status.detach
    if phase is OperationalStatus.OPERATIVE or asked.replacement(each.drive) is not Replacement.READY:
        return False
    begins = phase is OperationalStatus.REMOVING and removal.is_permitted(each) and removal.is_emptied(each)
    return each.drive.status.detach or begins


def _spent(each: DriveView, after: DriveStatus) -> Iterator[Write]:
    """What a person said of a replacement is not kept for the next one.

    ``restart`` has had its effect once the drive is in service; ``ready`` is over when the drive returns, and says
    nothing of one that nobody distrusts.
    """
    drive = each.drive
    in_service, stays = (phase is OperationalStatus.OPERATIVE for phase in (each.phase, after.operational_status))
    match asked.replacement(drive):
        case Replacement.RESTART:
            over = in_service
        case Replacement.READY:
            over = stays and (not in_service or after.health not in health.NOT_TRUSTED)
        case _:
            return
    if over:
        said = drive.metadata.annotations
        kept = {key: value for key, value in said.items() if key not in annotation_keys.DRIVE_REPLACEMENT}
        yield Patch(drive, replace(drive, metadata=replace(drive.metadata, annotations=kept)))


def _look_again(view: NodeView, around: health.Surroundings, now: datetime) -> float | None:
    waits = [left for each in view.drives if (left := health.missing_in(each.drive, around, now)) is not None]
    if any(group.leaving for group in view.groups):
        waits.append(_WHILE_LEAVING)
    if any(each.drive.status.presence is Presence.OFFLINE for each in view.drives) and not view.up:
        waits.append(_WHILE_AWAY)
    return max(min(waits), 0.1) if waits else None


# What wakes a node.


def _of_drive(drive: Drive) -> Iterable[Key]:
    return (Key("", drive.spec.node_id),)


def _of_group(group: LVMVolumeGroup) -> Iterable[Key]:
    return (Key("", group.spec.local.node_name),)


def _of_piece(piece: LVMLogicalVolume) -> Iterable[Key]:
    node = piece.metadata.labels.get(labels.NODE)
    return (Key("", node),) if node else ()


def _of_volume(volume: Volume) -> Iterable[Key]:
    return (Key("", volume.spec.node_id),)


def _of_request(request: PermissionRequest) -> Iterable[Key]:
    return tuple(Key("", host) for host in hosts_in(request))


def _of_lease(lease: Lease) -> Iterable[Key]:
    prefix = names.agent_lease(NodeName(""))
    return (Key("", lease.name.removeprefix(prefix)),) if lease.name.startswith(prefix) else ()


def _group_changed(before: LVMVolumeGroup | None, after: LVMVolumeGroup | None) -> bool:
    return before is None or after is None or _of_interest(before) != _of_interest(after)


def _of_interest(group: LVMVolumeGroup) -> tuple[object, ...]:
    return group.status.devices, group.status.vg_uuid, group.status.unmanaged_volumes, group.deleting


def _piece_changed(before: LVMLogicalVolume | None, after: LVMLogicalVolume | None) -> bool:
    if before is None or after is None:
        return True
    return (before.deleting, before.spec.size, before.status.reason) != (
        after.deleting,
        after.spec.size,
        after.status.reason,
    )


def _machine_changed(before: core.Node | None, after: core.Node | None) -> bool:
    return before is None or after is None or before.metadata.annotations != after.metadata.annotations


def _holder_changed(before: Lease | None, after: Lease | None) -> bool:
    return before is None or after is None or bool(before.spec.holder_identity) != bool(after.spec.holder_identity)


DRIVE_CONTROLLER: Final[Controller[Any]] = Controller(
    name="drives",
    watches=(
        Watch(Drive, _of_drive),
        Watch(Volume, _of_volume),
        Watch(LVMVolumeGroup, _of_group, when=_group_changed),
        Watch(LVMLogicalVolume, _of_piece, when=_piece_changed),
        Watch(PermissionRequest, _of_request),
        Watch(core.Node, when=_machine_changed),
        Watch(Lease, _of_lease, when=_holder_changed),
        Watch(ReplicatedVolumeReplica, no_keys),
        Watch(PersistentVolumeClaim, no_keys),
        Watch(BackingImage, no_keys),
        Watch(DiskSchedule, no_keys),
        Watch(ClusterConfig, no_keys),
    ),
    observe=observe,
    decide=decide,
    indexes=INDEXES,
    freshness=(Lease,),
)
