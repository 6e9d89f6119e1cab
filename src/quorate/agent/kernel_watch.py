"""The kernel's own wake-ups: ``drbdsetup events2``. Each event only says which resource to look at again.

The stream begins with all that exists, which wakes nobody: when that is told, one look at the whole kernel begins, and
what happens from then on is told: a resource that was neither seen then nor told of since is not there. The stream is
restarted, with back-off, whenever it ends. Every ten minutes everything is looked at again, although nothing should
have been missed. Progress of a resync is told many times a second and is worth a look every few seconds.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import aclosing
from typing import NoReturn

from quorate.agent.node import KERNEL_LOOK, ORPHANS_KEY, Node, Wake
from quorate.agent.steps import KERNEL, Look
from quorate.api.storage.drbd import ConnectionState, DiskState, Host, Path, ReplicationState, Role
from quorate.drbd.events import Event, parse_event
from quorate.drbd.masking import presentable
from quorate.engine import Key
from quorate.engine.backoff import Backoff
from quorate.engine.logs import get_logger
from quorate.errors import QuorateError

log = get_logger(__name__)

EVENTS = ("drbdsetup", "events2", "--timestamps")
RESTART = Backoff(first=1.0, longest=30.0)
#: A stream that has lasted so many seconds did not fail to start.
STARTED = 60.0
#: Seconds between two looks that only progress asks for.
PROGRESS = 5.0

#: Seconds after which a resource whose members have met, or have copied, is looked at once more.
SECOND_LOOK = 2.0
#: What DRBD's first resource and first link would load.
MODULES = ("drbd", "drbd_transport_tcp")
#: Seconds that a module may take to load, on a machine that has just booted.
MODULE_SILENCE = 60.0

CONNECTED = ConnectionState.CONNECTED.value
UNCONNECTED = ConnectionState.UNCONNECTED.value
#: So many attempts to connect a link are remembered.
LOOP = 10
#: A disk that is gone, or as good as gone: nothing is written to it any more.
NO_DISK = frozenset({DiskState.DISKLESS, DiskState.DETACHING, DiskState.FAILED})
ESTABLISHED = ReplicationState.ESTABLISHED.value

#: What only counts.
_COUNTERS = frozenset(
    [
        "name",
        "peer-node-id",
        "conn-name",
        "volume",
        "received",
        "sent",
        "out-of-sync",
        "pending",
        "unacked",
        "done",
        "dbdt1",
        "dbdt0",
        "eta",
    ]
)


class KernelWatch:
    """Follows one node's kernel."""

    def __init__(self, node: Node) -> None:
        self._node = node
        #: The stream still tells of what exists already.
        self._dumping = False

    async def follow(self) -> NoReturn:
        """Follow events for as long as the agent lives."""
        clock = self._node.clock
        failures = 0
        while True:
            began = clock.monotonic()
            self._dumping = True
            self._may_have_missed_losses()
            self.look_at_everything()  # also for when the stream cannot be had
            try:
                async with aclosing(self._node.machine.lines(*EVENTS)) as lines:
                    async for line in lines:
                        self.heard(line)
                why = "it ended"
            except (QuorateError, OSError) as error:
                why = str(error)
            self._node.memory.listening = False
            failures = 1 if clock.monotonic() - began > STARTED else failures + 1
            delay = RESTART.delay(failures, self._node.random)
            log.warning("events2 is started again", why=why, after=delay)
            await clock.sleep(delay)

    async def load_modules(self) -> NoReturn:
        """Load what the first resource and the first link would: drbdadm gives them five seconds (F2)."""
        try:
            done = await self._node.hands.run("modprobe", "-q", "-a", *MODULES, silence=MODULE_SILENCE)
            why = "" if done.exit_code == 0 else presentable(done.output) or f"exit code {done.exit_code}"
        except (QuorateError, OSError) as error:
            why = str(error)
        if why:
            log.warning("DRBD's modules were not loaded: see quorate agent --check", modules=MODULES, why=why)
        while True:
            await self._node.clock.sleep(self._node.settings.look_again)

    async def look_again(self) -> NoReturn:
        """Look at everything from time to time."""
        while True:
            await self._node.clock.sleep(self._node.settings.look_again)
            self.look_at_everything()

    def look_at_everything(self) -> None:
        """Mark all that is known, and ask for one look at the whole kernel; every key that it concerns is woken."""
        memory, hands = self._node.memory, self._node.hands
        memory.whole_kernel.mark()
        for sighting in memory.kernel.values():
            sighting.mark()
        hands.start(KERNEL_LOOK, (Look(KERNEL),), self._wake_everyone)

    def heard(self, line: str) -> None:
        """Take in one line."""
        event = parse_event(line)
        if event is not None and event.ends_dump and self._dumping:
            self._dumping = False
            self._node.memory.listening = True
            self.look_at_everything()
        if event is None or not event.resource:
            return
        if event.kind == "path":
            self._keep_path(event)
        if event.kind == "resource" and event.verb == "destroy":
            self._node.memory.paths.pop(event.resource, None)
        if event.kind == "device" and event.fields.get("quorum") == "yes":
            self._node.memory.end_quorum_loss(event.resource)
        if event.kind == "connection" and event.fields.get("connection", CONNECTED) != CONNECTED:
            self._lost_link(event.resource)
            self._count_attempt(event)
        self._keep_part(event)
        if self._dumping and event.verb == "exists":
            return
        if _tells_of_lost_quorum(event):
            self._node.memory.resource(event.resource).mark()
            self._node.quorum.wake(Key("", event.resource))
        if event.fields.get("replication") == ESTABLISHED:
            self._look_once_more(event.resource)
        if self._is_mere_progress(event) and not self._progress_is_due(event.resource):
            return
        self._node.memory.resource(event.resource).mark()
        self._node.volumes.wake(Key("", event.resource))

    def _keep_part(self, event: Event) -> None:
        """Who is Primary, and who has no disk: known at once, and before anything is looked at."""
        memory, resource = self._node.memory, event.resource
        gone = event.verb == "destroy"
        if event.kind == "resource" and (gone or "role" in event.fields):
            _put(memory.primaries, resource, not gone and event.fields["role"] == Role.PRIMARY)
        if event.kind == "device" and (gone or "disk" in event.fields):
            _put(memory.without_disk, resource, not gone and event.fields["disk"] in NO_DISK)

    def _look_once_more(self, resource: str) -> None:
        """Bits may be set without a word of the kernel's, and are when members meet or have copied."""
        waiting = self._node.memory.second_looks
        if resource not in waiting:
            waiting.add(resource)
            asyncio.get_running_loop().call_later(SECOND_LOOK, self._look_now, resource)

    def _look_now(self, resource: str) -> None:
        self._node.memory.second_looks.discard(resource)
        if resource in self._node.memory.kernel:
            self._node.memory.resource(resource).mark()
            self._node.volumes.wake(Key("", resource))

    def _lost_link(self, resource: str) -> None:
        losses = self._node.memory.link_losses
        losses[resource] = losses.get(resource, 0) + 1

    def _count_attempt(self, event: Event) -> None:
        """A link that begins to look for its peer anew; how often it does so lately tells whether it loops."""
        peer = event.fields.get("peer-node-id", "")
        if event.fields["connection"] != UNCONNECTED or not (peer.isascii() and peer.isdigit()):
            return
        attempts = self._node.memory.attempts.setdefault(event.resource, {}).setdefault(int(peer), deque(maxlen=LOOP))
        attempts.append(self._node.clock.now())

    def _may_have_missed_losses(self) -> None:
        """Nobody listened for a while."""
        memory = self._node.memory
        for resource in {*memory.link_losses, *memory.kernel}:
            self._lost_link(resource)
        for resource in tuple(memory.quorum_losses):
            memory.end_quorum_loss(resource)

    def _wake_everyone(self) -> None:
        for name in tuple(self._node.memory.kernel):
            Wake(self._node.volumes, Key("", name))()
        self._node.disks.wake(ORPHANS_KEY)

    @staticmethod
    def _is_mere_progress(event: Event) -> bool:
        return event.verb == "change" and event.kind == "peer-device" and _COUNTERS.issuperset(event.fields)

    def _progress_is_due(self, resource: str) -> bool:
        now, looked = self._node.clock.monotonic(), self._node.memory.progress_looked
        if now - looked.get(resource, -PROGRESS) < PROGRESS:
            return False
        looked[resource] = now
        return True

    def _keep_path(self, event: Event) -> None:
        fields = event.fields
        ends = (_host(fields.get("local", "")), _host(fields.get("peer", "")))
        peer = fields.get("peer-node-id", "")
        if ends[0] is None or ends[1] is None or not peer.isascii() or not peer.isdigit():
            return
        local, remote = ends[0], ends[1]
        paths = self._node.memory.paths.setdefault(event.resource, {}).setdefault(int(peer), {})
        if event.verb == "destroy":
            paths.pop((local, remote), None)
        else:
            established = fields.get("established") == "yes"
            paths[local, remote] = Path(this_host=local, remote_host=remote, established=established)


def _put(known: set[str], resource: str, belongs: bool) -> None:
    (known.add if belongs else known.discard)(resource)


def _tells_of_lost_quorum(event: Event) -> bool:
    """Whether somebody may have to act at once, before anything else is seen."""
    suspended = event.fields.get("suspended", "")
    return event.fields.get("quorum") == "no" or "quorum" in suspended.split(",")


def _host(text: str) -> Host | None:
    """``ipv4:10.0.0.1:7000``"""
    family, _, rest = text.partition(":")
    address, _, port = rest.rpartition(":")
    if not (family and address and port.isascii() and port.isdigit() and len(port) <= 5):
        return None
    return Host(address=address, port=int(port), family=family[:32])
