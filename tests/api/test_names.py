from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.api import labels, names
from quorate.api.meta import NodeName, VolumeName
from quorate.api.scalars import ReplicaName

VOLUMES = st.from_regex(r"[a-z0-9]([a-z0-9.-]{0,118}[a-z0-9])?", fullmatch=True).map(VolumeName)
OBJECT_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")


@given(VOLUMES, st.integers(0, 7))
def test_a_replicas_name_tells_its_volume_and_its_id(volume: VolumeName, replica_id: int) -> None:
    name = names.replica(volume, replica_id)
    assert name == f"{volume}-{replica_id}"
    assert (names.volume_of_replica(name), names.replica_id(name)) == (volume, replica_id)


@pytest.mark.parametrize("replica_id", [-1, 8])
def test_m18_the_ninth_member_is_refused_with_the_range(replica_id: int) -> None:
    with pytest.raises(ValueError, match="out of range: allowed are 0 to 7"):
        names.replica(VolumeName("v"), replica_id)


@pytest.mark.parametrize("name", ["v", "v-8", "v-00", "-1", "v-1\n", ""])
def test_what_is_not_a_replicas_name_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="is not a replica's name"):
        names.replica_id(ReplicaName(name))


def test_a_disk_is_named_by_its_group_or_by_group_and_pool() -> None:
    assert names.disk("data") == "data"
    assert names.disk("data", "thin") == "data/thin"


def test_a_replica_has_another_logical_volume_on_every_disk() -> None:
    found = {
        names.logical_volume("v-0", "a"),
        names.logical_volume("v-0", "b"),
        names.logical_volume("v-0", "a", "b"),
        names.logical_volume("v-0", "ab"),
        names.logical_volume("v-1", "a"),
    }
    assert len(found) == 5


@given(VOLUMES, st.integers(0, 7), st.text(min_size=1, max_size=60))
def test_a_logical_volumes_name_is_an_object_name_that_begins_with_its_replicas(
    volume: VolumeName, replica_id: int, group: str
) -> None:
    replica = names.replica(volume, replica_id)
    name = names.logical_volume(replica, group)
    assert re.fullmatch(re.escape(replica) + "-[0-9a-f]{8}", name)
    assert OBJECT_NAME.fullmatch(name)
    assert name == names.logical_volume(replica, group)
    assert names.owner_of_logical_volume(name) == replica


def test_the_logical_volumes_names_of_a_running_cluster_never_change() -> None:
    assert names.logical_volume("v-0", "vg-1") == "v-0-c900fb97"
    assert names.logical_volume("v-0", "vg-1", "tp-1") == "v-0-6620b1ea"


def test_a_ledger_is_named_by_its_disks_uuid_in_lower_case() -> None:
    assert names.disk_schedule("Xq3K7a-QwEr") == "xq3k7a-qwer"


def test_the_other_names_of_the_contract() -> None:
    volume = VolumeName("pvc-1")
    assert names.formation_operation(volume) == "pvc-1-formation"
    assert names.kernel_resource(volume) == "pvc-1"
    assert names.device_path(17) == "/dev/drbd17"
    assert names.agent_lease(NodeName("n1")) == "quorate-agent-n1"
    assert (names.request(3), names.permission(4), names.notification(5)) == ("r-3", "p-4", "n-5")
    assert names.broker_id("alice", names.request(3)) == "alice-r-3"


def test_a_csi_attachment_that_is_too_long_is_shortened_and_stays_distinct() -> None:
    volume = VolumeName("v" * 120)
    left = names.csi_attachment(volume, NodeName("n" * 200 + "a"))
    right = names.csi_attachment(volume, NodeName("n" * 200 + "b"))
    assert names.csi_attachment(VolumeName("v"), NodeName("n")) == "csi-v-n"
    assert len(left) == len(right) == 253
    assert left != right


@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_a_drives_broker_name_can_be_read_back(node: int, drive: int) -> None:
    assert names.parse_pdisk(names.pdisk(node, drive)) == (node, drive)


@given(st.tuples(*[st.integers(0, 10**6)] * 5))
def test_a_replicas_broker_name_can_be_read_back(parts: tuple[int, int, int, int, int]) -> None:
    assert names.parse_vdisk(names.vdisk(*parts)) == parts


@pytest.mark.parametrize("text", ["pdisk-1", "pdisk-01-1", "pdisk-1-1-1", "pdisk-1-1\n", "Pdisk-1-1", "vdisk-1-1-1-1"])
def test_broker_names_are_read_strictly(text: str) -> None:
    assert names.parse_pdisk(text) is None
    assert names.parse_vdisk(text) is None


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("alice-r-17", ("r", 17)),
        ("a-b-p-1", ("p", 1)),
        ("x-n-9", ("n", 9)),
        ("alice-q-1", None),
        ("r-1", None),
        ("a-r-0", None),
    ],
)
def test_a_broker_id_tells_what_it_is_of(text: str, parsed: tuple[str, int] | None) -> None:
    assert names.parse_broker_id(text) == parsed


@given(VOLUMES, st.integers(0, 7))
def test_the_name_of_a_logical_volume_tells_its_volume(volume: VolumeName, replica_id: int) -> None:
    piece = names.logical_volume(names.replica(volume, replica_id), "data")
    assert names.volume_of_logical_volume(piece) == volume


def test_a_logical_volume_of_nobodys_replica_tells_none() -> None:
    assert names.volume_of_logical_volume(names.logical_volume("debian-copy", "data")) is None


@given(VOLUMES)
def test_any_name_makes_a_label_that_kubernetes_takes_and_that_is_its_own(volume: VolumeName) -> None:
    value = labels.value(volume)
    assert re.fullmatch(r"[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?", value)
    assert value == volume or labels.value(f"{volume}x") != value
