"""The count itself: conditions of the members in, verdict out."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from quorate.lab.kernel import BlockDevice, World, quorum
from quorate.lab.kernel import metadata as md
from quorate.lab.kernel.options import votes
from quorate.lab.kernel.resource import Backing, Device
from quorate.lab.kernel.states import Disk, Repl

from .lab import MINOR, NAME, NET


@dataclass(frozen=True)
class Peer:
    """A peer as the counting node sees it."""

    disk: Disk = Disk.UP_TO_DATE
    connected: bool = True
    client: bool = False
    hidden: bool = False
    member: bool = True
    quorate: bool = False


@dataclass(frozen=True)
class Case:
    """What is seen, what is configured, and what follows."""

    quorate: bool
    peers: list[Peer] = field(default_factory=list)
    disk: Disk = Disk.UP_TO_DATE
    quorum: str = "majority"
    redundancy: str = "1"
    had_quorum: bool = True
    forgotten: int = 0


UP = Peer()
AWAY = Peer(Disk.UNKNOWN, connected=False)
ELSEWHERE = Peer(Disk.UNKNOWN, connected=False, member=False)
OUTDATED = Peer(Disk.OUTDATED, connected=False)
SYNCING = Peer(Disk.INCONSISTENT)
TIE = Peer(Disk.DISKLESS, client=True)
TIE_AWAY = Peer(Disk.UNKNOWN, connected=False, client=True)
HIDDEN = Peer(hidden=True)

CASES = {
    "alone": Case(True),
    "alone and not up to date": Case(False, disk=Disk.INCONSISTENT),
    "one of two": Case(False, [AWAY]),
    "one of two with a tie-breaker": Case(True, [AWAY, TIE]),
    "one of two with a tie-breaker, but none before": Case(False, [AWAY, TIE], had_quorum=False),
    "one of two without the tie-breaker": Case(False, [AWAY, TIE_AWAY]),
    "one of two with one of two tie-breakers": Case(False, [AWAY, TIE, TIE_AWAY]),
    "one of two, the other known to be in nobody's sight": Case(True, [ELSEWHERE]),
    "the same with a numeric quorum": Case(False, [ELSEWHERE, TIE], quorum="2"),
    "a numeric quorum and a tie-breaker, the other's whereabouts unknown": Case(True, [AWAY, TIE], quorum="2"),
    "one of two, the other outdated": Case(True, [OUTDATED]),
    "two of three": Case(True, [UP, AWAY]),
    "one of three": Case(False, [AWAY, AWAY]),
    "one of three, both in nobody's sight": Case(False, [ELSEWHERE, ELSEWHERE]),
    "two of three in sight, one of them syncing, two copies asked for": Case(False, [SYNCING, AWAY], redundancy="2"),
    "two of three in sight, one of them syncing, one copy asked for": Case(True, [SYNCING, AWAY]),
    "two of four without a tie-breaker": Case(False, [UP, AWAY, AWAY]),
    "two of four with a tie-breaker": Case(True, [UP, AWAY, AWAY, TIE]),
    "a hidden peer does not vote": Case(True, [HIDDEN]),
    "a hidden peer that is away does not vote": Case(True, [Peer(Disk.UNKNOWN, connected=False, hidden=True)]),
    "a hidden tie-breaker breaks no tie": Case(False, [AWAY, Peer(Disk.DISKLESS, client=True, hidden=True)]),
    "a peer without configuration votes from the metadata": Case(False, forgotten=1),
    "all of two asked for, one away": Case(False, [AWAY, UP], quorum="all"),
    "quorum 32 with a disk": Case(False, [UP, UP], quorum="32"),
    "diskless with quorum 32 and a quorate peer": Case(True, [Peer(quorate=True)], Disk.DISKLESS, "32"),
    "diskless with quorum 32 and a peer without quorum": Case(False, [UP], Disk.DISKLESS, "32"),
    "diskless with majority counts what it sees": Case(True, [UP, AWAY], Disk.DISKLESS),
    "diskless with majority, nobody there": Case(False, [AWAY, AWAY], Disk.DISKLESS),
}


def device(case: Case) -> Device:
    kernel = World().add_node("n0", ["10.0.0.0"])
    kernel.new_resource(NAME, 0, {"quorum": case.quorum, "quorum-minimum-redundancy": case.redundancy})
    kernel.new_minor(NAME, MINOR, 0, diskless=case.disk is Disk.DISKLESS)
    resource = kernel.find(NAME)
    assert resource is not None
    counting = resource.devices[0]
    if case.disk is not Disk.DISKLESS:
        backing = BlockDevice(1 << 25)
        counting.backing = Backing(backing, "/dev/x", md.create(backing, 7))
    for node_id, peer in enumerate(case.peers, start=1):
        kernel.new_peer(NAME, node_id, {**NET, "allow-remote-read": "no" if peer.hidden else "yes"})
        toward = resource.connections[node_id].peer_devices[0]
        if peer.client:
            kernel.peer_device_options(NAME, node_id, 0, {"bitmap": "no"})
        toward.peer_quorate = peer.quorate
        if counting.metadata is not None:
            counting.metadata.peer(node_id).flags |= md.PeerFlag.NODE_EXISTS
        if peer.member:
            resource.members.add(node_id)
    for node_id in range(20, 20 + case.forgotten):
        assert counting.metadata is not None
        counting.metadata.peer(node_id).flags |= md.PeerFlag.HAVE_BITMAP | md.PeerFlag.DEVICE_SEEN
        resource.members.add(node_id)
    counting.now.quorum = case.had_quorum
    resource.begin()
    counting.new.disk = case.disk
    for node_id, peer in enumerate(case.peers, start=1):
        toward = resource.connections[node_id].peer_devices[0]
        toward.new.disk = peer.disk
        toward.new.repl = Repl.ESTABLISHED if peer.connected else Repl.OFF
    return counting


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_the_count_follows_the_kernels_rule(case: Case) -> None:
    assert quorum.count(device(case)).quorate is case.quorate


@pytest.mark.parametrize(
    ("case", "complaint"),
    [
        (Case(False, [AWAY, AWAY]), "1 of 3 nodes visible, need 2 for quorum"),
        (Case(False, [SYNCING, AWAY], redundancy="2"), "1 of 3 nodes up_to_date, need 2 for quorum-minimum-redundancy"),
        (Case(False, [UP], quorum="3"), "2 of 2 nodes visible, need 3 for quorum"),
        (Case(False, [OUTDATED], quorum="2"), "1 of 1 nodes visible, need 2 for quorum"),
    ],
)
def test_a_missing_quorum_is_named_with_its_numbers(case: Case, complaint: str) -> None:
    assert quorum.count(device(case)).complaint() == complaint


@pytest.mark.parametrize(("value", "number"), [("off", 0), ("majority", -1), ("all", -2), ("1", 1), ("32", 32)])
def test_settings_are_read(value: str, number: int) -> None:
    assert votes(value) == number
