"""The whole pass: one status write for each replica, total over any report, and at rest once it is written."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace as changed
from datetime import timedelta
from random import Random
from time import process_time

from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.api.conditions import rvr
from quorate.api.conditions.catalogue import declared_in
from quorate.api.meta import Bytes
from quorate.api.storage.datamesh import Formation, Transition, TransitionGroup, TransitionType
from quorate.api.storage.drbd import (
    AlgorithmError,
    CommandError,
    Connection,
    ConnectionState,
    Device,
    DiskState,
    DrbdActual,
    DrbdConfig,
    DrbdErrors,
    DrbdStatus,
    PeerDevice,
    ReplicaDrbd,
    ReplicationState,
    ReplicaType,
    Role,
)
from quorate.api.storage.llv import LogicalVolumePhase
from quorate.api.struct import replace
from quorate.engine import NOTHING, PatchStatus
from quorate.volumes.replica.controller import decide
from quorate.volumes.replica.snapshot import Snapshot
from quorate.volumes.view import ReplicaView, VolumeView
from tests.volumes.replica.making import (
    LAYOUTS,
    NEEDED,
    NOW,
    address,
    after,
    decided,
    deleting,
    ledger,
    logical_volume,
    node,
    picture,
    settled,
    spoilt,
    told,
    with_device,
    with_drbd,
    with_metadata,
    with_rv,
    with_spec,
    without_membership,
)

WORDS = st.sampled_from(["", "Strange"])


def one_of(states: Iterable[str]) -> st.SearchStrategy[str]:
    return st.one_of(st.sampled_from(sorted(states)), WORDS)


DEVICES = st.builds(
    Device,
    disk_state=one_of(DiskState),
    quorum=st.booleans(),
    open=st.booleans(),
    size=st.integers(0, 2**41),
    minor=st.integers(0, 3),
)
LINKS = st.builds(
    Connection,
    peer_node_id=st.integers(0, 7),
    connection_state=one_of(ConnectionState),
    peer_role=one_of(Role),
    peer_devices=st.lists(
        st.builds(
            PeerDevice,
            replication_state=one_of(ReplicationState),
            peer_disk_state=one_of(DiskState),
            percent_in_sync=st.integers(0, 100),
        ),
        max_size=2,
    ).map(tuple),
)
REPORTS = st.builds(
    DrbdStatus,
    role=one_of(Role),
    node_id=st.integers(0, 7),
    suspended=st.booleans(),
    suspended_user=st.booleans(),
    suspended_no_data=st.booleans(),
    suspended_fencing=st.booleans(),
    suspended_quorum=st.booleans(),
    devices=st.lists(DEVICES, max_size=2).map(tuple),
    connections=st.lists(LINKS, max_size=3, unique_by=lambda link: link.peer_node_id).map(tuple),
)
ERRORS = st.builds(
    CommandError,
    command=st.sampled_from(["", "drbdadm up pvc-1", "drbdadm create-md pvc-1"]),
    exit_code=st.integers(-1, 20),
    output=st.sampled_from(["", "no"]),
    reason=st.sampled_from(["", "MetadataMissing", "NoInternalIP", "NoFreePortAvailable"]),
)
DRBD = st.builds(
    ReplicaDrbd,
    status=st.none() | REPORTS,
    config=st.builds(
        DrbdConfig,
        datamesh_revision=st.sampled_from([0, 3, 7, 9]),
        address=st.none() | st.just(address(0)),
        down=st.booleans(),
    ),
    actual=st.builds(
        DrbdActual, initial_sync_completed=st.booleans(), disk=st.sampled_from(["", "/dev/x"]), forgotten=st.just((3,))
    ),
    errors=st.builds(
        DrbdErrors,
        last_config_error=st.none() | ERRORS,
        last_metadata_error=st.none() | ERRORS,
        last_adjustment_error=st.none() | ERRORS,
        last_promotion_error=st.none() | ERRORS,
        shared_secret_alg_selection_error=st.none() | st.just(AlgorithmError(unsupported_alg="sha1")),
    ),
)


@st.composite
def anything(draw: st.DrawFn) -> VolumeView:
    """A volume in which one replica can be in any state at all."""
    replication = draw(st.sampled_from(sorted(LAYOUTS)))
    view = picture(LAYOUTS[replication], replication)
    number = draw(st.integers(0, len(view.replicas) - 1))
    view = spoilt(view, number, with_drbd(**_fields(draw(DRBD))))
    view = spoilt(view, number, with_spec(type=draw(st.sampled_from(sorted(ReplicaType)))))
    volumes = draw(st.sampled_from([(), *(((found,)) for found in PIECES)]))
    here = node(number, draw(st.booleans()), draw(st.booleans()))
    placed = draw(st.booleans())

    def change(found: ReplicaView) -> ReplicaView:
        return changed(found, volumes=volumes if number == 0 else found.volumes, node=here if placed else None)

    view = spoilt(view, number, change)
    if not placed:
        view = spoilt(view, number, with_spec(node_name=None, lvm_volume_group_name=None))
    if draw(st.booleans()):
        view = without_membership(view, number)
    if draw(st.booleans()):
        view = spoilt(view, number, deleting)
    if draw(st.booleans()):
        view = spoilt(view, number, with_metadata(finalizers=draw(st.sampled_from([(), ("example.com/mine",)]))))
    fate = draw(st.sampled_from(["lives", "goes", "gone", "unformed", "no pool"]))
    if fate == "goes":
        view = with_rv(view, deleting=True)
    elif fate == "gone":
        view = changed(view, rv=None)
    elif fate == "unformed":
        view = without_membership(view, *range(len(view.replicas)), datamesh_revision=0, configuration=None)
    elif fate == "no pool":
        view = changed(view, rsp=None)
    return view


PIECES = tuple(
    logical_volume(0, NEEDED, phase=phase, **({} if has_size else {"actual_size": None}))
    for phase in (None, *LogicalVolumePhase)
    for has_size in (True, False)
)
CONDITIONS = {condition.__name__ for condition in declared_in(rvr)}


def _fields(drbd: ReplicaDrbd) -> dict[str, object]:
    return {"status": drbd.status, "config": drbd.config, "actual": drbd.actual, "errors": drbd.errors}


@given(anything())
@settings(max_examples=300)
def test_any_state_gives_exactly_one_verdict_for_each_condition(view: VolumeView) -> None:
    seen = after(view)
    for found in seen.replicas:
        if written_about(view, found.replica.name):
            types = [condition.type for condition in found.replica.status.conditions]
            assert len(types) == len(set(types))
            assert CONDITIONS - {"VolumeAccessReady"} <= set(types) <= CONDITIONS


@given(anything())
@settings(max_examples=300)
def test_a_second_pass_reports_nothing_new(view: VolumeView) -> None:
    seen = after(view)
    again = decide(Snapshot(seen), NOW + timedelta(days=1), Random(0))
    assert [write for write in again.steps if isinstance(write, PatchStatus)] == []


def written_about(view: VolumeView, name: str) -> bool:
    return name in told(decided(view)).reported


def test_a_healthy_volume_at_rest_costs_no_write() -> None:
    for replication, layout in LAYOUTS.items():
        view = settled(picture(layout, replication))
        assert decide(Snapshot(view), NOW + timedelta(days=1), Random(0)) is NOTHING


def test_each_replica_is_written_once() -> None:
    plan = told(decided(picture()))
    assert sorted(plan.reported) == ["pvc-1-0", "pvc-1-1", "pvc-1-2"]


def test_a_pass_without_news_takes_microseconds() -> None:
    """A bound with much room: it is about 0.4 ms for the three replicas of a volume."""
    snapshot = Snapshot(settled(picture()))
    begun = process_time()
    for _ in range(100):
        decide(snapshot, NOW, Random(0))
    assert (process_time() - begun) / 100 < 0.005


def test_counters_alone_are_no_news() -> None:
    view = settled(picture())
    busy = spoilt(view, 0, lambda each: with_drbd(status=_written(each))(each))
    assert decided(busy) is NOTHING


def _written(found: ReplicaView) -> DrbdStatus:
    report = found.replica.status.drbd.status
    assert report is not None
    return replace(report, devices=(replace(report.devices[0], written=10**9, read=5),))


def test_people_are_told_when_a_replica_stops_being_ready_and_when_it_is_again() -> None:
    view = settled(picture())
    blind = spoilt(view, 0, with_drbd(errors=DrbdErrors(last_status_error=CommandError(command="drbdsetup status"))))
    (event,) = decided(blind).events
    assert (event.reason, event.warning) == ("AgentNotReady", True)
    outdated = spoilt(view, 0, with_device(disk_state=DiskState.OUTDATED))
    (event,) = decided(outdated).events
    assert (event.reason, event.warning) == ("OutOfSync", True)
    back = settled(outdated)
    (event,) = decided(spoilt(back, 0, with_device(disk_state=DiskState.UP_TO_DATE))).events
    assert (event.reason, event.warning) == ("Ready", False)


def test_that_an_agent_is_silent_or_speaks_again_is_for_its_node_to_tell() -> None:
    view = settled(picture())
    silent = spoilt(view, 0, lambda each: changed(each, node=node(0, fresh=False)))
    assert decided(silent).steps
    assert decided(silent).events == ()
    back = spoilt(settled(silent), 0, lambda each: changed(each, node=node(0)))
    assert decided(back).steps
    assert decided(back).events == ()


def test_that_a_step_is_being_applied_is_no_event() -> None:
    view = settled(picture())
    assert view.rv is not None
    status = view.rv.status
    forgetting = replace(status.datamesh, forget=(7,))
    told_to_forget = with_rv(view, datamesh=forgetting, datamesh_revision=status.datamesh_revision + 1)
    assert told(decided(told_to_forget)).reported
    assert decided(told_to_forget).events == ()


def forming(view: VolumeView, began: timedelta) -> VolumeView:
    started = NOW - began
    transition = Transition(
        type=TransitionType.FORMATION,
        group=TransitionGroup.FORMATION,
        started_at=started,
        formation=Formation(phase_started_at=started),
    )
    return with_rv(view, datamesh_transitions=(transition,))


def test_while_a_phase_of_formation_is_young_only_what_somebody_acts_on_is_written() -> None:
    joining = without_membership(picture(), 0, 1, 2)
    at_rest = after(joining)
    word = spoilt(at_rest, 0, with_metadata(generation=2))
    assert told(decided(word)).reported == ["pvc-1-0"]
    young = decided(forming(word, timedelta(seconds=1)))
    assert (told(young).reported, young.requeue_after) == ([], 2.0)
    assert told(decided(forming(word, timedelta(seconds=4)))).reported == ["pvc-1-0"]
    # A request to join, and a config of a new revision, are acted on.
    assert len(told(decided(forming(joining, timedelta(seconds=1)))).reported) == 3
    assert len(told(decided(forming(picture(), timedelta(seconds=1)))).reported) == 3


def test_two_replicas_that_have_an_entry_in_one_ledger_give_it_back_one_after_the_other() -> None:
    """A plan writes an object once."""
    view = picture()
    both = ledger(0, NEEDED, NEEDED)
    both = replace(both, spec=replace(both.spec, replicas={"pvc-1-0": Bytes(NEEDED), "pvc-1-1": Bytes(NEEDED)}))
    for number in (0, 1):
        view = spoilt(view, number, deleting)
        view = spoilt(view, number, lambda each: changed(each, volumes=(), ledgers=(both,)))
    plan = told(decided(with_rv(view, deleting=True)))
    assert plan.patched.count("u0") == 1
