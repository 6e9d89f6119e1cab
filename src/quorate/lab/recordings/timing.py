"""Milliseconds that decide, taken from the recording where the rules alone do not.

Under a *numeric* quorum with a tie-breaker, the outcome of a loss depends on which side notices first and how long a
link takes to be cleaned up: the same scenario was recorded with both outcomes. For such members, and no others, the
recorded event stream says when they noticed, and the model is told: when, never what.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from dataclasses import dataclass

from quorate.lab.kernel import World
from quorate.lab.recordings.clock import Slot
from quorate.lab.recordings.recording import Command, Events, File, Network, Recording

_NUMERIC = re.compile(r"\bquorum\s+\d+\s*;")
_DISKLESS = re.compile(r"\bdisk\s+none\s*;")
_LOST = ("NetworkFailure", "Timeout", "BrokenPipe", "ProtocolError", "TearDown")
_HANGS_AFTER = 0.5
_CONNECTION = re.compile(
    r"^(?P<time>\S+) change connection name:\S+ peer-node-id:\d+ conn-name:(?P<peer>\S+) connection:(?P<state>\S+)"
)


@dataclass(frozen=True, slots=True)
class _Change:
    at: float
    peer: str
    state: str


class Timing:
    """What the event streams of a recording say about losses."""

    def __init__(self, recording: Recording, slots: list[Slot]) -> None:
        self._recording = recording
        self._slots = slots
        self._changes = {
            step.node: list(_changes(recording, slots, step)) for step in recording.steps if isinstance(step, Events)
        }

    def tell(self, world: World, index: int) -> None:
        """Tell the model what is recorded of the losses by the network step at ``index``."""
        step = self._recording.steps[index]
        assert isinstance(step, Network)
        now = self._slots[index].end
        until = next(
            (
                self._slots[later].end
                for later in range(index + 1, len(self._slots))
                if isinstance(self._recording.steps[later], Network)
            ),
            float("inf"),
        )
        numeric = self._numeric_members(index)
        for pair in step.cut:
            for observer, peer in (pair, tuple(reversed(pair))):
                if observer in numeric:
                    self._tell_loss(world, observer, peer, now, until)

    def _tell_loss(self, world: World, observer: str, peer: str, now: float, until: float) -> None:
        mine = [change for change in self._changes.get(observer, ()) if change.peer == peer and change.at >= now - 0.2]
        for position, change in enumerate(mine):
            if change.at > until:
                return
            if change.state in _LOST:
                world.expect_loss(observer, peer, max(now, change.at))
                over = next((later.at for later in mine[position + 1 :] if later.state not in _LOST), float("inf"))
                if over - change.at > _HANGS_AFTER:
                    world.hang_link(observer, peer, over)
                return

    def _numeric_members(self, index: int) -> set[str]:
        """Nodes whose own file has a numeric quorum, and a member without a disk."""
        files: dict[str, str] = {}
        for step in self._recording.steps[:index]:
            if isinstance(step, File) and step.path.endswith((".res", ".res_tmp")):
                files[step.node] = step.text
        return {node for node, text in files.items() if _NUMERIC.search(text) and _DISKLESS.search(text)}


def _changes(recording: Recording, slots: list[Slot], step: Events) -> Iterator[_Change]:
    offset = _offset(recording, slots, step)
    if offset is None:
        return
    for line in step.text.splitlines():
        if match := _CONNECTION.match(line):
            yield _Change(_seconds(match["time"]) - offset, match["peer"], match["state"])


def _offset(recording: Recording, slots: list[Slot], step: Events) -> float | None:
    """The node's wall clock at the recording's start: its first resource appears while its first ``up`` runs."""
    created = re.search(r"^(\S+) create resource ", step.text, re.MULTILINE)
    if created is None:
        return None
    for index, other in enumerate(recording.steps):
        if isinstance(other, Command) and other.node == step.node and re.search(r"\bdrbdadm up\b", other.command):
            began = slots[index - 1].end if index else 0.0
            return _seconds(created[1]) - min(began + 0.1, slots[index].end)
    return None


def _seconds(text: str) -> float:
    try:
        return datetime.datetime.fromisoformat(text).timestamp()
    except ValueError:
        return 0.0
