"""Which changes of a replica its logical volume is looked at for."""

from __future__ import annotations

from typing import Any

import pytest

from quorate.agent.lvm.logical_volumes import _concerns_its_disk, _of_replica
from quorate.api.names import logical_volume
from quorate.api.quantity import Quantity
from quorate.api.storage.drbd import DrbdActual, DrbdConfig, ReplicaDrbd
from quorate.api.storage.rvr import ReplicatedVolumeReplicaStatus
from quorate.api.struct import replace
from tests.agent.lvm.rig import replica

NEW = replica()
DISK = logical_volume(NEW.name, "disk-1", "")


def status(name: str = "", **drbd: Any) -> ReplicatedVolumeReplicaStatus:
    return ReplicatedVolumeReplicaStatus(lvm_logical_volume_name=name, drbd=ReplicaDrbd(**drbd))


@pytest.mark.parametrize("told", [status(DISK), status(DISK, actual=DrbdActual(metadata_created=DISK))])
def test_that_it_names_the_disk_that_is_its_own_anyway_is_no_news(told: ReplicatedVolumeReplicaStatus) -> None:
    after = replace(NEW, status=told)
    assert _of_replica(NEW) == _of_replica(after)
    assert not _concerns_its_disk(NEW, after)


@pytest.mark.parametrize(
    "told",
    [
        status("pvc-1-0-another"),
        status(actual=DrbdActual(metadata_created="pvc-1-0-another")),
        status(actual=DrbdActual(backing_size=Quantity("1Gi"))),
        status(config=DrbdConfig(datamesh_revision=1)),
    ],
)
def test_another_disk_and_what_is_done_with_it_are_news(told: ReplicatedVolumeReplicaStatus) -> None:
    assert _concerns_its_disk(replace(NEW, status=status()), replace(NEW, status=told))
    assert _concerns_its_disk(replace(NEW, status=told), replace(NEW, status=status()))
