"""Placement of one volume among 1,000 nodes of 10 disks, beside sorting all those disks by free space.

``python -m bench.placement`` prints both and their ratio. Sorting every candidate once is the least that a choice by
free space without an index costs, and it decides nothing: no readiness, no zones, no room. So it is the baseline.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import process_time

from bench.harness import Report, alternate
from quorate.api.meta import Bytes, NodeName
from quorate.api.scalars import ReplicaName
from quorate.api.storage.configuration import Configuration, Replication, Topology, VolumeAccess
from quorate.api.storage.drbd import ReplicaType
from quorate.api.storage.rsp import EligibleNode, EligibleVolumeGroup
from quorate.placement import LEVELS, Replica, Request, Room, choose

NODES, DISKS, ZONES = 1000, 10, 5
REPEATS = 20
GIB = 1024**3


def request(free: int = 100, topology: Topology = Topology.TRANS_ZONAL) -> Request:
    """A new volume with three copies, in a cluster whose disks have ``free`` GiB and a little more, each another."""
    layout = LEVELS[Replication.CONSISTENCY_AND_AVAILABILITY]
    nodes = tuple(
        EligibleNode(
            node_name=NodeName(f"node-{node:04}"),
            zone_name=f"zone-{node % ZONES}",
            node_ready=True,
            agent_ready=True,
            lvm_volume_groups=tuple(
                EligibleVolumeGroup(name=f"node-{node:04}-{disk}", ready=True) for disk in range(DISKS)
            ),
        )
        for node in range(NODES)
    )
    names = [group.name for node in nodes for group in node.lvm_volume_groups]
    # 7919 is prime: every disk has another place in the order, far from its neighbours'.
    rooms = {
        name: Room(free * GIB + (index * 7919 % len(names)) * 4096, 4 * 1024**2) for index, name in enumerate(names)
    }
    return Request(
        configuration=Configuration(
            replicated_storage_pool_name="pool",
            replication=Replication.CONSISTENCY_AND_AVAILABILITY,
            topology=topology,
            volume_access=VolumeAccess.PREFERABLY_LOCAL,
            failures_to_tolerate=layout.failures_to_tolerate,
            guaranteed_minimum_data_redundancy=layout.data_redundancy,
        ),
        size=Bytes(10 * GIB),
        replicas=tuple(Replica(ReplicaName(f"volume-{index}"), ReplicaType.DISKFUL) for index in range(layout.diskful)),
        nodes=nodes,
        rooms=rooms,
        together=True,
    )


def sort_all(asked: Request) -> list[tuple[int, str]]:
    """The baseline."""
    return sorted((-room.free, name) for name, room in asked.rooms.items())


def milliseconds(work: Callable[[], object]) -> Mapping[str, float]:
    """CPU time of one call."""
    begun = process_time()
    for _ in range(REPEATS):
        work()
    return {"ms": (process_time() - begun) / REPEATS * 1000}


def run() -> Report:
    """The figures."""
    report = Report(f"Placement ({NODES:,} nodes of {DISKS} disks in {ZONES} zones, 3D TransZonal)")
    roomy, full = request(), request(free=1)
    figures = alternate(
        {
            "sort": lambda: milliseconds(lambda: sort_all(roomy)),
            "choose": lambda: milliseconds(lambda: choose(roomy)),
            "refuse": lambda: milliseconds(lambda: choose(full)),
        }
    )
    sort, place, refuse = (figures[name]["ms"] for name in ("sort", "choose", "refuse"))
    report.add(
        "placement of one volume, against sorting all disks",
        f"{place:.1f} ms / {sort:.1f} ms = {place / sort:.1f}",
        "under 10 ms",
        place < 10,
    )
    report.add("the same with no room anywhere, and the reason why", f"{refuse:.1f} ms", "")
    return report


if __name__ == "__main__":
    run()
