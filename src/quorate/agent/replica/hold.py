"""The hold of a primary without a disk: its I/O is suspended while fewer good copies are connected than promised.

When one of two copies goes under such a primary it may go on with the other, for as long as it is let
(``e4_hidden_primary_detach``: 78 writes in 12 s, in two of three tries). Its agent suspends it (``suspend-io``) as soon
as the kernel tells, and resumes when there are enough copies again. That needs no API, waits for no other work on the
resource or the node, and never touches the device: ``suspend-io`` does not wait for what is written either.

It is a change of state like any other, so the kernel counts, and a primary refuses what costs it its quorum: the very
quorum that it has no more, and goes on with. What cannot be refused is the end of a link. So the links to members
without a good copy are cut: it counts, and stands still by itself. That has to be so in any case: a primary that lives
on an old quorum refuses everything that makes it count, a disk that is to be attached elsewhere too (-10). Links that
were cut are made again by ``adjust``, as any that is StandAlone.

Only what was suspended here is resumed here, and that is known as long as a command may still do it: the copies may be
back before a slow ``suspend-io`` has had its effect. It is written down first, for the agent that comes after this one;
but a disk that does not take the note at once is not waited for. A primary that was overtaken and became Secondary
keeps the suspension, and would be promoted with it: it is let go there too.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, NoReturn

from quorate.agent.backoff import Patience
from quorate.agent.kernel_watch import NO_DISK
from quorate.agent.memory import Outcome
from quorate.agent.node import Node, Wake
from quorate.agent.replica.duty import PATIENCE
from quorate.agent.replica.guard import cut
from quorate.agent.replica.kernel import device, has_good_copy
from quorate.agent.replica.promise import Promise, is_cared_for, is_noted, note_step, promise_work, recall
from quorate.agent.replica.verdict import FINE, Verdict
from quorate.agent.steps import KERNEL, Look, Run, kernel_of
from quorate.api.storage.drbd import Connection, ConnectionState, Device, DrbdStatus
from quorate.engine import Key
from quorate.engine.logs import get_logger

log = get_logger(__name__)

HOLD: Final = "hold"
#: What is tried, one after the other.
_SUSPEND: Final = "suspend-io"
_CUT: Final = "cut"
_COUNT: Final = "count"
#: Having it count may help little: a member that has lost its disk may keep a quorum by other rules.
COUNTING: Final = Patience(first=5.0, longest=60.0)
#: Seconds that the note of a hold may take before I/O is suspended without it: of the 100 ms that all of it may take.
NOTE_PATIENCE: Final = 0.03


@dataclass(frozen=True, slots=True)
class Watched:
    """What is seen of one resource."""

    resource: str
    promise: Promise
    current: bool
    status: DrbdStatus | None
    #: The next agent would know what this one does; or it has been waited for long enough.
    noted: bool = True
    #: A command of the hold is under way: it may suspend I/O yet, whatever is seen now.
    busy: bool = False
    looked: Outcome | None = None
    tried: Outcome | None = None


@dataclass(frozen=True, slots=True)
class Grip:
    """What follows: what is to be done, and whether the promise counts as held from now on."""

    verdict: Verdict = FINE
    held: bool = False


def hold_work(resource: str) -> str:
    """The name under which it is done: not behind other work on the resource."""
    return f"hold/{resource}"


def decide(view: Watched, now: datetime) -> Grip:
    """Look; suspend what breaks its promise, and resume what was suspended for that and does not."""
    held, status = view.promise.held, view.status
    if not view.current:
        failed = view.looked is not None and not view.looked.succeeded
        wait = PATIENCE.left(view.looked, "", now) if failed else 0.0
        return Grip(Verdict(steps=() if wait > 0 else (Look(KERNEL, view.resource),), again=wait or None), held)
    found = device(status)
    if status is None or found is None:
        return Grip(held=held and view.busy)  # The suspension has gone with it.
    if view.promise.is_broken_by(status):
        if not status.suspended_user:
            return Grip(_suspend(view, status, found, now), held=True)
        # By us; or by somebody else, who will find it broken when he resumes.
        return Grip(_have_it_count(view, status, now) if held and found.quorum else FINE, held=held)
    if held and status.suspended_user:
        return Grip(_try(view, "resume-io", (_io(view, "resume-io", found.minor),), now), held=True)
    return Grip(held=held and view.busy)


def _suspend(view: Watched, status: DrbdStatus, found: Device, now: datetime) -> Verdict:
    minor = found.minor
    lost = tuple(link for link in _without_copy(view, status) if _has_no_disk(link))
    if lost and found.quorum:
        # There is nothing that could be written there. It stands still by itself then, as a rule: one command sooner.
        return _try(view, _COUNT, _cuts(view, lost, _COUNT), now)
    if not view.noted:
        return Verdict(again=NOTE_PATIENCE)
    refused = view.tried is not None and not view.tried.succeeded and view.tried.about in (_SUSPEND, _CUT)
    if not refused:
        return _try(view, _SUSPEND, (_io(view, _SUSPEND, minor),), now)
    links = _without_copy(view, status) or _in_touch(status)
    return _try(view, _CUT, (*_cuts(view, links, _CUT), _io(view, _SUSPEND, minor, about=_CUT)), now)


def _have_it_count(view: Watched, status: DrbdStatus, now: datetime) -> Verdict:
    """It stands still by our hand alone: a quorum that it should not have any more is in the way of what would help."""
    links = _without_copy(view, status)
    return _try(view, _COUNT, _cuts(view, links, _COUNT), now, COUNTING) if links else FINE


def _without_copy(view: Watched, status: DrbdStatus) -> tuple[Connection, ...]:
    return tuple(link for link in _in_touch(status) if not has_good_copy(link) and view.promise.counts(link))


def _has_no_disk(link: Connection) -> bool:
    return all(volume.peer_disk_state in NO_DISK for volume in link.peer_devices)


def _in_touch(status: DrbdStatus) -> tuple[Connection, ...]:
    return tuple(link for link in status.connections if link.connection_state == ConnectionState.CONNECTED)


def _cuts(view: Watched, links: tuple[Connection, ...], about: str) -> tuple[Run, ...]:
    return tuple(replace(cut(view.resource, link), purpose=HOLD, about=about) for link in links)


def _io(view: Watched, verb: str, minor: int, *, about: str = "") -> Run:
    return Run(("drbdsetup", verb, str(minor)), HOLD, about or verb, changes=(kernel_of(view.resource),))


def _try(view: Watched, about: str, steps: tuple[Run, ...], now: datetime, patience: Patience = PATIENCE) -> Verdict:
    wait = patience.left(view.tried, about, now)
    return Verdict(steps=() if wait > 0 else steps, again=wait or None)


class Holder:
    """Keeps the promises of every primary without a disk: few, and only these are looked at when something happens."""

    def __init__(self, node: Node) -> None:
        self._node = node
        #: Resources to which something has happened, in that order.
        self._due: dict[str, None] = {}
        self._woken = asyncio.Event()
        #: By resource: since when its note is waited for, by the monotonic clock.
        self._waiting: dict[str, float] = {}

    async def keep(self) -> NoReturn:
        """Do so for as long as the agent lives."""
        unsubscribe = self._node.volumes.only(lambda key: is_cared_for(self._node, key.name)).subscribe(self._wake)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(recall(self._node), name="recall of promises")
                while True:
                    await self._woken.wait()
                    self._woken.clear()
                    due, self._due = self._due, {}
                    for resource in due:
                        self.act(resource)
        finally:
            unsubscribe()

    def act(self, resource: str) -> None:
        """Do what is due about one resource."""
        promise = self._node.memory.promises.get(resource)
        if promise is None:
            self._waiting.pop(resource, None)
            return
        key = Key("", resource)
        grip = decide(self._view(resource, promise), self._node.clock.now())
        if grip.held != promise.held:
            self._take_hold(resource, replace(promise, held=grip.held))
        if grip.verdict.steps:
            done = Wake(self._node.volumes, key)
            self._node.hands.start(hold_work(resource), grip.verdict.steps, done, urgent=True)
        if grip.verdict.again is not None:
            asyncio.get_running_loop().call_later(grip.verdict.again, self._wake, key)

    def _take_hold(self, resource: str, promise: Promise) -> None:
        node = self._node
        node.memory.promises[resource] = promise
        words = "I/O is held for want of copies" if promise.held else "I/O is not held any more"
        log.warning(words, resource=resource, promised=promise.copies)
        if promise.held:
            self._waiting[resource] = node.clock.monotonic()
        else:
            self._waiting.pop(resource, None)
        done = Wake(node.volumes, Key("", resource))
        if not node.hands.start(promise_work(resource), (note_step(node, resource, promise.note),), done, urgent=True):
            done()  # Whoever writes notes finds this one wrong.

    def _view(self, resource: str, promise: Promise) -> Watched:
        memory, work, sighting = self._node.memory, hold_work(resource), self._node.memory.resource(resource)
        since = self._waiting.get(resource)
        waited = since is not None and self._node.clock.monotonic() - since >= NOTE_PATIENCE
        return Watched(
            resource=resource,
            promise=promise,
            current=sighting.current,
            status=sighting.value,
            noted=waited or is_noted(self._node, resource, replace(promise, held=True)),
            busy=self._node.hands.busy(work),
            looked=memory.last(work, "look"),
            tried=memory.last(work, HOLD),
        )

    def _wake(self, key: Key) -> None:
        self._due[key.name] = None
        self._woken.set()
