"""Decisions, one after the other, each written before its answer leaves.

Whoever may change something takes a turn: a function of a draft, run when all earlier ones have run. Turns that wait
together share one write. A turn that weighs (asks the rules) runs only on a model that shows all that was decided
before it: if an earlier one of the same write unlocks something, which the model shows only after the write, the turn
waits for the next write. So the answers are those of turns written one by one.

A turn that weighs a large request lets others through meanwhile (``slices``), but no other turn: what it found is true
at the moment at which it holds what it grants, because it would have begun anew otherwise.

If the write does not happen, what the turns had locked is unlocked and all are answered ERROR_TEMP. If nobody can say
whether it happened (``Unsettled``), they are answered ERROR_TEMP too, and then the ledger is written as it was before:
until that is done, everything stays locked and no turn runs.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from quorate.engine.logs import get_logger
from quorate.errors import QuorateError
from quorate.maintenance.broker.core import Core
from quorate.maintenance.broker.draft import Draft
from quorate.maintenance.ledger.encoding import Encoder
from quorate.maintenance.ledger.keeper import LedgerLost, NotWritten, Unsettled

T = TypeVar("T")

log = get_logger(__name__)

#: Turns are added to a write for so long, in seconds: nobody waits much longer because others came along.
SHARING: Final = 0.02
#: Between attempts to settle what is unsettled, in seconds.
_PAUSE: Final = 1.0


@dataclass(slots=True)
class _Turn:
    decide: Callable[[Draft], Awaitable[Any]]
    weighs: bool
    answer: asyncio.Future[Any]
    #: Not in company: with it the ledger would be too large, and it must be known which turn is to blame.
    alone: bool = False
    result: Any = None
    declined: BaseException | None = None

    async def run(self, draft: Draft) -> None:
        before = draft.savepoint()
        try:
            self.result = await self.decide(draft)
        except Exception as error:  # a Declined, or a fault of ours: in any case only this turn's
            draft.roll_back(before)
            self.declined = error

    def finish(self) -> None:
        if self.declined is not None:
            self.fail(self.declined)
        elif not self.answer.done():
            self.answer.set_result(self.result)

    def fail(self, error: BaseException) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)


class Turns:
    """The queue of decisions, and the one task that takes them from it."""

    def __init__(self, core: Core, *, lost: Callable[[str], None]) -> None:
        self._core = core
        self._lost = lost
        self._waiting: deque[_Turn] = deque()
        self._wake = asyncio.Event()
        self._closing = False
        self._encoder = Encoder()

    async def take(self, decide: Callable[[Draft], T], *, weighs: bool) -> T:
        """The function's result, once what it changed is written. Declined if it declines, or cannot be written."""

        async def at_once(draft: Draft) -> T:
            return decide(draft)

        turn = self._add(at_once, weighs=weighs)
        result: T = await turn.answer
        return result

    async def weigh(self, decide: Callable[[Draft], Awaitable[T]]) -> T:
        """The same, for a decision that lets others through while it asks the rules (``slices``), and no other turn."""
        turn = self._add(decide, weighs=True)
        result: T = await turn.answer
        return result

    def soon(self, decide: Callable[[Draft], object]) -> None:
        """The same, for something that nobody waits for."""

        async def at_once(draft: Draft) -> object:
            return decide(draft)

        turn = self._add(at_once, weighs=False)
        turn.answer.add_done_callback(lambda done: done.cancelled() or done.exception())

    def wake(self) -> None:
        """Something has ended by time: write the ledger without it."""
        self._wake.set()

    def open(self) -> None:
        """Before :meth:`run`."""
        self._closing = False

    def close(self) -> None:
        """Let :meth:`run` end when nothing waits."""
        self._closing = True
        self._wake.set()

    async def run(self) -> None:
        """Take turns until closed."""
        try:
            await self._run()
        except Exception:
            log.exception("the broker's turns came to an unforeseen end")
            self._lost("the broker has failed, and its log says how: it must be started again")
            self.refuse_all(self._core.lost)
            raise

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            if self._core.stale and not self._core.lost:
                await self._share_a_write()
            while self._waiting:
                await self._share_a_write()
            if self._closing:
                return

    def refuse_all(self, reason: str) -> None:
        """Nobody's turn comes any more."""
        while self._waiting:
            self._waiting.popleft().fail(self._core.busy(reason))

    def _add(self, decide: Callable[[Draft], Awaitable[object]], *, weighs: bool) -> _Turn:
        turn = _Turn(decide, weighs, asyncio.get_running_loop().create_future())
        if self._closing or self._core.lost:
            turn.fail(self._core.busy(self._core.lost or "the broker is being stopped"))
        else:
            self._waiting.append(turn)
            self._wake.set()
        return turn

    async def _share_a_write(self) -> None:
        core = self._core
        if core.lost:
            self.refuse_all(core.lost)
            return
        draft = core.draft()
        try:
            turns = await self._run_turns(draft)
            if draft.changed or core.stale:
                await self._write(draft, turns)
            else:
                for turn in turns:
                    turn.finish()
        except BaseException:
            draft.take_back()
            raise
        finally:
            core.writing = False

    async def _run_turns(self, draft: Draft) -> list[_Turn]:
        """As many as may share a write."""
        turns: list[_Turn] = []
        until = self._core.clock.monotonic() + SHARING
        while self._waiting:
            turn = self._waiting[0]
            if turns and (turn.alone or turns[-1].alone or (turn.weighs and draft.unlocks)):
                break
            self._waiting.popleft()
            if turn.answer.cancelled():
                continue
            await turn.run(draft)
            turns.append(turn)
            if self._core.clock.monotonic() >= until:
                break
            await asyncio.sleep(0)  # everybody else goes on meanwhile, and may join
        return turns

    async def _write(self, draft: Draft, turns: list[_Turn]) -> None:
        core = self._core
        draft.book.revision += 1
        encoded = self._encoder.encode(draft.book.ledger(now=draft.now))
        if encoded.too_large or (encoded.full and draft.grew):
            draft.take_back()
            self._refuse_growth(turns)
            return
        try:
            await core.keeper.write(encoded)
        except LedgerLost as error:
            log.error("the ledger is somebody else's now", error=str(error))
            draft.take_back()
            self._lost(str(error))
            self._fail(turns, f"another broker leads: {error}")
        except NotWritten as error:
            log.warning("a decision was not written", error=str(error))
            draft.take_back()
            self._fail(turns, str(error))
        except Unsettled as error:
            log.error("nobody knows whether a decision was written", error=str(error))
            self._fail(turns, str(error))
            await self._settle(draft)
        else:
            core.commit(draft)
            for turn in turns:
                turn.finish()

    def _refuse_growth(self, turns: list[_Turn]) -> None:
        """The ledger is full: find out for whom."""
        if len(turns) == 1:
            turns[0].fail(
                self._core.busy(
                    "the broker's ledger is full: permissions must end, or requests be withdrawn, before it takes more"
                )
            )
            return
        for turn in turns:
            turn.alone = True
            turn.result, turn.declined = None, None
        self._waiting.extendleft(reversed(turns))

    async def _settle(self, draft: Draft) -> None:
        """Write what was true before, over whatever is there. Nobody was told of the draft, so nobody misses it."""
        core = self._core
        settling = "the broker is finding out what the store holds"
        core.closed = core.closed or settling
        revision = draft.book.revision
        while not self._closing:
            self.refuse_all(core.closed)
            revision += 1
            book = core.book.copy()
            book.revision = revision
            book.counters = draft.book.counters  # numbers that may have been written are not given again
            try:
                await core.keeper.write(self._encoder.encode(book.ledger(now=core.time.now())))
            except LedgerLost as error:
                draft.take_back()
                self._lost(str(error))
                return
            except QuorateError as error:
                log.warning("still nobody knows what the store holds", error=str(error))
                await core.clock.sleep(_PAUSE)
                continue
            core.book = book
            core.settled()
            draft.take_back()
            if core.closed == settling:
                core.closed = ""
            return
        draft.take_back()  # whoever reads the ledger next will know

    def _fail(self, turns: list[_Turn], reason: str) -> None:
        """Those that had declined anyway get that answer."""
        for turn in turns:
            turn.fail(turn.declined or self._core.busy(reason))
