"""A recording as it lies in its file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from quorate.errors import QuorateError


class MalformedRecording(QuorateError):
    """A file that is not a recording. It counts as a miss."""


class Step(msgspec.Struct, frozen=True, tag_field="kind"):
    """One thing that was done or seen."""

    at: float | None = None


class File(Step, frozen=True, tag="file", kw_only=True):
    """A file was written."""

    node: str
    path: str
    text: str


class Command(Step, frozen=True, tag="command", kw_only=True):
    """A command was run, in a shell, to its end."""

    node: str
    command: str
    exit: int
    output: str
    note: str | None = None


class Status(Step, frozen=True, tag="status", kw_only=True):
    """What ``drbdsetup status --json`` said."""

    node: str
    label: str
    status: list[dict[str, Any]]


class Network(Step, frozen=True, tag="network", kw_only=True):
    """From now on these pairs of nodes cannot reach each other, and all others can."""

    cut: list[tuple[str, str]]


class Power(Step, frozen=True, tag="power", kw_only=True):
    """A node's power was switched."""

    node: str
    on: bool


class Events(Step, frozen=True, tag="events2", kw_only=True):
    """A node's whole event stream."""

    node: str
    text: str


AnyStep = File | Command | Status | Network | Power | Events


class Recording(msgspec.Struct, frozen=True):
    """One scenario on the real cluster."""

    scenario: str
    steps: list[AnyStep]
    about: str = ""
    kernel: str = ""
    utils: str = ""

    def nodes(self) -> tuple[str, ...]:
        """Every node that a step names."""
        names = {step.node for step in self.steps if not isinstance(step, Network)}
        names |= {name for step in self.steps if isinstance(step, Network) for pair in step.cut for name in pair}
        return tuple(sorted(names))


def load(path: Path) -> Recording:
    """Read a file. Raises MalformedRecording."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Recording)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise MalformedRecording(f"{path.name}: {error}") from None
