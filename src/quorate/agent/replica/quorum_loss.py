"""A primary that has lost quorum: it is given a new generation before its links can heal, and its loss is kept in mind.

When such a primary meets its first peer again it goes on, and what was blocked is acknowledged; the peer that comes
second has the same generation, so the kernel takes the two for equal, erases its mark, and the write is missing there
(``facts/drbd9-races``, E2: 12 of 12 after idleness). ``new-current-uuid`` on the suspended primary makes every meeting
a real one (P4: 0 of 5, in every order of healing; an ordinary fail-over meanwhile is not spoilt).

That has to be done within the links' reconnect interval, three seconds. So it begins with the kernel's own event, waits
for nobody, and is urgent, as the guard of a second primary is. It is done once per loss, only on the member's own word
that it is Primary, has a good disk and stands still for want of quorum, and only where it is known to help and to do no
harm (``gains_from_new_generation``).

When the loss was, and whether a new generation came in time, is reported (``actual.quorumLostAt``): the copies are
compared afterwards. It is noted beside the resource's file, so that an agent that is started anew, or finds the API
again, knows of it.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, NoReturn

from quorate.agent.backoff import Patience
from quorate.agent.node import Node, Wake
from quorate.agent.replica.kernel import device, has_disk, is_primary
from quorate.agent.steps import KERNEL, Look, Run, WriteFile, kernel_of
from quorate.api.reserved import why_no_resource
from quorate.api.storage.drbd import DiskState, DrbdConfig, DrbdStatus, ReplicaType
from quorate.engine import Key
from quorate.engine.logs import get_logger

log = get_logger(__name__)

GENERATION: Final = "generation"
NOTE: Final = "note"
PATIENCE: Final = Patience(first=0.5, longest=5.0)
_SUFFIX: Final = ".lost"
_FIRST: Final = "lost"
_STANDING, _PREVENTED = "standing", "prevented"
#: Seconds between two tries to read the notes.
_RETRY: Final = 1.0
#: So many copies make a peer that comes second possible.
_COPIES: Final = 3


@dataclass(frozen=True, slots=True)
class QuorumLoss:
    """The last time that a resource lost quorum while it was Primary here."""

    at: datetime
    #: It lasts.
    standing: bool = True
    #: A new generation came before it could go on.
    prevented: bool = False

    @classmethod
    def read(cls, note: str) -> QuorumLoss | None:
        """From a note, which may be torn; None: it says nothing."""
        first, *words = note.split() or [""]
        try:
            at = datetime.fromisoformat(words[0]) if first == _FIRST and words and note.endswith("\n") else None
        except ValueError:
            return None
        return None if at is None or at.tzinfo is None else cls(at, _STANDING in words, _PREVENTED in words)

    @property
    def note(self) -> str:
        """The text of a note."""
        words = [_FIRST, self.at.isoformat(), *([_STANDING] if self.standing else [])]
        return f"{' '.join([*words, *([_PREVENTED] if self.prevented else [])])}\n"


def gains_from_new_generation(config: DrbdConfig) -> bool:
    """Whether a peer can come second, and a new generation is known to make the kernel copy to it.

    So it is with three copies (3D, tried in every order). With two, nobody comes second who has data: a primary goes
    on only with the other copy, and what a new generation would do when the other side went on by tie-break is not
    known. The younger of two primaries has to give way instead, with what it has. Without a disk there is no generation
    to renew.
    """
    if config.type is not ReplicaType.DISKFUL or config.hidden or config.allow_two_primaries or config.yields:
        return False
    copies = 1 + sum(peer.type is ReplicaType.DISKFUL and not peer.hidden for peer in config.peers)
    return copies >= _COPIES


def stands(status: DrbdStatus | None) -> bool:
    """Whether a member is Primary, with a disk, and waits for quorum."""
    found = device(status)
    if status is None or found is None:
        return False
    return is_primary(status) and has_disk(status) and status.suspended_quorum and not found.quorum


def note_of(node: Node, resource: str) -> str:
    """Where the note of a resource is."""
    return f"{node.settings.config_directory}/{resource}{_SUFFIX}"


def loss_work(resource: str) -> str:
    """The name under which a new generation is made: not behind other work on the resource, which may hang."""
    return f"quorum/{resource}"


def loss_note_work(resource: str) -> str:
    """The name under which a loss is noted: neither waits for the other."""
    return f"quorum-note/{resource}"


class QuorumLossWatch:
    """Watches every resource here for the loss of its quorum under a user."""

    def __init__(self, node: Node) -> None:
        self._node = node
        #: Resources to which something has happened, in that order.
        self._due: dict[str, None] = {}
        self._woken = asyncio.Event()

    async def keep(self) -> NoReturn:
        """Watch for as long as the agent lives."""
        seen = self._node.volumes.only(self._is_news).subscribe(self._wake)
        told = self._node.quorum.subscribe(self._wake)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._recall(), name="recall of losses of quorum")
                while True:
                    await self._woken.wait()
                    self._woken.clear()
                    due, self._due = self._due, {}
                    for resource in due:
                        self.act(resource)
        finally:
            seen()
            told()

    def act(self, resource: str) -> None:
        """Do what is due about one resource."""
        node, memory, key = self._node, self._node.memory, Key("", resource)
        sighting, loss = memory.resource(resource), memory.quorum_losses.get(resource)
        if not sighting.current:
            looked = memory.last(loss_work(resource), "look")
            wait = 0.0 if looked is None or looked.succeeded else PATIENCE.left(looked, "", node.clock.now())
            if wait > 0:
                asyncio.get_running_loop().call_later(wait, self._wake, key)
                return
            look = (Look(KERNEL, resource),)
            node.hands.start(loss_work(resource), look, Wake(node.quorum, key), urgent=True)
            return
        status, now = sighting.value, node.clock.now()
        if status is None or not stands(status):
            if loss is not None and loss.standing:
                self._take_on(resource, replace(loss, standing=False))
        else:
            if loss is None or not loss.standing:
                loss = QuorumLoss(at=now)
                log.warning("quorum is lost under a user", resource=resource)
                self._take_on(resource, loss)
            if not loss.prevented and resource in memory.renewable and _is_good(status):
                self._renew(resource, status, loss, now)
        self._write_down(resource, now)

    def _renew(self, resource: str, status: DrbdStatus, loss: QuorumLoss, now: datetime) -> None:
        """Make a new generation; it came in time if the kernel still waits for quorum after it."""
        node, about, key = self._node, loss.at.isoformat(), Key("", resource)
        last = node.memory.last(loss_work(resource), GENERATION)
        if last is not None and last.about == about and last.succeeded:
            self._take_on(resource, replace(loss, prevented=True))
            return
        wait = PATIENCE.left(last, about, now)
        if wait > 0:
            asyncio.get_running_loop().call_later(wait, self._wake, key)
            return
        steps = (new_generation(resource, status, about), Look(KERNEL, resource))
        node.hands.start(loss_work(resource), steps, Wake(node.quorum, key), urgent=True)

    def _take_on(self, resource: str, loss: QuorumLoss) -> None:
        """Keep it in mind, and have it reported."""
        self._node.memory.quorum_losses[resource] = loss
        Wake(self._node.volumes, Key("", resource))()

    def _write_down(self, resource: str, now: datetime) -> None:
        """Note it for the next agent."""
        node, loss = self._node, self._node.memory.quorum_losses.get(resource)
        path, key = note_of(node, resource), Key("", resource)
        written = node.memory.files.get(path)
        if loss is None or (written is not None and written.current and written.value == loss.note):
            return
        wait = PATIENCE.left(node.memory.last(loss_note_work(resource), NOTE), loss.note, now)
        if wait > 0:
            asyncio.get_running_loop().call_later(wait, self._wake, key)
            return
        step = WriteFile(path, loss.note, NOTE, loss.note)
        node.hands.start(loss_note_work(resource), (step,), Wake(node.quorum, key), urgent=True)

    def _is_news(self, key: Key) -> bool:
        """Whether what was just seen of a resource is the beginning or the end of a loss."""
        memory = self._node.memory
        sighting, loss = memory.kernel.get(key.name), memory.quorum_losses.get(key.name)
        if sighting is None or not sighting.current:
            return False
        return stands(sighting.value) != (loss is not None and loss.standing)

    async def _recall(self) -> None:
        """Take on what the notes say, before anything is known of the API."""
        node, directory = self._node, self._node.settings.config_directory
        while True:
            try:
                names = await node.machine.list_directory(directory)
                break
            except OSError as error:
                log.error("the notes of lost quorum cannot be read", directory=directory, error=str(error))
                await node.clock.sleep(_RETRY)
        for name in names:
            resource = name.removesuffix(_SUFFIX)
            if name == resource or why_no_resource(resource) or resource in node.memory.quorum_losses:
                continue
            path = note_of(node, resource)
            sighting = node.memory.file(path)
            marks, text = sighting.marks, ""
            try:
                text = (await node.machine.read_file(path)).decode(errors="replace")
            except OSError as error:
                log.error("a note of lost quorum cannot be read", path=path, error=str(error))
            loss = QuorumLoss.read(text)
            if loss is None and not text:
                continue
            if resource not in node.memory.quorum_losses:
                # A torn note tells that there was one, and no more.
                node.memory.quorum_losses[resource] = loss or QuorumLoss(at=node.clock.now())
                # Quorum may have come back since, and be lost again: what was made for that loss is no good for this.
                node.memory.end_quorum_loss(resource)
                sighting.saw(text, marks=marks)
                Wake(node.quorum, Key("", resource))()
                Wake(node.volumes, Key("", resource))()

    def _wake(self, key: Key) -> None:
        self._due[key.name] = None
        self._woken.set()


def new_generation(resource: str, status: DrbdStatus, about: str) -> Run:
    """Give the suspended primary a generation of its own."""
    argv = ("drbdsetup", "new-current-uuid", str(status.devices[0].minor))
    return Run(argv, GENERATION, about, changes=(kernel_of(resource),))


def _is_good(status: DrbdStatus) -> bool:
    return status.devices[0].disk_state == DiskState.UP_TO_DATE
