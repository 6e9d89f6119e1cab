"""Replicas in messages: people know them by name and node, and want to know who uses them."""

from __future__ import annotations

from dataclasses import replace as changed

from quorate.api.meta import NodeName, ObjectMeta, VolumeName
from quorate.api.scalars import ReplicaName
from quorate.api.storage import ReplicatedVolumeAttachment
from quorate.api.storage.configuration import Replication
from quorate.api.storage.rva import ReplicatedVolumeAttachmentSpec
from quorate.api.struct import replace
from quorate.volumes.naming import in_use, named
from quorate.volumes.view import VolumeView
from tests.volumes.replica.making import LAYOUTS, name, node_name, picture

THREE = Replication.CONSISTENCY_AND_AVAILABILITY
FIRST, SECOND, THIRD = (ReplicaName(name(number)) for number in range(3))


def view(**spec: object) -> VolumeView:
    found = picture(LAYOUTS[THREE], THREE)
    assert found.rv is not None
    return changed(found, rv=replace(found.rv, spec=replace(found.rv.spec, **spec)))


def test_replicas_are_named_with_their_nodes_in_the_order_of_their_ids() -> None:
    assert named(view(), (THIRD, FIRST)) == f"{FIRST} on n0, {THIRD} on n2"
    assert named(view(), ()) == "none"


def test_of_many_with_long_names_only_so_many_are_named_as_there_is_room_for() -> None:
    found = view()
    for number in range(3):
        far = NodeName(f"{'x' * 150}{number}")
        members = tuple(
            replace(each, node_name=far) if each.node_id == number else each for each in found.datamesh.members
        )
        found = found.with_status(replace(found.volume.status, datamesh=replace(found.datamesh, members=members)))
    assert named(found, (FIRST, SECOND, THIRD)) == f"{FIRST} on {'x' * 150}0 and 2 more"


def test_who_holds_a_replica_is_named() -> None:
    spec = ReplicatedVolumeAttachmentSpec(replicated_volume_name=VolumeName("v"), node_name=node_name(0))
    wish = ReplicatedVolumeAttachment(metadata=ObjectMeta(name="work"), spec=spec)
    found = changed(view(publish_on=(node_name(1),)), attachments=(wish,))
    assert in_use(found, (FIRST, SECOND, THIRD)) == (
        f"{FIRST} on n0 (by ReplicatedVolumeAttachment work), {SECOND} on n1 (by publishOn), {THIRD} on n2"
    )
