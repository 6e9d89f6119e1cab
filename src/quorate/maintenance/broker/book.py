"""The ledger in the form that decisions read: by id. A draft is a copy; what is written replaces the whole."""

from __future__ import annotations

from dataclasses import dataclass, field

from quorate.api.maintenance.broker_ledger import LedgerCounters
from quorate.maintenance.entries import (
    Ledger,
    MarkerEntry,
    NotificationEntry,
    PermissionEntry,
    RequestEntry,
    ServedEntry,
    TaskEntry,
)

#: Who a marker is by when nobody set it by hand.
MONITOR = "quorate-monitor"


def marker_key(marker: MarkerEntry) -> tuple[str, bool]:
    """An item has one marker set by hand and one set by the monitor, at most: a later one takes an earlier one's place.

    Both are kept, so that when a person takes theirs back the monitor's opinion counts again.
    """
    return marker.item, marker.by == MONITOR


@dataclass(slots=True)
class Book:
    """Everything that is decided, by id, oldest first."""

    epoch: int = 0
    holder: str = ""
    revision: int = 0
    counters: LedgerCounters = field(default_factory=LedgerCounters)
    permissions: dict[str, PermissionEntry] = field(default_factory=dict)
    requests: dict[str, RequestEntry] = field(default_factory=dict)
    notifications: dict[str, NotificationEntry] = field(default_factory=dict)
    tasks: dict[str, TaskEntry] = field(default_factory=dict)
    #: By the object's uid.
    served: dict[str, ServedEntry] = field(default_factory=dict)
    markers: dict[tuple[str, bool], MarkerEntry] = field(default_factory=dict)

    @classmethod
    def of(cls, ledger: Ledger) -> Book:
        """As it was read."""
        return cls(
            epoch=ledger.epoch,
            holder=ledger.holder,
            revision=ledger.revision,
            counters=ledger.counters,
            permissions={entry.id: entry for entry in ledger.permissions},
            requests={entry.id: entry for entry in ledger.requests},
            notifications={entry.id: entry for entry in ledger.notifications},
            tasks={entry.id: entry for entry in ledger.tasks},
            served={entry.object_uid: entry for entry in ledger.served},
            markers={marker_key(entry): entry for entry in ledger.markers},
        )

    def copy(self) -> Book:
        """To be changed without changing this one."""
        return Book(
            epoch=self.epoch,
            holder=self.holder,
            revision=self.revision,
            counters=self.counters,
            permissions=self.permissions.copy(),
            requests=self.requests.copy(),
            notifications=self.notifications.copy(),
            tasks=self.tasks.copy(),
            served=self.served.copy(),
            markers=self.markers.copy(),
        )

    def ledger(self, *, now: int) -> Ledger:
        """To be written."""
        return Ledger(
            epoch=self.epoch,
            holder=self.holder,
            revision=self.revision,
            time_high_water=now,
            counters=self.counters,
            permissions=tuple(self.permissions.values()),
            requests=tuple(self.requests.values()),
            notifications=tuple(self.notifications.values()),
            tasks=tuple(self.tasks.values()),
            served=tuple(self.served.values()),
            markers=tuple(self.markers.values()),
        )

    def queue(self) -> list[RequestEntry]:
        """Stored requests in the order in which they are served: by priority, then first come."""
        return sorted(self.requests.values(), key=lambda entry: (entry.priority, entry.order))
