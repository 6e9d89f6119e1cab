"""What every question works on: the model, the book, the time; and who is told when they change."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from quorate.api.codec import to_builtins
from quorate.api.maintenance.action import StatusCode
from quorate.api.maintenance.broker_config import BrokerConfigSpec
from quorate.api.maintenance.log_record import RecordType
from quorate.engine.clock import Clock
from quorate.engine.store import Store
from quorate.maintenance.broker.book import Book
from quorate.maintenance.broker.declined import Declined
from quorate.maintenance.broker.draft import Draft, Record, describe
from quorate.maintenance.broker.lapses import Lapsed, Lapses
from quorate.maintenance.broker.ports import Identities, Locks, Log, Metrics
from quorate.maintenance.broker.watchers import Watchers
from quorate.maintenance.entries import Ledger
from quorate.maintenance.ledger.broker_time import BrokerTime
from quorate.maintenance.ledger.keeper import LedgerKeeper
from quorate.maintenance.messages import Change, ChangeKind, ChangeVerb
from quorate.maintenance.model import ClusterModel
from quorate.maintenance.moments import SECOND, later


class Core:
    """The broker's state in memory: what is written, less what has ended by time since."""

    def __init__(
        self,
        store: Store,
        model: ClusterModel,
        clock: Clock,
        *,
        holder: str,
        log: Log,
        metrics: Metrics,
        identities: Identities,
        locks: Locks,
        config: BrokerConfigSpec,
    ) -> None:
        self.model = model
        self.clock = clock
        self.time = BrokerTime(clock)
        self.keeper = LedgerKeeper(store, clock, holder=holder)
        self.log = log
        self.metrics = metrics
        self.identities = identities
        self.locks = locks
        self.config = config
        self.lapses = Lapses(model, locks)
        self.watchers = Watchers()
        self.book = Book()
        #: Why nothing can be written: the ledger is not ours. Empty when it is.
        self.lost = "the broker has not been started"
        #: Why questions are not answered although the ledger is ours.
        self.closed = ""
        #: A draft is being made or written: until its end nothing else changes the book.
        self.writing = False
        #: What has ended by time and is still in the written ledger; its records wait for the write.
        self.unwritten: list[Record] = []
        self.stale = False
        #: Called when an answer may have become another.
        self.on_change: Callable[[], None] = lambda: None
        self._ledger: Ledger | None = None
        metrics.watch(
            oldest_lock=self._oldest_lock,
            held=lambda: len(self.book.permissions),
            stored=lambda: len(self.book.requests),
        )

    @property
    def retry(self) -> int:
        """DefaultRetryTime, in microseconds."""
        return self.config.default_retry_time.microseconds

    @property
    def ledger(self) -> Ledger:
        """What is decided, as a value."""
        if self._ledger is None:
            self._ledger = self.book.ledger(now=self.time.now())
        return self._ledger

    def now(self) -> int:
        """Broker time; and what has ended by it, has. Not while the model is empty: it could not say what is down."""
        now = self.time.now()
        if not (self.writing or self.lost or self.closed):
            lapsed = self.lapses.run(self.book, now, self.retry)
            if lapsed:
                self._lapsed(lapsed, now)
        return now

    def open(self) -> int:
        """Broker time, if questions are answered at all. Declined: not here, not now."""
        if self.lost or self.closed:
            raise self.busy(self.lost or self.closed)
        return self.now()

    def weigh(self) -> int:
        """Broker time, if decisions can be made by it. Declined: the clock is not to be trusted."""
        now = self.open()
        if self.time.doubt:
            raise self.busy(f"the broker waits for the clock to be put right: {self.time.doubt}")
        return now

    def busy(self, reason: str) -> Declined:
        """ERROR_TEMP: ask again, later."""
        return Declined(StatusCode.ERROR_TEMP, reason, deadline=later(self.time.now(), self.retry))

    def load(self, ledger: Ledger) -> None:
        """A ledger was read: whatever locks were in the model, now it has these."""
        self.unload()
        self.book = Book.of(ledger)
        self._ledger = None
        for permission in self.book.permissions.values():
            self.model.hold(permission)
            if not permission.lapsed:
                self.locks.take(permission)
        for request in self.book.requests.values():
            self.model.queue(request, blocking=True)
        for notification in self.book.notifications.values():
            self.model.announce(notification)
        self.lapses.begin()
        self.unwritten.clear()
        self.stale = False

    def unload(self) -> None:
        """Nothing is known any more."""
        for permission in self.book.permissions:
            self.model.release(permission)
            self.locks.drop(permission)
        for request in self.book.requests:
            self.model.dequeue(request)
        for notification in self.book.notifications:
            self.model.withdraw(notification)
        self.book = Book()
        self._ledger = None

    def draft(self) -> Draft:
        """A copy of the book to decide in."""
        now = self.now()
        self.writing = True
        return Draft(self.book, self.model, self.locks, now=now)

    def commit(self, draft: Draft) -> None:
        """A draft is written: it is the book from now on."""
        self.book = draft.book
        draft.settle()
        self.settled()
        for entry in draft.touched:
            self.lapses.consider(entry)
        if draft.granted:
            self.metrics.granted(draft.granted)
        self._note(draft.records)
        self.tell(draft.changes)
        self.on_change()

    def settled(self) -> None:
        """The book is written."""
        self._ledger = None
        self.stale = False
        self._note(self.unwritten)
        self.unwritten.clear()

    def tell(self, changes: Iterable[Change]) -> None:
        """Those who watch."""
        if self.watchers:
            self.watchers.tell(changes)

    def _note(self, records: Iterable[Record]) -> None:
        for record in records:
            self.log.record(record.at, record.record_type, record.message, record.data)

    def _lapsed(self, lapsed: Lapsed, now: int) -> None:
        self.stale = True
        self._ledger = None
        self.on_change()
        for permission in lapsed.permissions:
            message = f"{permission.id} ended (EXPIRED): {describe(self.model, permission.action)}"
            data = {**to_builtins(permission), "why": "EXPIRED"}
            self.unwritten.append(Record(now, RecordType.PERMISSION_ENDED, message, data))
        for kind, verb, entries in (
            (ChangeKind.PERMISSION, ChangeVerb.ENDED, lapsed.permissions),
            (ChangeKind.PERMISSION, ChangeVerb.CHANGED, lapsed.let_go),
            (ChangeKind.REQUEST, ChangeVerb.ENDED, lapsed.requests),
            (ChangeKind.NOTIFICATION, ChangeVerb.ENDED, lapsed.notifications),
        ):
            self.tell(
                Change(kind=kind, verb=verb, id=entry.id, owner=entry.owner, object_uid=entry.object_uid)
                for entry in entries
            )

    def _oldest_lock(self) -> float:
        oldest = min((entry.granted_at for entry in self.book.permissions.values()), default=None)
        return 0.0 if oldest is None else max(0, self.time.now() - oldest) / SECOND
