"""How ``drbdsetup status`` prints a state: colours, fields, layout."""

from __future__ import annotations

import json

import pytest

from quorate.lab.tools.drbd.colours import Palette
from quorate.lab.tools.drbd.status_text import Style, text
from tests.lab.tools.conftest import Node

COLOUR = Palette(used=True)


def painted(code: str, word: str) -> str:
    return f"\033[{code}m{word}\033[0m" if code else word


@pytest.mark.parametrize(
    ("disk", "own", "peers"),
    [
        ("UpToDate", "1;32", "32"),
        ("Inconsistent", "1;31", "31"),
        ("Outdated", "1;31", "31"),
        ("Diskless", "1;31", "31"),
        ("Consistent", "1", ""),
        ("Attaching", "1", ""),
        ("Failed", "1", ""),
        ("DUnknown", "1", ""),
    ],
)
def test_a_disk_is_bright_here_dull_at_a_peer_and_a_passing_state_of_a_peer_has_no_colour(
    disk: str, own: str, peers: str
) -> None:
    assert COLOUR.disk(disk, own=True, intended_diskless=False) == painted(own, disk)
    assert COLOUR.disk(disk, own=False, intended_diskless=False) == painted(peers, disk)


def test_no_disk_is_good_where_none_is_intended() -> None:
    assert COLOUR.disk("Diskless", own=True, intended_diskless=True) == painted("1;32", "Diskless")
    assert COLOUR.disk("Diskless", own=False, intended_diskless=True) == painted("32", "Diskless")


@pytest.mark.parametrize(
    ("state", "code"),
    [("Connected", ""), ("StandAlone", "1;31"), ("Connecting", "1;31"), ("Unconnected", "1"), ("NetworkFailure", "1")],
)
def test_a_connection_that_is_not_is_bad_and_one_on_its_way_is_bold(state: str, code: str) -> None:
    assert COLOUR.connection(state) == painted(code, state)


@pytest.mark.parametrize(
    ("state", "code"),
    [
        ("Established", ""),
        ("Off", ""),
        ("SyncSource", "31"),
        ("SyncTarget", "1;31"),
        ("PausedSyncT", "1;31"),
        ("PausedSyncS", ""),
        ("WFBitMapS", ""),
        ("VerifyS", ""),
    ],
)
def test_a_resync_is_bad_and_bright_where_it_arrives(state: str, code: str) -> None:
    assert COLOUR.replication(state) == painted(code, state)


@pytest.mark.parametrize(("role", "own", "peers"), [("Primary", "1;36", "36"), ("Secondary", "", "")])
def test_a_primary_is_cyan(role: str, own: str, peers: str) -> None:
    assert (COLOUR.role(role, own=True), COLOUR.role(role, own=False)) == (painted(own, role), painted(peers, role))


PEER = {
    "volume": 0,
    "replication-state": "Established",
    "peer-disk-state": "Diskless",
    "peer-client": True,
    "resync-suspended": "no",
    "received": 1,
    "sent": 2,
    "out-of-sync": 0,
    "pending": 0,
    "unacked": 0,
}
CONNECTION = {
    "peer-node-id": 1,
    "name": "n2",
    "connection-state": "Connected",
    "congested": False,
    "peer-role": "Secondary",
    "ap-in-flight": 0,
    "rs-in-flight": 0,
    "peer_devices": [PEER],
}
DEVICE = {
    "volume": 0,
    "minor": 7,
    "disk-state": "UpToDate",
    "client": False,
    "quorum": True,
    "size": 100,
    "read": 3,
    "written": 4,
    "al-writes": 0,
    "bm-writes": 0,
    "upper-pending": 0,
    "lower-pending": 0,
}
RESOURCE = {
    "name": "r",
    "node-id": 0,
    "role": "Secondary",
    "suspended": False,
    "suspended-user": False,
    "suspended-no-data": False,
    "suspended-fencing": False,
    "suspended-quorum": False,
    "force-io-failures": False,
    "write-ordering": "flush",
    "devices": [DEVICE],
    "connections": [CONNECTION],
}


def plain(verbose: bool = False, statistics: bool = False, **changed: object) -> list[str]:
    style = Style(verbose=verbose, statistics=statistics, terminal=False)
    return text({**RESOURCE, **changed}, {0: "/dev/x"}, style).splitlines()


def test_what_is_not_for_a_terminal_says_whether_no_disk_is_intended() -> None:
    assert plain() == [
        "r role:Secondary",
        "  disk:UpToDate",
        "  n2 role:Secondary",
        "    peer-disk:Diskless peer-client:yes",
        "",
    ]


def test_suspended_input_and_output_is_blocked_above() -> None:
    shown = plain(**{"suspended": True, "suspended-user": True})
    assert shown[:2] == ["r role:Secondary suspended:user", "  disk:UpToDate blocked:upper"]


def test_statistics_alone_are_few() -> None:
    assert plain(statistics=True) == [
        "r role:Secondary",
        "  disk:UpToDate",
        "      read:3 written:4",
        "  n2 role:Secondary",
        "    peer-disk:Diskless peer-client:yes",
        "        received:1 sent:2",
        "",
    ]


def test_verbose_alone_says_what_is_in_flight_and_that_nothing_is_blocked() -> None:
    assert plain(verbose=True) == [
        "r node-id:0 role:Secondary suspended:no force-io-failures:no",
        "  volume:0 minor:7 disk:UpToDate backing_dev:/dev/x quorum:yes blocked:no",
        "  n2 node-id:1 connection:Connected role:Secondary congested:no ap-in-flight:0",
        "      rs-in-flight:0",
        "    volume:0 replication:Established peer-disk:Diskless peer-client:yes",
        "        resync-suspended:no",
        "",
    ]


def test_a_resync_that_is_held_back_says_so_without_being_asked() -> None:
    held = {**CONNECTION, "peer_devices": [{**PEER, "peer-disk-state": "UpToDate", "resync-suspended": "user"}]}
    assert "    peer-disk:UpToDate resync-suspended:user" in plain(connections=[held])


CONFIGURATION = """resource r { options { auto-promote no; } on n1 { node-id 0; address ipv4 10.77.0.1:7000;
volume 0 { device minor 7; disk /dev/vg0/r; meta-disk internal; } } }
"""


def test_a_pipe_takes_the_colours_and_json_is_laid_out_as_drbdsetup_does(node: Node) -> None:
    node.host.files["/etc/drbd.d/r.res"] = CONFIGURATION.encode()
    node.run("lvcreate -y -n r -L 32M vg0; drbdadm create-md --force r; drbdadm up r")
    assert "\033[" in node.run("drbdadm status r").output
    assert "\033[" not in node.run("drbdadm status r | cat").output
    shown = node.run("drbdsetup status --json").output
    assert shown.startswith('[\n{\n  "name": "r",\n  "node-id": 0,\n')
    assert shown.endswith('      "lower-pending": 0\n    } ],\n  "connections": [\n ]\n}\n]\n\n')
    assert json.loads(shown) == node.host.kernel.status()
    node.run("drbdadm down r")
    assert node.run("drbdsetup status --json").output == "[\n]\n\n"
