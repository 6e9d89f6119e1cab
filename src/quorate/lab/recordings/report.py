"""A directory of recordings, replayed in the order of their names, and what is said about it."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from quorate.lab.recordings.recording import (
    Blocks,
    Clocks,
    Command,
    File,
    MalformedRecording,
    Network,
    Power,
    Recording,
    Status,
    Writes,
    load,
)
from quorate.lab.recordings.replay import Outcome, Replay


@dataclass(frozen=True, slots=True)
class Verdict:
    """How one file fared."""

    name: str
    matched: int
    of: int
    misses: tuple[str, ...]
    others: str = ""
    """Steps that were not compared, in words."""

    @property
    def complete(self) -> bool:
        return not self.misses


def verdict(path: Path) -> Verdict:
    """Replay one file. What cannot be read or played is a miss, never an error."""
    try:
        recording = load(path)
    except MalformedRecording as error:
        return Verdict(path.stem, 0, 1, (f"not a recording: {error}",))
    others = ", ".join(f"{count} {kind}" for kind, count in sorted(recording.others.items()))
    if others and not recording.steps:
        return Verdict(path.stem, 0, 1, (f"nothing in it that can be played or compared: {others}",), others)
    try:
        outcomes = Replay(recording).run()
    except Exception as error:  # a hole in the model is a finding about this recording, not the end
        where = traceback.extract_tb(error.__traceback__)[-1]
        miss = f"the replay broke: {type(error).__name__}: {error} ({Path(where.filename).name}:{where.lineno})"
        return Verdict(path.stem, 0, max(1, len(recording.steps)), (miss,))
    misses = tuple(_miss(recording, outcome) for outcome in outcomes if not outcome.matched)
    return Verdict(path.stem, len(outcomes) - len(misses), len(outcomes), misses, others)


def _miss(recording: Recording, outcome: Outcome) -> str:
    step = outcome.step
    match step:
        case Command():
            what = f"{step.node} {step.command}"
        case Status():
            what = f"{step.node} status {step.label!r}"
        case File() | Power():
            what = f"{step.node} {type(step).__name__.lower()}"
        case Network() | Clocks():
            what = type(step).__name__.lower()
        case Writes() | Blocks():
            what = f"{step.node} {type(step).__name__.lower()} of {step.resource}"
        case _:
            what = f"{step.node} events2"
    at = f"at {step.at}" if step.at is not None else f"step {outcome.index}"
    return "\n".join([f"{at}: {what}", *(f"    {difference}" for difference in outcome.differences)])


def replay_all(directory: Path, say: Callable[[str], None], *, verbose: bool = False) -> bool:
    """Replay every recording in a directory; whether there are any and all match."""
    complete, count = 0, 0
    for found in _verdicts(directory):
        count += 1
        complete += found.complete
        say(f"{found.name}  {found.matched}/{found.of}" + (f"  (not compared: {found.others})" if found.others else ""))
        if verbose:
            for miss in found.misses:
                say("  " + miss.replace("\n", "\n  "))
    say(f"{complete} of {count} recordings match")
    return 0 < count == complete


def _verdicts(directory: Path) -> Iterator[Verdict]:
    return (verdict(path) for path in sorted(directory.glob("*.json")))
