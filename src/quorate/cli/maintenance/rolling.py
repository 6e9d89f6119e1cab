"""A rolling restart: as many hosts at once as the broker permits, each told to be done as soon as it is.

It asks for all hosts that are left in one stored request, which keeps its place in the queue, and begins with whatever
is granted. After a failure nothing new is begun, what runs is waited for, and the failed host keeps its permission: it
may be down, and then nobody else may go. Everything can be taken up again from the journal and the broker.

Every run has a name, which the broker knows. A permission without that name is somebody else's, also if it is the same
user's, and hosts that another run has to do with are refused by the broker. A run that is stopped gives back what it
did not use, and its place in the queue, before it waits for what runs: whoever stopped it does not wait in the queue.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeVar

from quorate.cli.maintenance import wire
from quorate.cli.maintenance.journal import Journal, Line
from quorate.cli.maintenance.options import GOOD_CODES, MODES
from quorate.errors import QuorateError, StoreUnreachable

T = TypeVar("T")
Managed = TypeVar("Managed", wire.Permissions, wire.Requests)

#: Seconds between tries while the broker cannot be reached, and for how long it is tried.
RETRY: Final = 5.0
RETRIES: Final = 60
#: A permission that ends sooner is extended before its host is begun with, by this much if the run names no duration.
MARGIN: Final = 30_000_000
DEFAULT_DURATION: Final = 300_000_000
#: What cannot be ended because it is over already, is over.
OVER: Final = frozenset({"OK", "WRONG_REQUEST"})


class Broker(Protocol):
    """What it needs of a client."""

    async def ask(self, path: str, question: wire.Message | None, answer: type[T]) -> T:
        """One question."""
        ...


class Progress(Protocol):
    """Where it tells how far it is."""

    def began(self, host: str) -> None:
        """A host is being restarted."""
        ...

    def ended(self, host: str, exit_code: int) -> None:
        """It is over, well or not."""
        ...

    def waiting(self, why: str) -> None:
        """Nothing can be begun for now."""
        ...


@dataclass(frozen=True, slots=True)
class Outcome:
    """How it ended."""

    finished: int
    failed: tuple[str, ...]
    left: int
    #: What a person must know: refused, given up, stopped.
    message: str = ""
    #: Permissions that are still held, by their hosts; and of these hosts, those whose command still runs.
    held: Mapping[str, str] = field(default_factory=dict, compare=False)
    running: tuple[str, ...] = field(default=(), compare=False)
    #: The request that kept its place in the queue, and does not any more.
    withdrawn: str = field(default="", compare=False)
    #: The one that still does.
    stored: str = field(default="", compare=False)

    @property
    def complete(self) -> bool:
        """Every host is done, and nothing of the run is left in the broker."""
        return not (self.left or self.held or self.stored)


@dataclass(slots=True)
class Rolling:
    """One run."""

    journal: Journal
    broker: Broker
    #: Does what must be done to one host; the exit code.
    work: Callable[[str], Awaitable[int]]
    #: Returns when asking the broker again is worth it: request id, and the Deadline of the last answer.
    next_time: Callable[[str, int], Awaitable[None]]
    now: Callable[[], int]
    progress: Progress
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    at_once: int = 0
    keep_going: bool = False
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    _ready: deque[wire.Permission] = field(default_factory=deque)
    _running: dict[asyncio.Task[int], wire.Permission] = field(default_factory=dict)
    _request_id: str = ""
    _deadline: int = 0
    _failed: dict[str, str] = field(default_factory=dict)
    #: Finished hosts whose permission the broker has not taken back yet.
    _finished: dict[str, str] = field(default_factory=dict)
    #: Not everything that is left is asked for, or nobody knows whether it is.
    _again: bool = False
    _message: str = ""
    _withdrawn: str = ""

    async def run(self) -> Outcome:
        """Until every host is finished, or something stops it."""
        try:
            await self._take_up()
            while not self._over():
                await self._begin()
                if not self._may_begin():
                    break
                await self._something()
        except QuorateError as error:
            self._give_up(error)
        await self._drain()
        return self.outcome()

    def outcome(self) -> Outcome:
        """How far it is, whatever ended it."""
        hosts = self.journal.header.hosts
        finished = sum(self.journal.finished(host) for host in hosts)
        running = {permission.action.host: permission.id for permission in self._running.values()}
        unused = {permission.action.host: permission.id for permission in self._ready}
        return Outcome(
            finished,
            tuple(self._failed),
            len(hosts) - finished,
            self._message,
            held=self._finished | self._failed | running | unused,
            running=tuple(running),
            withdrawn=self._withdrawn,
            stored=self._request_id,
        )

    def _over(self) -> bool:
        return not (self._ready or self._running or self._request_id or self._again)

    def _may_begin(self) -> bool:
        return not (self.stop.is_set() or self._message or (self._failed and not self.keep_going))

    async def _take_up(self) -> None:
        """What the broker still has of ours, and a request for the rest.

        Also after a question whose answer was lost: it may have been granted, and asking twice would be in our own way.
        """
        await self._find()
        if not self._request_id:
            await self._request(self._unasked())

    def _unasked(self) -> list[str]:
        """Hosts that are left and that we have no permission for; they may be in a stored request."""
        known = {permission.action.host for permission in (*self._ready, *self._running.values())}
        known.update(self._failed)
        return [host for host in self.journal.header.hosts if host not in known and not self.journal.finished(host)]

    async def _find(self) -> None:
        """What the broker still has of ours."""
        header, left = self.journal.header, set(self._unasked())
        held = await self._ask("managepermissionrequest", self._command("LIST"), wire.Permissions)
        for permission in held.permissions:
            if permission.run != header.run:
                continue
            if self.journal.finished(permission.action.host):  # we were killed before the broker was told
                await self._done(permission)
            elif permission.action.host in left and not permission.action.devices:
                self._ready.append(permission)
                left.discard(permission.action.host)
        stored = await self._ask("managerequestrequest", self._command("LIST"), wire.Requests)
        self._request_id = next((one.request_id for one in stored.requests if one.run == header.run), "")
        self._again = False

    async def _request(self, hosts: list[str]) -> None:
        if not hosts:
            return
        header = self.journal.header
        kind = "RESTART_SERVICES" if header.services else "SHUTDOWN_HOST"
        asked = wire.PermissionRequest(
            user=header.user,
            actions=tuple(
                wire.Action(type=kind, host=host, services=header.services, duration=header.duration) for host in hosts
            ),
            partial_permission_allowed=True,
            schedule=True,
            reason=header.reason,
            tenant_policy=header.tenant_policy,
            availability_mode=MODES[header.mode],
            run=header.run,
        )
        await self._take("permissionrequest", asked)

    async def _check(self) -> None:
        asked = wire.CheckRequest(user=self.journal.header.user, request_id=self._request_id)
        await self._take("checkrequest", asked)

    async def _take(self, path: str, asked: wire.Message) -> None:
        try:
            answer = await self.broker.ask(path, asked, wire.PermissionResponse)
        except StoreUnreachable as error:
            answer = wire.PermissionResponse(status=wire.Status(code="ERROR_TEMP", reason=str(error)))
        gone = path == "checkrequest" and answer.status.code == "WRONG_REQUEST"
        if answer.status.code == "ERROR_TEMP" or gone:
            self.progress.waiting(answer.status.reason)
            self._again = True
            return
        self._ready.extend(answer.permissions)
        self._request_id = answer.request_id
        self._deadline = answer.deadline
        if answer.status.code not in GOOD_CODES | {"DISALLOW_TEMP"}:
            self._message = f"the broker refuses: {answer.status.code} {answer.status.reason}".rstrip()
        elif answer.refused and not answer.permissions:
            issue = answer.refused[0].issue
            self.progress.waiting((issue.message if issue else "") or answer.status.reason)
        # One request at a time: what came too late for the last one is asked for when that is served.
        self._again = not (self._request_id or self._message) and bool(self._unasked())

    async def _begin(self) -> None:
        while self._ready and self._may_begin() and (not self.at_once or len(self._running) < self.at_once):
            permission = self._ready[0]
            host = permission.action.host
            allowed = await self._still_allowed(permission)
            self._ready.popleft()
            if not allowed:
                if not self._request_id:
                    await self._request(self._unasked())
                continue
            self.journal.add(Line(event="began", host=host, at=self.now(), permission=permission.id))
            self.progress.began(host)
            self._running[asyncio.ensure_future(self.work(host))] = permission

    async def _still_allowed(self, permission: wire.Permission) -> bool:
        """A permission that waited too long is extended first; one that is gone, or may not be, is asked for anew."""
        now = self.now()
        if permission.deadline - now >= MARGIN:
            return True
        span = permission.action.duration or self.journal.header.duration or DEFAULT_DURATION
        command = self._command("EXTEND", permission.id, deadline=now + span)
        answer = await self._ask("managepermissionrequest", command, wire.Permissions)
        if answer.status.code in GOOD_CODES:
            return True
        await self._ask("managepermissionrequest", self._command("REJECT", permission.id), wire.Permissions)
        return False

    async def _something(self) -> None:
        """Wait until a host is finished, more may be granted, or somebody stops us."""
        again = self._again
        asking = bool(self._request_id) and not self._ready
        waits: set[asyncio.Future[Any]] = {asyncio.ensure_future(self.stop.wait())}
        if again:
            waits.add(asyncio.ensure_future(self.sleep(RETRY)))
        elif asking:
            waits.add(asyncio.ensure_future(self.next_time(self._request_id, self._deadline)))
        try:
            both: set[asyncio.Future[Any]] = {*self._running, *waits}
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waits:
                each.cancel()
        await self._collect()
        if not self._may_begin():
            return
        if again:
            await self._take_up()
        elif asking:
            await self._check()

    async def _collect(self) -> None:
        for task in [task for task in self._running if task.done()]:
            permission = self._running.pop(task)
            host, code = permission.action.host, task.result()
            self.progress.ended(host, code)
            if code == 0:
                # First: a host that is finished and still locked costs a call, one that is forgotten a restart.
                self.journal.add(Line(event="succeeded", host=host, at=self.now(), permission=permission.id))
                await self._done(permission)
            else:
                self._failed[host] = permission.id
                self.journal.add(
                    Line(event="failed", host=host, at=self.now(), permission=permission.id, exit_code=code)
                )

    async def _done(self, permission: wire.Permission) -> None:
        self._finished[permission.action.host] = permission.id
        answer = await self._ask("managepermissionrequest", self._command("DONE", permission.id), wire.Permissions)
        if answer.status.code in OVER:
            del self._finished[permission.action.host]

    async def _drain(self) -> None:
        """What was granted and not begun is given back, and the place in the queue; then what runs is waited for."""
        for give_back in (self._withdraw, self._give_back):
            try:
                await give_back()
            except QuorateError as error:
                self._give_up(error)
        while self._running:
            if self.stop.is_set():
                hosts = ", ".join(permission.action.host for permission in self._running.values())
                self.progress.waiting(f"{hosts} must end first; nothing new is begun. Ctrl-C once more leaves at once")
            await asyncio.wait(self._running, return_when=asyncio.FIRST_COMPLETED)
            try:
                await self._collect()
            except QuorateError as error:
                self._give_up(error)

    async def _withdraw(self) -> None:
        if self._again:  # our last question may have been granted, or stored, without an answer
            await self._find()
        if self._request_id:
            withdrawal = self._command("REJECT", request_id=self._request_id)
            answer = await self._ask("managerequestrequest", withdrawal, wire.Requests)
            if answer.status.code in OVER:
                self._withdrawn, self._request_id = self._request_id, ""

    async def _give_back(self) -> None:
        if self._ready:
            unused = self._command("DONE", *(permission.id for permission in self._ready))
            answer = await self._ask("managepermissionrequest", unused, wire.Permissions)
            if answer.status.code in OVER:
                self._ready.clear()

    def _give_up(self, error: QuorateError) -> None:
        """The first thing that went wrong is told; nothing new is begun."""
        self._message = self._message or str(error)

    def _command(
        self, command: str, *permissions: str, deadline: int | None = None, request_id: str = ""
    ) -> wire.Command:
        return wire.Command(
            user=self.journal.header.user,
            command=command,
            permissions=permissions,
            deadline=deadline,
            request_id=request_id,
        )

    async def _ask(self, path: str, question: wire.Message, answer: type[Managed]) -> Managed:
        """A broker that restarts, or that does not lead yet, is waited for."""
        for _ in range(RETRIES):
            try:
                found = await self.broker.ask(path, question, answer)
            except StoreUnreachable as error:
                why = str(error)
            else:
                if found.status.code != "ERROR_TEMP":
                    return found
                why = found.status.reason
            self.progress.waiting(why)
            await self.sleep(RETRY)
        raise StoreUnreachable(f"the broker cannot be asked: {why}")
