"""Whose word counts: a fresh agent's own, else fresh peers', else nobody's."""

from __future__ import annotations

from dataclasses import replace as changed
from functools import cached_property
from typing import Any

import pytest

from quorate.api.storage.datamesh import Datamesh, Member
from quorate.api.storage.drbd import CommandError, DrbdErrors
from quorate.api.storage.rv import AttachRequest, AttachSource
from quorate.api.struct import replace
from quorate.volumes.view import ReplicaView, VolumeView
from tests.volumes.volume.making import (
    NOW,
    TB,
    C,
    formed,
    group_name,
    joined,
    member,
    members_of,
    name,
    node,
    node_view,
    picture,
    piece,
    pool,
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


def test_an_agent_that_cannot_look_at_its_kernel_is_believed_no_more_than_a_silent_one() -> None:
    def blinded(each: ReplicaView) -> ReplicaView:
        errors = DrbdErrors(last_status_error=CommandError(reason="StatusUnreadable"))
        drbd = replace(each.replica.status.drbd, errors=errors)
        return changed(each, replica=replace(each.replica, status=replace(each.replica.status, drbd=drbd)))

    before = formed()
    view = changed(before, replicas=tuple(blinded(each) if each.id == 0 else each for each in before.replicas))
    found, blind = view.state_of(name(0)), view.by_name[name(0)]
    assert (found.up, found.quorum, found.said_by) == (True, None, (name(1), name(2)))
    assert blind.report is None
    assert not blind.confirms(1)


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


# What is worked out once.


def everything(view: VolumeView) -> dict[str, Any]:
    """All that a view can be asked, as it answers now."""
    found = {entry: getattr(view, entry) for entry in vars(VolumeView) if _is_asked(entry)}
    names = [each.name for each in view.members]
    return found | {"states": [view.state_of(each) for each in names], "eligible": view.eligible(node(0))}


def _is_asked(entry: str) -> bool:
    return isinstance(vars(VolumeView)[entry], cached_property | property)


@pytest.mark.parametrize(
    "changes",
    [
        {"message": "other words"},
        {"attach_requests": (AttachRequest(node_name=node(1), since=NOW, source=AttachSource.ATTACHMENT),)},
        {"datamesh_revision": 7},
        {"datamesh": Datamesh(members=members_of(C)[:2])},
        {"datamesh": Datamesh(members=tuple(replace(each, hidden=True) for each in members_of(C)))},
    ],
)
def test_a_view_with_another_status_answers_as_one_that_was_made_with_it(changes: dict[str, Any]) -> None:
    before = stale(showing(formed(), 1, disk="Outdated"), 2)
    everything(before)
    after = before.with_status(replace(before.volume.status, **changes))
    assert everything(after) == everything(changed(after))


def test_a_pool_that_has_changed_lists_other_nodes() -> None:
    view = formed()
    assert view.eligible(node(4)) is not None
    assert changed(view, rsp=pool(range(3))).eligible(node(4)) is None
    assert view.eligible(node(4)) is not None


def test_the_logical_volume_is_the_one_on_the_disk_that_is_chosen() -> None:
    found = formed().replicas[0]
    assert found.logical_volume == piece(0)
    spec = replace(found.replica.spec, lvm_volume_group_name=group_name(4))
    assert changed(found, replica=replace(found.replica, spec=spec)).logical_volume is None
    assert changed(found, volumes=()).logical_volume is None
