"""When each step of a recording happens.

``at`` is the moment a step was over. A command that sleeps was begun that much earlier; all others take no time in the
lab and are run at their end. One old recording has no times: there, steps are spaced as the recorder spaced them
elsewhere, and the first look after a change waits for it.
"""

from __future__ import annotations

from dataclasses import dataclass

from quorate.lab.recordings.recording import AnyStep, Command, Recording, Status
from quorate.lab.tools.shell import syntax

_COMMAND, _LOOK, _FIRST_LOOK, _OTHER = 2.0, 0.05, 6.0, 0.1


@dataclass(frozen=True, slots=True)
class Slot:
    """From when to when a step lasts."""

    start: float
    end: float


def slots(recording: Recording) -> list[Slot]:
    """Start and end of every step."""
    found: list[Slot] = []
    now = 0.0
    previous: AnyStep | None = None
    for step in recording.steps:
        duration = foreground_sleep(step.command) if isinstance(step, Command) else 0.0
        if step.at is not None:
            end = step.at
        elif isinstance(step, Status):
            end = now + (_LOOK if isinstance(previous, Status) else _FIRST_LOOK)
        else:
            end = now + duration + (_COMMAND if isinstance(step, Command) else _OTHER)
        end = max(end, now)
        found.append(Slot(max(now, end - duration), end))
        now, previous = end, step
    return found


def foreground_sleep(command: str) -> float:
    """For how long a command line sleeps before it ends."""
    try:
        return _sequence(syntax.parse(command))
    except syntax.ShellSyntaxError:
        return 0.0


def _sequence(tree: syntax.Sequence) -> float:
    return sum(_pipeline(pipeline) for part in tree.parts if not part.background for pipeline in _pipelines(part))


def _pipelines(part: syntax.AndOr) -> list[syntax.Pipeline]:
    return [part.first, *(pipeline for _, pipeline in part.rest)]


def _pipeline(pipeline: syntax.Pipeline) -> float:
    return max(
        _sequence(command.body) if isinstance(command, syntax.Group) else _simple(command)
        for command in pipeline.commands
    )


def _simple(command: syntax.Simple) -> float:
    words = [word.bare or "" for word in command.words]
    try:
        return float(words[1].removesuffix("s")) if words[:1] == ["sleep"] and len(words) > 1 else 0.0
    except ValueError:
        return 0.0
