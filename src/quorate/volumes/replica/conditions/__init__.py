"""The conditions of a replica: one table (02), composed by the controller alone, from what the snapshot shows.

Every condition has exactly one verdict for any state of things, so what is written never depends on what was written
before. Only VolumeAccessReady is sometimes not there at all: a tie-breaker is not meant to be used.
"""

from __future__ import annotations

from quorate.api.conditions import Verdict
from quorate.api.conditions.declaration import ConditionType
from quorate.api.conditions.rvr import VolumeAccessReady
from quorate.volumes.replica.conditions import kernel, place, realisation
from quorate.volumes.replica.conditions.readiness import ready
from quorate.volumes.replica.subject import Subject, Verdicts

_COMPOSED = (
    place.scheduled,
    place.address_configured,
    place.backing_volume_ready,
    realisation.initial_sync,
    realisation.devices_ready,
    realisation.configuration_adjusted,
    realisation.configured,
    kernel.quorum,
    kernel.in_sync,
    kernel.drbd_moving,
    kernel.disk_io_suspended,
    kernel.fully_connected,
    kernel.primary,
    kernel.volume_access_ready,
    place.satisfy_eligible_nodes,
)


def verdicts(subject: Subject) -> Verdicts:
    """By type."""
    found: Verdicts = {}
    for compose in _COMPOSED:
        verdict: Verdict | None = compose(subject)
        if verdict is not None:
            found[verdict.type] = verdict
    for last in (realisation.drbd_configured, ready):
        verdict = last(subject, found)
        found[verdict.type] = verdict
    return found


def to_drop(found: Verdicts) -> tuple[type[ConditionType], ...]:
    """What must not be shown."""
    return () if VolumeAccessReady.__name__ in found else (VolumeAccessReady,)
