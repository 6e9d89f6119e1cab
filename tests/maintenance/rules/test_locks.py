"""Who holds an item for whom: permissions, announced work, the queue, the same request."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from quorate.api.maintenance.action import HostState, LockKind, StatusCode
from quorate.api.maintenance.broker_config import Limits
from quorate.maintenance.messages import Action
from quorate.maintenance.moments import FOREVER, to_datetime
from quorate.maintenance.nouns import Species
from tests.maintenance.rules.making import (
    DOWN,
    FORCE,
    MINUTE,
    NOW,
    RESTART,
    UNKNOWN,
    Scene,
    granted,
    replace_devices,
    settings,
    shut_down,
)

ALLOW, DISALLOW, TEMP = StatusCode.ALLOW, StatusCode.DISALLOW, StatusCode.DISALLOW_TEMP


def kinds(scene: Scene, host: str = "h1") -> list[LockKind | None]:
    refusals = scene.ask(host).refusals
    return [blocker.lock for blocker in refusals[0].issue.blockers] if refusals else []


# Permissions.


def test_a_permission_holds_its_host_until_its_deadline_and_not_at_it() -> None:
    scene = Scene()
    scene.hold("h1", lasts=10)
    assert kinds(scene) == [LockKind.PERMISSION]
    assert scene.ask("h1", now=NOW + 9).code is TEMP
    assert scene.ask("h1", now=NOW + 10).code is ALLOW


def test_a_blocker_is_told_of_until_its_work_is_over_at_the_latest_and_not_at_all_while_it_is_down() -> None:
    """The work may begin at the deadline and last its duration; of what is down nobody knows when it is back."""
    scene = Scene()
    scene.group(range(1, 9))
    scene.hold("h1", lasts=10 * MINUTE)

    def until(host: str) -> datetime | None:
        (blocker,) = scene.ask(host).refusals[0].issue.blockers
        return blocker.until

    assert until("h1") == until("h2") == to_datetime(NOW + 11 * MINUTE)
    # The answer can change before: if nobody has begun by then.
    assert scene.ask("h2").deadline == NOW + 10 * MINUTE
    scene.node(1, state=DOWN)
    assert until("h1") is None
    assert until("h2") is None


def test_announced_work_on_a_host_that_is_down_promises_nothing_either() -> None:
    scene = Scene()
    scene.group(range(1, 9))
    scene.announce("h1")
    assert scene.ask("h2").refusals[0].issue.blockers[0].until == to_datetime(NOW + MINUTE + 1)
    scene.node(1, state=DOWN)
    assert scene.ask("h2").refusals[0].issue.blockers[0].until is None


@pytest.mark.parametrize("state", [DOWN, RESTART, UNKNOWN])
def test_a_host_that_is_not_up_keeps_its_lock_past_the_deadline(state: HostState) -> None:
    scene = Scene()
    scene.group(range(1, 9))
    scene.hold("h1", lasts=10)
    scene.node(1, state=state)
    scene.now += 100 * MINUTE
    assert scene.ask("h1", mode=FORCE).code is TEMP
    assert scene.ask("h2").code is TEMP
    scene.node(1)
    assert scene.ask("h2").code is ALLOW


def test_time_may_be_asked_about_in_any_order() -> None:
    scene = Scene()
    scene.hold("h1", lasts=10)
    answers = [scene.ask("h1", now=NOW + moment).code for moment in (20, 5, 11, 0, 9, 10)]
    assert answers == [ALLOW, TEMP, ALLOW, TEMP, TEMP, ALLOW]


def test_a_permission_that_is_over_holds_nothing() -> None:
    scene = Scene()
    permission = scene.hold("h1")
    scene.model.release(permission.id)
    assert scene.ask("h1").code is ALLOW


def test_drives_and_replicas_see_the_lock_of_their_node_and_of_each_other() -> None:
    scene = Scene()
    scene.group(range(1, 9))
    pairs: list[tuple[Action | str, Action]] = [
        ("h1", replace_devices("pdisk-1-1")),
        ("h1", replace_devices("vdisk-0-1-0-0-0")),
        (replace_devices("pdisk-1-1"), replace_devices("vdisk-0-1-0-0-0")),
        (replace_devices("vdisk-0-1-0-0-0"), replace_devices("pdisk-1-1")),
        (replace_devices("vdisk-0-1-0-0-0"), shut_down("h1")),
    ]
    for held, asked in pairs:
        permission = scene.hold(held)
        refused = scene.ask(asked, mode=FORCE)
        assert refused.code is TEMP
        assert refused.refusals[0].issue.blockers[0].id == permission.id
        scene.model.release(permission.id)
        assert scene.ask(asked, mode=FORCE).code is ALLOW


def test_an_empty_drive_has_a_lock_of_its_own() -> None:
    scene = Scene()
    permission = scene.hold(replace_devices("pdisk-1-1"))
    assert scene.ask(replace_devices("pdisk-1-1")).code is TEMP
    scene.model.release(permission.id)
    assert scene.ask(replace_devices("pdisk-1-1")).code is ALLOW
    scene.hold("h1")
    assert scene.ask(replace_devices("pdisk-1-1")).code is TEMP


def test_a_host_stays_up_while_somebody_has_an_empty_drive_of_it() -> None:
    scene = Scene()
    permission = scene.hold(replace_devices("pdisk-1-1"))
    refused = scene.ask("h1", mode=FORCE)
    assert refused.code is TEMP
    assert refused.refusals[0].issue.blockers[0].id == permission.id
    assert scene.ask("h2").code is ALLOW
    scene.node(1, state=DOWN, surely_down=True)
    assert scene.ask("h1").code is ALLOW  # Nobody is disturbed any more.
    scene.node(1)
    scene.model.release(permission.id)
    assert scene.ask("h1").code is ALLOW


def test_an_item_that_is_restarting_is_locked_without_anybodys_permission() -> None:
    scene = Scene()
    scene.group(range(1, 9), down=(8,))
    scene.node(1, state=RESTART)
    assert kinds(scene) == [None]
    assert scene.ask("h2", mode=FORCE).code is TEMP


def test_a_node_of_which_nothing_is_known_cannot_be_had_even_by_force() -> None:
    scene = Scene()
    scene.node(1, state=UNKNOWN)
    answer = scene.ask("h1", mode=FORCE)
    assert (answer.code, answer.deadline) == (TEMP, NOW + 5 * MINUTE)


# Announced work.


@pytest.mark.parametrize(
    ("begins", "code"),
    [
        # The action takes a minute and may begin within a minute: two minutes in all.
        (2 * MINUTE, TEMP),
        (2 * MINUTE + 1, ALLOW),
        (0, TEMP),
        (-MINUTE, TEMP),
        (-MINUTE - 1, ALLOW),
    ],
)
def test_announced_work_counts_if_the_action_may_overlap_it(begins: int, code: StatusCode) -> None:
    scene = Scene()
    scene.group(range(1, 9))
    scene.announce("h1", begins=begins)
    assert scene.ask("h1").code is code
    assert scene.ask("h2").code is code


def test_announced_work_is_over_when_the_answer_says() -> None:
    scene = Scene()
    scene.announce("h1")
    answer = scene.ask("h1")
    assert answer.deadline == NOW + MINUTE + 1
    assert scene.ask("h1", now=NOW + MINUTE).code is TEMP
    assert scene.ask("h1", now=NOW + MINUTE + 1).code is ALLOW


def test_of_two_announcements_on_one_host_each_counts_in_its_time() -> None:
    scene = Scene()
    notification = scene.announce(shut_down("h1", MINUTE), shut_down("h1", 9 * MINUTE))
    assert scene.ask("h1").deadline == NOW + 9 * MINUTE + 1
    scene.model.withdraw(notification.id)
    assert scene.ask("h1").code is ALLOW


# The queue.


@pytest.mark.parametrize(
    ("stored", "asking", "code"),
    [
        ({"order": 1}, {"order": 2}, TEMP),
        ({"order": 2}, {"order": 1}, ALLOW),
        ({"order": 1}, {"order": 1}, ALLOW),
        ({"order": 1}, {"order": 2, "priority": -1}, ALLOW),
        ({"order": 1, "priority": 5}, {"order": 2}, ALLOW),
        ({"order": 2, "priority": -5}, {"order": 1}, TEMP),
    ],
)
def test_a_stored_request_goes_before_later_ones_and_before_less_urgent_ones(
    stored: dict[str, Any], asking: dict[str, Any], code: StatusCode
) -> None:
    scene = Scene()
    scene.group(range(1, 9))
    scene.queue("h1", **stored)
    assert scene.ask("h1", **asking).code is code
    assert scene.ask("h2", **asking).code is code


def test_a_silent_request_blocks_nobody() -> None:
    scene = Scene()
    entry = scene.queue("h1", order=1)
    assert kinds(scene) == [LockKind.SCHEDULED_REQUEST]
    scene.model.queue(entry, blocking=False)
    assert scene.ask("h1").code is ALLOW
    scene.model.queue(entry, blocking=True)
    assert scene.ask("h1").code is TEMP
    scene.model.dequeue(entry.id)
    assert scene.ask("h1").code is ALLOW


def test_a_request_blocks_only_for_what_is_left_of_it() -> None:
    scene = Scene()
    scene.queue("h1", "h2", order=1)
    scene.queue("h2", order=1)
    assert granted(scene.ask("h1", "h2", partial=True)) == ["h1"]


def test_a_request_behind_another_does_not_stand_in_its_own_way() -> None:
    scene = Scene()
    scene.queue("h1", order=1)
    scene.queue("h2", order=2)
    assert scene.ask("h2", order=2).code is ALLOW
    assert scene.ask("h1", order=2).code is TEMP


def test_behind_somebody_in_the_queue_it_is_worth_looking_again_after_the_usual_time() -> None:
    scene = Scene()
    scene.queue("h1", order=1)
    assert scene.ask("h1").deadline == NOW + 5 * MINUTE


# The same request.


def test_several_nodes_of_one_host_see_each_other() -> None:
    """M16."""
    scene = Scene()
    scene.group(range(1, 9))
    scene.node(2, host="h1")
    for partial in (True, False):
        assert scene.ask("h1", partial=partial).code is DISALLOW


def test_the_same_host_twice_contradicts_itself_under_either_of_its_names() -> None:
    scene = Scene()
    assert scene.ask("h1", "1").code is DISALLOW
    answer = scene.ask("h1", "1", partial=True)
    assert answer.code is StatusCode.ALLOW_PARTIAL
    assert answer.refusals[0].issue.blockers[0].lock is LockKind.TEMPORARY


def test_a_device_twice_in_one_action_contradicts_itself() -> None:
    scene = Scene()
    scene.group(range(1, 9))
    for again in ("pdisk-1-1", "vdisk-0-1-0-0-0"):
        assert scene.ask(replace_devices("pdisk-1-1", again), partial=True).code is DISALLOW


def test_an_action_that_fails_half_way_takes_nothing() -> None:
    scene = Scene()
    scene.group([1, 3, 4], Species.MIRROR_3)
    scene.node(2, host="h1")
    scene.hold("2")
    # Node 1 could go, node 2 of the same host cannot; so a neighbour of node 1 still can.
    assert granted(scene.ask("h1", "h3", partial=True)) == ["h3"]


def test_a_contradiction_is_told_even_while_something_else_is_in_the_way() -> None:
    scene = Scene()
    scene.group([1, 2, 3], Species.MIRROR_3)
    scene.node(2, state=UNKNOWN)
    # By force h1 may go. That h2's state is not known will pass, but the two will always be of one group.
    answer = scene.ask("h1", "h2", mode=FORCE)
    assert (answer.code, answer.deadline) == (DISALLOW, None)
    assert "contradicts itself" in answer.reason
    assert scene.ask("h1", "h2", mode=FORCE, partial=True).refusals[0].code is TEMP


def test_a_node_that_is_down_takes_its_parts_as_one_that_is_up_does() -> None:
    scene = Scene()
    scene.group(range(1, 9))
    scene.node(1, state=DOWN)
    assert granted(scene.ask("h1", "h2", mode=FORCE, partial=True)) == ["h1"]
    assert scene.ask("h1", "h2", mode=FORCE).code is DISALLOW


def test_another_action_of_a_partial_request_is_no_contradiction_and_keeps_what_it_took() -> None:
    scene = Scene()
    scene.group([1, 4, 5], Species.MIRROR_3)
    answer = scene.ask("h4", replace_devices("pdisk-2-1", "pdisk-4-1"), "h1", mode=FORCE, partial=True)
    assert granted(answer) == ["h4"]
    assert [refusal.code for refusal in answer.refusals] == [TEMP, TEMP]


def test_what_would_pass_in_time_is_no_contradiction() -> None:
    scene = Scene()
    scene.group([1, 3, 4], Species.MIRROR_3)
    scene.hold("h2")
    assert scene.ask("h1", "h2").code is TEMP


def test_a_permission_without_end_never_ends() -> None:
    scene = Scene()
    scene.hold("h1", lasts=FOREVER)
    answer = scene.ask("h1", now=FOREVER - 1)
    assert (answer.code, answer.deadline) == (TEMP, FOREVER)


def test_a_contradiction_is_seen_behind_whatever_else_is_refused_for_good() -> None:
    scene = Scene(config=settings(cluster=Limits(disabled_nodes_limit=1, disabled_nodes_ratio_limit=0)))
    scene.node(2, host="h1")
    scene.group([1], Species.NONE)
    # Down, node 1 may be worked on; but one node may be away, and the host has two.
    scene.node(1, state=DOWN)
    assert scene.ask("h1").code is DISALLOW


@pytest.mark.parametrize("asked", [("h1", "h2", "h3"), ("h2", "h1", "h3"), ("h2", "h3", "h1")])
def test_a_contradiction_is_told_wherever_in_the_request_it_is(asked: tuple[str, ...]) -> None:
    scene = Scene()
    scene.group([2, 3])
    scene.hold("h1")
    answer = scene.ask(*asked)
    assert (answer.code, answer.deadline, answer.left) == (StatusCode.DISALLOW, None, ())
    assert "contradicts itself" in answer.reason
    assert scene.ask(*asked, partial=True).code is StatusCode.ALLOW_PARTIAL
    scene.model.release("bob-p-1")
    assert scene.ask(*asked).code is StatusCode.DISALLOW


def test_what_is_all_locked_by_another_and_clashes_is_a_contradiction() -> None:
    scene = Scene()
    scene.group([1, 2, 3])
    scene.hold("h1")
    answer = scene.ask("h2", "h3")
    assert answer.code is StatusCode.DISALLOW
    assert len(answer.refusals) == 1


def test_a_host_that_is_unknown_further_on_is_no_contradiction() -> None:
    scene = Scene()
    scene.group([2, 3])
    scene.hold("h1")
    assert scene.ask("h1", "nobody", "h2").code is StatusCode.DISALLOW_TEMP
