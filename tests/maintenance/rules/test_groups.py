"""How many parts of an erasure group may be away, by mode and species."""

from __future__ import annotations

import pytest

from quorate.api.maintenance.action import AvailabilityMode, HostState, IssueType, LockKind, StatusCode
from quorate.maintenance.nouns import DriveId, DriveInfo, GroupInfo, Species, VDiskInfo
from tests.maintenance.rules.making import (
    DOWN,
    FORCE,
    KEEP,
    MAX,
    MINUTE,
    NOW,
    RESTART,
    UNKNOWN,
    Scene,
    granted,
    part,
    replace_devices,
)

ALLOW, DISALLOW, TEMP = StatusCode.ALLOW, StatusCode.DISALLOW, StatusCode.DISALLOW_TEMP
WITH_PARITY = [species for species in Species if species.parity_parts and species is not Species.MIRROR_3_DC]


@pytest.mark.parametrize("mode", [MAX, KEEP, FORCE])
@pytest.mark.parametrize("species", WITH_PARITY)
def test_one_part_of_a_healthy_group_may_go_in_every_mode(species: Species, mode: AvailabilityMode) -> None:
    scene = Scene()
    scene.group(range(1, 9), species)
    assert scene.ask("h1", mode=mode).code is ALLOW


@pytest.mark.parametrize("species", WITH_PARITY)
def test_with_one_part_down_maximum_availability_lets_nothing_go(species: Species) -> None:
    scene = Scene()
    scene.group(range(1, 9), species, down=[2])
    answer = scene.ask("h1")
    assert answer.code is TEMP
    assert answer.refusals[0].issue.type is IssueType.TOO_MANY_UNAVAILABLE_VDISKS


@pytest.mark.parametrize("species", WITH_PARITY)
def test_keep_available_goes_as_far_as_the_parity_parts(species: Species) -> None:
    for down in range(species.parity_parts + 1):
        scene = Scene()
        scene.group(range(1, 9), species, down=range(2, 2 + down))
        assert scene.ask("h1", mode=KEEP).code is (ALLOW if down < species.parity_parts else TEMP)


@pytest.mark.parametrize("species", WITH_PARITY)
def test_keep_available_counts_locked_parts_as_it_counts_broken_ones(species: Species) -> None:
    for locked in range(species.parity_parts + 1):
        scene = Scene()
        scene.group(range(1, 9), species)
        for number in range(2, 2 + locked):
            scene.hold(f"h{number}")
        assert scene.ask("h1", mode=KEEP).code is (ALLOW if locked < species.parity_parts else TEMP)


@pytest.mark.parametrize("broken", [1, 2, 5])
def test_force_restart_takes_one_part_however_many_are_broken(broken: int) -> None:
    scene = Scene()
    scene.group(range(1, 9), down=range(2, 2 + broken))
    assert scene.ask("h1", mode=FORCE).code is ALLOW


def test_force_restart_takes_no_second_part_while_one_is_permitted_but_what_keeps_the_group_available() -> None:
    scene = Scene()
    scene.group(range(1, 9))
    scene.hold("h2")
    assert scene.ask("h1", mode=FORCE).code is ALLOW
    scene.group(range(1, 9), down=(3,))
    assert scene.ask("h1", mode=KEEP).code is TEMP
    assert scene.ask("h1", mode=FORCE).code is TEMP


def test_what_is_down_by_permission_for_longer_than_was_said_is_broken() -> None:
    scene = Scene()
    scene.group(range(1, 9), down=(3,))
    scene.hold("h2", lasts=10)
    scene.node(2, state=DOWN)
    # It may begin at its deadline, and last a minute.
    assert scene.ask("h1", mode=FORCE, now=NOW + 9 + MINUTE).code is TEMP
    assert scene.ask("h1", mode=FORCE, now=NOW + 10 + MINUTE).code is ALLOW
    # It is its owner's all the same.
    assert scene.ask("h2", mode=FORCE, now=NOW + 10 + MINUTE).code is TEMP


def test_force_says_what_it_costs() -> None:
    scene = Scene()
    scene.group(range(1, 9), down=(3, 4))
    answer = scene.ask("h1", mode=FORCE)
    assert answer.grants[0].cost.startswith("group 0 (block-4-2) cannot be used without vdisk-0-1-0-0-0")
    assert answer.reason == f"by force, at this cost: h1: {answer.grants[0].cost}"
    scene.group(range(1, 9))
    assert (scene.ask("h1", mode=FORCE).reason, scene.ask("h1", mode=FORCE).grants[0].cost) == ("", "")


def test_in_part_force_is_used_only_for_what_needs_it() -> None:
    scene = Scene()
    scene.group([1, 5, 6, 7, 2, 8], down=(5, 6))
    scene.group([2, 3, 4], Species.BLOCK_3_1, group=1)
    # h1 needs force, and takes a part of the group that h2 has one of as well.
    scene.group([1, 2], Species.MIRROR_3, group=0)
    scene.group([1], Species.NONE, group=2)
    assert granted(scene.ask("h1", "h2", mode=KEEP, partial=True)) == ["h2"]
    assert granted(scene.ask("h1", "h2", mode=FORCE, partial=True)) == ["h2"]
    assert scene.ask("h1", mode=FORCE).code is ALLOW


@pytest.mark.parametrize(("mode", "code"), [(MAX, DISALLOW), (KEEP, DISALLOW), (FORCE, ALLOW)])
def test_a_group_without_redundancy_is_refused_for_good_except_by_force(
    mode: AvailabilityMode, code: StatusCode
) -> None:
    scene = Scene(1)
    scene.group([1], Species.NONE)
    assert scene.ask("h1", mode=mode).code is code


@pytest.mark.parametrize("mode", [MAX, KEEP, FORCE])
@pytest.mark.parametrize(("partial", "code"), [(True, StatusCode.ALLOW_PARTIAL), (False, DISALLOW)])
def test_one_answer_takes_one_part_of_a_group_in_every_mode(
    mode: AvailabilityMode, partial: bool, code: StatusCode
) -> None:
    scene = Scene()
    scene.group(range(1, 9))
    answer = scene.ask("h1", "h2", "h3", mode=mode, partial=partial)
    assert (answer.code, granted(answer)) == (code, ["h1"] if partial else [])


def test_a_broken_part_may_be_worked_on_while_the_others_are_well() -> None:
    scene = Scene()
    scene.group(range(1, 9), down=[1])
    assert scene.ask("h1").code is ALLOW
    assert scene.ask(replace_devices("pdisk-1-1")).code is ALLOW


@pytest.mark.parametrize("state", [DOWN, UNKNOWN, RESTART])
def test_a_part_is_away_when_its_node_or_drive_or_the_part_itself_is_not_up(state: HostState) -> None:
    by_node, by_drive, by_part = Scene(), Scene(), Scene()
    for scene in (by_node, by_drive, by_part):
        scene.group(range(1, 9))
    by_node.node(2, state=state)
    by_drive.model.put_drive(DriveInfo(id=DriveId(2, 1), state=state))
    by_part.model.put_vdisk(VDiskInfo(id=part(1), node=2, drives=(DriveId(2, 1),), state=state))
    for scene in (by_node, by_drive, by_part):
        assert scene.ask("h1").code is TEMP
        assert scene.ask("h1", mode=KEEP).code is ALLOW


def test_a_part_on_a_node_or_drive_that_nobody_knows_is_away() -> None:
    scene = Scene(3)
    parts = tuple(VDiskInfo(id=part(n), node=n + 1, drives=(DriveId(n + 1, 1 if n < 2 else 9),)) for n in range(3))
    scene.model.put_group(GroupInfo(id=0, species=Species.MIRROR_3, vdisks=parts))
    assert scene.ask("h1").code is TEMP
    scene.model.put_drive(DriveInfo(id=DriveId(3, 9)))
    assert scene.ask("h1").code is ALLOW
    scene.model.remove_node(3)
    assert scene.ask("h1").code is TEMP


def test_what_is_down_with_the_node_that_is_asked_for_counts_once() -> None:
    scene = Scene()
    scene.group(range(1, 9))
    scene.model.put_drive(DriveInfo(id=DriveId(1, 1), state=DOWN))
    assert scene.ask("h1").code is ALLOW


# mirror-3-dc: nodes 1-3 are realm 0, 4-6 realm 1, 7-9 realm 2.


@pytest.mark.parametrize(
    ("away", "code"),
    [
        ([], ALLOW),
        ([2, 3], ALLOW),
        ([2, 3, 4], ALLOW),
        ([4, 5, 6], ALLOW),
        ([4], ALLOW),
        ([2, 4], ALLOW),
        ([2, 4, 5], TEMP),
        ([4, 7], TEMP),
        ([2, 3, 4, 7], TEMP),
    ],
)
def test_mirror_3_dc_keeps_available_without_a_realm_and_one_part_elsewhere(away: list[int], code: StatusCode) -> None:
    scene = Scene(9)
    scene.group(range(1, 10), Species.MIRROR_3_DC, down=away)
    assert scene.ask("h1", mode=KEEP).code is code


def test_mirror_3_dc_is_as_strict_as_any_other_under_maximum_availability() -> None:
    scene = Scene(9)
    scene.group(range(1, 10), Species.MIRROR_3_DC, down=[2])
    assert scene.ask("h1").code is TEMP


def test_mirror_3_dc_tells_when_enough_of_a_realm_is_free_again() -> None:
    scene = Scene(9)
    scene.group(range(1, 10), Species.MIRROR_3_DC)
    scene.hold("h4", lasts=50)
    scene.hold("h5", lasts=30)
    scene.hold("h7", lasts=40)
    # Of realms 1 and 2, the latter is free first; then there are two in one realm and one elsewhere.
    assert scene.ask("h1", mode=KEEP).deadline == NOW + 40


# Refusals say what is in the way.


def test_a_refusal_names_what_is_in_the_way_who_holds_it_and_until_when() -> None:
    scene = Scene()
    scene.group(range(1, 9), down=[3])
    permission = scene.hold("h2")
    refusal = scene.ask("h1").refusals[0]
    found = {blocker.object: (blocker.lock, blocker.id, blocker.owner) for blocker in refusal.issue.blockers}
    assert found == {"h2": (LockKind.PERMISSION, permission.id, "bob"), "vdisk-0-1-0-2-0": (None, "", "")}
    until = {blocker.object: blocker.until for blocker in refusal.issue.blockers}
    assert until["h2"] is not None
    assert until["vdisk-0-1-0-2-0"] is None
    assert "group 0 (block-4-2)" in refusal.issue.message


def test_a_node_with_two_parts_of_a_group_contradicts_itself_but_goes_by_force() -> None:
    scene = Scene()
    parts = tuple(VDiskInfo(id=part(n), node=1 + n // 2, drives=(DriveId(1 + n // 2, 1),)) for n in range(8))
    scene.model.put_group(GroupInfo(id=0, species=Species.BLOCK_4_2, vdisks=parts))
    for mode in (MAX, KEEP):
        assert scene.ask("h1", mode=mode, partial=True).code is DISALLOW
    for partial in (True, False):
        answer = scene.ask("h1", mode=FORCE, partial=partial)
        assert answer.code is ALLOW
        assert "less redundancy" in answer.grants[0].cost
    # Who has to wait for its lock is not told that it is for good.
    scene.hold("h1")
    assert scene.ask("h1", mode=FORCE).code is TEMP


def test_another_part_on_the_same_node_or_drive_is_not_away_because_of_what_is_asked_for() -> None:
    scene = Scene(3)
    scene.model.put_drive(DriveInfo(id=DriveId(1, 2)))
    places = [DriveId(1, 1), DriveId(1, 2), DriveId(2, 1), DriveId(2, 1)]
    parts = tuple(VDiskInfo(id=part(n), node=place.node, drives=(place,)) for n, place in enumerate(places))
    scene.model.put_group(GroupInfo(id=0, species=Species.MIRROR_3, vdisks=parts))
    scene.node(1, state=DOWN)
    assert scene.ask(replace_devices("pdisk-1-1")).code is ALLOW
    scene.node(1)
    scene.model.put_drive(DriveInfo(id=DriveId(2, 1), state=DOWN))
    assert scene.ask(replace_devices("vdisk-0-1-0-2-0")).code is ALLOW
    assert scene.ask(replace_devices("pdisk-1-1")).code is TEMP
