"""Which changes of a replica its agent looks at."""

from __future__ import annotations

from dataclasses import replace as changed
from typing import Any

import pytest

from quorate.agent.replica.decide import decide
from quorate.agent.replica.here import concerns_its_agent
from quorate.agent.replica.view import View
from quorate.api.meta import ObjectMeta
from quorate.api.quantity import Quantity
from quorate.api.storage.rvr import (
    BackingVolume,
    ReplicaPhase,
    ReplicatedVolumeReplica,
    ReplicatedVolumeReplicaStatus,
)
from quorate.api.struct import replace
from tests.agent.replica.builders import NOW, actual, config, kernel, replica, view

WORDS: tuple[dict[str, Any], ...] = (
    {"phase": ReplicaPhase.HEALTHY},
    {"message": "said to people"},
    {"observed_generation": 7},
    {"backing_volume": BackingVolume(state="UpToDate")},
)
#: A replica that is as it should be, one that is to be brought up, one that is to be adjusted, one that is to go.
VIEWS = (view(), view(shown=None), view(unadjusted=True), view(replica(config=config(down=True))))


def with_status(before: ReplicatedVolumeReplica, **fields: Any) -> ReplicatedVolumeReplica:
    return replace(before, status=replace(before.status, **fields))


@pytest.mark.parametrize("words", WORDS, ids=lambda words: next(iter(words)))
@pytest.mark.parametrize("case", VIEWS)
def test_what_wakes_nobody_changes_no_decision(case: View, words: dict[str, Any]) -> None:
    told = with_status(case.replica, **words)
    assert told != case.replica
    assert not concerns_its_agent(case.replica, told)
    before, after = decide(case, NOW), decide(changed(case, replica=told), NOW)
    assert after.steps == before.steps
    assert (after.again, after.release, after.held_back) == (before.again, before.release, before.held_back)
    assert after.status == replace(before.status, **words)


@pytest.mark.parametrize(
    "change",
    [
        {"lvm_logical_volume_name": "another"},
        {"size": Quantity("1Gi")},
        {"datamesh_revision": 99},
        {"drbd": replace(replica().status.drbd, config=config(datamesh_revision=99))},
        {"drbd": replace(replica().status.drbd, actual=actual(metadata_created=""))},
        {"drbd": replace(replica().status.drbd, status=kernel(role="Primary"))},
    ],
)
def test_what_decides_wakes_its_agent(change: dict[str, Any]) -> None:
    assert concerns_its_agent(replica(), with_status(replica(), **change))


def test_what_comes_goes_is_being_deleted_or_let_go_of_wakes_its_agent() -> None:
    there = replica()
    assert concerns_its_agent(None, there)
    assert concerns_its_agent(there, None)
    for meta in ({"deletion_timestamp": NOW}, {"finalizers": ()}, {"uid": "another"}):
        other: ObjectMeta = replace(there.metadata, **meta)
        assert concerns_its_agent(there, replace(there, metadata=other))


def test_every_field_of_a_replicas_status_is_either_words_or_decides() -> None:
    """A new field is one or the other: say which here, and in ``concerns_its_agent``."""
    decides = {"drbd", "lvm_logical_volume_name", "size", "datamesh_revision", "actual_type"}
    people = {"observed_generation", "phase", "message", "addresses", "backing_volume", "peers", "conditions"}
    people |= {"datamesh_pending_transition"}
    assert decides | people == set(ReplicatedVolumeReplicaStatus.__struct_fields__)
