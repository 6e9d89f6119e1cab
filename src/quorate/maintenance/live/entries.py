"""The ledger, by what objects look for: names, and the uids of those who asked."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from quorate.api import names
from quorate.maintenance.entries import Ledger, NotificationEntry, PermissionEntry, RequestEntry, TaskEntry


@dataclass(frozen=True, slots=True)
class Entries:
    """What is in force, by the names of the objects that show it."""

    permissions: Mapping[str, PermissionEntry] = field(default_factory=dict)
    requests: Mapping[str, RequestEntry] = field(default_factory=dict)
    notifications: Mapping[str, NotificationEntry] = field(default_factory=dict)
    tasks: Mapping[str, TaskEntry] = field(default_factory=dict)
    #: By the uid of the object that asked.
    request_of: Mapping[str, RequestEntry] = field(default_factory=dict)
    notification_of: Mapping[str, NotificationEntry] = field(default_factory=dict)
    permissions_of: Mapping[str, tuple[PermissionEntry, ...]] = field(default_factory=dict)
    #: By request id: what it got so far, and the place in the queue, from 1.
    got: Mapping[str, tuple[PermissionEntry, ...]] = field(default_factory=dict)
    places: Mapping[str, int] = field(default_factory=dict)


class Reading:
    """Of one ledger at a time: read once, however many ask."""

    def __init__(self, ledger: Callable[[], Ledger]) -> None:
        self._ledger = ledger
        self._read: Ledger | None = None
        self._entries = Entries()

    def __call__(self) -> Entries:
        """As it is now."""
        ledger = self._ledger()
        if ledger is not self._read:
            self._read, self._entries = ledger, _read(ledger)
        return self._entries


def _read(ledger: Ledger) -> Entries:
    permissions_of: defaultdict[str, list[PermissionEntry]] = defaultdict(list)
    got: defaultdict[str, list[PermissionEntry]] = defaultdict(list)
    for entry in ledger.permissions:
        permissions_of[entry.object_uid].append(entry)
        got[entry.request_id].append(entry)
    queue = sorted(ledger.requests, key=lambda entry: (entry.priority, entry.order))
    return Entries(
        permissions={names.permission(entry.order): entry for entry in ledger.permissions},
        requests={names.request(entry.order): entry for entry in ledger.requests if not entry.object_uid},
        notifications={
            names.notification(entry.order): entry for entry in ledger.notifications if not entry.object_uid
        },
        tasks={names.walle_task(entry.id): entry for entry in ledger.tasks},
        request_of={entry.object_uid: entry for entry in ledger.requests if entry.object_uid},
        notification_of={entry.object_uid: entry for entry in ledger.notifications if entry.object_uid},
        permissions_of={uid: tuple(found) for uid, found in permissions_of.items() if uid},
        got={request_id: tuple(found) for request_id, found in got.items() if request_id},
        places={entry.id: place for place, entry in enumerate(queue, 1)},
    )
