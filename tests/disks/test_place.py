"""Where a disk is when several nodes, or none, show its UUID."""

from __future__ import annotations

import pytest

from quorate.api.conditions.inventory import Ready
from quorate.api.conditions.merging import merge
from quorate.api.longhorn.node import DiskStatus, NodeStatus
from quorate.api.meta import NodeName
from quorate.api.struct import replace
from quorate.disks.place import Place, choose, places_of
from tests.disks.making import NOW, UUID, inventory, schedule

VERDICTS = {"ready": Ready.READY(), "gone": Ready.VOLUME_GROUP_NOT_READY(), "silent": Ready.AGENT_NOT_READY()}


def place(node: str, how: str, name: str = "data") -> Place:
    return Place(NodeName(node), name, DiskStatus(disk_uuid=UUID, conditions=merge((), [VERDICTS[how]], now=NOW)))


@pytest.mark.parametrize(
    ("places", "chosen"),
    [
        ([], None),
        ([("n1", "ready")], "n1"),
        ([("n2", "ready")], "n2"),
        # It moves when its node says that it is not there, and another has it.
        ([("n1", "gone"), ("n2", "ready")], "n2"),
        # It stays while its node says nothing: that may come back.
        ([("n1", "silent"), ("n2", "ready")], "n1"),
        # Of two copies of one disk, the one with the ledger is used.
        ([("n0", "ready"), ("n1", "ready")], "n1"),
        # Nobody can use it: it stays where it was, or goes where it was last seen.
        ([("n1", "gone"), ("n2", "gone")], "n1"),
        ([("n1", "gone"), ("n2", "silent")], "n1"),
        ([("n2", "gone"), ("n3", "silent")], "n2"),
    ],
)
def test_where_a_ledger_of_node_n1_goes(places: list[tuple[str, str]], chosen: str | None) -> None:
    found = choose(schedule(node="n1"), tuple(place(*each) for each in places))
    assert (None if found is None else found.node) == chosen


def test_a_new_ledger_goes_to_the_first_usable_disk() -> None:
    found = choose(None, (place("n1", "silent"), place("n2", "ready"), place("n3", "ready")))
    assert found is not None
    assert found.node == "n2"


def test_two_names_for_one_disk_on_one_node_are_two_places() -> None:
    found = choose(schedule(disk="same"), (place("n1", "ready"), place("n1", "ready", "same")))
    assert found is not None
    assert found.name == "same"


def test_disks_are_found_by_uuid_whatever_its_case() -> None:
    disks = {"data": DiskStatus(disk_uuid="AbC"), "other": DiskStatus(disk_uuid="xyz"), "new": DiskStatus()}
    node = replace(inventory(), status=NodeStatus(disk_status=disks))
    assert [place.name for place in places_of("abc", (node,))] == ["data"]
