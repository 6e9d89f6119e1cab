"""A step that changes votes claims its members before it is written, and waits for whoever may take one down."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime

import pytest

from quorate.api.meta import NodeName, VolumeName
from quorate.api.quantity import Quantity
from quorate.api.storage import LVMVolumeGroup
from quorate.api.storage.configuration import Replication
from quorate.api.storage.drbd import ReplicaType
from quorate.api.storage.lvg import GroupDevice, LocalGroup, LVMVolumeGroupSpec, LVMVolumeGroupStatus
from quorate.api.struct import replace
from quorate.engine import PatchStatus, Plan
from quorate.errors import Conflict
from quorate.locks import Change, Hold, LockTable, Sort, Thing
from quorate.volumes.locking import claimed, locks_of, with_holds
from quorate.volumes.transitions import advance, unconfirmed_vote_step
from quorate.volumes.view import VolumeView
from tests.volumes.test_observe import fanned_out, formed_world
from tests.volumes.transitions.story import VOLUME, Story
from tests.volumes.volume.making import group, group_name, name, node

D = ReplicaType.DISKFUL
BOTH = Replication.CONSISTENCY_AND_AVAILABILITY
UNTIL = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)
RESTART = Hold("alice-p-7", "alice", UNTIL)


def pass_over(story: Story, table: LockTable) -> tuple[VolumeView, Plan | None]:
    """What the reconciler would plan, if anything is to be written."""
    story.report()
    view = with_holds(story.view(), table)
    asked = advance(view, story.now, locks_of(view))
    assert asked is not None
    if asked.status is None:
        return view, None
    written = PatchStatus(story.rv, replace(story.rv, status=asked.status), if_unchanged=True)
    return view, claimed(view, Plan(transition=written), table)


def go_on(story: Story, table: LockTable, passes: int = 16) -> list[str]:
    """Go on until nothing moves; returns the steps that were claimed while they were written."""
    claims: list[str] = []
    table.on_claim(lambda volume: claims.append(found.what) if (found := table.change_of(volume)) else None)
    for _ in range(passes):
        _, plan = pass_over(story, table)
        if plan is not None:
            assert plan.transition is not None
            give_back = plan.claim() if plan.claim is not None else lambda: None
            story.rv = plan.transition.intended  # type: ignore[assignment]
            give_back()
        story.agents()
    return claims


def test_exactly_the_steps_that_the_broker_must_not_disturb_are_claimed() -> None:
    story = Story(BOTH, [D, D, D], 2)
    story.add(3, D)
    assert go_on(story, LockTable()) == ["Show of v-3"]
    story.delete(0)
    assert go_on(story, LockTable()) == ["Hide of v-0", "Forget of v-0"]


def test_a_claim_covers_every_member_also_the_one_that_comes() -> None:
    story = Story(BOTH, [D, D, D], 2)
    story.add(3, D)
    table = LockTable()
    for _ in range(16):
        _, plan = pass_over(story, table)
        if plan is not None and plan.claim is not None:
            break
        if plan is not None and plan.transition is not None:
            story.rv = plan.transition.intended  # type: ignore[assignment]
        story.agents()
    else:
        pytest.fail("nothing was claimed")
    plan.claim()
    for number in range(4):
        with pytest.raises(Conflict):
            table.hold(RESTART, {Thing(Sort.NODE, f"n{number}")})
        with pytest.raises(Conflict):
            table.hold(RESTART, {Thing(Sort.REPLICA, f"v-{number}")})
    table.hold(RESTART, {Thing(Sort.NODE, "n4")})


@pytest.mark.parametrize("thing", [Thing(Sort.NODE, "n2"), Thing(Sort.REPLICA, "v-2")], ids=str)
def test_a_step_waits_for_a_permission_and_names_it_its_owner_and_its_end(thing: Thing) -> None:
    story = Story(BOTH, [D, D, D], 2)
    story.add(3, D)
    table = LockTable()
    table.hold(RESTART, {thing})
    assert go_on(story, table) == []
    assert unconfirmed_vote_step(story.rv) is None
    view = with_holds(story.view(), table)
    asked = advance(view, story.now, locks_of(view))
    assert asked is not None
    [wait] = asked.waits
    assert wait.reason == "PermissionHeld"
    assert wait.message == f"{thing} may go down by permission alice-p-7 of alice, until 2026-11-16 12:00:00 UTC"
    assert [str(blocker) for blocker in wait.blockers] == ["Permission p-7"]
    table.let_go("alice-p-7")
    assert go_on(story, table) == ["Show of v-3"]


def test_a_permission_on_a_drive_concerns_the_members_that_lie_on_it() -> None:
    story = Story(BOTH, [D, D, D], 2)
    device = GroupDevice(path="/dev/sdb", drive_uuid="drive-1", size=Quantity("1Gi"))
    spec = LVMVolumeGroupSpec(actual_vg_name_on_the_node="vg", local=LocalGroup(node_name=NodeName("n1")))
    found = LVMVolumeGroup(spec=spec, status=LVMVolumeGroupStatus(devices=(device,)))
    seen = story.view()
    replicas = tuple(dataclasses.replace(each, group=found) if each.id == 1 else each for each in seen.replicas)
    view = dataclasses.replace(seen, replicas=replicas)
    table = LockTable()
    table.hold(RESTART, {Thing(Sort.DRIVE, "drive-1")})
    table.hold(Hold("bob-p-8", "bob", None), {Thing(Sort.DRIVE, "drive-2")})
    assert set(with_holds(view, table).holds) == {"v-1"}


def test_a_permission_that_came_between_look_and_write_stops_the_write() -> None:
    story = Story(BOTH, [D, D, D], 2)
    table = LockTable()
    story.add(3, D)
    go_on(story, table)
    story.delete(0)
    _, plan = pass_over(story, table)
    assert plan is not None
    assert plan.claim is not None
    table.hold(RESTART, {Thing(Sort.NODE, "n1")})
    with pytest.raises(Conflict, match="held by permission alice-p-7"):
        plan.claim()


def test_a_lost_member_is_replaced_although_its_node_is_held() -> None:
    story = Story(BOTH, [D, D, D], 2)
    table = LockTable()
    table.hold(RESTART, {Thing(Sort.NODE, "n2")})
    story.lose(2)
    story.not_ready.add(2)
    story.add(3, D)
    assert go_on(story, table) == ["Show of v-3"]


def test_what_a_permission_holds_concerns_the_volumes_that_are_there() -> None:
    world = formed_world()
    assert fanned_out(world, "replica", name(1)) == {"v"}
    assert fanned_out(world, "replica", "w-1") == set()
    with_drive = group(0)
    device = GroupDevice(path="/dev/sdb", drive_uuid="drive-1", size=Quantity("1Gi"))
    with_drive = replace(with_drive, status=replace(with_drive.status, devices=(device,)))
    world.objects = [each for each in world.objects if each.name != group_name(0)] + [with_drive]
    assert fanned_out(world, "drive", "drive-1") == {"v"}
    assert fanned_out(world, "drive", "drive-2") == set()
    assert fanned_out(world, "node", node(0)) == {"v"}


def test_a_volume_of_another_name_is_not_claimed_for() -> None:
    table = LockTable()
    table.claim(Change(VolumeName("other"), "Show of other-1"), {Thing(Sort.NODE, "n9")})
    assert table.change_of(VOLUME) is None
