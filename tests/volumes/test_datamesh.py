"""A member's config, field by field, from one revision."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.api.scalars import MAX_MEMBERS
from quorate.api.storage.configuration import Replication
from quorate.api.storage.datamesh import Member
from quorate.api.storage.drbd import Address, DrbdConfig
from quorate.api.storage.rv import AttachRequest, AttachSource
from quorate.api.struct import replace
from quorate.drbd.resource_file import missing
from quorate.volumes.datamesh import config_of
from quorate.volumes.view import VolumeView
from tests.volumes.volume.making import (
    GI,
    SECRET,
    TB,
    A,
    C,
    D,
    ago,
    connecting,
    formed,
    joined,
    member,
    name,
    node,
    picture,
    preconfiguring,
    status,
    volume,
)


def view_of(*members: Member, **changes: Any) -> VolumeView:
    found = status(None, C, members=members)
    return picture(volume(replace(found, **changes)), [joined(each.node_id, members) for each in members])


def config(view: VolumeView, number: int) -> DrbdConfig:
    found = config_of(view, view.by_name[name(number)])
    assert found is not None
    return found


@pytest.mark.parametrize("replication", list(Replication))
def test_a_members_config_is_complete_and_stamped(replication: Replication) -> None:
    view = connecting(replication)
    for replica in view.replicas:
        found = config(view, replica.id)
        assert missing(found) == ()
        assert found.datamesh_revision == 2
        assert found.shared_secret == SECRET
        assert int(found.size or 0) == GI
        assert found.device_minor == 3
        assert found.node_id == replica.id


def test_one_that_is_no_member_has_no_config_of_ours() -> None:
    view = preconfiguring()
    assert [config_of(view, replica) for replica in view.replicas] == [None] * 3


def test_the_address_is_the_agents_and_stays_as_it_is() -> None:
    view = formed()
    assert config(view, 0).address == Address(ipv4="10.0.0.1", port=7000)


def test_the_disk_is_the_logical_volume_of_the_group_as_the_node_calls_them() -> None:
    found = config(formed(), 1).disk
    assert found is not None
    assert found.startswith("/dev/vg/v-1-")


def peers(view: VolumeView, number: int) -> list[tuple[str, bool]]:
    return [(each.name, each.hidden) for each in config(view, number).peers]


def test_peers_are_the_other_members_with_what_they_are() -> None:
    """M24."""
    view = view_of(member(0), member(1, hidden=True), member(2, TB))
    assert peers(view, 0) == [(name(1), True), (name(2), False)]
    assert peers(view, 1) == [(name(0), False), (name(2), False)]


def test_members_without_a_disk_are_linked_only_to_those_with_one() -> None:
    view = view_of(member(0), member(1), member(2, TB), member(3, A, hidden=True))
    assert peers(view, 2) == [(name(0), False), (name(1), False)]
    assert peers(view, 0) == [(name(1), False), (name(2), False), (name(3), True)]


def test_an_excused_member_is_in_nobodys_files_and_has_its_own() -> None:
    view = view_of(member(0), member(1), member(2, excused=True))
    assert peers(view, 0) == [(name(1), False)]
    assert peers(view, 2) == [(name(0), False), (name(1), False)]


def test_hidden_down_and_primary_are_the_members_own() -> None:
    view = view_of(member(0, attached=True), member(1, hidden=True, down=True), member(2))
    assert [(config(view, each).primary, config(view, each).hidden, config(view, each).down) for each in range(3)] == [
        (True, False, False),
        (False, True, True),
        (False, False, False),
    ]


def test_only_the_diskful_are_told_to_forget_and_nobody_itself() -> None:
    view = view_of(member(0), member(1), member(2, TB))
    view = view.with_status(replace(view.volume.status, datamesh=replace(view.datamesh, forget=(1, 5))))
    assert [config(view, each).forget for each in range(3)] == [(1, 5), (5,), ()]


def queue(*numbers: int) -> tuple[AttachRequest, ...]:
    """First come, first."""
    return tuple(
        AttachRequest(node_name=node(number), since=ago(100 - place), source=AttachSource.ATTACHMENT)
        for place, number in enumerate(numbers)
    )


@pytest.mark.parametrize(
    ("attached", "asked", "yields"),
    [
        ((0,), (0,), []),
        ((0, 1), (0, 1), [1]),
        ((0, 1), (1, 0), [0]),
        # Nobody asks for it any more: it is on its way out.
        ((0, 1), (1,), [0]),
        ((0, 1), (), [1]),
    ],
)
def test_of_two_primaries_the_younger_yields(
    attached: tuple[int, ...], asked: tuple[int, ...], yields: list[int]
) -> None:
    members = (member(number, attached=number in attached) for number in range(3))
    view = view_of(*members, attach_requests=queue(*asked))
    assert [each for each in range(3) if config(view, each).yields] == yields


TYPES = st.sampled_from([D, D, A, TB])


@given(st.lists(st.tuples(TYPES, st.booleans(), st.booleans()), min_size=1, max_size=MAX_MEMBERS))
def test_whoever_links_to_a_member_is_linked_to_by_it(found: list[tuple[Any, bool, bool]]) -> None:
    """But for the excused, whom nobody links to."""
    members = tuple(
        member(number, each, hidden=hidden, excused=excused) for number, (each, hidden, excused) in enumerate(found)
    )
    view = view_of(*members)
    links = {number: {peer for peer, _ in peers(view, number)} for number in range(len(members))}
    for one in members:
        for other in members:
            if one.excused or other.excused:
                continue
            assert (other.name in links[one.node_id]) == (one.name in links[other.node_id])
