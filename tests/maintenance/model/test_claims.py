"""Locks follow what they name: things may appear, move and go away after somebody has them."""

from __future__ import annotations

from quorate.api.maintenance.action import ActionType, StatusCode
from quorate.api.struct import replace
from quorate.maintenance.messages import Action
from quorate.maintenance.nouns import DriveId, DriveInfo
from tests.maintenance.rules.making import MINUTE, Scene, replace_devices, restart, shut_down

ALLOW, TEMP = StatusCode.ALLOW, StatusCode.DISALLOW_TEMP


def test_a_host_that_appears_later_is_locked_already() -> None:
    scene = Scene(1)
    scene.hold("h2")
    scene.hold("3")
    scene.node(2)
    scene.node(3)
    assert scene.ask("h2").code is TEMP
    assert scene.ask("h3").code is TEMP


def test_a_host_that_gets_another_node_is_locked_with_it() -> None:
    scene = Scene(2)
    scene.hold("h1")
    assert scene.ask("2").code is ALLOW
    scene.node(2, host="h1")
    assert scene.ask("2").code is TEMP
    scene.node(2)
    assert scene.ask("2").code is ALLOW


def test_a_host_that_comes_back_is_still_locked() -> None:
    scene = Scene(1)
    scene.hold("h1")
    scene.model.remove_node(1)
    scene.node(1)
    assert scene.ask("h1").code is TEMP


def test_a_drive_that_appears_later_is_locked_already() -> None:
    scene = Scene(1)
    scene.hold(replace_devices("pdisk-1-7"))
    scene.model.put_drive(DriveInfo(id=DriveId(1, 7)))
    assert scene.ask(replace_devices("pdisk-1-7")).code is TEMP
    scene.model.remove_drive(DriveId(1, 7))
    scene.model.put_drive(DriveInfo(id=DriveId(1, 7)))
    assert scene.ask(replace_devices("pdisk-1-7")).code is TEMP


def test_a_path_means_the_drive_that_has_it() -> None:
    scene = Scene(1)
    scene.model.put_drive(DriveInfo(id=DriveId(1, 2), path="/dev/sdc"))
    scene.hold(replace_devices("/dev/sdc", host="h1"))
    assert scene.ask(replace_devices("pdisk-1-1")).code is ALLOW
    assert scene.ask(replace_devices("pdisk-1-2")).code is TEMP
    scene.model.put_drive(DriveInfo(id=DriveId(1, 2), path="/dev/sdd"))
    scene.model.put_drive(DriveInfo(id=DriveId(1, 1), path="/dev/sdc"))
    assert scene.ask(replace_devices("pdisk-1-1")).code is TEMP
    assert scene.ask(replace_devices("pdisk-1-2")).code is ALLOW


def test_a_replica_is_locked_before_and_after_its_group_is_made_anew() -> None:
    scene = Scene()
    scene.hold(replace_devices("vdisk-0-1-0-0-0"))
    scene.group([1, 2, 3])
    assert scene.ask("h1").code is TEMP
    scene.group([4, 5, 6])
    assert scene.ask("h1").code is ALLOW
    assert scene.ask("h4").code is TEMP
    scene.model.remove_group(0)
    assert scene.ask("h4").code is ALLOW


def test_services_are_locked_where_they_are_now() -> None:
    scene = Scene(2)
    scene.hold(restart("h1", "dynnode"))
    assert scene.ask("h1").code is ALLOW
    scene.node(1, services=("dynnode",))
    assert scene.ask("h1").code is TEMP


def test_a_tenants_hosts_are_locked_as_its_nodes_come_and_go() -> None:
    scene = Scene(3)
    scene.announce(Action(type=ActionType.SHUTDOWN_HOST, tenant="red", duration=MINUTE))
    assert scene.ask("h1").code is ALLOW
    scene.node(1, tenant="red")
    assert scene.ask("h1").code is TEMP
    # All of the host, also its nodes of other tenants.
    scene.node(2, host="h1", tenant="blue")
    assert scene.ask("2").code is TEMP
    scene.node(1)
    assert scene.ask("h1").code is ALLOW


def test_a_device_that_is_gone_frees_nothing_else() -> None:
    scene = Scene(2)
    scene.hold(replace_devices("pdisk-1-1", "pdisk-2-1"))
    scene.model.remove_drive(DriveId(2, 1))
    assert scene.ask(replace_devices("pdisk-1-1")).code is TEMP


def test_a_permission_that_is_held_again_has_its_new_end_only() -> None:
    scene = Scene(1)
    permission = scene.hold("h1", lasts=10 * MINUTE)
    scene.model.hold(replace(permission, deadline=scene.now + MINUTE))
    assert scene.ask("h1", now=scene.now + MINUTE).code is ALLOW
    scene.model.release(permission.id)
    assert scene.ask(shut_down("h1")).code is ALLOW
