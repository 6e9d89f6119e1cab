"""The queue, against a model that is too slow and too simple to be wrong."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass
from random import Random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from quorate.engine.backoff import Backoff
from quorate.engine.keys import Key
from quorate.engine.queue import FAIRNESS, FRESH, RESYNC, KeyQueue, QueueClosed, WorkQueue
from quorate.engine.simulation import Simulation, for_each_seed, run

KEYS = [Key("", name) for name in "abcdef"]
PRIORITIES = [FRESH, RESYNC, 10]


@dataclass
class Wanted:
    """A key that should get a pass: the earliest time and the highest priority anybody asked for."""

    due: float
    priority: int
    #: Counters of the model: when it was asked for that time, and when it came to its priority.
    asked_turn: int = 0
    level_turn: int = 0
    ready: bool = False


class TightQueue(KeyQueue):
    """Tidies up so often that it happens in a short test."""

    slack = 2


class QueueMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.queue = TightQueue()
        self.now = 0.0
        self.turn = 0
        self.passes = 0
        self.wanted: dict[Key, Wanted] = {}
        self.again: dict[Key, Wanted] = {}
        self.taken: set[Key] = set()
        #: A round of turns that has not come to its end, and the time that it is for.
        self.turns = self.queue.turns(self.now)
        self.turns_at = -1.0

    @rule(key=st.sampled_from(KEYS), priority=st.sampled_from(PRIORITIES), delay=st.sampled_from([0.0, 1.0, 2.0, 5.0]))
    def add(self, key: Key, priority: int, delay: float) -> None:
        held = self.again if key in self.taken else self.wanted
        assert self.queue.add(key, self.now, priority=priority, due=self.now + delay) == (key not in held)
        self.note(key, priority, delay)

    def note(self, key: Key, priority: int, delay: float) -> None:
        held = self.again if key in self.taken else self.wanted
        if key not in held:
            held[key] = Wanted(self.now + delay, priority, asked_turn=self.next_turn())
        else:
            wanted = held[key]
            if priority > wanted.priority:
                wanted.priority = priority
                wanted.level_turn = self.next_turn()
            if not wanted.ready and self.now + delay < wanted.due:
                wanted.due = self.now + delay
                wanted.asked_turn = self.next_turn()
        self.mark_ready()

    @rule(seconds=st.sampled_from([0.5, 1.0, 3.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @rule(keys=st.lists(st.sampled_from(KEYS), unique=True))
    def wake(self, keys: list[Key]) -> None:
        asked_for = [key in (self.again if key in self.taken else self.wanted) for key in keys]
        assert self.queue.wake(keys, self.now) == asked_for.count(False)
        for key in keys:
            self.note(key, FRESH, 0.0)

    @rule(held=st.booleans(), going_on=st.booleans())
    def take(self, held: bool, going_on: bool) -> None:
        self.mark_ready()
        expected = self.expected()
        if not going_on or self.turns_at != self.now:
            self.turns, self.turns_at = self.queue.turns(self.now), self.now
        popped = next(self.turns, None)
        if popped is None:
            self.turns_at = -1.0
        if expected is None:
            assert popped is None
            return
        wanted = self.wanted.pop(expected)
        assert popped == (expected, wanted.priority, wanted.due)
        assert wanted.due <= self.now
        self.passes += 1
        if held:
            self.queue.hold(expected, self.now)
            self.taken.add(expected)

    @precondition(lambda self: self.taken)
    @rule(data=st.data())
    def done(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.taken)))
        self.queue.done(key, self.now)
        self.taken.discard(key)
        if key in self.again:
            self.wanted[key] = self.again.pop(key)
            self.wanted[key].asked_turn = self.next_turn()
        self.mark_ready()

    @invariant()
    def the_next_due_time_is_the_earliest_of_those_not_ready(self) -> None:
        self.queue.ready(self.now)
        self.mark_ready()
        waiting = [wanted.due for wanted in self.wanted.values() if not wanted.ready]
        assert self.queue.next_due() == min(waiting, default=None)

    @invariant()
    def it_knows_how_many_are_ready(self) -> None:
        self.mark_ready()
        ready = Counter(wanted.priority for wanted in self.wanted.values() if wanted.ready)
        assert self.queue.ready(self.now) == ready.total()
        assert {level: count for level, count in self.queue.depth().items() if count} == dict(ready)
        assert set(self.queue.taken()) == self.taken

    @invariant()
    def what_is_left_behind_is_limited_by_how_many_keys_there_are(self) -> None:
        assert len(self.queue._schedule) <= 2 * len(KEYS) + TightQueue.slack

    def next_turn(self) -> int:
        self.turn += 1
        return self.turn

    def mark_ready(self) -> None:
        due = [wanted for wanted in self.wanted.values() if wanted.due <= self.now and not wanted.ready]
        for wanted in sorted(due, key=lambda wanted: (wanted.due, wanted.asked_turn)):
            wanted.ready = True
            wanted.level_turn = self.next_turn()

    def expected(self) -> Key | None:
        ready = {key: wanted for key, wanted in self.wanted.items() if wanted.ready}
        if not ready:
            return None
        if self.passes % FAIRNESS == FAIRNESS - 1:
            heads: dict[int, Key] = {}
            for key, wanted in sorted(ready.items(), key=lambda item: item[1].level_turn):
                heads.setdefault(wanted.priority, key)
            return min(heads.values(), key=lambda key: (ready[key].due, ready[key].priority))
        return min(ready, key=lambda key: (-ready[key].priority, ready[key].level_turn))


TestQueueAgainstModel = QueueMachine.TestCase
TestQueueAgainstModel.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)


class Silent:
    """A queue observer that keeps what it hears."""

    def __init__(self) -> None:
        self.heard: Counter[str] = Counter()

    def added(self, keys: int = 1, /) -> None:
        self.heard["added"] += keys

    def retried(self) -> None:
        self.heard["retried"] += 1

    def finished(self, took: float) -> None:
        self.heard["finished"] += 1


async def taken(queue: WorkQueue, sim: Simulation) -> Key:
    """The next key, held, when there is one."""
    while True:
        await queue.ready()
        now = sim.clock.monotonic()
        if popped := queue.keys.pop(now):
            queue.keys.hold(popped[0], now)
            return popped[0]


def work_queue(sim: Simulation) -> WorkQueue:
    return WorkQueue(clock=sim.clock, random=sim.random("queue"), observer=Silent())


def test_no_key_is_ever_with_two_workers_and_an_add_while_working_means_exactly_one_more_pass() -> None:
    async def main(sim: Simulation) -> None:
        queue, busy, passes = work_queue(sim), set[Key](), Counter[Key]()
        random = sim.random("work")

        async def worker() -> None:
            while True:
                try:
                    key = await taken(queue, sim)
                except QueueClosed:
                    return
                assert key not in busy
                busy.add(key)
                passes[key] += 1
                if passes[key] == 1:
                    for _ in range(random.randrange(1, 4)):
                        queue.add(key)
                await sim.clock.sleep(random.random())
                busy.discard(key)
                queue.done(key)

        async with asyncio.TaskGroup() as group:
            for _ in range(3):
                group.create_task(worker())
            for key in KEYS:
                queue.add(key)
            await sim.clock.sleep(100)
            queue.close()
        assert passes == dict.fromkeys(KEYS, 2)

    for_each_seed(main)


def test_a_key_for_later_is_handed_out_at_its_time_and_an_earlier_request_counts() -> None:
    async def main(sim: Simulation) -> None:
        queue = work_queue(sim)
        queue.add(KEYS[0], after=10)
        queue.add(KEYS[1], after=20)
        queue.add(KEYS[1], after=5)
        seen = []
        for _ in range(2):
            key = await taken(queue, sim)
            seen.append((key, sim.clock.monotonic()))
            queue.done(key)
        assert seen == [(KEYS[1], 5), (KEYS[0], 10)]

    for_each_seed(main)


def test_a_key_that_becomes_due_while_every_worker_is_busy_waits_for_one_without_spinning() -> None:
    async def main(sim: Simulation) -> None:
        queue = work_queue(sim)
        queue.add(KEYS[0], after=5)
        queue.add(KEYS[1])
        first = await taken(queue, sim)
        waiting = asyncio.create_task(taken(queue, sim))
        await sim.clock.sleep(5)
        second = await waiting
        queue.add(KEYS[2], after=1)
        queue.add(KEYS[3], after=2)
        await sim.clock.sleep(1000)  # Stuck, if an alarm rang again and again
        queue.done(first)
        queue.done(second)
        assert {await taken(queue, sim) for _ in range(2)} == {KEYS[2], KEYS[3]}
        assert sim.clock.monotonic() == 1005

    for_each_seed(main, range(3))


def test_a_cancelled_worker_passes_on_the_key_it_was_woken_for() -> None:
    async def main(sim: Simulation) -> None:
        queue = work_queue(sim)
        first, second = (asyncio.create_task(taken(queue, sim)) for _ in range(2))
        await sim.clock.sleep(1)
        queue.add(KEYS[0])
        first.cancel()
        await sim.clock.sleep(1)
        assert second.done()
        assert await second == KEYS[0]
        with pytest.raises(asyncio.CancelledError):
            await first

    for_each_seed(main)


def test_failures_in_a_row_wait_longer_up_to_the_limit_and_success_forgets_them() -> None:
    async def main(sim: Simulation) -> list[float]:
        queue = WorkQueue(
            clock=sim.clock, random=sim.random("queue"), observer=Silent(), retry=Backoff(first=1.0, longest=60.0)
        )
        delays = [queue.retry(KEYS[0], priority=FRESH) for _ in range(20)]
        queue.failures.clear()
        return [*delays, queue.retry(KEYS[0], priority=FRESH)]

    *delays, fresh = run(main, seed=1)
    for failures, delay in enumerate(delays, start=1):
        longest = min(2.0 ** (failures - 1), 60.0)
        assert longest / 2 <= delay <= longest
    assert len(set(delays[8:])) == len(delays[8:]), "the limit must be jittered as well"
    assert 0.5 <= fresh <= 1.0


def test_an_outage_of_the_store_makes_nobody_wait_long_and_counts_for_nothing_afterwards() -> None:
    async def main(sim: Simulation) -> None:
        queue = WorkQueue(clock=sim.clock, random=sim.random("queue"), observer=Silent())
        delays = [queue.retry(KEYS[0], priority=FRESH, away=True) for _ in range(1000)]
        assert min(delays[20:]) >= 5.0
        assert max(delays) <= 10.0
        assert len(set(delays[20:])) == len(delays[20:]), "all that has waited must not return at once"
        assert queue.retry(KEYS[0], priority=FRESH) <= 0.005
        queue.succeeded(KEYS[0])
        assert not queue.failures
        assert not queue.outages

    run(main, seed=1)


def test_neither_a_resync_nor_fresh_events_can_starve_the_other() -> None:
    queue = KeyQueue()
    resyncs = [Key("resync", f"{number:03}") for number in range(100)]
    for key in resyncs:
        queue.add(key, 0.0, priority=RESYNC)
    served: list[Key] = []
    for step in range(100 * FAIRNESS):
        # A flood: two fresh events for every pass there is.
        queue.add(Key("fresh", f"{2 * step:04}"), 0.0)
        queue.add(Key("fresh", f"{2 * step + 1:04}"), 0.0)
        popped = queue.pop(0.0)
        assert popped is not None
        served.append(popped[0])
    assert [key for key in served if key.namespace == "resync"] == resyncs
    fresh = [key for key in served if key.namespace == "fresh"]
    assert len(fresh) == 100 * (FAIRNESS - 1)
    assert fresh == sorted(fresh)


def test_a_key_that_is_woken_again_and_again_before_its_time_leaves_nothing_behind() -> None:
    queue = KeyQueue()
    for second in range(10_000):
        queue.add(KEYS[0], float(second))
        assert queue.pop(float(second)) is not None
        queue.hold(KEYS[0], float(second))
        queue.add(KEYS[0], float(second), due=second + 3600.0)
        queue.done(KEYS[0], float(second))
    assert len(queue._schedule) <= 2 + KeyQueue.slack
    assert queue.next_due() == 9_999 + 3600.0


def test_keys_for_the_same_time_are_served_in_the_order_of_the_last_request() -> None:
    queue = KeyQueue()
    first, second = KEYS[:2]
    for key in (first, second):
        queue.add(key, 0.0, due=5.0)
    queue.add(first, 0.0)
    assert queue.pop(0.0) is not None
    queue.add(first, 0.0, due=5.0)
    assert [popped[0] for popped in (queue.pop(5.0), queue.pop(5.0)) if popped] == [second, first]


def test_only_requests_that_were_not_merged_with_another_are_counted() -> None:
    async def main(sim: Simulation) -> None:
        observer = Silent()
        queue = WorkQueue(clock=sim.clock, random=sim.random("queue"), observer=observer)
        for _ in range(3):
            queue.add(KEYS[0])
        key = await taken(queue, sim)
        for _ in range(3):
            queue.add(key)
        queue.done(key)
        queue.add(KEYS[1], after=5)
        assert observer.heard["added"] == 3

    run(main, seed=1)


def test_a_fresh_event_overtakes_a_resync_of_everything() -> None:
    queue = KeyQueue()
    for number in range(10_000):
        queue.add(Key("", f"{number:05}"), 0.0, priority=RESYNC)
    queue.add(Key("", "07777"), 0.0)
    assert queue.pop(0.0) == (Key("", "07777"), FRESH, 0.0)


def test_a_closed_queue_sends_every_worker_home() -> None:
    async def main(sim: Simulation) -> None:
        queue = work_queue(sim)
        workers = [asyncio.create_task(queue.ready()) for _ in range(3)]
        await sim.clock.sleep(1)
        queue.add(KEYS[0], after=5)
        queue.close()
        results = await asyncio.gather(*workers, return_exceptions=True)
        assert [type(result) for result in results] == [QueueClosed] * 3

    for_each_seed(main)


@pytest.mark.parametrize("failures", [1, 2, 61, 10_000])
def test_back_off_never_overflows(failures: int) -> None:
    assert 0 < Backoff(first=0.005, longest=300.0).delay(failures, Random(1)) <= 300.0


def test_a_key_that_nothing_was_to_be_done_about_is_looked_at_once_for_all_that_happens_while_it_rests() -> None:
    queue = KeyQueue()
    queue.wake(KEYS[:1], 0.0)
    assert queue.pop(0.0) is not None
    queue.rest(KEYS[0], 0.0, until=1.0)
    queue.wake(KEYS[:1], 0.2)
    queue.wake(KEYS[:2], 0.9)
    assert queue.pop(0.9) == (KEYS[1], FRESH, 0.9)
    assert (queue.pop(0.99), queue.next_due()) == (None, 1.0)
    assert queue.pop(1.0) == (KEYS[0], FRESH, 1.0)
    queue.wake(KEYS[:1], 1.1)
    assert queue.pop(1.1) == (KEYS[0], FRESH, 1.1), "rest is over, and only a pass that finds nothing begins another"


def test_resting_keys_are_forgotten_when_their_time_is_over() -> None:
    queue = KeyQueue()
    for number in range(1000):
        queue.rest(Key("", str(number)), float(number), until=number + 5.0)
    assert len(queue._resting) <= 6
