"""A drive that is gone for good: its disks are let go of, and its members still hear of the others."""

from __future__ import annotations

from dataclasses import replace as changed

import pytest

from tests.agent.replica.builders import commands, config, decided, kernel, link, outcome, outcomes, replica, view


@pytest.mark.parametrize(
    ("lost", "shown", "peer", "expected"),
    [
        (True, "UpToDate", "UpToDate", True),
        (False, "UpToDate", "UpToDate", False),
        (True, "UpToDate", "Inconsistent", False),
        (True, "UpToDate", "DUnknown", False),
        (True, "Diskless", "UpToDate", False),
    ],
)
def test_a_disk_that_is_gone_is_detached_only_if_a_peer_in_touch_has_the_data(
    lost: bool, shown: str, peer: str, expected: bool
) -> None:
    links = (link(1, disk=peer), link(2, disk=peer))
    one = changed(view(replica(config=config()), kernel(shown, links=links)), drive_lost=lost)
    detached = "drbdsetup detach 1000 --force" in commands(decided(one))
    assert detached is expected


def test_a_member_without_its_drive_confirms_what_it_hears_and_does_not_try_its_disk() -> None:
    one = view(replica(config=config()), kernel("Diskless"), unadjusted=True)
    one = changed(one, drive_lost=True)
    first = decided(one)
    assert commands(first) == ["drbdadm adjust --skip-disk pvc-1"]
    heard = outcome("adjust-links", first.steps[0].about)
    told = decided(changed(one, outcomes=outcomes(heard)))
    assert commands(told) == []
    assert told.status.datamesh_revision == one.config.datamesh_revision
