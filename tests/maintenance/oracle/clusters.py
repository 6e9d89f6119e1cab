"""Small random clusters and questions: few enough parts that what is asked for collides all the time.

All is chosen by a ``Pick``: Hypothesis draws where a history is to be shrunk, a seeded generator where there are many.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol, TypeVar

from quorate.api.duration import Duration
from quorate.api.maintenance.action import ActionType, HostState
from quorate.api.maintenance.broker_config import BrokerConfigSpec, Limits, Quotas
from quorate.maintenance.messages import Action
from quorate.maintenance.moments import FOREVER, SECOND
from quorate.maintenance.nouns import (
    DYNAMIC,
    STORAGE,
    DriveId,
    DriveInfo,
    GroupInfo,
    MemberFacts,
    NodeInfo,
    Ring,
    Rings,
    Species,
    VDiskId,
    VDiskInfo,
    VolumeFacts,
)
from tests.maintenance.oracle.world import World

T = TypeVar("T")

#: When every history begins: long after 1970, so that intervals may reach back.
BEGIN = 1_800_000_000 * SECOND

TENANTS = ("", "", "red", "blue")
#: More often up than not: a cluster of which nothing is left teaches nothing.
UP_MOSTLY = (*[HostState.UP] * 6, HostState.DOWN)
STATES = (*[HostState.UP] * 4, *[HostState.DOWN] * 2, HostState.UNKNOWN, HostState.RESTART)
DURATIONS = (None, 0, 1, 60 * SECOND, 600 * SECOND, 7200 * SECOND, FOREVER)
#: Voters, whether there is a tie-breaker, copies that a write needs, losses that it survives, copies kept while idle.
LAYOUTS = {
    "None": (1, False, 1, 0, 1),
    "Availability": (2, True, 1, 1, 1),
    "Consistency": (2, False, 2, 0, 1),
    "ConsistencyAndAvailability": (3, False, 2, 1, 2),
}


class Pick(Protocol):
    """Chooses one of several."""

    def __call__(self, options: Sequence[T], /) -> T: ...


def some(pick: Pick, options: Sequence[T], most: int, *, least: int = 0) -> list[T]:
    """A few different ones, in any order."""
    left = list(options)
    number = pick(range(least, min(most, len(left)) + 1))
    return [left.pop(pick(range(len(left)))) for _ in range(number)]


def settings(pick: Pick) -> BrokerConfigSpec:
    """Limits that are reached, and times that pass."""

    def limits() -> Limits:
        return Limits(
            disabled_nodes_limit=pick((0, 0, 0, 1, 2, 3)), disabled_nodes_ratio_limit=pick((0, 0, 0, 13, 25, 50))
        )

    return BrokerConfigSpec(
        default_retry_time=Duration(pick(("60s", "300s"))),
        default_permission_duration=Duration(pick(("30s", "300s"))),
        tenant_limits=limits(),
        cluster_limits=limits(),
        quotas=Quotas(duration=Duration("0s")),
    )


def cluster(pick: Pick) -> World:
    """A cluster of 2 to 9 nodes, one or two drives each, with a few groups of all kinds."""
    world = World(settings=settings(pick))
    for number in range(1, pick(range(2, 10)) + 1):
        # Now and then two nodes share a host.
        together = number > 1 and pick(range(8)) == 7
        host = world.nodes[number - 1].host if together else f"h{number}"
        started = pick((0, 0, 0, BEGIN - 60 * SECOND, BEGIN - 120 * SECOND, BEGIN - 120 * SECOND - 1))
        fresh = node(number, host, pick(TENANTS), pick(UP_MOSTLY), started)
        # Of a live one that is silent nobody is sure at first.
        world.nodes[number] = replace(fresh, surely_down=fresh.surely_down and pick(range(3)) > 0)
        for drive in range(1, pick((1, 2)) + 1):
            name = DriveId(number, drive)
            world.drives[name] = DriveInfo(id=name, state=pick(UP_MOSTLY), path=f"/dev/sd{'xab'[drive]}")
    for group in range(pick(range(5))):
        world.groups[group] = (volume if pick(range(4)) == 3 else erasure_group)(pick, world, group)
    if pick((False, True)):
        world.rings = rings(pick, list(world.nodes))
    return world


def node(number: int, host: str, tenant: str, state: HostState, started: int = 0) -> NodeInfo:
    """A described node: one that is said to be down is surely down."""
    services = (DYNAMIC,) if tenant else (STORAGE,)
    down = state is HostState.DOWN
    return NodeInfo(
        id=number, host=host, tenant=tenant, state=state, services=services, surely_down=down, start_time=started
    )


def erasure_group(pick: Pick, world: World, number: int) -> GroupInfo:
    """Up to ten parts on drives of the cluster, not always on different nodes, now and then two on one drive."""
    species = pick((Species.BLOCK_4_2, Species.BLOCK_4_2, Species.MIRROR_3_DC, *Species))
    drives = some(pick, sorted(world.drives), 9, least=1)
    if pick(range(8)) == 7:
        drives.append(drives[0])
    vdisks = [
        VDiskInfo(
            id=VDiskId(number, 1, index % 3 if species is Species.MIRROR_3_DC else 0, index, 0),
            node=drive.node,
            drives=(drive,),
            state=pick(UP_MOSTLY),
        )
        for index, drive in enumerate(drives)
    ]
    return GroupInfo(id=number, species=species, vdisks=tuple(vdisks))


def volume(pick: Pick, world: World, number: int) -> GroupInfo:
    """A ReplicatedVolume, one member per node, in one of the layouts that fit."""
    fitting = [name for name, (voters, tie, *_) in LAYOUTS.items() if voters + tie <= len(world.nodes)]
    voters, tie, needed, tolerated, kept = LAYOUTS[pick(fitting)]
    places = some(pick, sorted(world.nodes), voters + tie, least=voters + tie)
    vdisks, members = [], []
    for index, place in enumerate(places):
        name, is_voter = VDiskId(number, 1, 0, index, 0), index < voters
        drives = (pick([one for one in sorted(world.drives) if one.node == place]),) if is_voter else ()
        vdisks.append(VDiskInfo(id=name, node=place, drives=drives, state=pick(UP_MOSTLY)))
        members.append(
            MemberFacts(
                vdisk=name,
                node=place,
                voter=is_voter,
                up_to_date=is_voter and pick(range(6)) < 5,
                connected=pick(range(6)) < 5,
                tie_breaker=not is_voter,
                missed=pick(range(4)) == 3,
            )
        )
    facts = VolumeFacts(
        name=f"volume-{number}",
        members=tuple(members),
        attached_on=frozenset(some(pick, sorted(world.nodes), 2)),
        quorum=voters // 2 + 1,
        quorum_minimum_redundancy=needed,
        copies_kept=kept,
        failures_to_tolerate=tolerated,
        unconfirmed_step=pick(("", "", "", "AddReplica")),
        synchronizing=pick(("", "", "", "volume-x")),
    )
    return GroupInfo(id=number, species=None, volume=facts, vdisks=tuple(vdisks))


def rings(pick: Pick, nodes: list[int]) -> Rings:
    """Some of the nodes, dealt out."""
    places = [pick(range(-1, 5)) for _ in nodes]
    dealt = [tuple(node for node, at in zip(nodes, places, strict=True) if at == ring) for ring in range(5)]
    found = [Ring(nodes=ring, disabled=pick(range(6)) == 5) for ring in dealt if ring]
    return Rings(to_select=pick((3, 5, 9)), rings=tuple(found))


def action(pick: Pick, world: World) -> Action:
    """Mostly something that exists."""
    kind = pick((*["host"] * 5, "node", "service", "drive", "drive", "path", "vdisk", "nonsense"))
    duration = pick(DURATIONS)
    place = world.nodes[pick(sorted(world.nodes))]
    match kind:
        case "host":
            return Action(type=ActionType.SHUTDOWN_HOST, host=place.host, duration=duration)
        case "node":
            return Action(type=ActionType.SHUTDOWN_HOST, host=str(place.id), duration=duration)
        case "service":
            service = pick(("storage", "dynnode", "storage", "other"))
            return Action(type=ActionType.RESTART_SERVICES, host=place.host, services=(service,), duration=duration)
        case "drive":
            names = some(pick, sorted(map(str, world.drives)), 2, least=1)
            return Action(type=ActionType.REPLACE_DEVICES, devices=tuple(names), duration=duration)
        case "path":
            path = pick(("/dev/sda", "/dev/sdb"))
            return Action(type=ActionType.REPLACE_DEVICES, host=place.host, devices=(path,), duration=duration)
        case "vdisk":
            name = pick([*sorted(str(vdisk.id) for vdisk in world.vdisks()), "vdisk-9-1-0-0-0"])
            return Action(type=ActionType.REPLACE_DEVICES, devices=(name,), duration=duration)
    return pick(
        (
            Action(type=ActionType.SHUTDOWN_HOST, host="nowhere"),
            Action(type=ActionType.STOP_SERVICES, host=place.host),
            Action(type=ActionType.REPLACE_DEVICES, devices=("pdisk-99-1",)),
            Action(host=place.host),
        )
    )


def actions(pick: Pick, world: World, most: int) -> tuple[Action, ...]:
    """One or more."""
    return tuple(action(pick, world) for _ in range(pick(range(1, most + 1))))
