"""What a formation has made is thrown away only if every disk is shown, now, to have nothing on it (decision 0010)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from dataclasses import replace as changed
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.api.storage import LVMLogicalVolume
from quorate.api.storage.configuration import Replication
from quorate.api.storage.datamesh import FormationPhase
from quorate.api.storage.drbd import CommandError, DiskState, ReplicaType
from quorate.api.storage.drbdrop import OperationPhase
from quorate.api.storage.llv import LogicalVolumePhase
from quorate.api.storage.rv import ReplicatedVolumeStatus
from quorate.api.struct import replace
from quorate.engine import Delete, Plan
from quorate.volumes.view import ReplicaView, VolumeView
from tests.volumes.volume.making import (
    NOW,
    C,
    asked,
    bootstrapping,
    connecting,
    decided,
    members_of,
    node_view,
    operation,
    phase_of,
    piece,
    preconfiguring,
    shown,
    waits,
    with_replica,
    written,
)

#: Longer than any phase may take.
LATE = 100_000.0
#: How long an agent may be silent: before that no answer counts, and after three times that it counts no more.
LEASE = 40.0
LEVELS = (Replication.CONSISTENCY, Replication.AVAILABILITY, C)
OTHERWISE = ("Diskless", "Attaching", "Detaching", "Failed", "Negotiating", "DUnknown")
MEMBERS_PHASES = (FormationPhase.ESTABLISH_CONNECTIVITY, FormationPhase.BOOTSTRAP_DATA)

Change = Callable[[ReplicaView], ReplicaView]


def late(phase: FormationPhase, replication: Replication = C) -> VolumeView:
    """A formation that took too long: nobody is in touch with anybody, and nobody has data."""
    if phase is FormationPhase.PRECONFIGURE:
        view = preconfiguring(replication, since=LATE)
        return with_replica(view, 0, lambda each: changed(each, volumes=(piece(0, phase=LogicalVolumePhase.PENDING),)))
    if phase is FormationPhase.ESTABLISH_CONNECTIVITY:
        view = connecting(replication, since=LATE)
    else:
        view = bootstrapping(replication, "Inconsistent", since=LATE)
    for number in range(len(view.replicas)):
        view = with_replica(view, number, seen(replication, link="Connecting", flow="Off"))
    return view


def told(**status: Any) -> Change:
    return lambda each: changed(each, replica=replace(each.replica, status=replace(each.replica.status, **status)))


def seen(replication: Replication = C, **more: Any) -> Change:
    def change(each: ReplicaView) -> ReplicaView:
        drbd = replace(each.replica.status.drbd, status=shown(each.id, members_of(replication), **more))
        return told(drbd=drbd)(each)

    return change


def synced(each: ReplicaView) -> ReplicaView:
    drbd = each.replica.status.drbd
    return told(drbd=replace(drbd, actual=replace(drbd.actual, initial_sync_completed=True)))(each)


def silent(each: ReplicaView) -> ReplicaView:
    return changed(each, node=node_view(each.id, fresh=False))


def gone(each: ReplicaView) -> ReplicaView:
    return changed(each, node=node_view(each.id, fresh=False, there=False))


def occupied(each: ReplicaView) -> ReplicaView:
    return changed(each, volumes=(piece(each.id, reason="LVExists"),))


def down(each: ReplicaView) -> ReplicaView:
    return told(drbd=replace(each.replica.status.drbd, status=None))(each)


def blind(each: ReplicaView) -> ReplicaView:
    drbd, error = each.replica.status.drbd, CommandError(command="drbdsetup status", exit_code=1, output="it hangs")
    return told(drbd=replace(drbd, errors=replace(drbd.errors, last_status_error=error)))(each)


def without_metadata(each: ReplicaView) -> ReplicaView:
    error = CommandError(command="drbdadm adjust", exit_code=0, output="none are there", reason="MetadataMissing")
    found = seen(disk="Diskless")(each)
    drbd = found.replica.status.drbd
    return told(drbd=replace(drbd, errors=replace(drbd.errors, last_metadata_error=error)))(found)


def restarts(plan: Plan) -> bool:
    return plan.transition is not None and phase_of(plan) is FormationPhase.RESTARTING


def with_operation_failed(view: VolumeView) -> VolumeView:
    """In the last phase: the operation that gives the first data did not work."""
    if view.formation is None or view.formation.phase is not FormationPhase.BOOTSTRAP_DATA:
        return view
    return changed(view, operation=operation(view, OperationPhase.FAILED))


@pytest.mark.parametrize("phase", [FormationPhase.PRECONFIGURE, *MEMBERS_PHASES])
@pytest.mark.parametrize("age", [None, LEASE * 3 + 1, LATE, -1.0])
def test_before_anything_is_thrown_away_everybody_is_asked(phase: FormationPhase, age: float | None) -> None:
    """By one more revision, which is the same but for its number; whoever is no member yet has none."""
    view = with_operation_failed(asked(late(phase), age))
    plan = decided(view)
    assert plan.transition is not None
    found, before = written(plan), view.volume.status
    assert phase_of(plan) is phase
    assert found.datamesh_transitions[0].formation is not None
    assert found.datamesh_transitions[0].formation.asked_at == NOW
    assert found.datamesh == before.datamesh
    assert found.datamesh_revision == before.datamesh_revision + (phase in MEMBERS_PHASES)


@pytest.mark.parametrize("phase", [FormationPhase.PRECONFIGURE, *MEMBERS_PHASES])
@pytest.mark.parametrize(("age", "counts"), [(0.0, False), (LEASE - 1, False), (LEASE, True), (LEASE * 3, True)])
def test_an_answer_counts_once_every_silent_agent_would_be_known(
    phase: FormationPhase, age: float, counts: bool
) -> None:
    plan = decided(with_operation_failed(asked(late(phase), age)))
    assert restarts(plan) is counts
    if not counts:
        assert plan.requeue_after == pytest.approx(LEASE - age)


@pytest.mark.parametrize("phase", MEMBERS_PHASES)
@pytest.mark.parametrize(
    ("change", "reason", "words"),
    [
        (synced, "ReplicasHoldData", "[1] hold data"),
        (occupied, "ReplicasHoldData", "[1] hold data"),
        *(
            (seen(disk=disk, link="Connecting"), "ReplicasHoldData", "[1] hold data")
            for disk in ("Consistent", "Outdated")
        ),
        *((seen(disk=disk, link="Connecting"), "DisksNotKnownEmpty", f"its disk is {disk}") for disk in OTHERWISE),
        (silent, "DisksNotKnownEmpty", "v-1: n1 is not heard"),
        (told(datamesh_revision=1), "DisksNotKnownEmpty", "n1 does not show revision 2"),
        (down, "DisksNotKnownEmpty", "its disk is DUnknown"),
        (blind, "DisksNotKnownEmpty", "it hangs"),
        (without_metadata, "DisksNotKnownEmpty", "its disk is Diskless; v-1: MetadataMissing: none are there"),
    ],
)
def test_one_disk_that_is_not_known_to_be_empty_keeps_them_all(
    phase: FormationPhase, change: Change, reason: str, words: str
) -> None:
    plan = decided(with_operation_failed(asked(with_replica(late(phase), 1, change), LEASE)))
    assert plan.transition is None
    assert not [each for each in plan.writes if isinstance(each, Delete)]
    found, message = waits(plan)
    assert found == reason
    assert words in message


@pytest.mark.parametrize("phase", [FormationPhase.PRECONFIGURE, *MEMBERS_PHASES])
def test_a_machine_that_has_left_is_asked_for_nothing(phase: FormationPhase) -> None:
    """A person has deleted its Node object; nothing that is on it is thrown away by us."""
    assert restarts(decided(with_operation_failed(asked(with_replica(late(phase), 1, gone), LEASE))))


@pytest.mark.parametrize("phase", MEMBERS_PHASES)
@pytest.mark.parametrize(("change", "restarted"), [(down, True), (told(datamesh_revision=1), True), (silent, False)])
def test_a_disk_that_a_drives_procedure_keeps_is_asked_for_nothing(
    phase: FormationPhase, change: Change, restarted: bool
) -> None:
    """A drive that failed cannot be read, so it is never shown to be empty; it goes when a person says so."""
    view = changed(with_replica(late(phase), 1, change), kept=frozenset({piece(1).name}))
    assert restarts(decided(with_operation_failed(asked(view, LEASE)))) is restarted


def test_what_a_peer_sees_of_a_silent_member_counts() -> None:
    view = asked(with_replica(late(FormationPhase.ESTABLISH_CONNECTIVITY), 1, silent), LEASE)
    view = with_replica(view, 0, seen(peer_disk="UpToDate"))
    assert waits(decided(view))[0] == "ReplicasHoldData"


def test_a_logical_volume_without_its_replica_is_not_known_to_be_empty() -> None:
    """Its replica's object was lost: nobody can be asked what is on it."""
    view = asked(late(FormationPhase.ESTABLISH_CONNECTIVITY), LEASE)
    left = tuple(each for each in view.replicas if each.id != 1)
    plan = decided(changed(view, replicas=left))
    assert waits(plan)[0] == "DisksNotKnownEmpty"
    assert "its replica is missing" in waits(plan)[1]


def test_what_a_person_can_do_is_said() -> None:
    plan = decided(with_replica(late(FormationPhase.ESTABLISH_CONNECTIVITY), 1, silent))
    said = {each.type: each.message for each in written(plan).conditions}["Ready"]
    assert "If v never held data, delete it and make it anew" in said
    assert "delete the Node object of a machine that does not come back" in said


@pytest.mark.parametrize("phase", MEMBERS_PHASES)
@pytest.mark.parametrize("replication", LEVELS)
def test_a_volume_that_has_data_and_quorum_lives(phase: FormationPhase, replication: Replication) -> None:
    """It was formed before, and the store is older than that. The last member is away: that is repaired in life."""
    view, members = late(phase, replication), members_of(replication)
    for each in members[:-1]:
        view = with_replica(view, each.node_id, seen(replication, disk="UpToDate", peer_disk="UpToDate"))
    view = with_replica(view, members[-1].node_id, silent)
    plan = decided(with_operation_failed(view))
    found = written(plan)
    assert found.datamesh_transitions == ()
    assert found.datamesh == view.volume.status.datamesh
    assert [event.reason for event in plan.events] == ["FoundFormed"]


def test_one_that_has_data_and_no_quorum_waits_for_the_others() -> None:
    def alone(each: ReplicaView) -> ReplicaView:
        found = shown(each.id, members_of(C), disk="UpToDate", link="Connecting")
        without = replace(found, devices=(replace(found.devices[0], quorum=False),))
        return told(drbd=replace(each.replica.status.drbd, status=without))(each)

    view = late(FormationPhase.ESTABLISH_CONNECTIVITY)
    for number in (1, 2):
        view = with_replica(view, number, silent)
    assert waits(decided(with_replica(view, 0, alone)))[0] == "ReplicasHoldData"


# Whatever a store says that was restored from a copy.


@dataclass(frozen=True)
class Told:
    """What there is to read of one replica."""

    disk: str
    peer_disk: str
    revision: int
    link: str
    fresh: bool
    there: bool
    reported: bool
    synced: bool
    occupied: bool

    def of(self, each: ReplicaView, replication: Replication) -> ReplicaView:
        link = "Connected" if self.link == "Connected" else "Connecting"
        found = (
            seen(replication, disk=self.disk, peer_disk=self.peer_disk, link=link)(each)
            if self.reported
            else down(each)
        )
        found = told(datamesh_revision=self.revision)(found)
        found = changed(found, node=node_view(each.id, fresh=self.fresh, there=self.there))
        found = synced(found) if self.synced else found
        return occupied(found) if self.occupied and each.diskful else found


mostly_true = st.sampled_from([True, True, True, True, False])
mostly_false = st.sampled_from([False, False, False, False, True])
replicas_told = st.builds(
    Told,
    disk=st.sampled_from(["Inconsistent"] * 12 + list(DiskState)),
    peer_disk=st.sampled_from(["Inconsistent"] * 6 + list(DiskState)),
    revision=st.sampled_from([2, 2, 2, 2, 1, 3]),
    link=st.sampled_from(["Connecting", "Connected"]),
    fresh=mostly_true,
    there=mostly_true,
    reported=mostly_true,
    synced=mostly_false,
    occupied=mostly_false,
)


@given(
    phase=st.sampled_from(MEMBERS_PHASES),
    replication=st.sampled_from(LEVELS),
    said=st.lists(replicas_told, min_size=3, max_size=3),
    age=st.one_of(st.none(), st.floats(-10, 200)),
)
def test_nothing_is_thrown_away_unless_everybody_has_answered_that_it_is_empty(
    phase: FormationPhase, replication: Replication, said: list[Told], age: float | None
) -> None:
    view = late(phase, replication)
    for number, each in enumerate(said[: len(view.replicas)]):
        view = with_replica(view, number, lambda replica, each=each: each.of(replica, replication))
    plan = decided(with_operation_failed(asked(view, age)))
    assert not [each for each in plan.writes if isinstance(each, Delete) and isinstance(each.obj, LVMLogicalVolume)]
    if not restarts(plan):
        return
    told_by = zip(members_of(replication), said, strict=False)
    diskful = [each for member, each in told_by if member.type is ReplicaType.DISKFUL]
    assert not any(each.synced or each.occupied for each in diskful)
    # Those on machines that have left the cluster have nothing that is ours: there is nobody to ask.
    ours = [each for each in diskful if each.fresh or each.there]
    if ours:
        assert age is not None
        assert LEASE <= age <= 3 * LEASE
    for each in ours:
        assert each.fresh
        assert each.reported
        assert each.revision >= 2
        assert each.disk == "Inconsistent"


def answered(view: VolumeView, status: ReplicatedVolumeStatus) -> VolumeView:
    """Everybody shows the revision of this status, and nothing else has changed."""
    view = view.with_status(status)
    for number in range(len(view.replicas)):
        view = with_replica(view, number, told(datamesh_revision=status.datamesh_revision))
    return view


@pytest.mark.parametrize("replication", LEVELS)
def test_a_formation_whose_empty_members_all_answer_starts_again(replication: Replication) -> None:
    view = late(FormationPhase.ESTABLISH_CONNECTIVITY, replication)
    status = written(decided(view))
    later = NOW + timedelta(seconds=LEASE)
    assert waits(decided(view.with_status(status), later))[0] == "DisksNotKnownEmpty", "nobody has answered"
    assert restarts(decided(answered(view, status), later))
