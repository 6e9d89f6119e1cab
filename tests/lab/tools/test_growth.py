"""What the kernel and the tools make of a growth, held to what the real ones did (facts: drbd9-races, R and k4).

Three members with internal metadata, the first of them Primary with a writer in one extent; grown by ``resize``. Then
one of the remedies, a power loss of the third and of the first member, and ``up``.
"""

from __future__ import annotations

import pytest

from quorate.lab.drives import Drive
from quorate.lab.kernel import World
from quorate.lab.tools.process import Result
from tests.lab.tools.conftest import Node

MIB = 1 << 20
REFUSED = "No usable activity log found. Do you need to create-md?\n"
IGNORED = f"{REFUSED}Error ignored, no need to apply the AL\n"
HOST = """on n{n} {{ node-id {n}; address ipv4 10.77.0.{n}:7000;
volume 0 {{ device minor 7; disk /dev/vg0/r; meta-disk internal; }} }}
"""
LINK = "connection {{ host n{a} address ipv4 10.77.0.{a}:7000; host n{b} address ipv4 10.77.0.{b}:7000; }}\n"
OPTIONS = "options { quorum majority; quorum-minimum-redundancy 2; on-no-quorum suspend-io; auto-promote no; }"
FILE = (
    f"resource r {{ {OPTIONS} net {{ protocol C; }}\n"
    + "".join(HOST.format(n=n) for n in (1, 2, 3))
    + "".join(LINK.format(a=a, b=b) for a, b in ((1, 2), (1, 3), (2, 3)))
    + "}\n"
)


class Three:
    """The members, and what is done to them."""

    def __init__(self) -> None:
        self.world = World()
        self.nodes = {n: Node(self.world, f"n{n}", f"10.77.0.{n}") for n in (1, 2, 3)}
        for n, node in self.nodes.items():
            node.host.insert_drive(Drive(f"S{n}", 1 << 30, slot="1"))
            node.host.files["/etc/drbd.d/r.res"] = FILE.encode()
            node.run("vgcreate vg0 /dev/sda && lvcreate -y -n r -L 32M vg0")
            node.run("drbdadm create-md --max-peers=7 --force r && drbdadm up r")
        self.wait(5)
        self.nodes[1].run("drbdadm -- --clear-bitmap new-current-uuid r/0 && drbdadm primary r")
        self.write(0)

    def wait(self, seconds: float) -> None:
        self.world.advance(self.world.now + seconds)

    def write(self, mib: int) -> None:
        self.nodes[1].run(f"dd if=/dev/urandom of=/dev/drbd7 bs=4096 count=1 seek={mib * 256} oflag=direct")

    def extend(self, mib: int, *numbers: int) -> None:
        for n in numbers or self.nodes:
            self.nodes[n].run(f"lvextend -L {mib}M vg0/r")

    def grow(self, mib: int = 64) -> None:
        self.extend(mib)
        self.nodes[1].run("drbdadm -- --assume-clean resize r")
        self.write(0)

    def lose_power(self, *numbers: int) -> None:
        for n in numbers:
            self.nodes[n].host.power_off()
            self.wait(2)
        for n in numbers:
            self.nodes[n].host.power_on()

    def up(self, n: int) -> Result:
        return self.nodes[n].run("drbdadm up r", expect=None)

    def size(self, n: int) -> int:
        return (self.nodes[n].host.kernel.device_size(7) or 0) // MIB

    def has_log(self, n: int, mib: int = 64) -> bool:
        """As a reader of the disk itself finds it: in the 32 KiB before the superblock."""
        line = f"dd if=/dev/vg0/r bs=4096 skip={mib * 256 - 9} count=8 iflag=direct status=none"
        return bool(self.nodes[n].run(line).stdout.strip("\0"))

    def disk(self, n: int) -> str:
        return self.nodes[n].run("drbdsetup dstate 7").output.partition("/")[0].strip()


@pytest.fixture
def three() -> Three:
    return Three()


REMEDIES = [
    pytest.param("", (False, False, False), id="nothing, writer on"),
    pytest.param("3: drbdadm disconnect r; drbdadm connect r", (False, False, False), id="reconnect"),
    pytest.param("3: drbdsetup resize 7 --al-stripes=1 --al-stripe-size=64", (False, False, False), id="al-stripes"),
    pytest.param("1: @40", (True, True, True), id="a write into the new space"),
    pytest.param("3: drbdadm down r; drbdadm up r", (False, False, True), id="down and up of a Secondary"),
    pytest.param(
        "3: drbdadm disconnect r; drbdadm detach r; drbdadm attach r; drbdadm connect r",
        (False, False, True),
        id="disconnect, detach, attach, connect of a Secondary",
    ),
    pytest.param(
        "3: drbdsetup disk-options 7 --al-extents=1000; 1: drbdsetup disk-options 7 --al-extents=1000",
        (False, False, False),
        id="al-extents, idle",
    ),
    pytest.param(
        "3: drbdsetup disk-options 7 --al-extents=1000; 1: drbdsetup disk-options 7 --al-extents=1000; 1: @0",
        (True, False, True),
        id="al-extents and a write into the old space",
    ),
]


@pytest.mark.parametrize(("remedy", "logs"), REMEDIES)
def test_a_member_that_grew_attaches_after_a_power_loss_if_it_has_a_log(
    three: Three, remedy: str, logs: tuple[bool, bool, bool]
) -> None:
    three.grow()
    assert [three.size(n) for n in three.nodes] == [63] * 3
    where = 1
    for part in filter(None, (each.strip() for each in remedy.split(";"))):
        head, _, tail = part.partition(": ")
        where, line = (int(head), tail) if tail else (where, part)
        if line.startswith("@"):
            three.write(int(line[1:]))
        else:
            three.nodes[where].run(line)
    three.wait(10)
    assert tuple(three.has_log(n) for n in three.nodes) == logs
    three.lose_power(3, 1)
    for n in (3, 1):
        said = three.up(n)
        assert said.exit_code == (0 if logs[n - 1] else 1), said
        assert (REFUSED in said.output) is not logs[n - 1]
        assert ("Diskless" in three.disk(n)) is not logs[n - 1]
        if not logs[n - 1]:
            assert three.nodes[n].run("drbdadm apply-al r", expect=1).output == REFUSED
            assert '"unclean"' in three.nodes[n].run("drbdadm dump-md r", expect=1).output


COPY = "dd if=/dev/vg0/r of=/dev/vg0/r bs=4096 skip={} seek={} count=8 iflag=direct oflag=direct conv=notrunc,fsync"


def grown_with_log(three: Three) -> None:
    """k4_c (8): the log copied on each member after its disk has grown, and before DRBD does."""
    three.extend(64)
    for node in three.nodes.values():
        node.run(COPY.format(32 * 256 - 9, 64 * 256 - 9))
    three.nodes[1].run("drbdadm -- --assume-clean resize r")


def test_a_log_that_was_copied_before_the_resize_leaves_no_moment_without_one(three: Three) -> None:
    grown_with_log(three)
    assert [three.has_log(n) for n in three.nodes] == [True] * 3
    three.write(0)
    three.lose_power(3, 2, 1)
    said = [three.up(n) for n in three.nodes]
    assert [each.exit_code for each in said] == [0] * 3
    assert not any(REFUSED in each.output for each in said)


@pytest.mark.parametrize("renewed", [False, True])
def test_what_became_active_after_the_copy_is_in_it_only_if_it_is_renewed(three: Three, renewed: bool) -> None:
    """Not recorded so, but what follows from it: a log is written when an extent *becomes* active, and not again."""
    three.extend(64)
    three.nodes[1].run(COPY.format(32 * 256 - 9, 64 * 256 - 9))
    three.write(16)
    three.nodes[1].run("drbdadm -- --assume-clean resize r")
    if renewed:
        three.nodes[1].run("drbdsetup disk-options 7 --al-extents=1236 && drbdsetup disk-options 7 --al-extents=1237")
    three.write(16)
    three.lose_power(1)
    marked = "Marked additional 56 MB" if renewed else "Marked additional 28 MB"
    assert marked in three.up(1).output


def test_detach_and_attach_while_connected_to_a_primary_is_refused_at_once(three: Three) -> None:
    three.grow()
    three.nodes[3].run("drbdadm detach r")
    assert three.nodes[3].run("drbdadm attach r", expect=1).output == REFUSED
    assert three.disk(3) == "Diskless"


def test_without_a_primary_at_the_loss_the_missing_log_does_no_harm(three: Three) -> None:
    three.grow()
    three.nodes[1].run("drbdadm secondary r")
    three.lose_power(3, 1)
    for n in (3, 1):
        said = three.up(n)
        assert (said.exit_code, said.output) == (0, IGNORED)
    three.wait(10)
    assert [three.disk(n) for n in three.nodes] == ["UpToDate"] * 3
    assert three.has_log(3)


def test_what_create_md_repairs_is_copied_anew(three: Three) -> None:
    three.grow()
    three.lose_power(3)
    assert three.up(3).exit_code == 1
    three.nodes[3].run("drbdadm create-md --max-peers=7 --force r && drbdadm adjust r")
    three.wait(60)
    assert three.disk(3) == "UpToDate"
    assert three.size(3) == 63


def test_when_all_are_refused_log_blocks_written_by_hand_bring_them_back(three: Three) -> None:
    """docs/operating.md: what every copy has is there; nothing is marked, so the others are made anew afterwards."""
    three.grow()
    three.lose_power(3, 2, 1)
    assert [three.up(n).exit_code for n in three.nodes] == [1, 1, 1]
    block = bytes.fromhex("69cb65a200000000709cc651ffff").ljust(4096, b"\0")
    for node in three.nodes.values():
        node.host.files["/tmp/block"] = block
        for back in range(2, 10):
            node.run(f"dd if=/tmp/block of=/dev/vg0/r bs=4096 seek={64 * 256 - back} count=1 oflag=direct conv=notrunc")
        node.run("drbdadm adjust r")
    three.wait(20)
    assert [three.disk(n) for n in three.nodes] == ["UpToDate"] * 3
    assert [three.size(n) for n in three.nodes] == [63] * 3
    three.nodes[1].run("drbdadm primary r")


def test_a_growth_at_a_reconnect_leaves_no_log_either(three: Three) -> None:
    three.nodes[3].run("drbdadm disconnect r")
    three.wait(3)
    three.extend(64)
    three.nodes[3].run("drbdadm connect r")
    three.wait(30)
    assert [three.size(n) for n in three.nodes] == [63] * 3
    assert not any(three.has_log(n) for n in three.nodes)


@pytest.mark.parametrize("told", [False, True], ids=["as it is", "after check-resize"])
def test_a_member_grown_once_and_its_disk_again_comes_back_with_its_first_size(three: Three, told: bool) -> None:
    """Only the machine where ``resize`` ran has noted where the metadata are; the first superblock was never wiped."""
    three.grow()
    three.write(40)
    if told:
        three.nodes[2].run("drbdsetup check-resize 7")
    three.extend(96)
    three.lose_power(1, 3, 2)
    said = three.up(2)
    assert (said.exit_code, "successfully moved" in said.output) == (0, True), said
    assert (three.size(2), three.disk(2)) == (63 if told else 31, "UpToDate")


def test_the_first_superblock_is_gone_once_it_is_written_over(three: Three) -> None:
    three.grow()
    three.nodes[1].run("dd if=/dev/zero of=/dev/drbd7 bs=4096 seek=8183 count=9 oflag=direct")
    three.write(40)
    three.extend(96)
    three.lose_power(2)
    said = three.up(2)
    assert said.exit_code == 1
    assert "No valid meta data found" in said.output
