"""One recording, step by step, on a fresh lab."""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quorate.lab.drives import Drive
from quorate.lab.host import Host, HostDown
from quorate.lab.kernel import World
from quorate.lab.recordings import before, clock, compare_command, compare_events, compare_status, writer
from quorate.lab.recordings.compare_status import Difference
from quorate.lab.recordings.recording import (
    AnyStep,
    Blocks,
    Clocks,
    Command,
    Events,
    File,
    Network,
    Power,
    Recording,
    Status,
    Writes,
)
from quorate.lab.recordings.timing import Timing
from quorate.lab.recordings.window import REACH, Expected, History
from quorate.lab.recordings.writer import RecordedWriter
from quorate.lab.tools.process import Result

_NODES = ("n1", "n2", "n3", "n4")
_DRIVE = 1 << 30
_SLOW_COMMAND = 10.0
_PATIENCE = 40.0  # for how long the recorder waited for a machine to end by itself
_ENDING = re.compile(r"\b(?:reboot|poweroff) -f\b")
_STREAM_LOST = re.compile(r"cat: (?:can't open|.*No such file or directory)")


@dataclass(frozen=True, slots=True)
class Outcome:
    """One step, and in what it was not as recorded."""

    index: int
    step: AnyStep
    differences: tuple[Difference, ...]

    @property
    def matched(self) -> bool:
        return not self.differences


@dataclass
class _Look:
    """A status that the model has not shown yet, and may still."""

    index: int
    step: Status | Command
    expected: list[Expected]
    """One for each resource: they go their own ways, and none waits for another."""
    until: float

    @property
    def differences(self) -> list[Difference]:
        return [difference for part in self.expected for difference in part.last]


class _Slack:
    """How far out-of-sync counts may be off: by the metadata that a volume has grown over since it was first seen."""

    def __init__(self) -> None:
        self._sizes: set[int] = set()

    def after(self, status: Sequence[Mapping[str, Any]]) -> int:
        devices = [device for resource in status for device in resource.get("devices", ())]
        sizes = {device["size"] for device in devices if device["size"]}
        self._sizes |= sizes
        return sum(compare_status.former_metadata(size) for size in self._sizes if size < max(sizes, default=0))


class Replay:
    """The lab, and how far the recording has been played on it."""

    def __init__(self, recording: Recording) -> None:
        given, drives = recording, before.drives(recording)
        self._recording = recording = before.on_volumes(given)
        self._writers: list[RecordedWriter] = []
        self._slots = clock.slots(recording)
        self._timing = Timing(recording, self._slots)
        self._world = World()
        self._hosts: dict[str, Host] = {}
        self._streams: dict[str, list[str]] = {}
        self._history = History()
        self._open: list[_Look] = []
        self._slack = _Slack()
        self._outcomes: dict[int, Outcome] = {}
        self._last_cut = 0.0
        self._began = 0.0
        for name in sorted({*_NODES, *recording.nodes()}):
            self._hosts[name] = _host(self._world, name, volatile_root=not recording.files_kept)
        for name, tenant in before.tenants(recording).items():
            before.settle(self._hosts[name], tenant)
        for name, names in drives.items():
            before.make_volumes(self._hosts[name], given, names)
        for host in self._hosts.values():
            self._listen(host)
        self._world.advance(self._world.now + 1.0)
        self._began = self._world.now

    def run(self) -> list[Outcome]:
        """Apply and compare every step."""
        for index, step in enumerate(self._recording.steps):
            self._advance(self._began + self._slots[index].start)
            if not _only_looks(step):
                self._close_looks()
                self._history.forget()
            try:
                self._take(index, step)
            except Exception as error:  # a hole in the model is a miss of this step, and the others still count
                where = traceback.extract_tb(error.__traceback__)[-1]
                hole = f"{type(error).__name__}: {error} ({Path(where.filename).name}:{where.lineno})"
                self._settle(index, step, [Difference("replay", "to go on", hole)])
        self._advance(self._world.now + REACH)
        self._close_looks()
        return [self._outcomes[index] for index in range(len(self._recording.steps))]

    def _take(self, index: int, step: AnyStep) -> None:
        match step:
            case File():
                self._hosts[step.node].files[step.path] = step.text.encode()
                self._settle(index, step, [])
            case Network():
                self._timing.tell(self._world, index, self._began)
                self._world.set_cut(step.cut)
                self._last_cut = self._world.now
                self._settle(index, step, [])
            case Power():
                host = self._hosts[step.node]
                if step.on != host.powered:
                    (host.power_on if step.on else host.power_off)()
                self._settle(index, step, [])
            case Command():
                self._command(index, step)
            case Status():
                self._look(index, step, Expected(step.status, self._slack.after(step.status)))
            case Events():
                self._settle(index, step, self._events(step))
            case Clocks():
                self._settle(index, step, [])
            case Writes():
                self._settle(index, step, list(writer.compare_writes(step, self._writers)))
            case Blocks():
                found = writer.compare_blocks(step, self._recording, self._hosts[step.node])
                self._settle(index, step, list(found))

    def _settle(self, index: int, step: AnyStep, differences: list[Difference]) -> None:
        self._outcomes[index] = Outcome(index, step, tuple(differences))

    # --- time ---

    def _advance(self, to: float) -> None:
        """Let time pass, and look after everything that happens."""
        while (upcoming := self._world.next_event_at()) is not None and upcoming <= to:
            self._world.advance(upcoming)
            self._glance()
        self._world.advance(max(to, self._world.now))

    def _glance(self) -> None:
        statuses = {name: host.kernel.status() for name, host in self._hosts.items() if host.powered}
        self._history.add(self._world.now, dict(statuses))
        for look in list(self._open):
            if self._world.now > look.until:
                self._close(look)
            elif look.step.node in statuses:
                seen = statuses[look.step.node]
                look.expected = [part for part in look.expected if part.differences(seen)]
                if not look.expected:
                    self._close(look)

    def _close(self, look: _Look) -> None:
        self._open.remove(look)
        self._settle(look.index, look.step, look.differences)

    def _close_looks(self) -> None:
        for look in list(self._open):
            self._close(look)

    # --- steps ---

    def _command(self, index: int, step: Command) -> None:
        host = self._hosts[step.node]
        ordered = writer.order(self._recording, index)
        if ordered is not None or step.exit is None:
            self._settle(index, step, self._write(host, ordered) if ordered else _end_machine(host, step))
            return
        own = writer.own_program(step, host) if host.powered else None
        if own is not None:
            self._settle(index, step, own)
            return
        before.clean_up(host, step)
        before.limit_space(host, step)
        try:
            running = host.start(["sh", "-c", step.command])
        except HostDown as error:
            self._settle(index, step, [Difference("command", "a node with power", str(error))])
            return
        self._advance(self._began + self._slots[index].end)
        limit = self._world.now + _SLOW_COMMAND
        while running.result is None and (upcoming := self._world.next_event_at()) is not None and upcoming <= limit:
            self._advance(upcoming)
        shown = compare_command.look(step)
        if shown is None:
            self._history.forget()
        if running.result is None:
            self._settle(index, step, [Difference("command", "to end", "it still runs")])
        elif shown is not None and running.result.exit_code == step.exit:
            self._look(index, step, Expected(shown.status, self._slack.after(shown.status), shown.resource))
        else:
            self._settle(index, step, compare_command.differences(step, running.result, self._log_since_cut(host)))

    def _write(self, host: Host, order: writer.Order) -> list[Difference]:
        minor = writer.minor_of(self._recording, order.resource)
        scripted = any(isinstance(step, Writes) for step in self._recording.steps)
        made = RecordedWriter(host, order, minor, self._began, scripted)
        self._writers.append(made)
        made.start()
        return []

    def _log_since_cut(self, host: Host) -> str:
        return "\n".join(line for moment, line in self._world.log(host.name) if moment >= self._last_cut)

    def _look(self, index: int, step: Status | Command, expected: Expected) -> None:
        host = self._hosts[step.node]
        seen = host.kernel.status() if host.powered else []
        missing = [part for part in expected.apart() if part.note(seen) and not self._history.shows(step.node, part)]
        if missing:
            self._open.append(_Look(index, step, missing, self._world.now + REACH))
        else:
            self._settle(index, step, [])

    # --- events ---

    def _listen(self, host: Host) -> None:
        """Have the node's event stream, as the recorder had it: into a file that a power loss takes."""
        said = self._streams[host.name] = []
        running = host.start(["drbdsetup", "events2", "--timestamps", "--full"], listener=said.append)
        running.on_exit(_forgetting(self._streams, host.name))

    def _events(self, step: Events) -> list[Difference]:
        stream = self._streams.get(step.node)
        if _STREAM_LOST.match(step.text):
            return [] if stream is None else [Difference("event stream", "lost with the node's power", "still there")]
        if stream is None:
            return [Difference("event stream", "there", "lost with the node's power")]
        return compare_events.differences("".join(stream), self._hosts[step.node].kernel.status())


def _end_machine(host: Host, step: Command) -> list[Difference]:
    """``reboot -f`` and ``poweroff -f`` end a machine, unless a sync before that waits for a suspended device."""
    if not _ENDING.search(step.command):
        return [Difference("command", "to hang", "it is not known for that")]
    hangs = any(resource["suspended"] for resource in host.kernel.status())
    host.world.later(_PATIENCE if hangs else 0.0, lambda: host.power_off() if host.powered else None)
    return []


def _only_looks(step: AnyStep) -> bool:
    """Whether a step leaves everything as it is."""
    return isinstance(step, Status | Events | Clocks | Writes | Blocks) or (
        isinstance(step, Command) and compare_command.look(step) is not None
    )


def _forgetting(streams: dict[str, list[str]], name: str) -> Callable[[], None]:
    def forget() -> None:
        streams.pop(name, None)

    return forget


def _host(world: World, name: str, *, volatile_root: bool) -> Host:
    """A machine as the recorded ones were: with one drive that is the volume group vg0."""
    number = name.removeprefix("n")
    address = f"10.77.0.{number}" if number.isdecimal() else f"10.77.1.{len(world.nodes) + 1}"
    host = Host(world, name, [address], volatile_root=volatile_root)
    host.insert_drive(Drive(serial=f"LAB-{name}", size=_DRIVE))
    _expect(host.execute(["vgcreate", "vg0", "/dev/sda"]))
    return host


def _expect(result: Result) -> None:
    assert result.exit_code == 0, result.output
