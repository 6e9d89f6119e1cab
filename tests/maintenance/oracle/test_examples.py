"""Examples whose answers the texts give in so many words, put to the oracle and to the broker."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from quorate.api.maintenance.action import ActionType, AvailabilityMode, HostState, IssueType, StatusCode, TenantPolicy
from quorate.api.maintenance.broker_config import BrokerConfigSpec, Limits
from quorate.maintenance.messages import Action, CheckRequest, ManagePermission, PermissionCommand, PermissionRequest
from quorate.maintenance.moments import SECOND
from quorate.maintenance.nouns import DriveId, DriveInfo, GroupInfo, Ring, Rings, Species, VDiskId, VDiskInfo
from tests.maintenance.oracle.clusters import BEGIN, node
from tests.maintenance.oracle.life import Life, Said
from tests.maintenance.oracle.product import Product, weigh_both
from tests.maintenance.oracle.world import World

MAX, KEEP, FORCE = AvailabilityMode
ALLOW, PARTIAL, DISALLOW, TEMP = (
    StatusCode.ALLOW,
    StatusCode.ALLOW_PARTIAL,
    StatusCode.DISALLOW,
    StatusCode.DISALLOW_TEMP,
)
UNLIMITED = Limits(disabled_nodes_limit=0, disabled_nodes_ratio_limit=0)


class Both:
    """The oracle and the broker, which must answer the same."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.life = Life(world, BEGIN)
        self.product = Product(world, BEGIN)

    def request(self, *hosts: str | Action, user: str = "alice", **fields: Any) -> Said:
        """Ask for hosts, a minute each."""
        message = PermissionRequest(user=user, actions=tuple(map(shutdown, hosts)), **fields)
        return self.weighed("permission_request", message)

    def check(self, request_id: str, mode: AvailabilityMode | None = None) -> Said:
        message = CheckRequest(user=request_id.split("-")[0], request_id=request_id, availability_mode=mode)
        return self.weighed("check_request", message)

    def manage(self, command: PermissionCommand, *names: str, deadline: int | None = None) -> Said:
        message = ManagePermission(command=command, user="alice", permissions=names, deadline=deadline)
        said = self.product.manage_permission(message)
        assert said == self.life.manage_permission(message)
        return said

    def put(self, number: int, state: HostState) -> None:
        """A node goes down or comes up."""
        changed = replace(self.world.nodes[number], state=state, surely_down=state is HostState.DOWN)
        self.world.nodes[number] = changed
        self.product.model.put_node(changed)
        self.life.tidy()
        self.product.changed()

    def advance(self, seconds: int) -> None:
        self.life.now += seconds * SECOND
        self.life.tidy()
        self.product.advance(self.life.now)

    def weighed(self, question: str, message: PermissionRequest | CheckRequest) -> Said:
        expected, got = weigh_both(self.life, self.product, question, message)
        assert got._replace(deadline=None) == expected
        return got


def shutdown(host: str | Action) -> Action:
    if isinstance(host, Action):
        return host
    return Action(type=ActionType.SHUTDOWN_HOST, host=host, duration=60 * SECOND)


def replace_devices(*names: str) -> Action:
    return Action(type=ActionType.REPLACE_DEVICES, devices=names, duration=60 * SECOND)


def cluster(nodes: int = 8, species: Species | None = None, limits: Limits = UNLIMITED, tenant: str = "") -> World:
    """Nodes h1… with a drive each, in one group or in none."""
    world = World(settings=BrokerConfigSpec(cluster_limits=limits, tenant_limits=UNLIMITED))
    for number in range(1, nodes + 1):
        world.nodes[number] = node(number, f"h{number}", tenant, HostState.UP)
        world.drives[DriveId(number, 1)] = DriveInfo(id=DriveId(number, 1), path="/dev/sda")
    if species is not None:
        realms = 3 if species is Species.MIRROR_3_DC else 1
        vdisks = [
            VDiskInfo(
                id=VDiskId(0, 1, place % realms, place // realms, 0), node=place + 1, drives=(DriveId(place + 1, 1),)
            )
            for place in range(nodes)
        ]
        world.groups[0] = GroupInfo(id=0, species=species, vdisks=tuple(vdisks))
    return world


@pytest.fixture
def begin() -> Iterator[type[Both]]:
    """Begins, and ends what was begun."""
    begun: list[Both] = []

    class Begun(Both):
        def __init__(self, world: World) -> None:
            super().__init__(world)
            begun.append(self)

    yield Begun
    for both in begun:
        both.product.close()


def grant_all(both: Both, hosts: int, **fields: Any) -> int:
    """How many of the hosts may go at once."""
    said = both.request(*(f"h{number}" for number in range(1, hosts + 1)), partial_permission_allowed=True, **fields)
    return len(said.permissions)


@pytest.mark.parametrize(
    ("ratio", "limit", "allowed"),
    [(20, 0, 1), (30, 0, 2), (13, 0, 1), (0, 3, 3), (50, 2, 2), (0, 0, 8)],
)
def test_limits_leave_at_least_one_node(begin: type[Both], ratio: int, limit: int, allowed: int) -> None:
    limits = Limits(disabled_nodes_limit=limit, disabled_nodes_ratio_limit=ratio)
    assert grant_all(begin(cluster(limits=limits)), 8) == allowed


def test_tenant_limits_bind_only_under_the_default_policy(begin: type[Both]) -> None:
    world = cluster(tenant="red")
    world.settings = BrokerConfigSpec(cluster_limits=UNLIMITED, tenant_limits=Limits(disabled_nodes_limit=2))
    assert grant_all(begin(world), 8, dry_run=True) == 1
    assert grant_all(begin(cluster(tenant="red")), 8, tenant_policy=TenantPolicy.NONE, dry_run=True) == 8


@pytest.mark.parametrize(
    ("species", "nodes", "mode", "broken", "allowed"),
    [
        (Species.BLOCK_4_2, 8, MAX, 0, 1),
        (Species.BLOCK_4_2, 8, MAX, 1, 0),
        (Species.BLOCK_4_2, 8, KEEP, 0, 1),
        (Species.BLOCK_4_2, 8, KEEP, 1, 1),
        (Species.BLOCK_4_2, 8, KEEP, 2, 0),
        (Species.BLOCK_4_2, 8, FORCE, 5, 1),
        (Species.MIRROR_3, 3, KEEP, 1, 1),
        (Species.BLOCK_4_3, 8, KEEP, 2, 1),
        (Species.BLOCK_3_1, 5, KEEP, 1, 0),
        (Species.NONE, 1, KEEP, 0, 0),
        (Species.NONE, 1, FORCE, 0, 1),
        # Three realms of three: 1, 4, 7 are the first one's.
        (Species.MIRROR_3_DC, 9, KEEP, 2, 1),
        (Species.MIRROR_3_DC, 9, KEEP, 3, 0),
    ],
)
def test_a_mode_spends_as_much_redundancy_as_it_may(
    begin: type[Both], species: Species, nodes: int, mode: AvailabilityMode, broken: int, allowed: int
) -> None:
    world = cluster(nodes, species)
    for number in range(nodes - broken + 1, nodes + 1):
        world.drives[DriveId(number, 1)] = replace(world.drives[DriveId(number, 1)], state=HostState.DOWN)
    assert grant_all(begin(world), nodes - broken, availability_mode=mode) == allowed


def test_two_hosts_of_a_group_at_once_contradict_themselves(begin: type[Both]) -> None:
    both = begin(cluster(species=Species.BLOCK_4_2))
    for mode in (MAX, KEEP, FORCE):
        said = both.request("h1", "h2", availability_mode=mode, schedule=True)
        assert said.code is DISALLOW
        assert not said.id


def test_a_group_without_redundancy_is_refused_for_good(begin: type[Both]) -> None:
    said = begin(cluster(1, Species.NONE)).request("h1", schedule=True)
    assert (said.code, said.id) == (DISALLOW, "")


def test_a_rolling_restart_ends_with_allow_and_a_forgotten_request(begin: type[Both]) -> None:
    both = begin(cluster(4, Species.BLOCK_4_2))
    said = both.request("h1", "h2", "h3", "h4", partial_permission_allowed=True, schedule=True)
    codes = [said.code]
    while said.code is not ALLOW:
        assert both.check("alice-r-1").code is TEMP
        both.manage(PermissionCommand.DONE, *(permission.id for permission in said.permissions))
        said = both.check("alice-r-1")
        codes.append(said.code)
    assert codes == [PARTIAL, PARTIAL, PARTIAL, ALLOW]
    assert both.check("alice-r-1").code is StatusCode.WRONG_REQUEST


def test_a_stored_request_goes_before_later_ones_and_priority_before_that(begin: type[Both]) -> None:
    """M17."""
    both = begin(cluster(4, Species.BLOCK_4_2))
    both.request("h1", user="alice")
    assert both.request("h2", user="bob", schedule=True).id == "bob-r-1"
    assert both.request("h3", user="carol", schedule=True, priority=-5).id == "carol-r-2"
    both.manage(PermissionCommand.DONE, "alice-p-1")
    assert both.request("h4", user="dave").code is TEMP
    assert both.check("bob-r-1").code is TEMP
    assert both.check("carol-r-2").code is ALLOW


def test_a_host_that_is_down_keeps_its_lock_until_it_is_up(begin: type[Both]) -> None:
    both = begin(cluster(4, Species.BLOCK_4_2))
    both.request("h1")
    both.put(1, HostState.DOWN)
    both.advance(3600)
    assert both.request("h1", user="bob").code is TEMP
    assert both.request("h2", user="bob").code is TEMP
    both.put(1, HostState.UP)
    assert both.manage(PermissionCommand.LIST).permissions == ()
    assert both.request("h2", user="bob").code is ALLOW


def test_a_permission_that_nobody_used_ends_at_its_deadline(begin: type[Both]) -> None:
    both = begin(cluster(4, Species.BLOCK_4_2))
    both.request("h1")
    refused = both.request("h2", user="bob")
    assert (refused.code, refused.deadline) == (TEMP, BEGIN + 60 * SECOND)
    both.advance(60)
    assert both.request("h2", user="bob").code is ALLOW


def test_what_is_down_may_be_worked_on(begin: type[Both]) -> None:
    both = begin(cluster(8, limits=Limits(disabled_nodes_limit=1)))
    both.put(1, HostState.DOWN)
    assert both.request("h2").code is TEMP
    assert both.request("h1").code is ALLOW


@pytest.mark.parametrize(("mode", "allowed"), [(MAX, 1), (KEEP, 2), (FORCE, 6)])
def test_rings_bear_as_many_as_their_mode_allows(begin: type[Both], mode: AvailabilityMode, allowed: int) -> None:
    world = cluster(6)
    world.rings = Rings(to_select=5, rings=tuple(Ring(nodes=(number,)) for number in world.nodes))
    assert grant_all(begin(world), 6, availability_mode=mode) == allowed


def test_all_nodes_of_one_ring_may_go_together(begin: type[Both]) -> None:
    world = cluster(6)
    world.rings = Rings(to_select=3, rings=(Ring((1, 2)), Ring((3, 4)), Ring((5, 6))))
    assert begin(world).request("h1", "h2").code is ALLOW


def test_a_ring_cools_down_after_a_start(begin: type[Both]) -> None:
    world = cluster(3)
    world.rings = Rings(to_select=3, rings=(Ring((1,)), Ring((2,)), Ring((3,))))
    world.nodes[2] = replace(world.nodes[2], start_time=BEGIN - 100 * SECOND)
    both = begin(world)
    refused = both.request("h1")
    assert refused.refused[0][1] is IssueType.TOO_MANY_UNAVAILABLE_STATE_STORAGE_RINGS
    assert refused.deadline == BEGIN + 20 * SECOND + 1
    assert both.request("h2").code is ALLOW


def test_nodes_of_one_host_see_each_other(begin: type[Both]) -> None:
    world = cluster(8, Species.BLOCK_4_2)
    world.nodes[2] = replace(world.nodes[2], host="h1")
    both = begin(world)
    assert both.request("h1").code is DISALLOW
    assert both.request("h1", "h3", partial_permission_allowed=True).code is PARTIAL


def test_a_drive_and_its_node_are_held_together(begin: type[Both]) -> None:
    both = begin(cluster(8, Species.BLOCK_4_2))
    assert both.request(replace_devices("pdisk-1-1")).code is ALLOW
    assert both.request("h1", user="bob").code is TEMP
    assert both.request(replace_devices("vdisk-0-1-0-0-0"), user="bob").code is TEMP


@pytest.mark.parametrize(
    ("action", "code"),
    [
        (Action(type=ActionType.SHUTDOWN_HOST, host="nowhere"), StatusCode.NO_SUCH_HOST),
        (Action(type=ActionType.SHUTDOWN_HOST, host="0"), StatusCode.NO_SUCH_HOST),
        (Action(type=ActionType.RESTART_SERVICES, host="h1", services=("dynnode",)), StatusCode.NO_SUCH_SERVICE),
        (Action(type=ActionType.RESTART_SERVICES, host="h1", services=("x",)), StatusCode.WRONG_REQUEST),
        (Action(type=ActionType.RESTART_SERVICES, host="h1"), StatusCode.WRONG_REQUEST),
        (Action(type=ActionType.REPLACE_DEVICES, devices=("pdisk-9-9",)), StatusCode.NO_SUCH_DEVICE),
        (Action(type=ActionType.REPLACE_DEVICES, host="h1", devices=("/dev/sdz",)), StatusCode.NO_SUCH_DEVICE),
        (Action(type=ActionType.REPLACE_DEVICES, host="h1", devices=("/dev/sda",)), ALLOW),
        (Action(type=ActionType.RESTART_SERVICES, host="h1", services=("storage",)), ALLOW),
        (Action(type=ActionType.SHUTDOWN_HOST, host="1"), ALLOW),
        (Action(type=ActionType.ADD_HOST, host="h1"), StatusCode.ERROR),
        (Action(type=ActionType.DECOMMISSION_HOST, host="h1"), StatusCode.ERROR),
        (Action(host="h1"), StatusCode.WRONG_REQUEST),
    ],
)
def test_each_kind_of_action_has_its_answer(begin: type[Both], action: Action, code: StatusCode) -> None:
    assert begin(cluster()).request(action, dry_run=True).code is code


def test_extending_asks_again_and_shortening_does_not(begin: type[Both]) -> None:
    both = begin(cluster(8, Species.BLOCK_4_2))
    both.request("h1")
    later = BEGIN + 900 * SECOND
    assert both.manage(PermissionCommand.EXTEND, "alice-p-1", deadline=later).code is ALLOW
    both.put(2, HostState.DOWN)
    assert both.manage(PermissionCommand.EXTEND, "alice-p-1", deadline=later + 1).code is DISALLOW
    assert both.manage(PermissionCommand.EXTEND, "alice-p-1", deadline=later - 1).code is ALLOW
