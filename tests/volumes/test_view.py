"""Whose word counts: a fresh agent's own, else fresh peers', else nobody's."""

from __future__ import annotations

from dataclasses import replace as changed
from typing import Any

import pytest

from quorate.api.storage.datamesh import Member
from quorate.api.struct import replace
from quorate.volumes.view import ReplicaView, VolumeView
from tests.volumes.volume.making import (
    TB,
    C,
    formed,
    joined,
    member,
    members_of,
    name,
    node_view,
    picture,
    shown,
    status,
    volume,
)


def stale(view: VolumeView, *numbers: int) -> VolumeView:
    """The same, with agents that have gone silent."""
    replicas = tuple(
        changed(each, node=node_view(each.id, fresh=False)) if each.id in numbers else each for each in view.replicas
    )
    return changed(view, replicas=replicas)


def showing(view: VolumeView, number: int, **more: Any) -> VolumeView:
    """The same, with a member whose kernel shows something else."""

    def change(each: ReplicaView) -> ReplicaView:
        found = each.replica.status
        drbd = replace(found.drbd, status=shown(number, view.members, **more))
        return changed(each, replica=replace(each.replica, status=replace(found, drbd=drbd)))

    return changed(view, replicas=tuple(change(each) if each.id == number else each for each in view.replicas))


def test_a_fresh_members_own_word_counts_whatever_its_peers_remember() -> None:
    found = showing(formed(), 0, disk="Outdated", role="Primary").state_of(name(0))
    assert (found.up, found.disk, found.role, found.quorum, found.said_by) == (
        True,
        "Outdated",
        "Primary",
        True,
        (name(0),),
    )


def test_a_stale_members_report_does_not_count_and_its_fresh_peers_does() -> None:
    view = stale(showing(formed(), 0, disk="Failed"), 0)
    found = view.state_of(name(0))
    assert (found.up, found.disk, found.quorum, found.said_by) == (True, "UpToDate", None, (name(1), name(2)))


def test_what_a_peer_remembers_of_a_cut_link_is_not_said() -> None:
    view = stale(showing(showing(formed(), 1, link="Connecting"), 2, link="Connecting"), 0)
    assert not view.state_of(name(0)).up


def test_when_nobody_says_it_is_down() -> None:
    view = stale(formed(), 0, 1, 2)
    assert [view.state_of(name(number)).up for number in range(3)] == [False] * 3


def test_a_fresh_agent_without_the_resource_says_that_it_is_down() -> None:
    view = formed()
    bare = tuple(
        changed(
            each,
            replica=replace(
                each.replica, status=replace(each.replica.status, drbd=replace(each.replica.status.drbd, status=None))
            ),
        )
        if each.id == 0
        else each
        for each in view.replicas
    )
    found = changed(view, replicas=bare).state_of(name(0))
    assert not found.up
    assert found.said_by == (name(0),)


@pytest.mark.parametrize(
    ("cut", "silent", "connected"),
    [
        ((), (), True),
        ((0,), (), False),
        ((1,), (), False),
        ((), (0,), True),
        ((1,), (0,), False),
        # The silent one's old word is no word.
        ((0,), (0,), True),
        ((), (0, 1), False),
    ],
)
def test_two_are_connected_if_every_fresh_end_says_so_and_there_is_one(
    cut: tuple[int, ...], silent: tuple[int, ...], connected: bool
) -> None:
    view = formed()
    for number in cut:
        view = showing(view, number, link="Connecting")
    assert stale(view, *silent).connected(name(0), name(1)) is connected


def test_a_member_whose_replica_object_is_gone_is_known_by_its_peers() -> None:
    view = formed()
    assert changed(view, replicas=view.replicas[1:]).state_of(name(0)).up


def test_a_revision_is_confirmed_only_by_the_word_of_a_living_agent() -> None:
    replica = formed().replicas[0]
    assert replica.confirms(2)
    assert not replica.confirms(3)
    assert not stale(formed(), 0).replicas[0].confirms(2)


def test_with_another_status_the_replicas_are_members_of_that_one() -> None:
    view = formed()
    less = replace(view.volume.status, datamesh=replace(view.datamesh, members=members_of(C)[:2]))
    assert [each.member is not None for each in view.with_status(less).replicas] == [True, True, False]
    assert view.with_status(view.volume.status) is view


def test_a_resync_is_seen_from_either_end() -> None:
    assert not formed().resyncing()
    assert showing(formed(), 1, flow="SyncTarget").resyncing()
    assert not stale(showing(formed(), 1, flow="SyncTarget"), 1).resyncing()


def test_scheduled_means_a_node_and_for_a_copy_a_disk() -> None:
    members: tuple[Member, ...] = (member(0), member(1, TB))
    view = picture(volume(status(None, members=members)), [joined(0, members), joined(1, members)])
    assert [each.scheduled for each in view.replicas] == [True, True]
    bare = replace(view.replicas[0].replica, spec=replace(view.replicas[0].replica.spec, lvm_volume_group_name=None))
    assert not changed(view.replicas[0], replica=bare).scheduled
