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

    __slots__ = (
        "begun",
        "have_it",
        "length",
        "minor",
        "offset",
        "result",
        "state",
        "synchronous",
        "tag",
        "when_settled",
        "write",
    )

    def __init__(
        self, minor: int, offset: int, length: int, tag: Hashable, *, write: bool, synchronous: bool = False
    ) -> None:
        self.minor = minor
        self.offset = offset
        self.length = length
        self.tag = tag
        self.write = write
        self.synchronous = synchronous
        """Written with O_DSYNC: a flush follows, and what the flush meets is what the writer hears."""
        self.begun = False
        """On its way: on the local disk already, if there is one, and sent; it is not over before the peers answer."""
        self.have_it: set[int] = set()
        """The nodes whose disks have it."""
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
