"""drbdadm's command line, held to what the real one (9.22) says to the same words with ``--dry-run``."""

from __future__ import annotations

import pytest

from tests.lab.tools.conftest import Node

CONFIGURATION = """resource r { options { quorum off; } net { protocol C; }
on n1 { node-id 0; address ipv4 10.77.0.1:7000; volume 0 { device minor 7; disk /dev/vg0/r; meta-disk internal; } }
on n2 { node-id 1; address ipv4 10.77.0.2:7000; volume 0 { device minor 7; disk /dev/vg0/r; meta-disk internal; } }
connection { host n1 address ipv4 10.77.0.1:7000; host n2 address ipv4 10.77.0.2:7000; } }
"""
UP = """drbdsetup new-resource r 0 --quorum=off
drbdsetup new-minor r 7 0
drbdsetup new-peer r 1 --_name=n2 --protocol=C
drbdsetup new-path r 1 ipv4:10.77.0.1:7000 ipv4:10.77.0.2:7000
drbdmeta 7 v09 /dev/vg0/r internal apply-al
drbdsetup attach 7 /dev/vg0/r /dev/vg0/r internal
drbdsetup connect r 1
"""


@pytest.fixture
def member(node: Node) -> Node:
    node.host.files["/etc/drbd.d/r.res"] = CONFIGURATION.encode()
    return node


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("up r", UP),
        ("adjust r", UP),
        ("up all", UP),
        ("primary --force r", "drbdsetup primary r --force\n"),
        ("create-md --max-peers 7 --force r", "drbdmeta 7 v09 /dev/vg0/r internal create-md 7 --force\n"),
        ("create-md --max-peers=3 r", "drbdmeta 7 v09 /dev/vg0/r internal create-md 3\n"),
        ("disconnect r:n2", "drbdsetup disconnect r 1\n"),
        ("resize --size 10M r", "drbdsetup resize 7 --size=10M\ndrbdsetup check-resize 7\n"),
        ("-- --assume-clean resize r", "drbdsetup resize 7 --assume-clean\ndrbdsetup check-resize 7\n"),
        ("status", "drbdsetup status\n"),
        ("status all", "drbdsetup status r\n"),
        ("status --verbose r", "drbdsetup status r\n"),
        ("new-current-uuid --clear-bitmap r/0", "drbdsetup new-current-uuid 7 --clear-bitmap\n"),
    ],
)
def test_a_dry_run_says_what_would_be_run_and_runs_nothing(member: Node, words: str, said: str) -> None:
    assert member.run(f"drbdadm --dry-run {words}").output == said
    assert member.host.kernel.resources() == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("status --json r", "drbdadm: unrecognized option '--json'\ntry 'drbdadm help'\n"),
        ("primary -f r", "drbdadm: invalid option -- 'f'\ntry 'drbdadm help'\n"),
        ("connect r:n9", "Not a valid connection (r:n9) for this host\n"),
        ("role r/0", "role operates on whole resources, but you specified a specific volume!\n"),
        ("detach r/7", "Resource 'r' has no volume 7\n"),
        ("role nosuch", "'nosuch' not defined in your config (for this host).\n"),
    ],
)
def test_what_it_does_not_take_is_refused_with_one(member: Node, words: str, said: str) -> None:
    assert member.run(f"drbdadm {words}", expect=1).output == said


def test_verbose_says_what_is_run_and_runs_it(member: Node) -> None:
    member.run("lvcreate -y -n r -L 32M vg0; drbdadm create-md --force r")
    assert member.run("drbdadm -v up r").output == UP
    assert member.host.kernel.resources() == ["r"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("role nosuch", "nosuch: Unknown resource\n"),
        ("cstate nosuch 1", "nosuch: No such connection\n"),
        ("dstate 99", "99: No such device\n"),
        ("status nosuch", "# No currently configured DRBD found.\nnosuch: No such resource\n"),
    ],
)
def test_drbdsetup_says_what_is_not_there_and_ends_with_ten(node: Node, words: str, said: str) -> None:
    assert node.run(f"drbdsetup {words}", expect=10).output == said
