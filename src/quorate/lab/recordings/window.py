"""A moment earlier or later: how far a status in the middle of a change may be off in time.

A recorded status was taken at one instant of a change that takes the model a little more or less time. It matches if
the model shows all of it at one instant within ``REACH`` seconds, and no step lies between that instant and the status.
What the model never shows in that time does not match.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from quorate.lab.recordings.compare_status import Difference, differences

REACH = 3.0

_Status = Sequence[Mapping[str, Any]]


@dataclass(slots=True)
class Expected:
    """A recorded status, of one resource or of all; counts may be off by some KiB (``compare_status``)."""

    status: _Status
    slack: int
    resource: str | None = None
    last: list[Difference] = field(default_factory=list)
    """What was different when the status was due."""

    def apart(self) -> list[Expected]:
        """Each of several resources by itself: a status of all is not taken at one instant of all their changes."""
        if self.resource is not None or len(self.status) < 2:
            return [self]
        return [Expected([each], self.slack, each["name"]) for each in self.status]

    def note(self, seen: _Status) -> list[Difference]:
        """The differences now, kept to be told."""
        self.last = self.differences(seen)
        return self.last

    def differences(self, seen: _Status) -> list[Difference]:
        """Nothing if a node's whole status shows what is expected."""
        shown = [resource for resource in seen if self.resource in (None, resource["name"])]
        return differences(self.status, shown, slack=self.slack)


class History:
    """What each node's status was in the last seconds, since the last step that did something."""

    def __init__(self) -> None:
        self._moments: deque[tuple[float, dict[str, _Status]]] = deque()

    def add(self, now: float, statuses: dict[str, _Status]) -> None:
        self._moments.append((now, statuses))
        while self._moments and self._moments[0][0] < now - REACH:
            self._moments.popleft()

    def forget(self) -> None:
        """A step was applied: what was before does not count any more."""
        self._moments.clear()

    def shows(self, node: str, expected: Expected) -> bool:
        """Whether the node's status was the expected one at any of these moments."""
        return any(node in statuses and not expected.differences(statuses[node]) for _, statuses in self._moments)
