"""Attachments: what they say, where they stand in the queue, and what keeps them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace as changed
from datetime import timedelta
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.api import conditions, finalizers
from quorate.api.conditions import rva, rvr
from quorate.api.conditions.catalogue import declared_in
from quorate.api.conditions.declaration import Reason
from quorate.api.meta import NodeName
from quorate.api.scalars import ReplicaName
from quorate.api.storage import ReplicatedVolumeAttachment
from quorate.api.storage.configuration import Replication, VolumeAccess
from quorate.api.storage.datamesh import Transition, TransitionGroup, TransitionType
from quorate.api.storage.drbd import CommandError, DrbdErrors
from quorate.api.storage.rv import AttachRequest, AttachSource
from quorate.api.storage.rva import AttachmentPhase
from quorate.api.struct import replace
from quorate.engine import NOTHING, AddFinalizer, PatchStatus, Plan, ReleaseFinalizer
from quorate.locks import Hold, Sort, Thing
from quorate.volumes.attachment.conditions import Subject, attached, ready, replica_ready
from quorate.volumes.attachment.controller import decide, status_of
from quorate.volumes.view import ReplicaView, VolumeView
from tests.volumes.replica.making import (
    LAYOUTS,
    NOW,
    TB,
    A,
    D,
    attachment,
    configuration,
    name,
    node_name,
    picture,
    settled,
    spoilt,
    with_device,
    with_drbd,
    with_member,
    with_rv,
    without_membership,
)

THREE = Replication.CONSISTENCY_AND_AVAILABILITY


def queue(*numbers: int) -> tuple[AttachRequest, ...]:
    return tuple(
        AttachRequest(node_name=node_name(number), since=NOW + timedelta(seconds=place), source=AttachSource.ATTACHMENT)
        for place, number in enumerate(numbers)
    )


def asked(*numbers: int, view: VolumeView | None = None, number: int = 0, **metadata: Any) -> VolumeView:
    """A volume that these nodes want, in this order, seen by the attachment of one of them."""
    view = view or settled(picture())
    view = with_rv(view, attach_requests=queue(*numbers))
    return changed(view, attachments=(attachment(number, **metadata),))


def primary(view: VolumeView, number: int, **device: Any) -> VolumeView:
    def change(found: ReplicaView) -> ReplicaView:
        report = found.replica.status.drbd.status
        assert report is not None
        return with_drbd(status=replace(report, role="Primary"))(found)

    return spoilt(spoilt(view, number, change), number, with_device(**device))


def serving(view: VolumeView, number: int = 0, **device: Any) -> VolumeView:
    """Primary there, and meant to be."""
    return primary(with_member(view, number, attached=True), number, **device)


def underway(view: VolumeView, sort: TransitionType, number: int = 0, message: str = "") -> VolumeView:
    found = Transition(
        type=sort,
        group=TransitionGroup.ATTACHMENT,
        replica_name=name(number),  # type: ignore[arg-type]
        started_at=NOW,
        message=message,
    )
    return with_rv(view, datamesh_transitions=(found,))


DELETING: dict[str, Any] = {"deletion_timestamp": NOW}
HELD = DrbdErrors(last_promotion_error=CommandError(output="held open by dd(42)"))
LOCAL = with_rv(settled(picture()), configuration=configuration(THREE, VolumeAccess.LOCAL))
WITH_TIE_BREAKER = settled(picture((D, D, TB), Replication.AVAILABILITY))
TWO = settled(picture((D, D), Replication.CONSISTENCY))
FULL = settled(picture((D, D, D, A, A, A, A, A)))


def unlisted(view: VolumeView) -> VolumeView:
    assert view.rsp is not None
    return changed(view, rsp=replace(view.rsp, status=replace(view.rsp.status, eligible_nodes=())))


def held(view: VolumeView, number: int) -> VolumeView:
    """Somebody may take the node of a member down."""
    hold = (Thing(Sort.NODE, node_name(number)), Hold("alice-p-7", "alice", NOW))
    return changed(view, holds={ReplicaName(name(number)): (hold,)})


ATTACHED: list[tuple[VolumeView, Reason, str]] = [
    (changed(asked(0), rv=None), rva.Attached.WAITING_FOR_REPLICATED_VOLUME, "does not exist"),
    (serving(asked(0)), rva.Attached.ATTACHED, "Primary on n0"),
    (serving(asked(0, **DELETING), open=True), rva.Attached.DEVICE_IN_USE, "n0 is held open"),
    (
        spoilt(primary(asked(0, **DELETING), 0, open=True), 0, with_drbd(errors=HELD)),
        rva.Attached.DEVICE_IN_USE,
        "dd(42)",
    ),
    (primary(asked(0, **DELETING), 0), rva.Attached.DETACHING, "gives up"),
    (
        underway(asked(0, **DELETING), TransitionType.DETACH, message="waits for 1"),
        rva.Attached.DETACHING,
        "waits for 1",
    ),
    (
        underway(spoilt(asked(0, **DELETING), 0, with_device(open=True)), TransitionType.DETACH),
        rva.Attached.DETACHING,
        "gives up",
    ),
    (asked(0, **DELETING), rva.Attached.DETACHED, "not attached on n0"),
    (with_member(asked(0), 0, attached=True), rva.Attached.ATTACHING, "becomes Primary"),
    (asked(0), rva.Attached.ATTACHING, "n0"),
    (underway(asked(0), TransitionType.ATTACH, message="waits for 2"), rva.Attached.ATTACHING, "waits for 2"),
    (with_rv(asked(0), deleting=True), rva.Attached.REPLICATED_VOLUME_TERMINATING, "pvc-1"),
    (
        without_membership(asked(0), 0, 1, 2, datamesh_revision=0),
        rva.Attached.WAITING_FOR_REPLICATED_VOLUME,
        "not formed",
    ),
    (unlisted(asked(4, number=4)), rva.Attached.NODE_NOT_ELIGIBLE, "n4"),
    (asked(4, view=LOCAL, number=4), rva.Attached.VOLUME_ACCESS_LOCALITY_NOT_SATISFIED, "n4"),
    (asked(1, 2, 0), rva.Attached.PENDING, "n1, n2"),
    (serving(asked(1, 2, 0, number=0), 1), rva.Attached.PENDING, "n1, n2"),
    (asked(1, 0, view=WITH_TIE_BREAKER), rva.Attached.TWO_PRIMARIES_NOT_ALLOWED, "2D+1TB"),
    (asked(0, 4, number=4), rva.Attached.TWO_PRIMARIES_NOT_ALLOWED, "n4 has none"),
    (asked(1, 0), rva.Attached.ATTACHING, ""),
    (asked(8, number=8, view=FULL), rva.Attached.NO_FREE_NODE_ID, "8 replicas"),
    (asked(4, number=4), rva.Attached.WAITING_FOR_REPLICA, "n4 has no replica"),
    (without_membership(asked(0), 0), rva.Attached.WAITING_FOR_REPLICA, "not a member"),
    (held(asked(0, view=TWO), 1), rva.Attached.PERMISSION_HELD, "without pvc-1-1 on n1: node n1 may go down by"),
    (held(asked(2, view=TWO, number=2), 1), rva.Attached.PERMISSION_HELD, "without pvc-1-1 on n1"),
    (held(asked(4, view=WITH_TIE_BREAKER, number=4), 1), rva.Attached.PERMISSION_HELD, "the tie-breaker"),
    (held(asked(0, view=WITH_TIE_BREAKER), 1), rva.Attached.ATTACHING, ""),
    # It ends with its node; and three can do without one.
    (held(asked(0, view=TWO), 0), rva.Attached.ATTACHING, ""),
    (held(asked(0), 1), rva.Attached.ATTACHING, ""),
]


@pytest.mark.parametrize(
    ("view", "reason", "words"), ATTACHED, ids=[f"{reason}-{words[:12]}" for _, reason, words in ATTACHED]
)
def test_each_state_of_things_gives_its_reason(view: VolumeView, reason: Reason, words: str) -> None:
    """M6: Local is what forbids; M18: no ninth member; M32: WaitingForReplicatedVolume, as it was later spelled."""
    found = attached(Subject(view, view.attachments[0]))
    assert (found.reason, found.status) == (reason.code, reason.status), found.message
    assert words in found.message


def test_every_reason_is_in_the_table() -> None:
    assert set(rva.Attached.reasons()) == {reason for _, reason, _ in ATTACHED}


READY = [
    (serving(asked(0)), rva.Ready.READY),
    (asked(0), rva.Ready.NOT_ATTACHED),
    (changed(asked(0), rv=None), rva.Ready.NOT_ATTACHED),
    (serving(asked(0, **DELETING)), rva.Ready.TERMINATING),
]


@pytest.mark.parametrize(("view", "reason"), READY, ids=[str(reason) for _, reason in READY])
def test_an_attachment_is_ready_when_it_is_attached_and_its_replica_says_so(view: VolumeView, reason: Reason) -> None:
    subject = Subject(view, view.attachments[0])
    status = status_of(subject, NOW)
    found = conditions.find(status.conditions, rva.Ready)
    assert found is not None
    assert found.reason == reason.code


def test_the_replicas_own_word_is_mirrored_whatever_it_is() -> None:
    view = serving(asked(0))
    lost = rvr.Ready.NO_QUORUM("1 of 3 voters here")
    told = spoilt(
        view,
        0,
        lambda each: changed(
            each,
            replica=replace(
                each.replica, status=replace(each.replica.status, conditions=conditions.merge((), [lost], now=NOW))
            ),
        ),
    )
    subject = Subject(told, told.attachments[0])
    mirrored = replica_ready(subject)
    assert (mirrored.type, mirrored.reason, mirrored.message) == ("ReplicaReady", "NoQuorum", "1 of 3 voters here")
    assert ready(subject, attached(subject), mirrored).reason == "ReplicaNotReady"
    nobody = Subject(asked(4, number=4), attachment(4))
    assert replica_ready(nobody).reason == "WaitingForReplica"


def test_an_attached_volume_says_where_and_whether_it_is_in_use() -> None:
    view = serving(asked(0), open=True)
    status = status_of(Subject(view, view.attachments[0]), NOW)
    assert (status.device_path, status.in_use, status.io_suspended) == ("/dev/drbd1000", True, False)
    assert status.phase is AttachmentPhase.ATTACHED
    waiting = asked(0)
    status = status_of(Subject(waiting, waiting.attachments[0]), NOW)
    assert (status.device_path, status.in_use, status.io_suspended) == ("", None, None)


@pytest.mark.parametrize(
    ("view", "phase"),
    [
        (asked(1, 2, 0), AttachmentPhase.PENDING),
        (asked(0), AttachmentPhase.ATTACHING),
        (serving(asked(0)), AttachmentPhase.ATTACHED),
        (serving(asked(0, **DELETING)), AttachmentPhase.DETACHING),
        (asked(0, **DELETING), AttachmentPhase.TERMINATING),
    ],
)
def test_the_phase_is_the_first_that_fits(view: VolumeView, phase: AttachmentPhase) -> None:
    assert status_of(Subject(view, view.attachments[0]), NOW).phase is phase


# What keeps one.


def plan(view: VolumeView) -> Plan:
    return decide(view, NOW, Random(0))


def finalizer(view: VolumeView) -> str:
    kinds = {AddFinalizer: "added", ReleaseFinalizer: "released"}
    found = [kinds[type(write)] for write in plan(view).steps if type(write) in kinds]
    return found[0] if found else ""


KEPT: list[tuple[str, VolumeView, str]] = [
    ("alive without one", asked(0, finalizers=()), "added"),
    ("alive with one", asked(0), ""),
    ("deleted, attached", serving(asked(0, **DELETING)), ""),
    ("deleted, still Primary", primary(asked(0, **DELETING), 0), ""),
    ("deleted, being attached", underway(asked(0, **DELETING), TransitionType.ATTACH), ""),
    ("deleted, being detached", underway(asked(0, **DELETING), TransitionType.DETACH), ""),
    ("deleted, detached", asked(0, **DELETING), "released"),
    ("deleted, no replica there", asked(4, number=4, **DELETING), "released"),
    ("no volume", changed(asked(0), rv=None), "released"),
    ("no volume, without one", changed(asked(0, finalizers=()), rv=None), ""),
    ("no volume, deleted", changed(asked(0, **DELETING), rv=None), "released"),
    ("volume deleted, attached", with_rv(serving(asked(0, **DELETING)), deleting=True), ""),
]


@pytest.mark.parametrize(("view", "change"), [row[1:] for row in KEPT], ids=[row[0] for row in KEPT])
def test_an_attachment_is_kept_until_its_node_is_neither_attached_nor_on_the_way(view: VolumeView, change: str) -> None:
    assert finalizer(view) == change


def test_a_second_attachment_on_the_node_keeps_it_so_the_first_may_go() -> None:
    view = serving(asked(0, **DELETING))
    twin = replace(attachment(0), metadata=replace(attachment(0).metadata, name="another"))
    both = changed(view, attachments=(*view.attachments, twin))
    (released,) = [write for write in plan(both).steps if isinstance(write, ReleaseFinalizer)]
    assert released.obj.name == "csi-0"
    # Both say the same of the node.
    assert attached(Subject(both, twin)).reason == "Attached"


def test_a_foreign_finalizer_does_not_keep_ours() -> None:
    view = asked(0, finalizers=(finalizers.RV_CONTROLLER, "example.com/mine"), **DELETING)
    writes = plan(view).steps
    assert [type(write) for write in writes] == [ReleaseFinalizer, PatchStatus]


def test_an_orphan_is_told_that_its_volume_is_gone() -> None:
    view = changed(asked(0), rv=None)
    status = status_of(Subject(view, view.attachments[0]), NOW)
    assert {condition.type: condition.reason for condition in status.conditions} == {
        "Attached": "WaitingForReplicatedVolume",
        "Ready": "NotAttached",
    }


def settled_attachments(view: VolumeView) -> VolumeView:
    found: list[ReplicatedVolumeAttachment] = []
    for each in view.attachments:
        kept = each.metadata
        if view.rv is None:
            kept = replace(kept, finalizers=())
        elif not each.deleting:
            kept = replace(kept, finalizers=(finalizers.RV_CONTROLLER,))
        found.append(replace(each, metadata=kept, status=status_of(Subject(view, each), NOW)))
    return changed(view, attachments=tuple(found))


SPOILS: list[Callable[[VolumeView], VolumeView]] = [
    lambda view: view,
    lambda view: primary(view, 0),
    lambda view: with_member(view, 0, attached=True) if view.rv is not None else view,
    lambda view: serving(view, open=True) if view.rv is not None else view,
    lambda view: with_rv(view, deleting=True) if view.rv is not None else view,
    lambda view: without_membership(view, 0) if view.rv is not None else view,
    lambda view: underway(view, TransitionType.DETACH) if view.rv is not None else view,
    lambda view: changed(view, rsp=None),
    lambda view: changed(view, rv=None),
    lambda view: with_rv(view, configuration=None) if view.rv is not None else view,
]
CONDITIONS = {condition.__name__ for condition in declared_in(rva)}


@given(
    st.sampled_from(sorted(LAYOUTS)),
    st.lists(st.integers(0, 4), max_size=4, unique=True),
    st.integers(0, 4),
    st.booleans(),
    st.lists(st.sampled_from(SPOILS), max_size=3),
)
@settings(max_examples=200)
def test_any_state_gives_one_verdict_for_each_condition_and_comes_to_rest(
    replication: Replication,
    numbers: list[int],
    number: int,
    deleted: bool,
    spoils: list[Callable[[VolumeView], VolumeView]],
) -> None:
    view = picture(LAYOUTS[replication], replication)
    view = asked(*numbers, view=view, number=number, **(DELETING if deleted else {}))
    for spoil in spoils:
        view = spoil(view)
    rested = settled_attachments(view)
    (found,) = rested.attachments
    assert {condition.type for condition in found.status.conditions} in (CONDITIONS, CONDITIONS - {"ReplicaReady"})
    again = decide(rested, NOW + timedelta(days=1), Random(0))
    assert [write for write in again.steps if isinstance(write, PatchStatus)] == []
    assert again is NOTHING or deleted


def test_one_at_rest_costs_no_write() -> None:
    rested = settled_attachments(serving(asked(0)))
    assert decide(rested, NOW + timedelta(days=1), Random(0)) is NOTHING


def test_people_are_told_of_every_turn() -> None:
    (event,) = plan(asked(0)).events
    assert event.reason == "Attaching"


def test_the_node_of_an_attachment_need_not_exist() -> None:
    view = changed(asked(4, number=4), nodes={})
    assert attached(Subject(view, attachment(4))).reason == "WaitingForReplica"
    assert NodeName("n4") not in view.nodes
