"""When each step of a recording happens.

``at`` is the moment a step was over. A command that sleeps was begun that much earlier; all others take no time in the
lab and are run at their end. One old recording has no times: there, steps are spaced as the recorder spaced them
elsewhere, and the first look after a change waits for it.
"""

from __future__ import annotations

from dataclasses import dataclass

from quorate.lab.recordings.recording import AnyStep, Command, Recording, Status
from quorate.lab.tools import durations
from quorate.lab.tools.shell import syntax, tree

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
    """For how long a command line sleeps before it ends, as far as that can be told without running it."""
    try:
        return _sequence(syntax.parse(command))
    except tree.ShellSyntaxError:
        return 0.0


def _sequence(commands: tree.Sequence) -> float:
    return sum(_pipeline(pipeline) for part in commands.parts if not part.background for pipeline in _pipelines(part))


def _pipelines(part: tree.AndOr) -> list[tree.Pipeline]:
    return [part.first, *(pipeline for _, pipeline in part.rest)]


def _pipeline(pipeline: tree.Pipeline) -> float:
    return max(_command(command) for command in pipeline.commands)


def _command(command: tree.Command) -> float:
    match command:
        case tree.Simple():
            return _simple(command)
        case tree.Group():
            return _sequence(command.body)
        case tree.For():
            return len(command.words) * _sequence(command.body)
        case tree.If():
            return max(map(_sequence, (*(body for _, body in command.branches), command.otherwise)))
        case tree.While():
            return 0.0


def _simple(command: tree.Simple) -> float:
    words = [word.bare or "" for word in command.words]
    try:
        return sum(map(durations.seconds, words[1:])) if words[:1] == ["sleep"] else 0.0
    except ValueError:
        return 0.0
