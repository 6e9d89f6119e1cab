"""Random histories, played into the oracle and into the broker: every answer is the same, and safe."""

from __future__ import annotations

import copy
import os
from dataclasses import replace
from functools import partial
from typing import Any

from hypothesis import HealthCheck, note
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from quorate.api.maintenance.action import AvailabilityMode, HostState, StatusCode, TenantPolicy
from quorate.api.struct import replace as struct_replace
from quorate.maintenance.messages import (
    CheckRequest,
    ManageNotification,
    ManagePermission,
    ManageRequest,
    NotificationCommand,
    NotificationRequest,
    PermissionCommand,
    PermissionRequest,
    RequestCommand,
    WalleTask,
)
from quorate.maintenance.moments import SECOND, later
from tests.maintenance.oracle import clusters
from tests.maintenance.oracle.asking import moments, unfair
from tests.maintenance.oracle.clusters import BEGIN, Pick
from tests.maintenance.oracle.life import WALLE, Life, Said
from tests.maintenance.oracle.product import Product, weigh_both
from tests.maintenance.oracle.safety import broken_promises
from tests.maintenance.oracle.walle import Desk
from tests.maintenance.oracle.world import DAY, World

FULL = os.environ.get("QUORATE_ORACLE") == "full"
USERS = ("alice", "bob")
MODES = st.sampled_from(AvailabilityMode)
STATES = st.sampled_from(clusters.STATES)
SPANS = (1, SECOND, 29 * SECOND, 120 * SECOND, 300 * SECOND, 3600 * SECOND, DAY)


def picker(data: st.DataObject) -> Pick:
    """Let Hypothesis choose."""
    return lambda options: data.draw(st.sampled_from(options))


def assert_same(got: Said, expected: Said) -> None:
    """Say in what two answers differ, and in nothing else."""
    assert got == expected, "\n".join(
        f"{field}: expected {getattr(expected, field)}\n{' ' * len(field)}  but got  {getattr(got, field)}"
        for field in Said._fields
        if getattr(expected, field) != getattr(got, field)
    )


class Histories(RuleBasedStateMachine):
    """One history."""

    life: Life
    desk: Desk
    product: Product

    @initialize(data=st.data())
    def begin(self, data: st.DataObject) -> None:
        world = clusters.cluster(picker(data))
        note(repr(world))
        self.life = Life(world, BEGIN)
        self.product = Product(world, BEGIN)
        self.desk = Desk(self.life)

    def teardown(self) -> None:
        if hasattr(self, "product"):
            self.product.close()

    @property
    def world(self) -> World:
        return self.life.world

    def both(self, question: str, message: Any) -> Said:
        """Ask both."""
        expected: Said = getattr(self.life, question)(message)
        got: Said = getattr(self.product, question)(message)
        note(f"{question} at {self.life.now - BEGIN}: {message}\n  -> {expected}")
        assert_same(got, expected)
        return expected

    def ask(self, question: str, message: PermissionRequest | CheckRequest, mode: AvailabilityMode) -> None:
        before = copy.copy(self.world)
        expected, got = weigh_both(self.life, self.product, question, message)
        note(f"{question} at {self.life.now - BEGIN}: {message}\n  -> {expected}")
        assert_same(got._replace(deadline=None), expected)
        if got.code is StatusCode.DISALLOW_TEMP:
            assert self.life.asked is not None
            assert unfair(before, self.life.asked, self.life.now, got.deadline) == ""
        if not message.dry_run:
            granted = {item for permission in got.permissions for item in self.world.items(permission.action)}
            assert broken_promises(self.world, granted, mode, self.life.now) == []

    @rule(data=st.data(), user=st.sampled_from(USERS), mode=MODES)
    def request(self, data: st.DataObject, user: str, mode: AvailabilityMode) -> None:
        self.ask_for_something(data, user, mode)

    @rule(data=st.data(), user=st.sampled_from(USERS))
    def request_as_usual(self, data: st.DataObject, user: str) -> None:
        """Rules are chosen evenly, and this is the question that everything is about."""
        self.ask_for_something(data, user, AvailabilityMode.MAX_AVAILABILITY)

    @rule(data=st.data(), user=st.sampled_from(USERS))
    def request_among_broken_disks(self, data: st.DataObject, user: str) -> None:
        self.ask_for_something(data, user, AvailabilityMode.KEEP_AVAILABLE)

    def ask_for_something(self, data: st.DataObject, user: str, mode: AvailabilityMode) -> None:
        dry_run = data.draw(st.integers(0, 5)) == 5
        self.ask("permission_request", self.question(picker(data), user, mode, dry_run=dry_run), mode)

    def question(self, pick: Pick, user: str, mode: AvailabilityMode, *, dry_run: bool) -> PermissionRequest:
        return PermissionRequest(
            user=user,
            actions=clusters.actions(pick, self.world, 5),
            partial_permission_allowed=pick((False, True)),
            schedule=pick((False, True)),
            dry_run=dry_run,
            duration=pick(clusters.DURATIONS),
            tenant_policy=pick((*TenantPolicy,)),
            availability_mode=mode,
            priority=pick((0, 0, 0, -10, 20)),
        )

    @precondition(lambda self: self.life.world.requests)
    @rule(data=st.data(), mode=st.none() | MODES, dry_run=st.integers(0, 5))
    def check(self, data: st.DataObject, mode: AvailabilityMode | None, dry_run: int) -> None:
        stored = data.draw(st.sampled_from(self.world.requests))
        message = CheckRequest(user=stored.owner, request_id=stored.id, dry_run=dry_run == 0, availability_mode=mode)
        self.ask("check_request", message, mode or stored.availability_mode)

    @rule(data=st.data(), user=st.sampled_from(USERS), command=st.sampled_from(RequestCommand), dry_run=st.booleans())
    def manage_request(self, data: st.DataObject, user: str, command: RequestCommand, dry_run: bool) -> None:
        known = [request.id for request in self.world.requests]
        name = data.draw(st.sampled_from([*known, "alice-r-99"]))
        message = ManageRequest(command=command, user=user, request_id=name, dry_run=dry_run)
        self.both("manage_request", message)

    @precondition(lambda self: self.life.world.permissions)
    @rule(
        data=st.data(), command=st.sampled_from([PermissionCommand.DONE, *PermissionCommand]), dry_run=st.integers(0, 3)
    )
    def manage_permission(self, data: st.DataObject, command: PermissionCommand, dry_run: int) -> None:
        held = self.world.permissions
        chosen = data.draw(st.lists(st.sampled_from(held), min_size=1, max_size=2, unique_by=lambda one: one.id))
        deadline = None
        if command is PermissionCommand.EXTEND:
            deadline = max(0, chosen[0].deadline + data.draw(st.sampled_from([-600, -1, 1, 60, 3600])) * SECOND)
            deadline = min(deadline, 2**64 - 1)
        message = ManagePermission(
            command=command,
            user=chosen[0].owner,
            permissions=tuple(one.id for one in chosen),
            deadline=deadline,
            dry_run=dry_run == 0,
        )
        self.both("manage_permission", message)

    @rule(data=st.data())
    def several_at_once(self, data: st.DataObject) -> None:
        """As if they had come one after another, though they share writes."""
        pick = picker(data)
        messages: list[PermissionRequest | CheckRequest | ManagePermission] = [
            *(self.question(pick, pick(USERS), pick((*AvailabilityMode,)), dry_run=False) for _ in range(3)),
            *(CheckRequest(user=one.owner, request_id=one.id) for one in clusters.some(pick, self.world.requests, 3)),
        ]
        for one in clusters.some(pick, self.world.permissions, 2):
            manage = partial(ManagePermission, user=one.owner, permissions=(one.id,))
            messages.append(manage(command=PermissionCommand.EXTEND, deadline=later(one.deadline, 1)))
            messages += [manage(command=PermissionCommand.REJECT), manage(command=PermissionCommand.DONE)]
        messages = clusters.some(pick, messages, len(messages), least=len(messages))
        for message, got in zip(messages, self.product.at_once(messages), strict=True):
            if isinstance(message, PermissionRequest):
                expected = self.life.permission_request(message, got.deadline)
            elif isinstance(message, CheckRequest):
                expected = self.life.check_request(message, got.deadline)
            else:
                expected = self.life.manage_permission(message)
            note(f"beside others at {self.life.now - BEGIN}: {message}\n  -> {expected}")
            assert_same(got._replace(deadline=None), expected)

    @rule(data=st.data(), user=st.sampled_from(USERS), offset=st.sampled_from([-3600, 0, 60, 700, 100_000]))
    def notify(self, data: st.DataObject, user: str, offset: int) -> None:
        asked = clusters.actions(picker(data), self.world, 2)
        message = NotificationRequest(user=user, actions=asked, time=self.life.now + offset * SECOND)
        self.both("notification", message)

    @rule(data=st.data(), user=st.sampled_from(USERS), command=st.sampled_from(NotificationCommand))
    def manage_notification(self, data: st.DataObject, user: str, command: NotificationCommand) -> None:
        known = [notification.id for notification in self.world.notifications]
        name = data.draw(st.sampled_from([*known, "bob-n-99"]))
        message = ManageNotification(command=command, user=user, notification_id=name)
        self.both("manage_notification", message)

    @rule(data=st.data(), number=st.integers(1, 3), dry_run=st.integers(0, 5))
    def walle_creates(self, data: st.DataObject, number: int, dry_run: int) -> None:
        name = f"task-{number}"
        self.desk.tidy()
        if name in self.desk.tasks:
            return
        hosts = sorted({node.host for node in self.world.nodes.values()})
        task = WalleTask(
            id=name,
            action=data.draw(st.sampled_from(["reboot", "reboot", "power-off", "change-disk", "prepare", "dance"])),
            hosts=tuple(data.draw(st.lists(st.sampled_from([*hosts, "nowhere"]), max_size=2, unique=True))),
        )
        expected = self.desk.create(task, dry_run=dry_run == 0)
        note(f"Wall-E at {self.life.now - BEGIN}: {task} -> {expected}")
        assert self.product.walle_create(task, dry_run=dry_run == 0) == expected
        self.learn_deadlines()

    @rule(number=st.integers(1, 3))
    def walle_checks(self, number: int) -> None:
        expected = self.desk.check(f"task-{number}")
        note(f"Wall-E at {self.life.now - BEGIN} checks {number} -> {expected}")
        assert self.product.walle_check(f"task-{number}") == expected
        self.learn_deadlines()

    def learn_deadlines(self) -> None:
        """Wall-E is not told when to come back; the broker knows."""
        known = {entry.id: entry.last_deadline for entry in self.product.broker.ledger.requests}
        self.world.requests = [
            struct_replace(one, last_deadline=known[one.id]) if one.owner == WALLE else one
            for one in self.world.requests
        ]

    @rule(number=st.integers(1, 3))
    def walle_removes(self, number: int) -> None:
        expected = self.desk.remove(f"task-{number}")
        note(f"Wall-E at {self.life.now - BEGIN} removes {number} -> {expected}")
        assert self.product.walle_remove(f"task-{number}") == expected

    @rule(data=st.data(), state=STATES)
    def node_state(self, data: st.DataObject, state: HostState) -> None:
        number = data.draw(st.sampled_from(sorted(self.world.nodes)))
        down = state is HostState.DOWN
        node = replace(self.world.nodes[number], state=state, surely_down=down)
        if state is HostState.UP:
            node = replace(node, start_time=self.life.now)
        self.world.nodes[number] = node
        self.product.model.put_node(node)
        self.changed()

    @rule(data=st.data(), state=STATES)
    def drive_state(self, data: st.DataObject, state: HostState) -> None:
        name = data.draw(st.sampled_from(sorted(self.world.drives)))
        self.world.drives[name] = replace(self.world.drives[name], state=state)
        self.product.model.put_drive(self.world.drives[name])
        self.changed()

    @precondition(lambda self: any(self.life.world.vdisks()))
    @rule(data=st.data(), state=STATES)
    def vdisk_state(self, data: st.DataObject, state: HostState) -> None:
        name = data.draw(st.sampled_from(sorted(vdisk.id for vdisk in self.world.vdisks())))
        self.world.set_vdisk(name, state)
        vdisk = self.world.vdisk(name)
        assert vdisk is not None
        self.product.model.put_vdisk(vdisk)
        self.changed()

    @precondition(lambda self: any(group.volume for group in self.life.world.groups.values()))
    @rule(data=st.data())
    def volume_changes(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from([one.id for one in self.world.groups.values() if one.volume is not None]))
        self.world.groups[number] = clusters.volume(picker(data), self.world, number)
        self.product.model.put_group(self.world.groups[number])
        self.changed()

    def changed(self) -> None:
        self.life.tidy()
        self.product.changed()

    @rule(data=st.data())
    def time_passes(self, data: st.DataObject) -> None:
        now = self.life.now
        coming = sorted(
            {at + late for at in moments(self.world) for late in (-1, 0, 1) if now < at + late < now + 2 * DAY}
        )
        self.life.now = data.draw(st.sampled_from([*(now + span for span in SPANS), *coming]))
        self.life.tidy()
        self.product.advance(self.life.now)

    @rule(data=st.data())
    def configure(self, data: st.DataObject) -> None:
        config = clusters.settings(picker(data))
        note(f"cluster {config.cluster_limits}, tenants {config.tenant_limits}, retry {config.default_retry_time}")
        self.world.settings = config
        self.product.set_config(config)
        self.life.tidy()

    @rule()
    def restart(self) -> None:
        self.product.restart()

    @invariant()
    def the_same_is_kept(self) -> None:
        if not hasattr(self, "life"):
            return
        self.life.tidy()
        assert self.product.walle_list() == self.desk.listed()
        users = (*USERS, WALLE)
        for got, expected in zip(self.product.kept(users), self.life.kept(users), strict=True):
            assert_same(got, expected)


Histories.TestCase.settings = hypothesis_settings(
    max_examples=int(os.environ.get("QUORATE_ORACLE_EXAMPLES", "2000")) if FULL else 40,
    stateful_step_count=60 if FULL else 30,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    print_blob=True,
)
TestHistories = Histories.TestCase
