"""What is reported of a volume group, and what is made of clean drives where its object asks for it.

A group is made, or extended, of the drives that ``deviceSelector`` names. Only of clean ones that are not the system's:
nothing is ever wiped for it, and nothing ever taken out or removed. What is refused is said.

| seen                                           | phase                                  | done                     |
|------------------------------------------------|----------------------------------------|--------------------------|
| no such group, no selector                     | NotReady                               |                          |
| no such group, clean drives selected           | Pending                                | ``vgcreate``             |
| no such group, but it was there                | NotReady, with what was known of it;   |                          |
|                                                | of what was in it only while its       |                          |
|                                                | drives may come back                   |                          |
| the same, and it was taken apart for a person  | NotReady, or Pending with another      | ``vgcreate``             |
| (``detaching``), or all its drives are there,  | clean drive; nothing is known of it    |                          |
| and nothing is on them                         |                                        |                          |
| the same, but ``vgcreate`` finds its name      | Pending                                | ``dmsetup remove`` of    |
| taken: devices of the drive that is gone       |                                        | those that nobody has    |
|                                                |                                        | open, then ``vgcreate``  |
| none, but LVM did not tell everything          | NotReady, with what was known of it    |                          |
| two of that name                               | NotReady: LVM cannot tell them apart   |                          |
| devices of it missing                          | NotReady, missing ones still listed    |                          |
| more clean drives selected than it has         | as it is                               | ``vgextend``             |
| a thin pool of the spec missing                | NotReady                               | ``lvcreate``             |
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from dataclasses import replace as replaced
from datetime import datetime, timedelta
from typing import Final

from quorate.agent.backoff import wait_before_trying
from quorate.agent.lvm import commands, pools
from quorate.agent.lvm.drives import drive_behind, remembered, selected, still_listed, words_for
from quorate.agent.lvm.failures import shortened, words_of
from quorate.agent.lvm.mapped import left_over
from quorate.agent.lvm.seen import NEW, SeenDevice, SeenGroup, SeenGroups, SeenVolume, SeenVolumes, owner_tag, spare_tag
from quorate.agent.memory import Outcome
from quorate.agent.steps import Run
from quorate.api.baremetal import Drive
from quorate.api.baremetal.drive import DetachmentPhase, OperationalStatus, Presence
from quorate.api.quantity import Quantity
from quorate.api.reserved import why_no_group
from quorate.api.scalars import MOST_UNMANAGED
from quorate.api.storage import LVMLogicalVolume, LVMVolumeGroup
from quorate.api.storage.lvg import DeviceSelector, GroupDevice, LVMVolumeGroupStatus, VolumeGroupPhase
from quorate.api.struct import replace

#: Of the name of one that is told of.
_LONGEST: Final = 256
#: What vgcreate says while device mapper has volumes of a group of that name, or there is anything else in /dev.
_NAME_TAKEN: Final = "already exists in filesystem"
#: How long it counts who has such a device open.
_LOOK_AT_OPEN: Final = timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class GroupView:
    """One LVMVolumeGroup and what matters for it."""

    lvg: LVMVolumeGroup
    drives: tuple[Drive, ...]
    volumes: SeenVolumes
    groups: SeenGroups
    #: What became of the last commands, by purpose.
    outcomes: Mapping[str, Outcome] = field(default_factory=dict)
    #: Since when the group's free bytes have been other than told; None: they are not.
    untold_since: datetime | None = None
    #: Whether the drives were looked at since the groups were.
    drives_current: bool = True
    #: Logical volumes in it that no object stands for.
    unmanaged: tuple[SeenVolume, ...] = ()
    #: A drive stands for those whose place it has taken (ClusterConfig ``spec.disks.replacementsJoin``).
    replacements_join: bool = True
    #: What the node's other groups select.
    others: tuple[DeviceSelector, ...] = ()


@dataclass(frozen=True, slots=True)
class GroupDecision:
    """What is to be reported, and done."""

    status: LVMVolumeGroupStatus
    steps: tuple[Run, ...] = ()
    retry_after: float | None = None
    #: Look at the drives first: a device is taken only as it is now.
    look_at_drives: bool = False


def without_object(
    volumes: SeenVolumes, lvgs: Iterable[LVMVolumeGroup], llvs: Iterable[LVMLogicalVolume]
) -> tuple[SeenVolume, ...]:
    """Logical volumes that no object has: none has their UID, nor is to be where they are."""
    groups = {lvg.name: lvg.spec.actual_vg_name_on_the_node for lvg in lvgs}
    owners: set[str] = set()
    places: set[str] = set()
    for llv in llvs:
        owners |= {owner_tag(llv.metadata.uid), spare_tag(llv.metadata.uid)}
        places.add(f"{groups.get(llv.spec.lvm_volume_group_name, '')}/{llv.spec.actual_lv_name_on_the_node}")
    return tuple(each for each in volumes.volumes if each.place not in places and owners.isdisjoint(each.tags))


def unmanaged(
    volumes: SeenVolumes, lvgs: Iterable[LVMVolumeGroup], llvs: Iterable[LVMLogicalVolume]
) -> tuple[SeenVolume, ...]:
    """Logical volumes that no object stands for, ours or anybody's: what nobody asks for is not known to be needless.

    Where the LVMVolumeGroup is missing, all: nobody looks after what is in it. Pools hold nothing but such volumes, and
    one that is still marked as new has never held anything.
    """
    lvgs = tuple(lvgs)
    known = {lvg.spec.actual_vg_name_on_the_node for lvg in lvgs}
    lacking = {volume.place for volume in without_object(volumes, lvgs, llvs)}
    return tuple(
        volume
        for volume in volumes.volumes
        if not (volume.is_pool or volume.is_part or NEW in volume.tags)
        and (volume.group not in known or volume.place in lacking)
    )


def judge(view: GroupView, now: datetime) -> GroupDecision:
    """What is to be reported of one volume group, and done. Pure."""
    decision = _judged(view, now)
    takes_drives = any(step.purpose == commands.GROUP for step in decision.steps)
    if view.lvg.deleting:
        # What is in it is still told of; nothing is made any more.
        return GroupDecision(decision.status)
    if not takes_drives or view.drives_current:
        return decision
    return replaced(decision, steps=(), look_at_drives=True)


def _judged(view: GroupView, now: datetime) -> GroupDecision:
    name = view.lvg.spec.actual_vg_name_on_the_node
    if unusable := why_no_group(name):
        return GroupDecision(_not_ready(view, [f"{unusable}."]))
    found = view.groups.named(name)
    takeable, refused = _drives(view)
    if len(found) > 1:
        why = [f"The node has {len(found)} volume groups named {name}. Rename all but one."]
        return GroupDecision(_not_ready(view, why))
    if not found and view.groups.incomplete:
        return GroupDecision(not_seen(view.lvg, view.groups.incomplete))
    if found:
        group = _whole(view, found[0])
        steps = (commands.extend_group(name, _paths(takeable)),) if takeable and not group.missing else ()
        # What is made on a drive that leaves would only have to be taken away again.
        intended = () if _leaves(view) else view.lvg.spec.thin_pools
        made = (pools.missing(pool, group, view.volumes) for pool in intended)
        return _tried(view, _report(view, group, refused), (*steps, *(run for run in made if run is not None)), now)
    if _was_taken_apart(view):
        view = replaced(view, lvg=replace(view.lvg, status=LVMVolumeGroupStatus()))
    may_return = _may_return(view)
    why = [f"The node has no volume group {name}" + (", which it had." if may_return else "."), *refused]
    if not takeable and not refused and view.lvg.spec.device_selector is not None:
        why.append(_unselected(view, view.lvg.spec.device_selector))
    status = _not_ready(view, why)
    if not may_return and not view.volumes.incomplete:
        # Nothing that was in it comes back; its object must not be held by that for ever.
        status = replace(status, unmanaged_volumes=())
    if may_return or not takeable:
        return GroupDecision(status)
    status = replace(status, phase=VolumeGroupPhase.PENDING, message=f"{name} is being made.")
    return _created(view, status, commands.create_group(name, _paths(takeable)), now)


def _created(view: GroupView, status: LVMVolumeGroupStatus, create: Run, now: datetime) -> GroupDecision:
    """Make the group. If LVM refused because the name is there, remove the devices of the one that had it before."""
    last, told, removed = (view.outcomes.get(each) for each in (commands.GROUP, commands.MAPPED, commands.UNMAP))
    if last is None or last.succeeded or _NAME_TAKEN not in last.output:
        return _tried(view, status, (create,), now)
    name = view.lvg.spec.actual_vg_name_on_the_node
    latest = max(last.at, removed.at) if removed is not None else last.at
    if told is None or told.at < latest or now - told.at >= _LOOK_AT_OPEN:
        return GroupDecision(status, (commands.list_mapped(),))
    left = left_over(told.output, name, view.groups) if told.succeeded else ()
    if free := [device for device in left if not device.opens]:
        return _tried(view, status, tuple(commands.unmap(device.name) for device in free), now)
    if left:
        message = (
            f"{name} cannot be made: {left[0].name}, of a drive that is gone, is still open. Stop what uses it"
            f" (dmsetup info {left[0].name}, lsof), or restart the node."
        )
        return GroupDecision(replace(status, message=message), retry_after=_LOOK_AT_OPEN.total_seconds())
    if removed is not None and removed.at > last.at:
        return GroupDecision(status, (create,))
    return _tried(view, status, (create,), now)


def _whole(view: GroupView, group: SeenGroup) -> SeenGroup:
    """The group, with devices that went away between ``vgs``, which counts the missing, and ``pvs`` counted as well."""
    devices = [device for device in view.groups.devices if device.group_uuid == group.uuid]
    missing = sum(device.missing for device in devices) if devices else 1
    return replaced(group, missing=max(group.missing, missing))


def not_seen(lvg: LVMVolumeGroup, why: str) -> LVMVolumeGroupStatus:
    """LVM did not tell. What is known of the group stays; that nothing can be made there now is said."""
    message = shortened(f"LVM could not be looked at: {why}")
    return replace(lvg.status, phase=VolumeGroupPhase.NOT_READY, message=message)


def _under(view: GroupView) -> tuple[Drive, ...]:
    """The drives of the group, as far as they are known."""
    names = {device.drive_uuid for device in view.lvg.status.devices}
    return tuple(drive for drive in view.drives if drive.name in names)


def _leaves(view: GroupView) -> bool:
    return any(drive.leaving for drive in _under(view))


def _was_taken_apart(view: GroupView) -> bool:
    """Whether all its drives were made ready to be pulled: what was known of the group was of them."""
    under = _under(view)
    return bool(under) and all(
        drive.status.detachment is not None and drive.status.detachment.phase is DetachmentPhase.DONE for drive in under
    )


def _may_return(view: GroupView) -> bool:
    """Whether the group was there and may come back with its drives: while any of them may still hold its part of it.

    One that was taken out for good does not, nor one that is there with nothing on it. A device of which nobody knows
    the drive may come back at any time.
    """
    drives, holders = {drive.name: drive for drive in view.drives}, _holders(view)
    return bool(view.lvg.status.vg_uuid) and any(
        not device.drive_uuid or _may_hold(drives[device.drive_uuid], holders.get(device.drive_uuid))
        for device in view.lvg.status.devices
        if not device.drive_uuid or device.drive_uuid in drives
    )


def _may_hold(drive: Drive, holder: SeenDevice | None) -> bool:
    if drive.phase is OperationalStatus.REMOVED:
        return False
    return drive.status.presence is not Presence.ONLINE or bool(_why_not(drive, holder))


def _holders(view: GroupView) -> dict[str, SeenDevice]:
    """LVM's devices, by the drives that they are on."""
    return {drive_behind(device.path, view.drives): device for device in view.groups.devices}


def _drives(view: GroupView) -> tuple[tuple[Drive, ...], list[str]]:
    """The selected drives that may be taken, and why the others may not."""
    selector = view.lvg.spec.device_selector
    if selector is None:
        return (), []
    holders = _holders(view)
    takeable, refused = [], []
    for drive in selected(selector, view.drives, replacements_join=view.replacements_join, others=view.others):
        holder = holders.get(drive.spec.uuid)
        if holder is not None and holder.group == view.lvg.spec.actual_vg_name_on_the_node:
            continue
        why = _why_not(drive, holder)
        if why:
            refused.append(f"{drive.spec.path} is not taken: {why}.")
        else:
            takeable.append(drive)
    return tuple(takeable), refused


def _unselected(view: GroupView, selector: DeviceSelector) -> str:
    """What to say where a selector fits nothing that is there: which drive somebody may have meant."""
    holders = _holders(view)
    unused = [
        drive
        for drive in view.drives
        if drive.status.presence is Presence.ONLINE and not _why_not(drive, holders.get(drive.spec.uuid))
    ]
    asked = f"And no drive of the node is selected ({words_for(selector)})."
    if not unused:
        return f"{asked} No drive of the node is unused: put one in."
    named = ", ".join(
        f"{drive.spec.serial_number} ({drive.spec.path}, slot {drive.spec.slot or 'unknown'})"
        for drive in sorted(unused, key=lambda drive: drive.spec.path)[:MOST_UNMANAGED]
    )
    return f"{asked} Unused: {named}. If one of them is meant, edit spec.deviceSelector."


def _why_not(drive: Drive, holder: SeenDevice | None) -> str:
    if drive.spec.is_system:
        return "the node runs from it"
    if drive.leaving:
        return f"it is {drive.phase}"
    if holder is not None:
        # Made a physical volume and then left alone, by a command that was killed: nothing is on it.
        return f"it belongs to volume group {holder.group}" if holder.group else ""
    return "" if drive.spec.is_clean else "something is on it. Nothing is wiped here; clear it by hand"


def _report(view: GroupView, group: SeenGroup, refused: list[str]) -> LVMVolumeGroupStatus:
    thin_pools = tuple(pools.report(pool, group, view.volumes) for pool in view.lvg.spec.thin_pools)
    problems = [f"{group.missing} devices of {group.name} are missing."] if group.missing else []
    problems += [pool.message for pool in thin_pools if not pool.ready]
    return LVMVolumeGroupStatus(
        phase=VolumeGroupPhase.NOT_READY if problems else VolumeGroupPhase.READY,
        message=shortened(" ".join([*problems, *refused])),
        vg_uuid=group.uuid,
        vg_size=Quantity.of_bytes(group.size),
        vg_free=Quantity.of_bytes(group.free),
        allocated_size=Quantity.of_bytes(group.size - group.free),
        extent_size=Quantity.of_bytes(group.extent_size),
        thin_pools=thin_pools,
        devices=_devices(view, group),
        unmanaged_volumes=_unmanaged_places(view),
        observed_generation=view.lvg.metadata.generation,
        conditions=view.lvg.status.conditions,  # the disks controller's
    )


def _unmanaged_places(view: GroupView) -> tuple[str, ...]:
    """Where they are; what LVM did not tell of now is not known to be gone."""
    seen = places_of(view.unmanaged)
    if not view.volumes.incomplete:
        return seen
    return tuple(sorted({*seen, *view.lvg.status.unmanaged_volumes})[:MOST_UNMANAGED])


def places_of(volumes: Iterable[SeenVolume]) -> tuple[str, ...]:
    """Where they are, as many as are told of."""
    return tuple(sorted(volume.place[:_LONGEST] for volume in volumes)[:MOST_UNMANAGED])


def _devices(view: GroupView, group: SeenGroup) -> tuple[GroupDevice, ...]:
    found = tuple(
        GroupDevice(
            path=device.path, drive_uuid=drive_behind(device.path, view.drives), size=Quantity.of_bytes(device.size)
        )
        for device in view.groups.devices_of(group)
    )
    found = remembered(found, view.lvg.status.devices, view.drives)
    if not group.missing:
        return found
    # LVM calls a missing device "[unknown]". Which it was matters more than ever: it stays listed.
    return still_listed(found, view.lvg.status.devices)


def _not_ready(view: GroupView, why: list[str]) -> LVMVolumeGroupStatus:
    """Not usable; what was known of it stays known."""
    gone = (replace(pool, ready=False, message="Its volume group is gone.") for pool in view.lvg.status.thin_pools)
    return replace(
        view.lvg.status,
        phase=VolumeGroupPhase.NOT_READY,
        message=shortened(" ".join(why)),
        thin_pools=tuple(gone),
        observed_generation=view.lvg.metadata.generation,
    )


def _tried(view: GroupView, status: LVMVolumeGroupStatus, steps: tuple[Run, ...], now: datetime) -> GroupDecision:
    """Do what is to be done, each unless it failed lately; failures are said until they are over."""
    failures = [
        last
        for step in steps
        if (last := view.outcomes.get(step.purpose)) is not None and not last.succeeded and last.about == step.about
    ]
    if failures:
        said = shortened(" ".join([status.message, *(words_of(failure) for failure in failures)]).strip())
        status = replace(status, message=said)
    pauses = [wait_before_trying(view.outcomes.get(step.purpose), now, step.about) for step in steps]
    ready = tuple(step for step, pause in zip(steps, pauses, strict=True) if pause <= 0)
    return GroupDecision(status, ready, min((pause for pause in pauses if pause > 0), default=None))


def _paths(drives: tuple[Drive, ...]) -> tuple[str, ...]:
    return tuple(drive.spec.path for drive in drives)
