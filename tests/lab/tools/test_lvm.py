"""LVM's commands on a simulated node."""

from __future__ import annotations

import json

import pytest

from quorate.lab.kernel import metadata
from tests.lab.tools.conftest import Node


def report(node: Node, command: str) -> list[dict[str, str]]:
    result = node.run(f"{command} --reportformat json --units b --nosuffix")
    (rows,) = json.loads(result.stdout)["report"][0].values()
    found: list[dict[str, str]] = rows
    return found


def test_a_created_volume_is_reported_and_takes_its_extents(node: Node) -> None:
    assert node.run("lvcreate -y -n a -L 30M --addtag mine vg0").output == '  Logical volume "a" created.\n'
    (volume,) = report(node, "lvs -o lv_name,vg_name,lv_size,lv_attr,lv_tags,lv_path")
    assert volume == {
        "lv_name": "a",
        "vg_name": "vg0",
        "lv_size": str(32 << 20),
        "lv_attr": "-wi-a-----",
        "lv_tags": "mine",
        "lv_path": "/dev/vg0/a",
    }
    (group,) = report(node, "vgs -o vg_name,vg_size,vg_free,vg_extent_size")
    assert int(group["vg_size"]) - int(group["vg_free"]) == 32 << 20


@pytest.mark.parametrize(
    ("line", "code", "complaint"),
    [
        (
            "lvcreate -y -n a -L 2G vg0",
            5,
            'Volume group "vg0" has insufficient free space (254 extents): 512 required.',
        ),
        ("lvcreate -y -n a -L 4M nogroup", 5, 'Volume group "nogroup" not found'),
        ("lvremove -y vg0/none", 5, 'Failed to find logical volume "vg0/none"'),
        ("lvcreate --no-such-option", 3, "--no-such-option"),
        ("lvs -o nosuchfield vg0", 3, "nosuchfield"),
        ("vgs nogroup", 5, 'Volume group "nogroup" not found'),
        ("lvextend -L +4G vg0/b", 5, "insufficient free space"),
        ("lvextend -L 4M vg0/b", 5, "matches existing size"),
        ("lvreduce -L 8M vg0/b", 5, "not less than existing size"),
        ("vgcreate vg0 /dev/sdb", 5, "A volume group called vg0 already exists."),
        ("vgcreate vg1 /dev/sda", 5, "already in a volume group"),
        ("pvremove /dev/sda", 5, "is used by a volume group"),
        ("pvcreate /dev/sdz", 5, "No device found for /dev/sdz."),
        ("vgreduce vg0 /dev/sda", 5, "still in use"),
    ],
)
def test_what_cannot_be_done_is_refused_with_lvms_exit_code(node: Node, line: str, code: int, complaint: str) -> None:
    node.run("lvcreate -y -n b -L 4M vg0")
    result = node.run(line, expect=code)
    assert complaint in result.stderr


def test_a_volume_says_by_how_much_it_grew(node: Node) -> None:
    node.run("lvcreate -y -n a -L 32M vg0")
    assert node.run("lvextend -L 48M vg0/a").output == (
        "  Size of logical volume vg0/a changed from 32.00 MiB (8 extents) to 48.00 MiB (12 extents).\n"
        "  Logical volume vg0/a successfully resized.\n"
    )
    assert node.run("blockdev --getsize64 /dev/vg0/a").output == f"{48 << 20}\n"
    node.run("lvresize -f -L 32M vg0/a")
    assert node.run("blockdev --getsize64 /dev/vg0/a").output == f"{32 << 20}\n"


def test_a_volume_comes_back_with_what_lay_on_its_extents_save_its_first_block(node: Node) -> None:
    node.run("lvcreate -y -n a -L 8M vg0; dd if=/dev/urandom of=/dev/vg0/a bs=1M; lvremove -y vg0/a", expect=None)
    node.run("lvcreate -y -n b -L 4M vg0")
    node.run("lvextend -L 8M vg0/b")
    device = node.host.block_device("/dev/vg0/b")
    assert device is not None
    held = list(device.contents.runs(0, device.size // 4096))
    assert [(start, end, tag is None) for start, end, tag in held][:1] == [(0, 1, True)]
    assert {tag[0] for _, _, tag in held[1:]} == {"random"}  # type: ignore[index]
    assert sum(end - start for start, end, _ in held) == 2048


def test_a_signature_of_drbd_is_wiped_and_said_unless_wiping_is_off(node: Node) -> None:
    def recreate(options: str) -> str:
        node.run("lvcreate -y -W n -n a -L 8M vg0")
        device = node.host.block_device("/dev/vg0/a")
        assert device is not None
        metadata.create(device, 7)
        node.run("lvremove -y vg0/a")
        return node.run(f"lvcreate -y {options} -n a -L 8M vg0").output

    assert "Wiping drbd signature on /dev/vg0/a." in recreate("")
    assert node.run("drbdmeta 1 v09 /dev/vg0/a internal dump-md", expect=1).output == "No valid meta data found\n"
    node.run("lvremove -y vg0/a")
    assert "Wiping" not in recreate("-W n")
    assert node.run("drbdmeta 1 v09 /dev/vg0/a internal dump-md").output.startswith("# DRBD meta data dump")


def test_shrinking_back_brings_metadata_back(node: Node) -> None:
    node.run("lvcreate -y -n a -L 8M vg0")
    node.run("drbdmeta 1 v09 /dev/vg0/a internal create-md 7 --force")
    node.run("lvextend -L 12M vg0/a")
    node.run("drbdmeta 1 v09 /dev/vg0/a internal dump-md", expect=1)
    node.run("lvreduce -f -L 8M vg0/a")
    node.run("drbdmeta 1 v09 /dev/vg0/a internal dump-md")


def test_thin_volumes_take_from_their_pool_what_is_written(node: Node) -> None:
    node.run("lvcreate -y -T -L 100M vg0/pool")
    node.run("lvcreate -y -V 200M --thinpool pool -n thin vg0")
    node.run("dd if=/dev/urandom of=/dev/vg0/thin bs=1M count=50")
    rows = {row["lv_name"]: row for row in report(node, "lvs -o lv_name,lv_size,lv_attr,pool_lv,data_percent vg0")}
    assert rows["pool"] | {"lv_size": ""} == {
        "lv_name": "pool",
        "lv_size": "",
        "lv_attr": "twi-a-tz--",
        "pool_lv": "",
        "data_percent": "50.00",
    }
    assert (rows["thin"]["pool_lv"], rows["thin"]["data_percent"]) == ("pool", "25.00")
    node.run("lvremove -y vg0/pool")
    assert report(node, "lvs -o lv_name") == []


def test_a_group_grows_by_a_drive_and_gives_it_back(node: Node) -> None:
    node.run("vgextend vg0 /dev/sdb")
    assert [row["pv_name"] for row in report(node, "pvs -o pv_name,vg_name")] == ["/dev/sda", "/dev/sdb"]
    node.run("vgreduce vg0 /dev/sdb; pvremove /dev/sdb")
    assert [row["pv_name"] for row in report(node, "pvs -o pv_name")] == ["/dev/sda"]


def test_a_pulled_drive_is_missing_and_its_volumes_fail(node: Node) -> None:
    node.run("lvcreate -y -n a -L 8M vg0; vgextend vg0 /dev/sdb")
    drive = node.host.pull_drive("A1")
    (group,) = report(node, "vgs -o vg_missing_pv_count")
    assert group == {"vg_missing_pv_count": "1"}
    assert "Input/output error" in node.run("dd if=/dev/zero of=/dev/vg0/a bs=4k count=1", expect=1).stderr
    node.host.insert_drive(drive)
    node.run("dd if=/dev/zero of=/dev/vg0/a bs=4k count=1")


def test_a_group_whose_drives_are_all_out_is_not_known_and_leaves_its_name_to_another(node: Node) -> None:
    node.run("lvcreate -y -n a -L 8M vg0")
    drive = node.host.pull_drive("A1")
    assert report(node, "vgs -o vg_name") == report(node, "lvs -o lv_name") == report(node, "pvs -o pv_name") == []
    assert "not found" in node.run("lvremove -y vg0/a", expect=5).stderr
    assert "/dev/vg0: already exists in filesystem" in node.run("vgcreate vg0 /dev/sdb", expect=3).stderr
    node.run("dmsetup remove vg0-a")
    node.run("vgcreate vg0 /dev/sdb")
    assert [row["lv_name"] for row in report(node, "lvs -o lv_name")] == []
    node.run("vgremove vg0")
    node.host.insert_drive(drive)
    assert [row["lv_name"] for row in report(node, "lvs -o lv_name")] == ["a"]


def test_devices_of_volumes_outlive_their_drive_and_go_from_the_top(node: Node) -> None:
    """As on the metal: facts/drbd9-agent, drive-pulled.txt."""
    node.run("lvcreate -y -n re-plica -L 8M vg0")
    node.run("lvcreate --yes --type thin-pool --zero y --size 32M --name thin vg0")
    node.run("lvcreate --yes --type thin --thinpool thin --name sparse --virtualsize 64M vg0")
    pool = ["vg0-thin", "vg0-thin-tpool", "vg0-thin_tdata", "vg0-thin_tmeta"]
    listed = "dmsetup info -c --noheadings --separator / -o name,open"
    assert node.run(listed).stdout.split() == [
        "vg0-re--plica/0", "vg0-sparse/0", "vg0-thin/0", "vg0-thin-tpool/2", "vg0-thin_tdata/1", "vg0-thin_tmeta/1",
    ]  # fmt: skip
    node.host.pull_drive("A1")
    assert "busy" in node.run("dmsetup remove vg0-thin_tmeta", expect=1).stderr
    for name in ("vg0-re--plica", "vg0-sparse", *pool):
        node.run("vgcreate vg0 /dev/sdb", expect=3)
        node.run(f"dmsetup remove {name}")
    assert node.run(listed).stdout == "No devices found\n"
    node.run("vgcreate vg0 /dev/sdb")


def test_a_node_that_boots_without_a_drive_has_no_devices_of_its_volumes(node: Node) -> None:
    node.run("lvcreate -y -n a -L 8M vg0")
    drive = node.host.pull_drive("A1")
    node.run("blockdev --getsize64 /dev/vg0/a")
    node.host.power_off()
    node.host.power_on()
    assert "No such file" in node.run("blockdev --getsize64 /dev/vg0/a", expect=1).stderr
    node.host.insert_drive(drive)
    node.run("blockdev --getsize64 /dev/vg0/a")


def test_a_pools_hidden_volumes_say_which_drives_are_under_it(node: Node) -> None:
    node.run("lvcreate --yes --type thin-pool --zero y --size 100M --name pool vg0")
    shown = {row["lv_name"]: row["devices"] for row in report(node, "lvs -a -o lv_name,devices")}
    assert shown == {"pool": "pool_tdata(0)", "[pool_tdata]": "/dev/sda(0)", "[pool_tmeta]": ""}
    assert [row["lv_name"] for row in report(node, "lvs -o lv_name")] == ["pool"]


def test_lvm_is_one_program_behind_all(node: Node) -> None:
    assert "2.03" in node.run("lvm version").output
    node.run("lvm lvcreate -y -n a -L 8M vg0")
    node.run("lvm frob", expect=2)


def test_cmp_tells_whether_a_file_is_the_beginning_of_a_device(node: Node) -> None:
    node.run("lvcreate -y -n a -L 8M vg0")
    node.host.files["/image"] = bytes(range(256)) * 64
    node.run("dd if=/image of=/dev/vg0/a bs=4M conv=fsync,nocreat status=progress")
    assert "EOF on /image" in node.run("cmp /image /dev/vg0/a", expect=1).stderr
    node.run("dd if=/dev/urandom of=/dev/vg0/a bs=4k count=1 seek=1")
    assert "differ: byte 4097" in node.run("cmp /image /dev/vg0/a", expect=1).stdout


def test_a_volume_grows_by_exactly_the_extents_that_are_named(node: Node) -> None:
    node.run("lvcreate -y -n a -L 8M vg0")
    node.run("lvcreate -y -n hole -L 8M vg0")
    node.run("lvcreate -y -n spare -L 12M vg0")
    node.run("lvremove -y vg0/hole")
    (spare,) = report(node, "lvs -o seg_pe_ranges vg0/spare")
    assert spare == {"seg_pe_ranges": "/dev/sda:4-6"}
    node.run("lvextend --size 20M vg0/a /dev/sda:4-6", expect=5)
    node.run("lvremove -y vg0/spare")
    node.run("lvextend --size 24M vg0/a /dev/sda:4-6", expect=5)
    node.run("lvextend --size 20M vg0/a /dev/sda:4-6")
    assert report(node, "lvs -o lv_size,seg_pe_ranges vg0/a") == [
        {"lv_size": str(20 << 20), "seg_pe_ranges": "/dev/sda:0-1 /dev/sda:4-6"}
    ]


@pytest.mark.parametrize("named", ["/dev/sda:x-y", "/dev/sdz:0-1", "/dev/sda:0-1"])
def test_extents_that_are_not_there_or_not_free_are_refused(node: Node, named: str) -> None:
    node.run("lvcreate -y -n a -L 8M vg0")
    node.run(f"lvextend --size 12M vg0/a {named}", expect=5)


def test_a_volume_made_again_under_its_name_is_another(node: Node) -> None:
    seen = []
    for _ in range(2):
        node.run("lvcreate -y -n a -L 8M vg0")
        seen += [row["lv_uuid"] for row in report(node, "lvs -o lv_uuid")]
        node.run("lvremove -y vg0/a")
    assert len(set(seen)) == 2


def test_metadata_at_a_former_end_are_found_on_a_mapping_of_the_beginning(node: Node) -> None:
    node.run("lvcreate -y -n a -L 8M vg0")
    node.run("drbdmeta 1000 v09 /dev/vg0/a internal create-md 7")
    node.run("lvextend -L 12M vg0/a")
    assert "No valid meta data found" in node.run("drbdmeta - v09 /dev/vg0/a internal dump-md", expect=1).output
    node.run("dmsetup create look --readonly --table '0 16384 linear /dev/vg0/a 0'")
    node.run("dmsetup create look --readonly --table '0 16384 linear /dev/vg0/a 0'", expect=1)
    node.run("lvremove -y vg0/a", expect=5)
    assert "max-peers 7" in node.run("drbdmeta - v09 /dev/mapper/look internal dump-md").output
    node.run("dmsetup remove look")
    node.run("dmsetup remove look", expect=1)
    node.run("lvremove -y vg0/a")


def test_one_that_was_made_anew_under_its_name_is_not_removed_by_the_uuid_of_the_first(node: Node) -> None:
    def uuid() -> str:
        return node.run("lvs --noheadings -o lv_uuid vg0/a").output.strip()

    node.run("lvcreate -y -n a -L 8M vg0")
    first = uuid()
    node.run("lvremove -y vg0/a; lvcreate -y -n a -L 8M vg0")
    second = uuid()
    assert first != second
    assert node.run(f"lvremove -y --select lv_uuid={first} vg0").output == ""
    assert uuid() == second
    node.run(f"lvremove -y --select lv_uuid={second} vg0")
    assert "Failed to find" in node.run("lvs vg0/a", expect=5).output
