"""A drive that is gone for good: its disks are let go of, and its members still hear of the others."""

from __future__ import annotations

from dataclasses import replace as changed
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from quorate.agent.memory import Outcome
from quorate.agent.replica.lost_drive import gone_at
from quorate.agent.replica.view import View
from quorate.api.baremetal import Drive
from quorate.api.baremetal.drive import DriveSpec, DriveStatus, OperationalStatus, Presence
from quorate.api.meta import NodeName, ObjectMeta
from tests.agent.replica.builders import (
    LV_SIZE,
    NOW,
    commands,
    config,
    decided,
    errors,
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


REFUSED = "State change failed: (-25) No quorum\nadditional info from kernel:\nno UpToDate peer with quorum\n"


class TestLinksThatAreRefused:
    """A member that has lost its disk, whose kernel refuses a link: its disk may be back all the same."""

    joined = config(peers=(peer(1), peer(2, hidden=True)), primary=True)

    def view(self, *given: Outcome) -> View:
        known = kernel("Diskless", role="Primary", links=(link(1), link(2, "StandAlone", disk="DUnknown")))
        return view(replica(config=self.joined), known, unadjusted=True, outcomes=outcomes(*given))

    def links(self, **changes: Any) -> Outcome:
        digest = self.view().intended
        assert digest is not None
        return outcome("adjust-links", digest.digest, **{"exit_code": 1, "output": REFUSED, **changes})

    def disk(self, **changes: Any) -> Outcome:
        intended = self.view().intended
        assert intended is not None
        return outcome("adjust", f"{intended.digest}: no disk @{LV_SIZE}", output="Input/output error", **changes)

    def test_the_disk_is_tried_again_while_the_links_wait(self) -> None:
        given = self.view(self.links(times=6), self.disk(age=60.0))
        assert commands(decided(given)) == ["drbdadm adjust pvc-1"]

    def test_the_links_are_tried_again_while_the_disk_waits(self) -> None:
        given = self.view(self.links(output="exit 20", age=60.0), self.disk(times=6))
        assert commands(decided(given)) == ["drbdadm adjust --skip-disk pvc-1"]

    def test_a_link_refused_for_the_sake_of_quorum_is_tried_when_the_kernel_has_counted(self) -> None:
        given = self.view(self.links(age=60.0), self.disk(times=6))
        expected = ["drbdsetup resource-options pvc-1 --quorum=all", "drbdadm adjust --skip-disk pvc-1"]
        assert commands(decided(given)) == expected

    @pytest.mark.parametrize("ages", [(0.0, 0.0), (60.0, 0.0), (0.0, 60.0)])
    def test_the_error_is_that_of_the_links_and_does_not_come_and_go(self, ages: tuple[float, float]) -> None:
        """Nobody confirms a revision without them; the error of the disk is older than the revision."""
        given = self.view(self.links(times=6, age=ages[0]), self.disk(times=6, age=ages[1]))
        shown = errors(decided(given)).last_adjustment_error
        assert shown is not None
        assert (shown.command, shown.reason) == ("the command of adjust-links", "NoQuorum")

    def test_it_looks_again_when_the_first_of_the_two_may_be_tried(self) -> None:
        waits = decided(self.view(self.links(times=3), self.disk(times=6)))
        assert (commands(waits), waits.again) == ([], 4.0)
        assert decided(self.view(self.links(times=6), self.disk(times=2))).again == 2.0
