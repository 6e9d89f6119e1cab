"""The end of a volume, in 002's order, and what holds it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace as changed
from typing import Any

import pytest

from quorate.api import annotation_keys, finalizers, labels
from quorate.api.meta import NodeName, ObjectMeta, VolumeName
from quorate.api.storage import LVMLogicalVolume, ReplicatedVolumeAttachment
from quorate.api.storage.datamesh import FormationPhase, Transition, TransitionGroup, TransitionType
from quorate.api.storage.rv import VolumePhase
from quorate.api.storage.rva import ReplicatedVolumeAttachmentSpec
from quorate.api.struct import replace
from quorate.engine import Create, Delete, ReleaseFinalizer
from quorate.volumes.view import ReplicaView, VolumeView
from quorate.volumes.volume.deletion import should_not_exist
from quorate.volumes.volume.leftovers import clear
from tests.volumes.volume.making import (
    C,
    ago,
    bootstrapping,
    connecting,
    decided,
    formed,
    granted,
    joined,
    ledger,
    members_of,
    name,
    node_view,
    operation,
    picture,
    piece,
    preconfiguring,
    status,
    volume,
    written,
)


def deleted(view: VolumeView) -> VolumeView:
    """The same volume, a moment after somebody has deleted it."""
    rv = view.volume
    return changed(view, rv=replace(rv, metadata=replace(rv.metadata, deletion_timestamp=ago(1))))


def emptied(*replicas: ReplicaView, **more: Any) -> VolumeView:
    """A deleted volume without members."""
    return deleted(picture(volume(status(None)), replicas, **more))


def outsider(number: int, **metadata: Any) -> ReplicaView:
    """A replica that is no member any more."""
    found = changed(joined(number, members_of(C)), member=None)
    return changed(found, replica=replace(found.replica, metadata=replace(found.replica.metadata, **metadata)))


@pytest.mark.parametrize("view", [preconfiguring(), connecting(), bootstrapping(), formed()])
def test_first_nobody_is_a_member_any_more_in_one_write(view: VolumeView) -> None:
    plan = decided(deleted(view))
    assert plan.transition is not None
    found = written(plan)
    assert found.datamesh.members == ()
    assert found.datamesh_transitions == ()
    assert found.phase is VolumePhase.TERMINATING


def attached(view: VolumeView) -> VolumeView:
    members = tuple(replace(each, attached=each.node_id == 0) for each in view.members)
    rv = view.volume
    return view.with_status(replace(rv.status, datamesh=replace(rv.status.datamesh, members=members)))


def detaching(view: VolumeView) -> VolumeView:
    transition = Transition(
        type=TransitionType.DETACH, group=TransitionGroup.ATTACHMENT, replica_name=name(0), started_at=ago(1)
    )
    return view.with_status(replace(view.volume.status, datamesh_transitions=(transition,)))


@pytest.mark.parametrize("spoil", [attached, detaching])
def test_what_is_attached_or_detaching_holds_everything(spoil: Callable[[VolumeView], VolumeView]) -> None:
    assert not should_not_exist(deleted(spoil(formed())))
    assert should_not_exist(deleted(formed()))
    assert not should_not_exist(formed())


def test_a_deleted_volume_that_is_attached_says_where_and_deletes_nothing() -> None:
    plan = decided(deleted(attached(formed())))
    assert not [each for each in plan.steps if isinstance(each, Delete | ReleaseFinalizer)]
    assert written(plan).datamesh.members
    assert written(plan).phase is VolumePhase.TERMINATING


def test_somebody_elses_finalizer_keeps_the_volume_as_it_is() -> None:
    view = deleted(formed())
    rv = view.volume
    kept = changed(
        view, rv=replace(rv, metadata=replace(rv.metadata, finalizers=(*rv.metadata.finalizers, "backup.example")))
    )
    plan = decided(kept)
    assert not [each for each in plan.steps if isinstance(each, Delete | ReleaseFinalizer)]
    assert "backup.example" in written(plan).message


def test_nothing_new_is_made_for_a_deleted_volume_that_only_somebody_else_keeps_and_it_says_so_at_once() -> None:
    rv = volume(
        status(FormationPhase.PRECONFIGURE, since=0),
        deletion_timestamp=ago(1),
        finalizers=(finalizers.RV_CONTROLLER, "backup.example"),
    )
    plan = decided(picture(rv))
    assert not [each for each in plan.steps if isinstance(each, Create)]
    assert "backup.example" in written(plan).message


def test_then_operation_and_replicas_are_deleted() -> None:
    view = emptied(*(outsider(number) for number in range(3)), operation=operation(connecting(), None))
    found = [each.obj.name for each in decided(view).writes if isinstance(each, Delete)]
    assert found == ["v-formation", name(0), name(1), name(2)]


def test_a_comparison_that_was_begun_goes_with_its_volume_and_holds_it_by_name() -> None:
    """Otherwise a volume that is deleted right after its last use would stay for ever."""
    begun = operation(connecting(), None)
    begun = replace(begun, metadata=replace(begun.metadata, name="v-comparison-14"))
    plan = decided(emptied(comparisons=(begun,)))
    assert [each.obj.name for each in plan.writes if isinstance(each, Delete)] == ["v-comparison-14"]
    assert not [each for each in plan.writes if isinstance(each, ReleaseFinalizer)]
    assert "operations v-comparison-14" in written(plan).message


def test_then_what_the_replicas_left_then_the_space() -> None:
    """M31."""
    both = emptied(pieces=(piece(0),), ledgers=(ledger(0, {name(0): granted()}),))
    assert [type(each).__name__ for each in decided(both).steps[:-1]] == ["Delete"]
    space = emptied(ledgers=(ledger(0, {name(0): granted()}),))
    assert [each.target.KIND.name for each in decided(space).steps[:-1]] == ["DiskSchedule"]


def test_a_piece_on_a_machine_that_is_gone_is_let_go_in_its_agents_stead() -> None:
    left = piece(0)
    left = replace(left, metadata=replace(left.metadata, deletion_timestamp=ago(9), finalizers=(finalizers.AGENT,)))
    view = emptied(pieces=(left,), nodes={NodeName("n0"): node_view(0, fresh=False, there=False)})
    [release] = [each for each in decided(view).steps if isinstance(each, ReleaseFinalizer)]
    assert release.finalizer == finalizers.AGENT
    assert release.after[0].cls.__name__ == "Node"
    here = emptied(pieces=(left,), nodes={NodeName("n0"): node_view(0, fresh=False)})
    assert not [each for each in decided(here).steps if isinstance(each, ReleaseFinalizer)]


def test_a_node_that_is_down_holds_it_with_reason_node_down() -> None:
    lost = changed(
        outsider(1, deletion_timestamp=ago(9), finalizers=(finalizers.AGENT,)), node=node_view(1, fresh=False)
    )
    found = {each.type: each for each in written(decided(emptied(lost))).conditions}
    assert found["Ready"].reason == "NodeDown"
    assert "n1" in found["Ready"].message


def wish(**metadata: Any) -> ReplicatedVolumeAttachment:
    return ReplicatedVolumeAttachment(
        metadata=ObjectMeta(name="wish", **metadata),
        spec=ReplicatedVolumeAttachmentSpec(replicated_volume_name=VolumeName("v"), node_name=NodeName("n0")),
    )


def test_attachments_hold_the_volume_when_all_else_is_gone() -> None:
    plan = decided(emptied(attachments=(wish(),)))
    assert not [each for each in plan.steps if isinstance(each, ReleaseFinalizer)]
    assert "wish" in written(plan).message


def test_the_finalizer_goes_last_after_the_store_has_said_that_no_child_is_left() -> None:
    [release] = decided(emptied()).steps
    assert isinstance(release, ReleaseFinalizer)
    assert release.finalizer == finalizers.RV_CONTROLLER
    assert {each.cls.__name__ for each in release.after} == {
        "ReplicatedVolumeReplica",
        "ReplicatedVolumeAttachment",
        "LVMLogicalVolume",
        "DRBDResourceOperation",
    }
    assert all(each.labels or each.fields for each in release.after)


def test_a_volume_that_was_deleted_before_it_had_our_finalizer_is_left_alone() -> None:
    rv = volume(finalizers=("other",), deletion_timestamp=ago(1))
    assert decided(picture(rv)).steps == ()


def test_replicas_of_a_volume_that_is_gone_are_never_deleted_by_us() -> None:
    assert decided(picture(None, [outsider(0), outsider(1)])).steps == ()


def dying_piece(number: int, *, maker: str | None = "uid-v", consent: bool = False) -> LVMLogicalVolume:
    left = piece(number)
    known = {name: value for name, value in left.metadata.labels.items() if name != labels.VOLUME_UID}
    said = {annotation_keys.ACCEPT_DATA_LOSS: "true"} if consent else {}
    made_by = {labels.VOLUME_UID: maker} if maker is not None else {}
    return replace(
        left,
        metadata=replace(
            left.metadata,
            deletion_timestamp=ago(9),
            labels=known | made_by,
            annotations=said,
            creation_timestamp=ago(60),
        ),
    )


def test_a_piece_whose_volume_is_gone_goes_only_with_a_persons_consent() -> None:
    """Kubernetes deletes by itself what a lost object owned: that somebody deletes it says nothing."""
    assert decided(picture(None, pieces=(piece(0),))).steps == ()
    assert decided(picture(None, pieces=(dying_piece(0),))).steps == ()
    [step] = decided(picture(None, pieces=(dying_piece(0, consent=True),))).steps
    assert isinstance(step, ReleaseFinalizer)


@pytest.mark.parametrize(
    ("maker", "cleared"),
    [("uid-v", True), ("uid-of-another", False), (None, False)],
    ids=["ours", "another's", "unknown"],
)
def test_a_piece_is_cleared_away_only_by_the_volume_that_made_it(maker: str | None, cleared: bool) -> None:
    """Names come again, also within the second: the volume's uid does not."""
    view = formed()
    stray = changed(view, pieces=(*view.pieces, dying_piece(4, maker=maker)))
    assert [type(each) for each in clear(stray)] == ([ReleaseFinalizer] if cleared else [])


def test_a_members_copy_is_kept_whoever_deletes_it_when_only_its_replica_is_lost() -> None:
    view = formed()
    lost = changed(view, replicas=view.replicas[1:], pieces=(dying_piece(0), *view.pieces[1:]))
    assert [each for each in clear(lost) if each.target.KIND.name == "LVMLogicalVolume"] == []
    assert [type(each) for each in clear(deleted(lost))] == [ReleaseFinalizer]


def test_a_piece_of_no_member_is_cleared_away_while_the_volume_lives() -> None:
    view = formed()
    assert [type(each) for each in clear(changed(view, pieces=(*view.pieces, piece(4))))] == [Delete]


def test_a_deleting_volume_gets_no_new_labels() -> None:
    plan = decided(emptied(outsider(0)))
    assert labels.REPLICATED_STORAGE_CLASS not in repr(plan.steps)
