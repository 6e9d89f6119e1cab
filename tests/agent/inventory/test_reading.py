"""What lsblk and smartctl print is read; what they never print is an error of one kind, or UNKNOWN."""

from __future__ import annotations

import json
import subprocess
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.agent.inventory.discovery import (
    Place,
    discover,
    drive_uuid,
    is_clean,
    is_drive,
    is_system,
    outside_lvm,
    serial_number,
    unique,
)
from quorate.agent.inventory.lsblk import (
    COLUMNS,
    BlockDevice,
    UnreadableListing,
    lsblk,
    read_block_devices,
    unknown_column,
)
from quorate.agent.inventory.smart import judge
from quorate.api.baremetal.drive import DriveHealth, DriveType
from quorate.api.meta import NodeName

HERE, THERE = NodeName("n1"), NodeName("n2")

#: util-linux 2.38: numbers are numbers, mount points are lists.
NEW_LSBLK = {
    "blockdevices": [
        {"name": "loop0", "path": "/dev/loop0", "type": "loop", "size": 4096},
        {
            "name": "sda", "path": "/dev/sda", "type": "disk", "size": 512_110_190_592, "rota": False, "tran": "sata",
            "vendor": "ATA     ", "model": "Samsung SSD", "serial": "S1", "wwn": "0x5002", "rev": "2B6Q",
            "fstype": None, "pttype": "gpt", "mountpoints": [None],
            "children": [
                {"name": "sda1", "path": "/dev/sda1", "type": "part", "size": 1, "mountpoints": ["/boot/efi"]},
                {"name": "sda2", "path": "/dev/sda2", "type": "part", "size": 2, "fstype": "LVM2_member",
                 "children": [{"name": "vg-root", "path": "/dev/mapper/vg-root", "type": "lvm", "size": 2,
                               "mountpoints": ["/var/lib/kubelet", "/"]}]},
            ],
        },
        {"name": "sdb", "path": "/dev/sdb", "type": "disk", "size": 8_001_563_222_016, "rota": True, "tran": "sas",
         "vendor": "SEAGATE ", "model": "ST8000", "serial": "S2", "mountpoints": [None]},
        {"name": "nvme0n1", "path": "/dev/nvme0n1", "type": "disk", "size": 960_197_124_096, "rota": False,
         "tran": "nvme", "vendor": None, "model": "INTEL P4510", "serial": "S3", "mountpoints": [None],
         "fstype": "LVM2_member",
         "children": [{"name": "vg0-x", "path": "/dev/mapper/vg0-x", "type": "lvm", "size": 5, "mountpoints": [None],
                       "children": [{"name": "drbd1000", "path": "/dev/drbd1000", "type": "disk", "size": 4}]}]},
    ]
}  # fmt: skip

#: util-linux 2.32: everything is text, and there is one mount point.
OLD_LSBLK = {
    "blockdevices": [
        {"name": "sda", "type": "disk", "size": "1000", "rota": "1", "serial": "S1", "mountpoint": None,
         "children": [{"name": "sda1", "type": "part", "size": "500", "rota": "1", "mountpoint": "[SWAP]"}]}
    ]
}  # fmt: skip


def devices(listing: dict[str, Any]) -> tuple[BlockDevice, ...]:
    return read_block_devices(json.dumps(listing))


def test_drives_are_told_from_other_block_devices_and_described() -> None:
    sda, sdb, nvme = (discover(HERE, device, Place()).spec for device in devices(NEW_LSBLK) if is_drive(device))
    assert (sda.vid, sda.pid, sda.serial_number, sda.firmware) == ("ATA", "Samsung SSD", "S1", "2B6Q")
    assert [drive.type for drive in (sda, sdb, nvme)] == [DriveType.SSD, DriveType.HDD, DriveType.NVME]
    assert [drive.is_system for drive in (sda, sdb, nvme)] == [True, False, False]
    assert [drive.is_clean for drive in (sda, sdb, nvme)] == [False, True, False]
    assert (sdb.path, sdb.size, sdb.node_id) == ("/dev/sdb", 8_001_563_222_016, HERE)


def test_the_real_lsblk_is_asked_for_columns_that_it_knows_and_not_how_full_file_systems_are() -> None:
    """A file system of a server that is dead would never answer that."""
    assert not [column for column in COLUMNS if column.startswith(("FSAVAIL", "FSUSE", "FSSIZE"))]
    done = subprocess.run(lsblk(COLUMNS), capture_output=True, text=True, check=False)
    assert done.returncode == 0 or unknown_column(done.stderr) in COLUMNS or "not a block device" in done.stderr
    refused = subprocess.run(lsblk(("NAME", "OTHER")), capture_output=True, text=True, check=False)
    assert refused.returncode == 1
    assert unknown_column(refused.stderr) is None
    assert unknown_column(refused.stderr.replace("OTHER", "PTTYPE")) == "PTTYPE"


def test_an_older_lsblk_is_read_too() -> None:
    (sda,) = devices(OLD_LSBLK)
    assert (sda.path, sda.size, sda.rotational, is_system(sda)) == ("/dev/sda", 1000, True, True)


@pytest.mark.parametrize(
    ("name", "kind", "drive"),
    [("sda", "disk", True), ("nvme0n1", "disk", True), ("vda", "disk", True), ("mmcblk0", "disk", True),
     ("sr0", "rom", False), ("loop1", "loop", False), ("zram0", "disk", False), ("drbd1000", "disk", False),
     ("nbd0", "disk", False), ("rbd0", "disk", False), ("dm-0", "lvm", False), ("md0", "raid1", False),
     ("mmcblk0boot0", "disk", False), ("sda1", "part", False)],
)  # fmt: skip
def test_what_the_kernel_makes_up_is_no_drive(name: str, kind: str, drive: bool) -> None:
    assert is_drive(BlockDevice(name, f"/dev/{name}", type=kind, size=1)) == drive


def test_an_empty_slot_of_a_card_reader_is_no_drive() -> None:
    assert not is_drive(BlockDevice("sdc", "/dev/sdc", type="disk", size=0))


@pytest.mark.parametrize("mark", ["signature", "partition_table"])
def test_a_drive_with_any_mark_on_it_is_not_clean(mark: str) -> None:
    assert is_clean(BlockDevice("sda", "/dev/sda"))
    assert not is_clean(BlockDevice("sda", "/dev/sda", **{mark: "gpt"}))  # type: ignore[arg-type]


def test_the_name_of_a_drive_follows_from_who_it_is_and_where_not_from_its_path() -> None:
    one = BlockDevice("sda", "/dev/sda", vendor="V", model="M", serial="S")
    assert drive_uuid(HERE, one) == drive_uuid(HERE, BlockDevice("sdq", "/dev/sdq", vendor="V", model="M", serial="S"))
    others = [
        drive_uuid(THERE, one),
        drive_uuid(HERE, BlockDevice("sda", "/dev/sda", vendor="V", model="M", serial="T")),
        drive_uuid(HERE, BlockDevice("sda", "/dev/sda", vendor="VM", model="", serial="S")),
    ]
    assert len({drive_uuid(HERE, one), *others}) == 4


def test_a_world_wide_name_stands_in_for_a_serial_number() -> None:
    assert serial_number(BlockDevice("sda", "/dev/sda", wwn="0x5000")) == "0x5000"
    assert serial_number(BlockDevice("sda", "/dev/sda")) == ""


def test_two_paths_to_one_drive_are_one_drive() -> None:
    found = [discover(HERE, BlockDevice(name, f"/dev/{name}", serial="S"), Place()) for name in ("sdb", "sda")]
    drives, left_out = unique(found)
    assert ([drive.spec.path for drive in drives], left_out) == (["/dev/sda"], ("/dev/sdb",))


def ata(*attributes: tuple[int, int], passed: bool = True, when_failed: str = "") -> dict[str, Any]:
    rows = [
        {"id": number, "name": "A", "raw": {"value": raw}, "when_failed": when_failed} for number, raw in attributes
    ]
    return {"smart_status": {"passed": passed}, "ata_smart_attributes": {"table": rows}, "temperature": {"current": 31}}


def nvme(passed: bool = True, **log: int) -> dict[str, Any]:
    return {"smart_status": {"passed": passed}, "nvme_smart_health_information_log": log}


@pytest.mark.parametrize(
    ("report", "health", "said"),
    [
        (ata((5, 0), (197, 0), (9, 1200)), "GOOD", ""),
        (ata(passed=False), "BAD", "fails"),
        (ata((5, 8)), "SUSPECT", "8 reallocated sectors"),
        (ata((197, 1)), "SUSPECT", "1 pending sectors"),
        (ata((198, 3)), "SUSPECT", "3 uncorrectable sectors"),
        (ata((187, 2)), "SUSPECT", "reported uncorrectable"),
        (ata((5, 8), passed=False), "BAD", "reallocated"),
        (ata((1, 0), when_failed="now"), "SUSPECT", "below its threshold"),
        (ata((1, 0), when_failed="past"), "GOOD", ""),
        (nvme(critical_warning=0, percentage_used=3), "GOOD", ""),
        (nvme(passed=False, critical_warning=1), "SUSPECT", "spare"),
        (nvme(passed=False, critical_warning=2), "SUSPECT", "temperature"),
        (nvme(passed=False, critical_warning=4), "BAD", "reliability"),
        (nvme(passed=False, critical_warning=8), "BAD", "read only"),
        (nvme(media_errors=7), "SUSPECT", "7 media errors"),
        (nvme(percentage_used=100), "SUSPECT", "100 % of its rated writes"),
        (nvme(percentage_used=99), "GOOD", ""),
        (nvme(available_spare=4, available_spare_threshold=10), "SUSPECT", "4 % spare"),
        (nvme(passed=False), "BAD", "fails"),
        ({"smart_status": {"passed": True}, "scsi_grown_defect_list": 12}, "SUSPECT", "12 grown defects"),
        ({"smart_status": {"passed": True}, "scsi_error_counter_log": {"read": {"total_uncorrected_errors": 1}}},
         "SUSPECT", "1 uncorrected"),
        ({"smartctl": {"messages": [{"string": "Permission denied"}]}}, "UNKNOWN", "Permission denied"),
        ({}, "UNKNOWN", "Nothing is known"),
    ],
)  # fmt: skip
def test_health_follows_from_what_a_drive_says(report: dict[str, Any], health: str, said: str) -> None:
    found = judge(json.dumps(report))
    assert (found.health, said.lower() in found.message.lower()) == (DriveHealth(health), True)
    assert bool(found.message) == (health != "GOOD")


def test_temperature_and_endurance_are_reported() -> None:
    found = judge(json.dumps({**nvme(percentage_used=12), "temperature": {"current": 41}}))
    assert (found.temperature_celsius, found.endurance_used_percent) == (41, 12)
    assert judge(json.dumps({"endurance_used": {"current_percent": 7}})).endurance_used_percent == 7


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**25), 10**25) | st.floats(allow_nan=False) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
_SMART = st.dictionaries(
    st.sampled_from(("smart_status", "ata_smart_attributes", "nvme_smart_health_information_log", "temperature",
                     "endurance_used", "scsi_grown_defect_list", "scsi_error_counter_log", "smartctl")),
    _JSON | st.dictionaries(st.sampled_from(("passed", "table", "critical_warning", "current", "messages")), _JSON),
    max_size=5,
)  # fmt: skip
_ROWS = st.lists(
    st.dictionaries(
        st.sampled_from(("name", "path", "type", "size", "rota", "children", "mountpoints", "serial")), _JSON
    ),
    max_size=3,
)


@given(st.text(max_size=100) | _JSON.map(json.dumps) | _SMART.map(json.dumps))
def test_whatever_smartctl_prints_it_is_a_report_that_the_schema_takes(text: str) -> None:
    report = judge(text)
    assert len(report.message) <= 1024
    assert report.endurance_used_percent is None or report.endurance_used_percent >= 0


@given(st.text(max_size=100) | _ROWS.map(lambda rows: json.dumps({"blockdevices": rows})))
def test_whatever_lsblk_prints_it_is_read_or_unreadable(text: str) -> None:
    with suppress(UnreadableListing):
        for device in read_block_devices(text):
            if is_drive(device) and serial_number(device):
                discover(HERE, device, Place())


def test_a_listing_that_is_endlessly_deep_is_unreadable() -> None:
    row: dict[str, Any] = {"name": "x"}
    for _ in range(100):
        row = {"name": "x", "children": [row]}
    with pytest.raises(UnreadableListing, match="deep"):
        devices({"blockdevices": [row]})


def _part(number: int, *on_it: BlockDevice, signature: str = "", mounted: str = "") -> BlockDevice:
    path = f"/dev/sdb{number}"
    points = (mounted,) if mounted else ()
    return BlockDevice(path[5:], path, type="part", signature=signature, mount_points=points, children=on_it)


@pytest.mark.parametrize(
    ("signature", "children", "expected"),
    [
        ("", (), []),
        ("LVM2_member", (), []),
        ("LVM2_member", (BlockDevice("vg-a", "/dev/mapper/vg-a", type="lvm", signature="ext4"),), []),
        ("ext4", (), ["ext4 on /dev/sdb"]),
        ("", (_part(1, signature="xfs"), _part(2)), ["xfs on /dev/sdb1", "/dev/sdb2"]),
        ("", (_part(1, signature="LVM2_member"), _part(2, signature="swap")), ["swap on /dev/sdb2"]),
        ("", (_part(1, mounted="/srv"),), ["/dev/sdb1"]),
        (
            "",
            (_part(1, BlockDevice("c", "/dev/mapper/c", type="crypt", signature="ext4"), signature="crypto_LUKS"),),
            ["crypto_LUKS on /dev/sdb1", "ext4 on /dev/mapper/c"],
        ),
    ],
)
def test_what_is_on_a_drive_outside_of_lvm_is_named(
    signature: str, children: tuple[BlockDevice, ...], expected: list[str]
) -> None:
    drive = BlockDevice("sdb", "/dev/sdb", type="disk", serial="S", signature=signature, children=children)
    assert list(outside_lvm(drive)) == expected
    assert list(discover(HERE, drive, Place()).foreign) == expected


def test_that_the_node_runs_from_a_drive_is_said_elsewhere() -> None:
    drive = BlockDevice("sdb", "/dev/sdb", type="disk", serial="S", children=(_part(1, signature="ext4", mounted="/"),))
    assert discover(HERE, drive, Place()).foreign == ()
