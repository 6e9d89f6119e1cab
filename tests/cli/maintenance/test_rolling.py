"""A rolling restart: every host once, never more at once than permitted, and taken up again wherever it was killed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from quorate.cli.maintenance import wire
from quorate.cli.maintenance.journal import Header, Journal
from quorate.cli.maintenance.rolling import Outcome, Rolling
from quorate.errors import QuorateError, StoreUnreachable

T = TypeVar("T")
HOSTS = ("h1", "h2", "h3", "h4", "h5")


class Killed(BaseException):
    """The command is gone."""


class NotLeading(Exception):
    """As trouble: the broker answers ERROR_TEMP, as it does while its leader changes."""


@dataclass
class FakeBroker:
    """Permits so many at once; ``trouble`` may raise before or after a question is answered."""

    at_once: int = 2
    held: dict[str, str] = field(default_factory=dict)
    stored: dict[str, tuple[str, list[str]]] = field(default_factory=dict)
    #: Of each permission, the run that it was given to.
    runs: dict[str, str] = field(default_factory=dict)
    deadlines: dict[str, int] = field(default_factory=dict)
    numbers: int = 0
    most: int = 0
    asked: list[str] = field(default_factory=list)
    now: int = 1_000_000_000
    valid_for: int = 300_000_000
    extends: bool = True
    refuses: wire.Status | None = None
    trouble: Callable[[str, str], None] = lambda path, when: None

    async def ask(self, path: str, question: wire.Message | None, answer: type[T]) -> T:
        await asyncio.sleep(0)
        try:
            self.trouble(path, "before")
        except NotLeading:
            return answer(status=wire.Status(code="ERROR_TEMP", reason="somebody else leads"))  # type: ignore[call-arg]
        self.asked.append(path)
        found = self._answer(path, question)
        self.trouble(path, "after")
        assert isinstance(found, answer)
        return found

    def _answer(self, path: str, question: Any) -> wire.Message:
        ok = wire.Status(code="OK")
        if path == "permissionrequest":
            if self.refuses:
                return wire.PermissionResponse(status=self.refuses)
            return self._grant([action.host for action in question.actions], "", question.run)
        if path == "checkrequest":
            if question.request_id not in self.stored:
                return wire.PermissionResponse(status=wire.Status(code="WRONG_REQUEST"))
            run, hosts = self.stored.pop(question.request_id)
            return self._grant(hosts, question.request_id, run)
        if path == "managerequestrequest":
            if question.command == "REJECT":
                self.stored.pop(question.request_id, None)
                return wire.Requests(status=ok)
            return wire.Requests(
                status=ok,
                requests=tuple(
                    wire.ScheduledRequest(
                        request_id=number, run=run, actions=tuple(wire.Action(host=host) for host in hosts)
                    )
                    for number, (run, hosts) in self.stored.items()
                ),
            )
        if question.command == "EXTEND":
            return wire.Permissions(status=wire.Status(code="ALLOW" if self.extends else "DISALLOW"))
        if question.command in ("DONE", "REJECT"):
            for permission in question.permissions:
                self.held.pop(permission, None)
            return wire.Permissions(status=ok)
        return wire.Permissions(status=ok, permissions=tuple(map(self._permission, self.held)))

    def _permission(self, number: str) -> wire.Permission:
        action = wire.Action(host=self.held[number])
        return wire.Permission(id=number, action=action, deadline=self.deadlines[number], run=self.runs.get(number, ""))

    def lock(self, number: str, host: str, run: str = "") -> None:
        """Somebody has this host."""
        self.held[number] = host
        self.deadlines[number] = self.now + self.valid_for
        self.runs[number] = run

    def _grant(self, hosts: list[str], request_id: str, run: str) -> wire.PermissionResponse:
        locked = set(self.held.values())
        granted, left = [], []
        for host in hosts:
            if len(self.held) < self.at_once and host not in locked:
                self.numbers += 1
                number = f"p-{self.numbers}"
                self.lock(number, host, run)
                granted.append(self._permission(number))
            else:
                left.append(host)
        self.most = max(self.most, len(self.held))
        if left:
            self.numbers += 1
            request_id = request_id or f"r-{self.numbers}"
            self.stored[request_id] = (run, left)
        code = "ALLOW" if not left else "ALLOW_PARTIAL" if granted else "DISALLOW_TEMP"
        return wire.PermissionResponse(
            status=wire.Status(code=code),
            request_id=request_id if left else "",
            permissions=tuple(granted),
            refused=tuple(wire.Action(host=host, issue=wire.Issue(message="too many")) for host in left),
        )


@dataclass
class Told:
    lines: list[str] = field(default_factory=list)

    def began(self, host: str) -> None:
        self.lines.append(f"{host} began")

    def ended(self, host: str, exit_code: int) -> None:
        self.lines.append(f"{host} ended {exit_code}")

    def waiting(self, why: str) -> None:
        self.lines.append(f"waiting: {why}")


@dataclass
class Work:
    """What is done to hosts; those named fail, once."""

    broker: FakeBroker
    failing: set[str] = field(default_factory=set)
    runs: list[str] = field(default_factory=list)
    trouble: Callable[[str, str], None] = lambda path, when: None

    async def __call__(self, host: str) -> int:
        assert host in self.broker.held.values(), f"{host} is restarted without a permission"
        self.runs.append(host)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        self.trouble(host, "work")
        if host in self.failing:
            self.failing.discard(host)
            return 7
        return 0


async def rolled(journal: Journal, broker: FakeBroker, work: Work, told: Told | None = None, **given: Any) -> Outcome:
    async def soon(*_: Any) -> None:
        await asyncio.sleep(0)

    return await Rolling(
        journal=journal,
        broker=broker,
        work=work,
        next_time=soon,
        now=lambda: broker.now,
        progress=told or Told(),
        sleep=soon,
        **given,
    ).run()


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    journal = begun(tmp_path / "journal")
    yield journal
    journal.close()


async def resumed(path: Path, broker: FakeBroker, work: Work) -> Outcome:
    journal = Journal.resume(path)
    try:
        return await rolled(journal, broker, work)
    finally:
        journal.close()


def begun(path: Path) -> Journal:
    return Journal.begin(path, Header(run="r", user="alice", hosts=HOSTS, command="restart {host}"))


async def test_every_host_is_restarted_once_and_all_is_given_back(journal: Journal) -> None:
    broker = FakeBroker()
    work = Work(broker)
    outcome = await rolled(journal, broker, work)
    assert outcome == Outcome(finished=5, failed=(), left=0)
    assert sorted(work.runs) == list(HOSTS)
    assert broker.most == 2
    assert not broker.held
    assert not broker.stored


async def test_no_more_run_at_once_than_told(journal: Journal) -> None:
    broker = FakeBroker(at_once=5)
    told = Told()
    await rolled(journal, broker, Work(broker), told, at_once=1)
    assert told.lines == [line for host in HOSTS for line in (f"{host} began", f"{host} ended 0")]


async def test_after_a_failure_nothing_is_begun_and_the_failed_host_keeps_its_permission(journal: Journal) -> None:
    broker = FakeBroker(at_once=1)
    work = Work(broker, failing={"h2"})
    outcome = await rolled(journal, broker, work)
    assert outcome == Outcome(finished=1, failed=("h2",), left=4)
    assert work.runs == ["h1", "h2"]
    assert list(broker.held.values()) == ["h2"]
    assert not broker.stored


async def test_a_run_that_failed_goes_on_with_the_failed_host(journal: Journal) -> None:
    broker = FakeBroker(at_once=1)
    work = Work(broker, failing={"h2"})
    await rolled(journal, broker, work)
    assert (await resumed(journal.path, broker, work)).left == 0
    assert work.runs == ["h1", "h2", "h2", "h3", "h4", "h5"]
    assert not broker.held


async def test_with_keep_going_the_others_go_on(journal: Journal) -> None:
    broker = FakeBroker()
    work = Work(broker, failing={"h2"})
    outcome = await rolled(journal, broker, work, keep_going=True)
    assert outcome == Outcome(finished=4, failed=("h2",), left=1)
    assert list(broker.held.values()) == ["h2"]


async def test_a_signal_lets_what_runs_finish_and_withdraws_what_waits_before_that(journal: Journal) -> None:
    broker = FakeBroker()
    stop = asyncio.Event()
    told = Told()
    stored_meanwhile = []

    async def slow(host: str) -> int:
        if host == "h3":
            stop.set()
            for _ in range(50):
                await asyncio.sleep(0)
            stored_meanwhile.append(dict(broker.stored))
        return 0

    outcome = await rolled(journal, broker, slow, told, stop=stop)  # type: ignore[arg-type]
    assert 0 < outcome.left < 5
    assert journal.finished("h3")
    assert not broker.held
    assert stored_meanwhile == [{}]
    assert outcome.withdrawn.startswith("r-")
    assert any("h3 must end first; nothing new is begun" in line for line in told.lines)
    assert (await resumed(journal.path, broker, Work(broker))).left == 0
    assert not broker.stored


async def test_nobody_elses_permission_is_used_or_given_back_not_even_the_same_users(journal: Journal) -> None:
    broker = FakeBroker(at_once=1)
    broker.lock("technician", "h1")
    broker.lock("other-run", "h2", "another run")
    broker.stored["r-other"] = ("another run", ["h3"])
    stop = asyncio.Event()
    asked = 0

    def patience(path: str, when: str) -> None:
        nonlocal asked
        asked += path == "checkrequest" and when == "after"
        if asked == 3:
            stop.set()

    broker.trouble = patience
    work = Work(broker)
    outcome = await rolled(journal, broker, work, stop=stop)
    assert (work.runs, outcome.left) == ([], 5)
    assert list(broker.held) == ["technician", "other-run"]
    assert list(broker.stored) == ["r-other"]


async def test_a_run_that_the_broker_refuses_for_another_ones_sake_says_whose(journal: Journal) -> None:
    refusal = wire.Status(code="WRONG_REQUEST", reason="run x of alice is restarting h1 (alice-p-1)")
    broker = FakeBroker(refuses=refusal)
    work = Work(broker)
    outcome = await rolled(journal, broker, work)
    assert (work.runs, outcome.left) == ([], 5)
    assert outcome.message == "the broker refuses: WRONG_REQUEST run x of alice is restarting h1 (alice-p-1)"


async def test_it_says_which_permissions_are_still_held(journal: Journal) -> None:
    broker = FakeBroker(at_once=1)
    outcome = await rolled(journal, broker, Work(broker, failing={"h2"}))
    assert list(outcome.held) == ["h2"]
    assert outcome.held["h2"] in broker.held


async def test_a_permission_that_waited_too_long_is_extended_first(journal: Journal) -> None:
    broker = FakeBroker(at_once=5, valid_for=1_000_000)
    assert (await rolled(journal, broker, Work(broker), at_once=1)).left == 0


async def test_one_that_may_not_be_extended_is_given_back_and_asked_for_anew(journal: Journal) -> None:
    broker = FakeBroker(at_once=5, valid_for=1_000_000, extends=False)

    def later(path: str, when: str) -> None:
        if broker.asked.count("permissionrequest") > 3:
            broker.valid_for = 300_000_000

    broker.trouble = later
    assert (await rolled(journal, broker, Work(broker))).left == 0


async def test_a_refusal_for_good_ends_the_run_and_is_told(journal: Journal) -> None:
    class Refusing(FakeBroker):
        def _grant(self, hosts: list[str], request_id: str, run: str) -> wire.PermissionResponse:
            return wire.PermissionResponse(status=wire.Status(code="NO_SUCH_HOST", reason="there is no host h5"))

    broker = Refusing()
    outcome = await rolled(journal, broker, Work(broker))
    assert outcome == Outcome(0, (), 5, "the broker refuses: NO_SUCH_HOST there is no host h5")


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("number", range(14))
async def test_an_answer_that_is_lost_costs_no_second_restart(journal: Journal, when: str, number: int) -> None:
    broker = FakeBroker()
    seen = 0

    def lose(path: str, at: str) -> None:
        nonlocal seen
        if at == when:
            seen += 1
            if seen == number:
                raise StoreUnreachable("gone")

    broker.trouble = lose
    work = Work(broker)
    assert (await rolled(journal, broker, work)).left == 0
    assert sorted(work.runs) == list(HOSTS)
    assert not broker.held
    assert not broker.stored


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(kills=st.lists(st.integers(1, 12), max_size=4), at_once=st.integers(1, 5))
def test_wherever_it_is_killed_it_goes_on_and_only_what_was_begun_is_done_again(
    tmp_path_factory: pytest.TempPathFactory, kills: list[int], at_once: int
) -> None:
    path = tmp_path_factory.mktemp("kills") / "journal"
    broker = FakeBroker(at_once=at_once)
    work = Work(broker)
    begun(path).close()
    again = 0
    for steps in [*kills, 10_000]:
        left = steps

        def kill(_: str, __: str) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                raise Killed

        broker.trouble = work.trouble = kill
        journal = Journal.resume(path)
        again += sum(line.event == "began" for line in journal.last.values())
        try:
            asyncio.run(rolled(journal, broker, work))
        except Killed:
            pass
        finally:
            journal.close()
    assert set(work.runs) == set(HOSTS)
    assert len(work.runs) <= len(HOSTS) + again
    assert not broker.held
    assert not broker.stored
    assert broker.most <= at_once


@pytest.mark.parametrize("number", range(1, 14))
async def test_a_leader_change_is_waited_for_and_nothing_stays_held(journal: Journal, number: int) -> None:
    """A broker that does not lead has not done what it was told, and has not listed what there is."""
    broker = FakeBroker()
    seen = 0

    def change(path: str, when: str) -> None:
        nonlocal seen
        if when == "before":
            seen += 1
            if seen == number:
                raise NotLeading

    broker.trouble = change
    work = Work(broker)
    outcome = await rolled(journal, broker, work)
    assert outcome.complete
    assert sorted(work.runs) == list(HOSTS)
    assert (broker.held, broker.stored) == ({}, {})


async def test_a_run_that_is_stopped_while_the_leader_changes_withdraws_all_the_same(journal: Journal) -> None:
    broker = FakeBroker(at_once=1)
    broker.lock("technician", "h9")
    stop = asyncio.Event()
    refused = 0

    def change(path: str, when: str) -> None:
        nonlocal refused
        if when == "before" and path == "managerequestrequest" and stop.is_set() and refused < 3:
            refused += 1
            raise NotLeading
        if path == "checkrequest":
            stop.set()

    broker.trouble = change
    outcome = await rolled(journal, broker, Work(broker), stop=stop)
    assert refused == 3
    assert (outcome.withdrawn, outcome.stored) == ("r-1", "")
    assert (list(broker.held), broker.stored) == (["technician"], {})


async def test_what_cannot_be_asked_for_now_is_asked_for_again_until_somebody_stops_it(journal: Journal) -> None:
    """A quota that is used up lasts for hours."""
    broker = FakeBroker(refuses=wire.Status(code="ERROR_TEMP", reason="alice has 100 stored requests"))
    stop = asyncio.Event()

    def patience(path: str, when: str) -> None:
        if broker.asked.count("permissionrequest") == 1500:
            stop.set()

    broker.trouble = patience
    async with asyncio.timeout(60):
        outcome = await rolled(journal, broker, Work(broker), stop=stop)
    assert broker.asked.count("permissionrequest") == 1500
    assert (outcome.left, outcome.message) == (5, "")


async def test_what_was_stored_without_an_answer_is_withdrawn_by_whoever_stops_then(journal: Journal) -> None:
    broker = FakeBroker()
    stop = asyncio.Event()

    def lost(path: str, when: str) -> None:
        if path == "permissionrequest" and when == "after":
            stop.set()
            raise StoreUnreachable("gone")

    broker.trouble = lost
    outcome = await rolled(journal, broker, Work(broker), stop=stop)
    assert (broker.held, broker.stored) == ({}, {})
    assert outcome.withdrawn == "r-3"


async def test_a_host_that_must_be_asked_for_anew_does_not_make_it_forget_what_is_stored(journal: Journal) -> None:
    broker = FakeBroker(at_once=2, valid_for=1_000_000, extends=False)

    def later(path: str, when: str) -> None:
        if "checkrequest" in broker.asked:
            broker.valid_for = 300_000_000

    broker.trouble = later
    work = Work(broker)
    outcome = await rolled(journal, broker, work)
    assert outcome.complete
    assert sorted(work.runs) == list(HOSTS)
    assert (broker.held, broker.stored) == ({}, {})


@pytest.mark.parametrize("path", ["managepermissionrequest", "managerequestrequest", "checkrequest"])
async def test_a_broker_that_turns_us_away_leaves_nothing_untold(journal: Journal, path: str) -> None:
    """What runs is waited for; what is still in the broker is said, each by its id."""
    broker = FakeBroker()
    turned_away = False

    def unauthorized(asked: str, when: str) -> None:
        nonlocal turned_away
        turned_away = turned_away or (bool(work.runs) and asked == path)
        if turned_away and when == "before":
            raise QuorateError("http://broker answers 401: the token has expired")

    work = Work(broker)
    broker.trouble = unauthorized
    stop = asyncio.Event()
    work.trouble = lambda host, when: stop.set() if path == "managerequestrequest" else None
    outcome = await rolled(journal, broker, work, stop=stop)
    assert outcome.message == "http://broker answers 401: the token has expired"
    assert (outcome.stored, outcome.withdrawn, outcome.running) == (*broker.stored, "", ())
    assert sorted(outcome.held.values()) == sorted(broker.held)
    assert not outcome.complete
    broker.trouble = lambda path, when: None
    work.trouble = lambda path, when: None
    assert (await resumed(journal.path, broker, work)).complete
    assert sorted(work.runs) == list(HOSTS)
    assert (broker.held, broker.stored) == ({}, {})


async def test_whoever_leaves_at_once_is_told_what_is_still_stored(journal: Journal) -> None:
    """The second Ctrl-C, while the withdrawal hangs."""
    broker = FakeBroker()
    stop = asyncio.Event()

    class Hanging(FakeBroker):
        async def ask(self, path: str, question: wire.Message | None, answer: type[T]) -> T:
            if stop.is_set():
                await asyncio.Event().wait()
            return await FakeBroker.ask(self, path, question, answer)

    async def soon(*_: Any) -> None:
        await asyncio.sleep(0)

    async def stopping(host: str) -> int:
        stop.set()
        await asyncio.Event().wait()
        return 0

    broker = Hanging()
    rolling = Rolling(
        journal=journal,
        broker=broker,
        work=stopping,
        next_time=soon,
        now=lambda: broker.now,
        progress=Told(),
        stop=stop,
    )
    running = asyncio.ensure_future(rolling.run())
    for _ in range(50):
        await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    outcome = rolling.outcome()
    assert (outcome.stored, outcome.withdrawn) == ("r-3", "")
    assert sorted(outcome.running) == ["h1", "h2"]
