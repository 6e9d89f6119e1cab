"""Reads and writes of the device's users."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from enum import Enum


class IoState(Enum):
    """Where a request stands."""

    BLOCKED = "blocked"
    DONE = "done"
    FAILED = "failed"


class Io:
    """One request. It is done, has failed, or waits in the kernel (suspended, or a peer has to answer first)."""

    __slots__ = ("length", "minor", "offset", "result", "state", "tag", "when_settled", "write")

    def __init__(self, minor: int, offset: int, length: int, tag: Hashable, *, write: bool) -> None:
        self.minor = minor
        self.offset = offset
        self.length = length
        self.tag = tag
        self.write = write
        self.state = IoState.BLOCKED
        self.result: Hashable = None
        """What a read found."""
        self.when_settled: Callable[[Io], None] | None = None

    @property
    def blocked(self) -> bool:
        """Whether the caller still waits in the kernel."""
        return self.state is IoState.BLOCKED

    def settle(self, state: IoState) -> None:
        """The request is over."""
        self.state = state
        if self.when_settled is not None:
            self.when_settled(self)
