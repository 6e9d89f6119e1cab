from __future__ import annotations

import importlib
import pkgutil
import re
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.api import conditions
from quorate.api.cluster_config import ClusterConfig, ClusterConfigSpec
from quorate.api.conditions import catalogue, maintenance, rsc, rsp, rv, rva, rvr
from quorate.api.conditions.declaration import ConditionType, ReasonCodes, Verdict
from quorate.api.meta import Condition, ConditionStatus, ObjectMeta

NOW = datetime(2026, 11, 16, 1, 2, 3, 456789, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)


def every() -> list[type[ReasonCodes]]:
    return [codes for _, module in catalogue.CATALOGUE for codes in catalogue.declared_in(module)]


# condition -> the codes that the seeds and the designs give for it
NAMED = [
    (rv.PublishSucceeded, "UnableToProvideLocalVolumeAccess"),
    (rv.SharedSecretAlgorithmSelected, "UnableToSelectSharedSecretAlgorithm"),
    (rv.ConfigurationReady, "Ready WaitingForStorageClass ConfigurationRolloutInProgress StaleConfiguration"),
    (rv.DiskAllocation, "Allocated Pending Rejected"),
    (rvr.Scheduled, "ReplicaScheduled WaitingForAnotherReplica NoAvailableNodes TopologyConstraintsFailed NoSpace"),
    (rvr.AddressConfigured, "NoFreePortAvailable NoInternalIP"),
    (rvr.BackingVolumeReady, "Provisioning ProvisioningFailed Resizing NotApplicable LVExists"),
    (rvr.InitialSync, "InitialSyncRequiredButNotReady SafeForInitialSync InitialDeviceReadinessReached"),
    (rvr.DevicesReady, "DeviceIsNotReady DeviceIsReady"),
    (
        rvr.ConfigurationAdjusted,
        (
            "ConfigurationFailed MetadataCheckFailed MetadataCreationFailed StatusCheckFailed ResourceUpFailed"
            " ConfigurationAdjustFailed ConfigurationAdjustmentPausedUntilInitialSync PromotionDemotionFailed"
            " ConfigurationAdjustmentSucceeded MetadataMissing"
        ),
    ),
    (rvr.DRBDConfigured, "PendingDatameshJoin ApplyingConfiguration ConfigurationFailed"),
    (rvr.Quorum, "NoQuorumStatus QuorumStatus"),
    (rvr.InSync, "Diskless"),
    (
        rvr.DiskIOSuspended,
        (
            "DiskIONotSuspendedStatus DiskIOSuspendedUnknownReason DiskIOSuspendedByUser DiskIOSuspendedNoData"
            " DiskIOSuspendedFencing DiskIOSuspendedQuorum IOSuspendedBySnapshotter"
        ),
    ),
    (rvr.FullyConnected, "PartiallyConnected NotConnected SoleMember"),
    (rvr.Primary, "ResourceRoleIsPrimary ResourceRoleIsNotPrimary"),
    (rvr.VolumeAccessReady, "NotPublished IOSuspendedByQuorum IOSuspendedBySnapshotter"),
    (
        rvr.Ready,
        "WaitingForInitialSync DevicesAreNotReady AdjustmentFailed NoQuorum DiskIOSuspended Ready NodeDown",
    ),
    (rva.Attached, "Attached Attaching Detaching Detached Pending WaitingForReplica NodeNotEligible"),
    (rva.Attached, "ReplicatedVolumeTerminating VolumeAccessLocalityNotSatisfied"),
    (rva.Ready, "NotAttached ReplicaNotReady Terminating"),
    (rsc.Ready, "Ready InsufficientEligibleNodes InvalidConfiguration WaitingForStoragePool"),
    (rsp.Ready, "Ready LVMVolumeGroupNotFound InvalidLVMVolumeGroup InvalidNodeLabelSelector"),
]


@pytest.mark.parametrize(("condition", "codes"), NAMED, ids=lambda value: getattr(value, "__name__", ""))
def test_a_reason_that_the_seeds_name_is_declared(condition: type[ConditionType], codes: str) -> None:
    assert set(codes.split()) <= {reason.code for reason in condition.reasons()}


@pytest.mark.parametrize(
    ("module", "types"),
    [
        (
            rv,
            (
                "Ready QuorumConfigured SharedSecretAlgorithmSelected PublishSucceeded DiskfulReplicaCountReached"
                " AllReplicasReady ConfigurationReady DiskAllocation Resilient DualPrimaryLinkLost StatusLost"
            ),
        ),
        (
            rvr,
            (
                "Scheduled AddressConfigured BackingVolumeReady InitialSync DevicesReady ConfigurationAdjusted"
                " Configured DRBDConfigured Quorum InSync DiskIOSuspended FullyConnected Primary VolumeAccessReady"
                " DRBDMoving SatisfyEligibleNodes Ready"
            ),
        ),
        (rva, "Attached ReplicaReady Ready"),
    ],
)
def test_the_conditions_are_those_of_the_design(module: object, types: str) -> None:
    declared = {codes.__name__ for found, codes in _with_module() if found is module}
    assert declared == set(types.split())


def _with_module() -> list[tuple[object, type[ReasonCodes]]]:
    return [(module, codes) for _, module in catalogue.CATALOGUE for codes in catalogue.declared_in(module)]


def test_m19_unsupported_algorithm_is_among_the_constants() -> None:
    assert rvr.ConfigurationAdjusted.UNSUPPORTED_ALGORITHM.code == "UnsupportedAlgorithm"


def test_m32_the_attachment_that_waits_spells_its_reason_out() -> None:
    assert rva.Attached.WAITING_FOR_REPLICATED_VOLUME.code == "WaitingForReplicatedVolume"
    assert "WaitingForRV" not in {reason.code for reason in rva.Attached.reasons()}


@pytest.mark.parametrize("codes", every(), ids=lambda codes: f"{codes.__module__}.{codes.__name__}")
def test_every_reason_is_well_formed_and_explained(codes: type[ReasonCodes]) -> None:
    assert codes.__doc__
    reasons = codes.reasons()
    assert reasons
    assert len({reason.code for reason in reasons}) == len(reasons)
    for name, reason in vars(codes).items():
        if reason in reasons:
            assert re.fullmatch("[A-Z][A-Za-z0-9]*", reason.code)
            assert name.replace("_", "").lower() == reason.code.lower()
            assert reason.condition == codes.__name__
            assert reason.meaning.endswith(".")
            assert not reason.remedy or reason.remedy.endswith((".", ":"))
            assert "|" not in reason.meaning + reason.remedy, "it is a cell of a table"


def test_no_condition_is_missing_from_the_catalogue() -> None:
    for module in pkgutil.iter_modules(conditions.__path__, f"{conditions.__name__}."):
        importlib.import_module(module.name)
    declared: set[type[ReasonCodes]] = set()
    pending: list[type[ReasonCodes]] = [ReasonCodes]
    while pending:
        children = pending.pop().__subclasses__()
        declared.update(child for child in children if child.__module__.startswith("quorate."))
        pending += children
    assert declared - {ConditionType} == set(every())


def test_a_reason_gives_its_verdict_with_its_meaning_or_with_more() -> None:
    reason = rvr.Scheduled.NO_SPACE
    assert reason() == Verdict("Scheduled", ConditionStatus.FALSE, "NoSpace", reason.meaning)
    assert reason("n1 is full") == Verdict("Scheduled", ConditionStatus.FALSE, "NoSpace", "n1 is full")


def test_a_condition_can_be_shown_as_another_kinds() -> None:
    (ready,) = conditions.merge((), [rvr.Ready.NO_QUORUM("alone")], now=NOW)
    assert rva.ReplicaReady.mirror(ready) == Verdict("ReplicaReady", ConditionStatus.FALSE, "NoQuorum", "alone")


def test_merging_adds_in_order_and_keeps_what_belongs_to_others() -> None:
    foreign = Condition(type="Foreign", status=ConditionStatus.TRUE, reason="X", last_transition_time=NOW)
    merged = conditions.merge((foreign,), [rvr.Quorum.QUORUM_STATUS(), rvr.Primary.RESOURCE_ROLE_IS_PRIMARY()], now=NOW)
    assert [condition.type for condition in merged] == ["Foreign", "Quorum", "Primary"]
    assert merged[0] is foreign


def test_the_transition_time_moves_only_when_the_status_flips() -> None:
    first = conditions.merge((), [rvr.Scheduled.NO_SPACE()], now=NOW)
    other_reason = conditions.merge(first, [rvr.Scheduled.NO_AVAILABLE_NODES()], now=LATER)
    flipped = conditions.merge(other_reason, [rvr.Scheduled.REPLICA_SCHEDULED()], now=LATER)
    assert first[0].last_transition_time == NOW.replace(microsecond=0)
    assert other_reason[0].last_transition_time == first[0].last_transition_time
    assert other_reason[0].reason == "NoAvailableNodes"
    assert flipped[0].last_transition_time == LATER.replace(microsecond=0)


def test_a_newer_generation_is_a_change_and_moves_no_time() -> None:
    first = conditions.merge((), [rvr.Quorum.QUORUM_STATUS()], now=NOW, generation=1)
    second = conditions.merge(first, [rvr.Quorum.QUORUM_STATUS()], now=LATER, generation=2)
    assert second is not first
    assert second[0].observed_generation == 2
    assert second[0].last_transition_time == first[0].last_transition_time


def test_a_dropped_condition_goes_and_dropping_nothing_changes_nothing() -> None:
    first = conditions.merge((), [rvr.Quorum.QUORUM_STATUS(), rvr.Primary.RESOURCE_ROLE_IS_PRIMARY()], now=NOW)
    second = conditions.merge(first, [], now=LATER, drop=[rvr.Primary])
    assert [condition.type for condition in second] == ["Quorum"]
    assert conditions.merge(second, [], now=LATER, drop=[rvr.Primary]) is second


def test_a_message_is_cut_to_what_the_schema_allows() -> None:
    (condition,) = conditions.merge((), [rvr.Scheduled.NO_SPACE("x" * 100_000)], now=NOW)
    assert len(condition.message) == 32768


def test_an_object_is_told_its_verdicts_for_its_generation_and_told_again_it_is_the_same() -> None:
    metadata = ObjectMeta(name="c", generation=3)
    told = conditions.told(
        ClusterConfig(metadata=metadata, spec=ClusterConfigSpec()), [maintenance.Applied.APPLIED()], now=NOW
    )
    assert told.status.observed_generation == 3
    assert [(each.type, each.observed_generation) for each in told.status.conditions] == [("Applied", 3)]
    assert conditions.told(told, [maintenance.Applied.APPLIED()], now=LATER) == told


def test_finding_and_asking() -> None:
    found = conditions.merge((), [rvr.Quorum.QUORUM_STATUS(), rvr.Scheduled.NO_SPACE()], now=NOW)
    assert conditions.find(found, rvr.Quorum) is found[0]
    assert conditions.find(found, rvr.Ready) is None
    assert conditions.is_true(found, rvr.Quorum)
    assert not conditions.is_true(found, rvr.Scheduled)
    assert not conditions.is_true(found, rvr.Ready)


REASONS = [reason for codes in every() if issubclass(codes, ConditionType) for reason in codes.reasons()]
VERDICTS = st.lists(st.builds(lambda reason, text: reason(text), st.sampled_from(REASONS), st.text(max_size=5)))


@given(VERDICTS, VERDICTS)
def test_merging_the_same_verdicts_again_gives_the_very_same_tuple(first: list[Verdict], second: list[Verdict]) -> None:
    # The last word of each list is what a pass says.
    once = conditions.merge(conditions.merge((), first, now=NOW), second, now=NOW, generation=1)
    last_words = {verdict.type: verdict for verdict in second}
    assert conditions.merge(once, last_words.values(), now=LATER, generation=1) is once


@given(VERDICTS)
def test_there_is_one_condition_of_a_type_and_it_says_the_last_word(verdicts: list[Verdict]) -> None:
    merged = conditions.merge((), verdicts, now=NOW)
    last_words = {verdict.type: verdict for verdict in verdicts}
    assert len(merged) == len(last_words)
    for condition in merged:
        verdict = last_words[condition.type]
        said = (verdict.status, verdict.reason, verdict.message)
        assert (condition.status, condition.reason, condition.message) == said
