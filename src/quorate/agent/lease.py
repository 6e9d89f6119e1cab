"""How an agent shows that it lives, and that it is the only one of its node: a Lease, renewed again and again.

Controllers count a node's reports only while they see its Lease change. To a second agent the same Lease says who was
there first:

| the Lease is                                            | an agent that starts                              |
|---------------------------------------------------------|---------------------------------------------------|
| missing, or held by nobody                              | takes it                                          |
| held by an agent of its own place                       | takes it: it has that place's lock, so the other is dead |
| held by another, and seen to change                     | is refused, with the other's name                 |
| held by another, and not seen to change for its duration | takes it                                          |

"Seen to change" is judged on our own monotonic clock, from when we saw it; times in the record are for people, because
clocks disagree. Every write is a compare-and-swap on the resourceVersion, so of two that take it one succeeds. An agent
that finds another's name in its Lease has lost the node, and stops. An agent that cannot renew goes on: the API may
be away for a day, and DRBD needs its agent then too; but it writes nothing to the store that others might not credit
to it any more (``check``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine, Mapping
from dataclasses import dataclass
from math import ceil
from random import Random
from typing import Any, NoReturn, TypeVar

from quorate.api import labels, names
from quorate.api.cluster_config import AgentSettings
from quorate.api.codec import convert
from quorate.api.core.lease import Lease, LeaseSpec
from quorate.api.meta import NodeName, ObjectMeta
from quorate.engine.clock import Clock
from quorate.engine.logs import get_logger
from quorate.engine.store import Store
from quorate.errors import AnotherAgent, Conflict, NotFound, NotLeader, QuorateError

T = TypeVar("T")

log = get_logger(__name__)

#: Seconds after which a request is given up.
REQUEST_TIMEOUT = 4.0
#: Seconds between two attempts: to see whether another agent lives, or to renew after a failure.
RETRY = 2.0


@dataclass(frozen=True, slots=True)
class Identity:
    """Who holds a Lease: a process, and the place whose lock it has."""

    place: str
    process: str

    @classmethod
    def new(cls, place: str, random: Random) -> Identity:
        """A name that no other process has."""
        return cls(place, f"{random.getrandbits(48):012x}")

    def __str__(self) -> str:
        return f"{self.place}_{self.process}"

    def succeeds(self, holder: str) -> bool:
        """Whether that holder was of our place."""
        return holder.rpartition("_")[0] == self.place


class Heartbeat:
    """One agent's Lease: ``acquire`` it, ``hold`` it for as long as the agent runs, ``release`` it."""

    def __init__(self, store: Store, *, node: NodeName, identity: Identity, clock: Clock, random: Random) -> None:
        self.identity = identity
        self._timings = AgentSettings()
        self._timings_changed = asyncio.Event()
        self._store = store
        self._name = names.agent_lease(node)
        self._node = node
        self._clock = clock
        self._random = random
        self._held: Lease | None = None
        #: It may be ours without our knowing: a write that takes it was sent, and no answer has come.
        self._perhaps = False
        self._renewed_at = 0.0

    @property
    def timings(self) -> AgentSettings:
        """As the ClusterConfig has them. May be changed at any time.

        A change is followed by a renewal at once: others may count by it already, and must not take us for dead.
        """
        return self._timings

    @timings.setter
    def timings(self, timings: AgentSettings) -> None:
        self._timings = timings
        self._timings_changed.set()

    @property
    def held(self) -> bool:
        """Whether a write sent now is over before anybody else can have taken the Lease."""
        duration, interval = self.timings.lease_duration.seconds, self.timings.renew_interval.seconds
        margin = min(REQUEST_TIMEOUT, (duration - interval) / 2)
        return self._held is not None and self._clock.monotonic() - self._renewed_at < duration - margin

    def check(self) -> None:
        """Raise NotLeader unless the Lease is :attr:`held`."""
        if not self.held:
            raise NotLeader(f"the Lease {self._name} is not held at the moment: the write was not sent")

    async def acquire(self) -> None:
        """Wait until the Lease is ours. Raises AnotherAgent when another agent is seen to renew it."""
        seen: LeaseSpec | None = None
        seen_at = 0.0
        while True:
            try:
                current = await self._read()
                holder = (current.spec.holder_identity or "") if current is not None else ""
                if current is None or not holder or self.identity.succeeds(holder):
                    return await self._take(current)
                now = self._clock.monotonic()
                if seen is None:
                    log.info("waiting to see whether another agent lives", lease=self._name, holder=holder)
                    seen, seen_at = current.spec, now
                elif current.spec != seen:
                    raise AnotherAgent(
                        f"{holder} is an agent of node {self._node} and lives: it renews the Lease {self._name}. "
                        "Stop it first, or correct the node's name here or there"
                    )
                elif now - seen_at >= (seen.lease_duration_seconds or self.timings.lease_duration.seconds):
                    return await self._take(current)
            except AnotherAgent:
                raise
            except (QuorateError, TimeoutError) as error:
                # Also when somebody was faster: the next look tells who.
                log.warning("lease not acquired", lease=self._name, error=_why(error))
            await self._pause(RETRY)

    async def hold(self) -> NoReturn:
        """Renew for ever, also through failures of the store. Raises AnotherAgent when somebody else has taken it."""
        failed = False
        while True:
            interval = self.timings.renew_interval.seconds
            await self._unless_changed(self._pause(min(RETRY, interval) if failed else interval))
            self._timings_changed.clear()
            try:
                await self._renew()
                failed = False
            except AnotherAgent:
                self._held = None
                raise
            except (QuorateError, TimeoutError) as error:
                failed = True
                log.warning("lease not renewed", lease=self._name, error=_why(error))

    async def release(self) -> None:
        """Give the Lease up, so that a successor anywhere need not wait. May fail: then it waits."""
        held, self._held = self._held, None
        if held is None and not self._perhaps:
            return
        given_up = {"holderIdentity": None, "renewTime": self._timestamp()}
        try:
            if held is not None:
                try:
                    await self._write(held, given_up)
                    return
                except Conflict:
                    log.debug("a renewal was under way when we stopped", lease=self._name)
            current = await self._read()
            if current is not None and current.spec.holder_identity == str(self.identity):
                await self._write(current, given_up)
        except (QuorateError, TimeoutError) as error:
            log.warning("lease not released", lease=self._name, error=_why(error))

    async def _take(self, current: Lease | None) -> None:
        self._perhaps = True
        now = self._timestamp()
        record = {
            **self._renewal(),
            "holderIdentity": str(self.identity),
            "acquireTime": now,
            "leaseTransitions": 1 + ((current.spec.lease_transitions or 0) if current is not None else 0),
        }
        sent_at = self._clock.monotonic()
        self._held = await (self._create(record) if current is None else self._write(current, record))
        self._renewed_at = sent_at
        log.info("lease taken", lease=self._name, holder=str(self.identity))

    async def _renew(self) -> None:
        assert self._held is not None
        try:
            await self._write_renewal(self._held)
        except (Conflict, NotFound):
            # An earlier renewal of ours that got no answer, or a person; or it is another's.
            found = await self._read()
            if found is None:
                await self._take(None)
            elif found.spec.holder_identity == str(self.identity):
                await self._write_renewal(found)
            else:
                holder = found.spec.holder_identity or "somebody who left it empty"
                raise AnotherAgent(
                    f"the Lease {self._name} was taken from us by {holder}: "
                    f"another agent works on node {self._node}, or a person has decided so"
                ) from None

    async def _write_renewal(self, current: Lease) -> None:
        sent_at = self._clock.monotonic()
        self._held = await self._write(current, self._renewal())
        if self._held.metadata.resource_version != current.metadata.resource_version:
            # Otherwise a wall clock that was set back gave the same time again, and nobody has seen a renewal.
            self._renewed_at = sent_at

    async def _read(self) -> Lease | None:
        try:
            return await self._request(self._store.get(Lease, self._name, names.NAMESPACE))
        except NotFound:
            return None

    async def _create(self, record: Mapping[str, Any]) -> Lease:
        metadata = ObjectMeta(name=self._name, namespace=names.NAMESPACE, labels={labels.NODE: self._node})
        return await self._request(self._store.create(Lease(metadata=metadata, spec=convert(LeaseSpec, record))))

    async def _write(self, current: Lease, spec: Mapping[str, Any]) -> Lease:
        return await self._request(
            self._store.patch(
                Lease,
                self._name,
                names.NAMESPACE,
                patch={"spec": spec},
                resource_version=current.metadata.resource_version,
            )
        )

    async def _request(self, request: Awaitable[T]) -> T:
        async with asyncio.timeout(REQUEST_TIMEOUT):
            return await request

    def _renewal(self) -> dict[str, Any]:
        return {
            "renewTime": self._timestamp(),
            "leaseDurationSeconds": max(1, ceil(self.timings.lease_duration.seconds)),
        }

    def _timestamp(self) -> str:
        return self._clock.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    async def _unless_changed(self, waiting: Coroutine[Any, Any, None]) -> None:
        """Wait, but no longer than the timings stay as they are."""
        tasks = (asyncio.ensure_future(waiting), asyncio.ensure_future(self._timings_changed.wait()))
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _pause(self, seconds: float) -> None:
        # Never longer than asked for: others count. Agents that started together should not write together for ever.
        await self._clock.sleep(seconds * (1.0 - 0.1 * self._random.random()))


def _why(error: Exception) -> str:
    return str(error) or type(error).__name__
