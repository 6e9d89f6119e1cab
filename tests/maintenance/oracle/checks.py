"""The rules, in the order in which they are asked. Each raises No; what never changes is found out elsewhere.

Node: its own lock, its tenant's limits, the cluster's, its drives, its replicas, its rings. Drive: its replicas.
Replica: locks on it, on its drive, on its node; then its group.
"""

from __future__ import annotations

from collections import Counter

from quorate.api.maintenance.action import AvailabilityMode, HostState, IssueType, StatusCode, TenantPolicy
from quorate.api.maintenance.broker_config import Limits
from quorate.maintenance.moments import SECOND
from quorate.maintenance.nouns import DriveId, Species, VDiskId, VDiskInfo
from tests.maintenance.oracle.locks import Asker, lock_on, rule, stops_force, taken_of
from tests.maintenance.oracle.volumes import alone_at_work, check_volume, others
from tests.maintenance.oracle.world import Item, No, World

MAX, KEEP, FORCE = (
    AvailabilityMode.MAX_AVAILABILITY,
    AvailabilityMode.KEEP_AVAILABLE,
    AvailabilityMode.FORCE_RESTART,
)
#: After a start a node's ring is left alone this long.
COOL_DOWN = 120 * SECOND


def check_items(world: World, items: list[Item], asker: Asker) -> None:
    """May all of these go away together?"""
    for item in items:
        check_item(world, item, asker)
        asker = asker.holding(item)


def check_item(world: World, item: Item, asker: Asker) -> None:
    """May this one?"""
    if isinstance(item, int):
        check_node(world, item, asker)
    elif isinstance(item, DriveId):
        check_drive(world, item, asker)
    else:
        vdisk = world.vdisk(item)
        assert vdisk is not None
        check_vdisk(world, vdisk, asker)


def check_node(world: World, node: int, asker: Asker) -> None:
    refuse_if_locked(world, node, asker)
    if world.state(node) is HostState.UNKNOWN:
        raise No(StatusCode.DISALLOW_TEMP, why="nobody knows what it does")
    if world.nodes[node].surely_down:
        # A change of members may wait for the very node that is down: by force it is worked on.
        if asker.mode is not FORCE:
            refuse_if_changing(world, node)
        return
    tenant = world.nodes[node].tenant
    if tenant and asker.policy is not TenantPolicy.NONE:
        nodes = [other.id for other in world.nodes.values() if other.tenant == tenant]
        issue = IssueType.TENANT_DISABLED_NODES_LIMIT_REACHED
        check_limits(world, (node, nodes, world.settings.tenant_limits, issue), asker)
    issue = IssueType.DISABLED_NODES_LIMIT_REACHED
    check_limits(world, (node, list(world.nodes), world.settings.cluster_limits, issue), asker)
    vdisks = [vdisk for vdisk in world.vdisks() if vdisk.node == node]
    for drive in world.drives:
        if drive.node == node and not any(drive in vdisk.drives for vdisk in vdisks):
            refuse_if_locked(world, drive, asker)
    check_vdisks(world, vdisks, asker)
    refuse_if_changing(world, node)
    check_rings(world, node, asker)


def refuse_if_changing(world: World, node: int) -> None:
    """Whatever the mode, and also of what is down: nobody disturbs a volume whose members are being changed."""
    for group in world.groups.values():
        members = group.volume.members if group.volume is not None and group.volume.unconfirmed_step else ()
        if any(member.node == node for member in members):
            raise No(StatusCode.DISALLOW_TEMP, why=f"volume {group.id} is being changed")


def check_drive(world: World, drive: DriveId, asker: Asker) -> None:
    refuse_if_locked(world, drive, asker)
    refuse_if_locked(world, drive.node, asker)
    check_vdisks(world, [vdisk for vdisk in world.vdisks() if drive in vdisk.drives], asker)


def check_vdisks(world: World, vdisks: list[VDiskInfo], asker: Asker) -> None:
    """One after another, each seeing those before."""
    for vdisk in sorted(vdisks, key=lambda vdisk: vdisk.id):
        check_vdisk(world, vdisk, asker)
        asker = asker.holding(vdisk.id)


def check_vdisk(world: World, vdisk: VDiskInfo, asker: Asker) -> None:
    items: tuple[Item, ...] = (vdisk.id, *vdisk.drives, vdisk.node)
    for item in items:
        refuse_if_locked(world, item, asker)
    group = world.groups[vdisk.id.group]
    if group.volume is not None:
        check_volume(world, vdisk, asker)
    else:
        check_erasure_group(world, vdisk, asker)


@rule
def refuse_if_locked(world: World, item: Item, asker: Asker) -> None:
    lock = lock_on(world, item, asker)
    if lock is not None:
        raise No(StatusCode.DISALLOW_TEMP, why=f"{item} is held by a {lock}")


# -- limits


@rule
def check_limits(world: World, subject: tuple[int, list[int], Limits, IssueType], asker: Asker) -> None:
    node, nodes, limits, issue = subject
    others = [other for other in nodes if other != node]
    locks = {other: lock_on(world, other, asker) for other in others}
    locked = sum(lock is not None for lock in locks.values())
    # Of one that did not answer in time nobody says that it is down.
    down = sum(locks[other] is None and world.state(other) is HostState.DOWN for other in others)
    if asker.mode is FORCE and not any(stops_force(world, other, asker) for other in others):
        return
    away = locked + down + 1
    too_many = 0 < limits.disabled_nodes_limit < away
    too_large = away > 1 and 0 < limits.disabled_nodes_ratio_limit * len(nodes) < away * 100
    if too_many or too_large:
        raise No(StatusCode.DISALLOW_TEMP, issue)


# -- groups


@rule
def check_erasure_group(world: World, vdisk: VDiskInfo, asker: Asker) -> None:
    group = world.groups[vdisk.id.group]
    assert group.species is not None
    if group.species.parity_parts == 0 and asker.mode is not FORCE:
        raise No(StatusCode.DISALLOW, IssueType.TOO_MANY_UNAVAILABLE_VDISKS, "no redundancy")
    locked, away = others(world, group, vdisk, asker)
    lost = {vdisk.id, *locked, *away}
    stays_available = not taken_of(group, asker) and can_do_without(group.species, lost)
    match asker.mode:
        case AvailabilityMode.MAX_AVAILABILITY:
            fine = len(lost) <= 1
        case AvailabilityMode.KEEP_AVAILABLE:
            fine = stays_available
        case AvailabilityMode.FORCE_RESTART:
            fine = stays_available or alone_at_work(world, group, vdisk, asker)
    if not fine:
        raise No(StatusCode.DISALLOW_TEMP, IssueType.TOO_MANY_UNAVAILABLE_VDISKS)


def can_do_without(species: Species, lost: set[VDiskId]) -> bool:
    """Whether the data can still be read and written without these parts."""
    if species is not Species.MIRROR_3_DC:
        return len(lost) <= species.parity_parts
    realms = sorted(Counter(part.realm for part in lost).values())
    return len(realms) <= 1 or (len(realms) == 2 and realms[0] <= 1)


# -- rings


@rule
def check_rings(world: World, node: int, asker: Asker) -> None:
    if world.rings is None or asker.mode is FORCE:
        return
    rings = world.rings.rings
    own = [ring for ring in rings if node in ring.nodes]
    if not own or any(ring.disabled for ring in own):
        return
    restarting = cooling = disabled = 0
    for ring in rings:
        if ring in own:
            restarting += 1
        elif ring.disabled:
            disabled += 1
        else:
            locks = [lock_on(world, other, asker) for other in ring.nodes]
            if any(locks) or any(world.state(other) is not HostState.UP for other in ring.nodes):
                restarting += 1
            elif any(world.nodes[other].start_time + COOL_DOWN >= asker.now for other in ring.nodes):
                cooling += 1
    if asker.mode is MAX:
        fine = restarting + cooling <= 1
    else:
        fine = restarting + cooling + disabled <= (world.rings.to_select - 1) // 2
    if not fine:
        raise No(StatusCode.DISALLOW_TEMP, IssueType.TOO_MANY_UNAVAILABLE_STATE_STORAGE_RINGS)
