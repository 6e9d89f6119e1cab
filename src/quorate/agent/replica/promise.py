"""How many good copies a write is promised to be on, as the agent keeps it for a primary without a disk of its own.

DRBD does not: what a member with a disk is bound by (``quorum-minimum-redundancy``) does not bind a primary without one
(``e4_hidden_primary_detach``). So its agent knows the promise, and whom it counts; ``hold`` acts on it. It is kept in
memory, and written down beside the resource's file for a primary without a disk: an agent that is started while the
API is away knows no config, and one that finds I/O suspended has to know whether an agent before it has done that. A
config is the authority as soon as one has been read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from random import Random
from typing import Final

from quorate.agent.memory import Outcome
from quorate.agent.node import Node, Wake
from quorate.agent.replica.duty import PATIENCE
from quorate.agent.replica.here import REPLICAS_BY_VOLUME, replicas_here, volume_key
from quorate.agent.replica.kernel import good_copies, is_primary, keeps_a_copy
from quorate.agent.steps import RemoveFile, Step, WriteFile
from quorate.api.reserved import why_no_resource
from quorate.api.storage.drbd import Connection, DrbdConfig, DrbdStatus, ReplicaType
from quorate.api.storage.rvr import ReplicatedVolumeReplica
from quorate.engine import Controller, Key, Plan, Reader, Watch
from quorate.engine.logs import get_logger

log = get_logger(__name__)

NOTE: Final = "note"
_SUFFIX: Final = ".copies"
_FIRST: Final = "copies"
_HELD: Final = "held"
#: Seconds between two tries to read the notes.
_RETRY: Final = 1.0


@dataclass(frozen=True, slots=True)
class Promise:
    """That a write is on so many good copies before it is acknowledged."""

    copies: int
    #: Node ids of the members whose copies count; None: they are not known, so everybody's whom the kernel shows.
    peers: frozenset[int] | None = None
    #: I/O is suspended by this agent, or one before it, for the sake of this; or is about to be.
    held: bool = False

    @classmethod
    def of(cls, config: DrbdConfig) -> Promise | None:
        """What a config asks for. One copy needs nobody's care: without a disk there is no write that is on none."""
        copies = config.quorum_minimum_redundancy or 1
        if copies < 2:
            return None
        counted = (peer for peer in config.peers if peer.type is ReplicaType.DISKFUL and not peer.hidden)
        return cls(copies, frozenset(peer.node_id for peer in counted))

    @classmethod
    def read(cls, note: str) -> Promise:
        """From a note. One that cannot be read says that something was promised, and may have been held."""
        first, *words = note.split() or [""]
        held, ids = _HELD in words, [word for word in words if word != _HELD]
        numbers = [int(each) for each in ids if each.isascii() and each.isdigit()]
        if first != _FIRST or not note.endswith("\n") or len(numbers) != len(ids) or not numbers:
            return cls(2, None, held=True)
        return cls(numbers[0], frozenset(numbers[1:]), held=held)

    @property
    def note(self) -> str:
        """The text of a note."""
        words = (_FIRST, str(self.copies), *map(str, sorted(self.peers or ())), *((_HELD,) if self.held else ()))
        return f"{' '.join(words)}\n"

    def counts(self, link: Connection) -> bool:
        """Whether the copy at the other end is one of those."""
        return self.peers is None or link.peer_node_id in self.peers

    def is_broken_by(self, status: DrbdStatus) -> bool:
        """Whether a write could be acknowledged now that is on too few: by a primary without a disk of its own."""
        return is_primary(status) and not keeps_a_copy(status) and good_copies(status, self.peers) < self.copies


def note_of(node: Node, resource: str) -> str:
    """Where the note of a resource is."""
    return f"{node.settings.config_directory}/{resource}{_SUFFIX}"


def promise_work(resource: str) -> str:
    """The name under which its note is written: not behind other work on the resource, which may hang."""
    return f"promise/{resource}"


def is_noted(node: Node, resource: str, promise: Promise) -> bool:
    """Whether the next agent would know of it."""
    return _says(node, resource, promise.note)


def is_cared_for(node: Node, resource: str) -> bool:
    """Whether what happens to a resource may break its promise, or mend it: looks are made for few."""
    memory = node.memory
    promise = memory.promises.get(resource)
    if promise is None:
        return False
    return promise.held or (resource in memory.without_disk and resource in memory.primaries)


async def recall(node: Node) -> None:
    """Take on what the notes say, before anything is known of the API."""
    directory = node.settings.config_directory
    while True:
        try:
            names = await node.machine.list_directory(directory)
            break
        except OSError as error:
            log.error("the notes of promised copies cannot be read", directory=directory, error=str(error))
            await node.clock.sleep(_RETRY)
    for name in names:
        if name.endswith(_SUFFIX) and not why_no_resource(name.removesuffix(_SUFFIX)):
            await _recall_one(node, name.removesuffix(_SUFFIX))
    node.memory.promises_recalled = True
    for resource in node.memory.promises:
        Wake(node.volumes, Key("", resource))()


async def _recall_one(node: Node, resource: str) -> None:
    path = note_of(node, resource)
    sighting = node.memory.file(path)
    marks, text = sighting.marks, ""
    try:
        text = (await node.machine.read_file(path)).decode(errors="replace")
    except OSError as error:
        log.error("a note of promised copies cannot be read", path=path, error=str(error))
    if sighting.known or sighting.marks != marks:
        return  # It has been written meanwhile.
    sighting.saw(text, marks=marks)
    noted, present = Promise.read(text), node.memory.promises.get(resource)
    # A config that has been read meanwhile knows better what is promised, but not what an agent before us has done.
    node.memory.promises[resource] = noted if present is None else replace(present, held=present.held or noted.held)
    if noted.held:
        log.warning("I/O is held for want of copies, as noted", resource=resource)


@dataclass(frozen=True, slots=True)
class Promised:
    """A promise: as it is to be, as it is, what the note is to say, and whether it does."""

    resource: str
    intended: Promise | None
    present: Promise | None
    text: str
    noted: bool
    tried: Outcome | None = None


def promises(node: Node) -> Controller[Promised]:
    """The controller that takes on what configs ask for. It writes notes, and nothing to the API."""
    memory = node.memory

    def observe(reader: Reader, key: Key) -> Promised | None:
        resource = key.name
        if why_no_resource(resource):
            return None
        found, present = replicas_here(node, reader, resource), memory.promises.get(resource)
        config = found[0].status.drbd.config if found else None
        intended = _intended(node, resource, config, present)
        text = ""
        if intended is not None and resource in memory.without_disk:
            wanted = intended.held or resource in memory.primaries or (config is not None and config.primary)
            text = intended.note if wanted else ""
        # Before it has been read it is not written over: it alone says whether an agent before this one holds.
        noted = not memory.promises_recalled or _says(node, resource, text or None)
        if intended == present and noted:
            return None
        return Promised(resource, intended, present, text, noted, memory.last(promise_work(resource), NOTE))

    def decide(view: Promised, now: datetime, _: Random) -> Plan:
        key = Key("", view.resource)
        effects: list[Callable[[], None]] = []
        if view.intended != view.present:
            effects.append(partial(_take_on, node, view.resource, view.intended))
        if view.noted:
            return Plan(effects=tuple(effects))
        wait = PATIENCE.left(view.tried, view.text, now)
        if wait > 0:
            return Plan(effects=tuple(effects), requeue_after=wait)
        step = note_step(node, view.resource, view.text)
        effects.append(node.work(promise_work(view.resource), (step,), node.volumes, key, urgent=True))
        return Plan(effects=tuple(effects), requeue_after=PATIENCE.first)

    return Controller(
        name="promised-copies",
        watches=(Watch(ReplicatedVolumeReplica, volume_key, when=_may_differ),),
        observe=observe,
        decide=decide,
        indexes=(REPLICAS_BY_VOLUME,),
        signals=(node.volumes.only(lambda key: is_cared_for(node, key.name) or _has_note(node, key.name)),),
    )


def note_step(node: Node, resource: str, text: str) -> Step:
    """Have the note say this; "": have none."""
    path = note_of(node, resource)
    return WriteFile(path, text, NOTE, text) if text else RemoveFile(path, NOTE, text)


def _intended(node: Node, resource: str, config: DrbdConfig | None, present: Promise | None) -> Promise | None:
    if config is None:
        seen = node.memory.kernel.get(resource)
        gone = seen is None or (seen.current and seen.value is None)
        return None if gone or not is_cared_for(node, resource) else present
    asked = Promise.of(config)
    if present is None or not present.held:
        return asked
    # What is held is let go by whoever holds it; nothing is promised any more, and so nothing is broken.
    return replace(asked, held=True) if asked is not None else Promise(0, present.peers, held=True)


def _take_on(node: Node, resource: str, promise: Promise | None) -> None:
    if promise is None:
        node.memory.promises.pop(resource, None)
        return
    present = node.memory.promises.get(resource)
    # Held meanwhile, or let go: what was decided a moment ago knows nothing of it.
    node.memory.promises[resource] = promise if present is None else replace(promise, held=present.held)
    if is_cared_for(node, resource):
        Wake(node.volumes, Key("", resource))()


def _says(node: Node, resource: str, text: str | None) -> bool:
    """Whether the note says this; None: whether there is none."""
    sighting = node.memory.files.get(note_of(node, resource))
    if sighting is None or not sighting.known:
        return text is None
    return sighting.current and sighting.value == text


def _has_note(node: Node, resource: str) -> bool:
    return not _says(node, resource, None)


def _may_differ(before: ReplicatedVolumeReplica | None, after: ReplicatedVolumeReplica | None) -> bool:
    """One that comes or goes may change which of two counts."""
    if before is None or after is None:
        return True
    old, new = before.status.drbd.config, after.status.drbd.config
    return old is not new and (Promise.of(old), old.primary) != (Promise.of(new), new.primary)
