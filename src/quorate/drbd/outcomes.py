"""What a DRBD command's exit code and output mean."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Outcome(StrEnum):
    """The answers that an agent must tell apart."""

    SUCCEEDED = "Succeeded"
    #: The resource, or the part of it that was named, is not in the kernel.
    NOT_UP = "NotUp"
    #: No ``.res`` file names it.
    NOT_CONFIGURED = "NotConfigured"
    #: It is up already, or that part of it is.
    ALREADY_UP = "AlreadyUp"
    NO_QUORUM = "NoQuorum"
    HELD_OPEN = "HeldOpen"
    NEED_UP_TO_DATE = "NeedUpToDate"
    MULTIPLE_PRIMARIES = "MultiplePrimaries"
    TWO_PRIMARIES_IN_USE = "TwoPrimariesInUse"
    REFUSED_BY_PEER = "RefusedByPeer"
    UNSUPPORTED_ALGORITHM = "UnsupportedAlgorithm"
    ADDRESS_IN_USE = "AddressInUse"
    BACKING_UNAVAILABLE = "BackingUnavailable"
    BACKING_TOO_SMALL = "BackingTooSmall"
    METADATA_MISSING = "MetadataMissing"
    METADATA_UNCLEAN = "MetadataUnclean"
    INVALID_CONFIG = "InvalidConfig"
    #: Any other failure; the message says which.
    FAILED = "Failed"


@dataclass(frozen=True, slots=True)
class Holder:
    """A process that has the device open."""

    process: str
    pid: int


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command said, understood."""

    outcome: Outcome
    #: The kernel's number: (158), (-25); None where it gave none.
    number: int | None = None
    #: The line that says it, without colours and without the resource's name. Not masked.
    message: str = ""
    holders: tuple[Holder, ...] = ()
    #: Of UNSUPPORTED_ALGORITHM, where the output names it.
    algorithm: str = ""


def understand(exit_code: int, output: str) -> Answer:
    """The meaning of an answer of drbdadm, drbdsetup or drbdmeta."""
    raise NotImplementedError
