"""What a failed command means, and when it is tried again."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from quorate.agent.memory import Outcome
from quorate.api.conditions.declaration import Reason
from quorate.api.conditions.lvm import LogicalVolumeFailure as Failure

#: Seconds before the second try, and the most between any two.
FIRST_RETRY: Final = 2.0
LONGEST_RETRY: Final = 300.0

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
    if outcome.command.startswith("dd ") and "no such file" in output:
        return Failure.SOURCE_NOT_FOUND
    return Failure.COMMAND_FAILED


def words_of(outcome: Outcome) -> str:
    """What failed, in the words of the command."""
    ended = "hung" if outcome.hung else f"ended with {outcome.exit_code}" if outcome.exit_code is not None else "failed"
    said = " ".join(outcome.output.split())
    return shortened(f"{outcome.command} {ended}: {said}" if said else f"{outcome.command} {ended}")


def shortened(message: str) -> str:
    """A message that its field can hold."""
    return message if len(message) <= _MESSAGE_LENGTH else f"{message[: _MESSAGE_LENGTH - 2]} …"


def wait_before_retry(outcome: Outcome | None, now: datetime, about: str = "") -> float:
    """Seconds until a step may be tried again; 0 at once, also when something else would be tried now."""
    if outcome is None or outcome.succeeded or (about and outcome.about != about):
        return 0.0
    return _left(outcome, outcome.failures, now)


def _left(outcome: Outcome, times: int, now: datetime) -> float:
    pause = min(FIRST_RETRY * 2.0 ** min(times - 1, 16), LONGEST_RETRY)
    return max(0.0, pause - (now - outcome.at).total_seconds())


def wait_before_trying(outcome: Outcome | None, now: datetime, about: str = "") -> float:
    """The same for work. What succeeded and is to be done once more did not help: that too is done ever more rarely."""
    if outcome is None or not outcome.succeeded or outcome.about != about or outcome.times == 1:
        return wait_before_retry(outcome, now, about)
    return _left(outcome, outcome.times - 1, now)
