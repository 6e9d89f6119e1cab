"""The one line that ``kubectl get rv`` shows of a volume: the worst that is true of it comes first."""

from __future__ import annotations

from dataclasses import replace as changed

import pytest

from quorate.api.meta import NodeName
from quorate.api.storage.configuration import Replication
from quorate.api.storage.rv import ReplicatedVolumeStatus, VolumePhase
from quorate.api.struct import replace
from quorate.volumes.places import find_places
from quorate.volumes.view import VolumeView
from quorate.volumes.volume.report import composed
from quorate.volumes.waits import Wait
from tests.volumes.test_effective import healthy, lost
from tests.volumes.volume.making import NOW, as_ready

WAIT = Wait("WaitingForComparison", "copies may differ")
#: Of two copies that have to be there, one is gone.
STANDING = lost(healthy(Replication.CONSISTENCY), 1, quorate=())
#: Of three, one.
WEAK = lost(healthy(Replication.CONSISTENCY_AND_AVAILABILITY), 2)
#: The only one, or just its agent: nobody knows.
UNHEARD = lost(healthy(Replication.NONE), 0)


def whole() -> VolumeView:
    view = healthy(Replication.CONSISTENCY)
    return changed(view, replicas=tuple(as_ready(each) for each in view.replicas))


def published_where_nobody_is() -> VolumeView:
    view = whole()
    spec = replace(view.volume.spec, publish_on=(NodeName("nosuch"),))
    return changed(view, rv=replace(view.volume, spec=spec))


def told(view: VolumeView, wait: Wait | None = None) -> ReplicatedVolumeStatus:
    return composed(view, find_places(view), wait, NOW)


@pytest.mark.parametrize(
    ("view", "wait", "phase", "message"),
    [
        (whole(), None, VolumePhase.READY, ""),
        (whole(), WAIT, VolumePhase.READY, "copies may differ"),
        (published_where_nobody_is(), None, VolumePhase.READY, "nosuch is not in the queue"),
        (STANDING, None, VolumePhase.DEGRADED, "I/O stands: pvc-1-0 on "),
        (STANDING, WAIT, VolumePhase.DEGRADED, "I/O stands: pvc-1-0 on "),
        (WEAK, WAIT, VolumePhase.DEGRADED, "copies may differ"),
        (WEAK, None, VolumePhase.DEGRADED, "not ready: "),
        (UNHEARD, None, VolumePhase.DEGRADED, "not ready: "),
    ],
)
def test_that_io_stands_is_said_before_what_is_waited_for_and_that_before_what_lacks(
    view: VolumeView, wait: Wait | None, phase: VolumePhase, message: str
) -> None:
    status = told(view, wait)
    assert status.phase is phase
    assert status.message.startswith(message)
    assert bool(status.message) == bool(message)
    if wait is not None:
        assert status.message.endswith(wait.message)


@pytest.mark.parametrize(
    ("view", "words", "unsaid"),
    [
        (STANDING, "; holds 0 of 1 promised copies beyond the one needed", "survives"),
        (WEAK, "survives 0 of 1 promised losses, holds 1 of 1 promised copies beyond the one needed; out of", "I/O"),
        (lost(healthy(Replication.AVAILABILITY), 1), "survives 0 of 1 promised losses; out of reach: ", "holds"),
    ],
)
def test_only_what_is_promised_is_said_to_be_missing_and_nothing_is_survived_while_io_stands(
    view: VolumeView, words: str, unsaid: str
) -> None:
    (condition,) = (each for each in told(view).conditions if each.type == "Resilient")
    assert words in condition.message
    assert unsaid not in condition.message.removeprefix("I/O stands: ")
