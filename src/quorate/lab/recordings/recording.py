"""A recording as it lies in its file."""

from __future__ import annotations

from collections import Counter
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
    exit: int | None
    """None if it never ended, or took the machine with it."""
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
    wall: float | None = None
    """The recorder's clock at ``at``."""


class Power(Step, frozen=True, tag="power", kw_only=True):
    """A node's power was switched."""

    node: str
    on: bool


class Events(Step, frozen=True, tag="events2", kw_only=True):
    """A node's whole event stream."""

    node: str
    text: str


class Clocks(Step, frozen=True, tag="clocks", kw_only=True):
    """How far each node's clock was ahead of the recorder's: ``offset``, in seconds."""

    clocks: dict[str, dict[str, float]]


class Writes(Step, frozen=True, tag="writes", kw_only=True):
    """What a writer on a node did until then: block, begun at, ended at, and how it ended."""

    node: str
    resource: str
    writes: list[tuple[int, float | None, float | None, str | None]]


class Blocks(Step, frozen=True, tag="blocks", kw_only=True):
    """What the first blocks of a backing device held: ``number.tag`` as a writer wrote it, "-" for an empty one."""

    node: str
    resource: str
    blocks: list[str]


AnyStep = File | Command | Status | Network | Power | Events | Clocks | Writes | Blocks
_KINDS = frozenset({"file", "command", "status", "network", "power", "events2", "clocks", "writes", "blocks"})


class Recording(msgspec.Struct, frozen=True):
    """One scenario on the real cluster."""

    scenario: str
    steps: list[AnyStep]
    about: str = ""
    kernel: str = ""
    utils: str = ""
    #: Whether the machines keep their files over a power loss. The first recorders booted theirs from an image.
    files_kept: bool = False
    #: Steps of kinds that nobody here compares (a kernel log, a verdict, a note), by kind: how many.
    others: dict[str, int] = {}

    def nodes(self) -> tuple[str, ...]:
        """Every node that a step names."""
        names = {step.node for step in self.steps if not isinstance(step, Network | Clocks)}
        names |= {name for step in self.steps if isinstance(step, Network) for pair in step.cut for name in pair}
        return tuple(sorted(names))


def load(path: Path) -> Recording:
    """Read a file. Steps of kinds that are not known are left out, and counted. Raises MalformedRecording."""
    try:
        document = msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
        steps = document.get("steps")
        if isinstance(steps, list):
            kinds = [step.get("kind") if isinstance(step, dict) else None for step in steps]
            others = Counter(kind for kind in kinds if isinstance(kind, str) and kind not in _KINDS)
            known = [step for step, kind in zip(steps, kinds, strict=True) if kind not in others]
            document = {**document, "steps": known, "others": dict(others)}
        return msgspec.convert(document, Recording)
    except (OSError, msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError) as error:
        raise MalformedRecording(f"{path.name}: {error}") from None
