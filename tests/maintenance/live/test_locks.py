"""What a permission holds in the lock table, by the names of objects, also when these come later or go by others."""

from __future__ import annotations

import pytest

from quorate.api.annotation_keys import BROKER_ID
from quorate.api.core import Node
from quorate.api.maintenance.action import ActionType
from quorate.api.maintenance.broker_config import BrokerConfigSpec
from quorate.api.meta import NodeName, ObjectMeta, VolumeName
from quorate.api.scalars import ReplicaName
from quorate.errors import Conflict
from quorate.locks import Change, LockTable, Sort, Thing
from quorate.maintenance.entries import PermissionEntry
from quorate.maintenance.live.locks import LiveLocks
from quorate.maintenance.live.numbers import Names
from quorate.maintenance.messages import Action
from quorate.maintenance.model import ClusterModel
from quorate.maintenance.moments import FOREVER
from quorate.maintenance.nouns import DriveId, DriveInfo, GroupInfo, NodeInfo, Species, VDiskId, VDiskInfo

NODE, DRIVE, REPLICA = Thing(Sort.NODE, "n1"), Thing(Sort.DRIVE, "d1"), Thing(Sort.REPLICA, "v-0")
VDISK = VDiskId(5, 1, 0, 0, 6)


def numbered(number: int) -> Node:
    return Node(metadata=ObjectMeta(annotations={BROKER_ID: str(number)}))


class Shared:
    """A table and a model with a node, a drive and a replica."""

    def __init__(self, *, filled: bool = True) -> None:
        self.table, self.names = LockTable(), Names()
        self.model = ClusterModel(BrokerConfigSpec())
        self.locks = LiveLocks(self.table, self.model, self.names)
        if filled:
            self.fill()

    def fill(self, path: str = "/dev/sdb") -> None:
        self.names.nodes.read(NodeName("n1"), numbered(1))
        self.names.drives.read("d1", numbered(2))
        self.names.replicas.read(ReplicaName("v-0"), numbered(6))
        self.model.put_node(NodeInfo(id=1, host="n1"))
        self.model.put_drive(DriveInfo(id=DriveId(1, 2), path=path))
        part = VDiskInfo(id=VDISK, node=1, drives=(DriveId(1, 2),))
        self.model.put_group(GroupInfo(id=5, species=Species.NONE, vdisks=(part,)))

    def held(self) -> set[Thing]:
        return {thing for thing, _ in self.table.holds_on((NODE, DRIVE, REPLICA))}


def permission(action: Action, deadline: int = FOREVER) -> PermissionEntry:
    return PermissionEntry(id="a-p-1", order=1, owner="a", action=action, deadline=deadline, granted_at=0)


def replacing(*devices: str) -> Action:
    return Action(type=ActionType.REPLACE_DEVICES, host="n1", devices=devices)


@pytest.mark.parametrize(
    ("action", "held"),
    [
        (Action(type=ActionType.SHUTDOWN_HOST, host="n1"), {NODE}),
        (Action(type=ActionType.SHUTDOWN_HOST, host="1"), {NODE}),
        (Action(type=ActionType.RESTART_SERVICES, host="n1", services=("storage",)), {NODE}),
        (replacing("pdisk-1-2"), {DRIVE}),
        (replacing("/dev/sdb"), {DRIVE}),
        (replacing(str(VDISK)), {REPLICA}),
        (replacing("pdisk-1-2", str(VDISK)), {DRIVE, REPLICA}),
    ],
)
def test_a_permission_holds_what_it_is_for_until_it_is_over(action: Action, held: set[Thing]) -> None:
    shared = Shared()
    shared.locks.take(permission(action))
    assert shared.held() == held
    shared.locks.drop("a-p-1")
    assert shared.held() == set()
    shared.locks.drop("a-p-1")


def test_what_a_permission_of_the_ledger_is_for_may_become_known_later() -> None:
    shared = Shared(filled=False)
    shared.locks.take(permission(Action(type=ActionType.SHUTDOWN_HOST, host="1")))
    assert shared.held() == set()
    shared.fill()
    shared.locks.refresh()
    assert shared.held() == {NODE}


def test_a_path_may_come_to_mean_another_drive() -> None:
    shared = Shared()
    shared.locks.take(permission(replacing("/dev/sdb")))
    assert shared.held() == {DRIVE}
    shared.fill(path="/dev/sdc")
    shared.locks.refresh()
    assert shared.held() == set()


def test_a_claim_refuses_a_new_permission_and_not_a_longer_one() -> None:
    shared = Shared()
    shared.table.claim(Change(VolumeName("v"), "Hide of v-0"), {NODE})
    action = Action(type=ActionType.SHUTDOWN_HOST, host="n1")
    with pytest.raises(Conflict, match="Hide of v-0"):
        shared.locks.take(permission(action))
    assert shared.held() == set()
    shared.table.forget_claims()
    shared.locks.take(permission(action, deadline=1))
    shared.table.claim(Change(VolumeName("v"), "Show of v-3"), {NODE}, known={"a-p-1"})
    shared.locks.take(permission(action, deadline=2))
    assert shared.held() == {NODE}
