"""Which replicas should come, go or change: the actors of 000, each as a table."""

from __future__ import annotations

import dataclasses
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.api import annotation_keys
from quorate.api.core import Node
from quorate.api.core.node import NodeCondition, NodeStatus
from quorate.api.meta import NodeName, ObjectMeta
from quorate.api.quantity import Quantity
from quorate.api.storage import LVMLogicalVolume, ReplicatedStorageClass, ReplicatedStoragePool
from quorate.api.storage.configuration import EligibleNodesPolicy, Replication, VolumeAccess
from quorate.api.storage.datamesh import Datamesh
from quorate.api.storage.drbd import Connection, Device, DrbdStatus, PeerDevice, ReplicaType
from quorate.api.storage.llv import (
    LogicalVolumePhase,
    LogicalVolumeType,
    LVMLogicalVolumeSpec,
    LVMLogicalVolumeStatus,
)
from quorate.api.storage.rsc import ReplicatedStorageClassSpec
from quorate.api.storage.rsp import (
    EligibleNode,
    EligibleVolumeGroup,
    PoolType,
    PoolVolumeGroup,
    ReplicatedStoragePoolSpec,
    ReplicatedStoragePoolStatus,
)
from quorate.api.storage.rv import AttachRequest, AttachSource
from quorate.api.struct import replace
from quorate.placement.layout import LEVELS
from quorate.volumes.transitions import Deed, Request, requested
from quorate.volumes.transitions.requests import waits
from quorate.volumes.view import NodeView, ReplicaView, VolumeView
from quorate.volumes.volume.formation.members import member_of
from quorate.volumes.volume.replicas import free_ids

from .story import START, TB, VOLUME, A, D, replica_of, volume_of

NOW = START + timedelta(hours=2)
NONE, CONSISTENCY = Replication.NONE, Replication.CONSISTENCY
AVAILABILITY, BOTH = Replication.AVAILABILITY, Replication.CONSISTENCY_AND_AVAILABILITY


def a_node(
    number: int, *, ready: bool = True, since: timedelta = timedelta(hours=1), evacuated: bool = False
) -> NodeView:
    annotations = {annotation_keys.EVACUATE: "true"} if evacuated else {}
    condition = NodeCondition(type="Ready", status="True" if ready else "Unknown", last_transition_time=NOW - since)
    metadata = ObjectMeta(name=f"n{number}", annotations=annotations)
    machine = Node(metadata=metadata, status=NodeStatus(conditions=(condition,)))
    return NodeView(NodeName(f"n{number}"), machine, fresh=ready)


def up_to_date(number: int, kind: ReplicaType, others: list[tuple[int, ReplicaType]]) -> DrbdStatus:
    """A member that is quorate and in touch with everybody."""
    disk = "UpToDate" if kind is D else "Diskless"
    links = tuple(
        Connection(
            peer_node_id=other,
            connection_state="Connected",
            peer_devices=(PeerDevice(replication_state="Established", peer_disk_state="UpToDate"),),
        )
        for other, other_kind in others
        if other != number and D in (kind, other_kind)
    )
    return DrbdStatus(node_id=number, devices=(Device(disk_state=disk, quorum=True),), connections=links)


def volume(
    level: Replication,
    kinds: list[ReplicaType],
    *,
    new: tuple[int, ...] = (),
    deleting: tuple[int, ...] = (),
    nodes: dict[int, NodeView] | None = None,
    users: tuple[int, ...] = (),
    remove_lost: bool = True,
) -> VolumeView:
    """A healthy volume, spoilt in some respect. ``new``: replicas that are no members yet."""
    others = list(enumerate(kinds))
    found = {number: a_node(number) for number in range(8)} | (nodes or {})
    views = []
    for number, kind in others:
        made = replica_of(number, kind)
        drbd = replace(made.status.drbd, status=up_to_date(number, kind, others))
        metadata = replace(made.metadata, deletion_timestamp=NOW if number in deleting else None)
        made = replace(made, metadata=metadata, status=replace(made.status, drbd=drbd))
        views.append(ReplicaView(replica=made, node=found[number]))
    rv = volume_of(level)
    publish_on = tuple(NodeName(f"n{number}") for number in users)
    queue = tuple(
        AttachRequest(node_name=node, since=START + timedelta(seconds=place), source=AttachSource.PUBLISH_ON)
        for place, node in enumerate(publish_on)
    )
    rv = replace(rv, spec=replace(rv.spec, publish_on=publish_on), status=replace(rv.status, attach_requests=queue))
    policy = EligibleNodesPolicy(remove_lost_replica=remove_lost)
    rsc = ReplicatedStorageClass(
        metadata=ObjectMeta(name="class"),
        spec=ReplicatedStorageClassSpec(storage_pool="pool", replication=level, eligible_nodes_policy=policy),
    )
    nodes_by_name = {node.name: node for node in found.values()}
    view = VolumeView(name=VOLUME, rv=rv, rsc=rsc, replicas=tuple(views), nodes=nodes_by_name)
    members = tuple(member_of(view, each) for each in views if each.id not in new)
    shown = tuple(replace(each, hidden=each.type is A) for each in members)
    return view.with_status(replace(rv.status, datamesh=Datamesh(members=shown)))


def in_use(view: VolumeView, number: int) -> VolumeView:
    """The same volume, attached to one of its members."""
    datamesh = view.datamesh
    members = tuple(replace(each, attached=each.node_id == number) for each in datamesh.members)
    return view.with_status(replace(view.volume.status, datamesh=replace(datamesh, members=members)))


def said(view: VolumeView) -> list[str]:
    return [_said(each) for each in requested(view, NOW)]


def _said(request: Request) -> str:
    where = f" on {request.node}" if request.node is not None and request.deed is Deed.CREATE else ""
    what = request.replica if request.deed is not Deed.CREATE else f"{request.type.value}{where}"
    more = f" to {request.type.value}" if request.deed is Deed.RETYPE else ""
    return f"{request.deed.value} {what}{more}: {request.reason}"


NOWHERE = NodeView(NodeName("n6"), None, fresh=False)
LOST = a_node(1, ready=False)
SHORTLY = a_node(1, ready=False, since=timedelta(minutes=5))
EVACUATED = a_node(1, evacuated=True)
CORDONED = NodeView(
    NodeName("n1"),
    replace(a_node(1).machine or Node(), spec=replace(Node().spec, unschedulable=True)),
    fresh=True,
)
GONE = NodeView(NodeName("n1"), None, fresh=False)

TABLE: dict[str, tuple[VolumeView, list[str]]] = {
    "3D as it should be": (volume(BOTH, [D, D, D]), []),
    "3D with two": (volume(BOTH, [D, D]), ["Create Diskful: DiskfulCount"]),
    "3D with one to come": (volume(BOTH, [D, D, D], new=(2,)), []),
    "3D, one deleted by hand": (volume(BOTH, [D, D, D], deleting=(1,)), ["Create Diskful: DiskfulCount"]),
    "3D, one deleted, its replacement there": (volume(BOTH, [D, D, D, D], deleting=(1,)), []),
    "3D with four": (volume(BOTH, [D, D, D, D]), ["Delete v-3: DiskfulCount"]),
    "3D, a node NotReady within its grace": (volume(BOTH, [D, D, D], nodes={1: SHORTLY}), []),
    "3D, a node lost": (volume(BOTH, [D, D, D], nodes={1: LOST}), ["Create Diskful: DiskfulCount"]),
    "3D, a node lost, replaced, not in sync": (volume(BOTH, [D, D, D, D], new=(3,), nodes={1: LOST}), []),
    "3D, a node lost, replaced": (volume(BOTH, [D, D, D, D], nodes={1: LOST}), ["Delete v-1: NodeLost"]),
    "3D, lost replicas are kept": (volume(BOTH, [D, D, D, D], nodes={1: LOST}, remove_lost=False), []),
    "3D, a node evacuated (M29)": (volume(BOTH, [D, D, D], nodes={1: EVACUATED}), ["Create Diskful: DiskfulCount"]),
    "3D, evacuated and replaced": (volume(BOTH, [D, D, D, D], nodes={1: EVACUATED}), ["Delete v-1: Evacuated"]),
    "3D, a node cordoned (M29)": (volume(BOTH, [D, D, D], nodes={1: CORDONED}), []),
    "3D, a node gone": (
        volume(BOTH, [D, D, D], nodes={1: GONE}),
        ["Delete v-1: MissingNode", "Create Diskful: DiskfulCount"],
    ),
    "2D+1TB as it should be": (volume(AVAILABILITY, [D, D, TB]), []),
    "2D+1TB without a tie-breaker (M25)": (volume(AVAILABILITY, [D, D]), ["Create TieBreaker: TieBreakerCount"]),
    "2D+1TB, the tie-breaker deleted": (
        volume(AVAILABILITY, [D, D, TB], deleting=(2,)),
        ["Create TieBreaker: TieBreakerCount"],
    ),
    "2D+1TB with two": (volume(AVAILABILITY, [D, D, TB, TB]), ["Delete v-3: TieBreakerCount"]),
    "2D+1TB used on the tie-breaker's node (M25, M27)": (
        volume(AVAILABILITY, [D, D, TB], users=(2,)),
        ["Retype v-2 to Access: AccessCount"],
    ),
    "2D+1TB used on a node without a replica (M25)": (
        volume(AVAILABILITY, [D, D, TB], users=(5,)),
        ["Create Access on n5: AccessCount"],
    ),
    "2D+1TB, an access replica serves (M25)": (
        volume(AVAILABILITY, [D, D, TB, A], users=(3,)),
        ["Delete v-2: TieBreakerCount"],
    ),
    "2D+1TB, nobody uses the access replica": (
        volume(AVAILABILITY, [D, D, A]),
        ["Retype v-2 to TieBreaker: TieBreakerCount"],
    ),
    "2D with a tie-breaker too many (M25)": (
        volume(CONSISTENCY, [D, D, TB]),
        ["Delete v-2: TieBreakerCount"],
    ),
    "2D+1TB, first wanted on a node that there is not": (
        volume(AVAILABILITY, [D, D, TB], users=(6, 5), nodes={6: NOWHERE}),
        ["Create Access on n5: AccessCount"],
    ),
    "3D wanted on a node that there is not": (volume(BOTH, [D, D, D], users=(6,), nodes={6: NOWHERE}), []),
    "3D wanted on a lost node": (volume(BOTH, [D, D, D], users=(6,), nodes={6: a_node(6, ready=False)}), []),
    "3D wanted on a node to be emptied": (
        volume(BOTH, [D, D, D], users=(6,), nodes={6: a_node(6, evacuated=True)}),
        [],
    ),
    "3D wanted where it cannot be used beside another": (volume(BOTH, [D, D, D, A], users=(3, 5)), []),
    "3D used on a copy's node": (volume(BOTH, [D, D, D], users=(1,)), []),
    "3D used where there is no replica": (
        volume(BOTH, [D, D, D], users=(5,)),
        ["Create Access on n5: AccessCount"],
    ),
    "3D, an access replica that nobody asks for": (volume(BOTH, [D, D, D, A]), ["Delete v-3: AccessCount"]),
    "3D, an access replica in use": (volume(BOTH, [D, D, D, A], users=(3,)), []),
    "3D, an access replica asked for on a lost node": (
        volume(BOTH, [D, D, D, A], users=(3,), nodes={3: a_node(3, ready=False)}),
        [],
    ),
    "3D, an access replica asked for on a node to be emptied": (
        volume(BOTH, [D, D, D, A], users=(3,), nodes={3: a_node(3, evacuated=True)}),
        [],
    ),
    "3D, an access replica that nobody asks for on a lost node": (
        volume(BOTH, [D, D, D, A], nodes={3: a_node(3, ready=False)}),
        ["Delete v-3: AccessCount"],
    ),
    "3D, evacuated and replaced, and in use": (in_use(volume(BOTH, [D, D, D, D], nodes={1: EVACUATED}), 1), []),
    "3D, a node lost and replaced, and in use": (in_use(volume(BOTH, [D, D, D, D], nodes={1: LOST}), 1), []),
    "3D, not to be emptied after all": (in_use(volume(BOTH, [D, D, D, D]), 1), ["Delete v-3: DiskfulCount"]),
    "2D+1TB, in use on a node to be emptied": (
        in_use(volume(AVAILABILITY, [D, D, A, TB], users=(2,), nodes={2: a_node(2, evacuated=True)}), 2),
        [],
    ),
    "2D+1TB, not in use any more on a node to be emptied": (
        volume(AVAILABILITY, [D, D, A, TB], nodes={2: a_node(2, evacuated=True)}),
        ["Delete v-2: Evacuated"],
    ),
    "1D as it should be": (volume(NONE, [D]), []),
}


@pytest.mark.parametrize("case", TABLE)
def test_what_is_asked_for(case: str) -> None:
    view, expected = TABLE[case]
    assert said(view) == expected


@pytest.mark.parametrize(
    ("view", "told"),
    [
        (volume(BOTH, [D, D, D, D], nodes={1: EVACUATED}), []),
        (
            in_use(volume(BOTH, [D, D, D, D], nodes={1: EVACUATED}), 1),
            ["v-1 on n1 is to be moved away, and stays until it is detached there"],
        ),
        (in_use(volume(BOTH, [D, D, D, D], nodes={1: EVACUATED}), 0), []),
        (in_use(volume(BOTH, [D, D, D, D], nodes={1: LOST}), 1), []),
    ],
)
def test_who_is_to_be_moved_and_in_use_waits_and_it_is_said(view: VolumeView, told: list[str]) -> None:
    assert [each.message for each in waits(view, NOW)] == told


def test_local_access_makes_no_access_replica() -> None:
    view = volume(BOTH, [D, D, D], users=(5,))
    configuration = replace(view.configuration, volume_access=VolumeAccess.LOCAL)
    assert said(view.with_status(replace(view.volume.status, configuration=configuration))) == []


def test_a_replica_outside_the_pool_is_moved() -> None:
    view = volume(BOTH, [D, D, D])
    groups = (EligibleVolumeGroup(name="vg0", ready=True),)
    listed = tuple(
        EligibleNode(node_name=NodeName(f"n{number}"), lvm_volume_groups=groups, node_ready=True) for number in (0, 2)
    )
    pool = ReplicatedStoragePool(
        metadata=ObjectMeta(name="pool"),
        spec=ReplicatedStoragePoolSpec(type=PoolType.LVM, lvm_volume_groups=(PoolVolumeGroup(name="vg0"),)),
        status=ReplicatedStoragePoolStatus(eligible_nodes=listed),
    )
    assert said(dataclasses.replace(view, rsp=pool)) == ["Create Diskful: DiskfulCount"]


@pytest.mark.parametrize(("fresh", "deleted"), [(True, []), (False, ["v-1"])], ids=["speaks", "silent"])
def test_a_replica_whose_core_node_is_missing_goes_only_once_its_agent_is_silent(
    fresh: bool, deleted: list[str]
) -> None:
    """An object that is missing may have been deleted by mistake, and a deletion cannot be taken back."""
    view = volume(BOTH, [D, D, D], nodes={1: NodeView(NodeName("n1"), None, fresh=fresh)})
    asked = requested(view, NOW)
    assert [each.replica for each in asked if each.deed is Deed.DELETE] == deleted
    assert any(each.deed is Deed.CREATE for each in asked) == bool(deleted)


def barred(view: VolumeView, number: int) -> VolumeView:
    """The same volume, with a replica that found another's logical volume where its own was to be."""
    spec = LVMLogicalVolumeSpec(
        actual_lv_name_on_the_node="v", type=LogicalVolumeType.THICK, size=Quantity("1Gi"), lvm_volume_group_name="vg0"
    )
    status = LVMLogicalVolumeStatus(phase=LogicalVolumePhase.FAILED, reason="LVExists")
    found = LVMLogicalVolume(metadata=ObjectMeta(name="found"), spec=spec, status=status)
    replicas = tuple(
        dataclasses.replace(each, volumes=(found,)) if each.id == number else each for each in view.replicas
    )
    return dataclasses.replace(view, replicas=replicas)


def test_a_replica_that_finds_anothers_logical_volume_in_its_place_gives_way_to_one_with_another_number() -> None:
    """A person judges what is there. The number is taken until the other one is made: so that one comes first."""
    alone = barred(volume(BOTH, [D, D, D], new=(2,)), 2)
    assert said(alone) == ["Create Diskful: DiskfulCount"]
    assert 2 not in free_ids(alone)
    assert said(barred(volume(BOTH, [D, D, D, D], new=(2, 3)), 2)) == ["Delete v-2: LVExists"]
    assert said(barred(volume(BOTH, [D, D, D]), 2)) == [], "a member has its own"


@given(
    level=st.sampled_from(list(Replication)),
    states=st.lists(st.sampled_from(["fine", "lost", "evacuated", "gone", "deleting"]), min_size=5, max_size=5),
    extra=st.integers(0, 1),
)
def test_there_is_never_more_than_one_replica_beyond_the_layout(
    level: Replication, states: list[str], extra: int
) -> None:
    """However many are to be replaced, and however often it is asked for."""
    promise = LEVELS[level]
    kinds = [D] * promise.diskful + [TB] * promise.tie_breakers + [D] * extra
    nodes = {}
    for number, state in enumerate(states[: len(kinds)]):
        if state == "gone":
            nodes[number] = NodeView(NodeName(f"n{number}"), None, fresh=False)
        else:
            nodes[number] = a_node(number, ready=state != "lost", evacuated=state == "evacuated")
    deleting = tuple(number for number, state in enumerate(states[: len(kinds)]) if state == "deleting")
    view = volume(level, kinds, nodes=nodes, deleting=deleting)
    created = [each for each in requested(view, NOW) if each.deed is Deed.CREATE]
    assert len(kinds) + len(created) <= promise.members + 1


@given(
    level=st.sampled_from(list(Replication)),
    away=st.sets(st.integers(0, 3), max_size=4),
)
def test_no_copy_is_given_up_before_as_many_as_promised_are_good_without_it(level: Replication, away: set[int]) -> None:
    promise = LEVELS[level]
    kinds = [D] * (promise.diskful + 1)
    nodes = {number: a_node(number, evacuated=True) for number in away if number < len(kinds)}
    view = volume(level, kinds, nodes=nodes)
    deleted = {each.replica for each in requested(view, NOW) if each.deed is Deed.DELETE}
    assert len(kinds) - len(deleted) >= promise.diskful
    assert deleted or not nodes, "of several that should go, one can"
