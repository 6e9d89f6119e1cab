"""A drive that is gone for good: its disks are let go of, and its members still hear of the others."""

from __future__ import annotations

from dataclasses import replace as changed
from datetime import UTC, datetime, timedelta

import pytest

from quorate.agent.replica.lost_drive import gone_at
from quorate.api.baremetal import Drive
from quorate.api.baremetal.drive import DriveSpec, DriveStatus, OperationalStatus, Presence
from quorate.api.meta import NodeName, ObjectMeta
from tests.agent.replica.builders import (
    NOW,
    commands,
    config,
    decided,
    kernel,
    link,
    outcome,
    outcomes,
    peer,
    replica,
    view,
)

SECOND = timedelta(seconds=1)
AWAY_SINCE = datetime(2026, 1, 1, tzinfo=UTC)
GRACE = timedelta(minutes=5)


@pytest.mark.parametrize(
    ("lost_at", "shown", "peer_disk", "expected"),
    [
        (NOW, "UpToDate", "UpToDate", True),
        (NOW + SECOND, "UpToDate", "UpToDate", False),
        (None, "UpToDate", "UpToDate", False),
        (NOW, "UpToDate", "Inconsistent", False),
        (NOW, "UpToDate", "DUnknown", False),
        (NOW, "Diskless", "UpToDate", False),
    ],
)
def test_a_disk_that_is_gone_is_detached_only_if_a_peer_in_touch_has_the_data(
    lost_at: datetime | None, shown: str, peer_disk: str, expected: bool
) -> None:
    links = (link(1, disk=peer_disk), link(2, disk=peer_disk))
    one = changed(view(replica(config=config()), kernel(shown, links=links)), drive_lost_at=lost_at)
    detached = "drbdsetup detach 1000 --force" in commands(decided(one))
    assert detached is expected


@pytest.mark.parametrize(
    ("presence", "phase", "since", "expected"),
    [
        (Presence.OFFLINE, OperationalStatus.RELEASING, AWAY_SINCE, AWAY_SINCE + GRACE),
        (Presence.OFFLINE, OperationalStatus.REMOVED, AWAY_SINCE, AWAY_SINCE + GRACE),
        (Presence.OFFLINE, OperationalStatus.OPERATIVE, AWAY_SINCE, None),
        (Presence.OFFLINE, None, AWAY_SINCE, None),
        (Presence.OFFLINE, OperationalStatus.RELEASING, None, None),
        (Presence.ONLINE, OperationalStatus.RELEASING, None, None),
    ],
)
def test_a_drive_counts_as_lost_only_after_its_grace_and_in_a_procedure(
    presence: Presence, phase: OperationalStatus | None, since: datetime | None, expected: datetime | None
) -> None:
    drive = Drive(
        metadata=ObjectMeta(name="d"),
        spec=DriveSpec(uuid="d", serial_number="S", node_id=NodeName("n"), path="/dev/sdb"),
        status=DriveStatus(presence=presence, operational_status=phase, missing_since=since),
    )
    assert gone_at(drive, GRACE) == expected


def test_a_member_without_its_drive_confirms_what_it_hears_and_does_not_try_its_disk() -> None:
    one = view(replica(config=config()), kernel("Diskless"), unadjusted=True)
    one = changed(one, drive_lost_at=NOW)
    first = decided(one)
    assert commands(first) == ["drbdadm adjust --skip-disk pvc-1"]
    heard = outcome("adjust-links", first.steps[0].about)
    told = decided(changed(one, outcomes=outcomes(heard)))
    assert commands(told) == []
    assert told.status.datamesh_revision == one.config.datamesh_revision


def test_a_member_without_its_disk_has_forgotten_nobody_and_does_so_when_the_disk_is_back() -> None:
    told = config(peers=(peer(2),), forget=(1,))
    links = (link(2),)
    one = changed(view(replica(config=told), kernel("Diskless", links=links)), drive_lost_at=NOW)
    heard = decided(changed(one, outcomes=outcomes(outcome("adjust-links", decided(one).steps[0].about))))
    assert commands(heard) == []
    assert heard.status.datamesh_revision == told.datamesh_revision
    assert heard.status.drbd.actual.forgotten == ()
    back = view(replica(config=told), kernel(links=links))
    assert commands(decided(back)) == ["drbdsetup forget-peer pvc-1 1"]
    done = decided(changed(back, outcomes=outcomes(outcome("forget 1", exit_code=0))))
    assert done.status.drbd.actual.forgotten == (1,)
