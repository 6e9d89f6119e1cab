"""When a replica may go: the gc conditions of 000, the finalizer table of 01, and what holds it meanwhile."""

from __future__ import annotations

from dataclasses import replace as changed
from typing import Any

import pytest

from quorate.api import annotation_keys, finalizers, names
from quorate.api.conditions import find
from quorate.api.conditions.rvr import Ready
from quorate.api.storage.configuration import Replication
from quorate.api.storage.datamesh import (
    Formation,
    FormationPhase,
    Transition,
    TransitionGroup,
    TransitionType,
)
from quorate.api.storage.drbd import CommandError, DrbdActual, DrbdErrors
from quorate.api.struct import replace
from quorate.engine import AddFinalizer, ReleaseFinalizer
from quorate.volumes.replica.leaving import hindrance
from quorate.volumes.view import ReplicaView, VolumeView
from tests.volumes.replica.making import (
    NEEDED,
    NOW,
    REVISION,
    TB,
    A,
    D,
    decided,
    deleting,
    ledger,
    name,
    node_name,
    picture,
    spoilt,
    told,
    with_device,
    with_drbd,
    with_member,
    with_metadata,
    with_rv,
    with_spec,
    with_status,
    without_membership,
    written,
)

FOUR = (D, D, D, D)
LLV = names.logical_volume(name(3), "g3")


def given_up(found: ReplicaView) -> ReplicaView:
    """A person has said that its copy may go."""
    said = {annotation_keys.ACCEPT_DATA_LOSS: "true"}
    metadata = replace(found.replica.metadata, annotations=said)
    return changed(found, replica=replace(found.replica, metadata=metadata))


def leaver(view: VolumeView | None = None) -> VolumeView:
    """3D, and a fourth that has left the datamesh, is down, and is being deleted: everything is in order."""
    view = view or picture(FOUR)
    view = without_membership(spoilt(view, 3, deleting), 3)
    return spoilt(view, 3, with_drbd(status=None))


def without_disk(view: VolumeView) -> VolumeView:
    return spoilt(view, 3, lambda each: changed(each, volumes=(), ledgers=()))


def underway(sort: TransitionType, group: TransitionGroup = TransitionGroup.VOTING_MEMBERSHIP) -> Transition:
    return Transition(type=sort, group=group, replica_name=name(3), started_at=NOW)  # type: ignore[arg-type]


def formation(phase: FormationPhase) -> Transition:
    return Transition(
        type=TransitionType.FORMATION,
        group=TransitionGroup.FORMATION,
        started_at=NOW,
        formation=Formation(phase=phase, phase_started_at=NOW),
    )


def formed_anew() -> VolumeView:
    """The volume's formation starts again, so that nobody is a member."""
    restarting = (formation(FormationPhase.RESTARTING),)
    return without_membership(leaver(), 0, 1, 2, datamesh_transitions=restarting, datamesh_revision=1)


def unlinked(found: ReplicaView) -> ReplicaView:
    report = found.replica.status.drbd.status
    assert report is not None
    links = tuple(replace(link, connection_state="Connecting") for link in report.connections)
    return with_drbd(status=replace(report, connections=links))(found)


def forgetting(view: VolumeView) -> VolumeView:
    assert view.rv is not None
    return with_rv(view, datamesh=replace(view.rv.status.datamesh, forget=(3,)))


def had_no_data(view: VolumeView) -> VolumeView:
    for number in range(len(view.replicas)):
        view = spoilt(view, number, with_drbd(actual=DrbdActual()))
    return view


def test_whose_device_is_held_open_by_a_process_that_waits_for_ever_says_what_a_person_can_do() -> None:
    said = "State change failed: (-12) Device is held open by someone\ndrbd0 opened by dd (pid 1002)"
    error = CommandError(command="drbdsetup down v", exit_code=11, output=said, reason="HeldOpen")
    left = with_rv(leaver(), published_on=(node_name(3),))
    held = spoilt(left, 3, with_drbd(errors=DrbdErrors(last_adjustment_error=error)))
    wait = hindrance(held, held.replicas[3])
    assert wait is not None
    assert "opened by dd (pid 1002)" in wait.message
    assert f"end it, or restart {node_name(3)}" in wait.message


HINDRANCES: list[tuple[str, VolumeView, str | None]] = [
    ("in order", leaver(), None),
    ("a member", spoilt(picture(FOUR), 3, deleting), "StillMember"),
    ("being forgotten", forgetting(leaver()), "NotForgotten"),
    ("forgotten by all but one who sleeps", with_member(forgetting(leaver()), 2, excused=True), None),
    (
        "a transition about it",
        with_rv(leaver(), datamesh_transitions=(underway(TransitionType.REMOVE_REPLICA),)),
        "NotForgotten",
    ),
    ("published, by the volume's word", with_rv(leaver(), published_on=(node_name(3),)), "Published"),
    ("one copy behind", spoilt(leaver(), 0, with_device(disk_state="Inconsistent")), "CopiesMissing"),
    (
        "one copy behind, and given up",
        spoilt(spoilt(leaver(), 3, given_up), 0, with_device(disk_state="Inconsistent")),
        None,
    ),
    ("a member, and given up", spoilt(spoilt(picture(FOUR), 3, deleting), 3, given_up), "StillMember"),
    ("being forgotten, and given up", forgetting(spoilt(leaver(), 3, given_up)), "NotForgotten"),
    ("one without quorum", spoilt(leaver(), 0, with_device(quorum=False)), "CopiesMissing"),
    ("one silent", leaver(picture(FOUR, stale=(1,))), "CopiesMissing"),
    ("another deleted, which still votes", spoilt(leaver(), 1, deleting), None),
    ("another hidden", with_member(leaver(), 1, hidden=True), "CopiesMissing"),
    ("the others apart", spoilt(leaver(), 0, unlinked), "NotConnected"),
    ("nobody knows the promise", with_rv(leaver(), configuration=None), "NoConfiguration"),
    ("no copy to be missed", spoilt(without_disk(leaver()), 0, with_device(disk_state="Inconsistent")), None),
    (
        "never had a whole copy",
        spoilt(spoilt(leaver(), 3, with_drbd(actual=DrbdActual())), 0, with_device(disk_state="Inconsistent")),
        None,
    ),
    ("its node is gone", spoilt(leaver(picture(FOUR, gone=(3,))), 0, with_device(disk_state="Inconsistent")), None),
    ("no volume", changed(leaver(), rv=None), "VolumeLost"),
    ("no volume, and a person's consent", changed(spoilt(leaver(), 3, given_up), rv=None), None),
    ("no volume, and no copy", changed(without_disk(leaver()), rv=None), None),
    ("the volume goes", with_rv(spoilt(picture(FOUR), 3, deleting), deleting=True), None),
    (
        "the volume goes, and is in use",
        with_member(with_rv(spoilt(picture(FOUR), 3, deleting), deleting=True), 0, attached=True),
        "StillMember",
    ),
    (
        "the volume goes, and is being detached",
        with_rv(
            spoilt(picture(FOUR), 3, deleting),
            deleting=True,
            datamesh_transitions=(underway(TransitionType.DETACH, TransitionGroup.ATTACHMENT),),
        ),
        "StillMember",
    ),
    ("the status is lost", without_membership(leaver(), 0, 1, 2, datamesh_revision=0), "StatusLost"),
    ("never formed", had_no_data(without_membership(leaver(), 0, 1, 2, datamesh_revision=0)), None),
    (
        "formed without it",
        with_rv(leaver(), datamesh_transitions=(formation(FormationPhase.BOOTSTRAP_DATA),)),
        None,
    ),
    ("formed anew", had_no_data(formed_anew()), None),
    ("older than its formation", formed_anew(), "ReplicaHoldsData"),
    ("older than its formation, and given up", spoilt(formed_anew(), 3, given_up), None),
]


@pytest.mark.parametrize(("view", "reason"), [row[1:] for row in HINDRANCES], ids=[row[0] for row in HINDRANCES])
def test_a_replica_lets_go_of_its_data_only_when_nobody_can_miss_it(view: VolumeView, reason: str | None) -> None:
    """000 rvr-gc, judged by live reports (M23)."""
    found = hindrance(view, view.by_name[name(3)])  # type: ignore[index]
    assert (found.reason if found is not None else None) == reason
    assert (LLV in told(decided(view)).deleted) is (reason is None and bool(view.replicas[3].volumes))


def test_ready_conditions_decide_nothing() -> None:
    """M23: whatever the conditions say, the live state counts."""
    view = leaver()
    for number in range(4):
        view = spoilt(view, number, with_status(conditions=()))
    assert hindrance(view, view.replicas[3]) is None


def test_a_drives_procedure_keeps_the_disk_until_a_person_says_so_or_the_volume_goes() -> None:
    view = leaver()
    assert told(decided(view)).deleted == [LLV]
    assert told(decided(view, frozenset({LLV}))).deleted == []
    assert told(decided(with_rv(view, deleting=True), frozenset({LLV}))).deleted == [LLV]


# Finalizers.


def held(view: VolumeView, *names_: str) -> VolumeView:
    return spoilt(view, 3, with_metadata(finalizers=names_))


ALL = (finalizers.CONTROLLER, finalizers.AGENT, finalizers.QUORUM, finalizers.PEERS)


def released(view: VolumeView) -> list[str]:
    return [finalizer for found, finalizer in told(decided(view)).released if found == name(3)]


HIDDEN = with_member(spoilt(picture(FOUR), 3, deleting), 3, hidden=True)


@pytest.mark.parametrize(
    ("view", "finalizer"),
    [
        (spoilt(picture(FOUR), 3, deleting), []),
        (HIDDEN, ["quorum"]),
        (spoilt(HIDDEN, 0, with_status(datamesh_revision=REVISION - 1)), []),
        (with_member(picture(FOUR, stale=(0,)), 3, hidden=True), []),
        (with_member(spoilt(HIDDEN, 0, with_status(datamesh_revision=REVISION - 1)), 0, excused=True), ["quorum"]),
        (leaver(), ["quorum"]),
        (with_rv(spoilt(picture(FOUR), 3, deleting), deleting=True), ["quorum"]),
        (changed(spoilt(picture(FOUR), 3, deleting), rv=None), ["quorum"]),
    ],
    ids=["shown", "hidden", "one unconfirmed", "alive", "one excused", "left", "the volume goes", "no volume"],
)
def test_quorum_is_released_when_the_rest_have_confirmed_that_it_does_not_count(
    view: VolumeView, finalizer: list[str]
) -> None:
    assert released(held(view, *ALL)) == finalizer


@pytest.mark.parametrize(
    ("view", "finalizer"),
    [
        (HIDDEN, []),
        (forgetting(leaver()), []),
        (leaver(), ["peers"]),
        (with_rv(spoilt(picture(FOUR), 3, deleting), deleting=True), ["peers"]),
    ],
    ids=["a member", "being forgotten", "forgotten", "the volume goes"],
)
def test_peers_is_released_when_the_rest_have_forgotten_it(view: VolumeView, finalizer: list[str]) -> None:
    assert released(held(view, finalizers.CONTROLLER, finalizers.AGENT, finalizers.PEERS)) == finalizer


@pytest.mark.parametrize(
    ("view", "finalizer"),
    [
        (leaver(), []),
        (spoilt(leaver(), 3, lambda each: changed(each, ledgers=())), []),
        (without_disk(leaver()), ["controller"]),
        (spoilt(without_disk(leaver()), 3, lambda each: changed(each, ledgers=(ledger(3, NEEDED, NEEDED),))), []),
        (with_rv(spoilt(picture(FOUR), 3, deleting), deleting=True), ["controller"]),
        (with_member(with_rv(spoilt(picture(FOUR), 3, deleting), deleting=True), 0, attached=True), []),
        (had_no_data(without_membership(leaver(), 0, 1, 2, datamesh_revision=0)), ["controller"]),
        (changed(leaver(), rv=None), []),
        (changed(without_disk(leaver()), rv=None), ["controller"]),
    ],
    ids=[
        "has a disk",
        "has a disk and no space",
        "done",
        "space not given back",
        "the volume goes",
        "in use",
        "never formed",
        "no volume",
        "no volume, no copy",
    ],
)
def test_controller_is_released_when_disk_and_space_are_gone_or_the_volume_is(
    view: VolumeView, finalizer: list[str]
) -> None:
    assert released(held(view, finalizers.CONTROLLER, finalizers.AGENT)) == finalizer


def test_finalizers_go_one_a_pass_and_the_agents_is_not_ours() -> None:
    view, seen = without_disk(leaver()), []
    for _ in range(6):
        found = released(view)
        seen += found
        left = tuple(
            each for each in view.replicas[3].replica.metadata.finalizers if each.rpartition("/")[2] not in found
        )
        view = held(view, *left)
    assert seen == ["quorum", "peers", "controller"]
    assert view.replicas[3].replica.metadata.finalizers == (finalizers.AGENT,)


def test_only_where_there_is_no_core_node_we_let_go_for_the_agent() -> None:
    alive = held(without_disk(leaver()), finalizers.AGENT)
    assert released(alive) == []
    gone = held(without_disk(leaver(picture(FOUR, gone=(3,)))), finalizers.AGENT)
    (write,) = [each for each in decided(gone).steps if isinstance(each, ReleaseFinalizer)]
    assert write.finalizer == finalizers.AGENT
    assert write.after
    unplaced = spoilt(alive, 3, with_spec(node_name=None, lvm_volume_group_name=None))
    assert released(spoilt(unplaced, 3, lambda each: changed(each, node=None))) == ["agent"]


def test_a_silent_node_holds_a_deletion() -> None:
    view = held(leaver(picture(FOUR, stale=(3,))), *ALL[:2])
    ready = find(written(view, 3).status.conditions, Ready)
    assert ready is not None
    assert (ready.reason, "n3 is down" in ready.message) == ("NodeDown", True)


def test_an_object_with_a_foreign_finalizer_is_not_treated_as_gone() -> None:
    view = held(leaver(), *ALL, "example.com/mine")
    plan = told(decided(view))
    assert (plan.deleted, plan.released) == ([], [])
    status = written(view, 3).status
    assert status.datamesh_pending_transition is None
    assert "example.com/mine" in status.message


def test_a_volume_with_a_foreign_finalizer_is_not_treated_as_gone() -> None:
    view = with_rv(spoilt(picture(FOUR), 3, deleting), deleting=True)
    assert view.rv is not None
    kept = replace(view.rv, metadata=replace(view.rv.metadata, finalizers=("example.com/mine",)))
    plan = told(decided(changed(view, rv=kept)))
    assert (plan.deleted, plan.released) == ([], [])


@pytest.mark.parametrize(
    ("finalizers_", "added"),
    [
        ((), "controller"),
        ((finalizers.CONTROLLER,), "agent"),
        ((finalizers.CONTROLLER, finalizers.AGENT), "quorum"),
        ((finalizers.CONTROLLER, finalizers.AGENT, finalizers.QUORUM), "peers"),
        (ALL, None),
    ],
)
def test_a_member_has_all_four(finalizers_: tuple[str, ...], added: str | None) -> None:
    """M33."""
    found = [
        finalizer for found, finalizer in told(decided(held(picture(FOUR), *finalizers_))).added if found == name(3)
    ]
    assert found == ([added] if added else [])


def test_one_that_is_no_member_needs_only_its_first_two() -> None:
    view = held(without_membership(picture(FOUR), 3), finalizers.CONTROLLER, finalizers.AGENT)
    assert told(decided(view)).added == []


def test_nothing_is_made_for_a_replica_before_its_finalizers_are_seen() -> None:
    bare = spoilt(held(without_membership(picture(FOUR), 3)), 3, lambda each: changed(each, volumes=()))
    plan = decided(bare)
    assert told(plan).created == []
    assert [write.finalizer for write in plan.steps if isinstance(write, AddFinalizer)] == [finalizers.CONTROLLER]


# Owners.


def test_a_replica_belongs_to_its_volume() -> None:
    """000 rvr-owner-reference: as SetControllerReference does it."""
    (owner,) = _owners(picture())
    assert (owner.kind, owner.name, owner.uid) == ("ReplicatedVolume", "pvc-1", "uid-rv")
    assert owner.controller
    assert owner.block_owner_deletion


def test_an_owner_of_another_life_is_replaced() -> None:
    (owner,) = _owners(picture())
    stale = spoilt(picture(), 0, with_metadata(owner_references=(replace(owner, uid="another"),)))
    assert _owners(stale) == (owner,)
    right = spoilt(picture(), 0, with_metadata(owner_references=(owner,)))
    assert name(0) not in told(decided(right)).patched


def _owners(view: VolumeView) -> tuple[Any, ...]:
    (write,) = [each for each in decided(view).steps if each.target.name == name(0) and told_patch(each)]
    return write.intended.metadata.owner_references  # type: ignore[union-attr]


def told_patch(write: Any) -> bool:
    return type(write).__name__ == "Patch"


def test_a_tie_breaker_that_leaves_is_missed_by_nobody() -> None:
    """M25: only diskful members vote; what it has is its finalizers."""
    view = picture((D, D, TB, A), Replication.AVAILABILITY)
    view = without_membership(spoilt(view, 2, deleting), 2)
    view = spoilt(view, 0, with_device(disk_state="Outdated"))
    assert hindrance(view, view.replicas[2]) is None
