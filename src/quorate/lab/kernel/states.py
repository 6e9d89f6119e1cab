"""The words of DRBD's state, in the order the kernel compares them."""

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import Self


class _Word(IntEnum):
    """A number to compare by and a name to print."""

    _label: str

    def __new__(cls, value: int, label: str = "") -> Self:
        member = int.__new__(cls, value)
        member._value_ = value
        member._label = label
        return member

    def __str__(self) -> str:
        return self._label


class Role(_Word):
    """What a node may do with the device."""

    UNKNOWN = 0, "Unknown"
    PRIMARY = 1, "Primary"
    SECONDARY = 2, "Secondary"


class Disk(_Word):
    """How good a replica's data is; higher is better, except that DUnknown means no word from the peer."""

    DISKLESS = 0, "Diskless"
    ATTACHING = 1, "Attaching"
    DETACHING = 2, "Detaching"
    FAILED = 3, "Failed"
    NEGOTIATING = 4, "Negotiating"
    INCONSISTENT = 5, "Inconsistent"
    OUTDATED = 6, "Outdated"
    UNKNOWN = 7, "DUnknown"
    CONSISTENT = 8, "Consistent"
    UP_TO_DATE = 9, "UpToDate"


class Conn(_Word):
    """The state of a connection, below Connected without data traffic."""

    STANDALONE = 0, "StandAlone"
    DISCONNECTING = 1, "Disconnecting"
    UNCONNECTED = 2, "Unconnected"
    TIMEOUT = 3, "Timeout"
    BROKEN_PIPE = 4, "BrokenPipe"
    NETWORK_FAILURE = 5, "NetworkFailure"
    PROTOCOL_ERROR = 6, "ProtocolError"
    TEAR_DOWN = 7, "TearDown"
    CONNECTING = 8, "Connecting"
    CONNECTED = 9, "Connected"


class Repl(_Word):
    """What is being replicated to a peer."""

    OFF = 0, "Off"
    ESTABLISHED = 1, "Established"
    STARTING_SYNC_S = 2, "StartingSyncS"
    STARTING_SYNC_T = 3, "StartingSyncT"
    WF_BITMAP_S = 4, "WFBitMapS"
    WF_BITMAP_T = 5, "WFBitMapT"
    SYNC_SOURCE = 6, "SyncSource"
    SYNC_TARGET = 7, "SyncTarget"
    VERIFY_S = 8, "VerifyS"
    VERIFY_T = 9, "VerifyT"
    PAUSED_SYNC_S = 10, "PausedSyncS"
    PAUSED_SYNC_T = 11, "PausedSyncT"


SOURCES = frozenset({Repl.STARTING_SYNC_S, Repl.WF_BITMAP_S, Repl.SYNC_SOURCE, Repl.PAUSED_SYNC_S})
TARGETS = frozenset({Repl.STARTING_SYNC_T, Repl.WF_BITMAP_T, Repl.SYNC_TARGET, Repl.PAUSED_SYNC_T})
RESYNCING = frozenset({Repl.SYNC_SOURCE, Repl.SYNC_TARGET, Repl.PAUSED_SYNC_S, Repl.PAUSED_SYNC_T})
VERIFYING = frozenset({Repl.VERIFY_S, Repl.VERIFY_T})


class Slip(StrEnum):
    """What the real kernel was seen to do by chance, each at its next opportunity on the node that is named.

    Nothing of it ends by itself: only a disconnected link, or a resource taken down, begins anew.
    """

    #: A disk that is attached beside connected peers stays Negotiating (F2).
    NEGOTIATING = "negotiating"
    #: A copy that is to take from a peer waits for its bitmap (WFBitMapT), and the peer calls the link Established.
    #: Whatever it gets over other links, it stays Outdated, and lacks more with every write (F5).
    HALF_BITMAP = "half-bitmap"
    #: A copy that is to take from a peer stays paused behind a "connection dependency" (LINBIT/drbd 40).
    LATCHED = "latched"
    #: A copy that is to take from a peer takes nothing, with the link Established: bits that nothing drains (E4).
    UNDRAINED = "undrained"
    #: Whoever gives stays SyncSource with a standing percentage; who took calls itself UpToDate (F5).
    ONE_SIDED = "one-sided"
    #: A link is made and lost again at full speed, until somebody disconnects and connects it (LINBIT/drbd 137).
    RECONNECT_LOOP = "reconnect-loop"
