"""ReplicatedVolumes as groups: by their live quorum."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from quorate.api.maintenance.action import ActionType, AvailabilityMode, LockKind, StatusCode
from quorate.api.struct import replace as changed
from quorate.maintenance.messages import Action
from quorate.maintenance.nouns import DriveId, DriveInfo, GroupInfo, MemberFacts, VDiskInfo, VolumeFacts
from quorate.maintenance.rules import may_extend
from quorate.maintenance.rules.stranded import stuck_note, suspended_note
from tests.maintenance.rules.making import DOWN, FORCE, KEEP, MAX, NOW, UP, Scene, granted, part, replace_devices

ALLOW, DISALLOW, TEMP = StatusCode.ALLOW, StatusCode.DISALLOW, StatusCode.DISALLOW_TEMP


def volume(
    diskful: int,
    *,
    tie_breaker: bool = False,
    copies: int = 1,
    kept: int = 1,
    attached: tuple[int, ...] = (8,),
    behind: tuple[int, ...] = (),
    away: tuple[int, ...] = (),
    hidden: tuple[int, ...] = (),
    **facts: Any,
) -> GroupInfo:
    """A volume with diskful members on nodes 1, 2, …, then its tie-breaker; attached on node 8, which has no part."""
    nodes = range(1, diskful + tie_breaker + 1)
    members = tuple(
        MemberFacts(
            vdisk=part(node - 1),
            node=node,
            voter=node <= diskful,
            up_to_date=node <= diskful and node not in behind,
            connected=node not in away,
            tie_breaker=node > diskful,
        )
        for node in nodes
    )
    secret = tuple(
        MemberFacts(vdisk=part(node - 1), node=node, voter=False, up_to_date=False, connected=True) for node in hidden
    )
    parts = tuple(
        VDiskInfo(
            id=part(node - 1),
            node=node,
            drives=(DriveId(node, 1),) if node <= diskful else (),
            state=DOWN if node in away else UP,
        )
        for node in nodes
    )
    return GroupInfo(
        id=0,
        species=None,
        volume=VolumeFacts(
            name="pvc-1",
            members=members + secret,
            attached_on=frozenset(attached),
            quorum=diskful // 2 + 1,
            quorum_minimum_redundancy=copies,
            copies_kept=kept,
            **facts,
        ),
        vdisks=parts,
    )


def none(**facts: Any) -> GroupInfo:
    return volume(1, **facts)


def availability(**facts: Any) -> GroupInfo:
    return volume(2, tie_breaker=True, **facts)


def consistency(**facts: Any) -> GroupInfo:
    return volume(2, copies=2, **facts)


def both(**facts: Any) -> GroupInfo:
    return volume(3, copies=2, kept=2, **facts)


def scene(group: GroupInfo) -> Scene:
    made = Scene()
    made.model.put_group(group)
    return made


@pytest.mark.parametrize(
    ("layout", "attached", "idle"),
    [(none, TEMP, TEMP), (availability, ALLOW, ALLOW), (consistency, TEMP, ALLOW), (both, ALLOW, ALLOW)],
)
@pytest.mark.parametrize("mode", [MAX, KEEP])
def test_a_member_may_go_if_the_volume_stays_writable_or_while_it_is_idle_has_its_copies(
    layout: Callable[..., GroupInfo], attached: StatusCode, idle: StatusCode, mode: AvailabilityMode
) -> None:
    assert scene(layout()).ask("h1", mode=mode).code is attached
    assert scene(layout(attached=())).ask("h1", mode=mode).code is idle


def test_one_that_is_only_held_may_be_back_when_the_next_one_goes() -> None:
    """The held member is where the volume is used, and reaches the data through the one that is asked for only."""
    asked: list[frozenset[int]] = []

    def survives(nodes: frozenset[int]) -> bool:
        asked.append(nodes)
        return nodes != {1}

    group = volume(5, attached=(5,))
    assert group.volume is not None
    made = scene(replace(group, volume=replace(group.volume, survives=survives)))
    assert made.ask("h1", mode=KEEP).code is TEMP
    made.hold("h5")
    assert made.ask("h1", mode=KEEP).code is TEMP
    assert {*asked} == {frozenset({1}), frozenset({1, 5})}


@pytest.mark.parametrize("layout", [none, availability, consistency, both])
def test_by_force_a_member_may_go_from_any_layout(layout: Callable[..., GroupInfo]) -> None:
    assert scene(layout()).ask("h1", mode=FORCE).code is ALLOW


def test_a_volume_that_can_lose_nobody_is_named_and_refused_for_a_while() -> None:
    answer = scene(none()).ask("h1")
    assert (answer.code, answer.deadline) == (TEMP, NOW + 300_000_000)
    assert "pvc-1" in answer.reason
    assert "in use on h8" in answer.reason
    assert [blocker.object for blocker in answer.refusals[0].issue.blockers] == ["pvc-1"]


def test_people_are_told_the_names_that_they_gave() -> None:
    group = availability(claim="shop/data")
    parts = tuple(replace(one, title=f"pvc-1-{number}") for number, one in enumerate(group.vdisks))
    made = scene(replace(group, vdisks=parts))
    made.model.put_drive(DriveInfo(id=DriveId(2, 1), path="/dev/sdb", title="h2/1"))
    made.model.put_vdisk(replace(parts[2], state=DOWN))
    answer = made.ask("h1")
    assert answer.reason.startswith("claim shop/data (volume pvc-1): pvc-1-0 cannot go")
    assert "pvc-1-2" in answer.reason
    assert [blocker.object for blocker in answer.refusals[0].issue.blockers] == ["pvc-1-2"]
    made.hold(replace_devices("pdisk-2-1"))
    answer = made.ask("h2")
    assert "drive h2/1 (pdisk-2-1) is locked by permission bob-p-1 of bob" in answer.reason
    assert answer.refusals[0].issue.blockers[0].object == "h2/1"
    everything = repr([made.ask(host).refusals for host in ("h1", "h2", "h3")])
    assert "vdisk-" not in everything


def test_a_member_that_has_just_died_is_named_before_its_agent_is_missed() -> None:
    """Only the kernel's rule knows of it: the node seems up, and so does its replica."""
    group = both()
    assert group.volume is not None
    members = tuple(replace(one, connected=one.node != 3) for one in group.volume.members)
    made = scene(replace(group, volume=replace(group.volume, members=members, survives=lambda lost: len(lost) < 1)))
    answer = made.ask("h1", mode=KEEP)
    assert answer.code is TEMP
    assert [blocker.object for blocker in answer.refusals[0].issue.blockers] == ["vdisk-0-1-0-2-0"]
    assert "vdisk-0-1-0-2-0 on h3 is not available" in answer.reason


def test_a_good_copy_counts_whether_or_not_its_side_serves() -> None:
    made = scene(consistency(attached=(), away=(2,)))
    group = consistency(attached=(), away=(2,))
    assert group.volume is not None
    # Two of two are needed to serve, so the one that is left is cut off from nobody and serves nobody.
    members = tuple(replace(one, connected=False, up_to_date=one.node == 1) for one in group.volume.members)
    made.model.put_group(replace(group, volume=replace(group.volume, members=members)))
    assert made.ask("h2").code is ALLOW
    assert made.ask("h1", mode=KEEP).code is TEMP


@pytest.mark.parametrize("attached", [(), (1,), (8,)])
def test_what_its_peers_miss_already_on_a_node_that_is_down_cannot_be_lost_once_more(attached: tuple[int, ...]) -> None:
    group = consistency(attached=attached, away=(2,))
    assert group.volume is not None
    members = tuple(replace(one, missed=one.node == 2, up_to_date=False) for one in group.volume.members)
    made = scene(replace(group, volume=replace(group.volume, members=members)))
    assert made.ask("h2").code is TEMP
    made.node(2, state=DOWN, surely_down=False)
    assert made.ask("h2").code is ALLOW


def test_a_volume_that_is_in_use_only_where_the_host_goes_down_need_not_stay_writable() -> None:
    assert scene(consistency(attached=(1,))).ask("h1").code is ALLOW
    assert scene(consistency(attached=(1, 8))).ask("h1").code is TEMP
    # A drive that is taken out does not stop its host from using the volume.
    assert scene(consistency(attached=(1,))).ask(replace_devices("pdisk-1-1")).code is TEMP


@pytest.mark.parametrize("mode", [MAX, KEEP])
def test_a_host_that_leaves_is_away_for_its_own_action_only(mode: AvailabilityMode) -> None:
    """It may be back, and use the volume again, before the other one goes."""
    made = scene(consistency(attached=(8,)))
    assert granted(made.ask("h1", "h8", partial=True, mode=mode)) == ["h8"]
    assert granted(made.ask("h8", "h1", partial=True, mode=mode)) == ["h8"]
    assert made.ask("h8", "h1", mode=mode).code is TEMP
    assert made.ask("h1", "h8", mode=mode).code is TEMP
    drive = replace_devices("pdisk-1-1")
    assert [grant.action.host for grant in made.ask("h8", drive, partial=True, mode=mode).grants] == ["h8"]


def test_nodes_of_one_host_go_down_by_one_permission_and_use_nothing_meanwhile() -> None:
    made = scene(consistency(attached=(8,)))
    made.node(8, host="h1")
    assert made.ask("h1").code is ALLOW
    # Asked for one by one they are two permissions.
    assert granted(made.ask("8", "1", partial=True)) == ["8"]


def test_a_permission_lasts_longer_only_if_it_is_good_without_the_others() -> None:
    made = scene(consistency(attached=(1, 8)))
    made.hold("h8")
    held = made.hold("h1")
    assert may_extend(made.model, held, held.deadline + 1, NOW) is not None


def test_the_tie_breaker_may_go_while_both_copies_are_there_and_not_while_one_is_away() -> None:
    assert scene(availability()).ask("h3").code is ALLOW
    assert scene(availability(away=(2,))).ask("h3", mode=KEEP).code is TEMP


def test_a_tie_breaker_breaks_no_tie_among_an_odd_number() -> None:
    assert scene(volume(3, tie_breaker=True, away=(2,))).ask("h1", mode=KEEP).code is TEMP


def test_a_host_that_was_refused_goes_on_using_its_volume() -> None:
    made = scene(consistency(attached=(8,)))
    made.hold("h8")
    assert granted(made.ask("h8", "h1", partial=True)) == []


def test_keep_available_asks_only_that_it_stays_writable() -> None:
    five = volume(5, copies=1, away=(5,))
    assert scene(five).ask("h1").code is TEMP
    assert scene(five).ask("h1", mode=KEEP).code is ALLOW
    assert scene(volume(5, copies=1, away=(4, 5))).ask("h1", mode=KEEP).code is TEMP


def test_a_locked_member_counts_as_lost() -> None:
    made = scene(volume(5, copies=1))
    made.hold("h2")
    assert made.ask("h1").code is TEMP
    assert made.ask("h1", mode=KEEP).code is ALLOW
    made.hold("h3")
    assert made.ask("h1", mode=KEEP).code is TEMP


def test_copies_that_are_behind_do_not_count() -> None:
    assert scene(both(behind=(2,))).ask("h1", mode=KEEP).code is TEMP
    assert scene(both(behind=(1,))).ask("h1", mode=KEEP).code is ALLOW
    assert scene(availability(behind=(2,), attached=())).ask("h1", mode=KEEP).code is TEMP
    assert scene(both(behind=(2,), attached=())).ask("h1", mode=KEEP).code is TEMP


@pytest.mark.parametrize("mode", [MAX, KEEP, FORCE])
def test_one_answer_takes_one_member(mode: AvailabilityMode) -> None:
    five = volume(5, copies=1)
    assert granted(scene(five).ask("h1", "h2", partial=True, mode=mode)) == ["h1"]
    assert scene(five).ask("h1", "h2", mode=mode).code is DISALLOW


@pytest.mark.parametrize("mode", [MAX, KEEP, FORCE])
@pytest.mark.parametrize("asked", ["h1", "h3", replace_devices("pdisk-2-1"), replace_devices("vdisk-0-1-0-0-0")])
def test_nothing_of_a_volume_is_disturbed_while_a_step_is_not_confirmed(mode: AvailabilityMode, asked: Any) -> None:
    made = scene(availability(unconfirmed_step="AddReplica: 2 of 3 confirmed"))
    answer = made.ask(asked, mode=mode)
    assert answer.code is TEMP
    blocker = answer.refusals[0].issue.blockers[0]
    assert (blocker.object, blocker.lock, blocker.id) == ("pvc-1", LockKind.TRANSITION, "AddReplica: 2 of 3 confirmed")


def test_a_step_protects_hidden_members_and_nodes_that_are_down_as_well() -> None:
    made = scene(availability(hidden=(5,), unconfirmed_step="AddReplica"))
    assert made.ask("h5", mode=FORCE).code is TEMP
    made.node(1, state=DOWN)
    assert made.ask("h1", mode=KEEP).code is TEMP
    # The step may wait for the very node that is dead: somebody must be able to repair it.
    by_force = made.ask("h1", mode=FORCE)
    assert by_force.code is ALLOW
    assert "AddReplica" in by_force.grants[0].cost
    made.model.put_group(availability(hidden=(5,)))
    assert made.ask("h5").code is ALLOW
    assert made.ask("h1").code is ALLOW


def test_a_first_synchronisation_counts_as_one_member_locked() -> None:
    made = scene(both(synchronizing="pvc-1-3"))
    answer = made.ask("h1")
    assert answer.code is TEMP
    assert answer.refusals[0].issue.blockers[0].lock is LockKind.TRANSITION
    # It has no vote, so the volume stays writable without it.
    assert made.ask("h1", mode=KEEP).code is ALLOW
    assert made.ask("h1", mode=FORCE).code is ALLOW
    only = scene(none(synchronizing="pvc-1-3")).ask("h1", mode=FORCE)
    assert only.code is ALLOW
    assert "in use on" in only.grants[0].cost


def test_the_kernels_own_foresight_decides_where_there_is_one() -> None:
    asked: list[frozenset[int]] = []

    def survives(nodes: frozenset[int]) -> bool:
        asked.append(nodes)
        return False

    group = both()
    assert group.volume is not None
    made = scene(replace(group, volume=replace(group.volume, survives=survives)))
    assert made.ask("h1").code is TEMP
    assert asked[0] == {1}


def test_a_silent_agent_takes_no_replica_away() -> None:
    made = scene(both())
    made.node(2, state=DOWN, surely_down=False)
    assert made.ask("h1").code is ALLOW
    made.node(2, state=DOWN, surely_down=True)
    assert made.ask("h1").code is TEMP


def test_when_a_lock_ends_the_answer_changes() -> None:
    made = scene(both())
    made.hold("h2", lasts=1000)
    assert made.ask("h1").deadline == NOW + 1000
    assert made.ask("h1", now=NOW + 1000).code is ALLOW


def test_whoever_may_reboot_a_host_on_which_io_stands_still_is_told_how() -> None:
    """Its last sync would wait for what was not written, for ever (drbd9-races E5)."""
    made = scene(both(attached=(1,), suspended_on=frozenset({1})))
    reboot = Action(type=ActionType.SHUTDOWN_HOST, host="h1", duration=60)
    note = suspended_note(made.model, [reboot])
    assert "volume pvc-1 on h1" in note
    assert "quorate node shutdown" in note
    assert suspended_note(made.model, [changed(reboot, host="h2")]) == "", "it stands still on h1 alone"
    assert suspended_note(scene(both(attached=(1,))).model, [reboot]) == ""


def test_whoever_may_reboot_a_host_in_whose_kernel_commands_hang_is_told_that_nothing_else_helps() -> None:
    made = scene(both())
    made.node(1, stuck=True)
    reboot = Action(type=ActionType.SHUTDOWN_HOST, host="h1", duration=60)
    note = stuck_note(made.model, [reboot])
    assert "in the kernel of h1" in note
    assert "cut the power" in note
    assert stuck_note(made.model, [changed(reboot, host="h2")]) == ""
