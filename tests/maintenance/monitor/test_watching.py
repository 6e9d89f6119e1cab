"""The monitor over a broker: what is away too long is marked, unless many are; and a person has the last word."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator
from random import Random

import pytest

from quorate.api.maintenance import Downtime
from quorate.api.maintenance.action import HostState, Marker, StatusCode
from quorate.api.maintenance.broker_config import MonitorConfig
from quorate.api.maintenance.log_record import RecordType
from quorate.api.struct import replace
from quorate.engine.embedded import EmbeddedStore
from quorate.maintenance.broker.book import MONITOR
from quorate.maintenance.messages import (
    Caller,
    LogTailRequest,
    MarkedItems,
    NotificationRequest,
    SetMarker,
)
from quorate.maintenance.monitor.watching import Monitor
from quorate.maintenance.nouns import DriveId, DriveInfo
from tests.maintenance.broker.desk import ANYONE, KINDS, MINUTE, SETTINGS, Desk, StillClock, shutdown

EAGER = replace(SETTINGS, monitor_config=MonitorConfig(enable_auto_updates=True))


class Watched:
    """A broker over eight nodes of a drive each, and its monitor."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.monitor = Monitor(desk.broker, desk.model, desk.store, desk.clock, desk.log)

    async def minutes(self, count: int) -> None:
        for _ in range(count):
            self.desk.clock.advance(60)
            await self.monitor.look()

    def drive(self, node: int, state: HostState) -> None:
        self.desk.model.put_drive(DriveInfo(id=DriveId(node, 1), state=state))

    def marked(self) -> dict[str, Marker]:
        return {entry.item: entry.marker for entry in self.desk.broker.ledger.markers if entry.by == MONITOR}

    async def told(self) -> list[str]:
        asked = LogTailRequest(record_type=RecordType.PDISK_MONITOR_ACTION)
        return [line.message for line in await self.desk.log.tail(asked)]

    async def again(self) -> Watched:
        """After a restart."""
        await self.desk.broker.close()
        other = Watched(await self.desk.again())
        await other.monitor.start()
        return other


@pytest.fixture
async def watched() -> AsyncIterator[Watched]:
    kinds = (*KINDS, Downtime.KIND)
    store = await EmbeddedStore.open(None, kinds=kinds, clock=StillClock(), random=Random(1), inline=True)
    desk = await Desk.open(store=store)
    desk.model.configure(EAGER)
    found = Watched(desk)
    await found.monitor.start()
    yield found
    await desk.broker.close()
    await desk.store.close()


async def test_a_drive_that_is_down_for_an_hour_is_faulty_and_for_two_broken(watched: Watched) -> None:
    watched.drive(1, HostState.DOWN)
    await watched.minutes(59)
    assert watched.marked() == {}
    await watched.minutes(1)
    assert watched.marked() == {"pdisk-1-1": Marker.DISK_FAULTY}
    await watched.minutes(61)
    assert watched.marked() == {"pdisk-1-1": Marker.DISK_BROKEN}
    assert await watched.told() == [
        "pdisk-1-1: MARKER_DISK_FAULTY: down in 60 samples in a row",
        "pdisk-1-1: MARKER_DISK_BROKEN: away for 2.0 h: pdisk-1-1 is DOWN",
    ]


async def test_so_is_one_whose_node_is_down(watched: Watched) -> None:
    watched.desk.put(3, HostState.DOWN)
    await watched.minutes(121)
    assert watched.marked() == {"pdisk-3-1": Marker.DISK_BROKEN}


@pytest.mark.parametrize(("minutes", "marker"), [(60, Marker.DISK_FAULTY), (150, Marker.DISK_BROKEN)])
async def test_a_drive_that_failed_and_came_back_is_trusted_after_sixty_good_samples(
    watched: Watched, minutes: int, marker: Marker
) -> None:
    watched.drive(1, HostState.DOWN)
    await watched.minutes(minutes)
    watched.drive(1, HostState.UP)
    await watched.minutes(59)
    assert watched.marked() == {"pdisk-1-1": marker}
    await watched.minutes(1)
    assert watched.marked() == {}
    assert (await watched.told())[-1] == "pdisk-1-1: well again"


async def test_a_drive_that_was_away_with_leave_only_is_trusted_after_five(watched: Watched) -> None:
    assert (await watched.desk.ask(shutdown("h1", 300 * MINUTE))).permissions
    watched.desk.put(1, HostState.DOWN)
    await watched.minutes(150)
    assert watched.marked() == {"pdisk-1-1": Marker.DISK_BROKEN}
    watched.desk.put(1, HostState.UP)
    assert await watched.desk.done("alice-p-1") is StatusCode.OK
    await watched.minutes(4)
    assert watched.marked() == {"pdisk-1-1": Marker.DISK_BROKEN}
    await watched.minutes(1)
    assert watched.marked() == {}


async def test_a_restart_does_not_make_a_drive_trusted_sooner(watched: Watched) -> None:
    watched.drive(1, HostState.DOWN)
    await watched.minutes(150)
    watched.drive(1, HostState.UP)
    again = await watched.again()
    again.desk.model.configure(EAGER)
    await again.minutes(59)
    assert again.marked() == {"pdisk-1-1": Marker.DISK_BROKEN}
    await again.minutes(1)
    assert again.marked() == {}


async def test_a_short_planned_absence_says_nothing_about_a_drive(watched: Watched) -> None:
    answer = await watched.desk.ask(shutdown("h1", 100 * MINUTE))
    assert answer.permissions
    watched.desk.put(1, HostState.DOWN)
    await watched.minutes(90)
    assert watched.marked() == {}


async def test_an_absence_that_outlasts_its_permission_is_a_breakage(watched: Watched) -> None:
    answer = await watched.desk.ask(shutdown("h1", 10 * MINUTE))
    assert answer.permissions
    watched.desk.put(1, HostState.DOWN)
    await watched.minutes(70)
    assert watched.marked() == {}
    await watched.minutes(1)
    assert watched.marked() == {"pdisk-1-1": Marker.DISK_FAULTY}


async def test_samples_follow_time_and_not_looks(watched: Watched) -> None:
    watched.drive(1, HostState.DOWN)
    for _ in range(200):
        watched.desk.clock.advance(1)
        await watched.monitor.look()
    assert watched.marked() == {}
    watched.desk.clock.advance(3600)
    await watched.monitor.look()  # whatever happened meanwhile, nobody saw it
    assert watched.marked() == {}


async def test_a_time_that_is_moved_counts_as_it_passes(watched: Watched) -> None:
    await watched.monitor.look()
    watched.desk.clock.advance(600)
    watched.drive(1, HostState.DOWN)
    await watched.monitor.notice(1)
    watched.desk.clock.advance(59 * 60)
    await watched.monitor.look(time_was_moved=True)
    assert watched.marked() == {}
    watched.desk.clock.advance(60)
    await watched.monitor.look(time_was_moved=True)
    assert watched.marked() == {"pdisk-1-1": Marker.DISK_FAULTY}


async def test_two_looks_at_once_act_once(watched: Watched) -> None:
    watched.drive(1, HostState.DOWN)
    await watched.monitor.look()
    watched.desk.clock.advance(3 * 3600)
    await asyncio.gather(watched.monitor.look(), watched.monitor.look(time_was_moved=True))
    assert len(await watched.told()) == 1


async def test_announced_work_of_hours_marks_a_drive_before_it_begins(watched: Watched) -> None:
    begins = watched.desk.broker.now() + 90 * MINUTE
    told = NotificationRequest(user="alice", actions=(shutdown("h2", 300 * MINUTE),), time=begins)
    await watched.desk.broker.notification(told, ANYONE)
    await watched.minutes(25)
    assert watched.marked() == {}
    await watched.minutes(10)
    assert watched.marked() == {"pdisk-2-1": Marker.DISK_FAULTY}
    await watched.minutes(50)
    assert watched.marked() == {"pdisk-2-1": Marker.DISK_BROKEN}


async def test_what_nobody_knows_is_no_reason(watched: Watched) -> None:
    watched.drive(1, HostState.UNKNOWN)
    watched.desk.put(2, HostState.UNKNOWN)
    await watched.minutes(200)
    assert watched.marked() == {}


async def test_a_dark_data_centre_marks_nothing_and_says_why(watched: Watched) -> None:
    for node in tuple(watched.desk.model.nodes()):
        place, state = ("a", HostState.DOWN) if node.id < 5 else ("b", HostState.UP)
        watched.desk.model.put_node(dataclasses.replace(node, data_center=place, state=state))
    await watched.minutes(130)
    assert watched.marked() == {}
    assert watched.monitor.held[DriveId(1, 1)] == "4 of 4 drives of data centre a would be marked, at most 50 % may be"
    (told,) = await watched.told()
    assert told.startswith("4 drives are not marked, because too many would be at once: 4 of 4 drives of data centre a")


async def test_unless_it_is_told_to_it_marks_nothing_but_remembers(watched: Watched) -> None:
    watched.desk.model.configure(SETTINGS)
    watched.drive(1, HostState.DOWN)
    await watched.minutes(200)
    assert watched.marked() == {}
    (remembered,) = (await watched.desk.store.list(Downtime)).items
    assert remembered.name == "pdisk-1-1"
    assert remembered.status.segments[0].end is None


async def test_what_a_person_has_marked_is_theirs(watched: Watched) -> None:
    carol = Caller(name="carol", admin=True)
    for item in (MarkedItems(drives=("pdisk-1-1",)), MarkedItems(nodes=(2,))):
        await watched.desk.broker.set_marker(SetMarker(marker=Marker.DISK_ACTIVE, items=item), carol)
    for node in (1, 2, 3):
        watched.drive(node, HostState.DOWN)
    await watched.minutes(180)
    assert watched.marked() == {"pdisk-3-1": Marker.DISK_BROKEN}
    by_hand = {entry.item: entry.marker for entry in watched.desk.broker.ledger.markers if entry.by == "carol"}
    assert by_hand == {"pdisk-1-1": Marker.DISK_ACTIVE, "node-2": Marker.DISK_ACTIVE}


async def test_a_persons_marker_outlives_the_monitors(watched: Watched) -> None:
    watched.drive(2, HostState.DOWN)
    await watched.minutes(60)
    faulty = SetMarker(marker=Marker.DISK_FAULTY, items=MarkedItems(drives=("pdisk-2-1",)))
    await watched.desk.broker.set_marker(faulty, Caller(name="carol", admin=True))
    watched.drive(2, HostState.UP)
    await watched.minutes(10)
    assert {entry.by for entry in watched.desk.broker.ledger.markers} >= {"carol"}


async def test_a_restart_forgets_no_absence(watched: Watched) -> None:
    watched.drive(1, HostState.DOWN)
    await watched.minutes(100)
    again = await watched.again()
    again.desk.model.configure(EAGER)
    await again.minutes(21)
    assert again.marked() == {"pdisk-1-1": Marker.DISK_BROKEN}


async def test_while_nothing_changes_nothing_is_written(watched: Watched) -> None:
    watched.drive(1, HostState.DOWN)
    await watched.minutes(1)
    before = (await watched.desk.store.list(Downtime)).resource_version
    await watched.minutes(50)
    assert (await watched.desk.store.list(Downtime)).resource_version == before


async def test_the_past_is_forgotten_when_nothing_can_join_it(watched: Watched) -> None:
    watched.drive(1, HostState.DOWN)
    await watched.minutes(5)
    watched.drive(1, HostState.UP)
    await watched.minutes(12)
    assert (await watched.desk.store.list(Downtime)).items == ()


async def test_a_drive_that_left_the_cluster_has_no_history(watched: Watched) -> None:
    watched.drive(1, HostState.DOWN)
    await watched.minutes(5)
    watched.desk.model.remove_group(0)
    watched.desk.model.remove_drive(DriveId(1, 1))
    await watched.minutes(1)
    assert (await watched.desk.store.list(Downtime)).items == ()
