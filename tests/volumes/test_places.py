"""From no place to a granted one: asking, refusals, all or none while forming, one by one in life."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace as changed
from typing import Any

import msgspec
import pytest

from quorate.api import annotation_keys, labels
from quorate.api.conditions import merge
from quorate.api.conditions.disks import Schedulable
from quorate.api.longhorn import DiskSchedule
from quorate.api.meta import ObjectMeta
from quorate.api.storage import ReplicatedVolumeReplica
from quorate.api.storage.configuration import Replication, Topology
from quorate.api.storage.datamesh import FormationPhase
from quorate.api.struct import replace
from quorate.engine import Patch
from quorate.placement import objections
from quorate.volumes.disks import Disk
from quorate.volumes.places import find_places, give_back, needed, withdrawals, writes
from quorate.volumes.view import ReplicaView, VolumeView
from tests.volumes.volume.making import (
    EXTENT,
    GI,
    NOW,
    TB,
    A,
    D,
    formed,
    granted,
    group_name,
    ledger,
    lower,
    name,
    node,
    picture,
    piece,
    pool,
    rejected,
    status,
    unscheduled,
    volume,
)

AVAILABILITY = Replication.AVAILABILITY


def forming(*replicas: ReplicaView, replication: Replication = AVAILABILITY, **more: Any) -> VolumeView:
    return picture(volume(status(FormationPhase.PRECONFIGURE, replication)), replicas, **more)


def asking(number: int, disk: int, answer: Any) -> ReplicaView:
    """A replica that has asked a disk, and what it was told: an answer, or the size it asked for."""
    return changed(unscheduled(number), ledgers=(ledger(disk, {name(number): answer}),))


def asked(view: VolumeView) -> Mapping[str, Mapping[str, int]]:
    """By disk, what the plan makes of the requests."""
    found = {}
    for each in writes(view, find_places(view)):
        if isinstance(each.intended, DiskSchedule):
            found[each.intended.spec.name] = dict(each.intended.spec.replicas)
    return found


def placed(view: VolumeView) -> Mapping[str, tuple[str | None, str | None]]:
    found = {}
    for each in writes(view, find_places(view)):
        if isinstance(each.intended, ReplicatedVolumeReplica):
            spec = each.intended.spec
            found[each.intended.name] = (spec.node_name, spec.lvm_volume_group_name)
    return found


TRIO = (unscheduled(0), unscheduled(1), unscheduled(2, TB))


def test_the_size_that_is_asked_for_has_room_for_metadata_in_whole_extents() -> None:
    view = forming(*TRIO)
    assert needed(view) > GI
    sizes = {size for entries in asked(view).values() for size in entries.values()}
    assert sizes == {lower()}
    assert lower() % EXTENT == 0
    assert lower() >= needed(view)


def test_only_those_with_a_disk_ask_and_each_another_node() -> None:
    found = asked(forming(*TRIO))
    assert sorted(key for entries in found.values() for key in entries) == [name(0), name(1)]
    assert len(found) == 2


def test_while_an_answer_is_open_nothing_is_asked_again_and_nobody_is_placed() -> None:
    view = forming(asking(0, 0, lower()), asking(1, 1, granted()), unscheduled(2, TB))
    assert writes(view, find_places(view)) == ()


def test_when_all_is_granted_all_are_placed_with_the_labels_that_agents_look_for() -> None:
    view = forming(asking(0, 3, granted()), asking(1, 1, granted()), unscheduled(2, TB))
    found = placed(view)
    assert found[name(0)] == (node(3), group_name(3))
    assert found[name(1)] == (node(1), group_name(1))
    assert found[name(2)] == (node(0), None)
    for each in writes(view, find_places(view)):
        assert each.intended.metadata.labels[labels.NODE] == placed(view)[each.intended.name][0]


def test_a_disk_that_refuses_is_withdrawn_from_and_another_is_asked_in_the_same_pass() -> None:
    view = forming(asking(0, 0, rejected()), asking(1, 1, granted()), unscheduled(2, TB))
    found = asked(view)
    assert found[group_name(0)] == {}
    others = {disk: entries for disk, entries in found.items() if entries}
    assert len(others) == 1
    assert group_name(1) not in others
    assert group_name(0) not in others
    assert placed(view) == {}


def test_a_request_that_is_too_small_by_now_is_withdrawn() -> None:
    view = forming(asking(0, 0, granted(4 * EXTENT)), asking(1, 1, granted()), unscheduled(2, TB))
    assert asked(view)[group_name(0)] == {}


def full(*numbers: int) -> dict[str, Disk]:
    return {
        group_name(number): Disk(ledger(number, available=GI if number in numbers else 100 * GI), EXTENT)
        for number in range(5)
    }


def test_a_volume_that_forms_gives_everything_back_when_one_has_no_place() -> None:
    """M10: a part of a volume is of no use, and would keep space from others."""
    first = asking(0, 0, granted())
    view = forming(first, unscheduled(1), unscheduled(2, TB), disks=full(0, 1, 2, 3, 4))
    assert asked(view) == {group_name(0): {}}
    rest = forming(unscheduled(0), unscheduled(1), unscheduled(2, TB), disks=full(1, 2, 3, 4))
    assert writes(rest, find_places(rest)) == ()
    assert {refusal.reason.code for refusal in find_places(rest).refusals.values()} == {
        "NoSpace",
        "WaitingForAnotherReplica",
    }


def living(*replicas: ReplicaView, **more: Any) -> VolumeView:
    """A formed volume with more replicas."""
    base = formed()
    return picture(base.volume, (*base.replicas, *replicas), **more)


def test_in_life_each_replica_is_placed_as_soon_as_its_own_space_is_granted() -> None:
    view = living(asking(3, 3, granted()), asking(4, 4, lower()))
    assert placed(view) == {name(3): (node(3), group_name(3))}


def test_a_node_with_a_replica_of_the_volume_is_not_chosen_again() -> None:
    [(disk, entries)] = asked(living(unscheduled(3))).items()
    assert disk in (group_name(3), group_name(4))
    assert entries == {name(3): lower()}


@pytest.mark.parametrize("answer", [lower(), granted()], ids=["open", "granted"])
def test_a_place_that_another_replica_has_taken_meanwhile_is_given_back_and_another_is_asked(answer: Any) -> None:
    """Whoever is to use the volume there has come first: two on one node would wait for each other for ever."""
    user = unscheduled(4, A)
    user = changed(user, replica=replace(user.replica, spec=replace(user.replica.spec, node_name=node(3))))
    view = living(asking(5, 3, answer), user)
    assert asked(view) == {group_name(3): {}, group_name(4): {name(5): lower()}}
    assert placed(view) == {}


def test_a_replica_with_a_node_and_without_a_disk_gets_one_there() -> None:
    bare = unscheduled(4)
    spec = replace(bare.replica.spec, node_name=node(4))
    view = living(changed(bare, replica=replace(bare.replica, spec=spec)))
    assert asked(view) == {group_name(4): {name(4): lower()}}


def across_zones(view: VolumeView) -> VolumeView:
    """The same volume, each copy in a zone of its own; the only free node is in the zone of the first copy."""
    nodes = pool((0, 1, 2, 3))
    listed = tuple(
        replace(each, zone_name="z0" if each.node_name == node(3) else each.zone_name)
        for each in nodes.status.eligible_nodes
    )
    zonal = replace(view.configuration, topology=Topology.TRANS_ZONAL)
    view = view.with_status(replace(view.volume.status, configuration=zonal))
    return changed(view, rsp=replace(nodes, status=replace(nodes.status, eligible_nodes=listed)))


@pytest.mark.parametrize("lost", [True, False])
def test_a_replacement_may_go_where_the_rules_count_the_lost_one_out(lost: bool) -> None:
    """The zone of a node that is evacuated is free for the one that takes its place, and only then."""
    base = formed()
    first = base.replicas[0]
    assert first.node is not None
    assert first.node.machine is not None
    said = {annotation_keys.EVACUATE: "true"} if lost else {}
    machine = replace(first.node.machine, metadata=ObjectMeta(name="n0", annotations=said))
    leaving = changed(first, node=msgspec.structs.replace(first.node, machine=machine))
    view = across_zones(picture(base.volume, (leaving, *base.replicas[1:], unscheduled(3))))
    assert asked(view) == ({group_name(3): {name(3): lower()}} if lost else {})


# Giving back.


def test_space_is_given_back_only_when_the_logical_volume_is_gone() -> None:
    """M31."""
    held = ledger(0, {name(0): granted(), "other-0": granted()})
    rv = volume(status(None))
    assert list(give_back(picture(rv, pieces=(piece(0),), ledgers=(held,)))) == []
    [patch] = withdrawals(picture(rv, ledgers=(held,)))
    assert isinstance(patch, Patch)
    assert isinstance(patch.intended, DiskSchedule)
    assert set(patch.intended.spec.replicas) == {"other-0"}
    assert not patch.if_unchanged


def test_the_last_entry_of_a_ledger_is_taken_with_its_resource_version() -> None:
    [patch] = withdrawals(picture(volume(status(None)), ledgers=(ledger(0, {name(0): granted()}),)))
    assert patch.if_unchanged


def test_what_a_replica_asked_of_another_disk_is_given_back_once_it_has_one() -> None:
    base = formed()
    elsewhere = ledger(4, {name(0): granted()})
    view = changed(base, ledgers=(*base.ledgers, elsewhere))
    assert [found.spec.name for found, _ in give_back(view)] == [group_name(4)]


def test_what_a_replica_has_or_asks_for_is_not_given_back() -> None:
    assert list(give_back(formed())) == []
    assert list(give_back(forming(asking(0, 0, lower())))) == []


@pytest.mark.parametrize("replicas", [(), (unscheduled(0, D),)])
def test_without_a_configuration_there_are_no_places(replicas: tuple[ReplicaView, ...]) -> None:
    assert find_places(picture(volume(), replicas)).placement.choices == {}


@pytest.mark.parametrize("low_space", [False, True])
def test_a_disk_that_is_exactly_full_has_no_room_and_is_not_closed(low_space: bool) -> None:
    full = ledger(1, {name(0): granted(GI)}, available=GI)
    if low_space:
        told = merge(full.status.conditions, [Schedulable.LOW_SPACE("less than 5 % is free")], now=NOW)
        full = replace(full, status=replace(full.status, conditions=told))
    room = Disk(full, EXTENT).room
    assert (room.free, room.closed) == (0, "")
    assert objections.to_room(room, False, EXTENT) is objections.Objection.NO_ROOM


def test_a_disk_below_its_low_water_mark_takes_nothing_new_whatever_may_still_be_granted() -> None:
    low = ledger(1, {name(0): granted(GI)}, available=2 * GI)
    told = merge(low.status.conditions, [Schedulable.LOW_SPACE("less than 5 % is free")], now=NOW)
    room = Disk(replace(low, status=replace(low.status, conditions=told)), EXTENT).room
    assert "LowSpace" in room.closed
