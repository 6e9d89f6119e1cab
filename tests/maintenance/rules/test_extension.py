"""Permissions that exist: more time, less time, and whether they outlive their deadline."""

from __future__ import annotations

import pytest

from quorate.api.maintenance.action import HostState, StatusCode, TenantPolicy
from quorate.api.maintenance.broker_config import Limits
from quorate.maintenance.evaluation import Refusal
from quorate.maintenance.model import Items
from quorate.maintenance.nouns import DriveId, DriveInfo
from quorate.maintenance.rules import is_down, may_extend, resolve
from tests.maintenance.rules.making import (
    DOWN,
    FORCE,
    KEEP,
    MINUTE,
    NOW,
    RESTART,
    UNKNOWN,
    UP,
    Scene,
    part,
    replace_devices,
    restart,
    settings,
    shut_down,
)


def test_more_time_is_granted_as_if_the_permission_were_not_there() -> None:
    scene = Scene(config=settings(cluster=Limits(disabled_nodes_limit=1, disabled_nodes_ratio_limit=0)))
    scene.group(range(1, 9))
    permission = scene.hold("h1", lasts=MINUTE)
    version = scene.model.version
    assert may_extend(scene.model, permission, NOW + 60 * MINUTE, NOW) is None
    assert scene.model.version == version
    assert scene.ask("h1").code is StatusCode.DISALLOW_TEMP


def test_less_time_is_always_granted() -> None:
    scene = Scene()
    scene.group(range(1, 9), down=[2, 3, 4])
    permission = scene.hold("h1")
    assert may_extend(scene.model, permission, NOW + MINUTE, NOW) is None
    assert may_extend(scene.model, permission, 0, NOW) is None


def test_more_time_is_refused_for_good_where_a_group_has_become_worse() -> None:
    scene = Scene()
    scene.group(range(1, 9))
    permission = scene.hold("h1")
    scene.node(2, state=DOWN)
    refusal = may_extend(scene.model, permission, NOW + 60 * MINUTE, NOW)
    assert refusal is not None
    assert refusal.code is StatusCode.DISALLOW
    assert scene.ask("h1").refusals[0].issue.blockers[0].id == permission.id


def test_more_time_is_refused_where_it_would_meet_announced_work() -> None:
    scene = Scene()
    permission = scene.hold("h1", lasts=10 * MINUTE)
    scene.announce("h1", begins=30 * MINUTE)
    assert may_extend(scene.model, permission, NOW + 29 * MINUTE - 1, NOW) is None
    assert may_extend(scene.model, permission, NOW + 29 * MINUTE, NOW) is not None


def test_who_waits_in_the_queue_does_not_end_a_permission() -> None:
    scene = Scene()
    scene.group(range(1, 9))
    permission = scene.hold("h1")
    scene.queue("h1", "h2", order=1, priority=-100)
    assert may_extend(scene.model, permission, NOW + 60 * MINUTE, NOW) is None


def test_a_host_that_is_down_under_its_permission_may_stay_down_longer() -> None:
    scene = Scene(config=settings(cluster=Limits(disabled_nodes_limit=1, disabled_nodes_ratio_limit=0)))
    permission = scene.hold("h1", lasts=MINUTE)
    scene.node(1, state=DOWN)
    scene.node(2, state=DOWN)
    assert may_extend(scene.model, permission, NOW + 60 * MINUTE, NOW + 5 * MINUTE) is None


def test_a_permission_for_a_host_that_is_gone_cannot_be_extended() -> None:
    scene = Scene()
    permission = scene.hold("h1")
    scene.model.remove_node(1)
    refusal = may_extend(scene.model, permission, NOW + 60 * MINUTE, NOW)
    assert refusal is not None
    assert refusal.code is StatusCode.NO_SUCH_HOST


@pytest.mark.parametrize(("state", "down"), [(UP, False), (DOWN, True), (RESTART, True), (UNKNOWN, True)])
def test_a_permission_is_down_when_anything_of_it_is_not_up(state: HostState, down: bool) -> None:
    scene = Scene()
    of_node, of_drive = scene.hold("h1"), scene.hold(replace_devices("pdisk-2-1", "pdisk-3-1"))
    scene.node(1, state=state)
    scene.model.put_drive(DriveInfo(id=DriveId(3, 1), state=state))
    assert is_down(scene.model, of_node) is down
    assert is_down(scene.model, of_drive) is down


def test_a_permission_for_what_is_gone_is_not_down() -> None:
    scene = Scene()
    permission = scene.hold("h1")
    scene.model.remove_node(1)
    assert not is_down(scene.model, permission)


def test_an_action_is_resolved_to_what_it_would_lock() -> None:
    scene = Scene()
    scene.group(range(1, 9))
    scene.node(2, host="h1", services=("dynnode",))
    assert resolve(scene.model, shut_down("h1")) == Items(nodes=(1, 2))
    assert resolve(scene.model, restart("h1", "dynnode")) == Items(nodes=(2,))
    devices = resolve(scene.model, replace_devices("vdisk-0-1-0-3-0", "/dev/sdb", host="h5"))
    assert devices == Items(devices=(part(3), DriveId(5, 1)))
    assert isinstance(devices, Items)
    assert (devices.drives, devices.vdisks) == ((DriveId(5, 1),), (part(3),))
    wrong = resolve(scene.model, shut_down("h99"))
    assert isinstance(wrong, Refusal)
    assert wrong.code is StatusCode.NO_SUCH_HOST


def test_more_time_is_asked_under_the_mode_and_the_policy_that_are_given() -> None:
    scene = Scene(config=settings(tenant=Limits(disabled_nodes_limit=1)), tenants={1: "red", 2: "red"})
    scene.group(range(1, 9), down=[3])
    permission = scene.hold("h1")
    longer = NOW + 60 * MINUTE
    assert may_extend(scene.model, permission, longer, NOW) is not None
    assert may_extend(scene.model, permission, longer, NOW, mode=KEEP) is None
    scene.hold("h2")
    assert may_extend(scene.model, permission, longer, NOW, mode=FORCE) is not None
    scene.model.remove_group(0)
    assert may_extend(scene.model, permission, longer, NOW) is not None
    assert may_extend(scene.model, permission, longer, NOW, tenant_policy=TenantPolicy.NONE) is None
