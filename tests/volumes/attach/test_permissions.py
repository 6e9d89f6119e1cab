"""Which permissions an attachment waits for: those without whose members or disks it could not be written to."""

from __future__ import annotations

import dataclasses
from itertools import combinations

import pytest

from quorate.api.scalars import ReplicaName
from quorate.api.storage.configuration import Replication
from quorate.locks import Hold, Sort, Thing
from quorate.volumes.attach.guards import why_not
from quorate.volumes.attach.permissions import held_for
from quorate.volumes.attach.proposals import proposals
from quorate.volumes.view import VolumeView
from tests.volumes.attach.making import ONE, THREE, TIE, TWO, attached, cut, of
from tests.volumes.replica.making import NOW, name, node_name, settled, spoilt, with_device

NODE, DRIVE, REPLICA = Sort.NODE, Sort.DRIVE, Sort.REPLICA


def held(view: VolumeView, *holds: tuple[Sort, int]) -> VolumeView:
    """Permissions on things of members, by number."""
    named = {NODE: node_name, DRIVE: lambda number: f"drive-{number}", REPLICA: name}
    found = {
        ReplicaName(name(number)): (
            *(
                (Thing(sort, named[sort](number)), Hold(f"alice-p-{number + 1}", "alice", NOW))
                for sort, at in holds
                if at == number
            ),
        )
        for _, number in holds
    }
    return dataclasses.replace(view, holds=found)


@pytest.mark.parametrize(
    ("level", "user", "holds", "waits"),
    [
        # The node itself takes its user along.
        (ONE, 0, [(NODE, 0)], False),
        (TWO, 0, [(NODE, 0)], False),
        # A drive leaves its node, and whoever runs there, behind.
        (ONE, 0, [(DRIVE, 0)], True),
        (TWO, 0, [(DRIVE, 0)], True),
        (TIE, 0, [(DRIVE, 0)], False),
        (THREE, 0, [(DRIVE, 0)], False),
        (THREE, 0, [(REPLICA, 0)], False),
        # Another member.
        (TWO, 0, [(NODE, 1)], True),
        (TWO, 0, [(DRIVE, 1)], True),
        (TWO, 0, [(REPLICA, 1)], True),
        (TIE, 0, [(NODE, 1)], False),
        (TIE, 0, [(NODE, 2)], False),
        (THREE, 0, [(NODE, 1)], False),
        # Several together.
        (TIE, 0, [(NODE, 1), (NODE, 2)], True),
        (THREE, 0, [(NODE, 1), (NODE, 2)], True),
        (THREE, 0, [(NODE, 0), (NODE, 1)], False),
        (THREE, 0, [(DRIVE, 0), (NODE, 1)], True),
    ],
)
def test_an_attachment_waits_for_whom_it_could_not_do_without(
    level: Replication, user: int, holds: list[tuple[Sort, int]], waits: bool
) -> None:
    wait = held_for(held(settled(of(level, user)), *holds), node_name(user))
    assert (wait is not None) is waits, wait
    if wait is not None:
        assert wait.reason == "PermissionHeld"
        assert {blocker.name for blocker in wait.blockers} == {f"p-{number + 1}" for _, number in holds}


def test_only_those_that_are_in_the_way_are_named() -> None:
    wait = held_for(held(settled(of(TWO, 0)), (NODE, 0), (NODE, 1)), node_name(0))
    assert wait is not None
    assert [blocker.name for blocker in wait.blockers] == ["p-2"]


@pytest.mark.parametrize("level", [ONE, TWO])
def test_a_drive_under_the_user_is_asked_about_also_where_its_node_may_go_down(level: Replication) -> None:
    """The drive may be taken first, and its node be left up with whoever runs there."""
    view, mine = settled(of(level, 0)), ReplicaName(name(0))
    of_node = held(view, (NODE, 0)).holds[mine]
    of_drive = [(thing, Hold("bob-p-9", "bob", NOW)) for thing, _ in held(view, (DRIVE, 0)).holds[mine]]
    wait = held_for(dataclasses.replace(view, holds={mine: (*of_node, *of_drive)}), node_name(0))
    assert wait is not None
    assert [blocker.name for blocker in wait.blockers] == ["p-9"]


def test_a_permission_does_not_hide_that_there_is_no_quorum() -> None:
    view = spoilt(settled(of(TWO, 0)), 0, with_device(quorum=False))
    both = why_not(held(cut(view, 0, 1), (NODE, 1)), node_name(0))
    assert both is not None
    assert both.reason == "NoQuorum"
    served = why_not(held(settled(of(TWO, 0)), (NODE, 1)), node_name(0))
    assert served is not None
    assert served.reason == "PermissionHeld"


@pytest.mark.parametrize("level", [ONE, TWO, TIE, THREE])
def test_one_that_is_there_already_is_what_the_broker_asks_about(level: Replication) -> None:
    view = attached(settled(of(level, 0)), 0)
    numbers = range(len(view.members))
    for size in numbers:
        for chosen in combinations(numbers, size):
            assert held_for(held(view, *((NODE, number) for number in chosen)), node_name(0)) is None


def test_two_primaries_are_not_allowed_for_a_second_that_waits() -> None:
    view = attached(settled(of(TWO, 0, 1)), 0)
    assert "EnableMultiattach" in [kind for kind, _ in proposals(view)]
    assert "EnableMultiattach" not in [kind for kind, _ in proposals(held(view, (NODE, 0)))]
