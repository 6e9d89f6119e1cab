"""Surroundings that do nothing, for a broker that has none: nobody counts, nobody shares locks, no token is known."""

from __future__ import annotations

from collections.abc import Callable

from quorate.api.maintenance.action import IssueType, StatusCode
from quorate.maintenance.entries import PermissionEntry
from quorate.maintenance.messages import Caller


class NoMetrics:
    """Implements :class:`quorate.maintenance.broker.ports.Metrics`."""

    def answered(self, question: str, code: StatusCode) -> None:
        pass

    def refused(self, reason: IssueType) -> None:
        pass

    def granted(self, permissions: int) -> None:
        pass

    def clock_jumped(self, jumped: bool) -> None:
        pass

    def watch(self, *, oldest_lock: Callable[[], float], held: Callable[[], int], stored: Callable[[], int]) -> None:
        pass


class NoLocks:
    """Implements :class:`quorate.maintenance.broker.ports.Locks`."""

    def take(self, permission: PermissionEntry) -> None:
        pass

    def drop(self, permission_id: str) -> None:
        pass


class NoIdentities:
    """Implements :class:`quorate.maintenance.broker.ports.Identities`."""

    def identify(self, token: str) -> Caller | None:
        return None
