"""The duty of the younger of two primaries: whom it must not lose. In memory for the guard, noted for the next agent.

An agent that is started while the API is away knows no config; the two primaries go on all the same, and so does the
younger's duty. So it is written down beside the resource's file before the promotion, and an agent reads these notes
before anything else (``recall``). A config is the authority as soon as one has been read: what it says is taken on at
once, and the note follows. A note that no replica here withdraws stands for as long as the kernel has the resource.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from random import Random
from typing import Final

from quorate.agent.backoff import Patience
from quorate.agent.memory import Outcome
from quorate.agent.node import Node, Wake
from quorate.agent.replica.here import REPLICAS_BY_VOLUME, replicas_here, volume_key
from quorate.agent.steps import RemoveFile, Step, WriteFile
from quorate.api.reserved import why_no_resource
from quorate.api.storage.drbd import ConnectionState, DrbdConfig, DrbdStatus
from quorate.api.storage.rvr import ReplicatedVolumeReplica
from quorate.drbd.resource_file import linked_peers
from quorate.engine import Controller, Key, Plan, Reader, Watch
from quorate.engine.logs import get_logger

log = get_logger(__name__)

#: Of the guard with its commands, and of whoever writes its notes.
PATIENCE: Final = Patience(first=0.5, longest=5.0)
NOTE: Final = "note"
_SUFFIX: Final = ".yields"
_FIRST: Final = "peers"
#: Seconds between two tries to read the notes.
_RETRY: Final = 1.0


@dataclass(frozen=True, slots=True)
class Duty:
    """To yield when one of these peers is lost."""

    #: Their node ids; None: they are not known, so everybody whom the kernel has a link to.
    peers: frozenset[int] | None = None

    @classmethod
    def of(cls, config: DrbdConfig) -> Duty | None:
        """What a config asks for. A peer that joins or leaves is hidden: it holds up no quorum, and comes and goes."""
        if not config.yields:
            return None
        return cls(frozenset(peer.node_id for peer in linked_peers(config) if not peer.hidden))

    @classmethod
    def read(cls, note: str) -> Duty:
        """From a note, which may be torn."""
        first, *ids = note.split() or [""]
        readable = first == _FIRST and note.endswith("\n") and all(each.isascii() and each.isdigit() for each in ids)
        return cls(frozenset(map(int, ids)) if readable else None)

    @property
    def note(self) -> str:
        """The text of a note."""
        return f"{' '.join((_FIRST, *map(str, sorted(self.peers or ()))))}\n"

    def is_broken_by(self, status: DrbdStatus) -> bool:
        """Whether one of those is lost."""
        up = {link.peer_node_id for link in status.connections if link.connection_state == ConnectionState.CONNECTED}
        wanted = {link.peer_node_id for link in status.connections} if self.peers is None else self.peers
        return not up.issuperset(wanted)


def note_of(node: Node, resource: str) -> str:
    """Where the note of a resource is."""
    return f"{node.settings.config_directory}/{resource}{_SUFFIX}"


def is_noted(node: Node, resource: str, config: DrbdConfig) -> bool:
    """Whether the next agent would know what this config asks for."""
    duty = Duty.of(config)
    return _says(node, resource, None if duty is None else duty.note)


async def recall(node: Node) -> None:
    """Take on what the notes say, before anything is known of the API."""
    directory = node.settings.config_directory
    while True:
        try:
            names = await node.machine.list_directory(directory)
            break
        except OSError as error:
            log.error("the notes of second primaries cannot be read", directory=directory, error=str(error))
            await node.clock.sleep(_RETRY)
    for name in names:
        if name.endswith(_SUFFIX) and not why_no_resource(name.removesuffix(_SUFFIX)):
            await _recall_one(node, name.removesuffix(_SUFFIX))


async def _recall_one(node: Node, resource: str) -> None:
    path = note_of(node, resource)
    sighting = node.memory.file(path)
    if sighting.known or resource in node.memory.duties:
        return  # A config has been read meanwhile.
    marks, text = sighting.marks, ""
    try:
        text = (await node.machine.read_file(path)).decode(errors="replace")
    except OSError as error:
        log.error("a note of a second primary cannot be read", path=path, error=str(error))
    if sighting.marks == marks and resource not in node.memory.duties:
        sighting.saw(text, marks=marks)
        node.memory.duties[resource] = Duty.read(text)
        log.warning("a second primary is to be watched, as noted", resource=resource)
    Wake(node.volumes, Key("", resource))()


@dataclass(frozen=True, slots=True)
class Noted:
    """A duty: as it is to be, as it is, and whether it is written down."""

    resource: str
    intended: Duty | None
    present: Duty | None
    noted: bool
    tried: Outcome | None = None


def duties(node: Node) -> Controller[Noted]:
    """The controller that takes on what configs ask for. It writes notes, and nothing to the API."""
    memory = node.memory

    def observe(reader: Reader, key: Key) -> Noted | None:
        if why_no_resource(key.name):
            return None
        found, present = replicas_here(node, reader, key.name), memory.duties.get(key.name)
        if found:
            intended = Duty.of(found[0].status.drbd.config)
        else:
            intended = None if present is None or _is_gone(node, key.name) else present
        noted = _says(node, key.name, None if intended is None else intended.note)
        if intended == present and noted:
            return None
        return Noted(key.name, intended, present, noted, memory.last(note_work(key.name), NOTE))

    def decide(view: Noted, now: datetime, _: Random) -> Plan:
        key = Key("", view.resource)
        effects: list[Callable[[], None]] = []
        if view.intended != view.present:
            effects.append(partial(_take_on, node, view.resource, view.intended))
        if view.noted:
            return Plan(effects=tuple(effects))
        text = view.intended.note if view.intended is not None else ""
        wait = PATIENCE.left(view.tried, text, now)
        if wait > 0:
            return Plan(effects=tuple(effects), requeue_after=wait)
        path = note_of(node, view.resource)
        step: Step = WriteFile(path, text, NOTE, text) if text else RemoveFile(path, NOTE, text)
        effects.append(node.work(note_work(view.resource), (step,), node.volumes, key, urgent=True))
        return Plan(effects=tuple(effects), requeue_after=PATIENCE.first)

    return Controller(
        name="dual-primary-duties",
        watches=(Watch(ReplicatedVolumeReplica, volume_key, when=_may_yield),),
        observe=observe,
        decide=decide,
        indexes=(REPLICAS_BY_VOLUME,),
        signals=(node.volumes.only(lambda key: key.name in memory.duties),),
    )


def note_work(resource: str) -> str:
    """The name under which notes are written: not behind other work on the resource, which may hang."""
    return f"note/{resource}"


def _take_on(node: Node, resource: str, duty: Duty | None) -> None:
    if duty is None:
        node.memory.duties.pop(resource, None)
    else:
        node.memory.duties[resource] = duty
        Wake(node.volumes, Key("", resource))()


def _says(node: Node, resource: str, text: str | None) -> bool:
    """Whether the note says this; None: whether there is none."""
    sighting = node.memory.files.get(note_of(node, resource))
    if sighting is None or not sighting.known:
        return text is None
    return sighting.current and sighting.value == text


def _is_gone(node: Node, resource: str) -> bool:
    sighting = node.memory.resource(resource)
    return sighting.current and sighting.value is None


def _may_yield(before: ReplicatedVolumeReplica | None, after: ReplicatedVolumeReplica | None) -> bool:
    """One that comes or goes may change which of two counts."""
    return before is None or after is None or before.status.drbd.config.yields or after.status.drbd.config.yields
