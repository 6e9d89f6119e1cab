"""Where the oracle and the broker once differed: the smallest case of each, and what the texts say."""

from __future__ import annotations

from dataclasses import replace

from quorate.api.maintenance.action import HostState, StatusCode, TenantPolicy
from quorate.api.maintenance.broker_config import BrokerConfigSpec, Limits
from quorate.maintenance.messages import CheckRequest, ManagePermission, PermissionCommand, PermissionRequest, WalleTask
from quorate.maintenance.moments import SECOND
from quorate.maintenance.nouns import (
    DriveId,
    DriveInfo,
    GroupInfo,
    MemberFacts,
    Species,
    VDiskId,
    VDiskInfo,
    VolumeFacts,
)
from tests.maintenance.oracle.clusters import BEGIN
from tests.maintenance.oracle.life import WALLE
from tests.maintenance.oracle.test_examples import (
    ALLOW,
    DISALLOW,
    KEEP,
    TEMP,
    UNLIMITED,
    Both,
    begin,
    cluster,
    shutdown,
)

__all__ = ["begin"]


def test_a_node_with_two_parts_of_a_group_is_refused_for_good_also_in_a_partial_request(begin: type[Both]) -> None:
    """It contradicts itself, whatever else is in its way: waiting helps nobody."""
    world = cluster(4, Species.BLOCK_4_2)
    second = DriveId(1, 2)
    world.drives[second] = DriveInfo(id=second)
    parts = (*world.groups[0].vdisks, VDiskInfo(id=VDiskId(0, 1, 0, 9, 0), node=1, drives=(second,)))
    world.groups[0] = replace(world.groups[0], vdisks=parts)
    world.drives[DriveId(4, 1)] = replace(world.drives[DriveId(4, 1)], state=HostState.DOWN)
    both = begin(world)
    assert both.request("h1").code is DISALLOW
    assert both.request("h1", partial_permission_allowed=True).code is DISALLOW


def test_a_contradiction_is_seen_behind_a_volume_that_must_wait(begin: type[Both]) -> None:
    world = cluster(4, Species.BLOCK_4_2)
    world.nodes[2] = replace(world.nodes[2], host="h1")
    # The volume comes first on its node.
    world.groups = {2: renumbered(world.groups[0], 2)}
    name = VDiskId(1, 1, 0, 0, 0)
    only = MemberFacts(vdisk=name, node=1, voter=True, up_to_date=True, connected=True)
    facts = VolumeFacts(name="precious", members=(only,), quorum=1, quorum_minimum_redundancy=1)
    part = VDiskInfo(id=name, node=1, drives=(DriveId(1, 1),))
    world.groups = {1: GroupInfo(id=1, species=None, volume=facts, vdisks=(part,)), **world.groups}
    both = begin(world)
    assert both.request("h1").code is DISALLOW


def renumbered(group: GroupInfo, number: int) -> GroupInfo:
    vdisks = tuple(replace(vdisk, id=vdisk.id._replace(group=number)) for vdisk in group.vdisks)
    return replace(group, id=number, vdisks=vdisks)


def test_a_permission_is_extended_under_the_mode_it_was_granted_in(begin: type[Both]) -> None:
    """What would be granted again may last longer."""
    world = cluster(8, Species.BLOCK_4_2)
    world.drives[DriveId(8, 1)] = replace(world.drives[DriveId(8, 1)], state=HostState.DOWN)
    both = begin(world)
    assert both.request("h1").code is TEMP
    assert both.request("h1", availability_mode=KEEP).code is ALLOW
    longer = BEGIN + 600 * SECOND
    assert both.manage(PermissionCommand.EXTEND, "alice-p-1", deadline=longer).code is ALLOW


def test_a_permission_is_extended_under_the_tenant_policy_it_was_granted_with(begin: type[Both]) -> None:
    world = cluster(4, tenant="red")
    world.settings = BrokerConfigSpec(cluster_limits=UNLIMITED, tenant_limits=Limits(disabled_nodes_limit=1))
    both = begin(world)
    assert both.request("h1", "h2", tenant_policy=TenantPolicy.NONE).code is ALLOW
    longer = BEGIN + 600 * SECOND
    assert both.manage(PermissionCommand.EXTEND, "alice-p-1", deadline=longer).code is ALLOW


def test_a_task_of_walle_keeps_what_a_plain_check_granted(begin: type[Both]) -> None:
    """Otherwise nobody could ever end it: its permission has no end."""
    both = begin(cluster(4, Species.BLOCK_4_2))
    both.request("h1")
    task = WalleTask(id="t", action="reboot", hosts=("h2",))
    assert both.product.walle_create(task, dry_run=False) is TEMP
    both.product.manage_permission(
        ManagePermission(command=PermissionCommand.DONE, user="alice", permissions=("alice-p-1",))
    )
    assert both.product.check_request(CheckRequest(user=WALLE, request_id="Wall-E-r-1")).code is ALLOW
    assert both.product.walle_list() == {"t": ALLOW}
    assert both.product.walle_remove("t") is StatusCode.OK
    listed = ManagePermission(command=PermissionCommand.LIST, user=WALLE)
    assert both.product.manage_permission(listed).permissions == ()


def test_what_is_surely_down_waits_for_its_lock_and_is_not_refused_for_good(begin: type[Both]) -> None:
    """It may be worked on whatever goes with it: two parts of a group on it are no contradiction while it is down."""
    world = cluster(4, Species.BLOCK_4_2)
    second = DriveId(1, 2)
    world.drives[second] = DriveInfo(id=second)
    parts = (*world.groups[0].vdisks, VDiskInfo(id=VDiskId(0, 1, 0, 9, 0), node=1, drives=(second,)))
    world.groups[0] = replace(world.groups[0], vdisks=parts)
    both = begin(world)
    both.put(1, HostState.DOWN)
    assert both.request("h1").code is ALLOW
    assert both.request("h1", user="bob").code is TEMP
    both.manage(PermissionCommand.DONE, "alice-p-1")
    assert both.request("h1", user="bob").code is ALLOW


def test_nobody_is_told_to_wait_for_the_end_of_time(begin: type[Both]) -> None:
    """A lock without end is given back one day: come again after the usual time, and fall silent if you do not."""
    both = begin(cluster(8, Species.BLOCK_4_2))
    assert both.product.walle_create(WalleTask(id="t", action="reboot", hosts=("h1",)), dry_run=False) is ALLOW
    retry = both.world.settings.default_retry_time.microseconds
    for host in ("h1", "h2"):
        refused = both.product.permission_request(PermissionRequest(user="bob", actions=(shutdown(host),)))
        assert (refused.code, refused.deadline) == (TEMP, BEGIN + retry)
