"""When a member may be promoted, and what a demotion waits for."""

from __future__ import annotations

from dataclasses import replace as changed

import pytest

from quorate.api.conditions.rvr import Ready
from quorate.api.meta import Condition, ConditionStatus
from quorate.api.storage.configuration import Replication
from quorate.api.storage.datamesh import Step, StepStatus, Transition, TransitionGroup, TransitionType
from quorate.api.storage.drbd import CommandError
from quorate.api.struct import replace
from quorate.volumes.attach.guards import may_forbid_two, not_primary_yet, still_primary, why_not
from quorate.volumes.attach.verdicts import publish_succeeded
from quorate.volumes.view import VolumeView
from tests.volumes.attach.making import ONE, THREE, TIE, TWO, attached, cut, of, transition, with_role, with_two_allowed
from tests.volumes.replica.making import (
    NOW,
    A,
    D,
    name,
    node,
    node_name,
    picture,
    spoilt,
    with_device,
    with_drbd,
    with_member,
    with_rv,
    with_status,
)


def why(view: VolumeView, number: int) -> str:
    wait = why_not(view, node_name(number))
    return wait.reason if wait is not None else ""


@pytest.mark.parametrize("replication", [ONE, TWO, TIE, THREE])
def test_a_healthy_copy_is_promoted(replication: Replication) -> None:
    assert why(of(replication, 0), 0) == ""


def test_quorum_at_the_member_decides_and_no_condition_does() -> None:
    """M23."""
    view = of(THREE, 0)
    condition = Condition(
        type=Ready.__name__, status=ConditionStatus.FALSE, reason="NoQuorum", last_transition_time=NOW
    )
    for number in range(3):
        view = spoilt(view, number, with_status(conditions=(condition,)))
    assert why(view, 0) == ""
    assert why(spoilt(view, 0, with_device(quorum=False)), 0) == "NoQuorum"
    assert why(spoilt(view, 1, with_device(quorum=False)), 0) == ""


def test_a_lost_node_elsewhere_forbids_nothing() -> None:
    """M23."""
    assert why(with_rv(picture(stale=(2,)), attach_requests=of(THREE, 0).rv.status.attach_requests), 0) == ""  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "changes", [{"hidden": True}, {"down": True}, {"excused": True}, {"returns_to": name(1)}], ids=str
)
def test_a_member_that_does_not_count_is_not_promoted(changes: dict[str, object]) -> None:
    assert why(with_member(of(THREE, 0), 0, **changes), 0) == "WaitingForReplica"


def test_a_silent_agent_or_a_resource_that_is_not_up_is_not_promoted() -> None:
    stale = with_rv(picture(stale=(0,)), attach_requests=of(THREE, 0).rv.status.attach_requests)  # type: ignore[union-attr]
    assert why(stale, 0) == "WaitingForReplica"
    assert why(spoilt(of(THREE, 0), 0, with_drbd(status=None)), 0) == "WaitingForReplica"


def test_a_tie_breaker_becomes_access_first_and_one_that_is_hidden_is_shown_first() -> None:
    """M27; never a hidden access replica beside a shown tie-breaker (diskless_own_quorum_majority)."""
    assert why(of(TIE, 2), 2) == "WaitingForReplica"
    hidden = of(TIE, 2, layout=(D, D, A))
    assert why(hidden, 2) == "WaitingForReplica"
    assert why(with_member(hidden, 2, hidden=False), 2) == ""


def test_in_a_layout_without_tie_breaker_a_hidden_access_replica_serves() -> None:
    assert why(of(THREE, 3, layout=(D, D, D, A)), 3) == ""


def test_a_node_without_a_replica_waits_for_one() -> None:
    assert why(of(THREE, 3), 3) == "WaitingForReplica"


def test_nobody_is_attached_to_a_volume_that_is_being_deleted() -> None:
    assert why(with_rv(of(THREE, 0), deleting=True), 0) == "ReplicatedVolumeTerminating"


def test_who_is_still_there_is_waited_for() -> None:
    leaving = attached(of(THREE, 1), 0)
    assert why(leaving, 1) == "WaitingForDetach"
    demoted = spoilt(with_member(of(THREE, 1), 0, attached=False), 0, with_role("Primary"))
    assert why(demoted, 1) == "WaitingForDetach"


def test_of_one_that_is_waited_for_it_is_said_that_its_agent_is_silent() -> None:
    leaving = attached(of(THREE, 1), 0)
    silent = spoilt(leaving, 0, lambda each: changed(each, node=node(0, fresh=False)))
    told = [wait.message for view in (leaving, silent) if (wait := why_not(view, node_name(1))) is not None]
    assert told == ["it is detached first on n0", "it is detached first on n0, whose agent is silent"]


def test_what_is_published_where_io_stands_says_so() -> None:
    serving = attached(of(THREE, 0), 0)
    assert serving.rv is not None
    spec = replace(serving.rv.spec, publish_on=(node_name(0),))
    serving = changed(serving, rv=replace(serving.rv, spec=spec))
    standing = spoilt(serving, 0, with_device(quorum=False))
    assert "I/O stands" not in publish_succeeded(serving).message
    verdict = publish_succeeded(standing)
    assert (verdict.reason, verdict.message) == ("Published", "I/O stands on n0: no quorum")


def test_a_second_primary_needs_leave_from_every_member() -> None:
    """000, rv-publish: allowTwoPrimaries, applied by every replica, then primary."""
    one = attached(of(THREE, 0, 1), 0)
    assert why(one, 1) == "WaitingForTwoPrimaries"
    assert why(with_two_allowed(one, 2), 1) == "WaitingForTwoPrimaries"
    assert why(with_two_allowed(one), 1) == ""


def test_a_second_primary_needs_every_link_and_no_resync() -> None:
    ready = with_two_allowed(attached(of(THREE, 0, 1), 0))
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert why(cut(ready, one, other), 1) == "NotConnected"
    assert why(spoilt(ready, 2, with_device(disk_state="Inconsistent")), 1) == "WaitingForSync"
    assert why(with_member(ready, 2, excused=True), 1) == "NotConnected"


def test_the_first_needs_no_links() -> None:
    assert why(cut(cut(of(THREE, 0), 0, 1), 1, 2), 0) == ""


def test_an_attachment_is_over_when_the_kernel_says_primary_or_nobody_asks() -> None:
    begun = with_member(of(THREE, 0), 0, attached=True)
    attach = transition(begun, TransitionType.ATTACH, 0)
    waiting = not_primary_yet(begun, attach)
    assert waiting is not None
    assert waiting.reason == "Publishing"
    assert not_primary_yet(attached(begun, 0), attach) is None
    assert not_primary_yet(with_rv(begun, attach_requests=()), attach) is None


def test_a_detachment_waits_while_the_device_is_open_and_says_by_whom() -> None:
    error = CommandError(
        command="drbdadm secondary", exit_code=11, output="held open\nby qemu (pid 7)", reason="HeldOpen"
    )
    view = spoilt(with_member(of(THREE), 0, attached=False), 0, with_role("Primary", open=True))
    detach = transition(view, TransitionType.DETACH, 0)
    errors = view.replicas[0].replica.status.drbd.errors
    for said, expected in ((None, "is held open"), (error, "qemu (pid 7)")):
        told = spoilt(view, 0, with_drbd(errors=replace(errors, last_promotion_error=said)))
        told = spoilt(told, 0, with_role("Primary", open=said is None))
        wait = still_primary(told, detach)
        assert wait is not None
        assert wait.reason == "DeviceInUse"
        assert expected in wait.message
    assert still_primary(spoilt(view, 0, with_role("Secondary")), detach) is None


def test_a_detachment_is_over_when_the_node_is_asked_for_again() -> None:
    view = spoilt(with_member(of(THREE, 0), 0, attached=False), 0, with_role("Primary", open=True))
    assert still_primary(view, transition(view, TransitionType.DETACH, 0)) is None


def test_two_are_forbidden_only_when_one_is_left() -> None:
    """adjust refuses with (164) while there are two."""
    two = attached(of(THREE, 0, 1), 0, 1)
    disable = transition(two, TransitionType.DISABLE_MULTIATTACH)
    assert may_forbid_two(two, disable) is not None
    assert may_forbid_two(attached(of(THREE, 0), 0), disable) is None


def test_one_that_is_on_its_way_out_still_counts_as_a_user() -> None:
    step = Step(name="Demote", status=StepStatus.ACTIVE, datamesh_revision=8)
    going = Transition(
        type=TransitionType.DETACH,
        group=TransitionGroup.ATTACHMENT,
        replica_name=name(0),  # type: ignore[arg-type]
        started_at=NOW,
        steps=(step,),
    )
    view = with_rv(of(THREE, 1), datamesh_transitions=(going,))
    assert why(view, 1) == "WaitingForDetach"
