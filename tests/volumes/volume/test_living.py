"""What transitions ask for is carried out: replicas made, deleted and changed, and the ninth refused."""

from __future__ import annotations

from dataclasses import replace as changed
from typing import Any

import pytest

from quorate.api import annotation_keys, labels
from quorate.api.meta import NodeName
from quorate.api.storage import ReplicatedVolume, ReplicatedVolumeReplica
from quorate.api.storage.drbd import Address
from quorate.api.storage.rv import AttachRequest, AttachSource
from quorate.api.struct import replace
from quorate.engine import Create, Delete, Patch, Plan
from quorate.volumes import attach, transitions
from quorate.volumes.life import Advance, NewReplica
from quorate.volumes.view import ReplicaView, VolumeView
from quorate.volumes.waits import Wait
from tests.volumes.volume.making import (
    A,
    D,
    ago,
    decided,
    formed,
    granted,
    ledger,
    name,
    node,
    picture,
    unscheduled,
    with_replica,
    written,
)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Lets a test say what the transitions ask for."""

    def ask(answer: Advance, view: VolumeView | None = None, queue: tuple[AttachRequest, ...] = ()) -> Plan:
        monkeypatch.setattr(transitions, "advance", lambda *_: answer)
        monkeypatch.setattr(attach, "requests", lambda *_: queue)
        return decided(view or formed())

    return ask


def created(plan: Plan) -> list[ReplicatedVolumeReplica]:
    return [
        each.obj for each in plan.writes if isinstance(each, Create) and isinstance(each.obj, ReplicatedVolumeReplica)
    ]


def test_new_replicas_get_the_lowest_free_ids_and_their_node_if_it_is_given(asked: Any) -> None:
    [one, other] = created(asked(Advance(create=(NewReplica(D), NewReplica(A, node(4))))))
    assert (one.name, one.spec.type, one.spec.node_name) == (name(3), D, None)
    assert (other.name, other.spec.type, other.spec.node_name) == (name(4), A, node(4))
    assert other.metadata.labels[labels.NODE] == node(4)
    assert labels.NODE not in one.metadata.labels


def test_nobody_is_placed_on_a_node_on_which_another_replica_is_made_in_the_same_pass(asked: Any) -> None:
    """Two on one node wait for each other for ever: the agent serves the elder, the datamesh has the other."""
    view = formed()
    placed = changed(unscheduled(3), ledgers=(ledger(3, {name(3): granted()}),))
    view = picture(view.volume, (*view.replicas, placed))
    chosen = [each.intended for each in asked(Advance(), view).writes if isinstance(each, Patch)]
    assert [each.spec.node_name for each in chosen if isinstance(each, ReplicatedVolumeReplica)] == [node(3)]
    plan = asked(Advance(create=(NewReplica(A, node(3)),)), view)
    assert [one.spec.node_name for one in created(plan)] == [node(3)]
    assert not any(isinstance(each, Patch) and each.target is placed.replica for each in plan.writes)


def test_the_ninth_replica_is_refused_with_the_reason(asked: Any) -> None:
    """M18."""
    view = formed()
    full = picture(view.volume, (*view.replicas, *(unscheduled(number) for number in range(3, 8))))
    plan = asked(Advance(create=(NewReplica(A, node(4)),)), full)
    assert created(plan) == []
    assert "all eight ids" in written(plan).message


def test_an_id_that_members_have_not_forgotten_is_not_given_again(asked: Any) -> None:
    """M18."""
    view = formed()
    left = view.with_status(replace(view.volume.status, datamesh=replace(view.datamesh, forget=(3,))))
    [one] = created(asked(Advance(create=(NewReplica(D),)), left))
    assert one.name == name(4)


def test_replicas_are_deleted_once(asked: Any) -> None:
    plan = asked(Advance(delete={name(1): "DiskfulCount: 4 diskful replicas, 3 are enough", name(7): "gone"}))
    assert [each.obj.name for each in plan.writes if isinstance(each, Delete)] == [name(1)]
    told = [(event.obj.name, event.reason, event.message) for event in plan.events]
    words = f"{name(1)} on {node(1)} is deleted: DiskfulCount: 4 diskful replicas, 3 are enough"
    assert told == [(name(1), "ReplicaDeleted", words), ("v", "ReplicaDeleted", words)]


def test_a_replica_that_loses_its_disk_loses_the_choice_of_it(asked: Any) -> None:
    steps = asked(Advance(retype={name(2): A})).steps
    [spec] = [
        each.intended.spec for each in steps if isinstance(getattr(each, "intended", None), ReplicatedVolumeReplica)
    ]
    assert (spec.type, spec.node_name, spec.lvm_volume_group_name) == (A, node(2), None)


def test_an_annotation_that_has_done_its_work_is_removed_in_the_one_write_of_metadata(asked: Any) -> None:
    view = formed()
    said = {annotation_keys.FORCE_REMOVE: "v-1", "theirs": "kept"}
    rv = replace(view.volume, metadata=replace(view.volume.metadata, annotations=said))
    plan = asked(Advance(spent_annotations=(annotation_keys.FORCE_REMOVE,)), changed(view, rv=rv))
    [patch] = [each for each in plan.steps if isinstance(each, Patch) and isinstance(each.intended, ReplicatedVolume)]
    assert patch.intended.metadata.annotations == {"theirs": "kept"}


@pytest.mark.parametrize(("meant", "told"), [("v-1", False), ("v-9", True), ("w-1", True)])
def test_a_word_of_consent_about_a_replica_that_there_cannot_be_is_taken_back_with_a_reason(
    asked: Any, meant: str, told: bool
) -> None:
    view = formed()
    rv = replace(view.volume, metadata=replace(view.volume.metadata, annotations={annotation_keys.FORCE_REMOVE: meant}))
    plan = asked(Advance(spent_annotations=(annotation_keys.FORCE_REMOVE,)), changed(view, rv=rv))
    assert [event.reason for event in plan.events] == (["ForceRemoveRefused"] if told else [])
    assert all(meant in event.message for event in plan.events)


@pytest.mark.parametrize(("meant", "told"), [(node(1), False), ("elsewhere", True)])
def test_a_word_about_a_node_without_a_replica_is_taken_back_with_a_reason(asked: Any, meant: str, told: bool) -> None:
    view = formed()
    said = {annotation_keys.FORCE_DETACH: meant, annotation_keys.ACCEPT_DATA_LOSS: "true"}
    rv = replace(view.volume, metadata=replace(view.volume.metadata, annotations=said))
    plan = asked(Advance(spent_annotations=tuple(said)), changed(view, rv=rv))
    assert [event.reason for event in plan.events] == (["ForceDetachRefused"] if told else [])


def test_it_is_told_too_while_words_wait_because_something_has_just_changed(asked: Any) -> None:
    view = formed()
    said = {annotation_keys.FORCE_REMOVE: "other-0"}
    rv = replace(view.volume, metadata=replace(view.volume.metadata, annotations=said))
    view = changed(view, rv=rv).with_status(written(asked(Advance(), changed(view, rv=rv))))
    waits = (Wait("NoQuorum", "somebody is away"),)
    plan = asked(Advance(spent_annotations=(annotation_keys.FORCE_REMOVE,), waits=waits), view)
    assert plan.status is None, "the words wait"
    assert [event.reason for event in plan.events] == ["ForceRemoveRefused"]


def test_a_step_is_written_alone(asked: Any) -> None:
    view = formed()
    further = replace(view.volume.status, datamesh_revision=9)
    plan = asked(Advance(status=further, create=(NewReplica(D),)))
    assert plan.transition is not None
    assert plan.writes == ()
    assert written(plan).datamesh_revision == 9


def test_the_queue_is_written_with_whatever_else_there_is(asked: Any) -> None:
    queue = (AttachRequest(node_name=NodeName("n1"), since=ago(1), source=AttachSource.PUBLISH_ON),)
    assert written(asked(Advance(), queue=queue)).attach_requests == queue


def test_a_deleting_volume_that_is_still_in_use_gets_nothing_new(asked: Any) -> None:
    view = formed()
    members = tuple(replace(each, attached=each.node_id == 0) for each in view.members)
    view = view.with_status(replace(view.volume.status, datamesh=replace(view.datamesh, members=members)))
    rv = view.volume
    gone = changed(view, rv=replace(rv, metadata=replace(rv.metadata, deletion_timestamp=ago(1))))
    assert created(asked(Advance(create=(NewReplica(D),)), gone)) == []


def test_a_member_that_listens_elsewhere_is_made_known_as_a_new_revision() -> None:
    """An agent whose port an older replica has chooses another."""
    view = formed()

    def moved(each: ReplicaView) -> ReplicaView:
        drbd = each.replica.status.drbd
        config = replace(drbd.config, address=Address(ipv4="10.0.0.2", port=7042))
        status = replace(each.replica.status, drbd=replace(drbd, config=config))
        return changed(each, replica=replace(each.replica, status=status))

    plan = decided(with_replica(view, 1, moved))
    assert plan.transition is not None
    assert written(plan).datamesh_revision == view.volume.status.datamesh_revision + 1
    assert [each.addresses[0].address.port for each in written(plan).datamesh.members] == [7000, 7042, 7000]
