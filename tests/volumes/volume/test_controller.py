"""One pass: what comes first, what is written alone, and that it comes to rest."""

from __future__ import annotations

from dataclasses import replace as changed
from datetime import datetime, timedelta

import pytest

from quorate.api import labels
from quorate.api.conditions.merging import merge
from quorate.api.conditions.rv import Ready
from quorate.api.conditions.rvr import Ready as ReplicaReady
from quorate.api.conditions.rvr import Scheduled
from quorate.api.storage import LVMLogicalVolume
from quorate.api.storage.configuration import Replication
from quorate.api.storage.datamesh import PendingTransition
from quorate.api.storage.rv import VolumePhase
from quorate.api.storage.rvr import ReplicaPhase
from quorate.api.struct import replace
from quorate.engine import AddFinalizer, Delete, Patch
from quorate.volumes.settling import SETTLING
from quorate.volumes.view import ReplicaView, VolumeView
from quorate.volumes.volume.pending import with_pending
from quorate.volumes.volume.report import held_back
from tests.volumes.volume.making import (
    NOW,
    TB,
    ago,
    as_ready,
    bootstrapping,
    connecting,
    decided,
    formed,
    joined,
    members_of,
    name,
    picture,
    piece,
    preconfiguring,
    volume,
    written,
)


def test_the_finalizer_and_the_label_come_before_anything_else() -> None:
    plan = decided(picture(volume(finalizers=())))
    [step] = plan.steps
    assert isinstance(step, AddFinalizer)
    assert step.target.name == "v"
    assert step.labels == {labels.REPLICATED_STORAGE_CLASS: "class"}


def test_a_new_volume_gets_its_minor_before_its_finalizer_and_waits_no_longer_than_a_moment_for_it() -> None:
    new = volume(finalizers=(), creation_timestamp=ago(1))
    plan = decided(picture(new))
    assert plan.steps == ()
    assert plan.requeue_after == pytest.approx(SETTLING - 1)
    config = replace(new.status.drbd.config, device_minor=0)
    given = replace(new, status=replace(new.status, drbd=replace(new.status.drbd, config=config)))
    assert [type(step) for step in decided(picture(given)).steps] == [AddFinalizer]
    assert [type(step) for step in decided(picture(new), NOW + timedelta(seconds=SETTLING)).steps] == [AddFinalizer]


def test_a_label_that_somebody_has_changed_is_put_right_beside_other_work() -> None:
    view = formed()
    wrong = {labels.REPLICATED_STORAGE_CLASS: "another", "theirs": "kept"}
    rv = replace(view.volume, metadata=replace(view.volume.metadata, labels=wrong))
    [patch] = [step for step in decided(changed(view, rv=rv)).steps if isinstance(step, Patch)]
    assert patch.intended.metadata.labels == {labels.REPLICATED_STORAGE_CLASS: "class", "theirs": "kept"}


def settled(view: VolumeView, now: datetime = NOW) -> VolumeView:
    """The volume once what is decided about it has been written."""
    plan = decided(view, now)
    rv = view.volume
    labelled = replace(rv, metadata=replace(rv.metadata, labels={labels.REPLICATED_STORAGE_CLASS: "class"}))
    return changed(view, rv=labelled).with_status(written(plan))


@pytest.mark.parametrize("replication", list(Replication))
def test_a_formed_volume_comes_to_rest_for_ever(replication: Replication) -> None:
    view = formed(replication)
    view = settled(changed(view, replicas=tuple(as_ready(each) for each in view.replicas)))
    for days in (0, 1, 1000):
        plan = decided(view, NOW + timedelta(days=days))
        assert plan.steps == ()
        assert plan.requeue_after is None


def unconnected(view: VolumeView) -> VolumeView:
    return changed(
        view,
        replicas=tuple(
            changed(each, replica=replace(each.replica, status=replace(each.replica.status, datamesh_revision=1)))
            for each in view.replicas
        ),
    )


def test_a_phase_that_is_young_is_not_described_and_is_looked_at_again() -> None:
    young = unconnected(connecting(since=1))
    plan = decided(young)
    assert plan.status is None
    assert plan.requeue_after == pytest.approx(SETTLING - 1)
    old = unconnected(connecting(since=SETTLING + 1))
    assert decided(old).status is not None
    assert decided(settled(old)).steps == ()


def test_words_alone_wait_while_something_else_has_just_changed() -> None:
    """Of three replicas that become ready one after the other only the last is news."""
    view = settled(formed())
    one = changed(view, replicas=(as_ready(view.replicas[0]), *view.replicas[1:]))
    soon = decided(one, NOW + timedelta(seconds=1))
    assert soon.steps == ()
    assert soon.requeue_after == pytest.approx(SETTLING - 1)
    later = decided(one, NOW + timedelta(seconds=SETTLING))
    assert [step.target.KIND.name for step in later.steps] == ["ReplicatedVolume"]
    every = changed(view, replicas=tuple(as_ready(each) for each in view.replicas))
    assert decided(every, NOW + timedelta(seconds=1)).status is not None


def cut_off(found: ReplicaView, *numbers: int) -> ReplicaView:
    """The replica, out of touch with these."""
    drbd = found.replica.status.drbd
    assert drbd.status is not None
    links = tuple(
        replace(link, connection_state="Connecting", peer_devices=()) if link.peer_node_id in numbers else link
        for link in drbd.status.connections
    )
    status = replace(found.replica.status, drbd=replace(drbd, status=replace(drbd.status, connections=links)))
    return changed(found, replica=replace(found.replica, status=status))


def test_people_are_told_once_when_a_volume_survives_less_than_it_promises_and_when_it_does_again() -> None:
    view = formed()
    whole = settled(changed(view, replicas=tuple(as_ready(each) for each in view.replicas)))
    first, second, third = whole.replicas
    lame = changed(whole, replicas=(cut_off(first, 2), cut_off(second, 2), cut_off(third, 0, 1)))
    (event,) = decided(lame).events
    assert (event.reason, event.warning) == ("Degraded", True)
    assert decided(settled(lame)).events == ()
    mended = changed(settled(lame), replicas=whole.replicas)
    (event,) = decided(mended).events
    assert (event.reason, event.warning) == ("Resilient", False)


def test_it_is_the_last_flip_that_words_wait_for() -> None:
    view = settled(formed())
    status = view.volume.status
    old = tuple(replace(each, last_transition_time=ago(3600)) for each in status.conditions)
    newest = replace(old[-1], last_transition_time=NOW)
    other = replace(status, message="other words", phase=None)
    for found, waits in (((*old[:-1], newest), True), (old, False)):
        before, after = replace(status, conditions=found), replace(other, conditions=found)
        assert (held_back(before, after, NOW + timedelta(seconds=1)) is not None) is waits


def with_data(each: ReplicaView) -> ReplicaView:
    found = each.replica.status
    drbd = replace(found.drbd, actual=replace(found.drbd.actual, initial_sync_completed=True))
    return changed(each, member=None, replica=replace(each.replica, status=replace(found, drbd=drbd)))


def test_replicas_with_data_under_a_volume_without_status_are_left_alone() -> None:
    members = members_of(Replication.CONSISTENCY)
    view = picture(volume(), [with_data(joined(each.node_id, members)) for each in members])
    plan = decided(view)
    assert plan.writes == ()
    assert plan.transition is None
    found = {each.type: each for each in written(plan).conditions}
    assert found["StatusLost"].status == "True"
    assert "v-0, v-1 " in found["StatusLost"].message
    assert written(plan).phase is VolumePhase.DEGRADED
    assert plan.events[0].warning
    again = decided(view.with_status(written(plan)))
    assert (again.steps, again.events) == ((), ()), "it has been said"


def older(found: LVMLogicalVolume) -> LVMLogicalVolume:
    """Made for a volume that was there before."""
    made_for = {**found.metadata.labels, labels.VOLUME_UID: "uid-of-another"}
    return replace(found, metadata=replace(found.metadata, labels=made_for))


def test_pieces_of_an_earlier_volume_of_that_name_are_left_alone_too() -> None:
    """Its objects were lost, and somebody has applied the manifest again."""
    plan = decided(picture(volume(), pieces=(older(piece(0)),)))
    assert plan.writes == ()
    assert plan.transition is None
    assert "v-0-" in written(plan).message
    assert decided(picture(volume(), pieces=(piece(0),))).transition is not None


def test_a_tie_breaker_holds_no_data() -> None:
    members = members_of(Replication.AVAILABILITY)
    view = picture(volume(), [with_data(joined(2, members))])
    assert view.replicas[0].type is TB
    assert decided(view).transition is not None


def test_deleting_the_volume_is_a_persons_word_about_lost_data() -> None:
    members = members_of(Replication.CONSISTENCY)
    view = picture(volume(deletion_timestamp=ago(1)), [with_data(joined(each.node_id, members)) for each in members])
    assert [type(step) for step in decided(view).steps[:2]] == [Delete, Delete]


# What the replicas ask for.


def asking(view: VolumeView, number: int, asked: PendingTransition | None) -> VolumeView:
    def change(each: ReplicaView) -> ReplicaView:
        found = replace(each.replica.status, datamesh_pending_transition=asked)
        return changed(each, replica=replace(each.replica, status=found))

    return changed(view, replicas=tuple(change(each) if each.id == number else each for each in view.replicas))


def test_requests_are_merged_in_order_with_the_time_of_the_first_sight() -> None:
    leave = PendingTransition(member=False)
    view = asking(asking(formed(), 2, leave), 0, leave)
    first = with_pending(view, view.volume.status, ago(50))
    found = first.datamesh_pending_replica_transitions
    assert [(each.name, each.first_observed_at) for each in found] == [(name(0), ago(50)), (name(2), ago(50))]
    answered = replace(
        first,
        datamesh_pending_replica_transitions=tuple(replace(each, reason="Waits", message="why") for each in found),
    )
    again = with_pending(view, answered, NOW)
    assert again is answered
    other = with_pending(asking(asking(view, 0, PendingTransition(member=True)), 2, None), answered, NOW)
    assert [
        (each.name, each.first_observed_at, each.reason) for each in other.datamesh_pending_replica_transitions
    ] == [(name(0), NOW, "")]


def test_what_they_ask_for_while_forming_is_written_with_the_next_step() -> None:
    plan = decided(preconfiguring())
    assert plan.transition is not None
    assert [each.name for each in written(plan).datamesh_pending_replica_transitions] == [name(0), name(1), name(2)]


def contrary(view: VolumeView) -> VolumeView:
    """The same, with conditions and phases that say the opposite of everything."""

    def spoilt(each: ReplicaView) -> ReplicaView:
        said = merge((), [ReplicaReady.NO_QUORUM(), Scheduled.NO_SPACE()], now=NOW)
        found = replace(each.replica.status, conditions=said, phase=ReplicaPhase.CRITICAL)
        return changed(each, replica=replace(each.replica, status=found))

    view = changed(view, replicas=tuple(spoilt(each) for each in view.replicas))
    said = merge((), [Ready.REPLICAS_NOT_READY()], now=ago(60))
    return view.with_status(replace(view.volume.status, conditions=said, phase=VolumePhase.DEGRADED))


@pytest.mark.parametrize("view", [preconfiguring(), connecting(), bootstrapping(), formed()])
def test_no_decision_reads_a_condition_or_a_phase(view: VolumeView) -> None:
    """M23."""
    plain, other = decided(view), decided(contrary(view))
    assert [repr(step) for step in other.writes if step.target.name != "v"] == [
        repr(step) for step in plain.writes if step.target.name != "v"
    ]
    assert (plain.transition is None) == (other.transition is None)
    if plain.transition is not None:
        for name_ in ("datamesh", "datamesh_revision", "datamesh_transitions", "drbd"):
            assert getattr(written(plain), name_) == getattr(written(other), name_)
