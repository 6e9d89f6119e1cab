"""Random histories of a small cluster, a broker and a store that fails: what was promised holds.

- What was granted and not ended is there; what was ended, or refused, or answered ERROR_TEMP, is not.
- No number is given twice.
- Taking down everything that is permitted leaves every group within the limit of the mode of the last grant.
- A restart answers as the process before it would have.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from hypothesis import HealthCheck, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from quorate.api.maintenance.action import AvailabilityMode, HostState, StatusCode
from quorate.api.maintenance.broker_ledger import BrokerLedger
from quorate.api.names import BROKER
from quorate.api.struct import replace
from quorate.maintenance.entries import Ledger
from quorate.maintenance.ledger.encoding import decode
from quorate.maintenance.messages import Permission, PermissionCommand, PermissionResponse, RequestCommand
from quorate.maintenance.model import ClusterModel
from quorate.maintenance.moments import SECOND, later
from quorate.maintenance.nouns import DriveId, GroupInfo, Species, VDiskId, VDiskInfo
from tests.maintenance.broker.desk import Desk, StillClock, memory_store, new_model
from tests.maintenance.broker.faults import FAULTS, FaultyStore

T = TypeVar("T")

NODES = 8
USERS = ("alice", "bob")
MAX, KEEP = AvailabilityMode.MAX_AVAILABILITY, AvailabilityMode.KEEP_AVAILABLE
#: Group 1, besides the block-4-2 group over all: three copies.
MIRRORED = (1, 4, 7)


class QuickClock(StillClock):
    """Short pauses pass at once."""

    async def sleep(self, seconds: float) -> None:
        if seconds > 2:
            await super().sleep(seconds)
        else:
            await asyncio.sleep(0)
            self.advance(seconds)


def cluster() -> ClusterModel:
    model = new_model(NODES)
    model.put_group(
        GroupInfo(
            id=1,
            species=Species.MIRROR_3,
            vdisks=tuple(
                VDiskInfo(id=VDiskId(1, 1, 0, domain, 0), node=node, drives=(DriveId(node, 1),))
                for domain, node in enumerate(MIRRORED)
            ),
        )
    )
    return model


class Histories(RuleBasedStateMachine):
    """One history."""

    @initialize()
    def begin(self) -> None:
        self.runner = asyncio.Runner()
        self.clock = QuickClock()
        self.faulty = FaultyStore(self.run(memory_store(self.clock)))
        self.desk = Desk(self.faulty, self.clock, cluster())
        self.run(self.desk.broker.start())
        #: What clients know: permissions that they hold, with their owners; numbers that were ever given.
        self.known: dict[str, tuple[str, Permission]] = {}
        self.numbers: set[int] = set()
        #: Of these, which were past their deadline while their hosts were up: they hold nothing any more.
        self.let_go: set[str] = set()

    def teardown(self) -> None:
        if hasattr(self, "runner"):
            self.faulty.script.clear()
            self.run(self.desk.broker.close())
            self.run(self.faulty.close())
            self.runner.close()

    def run(self, question: Coroutine[Any, Any, T]) -> T:
        result = self.runner.run(question)
        self.runner.run(self._rest())
        return result

    async def _rest(self) -> None:
        for _ in range(20):
            await asyncio.sleep(0)

    @property
    def down(self) -> set[int]:
        return {node.id for node in self.desk.model.nodes() if node.state is not HostState.UP}

    # What clients do

    @rule(
        user=st.sampled_from(USERS),
        nodes=st.lists(st.integers(1, NODES), min_size=1, max_size=4, unique=True),
        mode=st.sampled_from([MAX, KEEP]),
        partial=st.booleans(),
        schedule=st.booleans(),
    )
    def ask(self, user: str, nodes: list[int], mode: AvailabilityMode, partial: bool, schedule: bool) -> None:
        before = self.desk.broker.ledger
        answer = self.run(
            self.desk.ask(
                *(f"h{node}" for node in nodes),
                user=user,
                availability_mode=mode,
                partial_permission_allowed=partial,
                schedule=schedule,
            )
        )
        self.granted(user, answer, mode)
        if answer.status.code in (StatusCode.ERROR_TEMP, StatusCode.DISALLOW):
            assert _contents(self.desk.broker.ledger) == _contents(before)

    @precondition(lambda self: self.desk.broker.ledger.requests)
    @rule(data=st.data(), mode=st.sampled_from([None, KEEP]))
    def check(self, data: st.DataObject, mode: AvailabilityMode | None) -> None:
        entry = data.draw(st.sampled_from(self.desk.broker.ledger.requests))
        answer = self.run(self.desk.check(entry.id, user=entry.owner, mode=mode))
        self.granted(entry.owner, answer, mode or entry.availability_mode)

    def granted(self, user: str, answer: PermissionResponse, mode: AvailabilityMode) -> None:
        for permission in answer.permissions:
            number = int(permission.id.rpartition("-")[2])
            assert number not in self.numbers
            self.numbers.add(number)
            self.known[permission.id] = user, permission
        if answer.permissions:
            note(f"granted {[permission.id for permission in answer.permissions]} in {mode}")
            self.check_groups({int(one.action.host[1:]) for one in answer.permissions}, mode)

    def check_groups(self, granted: set[int], mode: AvailabilityMode) -> None:
        """Everything permitted goes down now: how much is left of the groups that the grant takes from?

        What is down already may always be worked on: that takes nothing away.
        """
        now = self.clock.wall
        granted -= self.down
        leaving = {
            int(entry.action.host[1:]) for entry in self.desk.broker.ledger.permissions if entry.deadline > now
        } | self.down
        for members in (set(range(1, NODES + 1)), set(MIRRORED)):
            if granted & members:
                limit = 1 if mode is MAX else 2
                assert len(leaving & members) <= limit

    @precondition(lambda self: self.known)
    @rule(data=st.data(), command=st.sampled_from([PermissionCommand.DONE, PermissionCommand.REJECT]))
    def end(self, data: st.DataObject, command: PermissionCommand) -> None:
        name = data.draw(st.sampled_from(sorted(self.known)))
        user, permission = self.known[name]
        up = int(permission.action.host[1:]) not in self.down
        code = self.run(self.desk.manage(command, name, user=user)).status.code
        if code is not StatusCode.OK:
            assert code is StatusCode.ERROR_TEMP
        elif command is PermissionCommand.DONE or up or name in self.let_go:
            del self.known[name]
        else:
            self.known[name] = user, replace(permission, deadline=min(permission.deadline, self.clock.wall))

    @precondition(lambda self: self.known)
    @rule(data=st.data(), seconds=st.integers(1, 600))
    def extend(self, data: st.DataObject, seconds: int) -> None:
        name = data.draw(st.sampled_from(sorted(self.known)))
        user, _ = self.known[name]
        deadline = self.clock.wall + seconds * SECOND
        answer = self.run(self.desk.manage(PermissionCommand.EXTEND, name, user=user, deadline=deadline))
        assert answer.status.code in (StatusCode.ALLOW, StatusCode.DISALLOW, StatusCode.ERROR_TEMP)
        for permission in answer.permissions:
            if answer.status.code is not StatusCode.ALLOW:
                assert permission.deadline == self.known[name][1].deadline
                continue
            assert permission.deadline == deadline
            self.known[name] = user, permission
            self.let_go.discard(name)

    @precondition(lambda self: self.desk.broker.ledger.requests)
    @rule(data=st.data())
    def withdraw(self, data: st.DataObject) -> None:
        entry = data.draw(st.sampled_from(self.desk.broker.ledger.requests))
        self.run(self.desk.requests(RequestCommand.REJECT, entry.id, user=entry.owner))

    # What happens

    @rule(node=st.integers(1, NODES), state=st.sampled_from([HostState.UP, HostState.DOWN]))
    def change(self, node: int, state: HostState) -> None:
        self.desk.put(node, state)
        self.run(self._rest())

    @rule(seconds=st.sampled_from([1, 30, 60, 180, 3600]))
    def time_passes(self, seconds: int) -> None:
        self.clock.advance(seconds)
        self.run(self._rest())

    @rule(script=st.lists(st.sampled_from(FAULTS), max_size=3))
    def trouble(self, script: list[str]) -> None:
        self.faulty.script = script

    @rule()
    def late_writes_arrive(self) -> None:
        self.run(self.faulty.deliver())

    @rule(holder=st.sampled_from(["one", "two"]))
    def restart(self, holder: str) -> None:
        self.faulty.script.clear()
        before = self.desk
        self.run(before.broker.close())
        self.desk = self.run(before.again(holder=holder))
        for number in range(1, NODES + 1):
            asked = {"user": "carol", "dry_run": True, "availability_mode": KEEP}
            now = self.run(self.desk.ask(f"h{number}", **asked))  # type: ignore[arg-type]
            assert now.status.code in (StatusCode.ALLOW, StatusCode.DISALLOW_TEMP)

    # What must be so

    @invariant()
    def what_was_promised_is_there(self) -> None:
        if not hasattr(self, "desk"):
            return
        held = {name for user in USERS for name in self.run(self.desk.held(user))}
        now = self.clock.wall
        for name, (_, permission) in tuple(self.known.items()):
            over = later(permission.deadline, 2 * (permission.action.duration or 0)) <= now
            down = int(permission.action.host[1:]) in self.down
            if permission.deadline <= now and not down:
                self.let_go.add(name)
            if not over or name not in self.let_go:
                assert name in held, f"{name} was granted and is forgotten"
            elif name not in held:
                del self.known[name]
        assert held <= set(self.known), "somebody holds what nobody was told of"

    @invariant()
    def the_store_has_it(self) -> None:
        if not hasattr(self, "desk"):
            return
        written = decode(self.runner.run(self.faulty.store.get(BrokerLedger, BROKER)))
        assert {entry.id for entry in self.desk.broker.ledger.permissions} <= {
            entry.id for entry in written.permissions
        }


def _contents(ledger: Ledger) -> tuple[object, ...]:
    """But for the counters: numbers that may have been written are not given again."""
    return ledger.permissions, ledger.requests


Histories.TestCase.settings = settings(
    max_examples=30, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)
TestHistories = Histories.TestCase
