"""The rules of a ReplicatedVolume: a group that knows its quorum."""

from __future__ import annotations

from quorate.api.maintenance.action import AvailabilityMode, HostState, IssueType, LockKind, StatusCode
from quorate.maintenance.nouns import GroupInfo, VDiskId, VDiskInfo, VolumeFacts
from tests.maintenance.oracle.locks import Asker, lock_on_vdisk, part_stops_force, rule, taken_of
from tests.maintenance.oracle.world import No, World

FORCE = AvailabilityMode.FORCE_RESTART
ISSUE = IssueType.TOO_MANY_UNAVAILABLE_VDISKS


@rule
def check_volume(world: World, vdisk: VDiskInfo, asker: Asker) -> None:
    """May this member of a volume go away?"""
    group = world.groups[vdisk.id.group]
    volume = group.volume
    assert volume is not None
    if volume.unconfirmed_step:
        raise No(StatusCode.DISALLOW_TEMP, why=f"{volume.name}: {volume.unconfirmed_step}")
    locked, away = others(world, group, vdisk, asker)
    stays_available = not taken_of(group, asker) and serves(world, volume, vdisk, {*locked, *away}, asker)
    if asker.mode is FORCE:
        # Whatever KEEP_AVAILABLE allows, and one at a time whatever is broken; a first copy waits.
        if not stays_available and not alone_at_work(world, group, vdisk, asker):
            raise No(StatusCode.DISALLOW_TEMP, ISSUE)
        return
    # A hidden member's first copy is one more that must not be disturbed.
    spent = len(locked) + bool(volume.synchronizing) + len(away) + 1
    if asker.mode is AvailabilityMode.MAX_AVAILABILITY and spent > 1:
        raise No(StatusCode.DISALLOW_TEMP, ISSUE)
    if not stays_available:
        raise No(StatusCode.DISALLOW_TEMP, ISSUE, f"{volume.name} could not be written, or has too few copies")


def alone_at_work(world: World, group: GroupInfo, vdisk: VDiskInfo, asker: Asker) -> bool:
    """Whether nobody works on another part of a group, or may."""
    return not any(part_stops_force(world, other, asker) for other in group.vdisks if other.id != vdisk.id)


def serves(world: World, volume: VolumeFacts, vdisk: VDiskInfo, lost: set[VDiskId], asker: Asker) -> bool:
    """Whether who uses it can write; where nobody does, whether enough copies stay."""
    me = next(member for member in volume.members if member.vdisk == vdisk.id)
    if world.state(vdisk.node) is HostState.DOWN and me.missed:
        return True  # its peers miss it already: it cannot be lost once more
    if volume.attached_on - asker.going:
        return writable_without(volume, {vdisk.id, *lost})
    return copies_without(volume, {vdisk.id, *lost}) >= volume.copies_kept


def others(
    world: World, group: GroupInfo, vdisk: VDiskInfo, asker: Asker
) -> tuple[dict[VDiskId, LockKind], set[VDiskId]]:
    """The other members that are locked, and those that are not but are away."""
    locked: dict[VDiskId, LockKind] = {}
    away: set[VDiskId] = set()
    for other in group.vdisks:
        if other.id == vdisk.id:
            continue
        if (lock := lock_on_vdisk(world, other, asker)) is not None:
            locked[other.id] = lock
        elif is_away(world, other, vdisk):
            away.add(other.id)
    return locked, away


def is_away(world: World, other: VDiskInfo, mine: VDiskInfo) -> bool:
    """Through itself, or through a node or drive that is not the one asked about."""
    if other.state is not HostState.UP:
        return True
    if other.node != mine.node and node_away(world, other):
        return True
    return any(drive not in mine.drives and world.state(drive) is not HostState.UP for drive in other.drives)


def node_away(world: World, other: VDiskInfo) -> bool:
    """Of a volume's member on a node that is merely silent it is for its peers to say whether it is away."""
    state, is_volume = world.state(other.node), world.groups[other.id.group].volume is not None
    if is_volume and state is HostState.DOWN and other.node in world.nodes:
        return world.nodes[other.node].surely_down
    return state is not HostState.UP


def writable_without(volume: VolumeFacts, lost: set[VDiskId]) -> bool:
    """The kernel's rule, as seen by those that stay: a majority of the voters, or half of them and the tie-breaker."""
    here = [member for member in volume.members if member.vdisk not in lost and member.connected]
    voters = sum(member.voter for member in volume.members)
    present = sum(member.voter for member in here)
    tie_breaker = any(member.tie_breaker for member in here)
    majority = voters // 2 + 1
    quorate = present >= majority or (voters % 2 == 0 and present == majority - 1 and tie_breaker)
    copies = sum(member.voter and member.up_to_date for member in here)
    return quorate and copies >= max(1, volume.quorum_minimum_redundancy)


def copies_without(volume: VolumeFacts, lost: set[VDiskId]) -> int:
    """Up-to-date copies that stay, whether or not their side serves."""
    return sum(member.voter and member.up_to_date for member in volume.members if member.vdisk not in lost)
