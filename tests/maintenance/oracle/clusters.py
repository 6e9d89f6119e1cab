"""Small random clusters: few enough parts that what is asked for collides all the time."""

from __future__ import annotations

from hypothesis import strategies as st

from quorate.api.duration import Duration
from quorate.api.maintenance.action import HostState
from quorate.api.maintenance.broker_config import BrokerConfigSpec, Limits
from quorate.maintenance.moments import SECOND
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

#: When every history begins: long after 1970, so that intervals may reach back.
BEGIN = 1_800_000_000 * SECOND

TENANTS = ("", "", "red", "blue")
UP_MOSTLY = st.sampled_from([HostState.UP] * 6 + [HostState.DOWN])
#: Voters, whether there is a tie-breaker, copies that a write needs, losses that it survives, copies kept while idle.
LAYOUTS = {
    "None": (1, False, 1, 0, 1),
    "Availability": (2, True, 1, 1, 1),
    "Consistency": (2, False, 2, 0, 1),
    "ConsistencyAndAvailability": (3, False, 2, 1, 2),
}


@st.composite
def settings(draw: st.DrawFn) -> BrokerConfigSpec:
    """Limits that are reached, and times that pass."""
    limits = st.builds(
        Limits,
        disabled_nodes_limit=st.sampled_from([0, 0, 0, 1, 2, 3]),
        disabled_nodes_ratio_limit=st.sampled_from([0, 0, 0, 13, 25, 50]),
    )
    return BrokerConfigSpec(
        default_retry_time=Duration(draw(st.sampled_from(["60s", "300s"]))),
        default_permission_duration=Duration(draw(st.sampled_from(["30s", "300s"]))),
        tenant_limits=draw(limits),
        cluster_limits=draw(limits),
    )


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """A cluster of 2 to 9 nodes, one or two drives each, with a few groups of all kinds."""
    world = World(settings=draw(settings()))
    for number in range(1, draw(st.integers(2, 9)) + 1):
        # Now and then two nodes share a host.
        together = number > 1 and draw(st.integers(0, 7)) == 7
        host = world.nodes[number - 1].host if together else f"h{number}"
        started = draw(st.sampled_from([0, 0, 0, BEGIN - 60 * SECOND]))
        world.nodes[number] = node(number, host, draw(st.sampled_from(TENANTS)), draw(UP_MOSTLY), started)
        for drive in range(1, draw(st.integers(1, 2)) + 1):
            name = DriveId(number, drive)
            world.drives[name] = DriveInfo(id=name, state=draw(UP_MOSTLY), path=f"/dev/sd{'xab'[drive]}")
    for group in range(draw(st.integers(0, 4))):
        is_volume = draw(st.integers(0, 3)) == 0
        world.groups[group] = draw(volume(world, group)) if is_volume else draw(erasure_group(world, group))
    if draw(st.booleans()):
        world.rings = draw(rings(list(world.nodes)))
    return world


def node(number: int, host: str, tenant: str, state: HostState, started: int = 0) -> NodeInfo:
    """A described node: one that is said to be down is surely down."""
    services = (DYNAMIC,) if tenant else (STORAGE,)
    down = state is HostState.DOWN
    return NodeInfo(
        id=number, host=host, tenant=tenant, state=state, services=services, surely_down=down, start_time=started
    )


@st.composite
def erasure_group(draw: st.DrawFn, world: World, number: int) -> GroupInfo:
    """Up to eight parts on drives of the cluster, not always on different nodes."""
    species = draw(st.sampled_from([Species.BLOCK_4_2, Species.BLOCK_4_2, Species.MIRROR_3_DC, *Species]))
    size = draw(st.integers(1, min(8, len(world.drives))))
    drives = draw(st.permutations(sorted(world.drives)))[:size]
    vdisks = [
        VDiskInfo(
            id=VDiskId(number, 1, index % 3 if species is Species.MIRROR_3_DC else 0, index, 0),
            node=drive.node,
            drives=(drive,),
            state=draw(UP_MOSTLY),
        )
        for index, drive in enumerate(drives)
    ]
    return GroupInfo(id=number, species=species, vdisks=tuple(vdisks))


@st.composite
def volume(draw: st.DrawFn, world: World, number: int) -> GroupInfo:
    """A ReplicatedVolume, one member per node, in one of the layouts that fit."""
    nodes = draw(st.permutations(sorted(world.nodes)))
    fitting = [name for name, (voters, tie, *_) in LAYOUTS.items() if voters + tie <= len(nodes)]
    layout = draw(st.sampled_from(fitting))
    voters, tie, needed, tolerated, kept = LAYOUTS[layout]
    vdisks, members = [], []
    for index, place in enumerate(nodes[: voters + tie]):
        name, is_voter = VDiskId(number, 1, 0, index, 0), index < voters
        drives = (
            (draw(st.sampled_from([one for one in sorted(world.drives) if one.node == place])),) if is_voter else ()
        )
        vdisks.append(VDiskInfo(id=name, node=place, drives=drives, state=draw(UP_MOSTLY)))
        members.append(
            MemberFacts(
                vdisk=name,
                node=place,
                voter=is_voter,
                up_to_date=is_voter and draw(st.integers(0, 5)) < 5,
                connected=draw(st.integers(0, 5)) < 5,
                tie_breaker=not is_voter,
            )
        )
    facts = VolumeFacts(
        name=f"volume-{number}",
        members=tuple(members),
        attached_on=frozenset(draw(st.lists(st.sampled_from(sorted(world.nodes)), max_size=1))),
        quorum=voters // 2 + 1,
        quorum_minimum_redundancy=needed,
        copies_kept=kept,
        failures_to_tolerate=tolerated,
        unconfirmed_step=draw(st.sampled_from(["", "", "", "AddReplica"])),
        synchronizing=draw(st.sampled_from(["", "", "", "volume-x"])),
    )
    return GroupInfo(id=number, species=None, volume=facts, vdisks=tuple(vdisks))


@st.composite
def rings(draw: st.DrawFn, nodes: list[int]) -> Rings:
    """Some of the nodes, dealt out."""
    places = [draw(st.integers(-1, 4)) for _ in nodes]
    dealt = [tuple(node for node, at in zip(nodes, places, strict=True) if at == ring) for ring in range(5)]
    found = [Ring(nodes=ring, disabled=draw(st.integers(0, 5)) == 0) for ring in dealt if ring]
    return Rings(to_select=draw(st.integers(1, 5)), rings=tuple(found))
