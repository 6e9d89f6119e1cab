"""Drives in numbers, for Prometheus: by state and never by drive, so that no cluster has too many series.

| metric                      | labels                    | counts                                                     |
|-----------------------------|---------------------------|------------------------------------------------------------|
| quorate_drives              | health, phase             | drives                                                     |
| quorate_drive_conditions    | condition, status, reason | drives: what they wait for, what failed, which are gone    |
| quorate_drive_volumes       | usage                     | what lies on drives that leave, by how far its release is  |
| quorate_drive_phase_seconds | phase, next               | how long drives were in a phase before the next            |

The first three are levels. The last is counted when a change is seen, by the moments that are in the object: a restart
of ours in the middle of a phase does not make it shorter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Final

from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric

from quorate.api.baremetal import Drive, Volume
from quorate.api.baremetal.drive import DriveHealth, OperationalStatus
from quorate.api.baremetal.volume import VolumeUsage
from quorate.api.conditions.drive import Healthy, LocateLight, Present, Released, Removed
from quorate.engine.cache import Cache
from quorate.engine.keys import Key
from quorate.engine.levels import Levels, by_condition, level
from quorate.engine.tallies import HistogramFamily

_MINUTE: Final = 60.0
_HOUR: Final = 60 * _MINUTE
_DAY: Final = 24 * _HOUR
#: A phase may be over in a pass, or wait for a person with a screwdriver.
_BOUNDS: Final = (1.0, 10.0, _MINUTE, 10 * _MINUTE, _HOUR, 4 * _HOUR, 12 * _HOUR, _DAY, 3 * _DAY, 7 * _DAY, 30 * _DAY)

_CONDITIONS: Final = (Healthy, Present, Released, Removed, LocateLight)


class DriveMetrics:
    """Follows the caches of a manager."""

    def __init__(
        self,
        registry: CollectorRegistry,
        drives: Cache[Drive],
        volumes: Cache[Volume],
        leads: Callable[[], bool],
    ) -> None:
        self._drives = drives
        self._volumes = volumes
        self._leads = leads
        self._phases = HistogramFamily(
            "quorate_drive_phase_seconds",
            "How long drives were in a phase of their procedure before the next",
            ("phase", "next"),
            _BOUNDS,
        )
        registry.register(Levels(self._levels, leads))
        registry.register(self._phases)
        drives.subscribe(self._changed)

    def _levels(self) -> Iterable[Metric]:
        drives = self._drives.list()
        states = Counter[tuple[str, ...]]({(health, phase): 0 for health in DriveHealth for phase in OperationalStatus})
        states.update((drive.status.health or DriveHealth.UNKNOWN, drive.phase) for drive in drives)
        yield level("quorate_drives", "Drives by health and phase", ("health", "phase"), states)
        yield by_condition(
            "quorate_drive_conditions",
            "Drives by condition",
            _CONDITIONS,
            (drive.status.conditions for drive in drives),
        )
        usages = Counter[tuple[str, ...]]({(usage,): 0 for usage in VolumeUsage})
        usages.update((volume.status.usage or VolumeUsage.IN_USE,) for volume in self._volumes.list())
        yield level("quorate_drive_volumes", "Volumes on drives that leave, by usage", ("usage",), usages)

    def _changed(self, _: Key, before: Drive | None, after: Drive | None) -> None:
        if before is None or after is None or not self._leads():
            return
        since, until = before.status.operational_status_since, after.status.operational_status_since
        if since is not None and until is not None and before.phase is not after.phase:
            self._phases.labels(before.phase, after.phase).add((until - since) / timedelta(seconds=1))
