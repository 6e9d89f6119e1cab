"""Chance, taken from the recording where the rules alone do not decide. The model is told when, never what.

After a cut heals, which link finds itself first, and how soon, is chance: "reconnection can take more than a minute
although connect-int is 3 s". The event streams say when two nodes found each other, and so the model lets them.

With two diskful members and diskless ones, the outcome of a loss can depend on who notices first, and whether a lost
link is cleaned up before or after those left have counted each other: ``facts/drbd9.md`` has the same scenario with
both outcomes, under a numeric quorum and with a diskless primary. For such resources, and no others, the event streams
also say when each member noticed, cleaned up and counted.
"""

from __future__ import annotations

import datetime
import math
import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from quorate.lab.kernel import World
from quorate.lab.recordings.clock import Slot
from quorate.lab.recordings.recording import Clocks, Command, Events, File, Network, Recording

_DISKLESS = re.compile(r"\bdisk\s+none\s*;")
_DISK = re.compile(r"\bdisk\s+/\S+\s*;")
_LOST = ("NetworkFailure", "Timeout", "BrokenPipe", "ProtocolError", "TearDown")
_AT_ONCE = 0.002
_AHEAD = 0.2  # by how much a node's clock, set by its events, may run ahead
#: Not a state of a connection, but the first sign of a new one: a path that carries again.
_FOUND = "found"
_CHANGE = re.compile(
    r"^(?P<time>\S+) change (?:connection|path) name:(?P<resource>\S+) peer-node-id:\d+ conn-name:(?P<peer>\S+)"
    r"(?: connection:(?P<state>\S+)| .*established:(?P<found>yes))"
)


@dataclass(frozen=True, slots=True)
class _Change:
    at: float
    resource: str
    peer: str
    state: str


class Timing:
    """What the event streams of a recording say about losses."""

    def __init__(self, recording: Recording, slots: list[Slot]) -> None:
        self._recording = recording
        self._slots = slots
        self._slow = any(isinstance(step, Clocks) for step in recording.steps)
        streams = {step.node: step.text for step in recording.steps if isinstance(step, Events)}
        starts = clocks(recording, slots, streams)
        self._changes = {node: list(_changes(streams[node], start)) for node, start in starts.items()}

    def tell(self, world: World, index: int, began: float) -> None:
        """Tell the model what is recorded of the losses by the network step at ``index``."""
        step = self._recording.steps[index]
        assert isinstance(step, Network)
        now, until = self._slots[index].end, self._next_network(index)
        cut = {frozenset(pair) for pair in step.cut}
        for pair in sorted(self._cut_before(index) - cut, key=sorted):
            first, second = sorted(pair)
            self._tell_reconnect(world, first, second, now, until, began)
        if not self._milliseconds_decide(index):
            return
        self._tell_losses(world, cut, now, until, began)

    def _tell_reconnect(self, world: World, first: str, second: str, now: float, until: float, began: float) -> None:
        ends = ((first, second), (second, first))
        seen = [
            change
            for node, peer in ends
            for change in self._changes.get(node, ())
            if change.peer == peer and now <= change.at <= until
        ]
        for resource in sorted({change.resource for change in seen}):
            # Where the clocks are known, the moment at which they were connected counts: on a slow machine the first
            # to find each other are not always the first to be.
            moments = {
                state: min((c.at for c in seen if c.resource == resource and c.state == state), default=math.inf)
                for state in (_FOUND, "Connected")
            }
            at = moments["Connected"] if self._slow and moments["Connected"] < math.inf else moments[_FOUND]
            if at < math.inf:
                world.expect_reconnect(resource, first, second, began + at)

    def _tell_losses(self, world: World, cut: set[frozenset[str]], now: float, until: float, began: float) -> None:
        for observer in sorted(self._changes):
            peers = {name for pair in cut if observer in pair for name in pair} - {observer}
            seen = [
                change
                for change in self._changes[observer]
                if change.peer in peers and change.state != _FOUND and now - _AHEAD <= change.at
            ]
            for resource in sorted({change.resource for change in seen}):
                mine = [change for change in seen if change.resource == resource]
                for peer in sorted(peers):
                    self._tell_loss(world, observer, [c for c in mine if c.peer == peer], now, until, began)
                counted, waited = _counted(mine, until)
                if waited:
                    world.expect_count(resource, observer, began + max(now, counted))
                elif counted < math.inf:
                    world.expect_count_before(resource, observer, began + max(now, counted))

    def _tell_loss(
        self, world: World, observer: str, changes: Sequence[_Change], now: float, until: float, began: float
    ) -> None:
        """The loss belongs to this network step, so it comes before the next; cleaning up may take longer."""
        lost = next((change for change in changes if change.state in _LOST), None)
        if lost is None or lost.at > until:
            return
        world.expect_loss(lost.resource, observer, lost.peer, began + max(now, lost.at))
        after = changes[changes.index(lost) + 1 :]
        cleaned_up = next((change.at for change in after if change.state not in _LOST), math.inf)
        world.hang_link(lost.resource, observer, lost.peer, began + cleaned_up)

    def _cut_before(self, index: int) -> set[frozenset[str]]:
        earlier = [step for step in self._recording.steps[:index] if isinstance(step, Network)]
        return {frozenset(pair) for pair in earlier[-1].cut} if earlier else set()

    def _next_network(self, index: int) -> float:
        steps = zip(self._recording.steps[index + 1 :], self._slots[index + 1 :], strict=True)
        return next((slot.end for step, slot in steps if isinstance(step, Network)), math.inf)

    def _milliseconds_decide(self, index: int) -> bool:
        """Whether there are two diskful members, so that one loss leaves it to those without a disk."""
        files: dict[str, str] = {}
        for step in self._recording.steps[:index]:
            if isinstance(step, File) and step.path.endswith(".res"):
                files[step.node] = step.text
        return any(len(_DISK.findall(text)) == 2 and _DISKLESS.search(text) for text in files.values())


def _counted(changes: Sequence[_Change], until: float) -> tuple[float, bool]:
    """When a member had counted those that are left after a loss before ``until``, and whether that kept it waiting.

    It stays Unconnected until then, and then tries to connect. One that tries at once had counted before it was
    Unconnected: that is all that is known then.
    """
    since: dict[str, float] = {}
    for change in changes:
        if change.state == "Unconnected" and change.at <= until:
            since[change.peer] = change.at
        elif change.peer in since:
            unconnected = since[change.peer]
            waited = change.at - unconnected > _AT_ONCE
            return change.at if waited else unconnected, waited
    return math.inf, False


def clocks(recording: Recording, slots: list[Slot], streams: Mapping[str, str]) -> dict[str, float]:
    """What each node's clock showed when the recording began.

    Told by the recording, or: one node is set by its first ``up``, during which its resource appears, and the others by
    what two nodes see at the same instant: that they are connected.
    """
    walls = [step.wall - step.at for step in recording.steps if isinstance(step, Network) and step.wall and step.at]
    told = {name: clock for step in recording.steps if isinstance(step, Clocks) for name, clock in step.clocks.items()}
    if walls and set(streams) <= set(told):
        return {node: walls[0] + told[node].get("offset", 0.0) for node in streams}
    starts: dict[str, float] = {}
    for node in sorted(streams):
        start = _start_by_up(recording, slots, node, streams[node])
        if start is not None:
            starts[node] = start
            break
    missing = sorted(set(streams) - set(starts))
    while missing:
        for node in missing:
            lag = next(
                (lag + starts[known] for known in starts if (lag := _lag(streams, known, node)) is not None), None
            )
            if lag is not None:
                starts[node] = lag
                break
        else:
            break
        missing.remove(node)
    return starts


def _start_by_up(recording: Recording, slots: list[Slot], node: str, stream: str) -> float | None:
    created = re.search(r"^(\S+) create resource ", stream, re.MULTILINE)
    if created is None:
        return None
    for index, step in enumerate(recording.steps):
        if isinstance(step, Command) and step.node == node and re.search(r"\bdrbdadm up\b", step.command):
            began = slots[index - 1].end if index else 0.0
            return _seconds(created[1]) - min(began + 0.1, slots[index].end)
    return None


def _lag(streams: Mapping[str, str], first: str, second: str) -> float | None:
    """By how much the second node's clock is ahead of the first's."""
    here, there = meetings(streams[first], second), meetings(streams[second], first)
    if not here or len(here) != len(there):
        return None
    return statistics.median(other - one for one, other in zip(here, there, strict=True))


def meetings(stream: str, peer: str) -> list[float]:
    """When a node saw itself connected to a peer, by its own clock."""
    return [change.at for change in _changes(stream, 0.0) if change.peer == peer and change.state == "Connected"]


def _changes(stream: str, start: float) -> Iterator[_Change]:
    for line in stream.splitlines():
        if match := _CHANGE.match(line):
            yield _Change(_seconds(match["time"]) - start, match["resource"], match["peer"], match["state"] or _FOUND)


def _seconds(text: str) -> float:
    try:
        return datetime.datetime.fromisoformat(text).timestamp()
    except ValueError:
        return 0.0
