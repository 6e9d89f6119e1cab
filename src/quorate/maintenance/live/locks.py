"""The broker's permissions in the lock table: what each holds, by the names of its objects."""

from __future__ import annotations

from collections.abc import Iterable

from quorate.locks import Hold, LockTable, Sort, Thing
from quorate.maintenance.entries import PermissionEntry
from quorate.maintenance.live.numbers import Names
from quorate.maintenance.model import ClusterModel
from quorate.maintenance.model.items import DriveItem, NodeItem, VDiskItem
from quorate.maintenance.model.lookup import claimed
from quorate.maintenance.moments import to_datetime
from quorate.maintenance.nouns import parse_device


class LiveLocks:
    """Implements :class:`quorate.maintenance.broker.ports.Locks`.

    A permission may name something that is not there yet, or goes by another name later. So all are looked up again
    (``refresh``) when names have changed.
    """

    def __init__(self, table: LockTable, model: ClusterModel, names: Names) -> None:
        self._table = table
        self._model = model
        self._names = names
        self._permissions: dict[str, PermissionEntry] = {}
        self._looked_up_at = -1
        #: Permissions that name a device by its path, which may be another's at any time.
        self._by_path: set[str] = set()

    def take(self, permission: PermissionEntry) -> None:
        """It is granted, or about to be. Conflict: a volume has claimed what it is for."""
        self._table.hold(_hold(permission), tuple(self._things_of(permission)))
        self._permissions[permission.id] = permission
        if any(parse_device(name) is None for name in permission.action.devices):
            self._by_path.add(permission.id)

    def drop(self, permission_id: str) -> None:
        """It is over, or was never written."""
        self._permissions.pop(permission_id, None)
        self._by_path.discard(permission_id)
        self._table.let_go(permission_id)

    def refresh(self) -> None:
        """The cluster has changed: look up again what each permission holds, where that may be something else now."""
        if self._looked_up_at == self._names.version and not self._by_path:
            return
        self._looked_up_at = self._names.version
        self._table.set_holds(
            {
                permission.id: (_hold(permission), frozenset(self._things_of(permission)))
                for permission in self._permissions.values()
            }
        )

    def _things_of(self, permission: PermissionEntry) -> Iterable[Thing]:
        for item in claimed(self._model, permission.action):
            match item:
                case NodeItem():
                    sort, name = Sort.NODE, self._names.object_of(item.id)
                case DriveItem():
                    sort, name = Sort.DRIVE, self._names.object_of(item.id)
                case VDiskItem():
                    sort, name = Sort.REPLICA, self._names.object_of(item.id)
                case _:
                    raise TypeError(f"{type(item).__name__} cannot be held")
            if name is not None:
                yield Thing(sort, name)


def _hold(permission: PermissionEntry) -> Hold:
    return Hold(permission.id, permission.owner, to_datetime(permission.deadline))
