"""What is permitted is taken down, for real, all at once and by itself: what is left must be what the mode promises."""

from __future__ import annotations

import copy
from collections import Counter
from dataclasses import replace

from quorate.api.maintenance.action import AvailabilityMode, HostState
from quorate.maintenance.nouns import DriveId, GroupInfo, Species, VDiskId, VDiskInfo
from tests.maintenance.oracle.world import Item, World


def taken_down(world: World, items: set[Item]) -> World:
    """The cluster once these are down."""
    after = copy.copy(world)
    after.nodes, after.drives, after.groups = dict(world.nodes), dict(world.drives), dict(world.groups)
    for item in items:
        if isinstance(item, VDiskId):
            after.set_vdisk(item, HostState.DOWN)
        elif isinstance(item, DriveId):
            after.drives[item] = replace(after.drives[item], state=HostState.DOWN)
        else:
            after.nodes[item] = replace(after.nodes[item], state=HostState.DOWN, surely_down=True)
    return after


def permitted(world: World, now: int) -> set[Item]:
    """All that somebody may take down now."""
    held = [permission for permission in world.permissions if permission.deadline > now]
    return {item for permission in held for item in world.items_if_known(permission.action)}


def away(world: World, vdisk: VDiskInfo) -> bool:
    """Whether a part is not there. A volume's member on a node that is merely silent is: its peers would say so."""
    items: tuple[Item, ...] = (vdisk.id, vdisk.node, *vdisk.drives)
    node = world.nodes[vdisk.node]
    if world.groups[vdisk.id.group].volume is not None and node.state is HostState.DOWN and not node.surely_down:
        items = (vdisk.id, *vdisk.drives)
    return any(world.state(item) is not HostState.UP for item in items)


def takes(world: World, group: GroupInfo, items: set[Item]) -> bool:
    """Whether a group loses something that was there."""
    return any({vdisk.id, vdisk.node, *vdisk.drives} & items and not away(world, vdisk) for vdisk in group.vdisks)


def broken_promises(world: World, granted: set[Item], mode: AvailabilityMode, now: int) -> list[str]:
    """What a grant that was just made has spoilt.

    What was down before needs no grant to be away, and may be worked on whatever else is. Others may use what they were
    granted at the same time, or be back.
    """
    together = broken_without(world, granted, permitted(world, now), mode, now)
    return together or broken_without(world, granted, granted, mode, now)


def broken_without(world: World, granted: set[Item], down: set[Item], mode: AvailabilityMode, now: int) -> list[str]:
    after = taken_down(world, down)
    complaints = []
    for group in world.groups.values():
        if takes(world, group, granted):
            lost = [vdisk.id for vdisk in group.vdisks if away(after, vdisk)]
            at_work = [
                vdisk.id
                for vdisk in group.vdisks
                if {vdisk.id, vdisk.node, *vdisk.drives} & (permitted(world, now) - granted)
                and not world.nodes[vdisk.node].surely_down
            ]
            if mode is AvailabilityMode.FORCE_RESTART and not at_work:
                continue  # what somebody takes by force, nobody else takes as well
            if not kept(group, lost, mode, after):
                complaints.append(f"group {group.id}: without {', '.join(map(str, lost))} in {mode.name}")
    return complaints


def kept(group: GroupInfo, lost: list[VDiskId], mode: AvailabilityMode, after: World) -> bool:
    """Whether a group is within its mode's limit, and a volume is as invariant 7 says; also where force needs none."""
    if mode is AvailabilityMode.MAX_AVAILABILITY and len(lost) > 1:
        return False
    if group.species is not None:
        return len(lost) <= group.species.parity_parts or (group.species is Species.MIRROR_3_DC and realms_fit(lost))
    assert group.volume is not None
    here = [member for member in group.volume.members if member.connected and member.vdisk not in lost]
    copies = sum(member.voter and member.up_to_date for member in here)
    served = any(after.state(node) is HostState.UP for node in group.volume.attached_on)
    if not served:
        return copies >= group.volume.copies_kept
    votes, voters = sum(member.voter for member in here), sum(member.voter for member in group.volume.members)
    tie_broken = votes * 2 == voters and any(member.tie_breaker for member in here)
    return (votes * 2 > voters or tie_broken) and copies >= group.volume.quorum_minimum_redundancy


def realms_fit(lost: list[VDiskId]) -> bool:
    """One realm, or a realm and one elsewhere."""
    by_realm = sorted(Counter(part.realm for part in lost).values())
    return len(by_realm) == 1 or (len(by_realm) == 2 and by_realm[0] == 1)
