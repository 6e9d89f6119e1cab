"""lsblk, smartctl, ledctl: what a node says of its drives."""

from __future__ import annotations

import json
from typing import Any

import pytest

from quorate.lab.drives import Drive, Medium
from tests.lab.tools.conftest import Node


def test_lsblk_shows_drives_with_their_volumes(node: Node) -> None:
    node.run("lvcreate -y -n my-volume -L 32M vg0")
    listed = json.loads(node.run("lsblk --json -b -o NAME,PATH,TYPE,SIZE,SERIAL,ROTA,FSTYPE,PKNAME").stdout)
    first, second = listed["blockdevices"]
    assert (first["name"], first["serial"], first["rota"], first["fstype"]) == ("sda", "A1", False, "LVM2_member")
    assert first["children"] == [
        {
            "name": "vg0-my--volume",
            "path": "/dev/mapper/vg0-my--volume",
            "type": "lvm",
            "size": 32 << 20,
            "serial": None,
            "rota": False,
            "fstype": None,
            "pkname": "sda",
        }
    ]
    assert (second["path"], second["size"], second["rota"], "children" in second) == ("/dev/sdb", 2 << 30, True, False)


def test_lsblk_shows_file_systems_and_partitions_that_lvm_does_not_take_and_wipefs_removes(node: Node) -> None:
    def listed() -> dict[str, Any]:
        found = json.loads(node.run("lsblk --json -o NAME,FSTYPE,PTTYPE /dev/sdb").stdout)
        return dict(found["blockdevices"][0])

    drive = node.host.bays.by_name("sdb")
    assert drive is not None
    nothing = {"name": "sdb", "fstype": None, "pttype": None}
    assert listed() == nothing
    drive.filesystem = "xfs"
    assert listed() == {"name": "sdb", "fstype": "xfs", "pttype": None}
    node.run("wipefs --all /dev/sdb")
    assert listed() == nothing
    drive.partitions = ("ext4", "")
    assert listed() == {
        "name": "sdb",
        "fstype": None,
        "pttype": "gpt",
        "children": [
            {"name": "sdb1", "fstype": "ext4", "pttype": "gpt"},
            {"name": "sdb2", "fstype": None, "pttype": "gpt"},
        ],
    }
    assert "device is partitioned" in node.run("vgcreate vg9 /dev/sdb", expect=5).stderr
    node.run("wipefs -a /dev/sdb")
    assert listed() == nothing


def test_lsblk_refuses_a_column_or_device_that_is_not_there(node: Node) -> None:
    assert "unknown column: NOPE" in node.run("lsblk -J -o NAME,NOPE", expect=1).stderr
    assert "not a block device" in node.run("lsblk -J /dev/sdz", expect=32).stderr


@pytest.mark.parametrize(("medium", "failing_exit"), [(Medium.SSD, 24), (Medium.HDD, 24), (Medium.NVME, 8)])
def test_smartctl_tells_health_by_exit_code_and_report(node: Node, medium: Medium, failing_exit: int) -> None:
    drive = Drive("S9", 1 << 30, medium)
    path = f"/dev/{node.host.insert_drive(drive)}"
    report = json.loads(node.run(f"smartctl --json -a {path}").stdout)
    assert report["smart_status"]["passed"] is True
    assert report["serial_number"] == "S9"
    assert ("nvme_smart_health_information_log" in report) == (medium is Medium.NVME)
    assert ("endurance_used" in report) == (medium is not Medium.HDD)
    drive.smart.passed = False
    report = json.loads(node.run(f"smartctl --json -a {path}", expect=failing_exit).stdout)
    assert report["smart_status"]["passed"] is False


def test_smartctl_says_of_a_drive_that_is_gone_that_it_did_not_open(node: Node) -> None:
    report = json.loads(node.run("smartctl -j -H /dev/sdx", expect=2).stdout)
    assert "No such device" in report["smartctl"]["messages"][0]["string"]


def test_the_locate_light_goes_on_and_off(node: Node) -> None:
    node.run("ledctl locate=/dev/sdb")
    assert node.host.bays.by_serial("B2").locate_light
    node.run("ledctl locate_off=/dev/sdb")
    assert not node.host.bays.by_serial("B2").locate_light


def test_a_swapped_drive_takes_the_slot_and_a_name_of_its_own(node: Node) -> None:
    node.host.swap_drive("B2", Drive("C3", 4 << 30))
    assert [(name, drive.serial, drive.slot) for name, drive in node.host.bays.items()] == [
        ("sda", "A1", "1"),
        ("sdb", "C3", "2"),
    ]


def test_a_failing_drive_fails_reads_and_writes(node: Node) -> None:
    node.host.fail_drive("B2")
    assert "Input/output error" in node.run("dd if=/dev/sdb of=/dev/null bs=4k count=1", expect=1).stderr
    node.host.fail_drive("B2", failing=False)
    node.run("dd if=/dev/sdb of=/dev/null bs=4k count=1")
