"""What a failed command means."""

from __future__ import annotations

from typing import Final

from quorate.agent.lvm.commands import FILL
from quorate.agent.memory import Outcome
from quorate.api.conditions.declaration import Reason
from quorate.api.conditions.lvm import LogicalVolumeFailure as Failure

_MESSAGE_LENGTH: Final = 1000

#: LVM has no numbers for what went wrong, only words. The first that is found.
_WORDS: Final = (
    ("insufficient free space", Failure.NO_SPACE),
    ("insufficient suitable", Failure.NO_SPACE),
    ("not enough free", Failure.NO_SPACE),
    ("in use", Failure.DEVICE_IN_USE),
    ("is used by", Failure.DEVICE_IN_USE),
    ("device or resource busy", Failure.DEVICE_IN_USE),
    ("already exists", Failure.LV_EXISTS),
    ("thin pool", Failure.THIN_POOL_NOT_FOUND),
    ("volume group", Failure.VOLUME_GROUP_NOT_FOUND),
)


def meaning(outcome: Outcome) -> Reason:
    """The reason that fits a failed command best."""
    output = outcome.output.lower()
    for words, reason in _WORDS:
        lost = reason in (Failure.THIN_POOL_NOT_FOUND, Failure.VOLUME_GROUP_NOT_FOUND)
        if words in output and (not lost or "not found" in output):
            return reason
    if outcome.purpose == FILL and "no such file" in output:
        return Failure.SOURCE_NOT_FOUND
    if outcome.purpose == FILL and "no links and no devices are read" in output:
        return Failure.SOURCE_REFUSED
    return Failure.COMMAND_FAILED


def words_of(outcome: Outcome) -> str:
    """What failed, in the words of the command."""
    ended = "hung" if outcome.hung else f"ended with {outcome.exit_code}" if outcome.exit_code is not None else "failed"
    said = " ".join(outcome.output.split())
    return shortened(f"{outcome.command} {ended}: {said}" if said else f"{outcome.command} {ended}")


def shortened(message: str) -> str:
    """A message that its field can hold."""
    return message if len(message) <= _MESSAGE_LENGTH else f"{message[: _MESSAGE_LENGTH - 2]} …"
