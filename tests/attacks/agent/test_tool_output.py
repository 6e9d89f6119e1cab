"""What lsblk, LVM and drbdsetup may print: whatever it is, an agent reads it rightly or not at all, and soon."""

from __future__ import annotations

import json
import time
import tracemalloc
from collections.abc import Callable
from copy import deepcopy
from random import Random
from typing import Any

import pytest

from quorate.agent.inventory import smart
from quorate.agent.inventory.discovery import is_clean, is_drive, is_system
from quorate.agent.inventory.lsblk import UnreadableListing, read_block_devices
from quorate.agent.lvm.report import UnreadableReport, VolumesReader, read_devices, read_groups
from quorate.api.reserved import why_no_group
from quorate.drbd.errors import UnreadableOutput
from quorate.drbd.events import parse_event
from quorate.drbd.status import parse_status

#: Seconds of a processor for a megabyte, and bytes of memory for fifty thousand.
SOON, LITTLE = 1.0, 10 * 1024 * 1024

LSBLK = {
    "blockdevices": [
        {
            "name": "sda",
            "path": "/dev/sda",
            "type": "disk",
            "size": 256 << 30,
            "rota": False,
            "tran": "sata",
            "vendor": "ATA",
            "model": "M",
            "serial": "S1",
            "fstype": None,
            "pttype": "gpt",
            "mountpoints": [None],
            "children": [
                {"name": "sda1", "path": "/dev/sda1", "type": "part", "size": 1 << 30, "mountpoints": ["/boot/efi"]},
                {"name": "sda2", "path": "/dev/sda2", "type": "part", "size": 9 << 30, "mountpoints": ["/", "/var"]},
            ],
        },
        {
            "name": "sdb",
            "path": "/dev/sdb",
            "type": "disk",
            "size": 256 << 30,
            "serial": "S2",
            "fstype": "LVM2_member",
            "mountpoints": [None],
        },
    ]
}
LVS = {
    "report": [
        {
            "lv": [
                {
                    "vg_name": "vg0",
                    "lv_name": "replica-a-0",
                    "lv_uuid": "u-1",
                    "lv_size": "4194304",
                    "lv_attr": "-wi-ao----",
                    "lv_tags": "quorate.md,quorate.owner.x",
                    "pool_lv": "",
                    "data_percent": "",
                    "devices": "/dev/sdb(0)",
                    "seg_pe_ranges": "/dev/sdb:0-0",
                }
            ]
        }
    ]
}
VGS = {
    "report": [
        {
            "vg": [
                {
                    "vg_name": "vg0",
                    "vg_uuid": "g-1",
                    "vg_size": "8388608",
                    "vg_free": "4194304",
                    "vg_extent_size": "4194304",
                    "vg_missing_pv_count": "0",
                }
            ]
        }
    ]
}
PVS = {
    "report": [
        {"pv": [{"pv_name": "/dev/sdb", "vg_name": "vg0", "vg_uuid": "g-1", "pv_size": "8388608", "pv_missing": ""}]}
    ]
}
STATUS = [
    {
        "name": "v",
        "node-id": 0,
        "role": "Primary",
        "suspended": False,
        "devices": [{"volume": 0, "minor": 1000, "disk-state": "UpToDate", "quorum": True, "size": 4096}],
        "connections": [
            {
                "peer-node-id": 1,
                "name": "n1",
                "connection-state": "Connected",
                "peer-role": "Secondary",
                "peer_devices": [{"volume": 0, "peer-disk-state": "UpToDate", "percent-in-sync": 100.0}],
            }
        ],
    }
]

READERS: dict[str, tuple[Any, Callable[[str], object], type[Exception]]] = {
    "lsblk": (LSBLK, read_block_devices, UnreadableListing),
    "lvs": (LVS, lambda text: VolumesReader().read(text), UnreadableReport),
    "vgs": (VGS, read_groups, UnreadableReport),
    "pvs": (PVS, read_devices, UnreadableReport),
    "drbdsetup status": (STATUS, parse_status, UnreadableOutput),
}
#: What is put in the place of anything.
ODD: list[Any] = [
    None, True, 0, -1, 10**18, 10**30, 1.5, 1e308, "", "-", "--yes", "-f", "..", "../x", "a/b", "a b", "/",
    "/etc/passwd", "@tag", "\x00", "\ud800", "x" * 5000, "9" * 5000, "é", "\n", [], [None], [[]], {}, {"name": "x"},
    "NaN", "[x]",
]  # fmt: skip


def _places(tree: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    below = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    return [path, *(place for key, part in below for place in _places(part, (*path, key)))]


def _put(tree: Any, place: tuple[Any, ...], value: Any) -> Any:
    if not place:
        return value
    tree = deepcopy(tree)
    at = tree
    for key in place[:-1]:
        at = at[key]
    at[place[-1]] = value
    return tree


def _read(reader: Callable[[str], object], refusal: type[Exception], text: str) -> object:
    try:
        return reader(text)
    except refusal:
        return None


@pytest.mark.parametrize("tool", READERS)
def test_any_value_in_any_place_is_read_or_refused_and_nothing_else(tool: str) -> None:
    tree, reader, refusal = READERS[tool]
    assert _read(reader, refusal, json.dumps(tree)), "it is read as it is"
    tried = 0
    for place in _places(tree):
        for odd in ODD:
            _read(reader, refusal, json.dumps(_put(tree, place, odd)))
            tried += 1
    assert tried > 100


@pytest.mark.parametrize("tool", READERS)
def test_torn_and_garbled_output_is_refused_and_nothing_else(tool: str) -> None:
    tree, reader, refusal = READERS[tool]
    text, random = json.dumps(tree), Random(tool)
    for cut in range(len(text)):
        assert _read(reader, refusal, text[:cut]) is None, "half an answer is none"
    for _ in range(500):
        at = random.randrange(len(text))
        _read(reader, refusal, text[:at] + chr(random.choice((0, 9, 34, 92, 123, 0x7F, 0xE9, 0xD800))) + text[at + 1 :])
    for garbage in ("", "null", "[]" * 3, "{}", "\x1b[31m", "Segmentation fault", "  WARNING: x\n" + text):
        _read(reader, refusal, garbage)


def _large(tool: str, size: int) -> list[str]:
    """About so many bytes of what is hard to read."""
    tree, _, _ = READERS[tool]
    text = json.dumps(tree)
    return [
        "[" * size,
        '{"a":' * (size // 5),
        text.replace('"', '"' + "\\u0041" * (size // 6), 1),
        text[:-1] + "," * size,
        text + " " * size,
        '{"report":[{"lv":[' + ",".join(["{}"] * (size // 3)) + "]}]}",
        '{"blockdevices":[' + ",".join(["{}"] * (size // 3)) + "]}",
        '{"blockdevices":[{"children":[' + ",".join(["{}"] * (size // 3)) + "]}]}",
        "[" + ",".join(['{"name":"v"}'] * (size // 13)) + "]",
        "9" * size,
    ]


@pytest.mark.parametrize("tool", READERS)
def test_a_megabyte_of_anything_is_dealt_with_soon(tool: str) -> None:
    _, reader, refusal = READERS[tool]
    for text in _large(tool, 1_000_000):
        begun = time.process_time()
        _read(reader, refusal, text)
        assert (took := time.process_time() - begun) < SOON, f"{text[:40]}: {took:.1f} s"


@pytest.mark.parametrize("tool", READERS)
def test_no_output_takes_many_times_its_size_in_memory(tool: str) -> None:
    _, reader, refusal = READERS[tool]
    for text in _large(tool, 50_000):
        tracemalloc.start()
        _read(reader, refusal, text)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert most < LITTLE, f"{text[:40]}: {most} bytes"


def test_the_drive_that_a_node_runs_from_is_never_read_as_free() -> None:
    """Of a listing that is wrong in one place, a drive that is taken for clean is one that says so in full."""
    for place in _places(LSBLK):
        for odd in ODD:
            if _says_nothing_is_there(place, odd):
                continue
            devices = _read(read_block_devices, UnreadableListing, json.dumps(_put(LSBLK, place, odd)))
            for device in devices or ():  # type: ignore[attr-defined]
                if device.name == "sda" and is_drive(device):
                    assert is_system(device) or not is_clean(device), (place, odd)


def _says_nothing_is_there(place: tuple[Any, ...], odd: Any) -> bool:
    """Whether the change itself takes away what made it a system drive: no reader can know of that."""
    return "children" in place or odd in ("", None, [], [None]) or place in ((), ("blockdevices",), ("blockdevices", 0))


@pytest.mark.parametrize("point", [5, {"a": "/"}, [["/"]], [{"path": "/"}], True])
def test_a_mount_point_in_another_form_is_not_passed_over(point: Any) -> None:
    for field in ("mountpoint", "mountpoints"):
        listing = {"blockdevices": [{"name": "sda", "type": "disk", "size": 1, "serial": "s", field: point}]}
        with pytest.raises(UnreadableListing, match="mount point"):
            read_block_devices(json.dumps(listing))


@pytest.mark.parametrize("path", ["-f", "--help", "/etc/passwd", "/dev/../etc/passwd", "sda", "/dev/s\nda"])
def test_no_path_of_a_listing_becomes_an_option_or_a_file(path: str) -> None:
    with pytest.raises(UnreadableListing):
        read_block_devices(json.dumps({"blockdevices": [{"name": "sda", "path": path}]}))
    with pytest.raises(UnreadableReport):
        read_devices(json.dumps(_put(PVS, ("report", 0, "pv", 0, "pv_name"), path)))


@pytest.mark.parametrize("name", ["", "-y", "--force", "a/b", "a b", "@tag", "é", "a\n"])
def test_no_name_of_a_report_becomes_an_option_or_another_object(name: str) -> None:
    for tree, field, reader in ((LVS, "lv_name", VolumesReader().read), (LVS, "vg_name", VolumesReader().read)):
        with pytest.raises(UnreadableReport):
            reader(json.dumps(_put(tree, ("report", 0, "lv", 0, field), name.replace("\n", "\n-x"))))
    with pytest.raises(UnreadableReport):
        read_groups(json.dumps(_put(VGS, ("report", 0, "vg", 0, "vg_name"), name.replace("\n", "\n-x"))))


def test_names_that_are_read_can_be_given_to_lvm() -> None:
    for odd in (each for each in ODD if isinstance(each, str)):
        volumes = _read(
            VolumesReader().read, UnreadableReport, json.dumps(_put(LVS, ("report", 0, "lv", 0, "vg_name"), odd))
        )
        for volume in volumes or ():  # type: ignore[attr-defined]
            assert not volume.place.startswith("-")
            assert why_no_group(volume.group) == "" or volume.group in (".", "..") or len(volume.group) > 127


def test_no_line_of_events_and_no_report_of_a_drive_breaks_an_agent() -> None:
    random = Random(1)
    words = ["exists", "change", "destroy", "resource", "peer-device", "-", "name:v", "name:", ":", "volume:x",
             "done:∞", "peer-node-id:-1", "\x00", "é", "x" * 10_000, "name:all"]  # fmt: skip
    for _ in range(2000):
        parse_event(" ".join(random.choices(words, k=random.randrange(8))))
    for text in (
        "",
        "null",
        "[]",
        '{"ata_smart_attributes": 5}',
        '{"nvme_smart_health_information_log": []}',
        "9" * 9999,
    ):
        smart.judge(text)
    begun = time.process_time()
    parse_event("change resource " + "name:v " * 200_000)
    assert time.process_time() - begun < SOON
