"""Drives hold tomorrow what was written to them today."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from quorate.engine.clock import SystemClock
from quorate.lab import faults, saving
from quorate.lab.cluster import Cluster
from quorate.lab.keeping import kept, restore
from quorate.lab.kernel import metadata
from quorate.lab.layout import Layout


def cluster() -> Cluster:
    return Cluster(Layout(nodes=2, drives=2), clock=SystemClock())


def filled() -> Cluster:
    """Volume groups, a thick volume with DRBD's metadata and data, a thin pool with a thin one, and files."""
    made = cluster()
    host = made.node("node-1").host
    for words in (
        ("vgcreate", "vg", "/dev/sda"),
        ("lvcreate", "-y", "-n", "thick", "-L", "128M", "vg"),
        ("lvcreate", "-y", "--type", "thin-pool", "-n", "pool", "-L", "1G", "vg"),
        ("lvcreate", "-y", "-n", "thin", "-V", "4G", "--thinpool", "pool", "vg"),
        ("lvchange", "--addtag", "kept", "vg/thick"),
    ):
        result = host.execute(words)
        assert result.exit_code == 0, result.output
    found = host.lvm.find("vg/thick")
    assert found is not None
    device = found[1].device
    metadata.create(device, 7).peer(3).bitmap.add(5, 9)
    device.write(0, 8192, "data")
    host.files["/var/lib/drbd/x"] = b"\x00\xff"
    made.inject(faults.DrivePull("node-2", "1"))
    return made


def test_what_is_restored_is_what_was_saved(tmp_path: Path) -> None:
    before = filled()
    data = saving.dump({name: node.saved() for name, node in before.nodes.items()})
    (tmp_path / "hardware").write_bytes(data)
    after = cluster()
    restore(after, tmp_path / "hardware")
    host = after.node("node-1").host
    assert (
        host.execute(("lvs", "--noheadings", "-o", "lv_name,lv_tags,pool_lv", "vg")).stdout
        == before.node("node-1").host.execute(("lvs", "--noheadings", "-o", "lv_name,lv_tags,pool_lv", "vg")).stdout
    )
    found = host.lvm.find("vg/thick")
    assert found is not None
    device = found[1].device
    assert device.read(4096) == "data"
    kept_metadata = metadata.find(device)
    assert kept_metadata is not None
    assert list(kept_metadata.peer(3).bitmap) == [(5, 9)]
    assert host.files["/var/lib/drbd/x"] == b"\x00\xff"
    assert [drive.slot for drive in after.node("node-2").pulled] == ["1"]
    assert host.execute(("lvcreate", "-y", "-n", "more", "-L", "4M", "vg")).exit_code == 0


def test_every_life_has_boots_of_its_own_and_what_was_off_stays_off(tmp_path: Path) -> None:
    before = cluster()
    before.inject(faults.NodeDown("node-2"))
    (tmp_path / "hardware").write_bytes(saving.dump({name: node.saved() for name, node in before.nodes.items()}))
    after = cluster()
    restore(after, tmp_path / "hardware")
    boot_id = "/proc/sys/kernel/random/boot_id"
    assert after.node("node-1").host.files[boot_id] != before.node("node-1").host.files[boot_id]
    assert after.node("node-1").host.powered
    assert not after.node("node-2").host.powered


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"rubbish",
        b'{"root": ["object", 0], "objects": [["Popen", {}]]}',
        b'{"root": ["object", 0], "objects": [["Run", {"first": 1}]]}',
        b'{"root": ["code", "1"], "objects": []}',
    ],
)
def test_a_file_that_cannot_be_used_leaves_new_drives(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(saving.Unusable):
        saving.load(content)
    (tmp_path / "hardware").write_bytes(content)
    made = cluster()
    restore(made, tmp_path / "hardware")
    assert made.node("node-1").host.powered


def test_only_hardware_is_ever_written() -> None:
    with pytest.raises(TypeError, match="not known as a part of the hardware"):
        saving.dump({"clock": SystemClock()})


async def test_hardware_is_written_at_the_end_and_only_for_its_owner(tmp_path: Path) -> None:
    file = tmp_path / "lab" / "hardware.json"
    async with kept(cluster(), file):
        assert not file.exists()
    assert file.stat().st_mode & 0o777 == 0o600
    assert set(saving.load(file.read_bytes())) == {"node-1", "node-2"}
    assert msgspec.json.decode(file.read_bytes())["objects"]
