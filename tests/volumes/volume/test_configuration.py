"""The copy of the class's promise: 002's ``ensureConditionConfigurationReady``, row by row."""

from __future__ import annotations

import pytest

from quorate.api.conditions.rv import ConfigurationReady
from quorate.api.storage import ReplicatedStorageClass
from quorate.api.storage.configuration import Replication
from quorate.api.storage.rv import ReplicatedVolumeStatus
from quorate.volumes.volume.configuration import configuration_ready, configured
from tests.volumes.volume.making import configuration, decided, picture, storage_class, volume, written

HAS_1 = ReplicatedVolumeStatus(configuration=configuration(), configuration_generation=1)


@pytest.mark.parametrize(
    ("rsc", "status", "reason"),
    [
        (None, ReplicatedVolumeStatus(), ConfigurationReady.WAITING_FOR_STORAGE_CLASS),
        (None, HAS_1, ConfigurationReady.WAITING_FOR_STORAGE_CLASS),
        (storage_class(configuration=None), ReplicatedVolumeStatus(), ConfigurationReady.WAITING_FOR_STORAGE_CLASS),
        (storage_class(), ReplicatedVolumeStatus(), ConfigurationReady.CONFIGURATION_ROLLOUT_IN_PROGRESS),
        (storage_class(), HAS_1, ConfigurationReady.READY),
        (storage_class(generation=2), HAS_1, ConfigurationReady.STALE_CONFIGURATION),
        # Another class, by chance at the same generation.
        (storage_class(Replication.NONE), HAS_1, ConfigurationReady.STALE_CONFIGURATION),
    ],
)
def test_configuration_ready_is_as_tabled(
    rsc: ReplicatedStorageClass | None, status: ReplicatedVolumeStatus, reason: object
) -> None:
    verdict = configuration_ready(status, rsc, "class")
    assert isinstance(reason, type(ConfigurationReady.READY))
    assert (verdict.status, verdict.reason) == (reason.status, reason.code)


def test_the_configuration_is_copied_once_and_then_kept_whatever_the_class_becomes() -> None:
    first = configured(ReplicatedVolumeStatus(), storage_class(Replication.AVAILABILITY))
    assert first.configuration == configuration(Replication.AVAILABILITY)
    assert configured(first, storage_class(Replication.NONE, generation=2)) is first


def test_a_volume_without_a_class_waits_and_makes_nothing() -> None:
    plan = decided(picture(volume(), rsc=None, rsp=None))
    assert [step.target.KIND.name for step in plan.steps] == ["ReplicatedVolume"] * 2
    assert written(plan).configuration is None
    assert written(plan).datamesh_transitions == ()
