"""The one who writes the ledger.

A write is a compare-and-swap on the object's resourceVersion. After it the outcome is known, one way or the other:

- Conflict, or no answer: read again. If our epoch and the revision that we sent are there, it is written. If what we
  knew before is there, it is not (yet): only labels were touched, or the request was lost, or it is still on its way.
  The same write goes out again; whichever of the two arrives first, the other conflicts, and the result is the same.
- Anything else is there: somebody else has the ledger. LedgerLost; we write no more.
- No answer for ``PATIENCE`` seconds: Unsettled. What the store holds is then one of several revisions that we know,
  and the next write accepts any of them as its base.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Final, TypeVar

from quorate.api.maintenance.broker_ledger import BrokerLedger
from quorate.api.meta import ObjectMeta
from quorate.api.names import BROKER
from quorate.api.struct import replace
from quorate.engine.clock import Clock
from quorate.engine.logs import get_logger
from quorate.engine.store import Store
from quorate.engine.writer import REQUEST_TIMEOUT, surely_not_done
from quorate.errors import (
    AlreadyExists,
    Conflict,
    EpochPassed,
    NotFound,
    NotLeader,
    OutcomeUnknown,
    QuorateError,
    StoreUnreachable,
)
from quorate.maintenance.entries import Ledger
from quorate.maintenance.ledger.encoding import Encoded, decode, encode

T = TypeVar("T")

log = get_logger(__name__)

#: How long, in seconds, a write is tried before its callers are told that it did not work. Below Wall-E's ten.
PATIENCE: Final = 8.0
#: Between two attempts.
PAUSE: Final = 0.2


class LedgerLost(NotLeader):
    """Somebody else has the ledger."""


class NotWritten(QuorateError):
    """The write certainly did not happen."""


class Unsettled(QuorateError):
    """Nobody can say yet whether the write happened."""


class LedgerKeeper:
    """Reads and writes the one BrokerLedger, for one holder. Calls must not overlap."""

    def __init__(self, store: Store, clock: Clock, *, holder: str) -> None:
        self._store = store
        self._clock = clock
        self._holder = holder
        self._epoch = 0
        self._resource_version = ""
        #: Revisions that the store may have. More than one while a write is unsettled.
        self._revisions: set[int] = set()

    async def take_over(self, epoch: int | None) -> Ledger:
        """Write our epoch into the ledger, so that whoever had it before can write no more; then it is ours to read.

        EpochPassed: the ledger knows a later epoch than ``epoch``. None: nobody is elected, the next number is ours.
        """
        while True:
            found = await self._read_or_create()
            before = decode(found)
            ours = epoch if epoch is not None else before.epoch + 1
            again = before.epoch == ours and before.holder == self._holder
            if before.epoch >= ours and not again:
                raise EpochPassed(
                    f"the ledger belongs to epoch {before.epoch} of {before.holder}, ours is {ours}: another leads, or "
                    f"the Lease was deleted; our next one will be above {before.epoch}",
                    known=before.epoch,
                )
            after = replace(before, epoch=ours, holder=self._holder, revision=before.revision + 1)
            self._epoch = before.epoch  # until ours is written, what is there is what we read
            self._resource_version = found.metadata.resource_version
            self._revisions = {before.revision}
            try:
                await self._send(encode(after), taking_over=True)
            except Conflict:
                log.info("the ledger was written while we took it over; reading it again")
                continue
            self._epoch = ours
            self._revisions = {after.revision}
            return after

    async def write(self, encoded: Encoded) -> None:
        """Returns when it is written. LedgerLost, NotWritten or Unsettled otherwise."""
        started = self._clock.monotonic()
        unknown = len(self._revisions) > 1
        while True:
            try:
                await self._send(encoded)
            except Conflict:
                pass  # read again
            except NotFound as error:
                if not await self._may_try_again(started):
                    raise self._given_up(unknown, encoded, error) from error
                await self._create_again(encoded)
                continue
            except StoreUnreachable as error:
                if not await self._may_try_again(started):
                    raise self._given_up(unknown, encoded, error) from error
                continue
            except QuorateError as error:
                if surely_not_done(error):
                    raise self._given_up(unknown, encoded, error) from error
                unknown = True
                self._revisions.add(encoded.ledger.revision)
            else:
                self._revisions = {encoded.ledger.revision}
                return
            try:
                if await self._is_written(encoded):
                    self._revisions = {encoded.ledger.revision}
                    return
            except NotFound:
                continue
            except LedgerLost:
                raise
            except QuorateError as error:
                log.warning("the ledger cannot be read to learn whether a write happened", error=str(error))
            if not await self._may_try_again(started):
                raise self._given_up(unknown, encoded, QuorateError("no answer")) from None

    async def _is_written(self, encoded: Encoded) -> bool:
        """Read again. LedgerLost if it is neither what we sent nor what was there before."""
        found = await self._within_time(self._store.get(BrokerLedger, BROKER))
        there = decode(found)
        if there.epoch != self._epoch or there.holder != self._holder:
            raise LedgerLost(f"the ledger belongs to epoch {there.epoch} of {there.holder}, ours was {self._epoch}")
        if there.revision not in self._revisions and there.revision != encoded.ledger.revision:
            raise LedgerLost(f"revision {there.revision} of the ledger is not ours: somebody else wrote it")
        self._resource_version = found.metadata.resource_version
        return there.revision == encoded.ledger.revision

    async def _send(self, encoded: Encoded, *, taking_over: bool = False) -> None:
        written = await self._within_time(
            self._store.patch_status(
                BrokerLedger, BROKER, patch=encoded.patch(), resource_version=self._resource_version
            ),
            write=True,
        )
        self._resource_version = written.metadata.resource_version
        if taking_over:
            log.info("took the ledger over", epoch=encoded.ledger.epoch, revision=encoded.ledger.revision)

    async def _read_or_create(self) -> BrokerLedger:
        try:
            return await self._within_time(self._store.get(BrokerLedger, BROKER))
        except NotFound:
            try:
                new = BrokerLedger(metadata=ObjectMeta(name=BROKER))
                return await self._within_time(self._store.create(new), write=True)
            except AlreadyExists:
                return await self._within_time(self._store.get(BrokerLedger, BROKER))

    async def _create_again(self, encoded: Encoded) -> None:
        """Somebody deleted the ledger under us. All of it is in our hands, so it can be made again."""
        log.error("the ledger was deleted; it is made again", revision=encoded.ledger.revision)
        try:
            found = await self._read_or_create()
        except QuorateError as error:
            raise Unsettled(f"the ledger was deleted, and could not be made again: {error}") from error
        if found.status.epoch:
            raise LedgerLost(f"the ledger was deleted and made again by {found.status.holder}")
        self._resource_version = found.metadata.resource_version

    async def _may_try_again(self, started: float) -> bool:
        if self._clock.monotonic() - started + PAUSE >= PATIENCE:
            return False
        await self._clock.sleep(PAUSE)
        return True

    def _given_up(self, unknown: bool, encoded: Encoded, error: QuorateError) -> QuorateError:
        revision = encoded.ledger.revision
        if unknown:
            return Unsettled(f"revision {revision} of the ledger may or may not be written: {error}")
        return NotWritten(f"revision {revision} of the ledger is not written: {error}")

    async def _within_time(self, call: Awaitable[T], *, write: bool = False) -> T:
        try:
            async with asyncio.timeout(REQUEST_TIMEOUT):
                return await call
        except TimeoutError:
            message = f"the ledger: no answer within {REQUEST_TIMEOUT:g} s"
            raise (OutcomeUnknown(message) if write else StoreUnreachable(message)) from None
