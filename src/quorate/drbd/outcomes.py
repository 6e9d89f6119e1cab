"""What a DRBD command's exit code and output mean.

The exit code tells only the kind of failure; which one it was is a number in the text: ``Failure: (158)`` for requests,
``State change failed: (-25)`` for states. Some answers have neither, only words. The numbers are the kernel's interface
(``drbd_ret_code``, ``drbd_state_rv``) and stay; the texts beside them do not.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from quorate.drbd.masking import plain


class Outcome(StrEnum):
    """The answers that an agent must tell apart."""

    SUCCEEDED = "Succeeded"
    #: The resource, or the part of it that was named, is not in the kernel.
    NOT_UP = "NotUp"
    #: No ``.res`` file names it.
    NOT_CONFIGURED = "NotConfigured"
    #: A peer of that id is not in the metadata: never met, or forgotten already.
    UNKNOWN_PEER = "UnknownPeer"
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
    #: The disk grew and lost its power before DRBD had written a log at its new end.
    METADATA_UNUSABLE = "MetadataUnusable"
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
    #: What failed, and the kernel's own detail if it gave one; without colours. Not masked.
    message: str = ""
    holders: tuple[Holder, ...] = ()
    #: Of UNSUPPORTED_ALGORITHM, where the output names it.
    algorithm: str = ""


_BY_NUMBER: Final = {
    -1: Outcome.MULTIPLE_PRIMARIES,
    -2: Outcome.NEED_UP_TO_DATE,
    -10: Outcome.REFUSED_BY_PEER,
    -12: Outcome.HELD_OPEN,
    -25: Outcome.NO_QUORUM,
    102: Outcome.ADDRESS_IN_USE,
    103: Outcome.ADDRESS_IN_USE,
    173: Outcome.ADDRESS_IN_USE,
    104: Outcome.BACKING_UNAVAILABLE,
    105: Outcome.BACKING_UNAVAILABLE,
    118: Outcome.BACKING_UNAVAILABLE,
    111: Outcome.BACKING_TOO_SMALL,
    112: Outcome.BACKING_TOO_SMALL,
    119: Outcome.METADATA_MISSING,
    165: Outcome.METADATA_UNCLEAN,
    120: Outcome.UNSUPPORTED_ALGORITHM,
    121: Outcome.UNSUPPORTED_ALGORITHM,
    124: Outcome.ALREADY_UP,
    125: Outcome.ALREADY_UP,
    160: Outcome.ALREADY_UP,
    161: Outcome.ALREADY_UP,
    171: Outcome.UNKNOWN_PEER,
    127: Outcome.NOT_UP,
    158: Outcome.NOT_UP,
    164: Outcome.TWO_PRIMARIES_IN_USE,
}
# In this order: "unclean" comes beside other words.
_BY_WORDS: Final = (
    ("No such resource", Outcome.NOT_UP),
    ("no resources defined!", Outcome.NOT_CONFIGURED),
    ("not defined in your config", Outcome.NOT_CONFIGURED),
    ("Parse error", Outcome.INVALID_CONFIG),
    ("conflicting use of", Outcome.INVALID_CONFIG),
    ("No usable activity log found", Outcome.METADATA_UNUSABLE),
    ('meta data is "unclean"', Outcome.METADATA_UNCLEAN),
    ("No valid meta data found", Outcome.METADATA_MISSING),
    ("no suitable meta data found", Outcome.METADATA_MISSING),
    (") failed: No such file or directory", Outcome.BACKING_UNAVAILABLE),
)
_NUMBERED = re.compile(r"(?:State change failed|Failure): \((-?[0-9]{1,4})\) ?(.*)")
# The command that failed, as drbdadm repeats it; what it says after that is another failure's.
_REPEATED_COMMAND = re.compile(r"^Command '.*", re.MULTILINE)
_GIVEN_UP = "did not terminate within"
_NAMED_COMMAND = re.compile(r"^Command '(?:drbdsetup )?([a-z-]+)", re.MULTILINE)
_DETAIL = "additional info from kernel:"
_HOLDER = re.compile(r"opened by (.+?) \(pid ([0-9]{1,10})\)")
_ALGORITHM = re.compile(r"--cram-hmac-alg=([^\s']+)")


def is_about_disk(exit_code: int, output: str) -> bool:
    """Whether an ``up`` or ``adjust`` failed by its disk: nothing else was wrong, or nothing else was tried yet.

    drbdadm names the drbdsetup that ended with 10 or more. What it does not name is drbdmeta, which looks at the disk
    before it is attached, and a disk that is not there at all. A drbdsetup that took longer than the five seconds that
    it has says nothing of the disk, whatever it was about.
    """
    text = plain(output)
    if exit_code == 0 or _GIVEN_UP in text:
        return False
    named = _NAMED_COMMAND.search(text)
    return named is None or named[1] in ("drbdmeta", "attach")


def understand(exit_code: int, output: str) -> Answer:
    """The meaning of an answer of drbdadm, drbdsetup or drbdmeta."""
    text = plain(output)
    if exit_code == 0:
        return Answer(Outcome.SUCCEEDED)
    numbered = _NUMBERED.search(text)
    if numbered is None:
        return _by_words(text)
    number = int(numbered[1])
    outcome = _BY_NUMBER.get(number, Outcome.FAILED)
    algorithm = _ALGORITHM.search(text) if outcome is Outcome.UNSUPPORTED_ALGORITHM else None
    return Answer(
        outcome,
        number,
        _message(numbered[2], text[numbered.end() :]),
        tuple(Holder(process, int(pid)) for process, pid in _HOLDER.findall(text)),
        algorithm[1] if algorithm else "",
    )


def _by_words(text: str) -> Answer:
    for words, outcome in _BY_WORDS:
        if words in text:
            return Answer(outcome, message=next(line.strip() for line in text.splitlines() if words in line))
    return Answer(Outcome.FAILED, message=next((line.strip() for line in text.splitlines() if line.strip()), ""))


def _message(headline: str, rest: str) -> str:
    """The failure's own lines, and after a colon what the kernel added."""
    own = _REPEATED_COMMAND.split(rest, maxsplit=1)[0]
    more, _, detail = own.partition(_DETAIL)
    return ": ".join(" ".join(part.split()) for part in (f"{headline} {more}", detail) if part.strip())
