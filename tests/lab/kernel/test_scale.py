"""A thousand nodes with ten thousand replicas in one process, within a bound of CPU time and memory."""

from __future__ import annotations

import resource
import time

from quorate.lab.kernel import BlockDevice, World
from quorate.lab.kernel import metadata as md

from .lab import NET, OPTIONS

NODES = 1000
VOLUMES = 3334
CPU_SECONDS = 60
MEMORY_KIB = 600 * 1024


def form(world: World, volume: int, members: list[int], disks: list[BlockDevice]) -> None:
    name, port, minor = f"v{volume}", 7000 + volume, 1000 + volume
    for node_id, member in enumerate(members):
        kernel = world.node(f"n{member}")
        kernel.new_resource(name, node_id, OPTIONS)
        kernel.new_minor(name, minor, 0)
        for peer_id, peer in enumerate(members):
            if peer_id != node_id:
                kernel.new_peer(name, peer_id, {**NET, "_name": f"n{peer}"})
                kernel.new_path(name, peer_id, f"ipv4:{address(member)}:{port}", f"ipv4:{address(peer)}:{port}")
        kernel.attach(minor, disks[node_id], f"/dev/{name}")
        for peer_id in range(len(members)):
            if peer_id != node_id:
                kernel.connect(name, peer_id)


def address(node: int) -> str:
    return f"10.{node // 250}.{node % 250}.1"


def test_ten_thousand_replicas_form_and_lose_a_node_within_the_bound() -> None:
    began, before = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    world = World()
    for node in range(NODES):
        world.add_node(f"n{node}", [address(node)])
    for volume in range(VOLUMES):
        disks = [BlockDevice(1 << 30) for _ in range(3)]
        for disk in disks:
            md.create(disk, 7)
        form(world, volume, [(volume * 3 + i) % NODES for i in range(3)], disks)
    world.advance(5)
    for volume in range(VOLUMES):
        assert world.node(f"n{volume * 3 % NODES}").new_current_uuid(1000 + volume, clear_bitmap=True).ok
    world.power_off("n7")
    world.advance(30)
    quorate = sum(
        volume["devices"][0]["quorum"]
        for node in range(NODES)
        if node != 7
        for volume in world.node(f"n{node}").status()
    )
    assert quorate == VOLUMES * 3 - sum(7 in {(v * 3 + i) % NODES for i in range(3)} for v in range(VOLUMES))
    assert world.next_event_at() is None
    assert time.process_time() - began < CPU_SECONDS
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MEMORY_KIB


def test_a_healthy_cluster_at_rest_has_nothing_planned() -> None:
    world = World()
    for node in range(3):
        world.add_node(f"n{node}", [address(node)])
    disks = [BlockDevice(1 << 30) for _ in range(3)]
    for disk in disks:
        md.create(disk, 7)
    form(world, 0, [0, 1, 2], disks)
    world.advance(5)
    world.node("n0").new_current_uuid(1000, clear_bitmap=True)
    world.advance(10)
    assert world.next_event_at() is None
