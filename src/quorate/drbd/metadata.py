"""DRBD's internal metadata: how much room it takes, and what ``dump-md`` says of it."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from quorate.api.meta import Bytes

#: What ``create-md`` reserves bitmaps for: every other member that a volume can have.
MAX_PEERS: Final = 7


class MetadataState(StrEnum):
    """What is on a backing device."""

    #: Metadata, cleanly left.
    CLEAN = "Clean"
    #: Metadata of a member that lost its power: ``up`` applies the log by itself.
    UNCLEAN = "Unclean"
    #: No metadata. On a device that had some it may still be there, at the end of its former size.
    NONE = "None"
    #: The kernel holds the device: it has metadata, and they are in use.
    IN_USE = "InUse"
    #: There is no such device.
    DEVICE_MISSING = "DeviceMissing"
    #: None of the above could be made out.
    UNREADABLE = "Unreadable"


def metadata_state(exit_code: int, output: str) -> MetadataState:
    """What ``drbdadm dump-md`` found, by its exit code and everything it printed."""
    raise NotImplementedError


def usable_size(lower: Bytes, max_peers: int = MAX_PEERS) -> Bytes:
    """What is left for data on a device of this size."""
    raise NotImplementedError


def lower_size(usable: Bytes, max_peers: int = MAX_PEERS) -> Bytes:
    """The smallest backing device that has this much room for data."""
    raise NotImplementedError
