"""How many nodes of the cluster, and of a tenant, may be away at once."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from quorate.api.maintenance.action import IssueType, StatusCode, TenantPolicy
from quorate.api.maintenance.broker_config import Limits
from tests.maintenance.rules.making import (
    DOWN,
    FORCE,
    KEEP,
    MAX,
    MINUTE,
    NO_LIMITS,
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
ALL = [f"h{number}" for number in range(1, 9)]


def limits(number: int = 0, ratio: int = 0) -> Limits:
    return Limits(disabled_nodes_limit=number, disabled_nodes_ratio_limit=ratio)


@pytest.mark.parametrize(
    ("nodes", "limit", "ratio", "allowed"),
    [
        (8, 0, 0, 8),
        (8, 3, 0, 3),
        (8, 1, 0, 1),
        # One is always allowed by a ratio.
        (8, 0, 13, 1),
        (8, 0, 1, 1),
        (8, 0, 20, 1),
        (8, 0, 25, 2),
        (8, 0, 30, 2),
        (8, 0, 100, 8),
        (8, 1, 50, 1),
        (8, 5, 25, 2),
    ],
)
@pytest.mark.parametrize("mode", [MAX, KEEP, FORCE])
def test_so_many_of_the_cluster_may_go_at_once(nodes: int, limit: int, ratio: int, allowed: int, mode: str) -> None:
    scene = Scene(nodes, config=settings(cluster=limits(limit, ratio)))
    answer = scene.ask(*ALL, partial=True, mode=mode)
    assert granted(answer) == ALL[:allowed]
    assert {refusal.issue.type for refusal in answer.refusals} <= {IssueType.DISABLED_NODES_LIMIT_REACHED}


def test_a_tenants_limit_counts_its_own_nodes_only() -> None:
    tenants = {1: "red", 2: "red", 3: "red", 4: "blue"}
    scene = Scene(config=settings(tenant=limits(1)), tenants=tenants)
    answer = scene.ask(*ALL, partial=True)
    assert granted(answer) == ["h1", "h4", "h5", "h6", "h7", "h8"]
    assert {refusal.issue.type for refusal in answer.refusals} == {IssueType.TENANT_DISABLED_NODES_LIMIT_REACHED}


def test_a_tenants_ratio_is_of_the_tenants_nodes() -> None:
    scene = Scene(config=settings(tenant=limits(ratio=50)), tenants=dict.fromkeys([1, 2, 3, 4], "red"))
    assert granted(scene.ask("h1", "h2", "h3", "h4", partial=True)) == ["h1", "h2"]


def test_without_a_tenant_policy_only_the_clusters_limits_count() -> None:
    config = settings(tenant=limits(1), cluster=limits(3))
    scene = Scene(config=config, tenants=dict.fromkeys(range(1, 9), "red"))
    assert granted(scene.ask(*ALL, partial=True)) == ["h1"]
    assert granted(scene.ask(*ALL, partial=True, policy=TenantPolicy.NONE)) == ["h1", "h2", "h3"]


def test_the_tenants_limit_is_the_first_reason() -> None:
    config = settings(tenant=limits(1), cluster=limits(1))
    scene = Scene(config=config, tenants={1: "red", 2: "red"})
    scene.hold("h1")
    assert scene.ask("h2").refusals[0].issue.type is IssueType.TENANT_DISABLED_NODES_LIMIT_REACHED
    assert scene.ask("h3").refusals[0].issue.type is IssueType.DISABLED_NODES_LIMIT_REACHED


@pytest.mark.parametrize(
    ("how", "counts"),
    [
        (lambda scene: scene.node(2, state=DOWN), True),
        (lambda scene: scene.node(2, state=RESTART), True),
        (lambda scene: scene.node(2, state=UNKNOWN), False),
        (lambda scene: scene.hold("h2"), True),
        (lambda scene: scene.hold("h2", lasts=-1), False),
        (lambda scene: scene.announce("h2"), True),
        (lambda scene: scene.announce("h2", begins=3 * MINUTE), False),
        (lambda scene: scene.queue("h2", order=1), True),
        (lambda scene: scene.queue("h2", order=101), False),
        (lambda scene: scene.queue("h2", order=1, blocking=False), False),
        # Only who is away counts: a drive that is taken out leaves its node where it is.
        (lambda scene: scene.hold(replace_devices("pdisk-2-1")), False),
    ],
)
def test_what_counts_as_away(how: Callable[[Scene], object], counts: bool) -> None:
    scene = Scene(config=settings(cluster=limits(1)))
    how(scene)
    assert scene.ask("h1").code is (TEMP if counts else ALLOW)


@pytest.mark.parametrize(
    "lock",
    [
        lambda scene: scene.hold("h2"),
        lambda scene: scene.announce("h2"),
        lambda scene: scene.queue("h2", order=1),
    ],
)
def test_a_node_that_is_down_and_locked_counts_once(lock: Callable[[Scene], object]) -> None:
    scene = Scene(config=settings(cluster=limits(2)))
    scene.node(2, state=DOWN)
    lock(scene)
    assert scene.ask("h1").code is ALLOW


@pytest.mark.parametrize(
    "lock",
    [lambda scene: scene.announce("h2", begins=3 * MINUTE), lambda scene: scene.queue("h2", order=101)],
)
def test_a_node_that_is_down_counts_also_under_a_lock_that_does_not(lock: Callable[[Scene], object]) -> None:
    scene = Scene(config=settings(cluster=limits(1)))
    scene.node(2, state=DOWN)
    lock(scene)
    assert scene.ask("h1").code is TEMP


def test_replacing_a_device_asks_no_limit() -> None:
    scene = Scene(config=settings(cluster=limits(1)))
    scene.hold("h2")
    assert scene.ask(replace_devices("pdisk-1-1")).code is ALLOW


def test_a_node_that_is_surely_down_may_be_worked_on_whatever_the_limits_and_groups_say() -> None:
    scene = Scene(config=settings(cluster=limits(1)))
    scene.group(range(1, 9), down=[3])
    scene.hold("h2")
    scene.node(1, state=DOWN)
    assert scene.ask("h1").code is ALLOW
    # A node whose agent is merely silent is asked about as if it were up.
    scene.node(1, state=DOWN, surely_down=False)
    assert scene.ask("h1").code is TEMP


def test_a_down_node_that_the_request_takes_counts_once() -> None:
    scene = Scene(config=settings(cluster=limits(2)))
    scene.node(1, state=DOWN)
    assert scene.ask("h1", "h2").code is ALLOW
    assert granted(scene.ask("h1", "h2", "h3", partial=True)) == ["h1", "h2"]


def test_a_silent_node_does_not_stand_in_its_own_way() -> None:
    scene = Scene(config=settings(cluster=limits(1)))
    scene.node(1, state=DOWN, surely_down=False)
    assert scene.ask("h1").code is ALLOW
    assert scene.ask("h2").code is TEMP


def test_force_passes_a_limit_that_would_allow_nothing_and_only_then() -> None:
    scene = Scene(config=settings(cluster=limits(2)))
    for number in (6, 7, 8):
        scene.node(number, state=DOWN)
    assert scene.ask("h1").code is TEMP
    assert granted(scene.ask("h1", "h2", mode=FORCE, partial=True)) == ["h1"]
    scene.hold("h2")
    assert scene.ask("h1", mode=FORCE).code is TEMP


def test_a_host_that_is_down_under_a_permission_that_has_expired_is_locked_and_not_broken() -> None:
    scene = Scene(config=settings(cluster=limits(1)))
    scene.node(2, state=DOWN)
    assert scene.ask("h1", mode=FORCE).code is ALLOW
    scene.hold("h2", lasts=-1)
    assert scene.ask("h1", mode=FORCE).code is TEMP


def test_a_request_that_is_larger_than_the_limit_contradicts_itself() -> None:
    scene = Scene(config=settings(cluster=limits(2)))
    assert scene.ask("h1", "h2", "h3").code is DISALLOW
    assert scene.ask("h1", "h2").code is ALLOW
    scene.node(8, state=DOWN)
    # Not its own fault: when node 8 is back it fits.
    assert scene.ask("h1", "h2").code is TEMP


def test_the_deadline_is_when_few_enough_are_away() -> None:
    scene = Scene(config=settings(cluster=limits(2)))
    for number, lasts in ((2, 50), (3, 30), (4, 40)):
        scene.hold(f"h{number}", lasts=lasts * MINUTE)
    # Three are away and two may be, the one asked for included: two must be back.
    assert scene.ask("h1").deadline == NOW + 40 * MINUTE
    assert scene.ask("h1", now=NOW + 40 * MINUTE - 1).code is TEMP
    assert scene.ask("h1", now=NOW + 40 * MINUTE).code is ALLOW


def test_the_first_node_of_a_host_does_not_end_before_the_second_is_asked_for() -> None:
    scene = Scene(config=settings(cluster=limits(2)))
    scene.node(2, host="h1")
    scene.hold("h3", lasts=9 * MINUTE)
    for partial in (True, False):
        assert scene.ask("h1", partial=partial).deadline == NOW + 9 * MINUTE


def test_by_force_it_is_also_when_nothing_is_locked() -> None:
    scene = Scene(config=settings(cluster=limits(1)))
    scene.node(8, state=DOWN)
    scene.hold("h2", lasts=2 * MINUTE)
    assert scene.ask("h1", mode=FORCE).deadline == NOW + 2 * MINUTE
    assert scene.ask("h1").deadline == NOW + 5 * MINUTE


def test_announced_work_is_counted_once_for_a_node_that_a_shorter_action_took() -> None:
    scene = Scene(config=settings(cluster=limits(2)))
    scene.announce("h1", begins=10 * MINUTE)
    # The first action is over before the announced work, the second may meet it.
    answer = scene.ask(shut_down("h1", MINUTE), shut_down("h2", 9 * MINUTE), partial=True)
    assert answer.code is ALLOW
    assert scene.ask(shut_down("h1", 9 * MINUTE)).code is TEMP


def test_limits_follow_a_node_that_changes_its_tenant_or_goes_away() -> None:
    scene = Scene(4, config=settings(tenant=limits(1)), tenants={1: "red", 2: "red"})
    scene.hold("h2")
    assert scene.ask("h1").code is TEMP
    scene.node(2, tenant="blue")
    assert scene.ask("h1").code is ALLOW
    scene.node(2, tenant="red")
    scene.model.remove_node(2)
    assert scene.ask("h1").code is ALLOW


def test_limits_can_be_changed() -> None:
    scene = Scene(config=settings(cluster=limits(1)))
    scene.hold("h2")
    assert scene.ask("h1").code is TEMP
    scene.model.configure(settings(cluster=NO_LIMITS))
    assert scene.ask("h1").code is ALLOW


def test_a_refusal_names_those_that_are_away() -> None:
    scene = Scene(config=settings(cluster=limits(2)))
    scene.node(3, state=DOWN)
    scene.hold("h2")
    issue = scene.ask("h1").refusals[0].issue
    assert {(blocker.object, blocker.id) for blocker in issue.blockers} == {("h2", "bob-p-1"), ("h3", "")}
    assert "2 of 8 nodes in the cluster" in issue.message
