"""What the broker needs of its surroundings besides a store and a clock: a log, numbers, settings, names and locks.

Each is small, and each has a plain implementation beside it, so that a broker in a test needs nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from quorate.api.maintenance.action import IssueType, StatusCode
from quorate.api.maintenance.broker_config import BrokerConfigSpec
from quorate.api.maintenance.log_record import RecordType
from quorate.maintenance.entries import PermissionEntry
from quorate.maintenance.messages import Caller, LogLine, LogTailRequest


class Log(Protocol):
    """Where the broker's records go. A record is made after what it tells of is written, never before."""

    def record(self, at: int, record_type: RecordType, message: str, data: Mapping[str, Any]) -> None:
        """Keep one; must not wait. ``at`` is broker time; no two records are told with the same."""
        ...

    def newest(self) -> int:
        """When the newest record was made: what the ledger has that is younger is missing here, after a crash."""
        ...

    async def tail(self, asked: LogTailRequest) -> tuple[LogLine, ...]:
        """The newest records that fit, oldest first."""
        ...


class Metrics(Protocol):
    """What is counted. Every method is called on the way to an answer, so it must cost nothing to speak of."""

    def answered(self, question: str, code: StatusCode) -> None:
        """A question was answered."""
        ...

    def refused(self, reason: IssueType) -> None:
        """An action was not granted, dry runs apart."""
        ...

    def granted(self, permissions: int) -> None:
        """Permissions were given."""
        ...

    def clock_jumped(self, jumped: bool) -> None:
        """The wall clock cannot be trusted (any more, or again): an alert hangs on this."""
        ...

    def watch(self, *, oldest_lock: Callable[[], float], held: Callable[[], int], stored: Callable[[], int]) -> None:
        """Where to read levels when somebody asks: age of the oldest lock in seconds, permissions, stored requests."""
        ...


class Settings(Protocol):
    """Where the broker's configuration lives."""

    async def load(self) -> BrokerConfigSpec | None:
        """As it is stored; None if nobody ever stored one."""
        ...

    async def save(self, config: BrokerConfigSpec) -> None:
        """Replace all of it."""
        ...


class Identities(Protocol):
    """Who is behind a token (``UserToken`` of a marker)."""

    def identify(self, token: str) -> Caller | None:
        """The caller that this token belongs to; None for a token that nobody has."""
        ...


class Locks(Protocol):
    """The lock table that the broker shares with whoever else disturbs the cluster.

    ``take`` comes in the same step as the decision, before anything is written, and ``drop`` after the end of the
    permission is written. So a change that begins while a permission is being written, or taken back, sees it. What
    others hold must be in the model by the time the broker decides.
    """

    def take(self, permission: PermissionEntry) -> None:
        """It is granted, about to be, or lasts until another moment. Conflict: another has claimed what it is for."""
        ...

    def drop(self, permission_id: str) -> None:
        """It is over, or was never written."""
        ...
