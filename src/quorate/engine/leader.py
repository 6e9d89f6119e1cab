"""Who may write: one leader among several processes, by a Lease.

The holder writes the Lease again every ``retry`` seconds. Whoever has not seen it change for ``duration`` seconds may
take it, by a compare-and-swap on its resourceVersion. "Has not seen it change" is judged on our own monotonic clock
from when *we* saw the change; the times in the record are for people, because clocks disagree.

A holder that could not renew for ``deadline`` seconds stops on its own, before anybody may take over. Counting starts
before a renewal is sent: others cannot have seen it earlier. A write that was allowed just before the deadline is over
before the lease can pass to somebody else, because

    request < duration - deadline                   (4 s < 15 s - 10 s)

``check`` is asked before each write and compares clocks, so a process that was paused and wakes up is refused before
its first write, whatever it still believes. The one thing this cannot stop, a write that the network delivers after
both sides gave up on it, is why the ledger and DiskSchedule use compare-and-swap.

``epoch`` counts the changes of leadership (``leaseTransitions``) and grows with every term, also over a Lease that was
deleted while some contender remembers it. A process that starts after the deletion cannot know what was: it counts from
one again. So whoever keeps an epoch, as the ledger does, must refuse one that is not above it (``EpochPassed``). The
process then steps down, and its next term, or that of whoever sees the Lease meanwhile, is above what was refused.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from math import ceil
from random import Random
from typing import Any, TypeVar

from quorate.api.codec import convert
from quorate.api.core import Namespace
from quorate.api.core.lease import Lease, LeaseSpec
from quorate.api.meta import ObjectMeta
from quorate.engine.clock import Clock
from quorate.engine.logs import get_logger
from quorate.engine.metrics import EngineMetrics
from quorate.engine.store import Store
from quorate.engine.writer import REQUEST_TIMEOUT
from quorate.errors import AlreadyExists, Conflict, NotFound, NotLeader, QuorateError

T = TypeVar("T")

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Timings:
    """The seconds of the election. The inequality of the module's docstring holds for every instance."""

    #: A lease that has not been seen to change for so long may be taken.
    duration: float = 15.0
    #: A holder that could not renew for so long stops.
    deadline: float = 10.0
    #: Pause between attempts to renew, or to take over.
    retry: float = 2.0
    #: A request is given up after so long.
    request: float = REQUEST_TIMEOUT

    def __post_init__(self) -> None:
        if not self.request < self.duration - self.deadline:
            raise ValueError(
                f"request timeout {self.request:g} s must be below lease duration {self.duration:g} s "
                f"- renew deadline {self.deadline:g} s: a write could outlive the leadership it was made under"
            )
        if not 0 < self.retry < self.deadline:
            raise ValueError(
                f"retry period {self.retry:g} s must be above 0 and below the deadline {self.deadline:g} s"
            )


TIMINGS = Timings()


class Elector:
    """One process's part in the election.

    Used in terms: ``epoch = await elector.acquire()``, then ``await elector.hold()``, which returns when leadership is
    lost. ``release`` hands it over at once.
    """

    def __init__(
        self,
        store: Store,
        *,
        name: str,
        namespace: str,
        identity: str,
        clock: Clock,
        random: Random,
        metrics: EngineMetrics,
        timings: Timings = TIMINGS,
    ) -> None:
        self.identity = identity
        self._store = store
        self._name = name
        self._namespace = namespace
        self._clock = clock
        self._random = random
        self._timings = timings
        self._seen: LeaseSpec | None = None
        self._seen_at = 0.0
        #: How long what we saw is good for. Before we have seen any lease, none is held.
        self._lasts = 0.0
        #: The highest epoch that we know of.
        self._epoch = 0
        self._held: Lease | None = None
        self._renewed_at = 0.0
        metrics.master.labels(name).set_function(lambda: float(self.may_write()))

    def may_write(self) -> bool:
        """Whether a write sent now is over before anybody else can lead."""
        return self._held is not None and self._clock.monotonic() - self._renewed_at < self._timings.deadline

    def check(self) -> None:
        """Raise NotLeader unless :meth:`may_write`."""
        if not self.may_write():
            raise NotLeader(f"{self.identity} does not lead (any more): the write was not sent")

    async def acquire(self) -> int:
        """Wait until we lead; returns the epoch of this term."""
        while True:
            try:
                held = await self._try_to_acquire()
            except (QuorateError, TimeoutError) as error:
                log.warning("election: store failed", lease=self._name, error=str(error))
                held = None
            if held is not None:
                log.info("leading", lease=self._name, identity=self.identity, epoch=self._epoch)
                return self._epoch
            await self._pause()

    def go_above(self, epoch: int) -> None:
        """Our next term's epoch is to be above this one, whatever the Lease says."""
        self._epoch = max(self._epoch, epoch)

    async def hold(self) -> None:
        """Keep the lease as long as possible; returns when it is lost."""
        while self.may_write():
            await self._pause()
            try:
                await self._renew()
            except (QuorateError, TimeoutError) as error:
                log.warning("lease not renewed", lease=self._name, error=str(error))
        self._held = None
        log.warning("leadership lost", lease=self._name, identity=self.identity)

    async def release(self) -> None:
        """Give the lease up, so that others need not wait for it to run out. May fail: then they wait."""
        held = self._held
        if held is None or not self.may_write():
            return
        self._held = None  # from here on nothing may be written
        given_up = {"holderIdentity": None, "renewTime": self._timestamp()}
        try:
            async with asyncio.timeout(self._timings.request):
                try:
                    await self._write(held, given_up)
                except Conflict:
                    # A renewal was under way when we stopped.
                    current = await self._still_ours(held)
                    if current is not None:
                        await self._write(current, given_up)
            log.info("leadership handed over", lease=self._name, identity=self.identity)
        except (QuorateError, TimeoutError) as error:
            log.warning("lease not released", lease=self._name, error=str(error))

    async def _try_to_acquire(self) -> Lease | None:
        try:
            current = await self._request(self._store.get(Lease, self._name, self._namespace))
        except NotFound:
            current = None
        if current is not None:
            self._epoch = max(self._epoch, current.spec.lease_transitions or 0)
        if not self._free(current.spec if current is not None else None):
            return None
        sent_at = self._clock.monotonic()
        try:
            # Also when the record still names us: a term that was lost is not resumed, a new one has its own epoch.
            record = self._record(self._epoch + 1)
            held = await (self._create(record) if current is None else self._write(current, record))
        except (AlreadyExists, Conflict):
            return None  # somebody was faster
        self._epoch += 1
        self._held, self._renewed_at = held, sent_at
        return held

    async def _create(self, record: Mapping[str, Any]) -> Lease:
        metadata = ObjectMeta(name=self._name, namespace=self._namespace)
        lease = Lease(metadata=metadata, spec=convert(LeaseSpec, record))
        try:
            return await self._request(self._store.create(lease))
        except NotFound:
            # On a fresh API server there is no namespace of ours yet, and who would create it waits to be elected.
            with suppress(AlreadyExists):
                await self._request(self._store.create(Namespace(metadata=ObjectMeta(name=self._namespace))))
            return await self._request(self._store.create(lease))

    def _free(self, record: LeaseSpec | None) -> bool:
        """Whether nobody can be leading. A record that was deleted while somebody held it counts as a change of it."""
        now = self._clock.monotonic()
        if record != self._seen:
            self._seen, self._seen_at = record, now
            self._lasts = (record and record.lease_duration_seconds) or self._lasts
        if record is not None and not record.holder_identity:
            return True
        return now - self._seen_at >= self._lasts

    async def _renew(self) -> None:
        held = self._held
        if held is None:
            return
        try:
            await self._write_renewal(held)
        except (Conflict, NotFound):
            # Perhaps an earlier renewal of ours that got no answer, perhaps a person; or we have lost it.
            self._held = await self._still_ours(held)
            if self._held is not None:
                await self._write_renewal(self._held)

    async def _write_renewal(self, held: Lease) -> None:
        sent_at = self._clock.monotonic()
        self._held = await self._write(held, {"renewTime": self._timestamp()})
        if self._held.metadata.resource_version != held.metadata.resource_version:
            # Otherwise a wall clock that was set back gave the same time again, and nobody has seen a renewal.
            self._renewed_at = sent_at

    async def _still_ours(self, held: Lease) -> Lease | None:
        """The lease as it is now, if it is still that of our term."""
        try:
            current = await self._request(self._store.get(Lease, self._name, self._namespace))
        except NotFound:
            return None
        ours = (held.spec.holder_identity, held.spec.lease_transitions)
        return current if (current.spec.holder_identity, current.spec.lease_transitions) == ours else None

    async def _write(self, current: Lease, spec: Mapping[str, Any]) -> Lease:
        return await self._request(
            self._store.patch(
                Lease,
                self._name,
                self._namespace,
                patch={"spec": spec},
                resource_version=current.metadata.resource_version,
            )
        )

    async def _request(self, request: Awaitable[T]) -> T:
        async with asyncio.timeout(self._timings.request):
            return await request

    def _record(self, transitions: int) -> dict[str, Any]:
        now = self._timestamp()
        return {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": ceil(self._timings.duration),
            "acquireTime": now,
            "renewTime": now,
            "leaseTransitions": transitions,
        }

    def _timestamp(self) -> str:
        return self._clock.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    async def _pause(self) -> None:
        # Contenders that started together should not ask together for ever.
        await self._clock.sleep(self._timings.retry * (1.0 + 0.2 * self._random.random()))
