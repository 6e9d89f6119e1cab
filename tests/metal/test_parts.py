"""What the suite is made of: the hub, deaths at commands, the choice of a kernel; the product knows none of it."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from metal import __main__ as command
from metal.errors import CannotRun
from metal.guest.killing import Killing, changes
from metal.kernel import LAYOUTS, Resource
from metal.machines import BLOCK, block_name, block_text
from metal.qemu import image
from metal.qemu.hub import Hub, mac_of
from tests.support.drbd_utils import drbdadm

ROOT = Path(__file__).parents[2]


def test_no_part_of_the_product_imports_the_suite() -> None:
    for path in (ROOT / "src").rglob("*.py"):
        lines = path.read_text().splitlines()
        assert not [line for line in lines if line.startswith(("from metal", "import metal"))], path


def frame(to: str, text: bytes) -> bytes:
    return bytes.fromhex(to.replace(":", "")) + bytes(6) + text


async def test_the_hub_passes_frames_on_and_cuts_each_direction_alone(tmp_path: Path) -> None:
    hub = Hub(tmp_path, (1, 2, 3))
    cards = {}
    for number in (1, 2, 3):
        cards[number] = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        cards[number].bind(str(hub.theirs(number)))
        cards[number].setblocking(False)
    hub.open()

    async def sent(source: int, to: str, text: bytes) -> dict[int, bytes]:
        cards[source].sendto(frame(to, text), str(hub.ours(source)))
        await asyncio.sleep(0.05)
        heard = {}
        for number, card in cards.items():
            try:
                heard[number] = card.recv(1000)[12:]
            except BlockingIOError:
                continue
        return heard

    try:
        assert await sent(1, mac_of(2), b"to one") == {2: b"to one"}
        assert await sent(1, "ff:ff:ff:ff:ff:ff", b"to all") == {2: b"to all", 3: b"to all"}
        hub.cut.add((1, 2))
        assert await sent(1, mac_of(2), b"lost") == {}
        assert await sent(2, mac_of(1), b"back") == {1: b"back"}
        assert await sent(1, "ff:ff:ff:ff:ff:ff", b"to the rest") == {3: b"to the rest"}
        assert hub.dropped == {(1, 2): 2}
        hub.cut.clear()
        assert await sent(1, mac_of(2), b"healed") == {2: b"healed"}
        # A machine without power takes nothing, and harms nobody.
        cards.pop(3).close()
        hub.theirs(3).unlink()
        assert await sent(1, "ff:ff:ff:ff:ff:ff", b"on") == {2: b"on"}
    finally:
        hub.close()
        for card in cards.values():
            card.close()


@pytest.mark.parametrize(
    ("argv", "meant"),
    [
        ("lvs --reportformat json", False),
        ("lvm lvs", False),
        ("drbdsetup status --json", False),
        ("drbdadm --version", False),
        ("drbdadm -c /dev/null --config-to-test /etc/x.res_tmp sh-nop", False),
        ("lsblk --json", False),
        ("lvcreate -n a -L 4M vg0", True),
        ("drbdadm -c /var/lib/quorate/drbd.d/v.res up v", True),
        ("drbdsetup new-current-uuid 1000", True),
        ("vgcreate vg0 /dev/sda", True),
    ],
)
def test_an_agent_dies_only_at_commands_that_change_something(argv: str, meant: bool) -> None:
    assert changes(tuple(argv.split())) is meant


def test_an_agent_dies_once_before_and_once_after_each_command() -> None:
    killing, command = Killing(), ("lvremove", "vg0/a")
    assert [killing.dies_before(command), killing.dies_before(command)] == [True, False]
    again = Killing(tuple(killing.died))  # its next life
    assert [again.dies_before(command), again.dies_after(command), again.dies_after(command)] == [False, True, False]


def module(version: str) -> bytes:
    return b"\x7fELF\0license=GPL\0vermagic=" + version.encode() + b" SMP preempt mod_unload\0"


def test_the_kernel_is_the_one_that_the_modules_were_made_for(tmp_path: Path) -> None:
    (tmp_path / "drbd.ko").write_bytes(module("6.1.0-54-amd64"))
    with pytest.raises(CannotRun, match="drbd_transport_tcp"):
        image._kernel_of(tmp_path)
    (tmp_path / "drbd_transport_tcp.ko").write_bytes(module("6.1.0-55-amd64"))
    with pytest.raises(CannotRun, match="different kernels"):
        image._kernel_of(tmp_path)
    (tmp_path / "drbd_transport_tcp.ko").write_bytes(module("6.1.0-54-amd64"))
    assert image._kernel_of(tmp_path) == "6.1.0-54-amd64"
    (tmp_path / "drbd.ko").write_bytes(b"\xfd7zXZ")
    with pytest.raises(CannotRun, match="no kernel module"):
        image._kernel_of(tmp_path)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_real_drbdadm_reads_what_scenarios_configure_and_brings_it_up(layout: str, tmp_path: Path) -> None:
    stage: Any = SimpleNamespace(machines=SimpleNamespace(nodes=("n1", "n2", "n3")))
    resource = Resource(stage, layout)
    for member in resource.members:
        file = tmp_path / f"{member.node}.res"
        file.write_text(f"global {{ usage-count no; }}\n{resource.configuration(member)}")
        words = drbdadm().would_run("up", file, member.node, resource.name)
        attached = [each for each in words if each[:2] == ["drbdsetup", "attach"]]
        assert bool(attached) is (member.node in resource.diskful), words


def test_blocks_say_whose_they_are() -> None:
    assert len(block_text(17, "a")) == BLOCK
    assert block_name(block_text(17, "a")) == "17.a"
    assert block_name(bytes(BLOCK)) == "-"
    assert block_name(b"\xff" * BLOCK) == "?"


async def test_no_more_machines_run_at_once_than_may() -> None:
    places, running, most = command.Places(3), 0, 0

    async def one(count: int) -> None:
        nonlocal running, most
        async with places.taken(count):
            running += min(count, 3)
            most = max(most, running)
            await asyncio.sleep(0.001)
            running -= min(count, 3)

    await asyncio.gather(*(one(count) for count in (1, 3, 2, 5, 1, 1, 3)))
    assert most == 3
    assert running == 0
