"""The monitor at work: look, remember, form an opinion, and mark what the guards let pass."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, Final

from quorate.api.maintenance.action import Marker, StatusCode
from quorate.api.maintenance.broker_config import MonitorConfig
from quorate.api.maintenance.log_record import RecordType
from quorate.engine.clock import Clock
from quorate.engine.logs import get_logger
from quorate.engine.store import Store
from quorate.errors import QuorateError
from quorate.maintenance.broker import Broker
from quorate.maintenance.broker.book import MONITOR
from quorate.maintenance.broker.markers import node_item
from quorate.maintenance.broker.ports import Log
from quorate.maintenance.entries import MarkerEntry
from quorate.maintenance.messages import Caller, MarkedItems, SetMarker
from quorate.maintenance.model import ClusterModel
from quorate.maintenance.model.lookup import device_label
from quorate.maintenance.moments import SECOND
from quorate.maintenance.monitor import memory
from quorate.maintenance.monitor.absences import Absences
from quorate.maintenance.monitor.guards import Standing, held_back
from quorate.maintenance.monitor.opinions import Opinion, Sample, Streak, opinion
from quorate.maintenance.monitor.samples import Plans, Seen, look, plans
from quorate.maintenance.monitor.spans import joined
from quorate.maintenance.nouns import DriveId, parse_device

_logger = get_logger(__name__)

_BAD: Final = frozenset({Marker.DISK_BROKEN, Marker.DISK_FAULTY})
_SELF: Final = Caller(name=MONITOR, admin=True)
_NO_STREAK: Final = Streak()
#: Of a drive that was marked before this process began: why, nobody remembers.
_MARKED_BEFORE: Final = Streak(unplanned=True)
#: Nodes looked at before others are let through.
_BREATH: Final = 100
#: Drives named in one record of the log.
_TOLD: Final = 100


class Monitor:
    """Watches the drives of a broker's cluster, from ``start`` on."""

    def __init__(self, broker: Broker, model: ClusterModel, store: Store, clock: Clock, log: Log) -> None:
        self._broker = broker
        self._model = model
        self._store = store
        self._clock = clock
        self._log = log
        self._absences = Absences()
        #: Of the drives that were last seen badly, or are marked: a drive in good standing needs none.
        self._streaks: dict[DriveId, Streak] = {}
        self._sampled_at: int | None = None
        self._looking = asyncio.Lock()
        self._unwritten: set[str] = set()
        #: When a drive was marked, also if it is trusted again. A restart forgets those that are.
        self._lately: dict[DriveId, int] = {}
        #: Why a drive is not marked although it should be, as it was last said.
        self.held: dict[DriveId, str] = {}

    async def start(self) -> None:
        """Read what is remembered."""
        self._absences = Absences(await memory.read(self._store), last_lived=self._broker.ledger.time_high_water)

    async def run(self) -> None:
        """Look again and again, until cancelled."""
        while True:
            try:
                await self.look()
            except QuorateError as error:
                _logger.warning("disk monitor could not finish its look", error=str(error))
            await self._clock.sleep(self._config.update_interval.seconds)

    @property
    def _config(self) -> MonitorConfig:
        return self._model.settings.monitor_config

    async def look(self, *, time_was_moved: bool = False) -> None:
        """One look at every drive, and what follows from it.

        It is a sample if an interval has passed since the last one. A time that was moved on purpose passed as it
        looks: then it is as many samples as there were intervals. One look at a time.
        """
        async with self._looking:
            if not self._broker.leading:
                return
            now, config = self._broker.now(), self._config
            planned = plans(self._model, self._broker.ledger)
            seen = await self._look()
            await self._remember(seen, now, config)
            self._count(seen, planned, now, config, most=None if time_was_moved else 1)
            if config.enable_auto_updates:
                await self._mark(seen, planned, now, config)

    async def notice(self, node_id: int) -> None:
        """A node, or a drive of it, has changed: remember what is away since now, before the next look. No sample."""
        node = self._model.node(node_id)
        if node is not None and self._broker.leading:
            self._see(look(self._model, node), self._broker.now(), self._config)
            await self._write()

    async def _look(self) -> list[Seen]:
        """All drives, a few nodes at a time: the broker has questions to answer."""
        seen: list[Seen] = []
        for number, node in enumerate(tuple(self._model.nodes())):
            if number % _BREATH == 0:
                await asyncio.sleep(0)
            seen += look(self._model, node)
        return seen

    def _count(
        self, seen: Iterable[Seen], planned: Plans, now: int, config: MonitorConfig, *, most: int | None
    ) -> None:
        """Samples in a row, of those that were seen badly or are marked. Those before a change are not counted."""
        interval = max(int(config.update_interval.seconds * SECOND), 1)
        last = now - interval if self._sampled_at is None else self._sampled_at
        passed = max(now - last, 0) // interval
        self._sampled_at = last + passed * interval
        marked = self._marked()
        for each in seen:
            history = self._absences.of(str(each.drive))
            before = max(history.changed_at - last, 0)
            times = max(passed - -(-before // interval), 0) if most is None else min(passed, most)
            sample = each.sample(planned, now, history.since)
            before_it = _MARKED_BEFORE if each.drive in marked else _NO_STREAK
            streak = self._streaks.get(each.drive, before_it).seen(sample, times)
            if streak.sample is Sample.BAD or each.drive in marked:
                self._streaks[each.drive] = streak
            else:
                self._streaks.pop(each.drive, None)

    async def _remember(self, seen: Iterable[Seen], now: int, config: MonitorConfig) -> None:
        for item in set(self._absences.items()) - self._see(seen, now, config):
            if self._absences.forget(item):
                self._unwritten.add(item)
        await self._write()

    def _see(self, seen: Iterable[Seen], now: int, config: MonitorConfig) -> set[str]:
        """Note who is away, and who is back; returns who was looked at."""
        gap = int(config.ignored_downtime_gap.seconds * SECOND)
        present = set()
        for each in seen:
            item = str(each.drive)
            present.add(item)
            if each.away is not None and self._absences.see(item, away=each.away, reason=each.reason, now=now, gap=gap):
                self._unwritten.add(item)
        return present

    async def _write(self) -> None:
        for item in sorted(self._unwritten):
            await memory.write(self._store, item, self._absences.items().get(item))
            self._unwritten.discard(item)

    async def _mark(self, seen: list[Seen], planned: Plans, now: int, config: MonitorConfig) -> None:
        marked, by_hand = self._marked(), self._marked_by_hand(seen)
        opinions = {
            each.drive: self._opinion(each.drive, planned, marked.get(each.drive), now, config)
            for each in seen
            if each.drive not in by_hand
            and (each.drive in self._streaks or planned.of(each.drive) or str(each.drive) in self._absences.items())
        }
        locations = {each.drive: each.location for each in seen}
        fresh = [drive for drive, thought in opinions.items() if thought.marker in _BAD and drive not in marked]
        # Those still marked count whenever they were; those that are trusted again, while the window lasts.
        oldest = now - int(config.guard_window.seconds * SECOND)
        self._lately = {drive: since for drive, since in self._lately.items() if since >= oldest}
        counted = sorted(drive for drive in {*marked, *self._lately} if drive in locations and drive not in fresh)
        held = held_back(
            [(drive, locations[drive]) for drive in fresh],
            Standing(tuple(locations.values()), [(drive, locations[drive]) for drive in counted]),
            config,
        )
        self._tell(held)
        for drive, thought in opinions.items():
            before = marked[drive].marker if drive in marked else None
            if drive not in held and thought.marker is not before:
                await self._set(drive, before, thought)

    def _opinion(
        self, drive: DriveId, planned: Plans, entry: MarkerEntry | None, now: int, config: MonitorConfig
    ) -> Opinion:
        history = self._absences.of(str(drive))
        spans = (*history.spans(now), *(plan.span(now, history.since) for plan in planned.of(drive)))
        gap = int(config.ignored_downtime_gap.seconds * SECOND)
        streak = self._streaks.get(drive, _NO_STREAK)
        return opinion(joined(spans, gap), streak, entry.marker if entry is not None else None, config, now)

    async def _set(self, drive: DriveId, before: Marker | None, thought: Opinion) -> None:
        marker = thought.marker if thought.marker is not None else before
        items = MarkedItems(drives=(str(drive),))
        answer = await self._broker.set_marker(
            SetMarker(marker=marker, items=items, reset=thought.marker is None), _SELF
        )
        if answer.status.code is not StatusCode.OK:
            _logger.warning("drive not marked", drive=str(drive), answer=answer.status.reason)
            return
        if thought.marker in _BAD and before is None:
            self._lately[drive] = self._broker.now()
            self._streaks.setdefault(drive, _NO_STREAK)
        data: dict[str, Any] = {
            "pdisk": str(drive),
            "before": str(before) if before is not None else "",
            "after": str(thought.marker) if thought.marker is not None else "",
            "reason": thought.reason,
        }
        label = device_label(self._model, str(drive))
        told = f"{label}: {thought.marker}: {thought.reason}" if thought.marker is not None else f"{label}: well again"
        self._log.record(self._broker.now(), RecordType.PDISK_MONITOR_ACTION, told, data)

    def _tell(self, held: dict[DriveId, str]) -> None:
        """When others are held back than before: it may stay so for long."""
        if held.keys() != self.held.keys() and held:
            drives = [str(drive) for drive in held]
            reason = next(iter(held.values()))
            told = f"{len(drives)} drives are not marked, because too many would be at once: {reason}"
            _logger.warning("drives not marked: too many at once", drives=len(drives), reason=reason)
            data = {"pdisks": drives[:_TOLD], "reason": reason}
            self._log.record(self._broker.now(), RecordType.PDISK_MONITOR_ACTION, told, data)
        self.held = held

    def _marked_by_hand(self, seen: Iterable[Seen]) -> set[DriveId]:
        """What a person has spoken of, by itself or with its node, is theirs."""
        items = {entry.item for entry in self._broker.ledger.markers if entry.by != MONITOR}
        return (
            {each.drive for each in seen if items & {str(each.drive), node_item(each.drive.node)}} if items else set()
        )

    def _marked(self) -> dict[DriveId, MarkerEntry]:
        """What the monitor has marked so far."""
        found = {parse_device(entry.item): entry for entry in self._broker.ledger.markers if entry.by == MONITOR}
        return {drive: entry for drive, entry in found.items() if isinstance(drive, DriveId)}
