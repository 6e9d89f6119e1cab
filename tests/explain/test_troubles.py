"""Which conditions are bad news, and how they are told."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from quorate.api.conditions import Reason, merge, rv, rvr
from quorate.explain.story import ReplicaStory
from quorate.explain.text import replica_lines
from quorate.explain.troubles import OF_REPLICAS, OF_VOLUMES, troubles

NOW = datetime(2026, 11, 16, tzinfo=UTC)


@pytest.mark.parametrize(
    ("reason", "bad"),
    [
        (rv.Ready.READY, False),
        (rv.Ready.FORMING, True),
        (rv.StatusLost.REPLICAS_WITH_DATA_FOUND, True),
        (rv.StatusLost.STATUS_PRESENT, False),
        (rv.Resilient.RESILIENT, False),
    ],
    ids=str,
)
def test_of_a_volume(reason: Reason, bad: bool) -> None:
    found = troubles(merge((), [reason()], now=NOW), OF_VOLUMES)
    assert [trouble.reason for trouble in found] == ([reason.code] if bad else [])
    assert [trouble.remedy for trouble in found] == ([reason.remedy] if bad else [])


@pytest.mark.parametrize(
    ("reason", "bad"),
    [
        (rvr.Primary.RESOURCE_ROLE_IS_NOT_PRIMARY, False),
        (rvr.VolumeAccessReady.NOT_PUBLISHED, False),
        (rvr.DiskIOSuspended.DISK_IO_NOT_SUSPENDED_STATUS, False),
        (rvr.Quorum.NO_QUORUM_STATUS, True),
        (rvr.Scheduled.NO_SPACE, True),
    ],
    ids=str,
)
def test_of_a_replica(reason: Reason, bad: bool) -> None:
    found = troubles(merge((), [reason()], now=NOW), OF_REPLICAS)
    assert [trouble.reason for trouble in found] == ([reason.code] if bad else [])


def test_a_reason_that_this_version_does_not_know_is_told_without_a_remedy() -> None:
    (condition,) = merge((), [rvr.Quorum.NO_QUORUM_STATUS()], now=NOW)
    (found,) = troubles([condition], {})
    assert (found.condition, found.remedy) == ("Quorum", "")


def test_conditions_that_say_the_same_are_told_in_one_line() -> None:
    verdicts = [codes.AGENT_NOT_READY() for codes in (rvr.Quorum, rvr.InSync, rvr.Configured)]
    story = ReplicaStory(
        name="v-0",
        type="Diskful",
        node="n1",
        zone="",
        disk="",
        phase="AgentNotReady",
        state="down",
        said_by=(),
        troubles=troubles(merge((), verdicts, now=NOW), OF_REPLICAS),
        candidates=(),
    )
    lines = list(replica_lines(story))
    assert sum("AgentNotReady:" in line for line in lines) == 1
    assert any(line.strip().startswith("Quorum, InSync, Configured Unknown") for line in lines)
