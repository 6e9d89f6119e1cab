"""A primary without a disk is held while fewer good copies are connected than promised."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace as changed
from typing import Any

import pytest

from quorate.agent import looks
from quorate.agent.kernel_watch import KernelWatch
from quorate.agent.machine import Completed
from quorate.agent.memory import Outcome
from quorate.agent.node import resource_work
from quorate.agent.replica.hold import NOTE_PATIENCE, Holder, Watched, decide
from quorate.agent.replica.looking import look_work
from quorate.agent.replica.promise import Promise, note_of, recall
from quorate.agent.steps import KERNEL, Look, Run
from quorate.api.storage.drbd import Connection, DrbdStatus, ReplicaType
from quorate.api.struct import replace
from quorate.engine.simulation import Simulation, run
from tests.agent.machines import scripted_node
from tests.agent.replica.builders import (
    DISKLESS,
    NOW,
    commands,
    config,
    decided,
    kernel,
    link,
    outcome,
    outcomes,
    peer,
    replica,
    view,
)

NOTE = "/var/lib/quorate/drbd.d/pvc-1.copies"
PROMISE = Promise(2, frozenset({1, 2}))
HELD = changed(PROMISE, held=True)
SUSPEND, RESUME = "drbdsetup suspend-io 1000", "drbdsetup resume-io 1000"
CUT = "drbdsetup disconnect pvc-1 2 --force"
GONE = link(2, disk="Diskless")


def seen(
    *links: Connection, disk: str = "Diskless", role: str = "Primary", user: bool = False, **more: Any
) -> DrbdStatus:
    return replace(kernel(disk, role=role, links=links, **more), suspended=user, suspended_user=user)


def done(status: DrbdStatus | None, promise: Promise = PROMISE, **more: Any) -> tuple[list[str], bool]:
    """What is done, and whether the promise counts as held then."""
    grip = decide(Watched("pvc-1", promise, True, status, **more), NOW)
    return commands(grip.verdict.steps), grip.held


@pytest.mark.parametrize(
    ("asked", "promise"),
    [
        ({}, PROMISE),
        ({"quorum_minimum_redundancy": 1}, None),
        ({"quorum_minimum_redundancy": None}, None),
        ({"peers": (peer(1), peer(2, hidden=True))}, Promise(2, frozenset({1}))),
        ({"peers": (peer(1), peer(2, ReplicaType.TIE_BREAKER))}, Promise(2, frozenset({1}))),
    ],
)
def test_what_a_config_promises(asked: dict[str, Any], promise: Promise | None) -> None:
    assert Promise.of(config(**DISKLESS, **asked)) == promise


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (seen(link(1), link(2)), False),
        (seen(link(1), GONE), True),
        (seen(link(1), link(2, disk="Detaching")), True),
        (seen(link(1), link(2, disk="Inconsistent")), True),
        (seen(link(1), link(2, disk="Consistent")), True),
        (seen(link(1), link(2, "Connecting", disk="UpToDate")), True),
        (seen(link(1), link(2, "NetworkFailure", disk="DUnknown")), True),
        (seen(link(1)), True),
        (seen(link(1), link(2), link(3, disk="Diskless")), False),
        (seen(link(1), link(3), GONE), True),  # a copy that does not count
        (seen(link(1), GONE, disk="UpToDate"), False),  # the kernel counts by its own disk
        (seen(link(1), GONE, disk="Inconsistent"), False),
        (seen(link(1), GONE, disk="Failed"), True),
        (seen(link(1), link(2), disk="Failed"), False),
        (seen(link(1), GONE, role="Secondary"), False),
    ],
)
def test_whom_it_is_broken_by(status: DrbdStatus, expected: bool) -> None:
    assert PROMISE.is_broken_by(status) is expected
    steps, held = done(status)
    assert (bool(steps), held) == (expected, expected)
    assert set(steps) <= {SUSPEND, CUT}


@pytest.mark.parametrize(
    ("status", "steps"),
    [
        (seen(link(1), GONE), [CUT]),  # it has to count: nothing is lost by this link
        (seen(link(1), link(2, disk="Failed")), [CUT]),
        (seen(link(1), GONE, quorum=False), [SUSPEND]),  # it has
        (seen(link(1), link(2, disk="Inconsistent")), [SUSPEND]),  # a copy on its way
        (seen(link(1), link(2, "StandAlone", disk="DUnknown")), [SUSPEND]),
    ],
)
def test_it_is_made_to_count_first_where_a_disk_is_gone(status: DrbdStatus, steps: list[str]) -> None:
    assert done(status) == (steps, True)


def test_it_is_let_go_when_the_copies_are_there_and_not_before() -> None:
    assert done(seen(link(1), GONE, user=True, quorum=False), HELD) == ([], True)
    assert done(seen(link(1), link(2), user=True), HELD) == ([RESUME], True)
    assert done(seen(link(1), link(2)), HELD) == ([], False)


def test_it_is_let_go_where_there_is_nothing_to_hold_any_more() -> None:
    for status in (
        seen(link(1), GONE, user=True, role="Secondary"),
        seen(link(1), GONE, user=True, disk="UpToDate"),
    ):
        assert done(status, HELD) == ([RESUME], True)
    assert done(None, HELD) == ([], False)
    assert done(seen(link(1), user=True), Promise(0, frozenset(), held=True)) == ([RESUME], True)


def test_what_a_command_under_way_may_suspend_yet_counts_as_held() -> None:
    """The copies are back before ``suspend-io`` has had its effect: nobody else would resume what it suspends."""
    good = seen(link(1), link(2))
    assert done(good, HELD, busy=True) == ([], True)
    assert done(None, HELD, busy=True) == ([], True)
    assert done(good, HELD) == ([], False)
    assert done(good, busy=True) == ([], False)


def test_somebody_elses_suspension_is_left_alone() -> None:
    assert done(seen(link(1), link(2), user=True)) == ([], False)
    assert done(seen(link(1), GONE, user=True)) == ([], False)


def test_resumed_by_somebody_else_it_is_held_again() -> None:
    assert done(seen(link(1), GONE, quorum=False), HELD) == ([SUSPEND], True)


def refusal(about: str, times: int = 1) -> Outcome:
    return outcome("hold", about, exit_code=11, output="State change failed: (-25) No quorum", times=times)


def test_refused_for_its_quorum_it_is_made_to_count_by_the_end_of_a_link() -> None:
    """Which cannot be refused; the links to good copies stay, if there is any other."""
    syncing = seen(link(1), link(2, disk="Inconsistent"))
    assert done(syncing, HELD, tried=refusal("suspend-io")) == ([CUT, SUSPEND], True)
    alone = seen(link(1), link(2, "Connecting", disk="DUnknown"))
    assert done(alone, HELD, tried=refusal("suspend-io"))[0] == ["drbdsetup disconnect pvc-1 1 --force", SUSPEND]
    again = decide(Watched("pvc-1", HELD, True, syncing, tried=refusal("cut", times=2)), NOW)
    assert (again.verdict.steps, again.verdict.again) == ((), 1.0)


def test_held_it_is_made_to_count_where_it_keeps_a_quorum_that_is_in_the_way() -> None:
    quorate = seen(link(1), GONE, user=True)
    assert done(quorate, HELD) == ([CUT], True)
    waiting = decide(Watched("pvc-1", HELD, True, quorate, tried=outcome("hold", "count")), NOW)
    assert (waiting.verdict.steps, waiting.verdict.again) == ((), 5.0)
    assert done(seen(link(1), user=True), HELD) == ([], True)


def test_the_note_is_waited_for_but_not_for_long() -> None:
    grip = decide(Watched("pvc-1", PROMISE, True, seen(link(1), GONE, quorum=False), noted=False), NOW)
    assert (grip.verdict.steps, grip.verdict.again, grip.held) == ((), NOTE_PATIENCE, True)


@pytest.mark.parametrize("promise", [PROMISE, HELD, Promise(3, frozenset({0, 12}), held=True), Promise(2, frozenset())])
def test_a_note_is_read_as_it_was_written(promise: Promise) -> None:
    assert Promise.read(promise.note) == promise


@pytest.mark.parametrize("note", ["", "copies 2 1", "copies\n", "copies two 1\n", "something else\n"])
def test_a_note_that_cannot_be_read_counts_everybody_and_may_have_been_held(note: str) -> None:
    assert Promise.read(note) == Promise(2, None, held=True)


def told(*links: tuple[int, str], user: bool = False, quorum: bool = True) -> Completed:
    """What ``status --json`` says of a primary without a disk."""
    found = {
        "name": "pvc-1",
        "role": "Primary",
        "suspended": user,
        "suspended-user": user,
        "devices": [{"volume": 0, "minor": 1000, "disk-state": "Diskless", "client": True, "quorum": quorum}],
        "connections": [
            {
                "peer-node-id": number,
                "connection-state": "Connected",
                "peer_devices": [{"volume": 0, "replication-state": "Established", "peer-disk-state": disk}],
            }
            for number, disk in links
        ],
    }
    return Completed(0, json.dumps([found]))


EVENTS = (
    "exists resource name:pvc-1 role:Primary suspended:no",
    "exists device name:pvc-1 volume:0 minor:1000 disk:Diskless client:yes quorum:yes",
    "exists -",
)
LOSS = "change peer-device name:pvc-1 peer-node-id:2 conn-name:n2 volume:0 peer-disk:Diskless"


@pytest.mark.parametrize("full", [False, True], ids=["the note is written", "the disk takes no note"])
def test_from_the_event_to_the_command_it_takes_less_than_a_tenth_of_a_second(full: bool) -> None:
    """On a node with every slot taken and five hundred looks under way, commands taking 20 ms each."""

    async def main(sim: Simulation) -> None:
        node, machine = scripted_node(sim.clock)
        looks.register(node)
        machine.slow = {"drbdadm up": 60.0, "drbdsetup": 0.02}
        machine.answers["drbdsetup status --json pvc-1"] = told((1, "UpToDate"), (2, "Diskless"))
        if full:
            machine.write_file = _never  # type: ignore[method-assign]
        for number in range(16):
            up = Run(("drbdadm", "up", f"pvc-{number}"), "adjust")
            node.hands.start(resource_work(f"pvc-{number}"), (up,), _nobody)
        for number in range(500):
            node.hands.start(look_work(f"pvc-{number}"), (Look(KERNEL, f"pvc-{number}"),), _nobody)
        holding = sim.loop.create_task(Holder(node).keep())
        node.memory.promises["pvc-1"] = PROMISE
        watch = KernelWatch(node)
        watch._dumping = True  # the stream has just begun
        for line in EVENTS:
            watch.heard(line)
        machine.answers["drbdsetup status --json pvc-1"] = told((1, "UpToDate"), (2, "UpToDate"))
        await sim.clock.sleep(1)
        machine.ran.clear()
        quorate, counted = told((1, "UpToDate"), (2, "Diskless")), told((1, "UpToDate"), quorum=False)
        machine.answers["drbdsetup status --json pvc-1"] = lambda: counted if CUT in machine.ran else quorate
        watch.heard(LOSS)
        await sim.clock.sleep(0.05)
        assert CUT in machine.ran
        await sim.clock.sleep(0.05)
        assert SUSPEND in machine.ran
        assert (NOTE in machine.files) is not full
        holding.cancel()

    async def _never(path: str, content: bytes) -> None:
        await asyncio.Event().wait()

    run(main, seed=1)


def test_an_agent_that_reads_a_note_lets_go_of_what_one_before_it_has_held() -> None:
    async def main(sim: Simulation) -> None:
        node, machine = scripted_node(sim.clock)
        looks.register(node)
        machine.files = {NOTE: HELD.note.encode(), "/var/lib/quorate/drbd.d/pvc-1.res": b""}
        assert note_of(node, "pvc-1") == NOTE
        machine.answers["drbdsetup status --json pvc-1"] = told((1, "UpToDate"), (2, "UpToDate"), user=True)
        holding = sim.loop.create_task(Holder(node).keep())
        await sim.clock.sleep(0.1)
        assert RESUME in machine.ran
        machine.answers["drbdsetup status --json pvc-1"] = told((1, "UpToDate"), (2, "UpToDate"))
        await sim.clock.sleep(10)
        assert not node.memory.promises["pvc-1"].held
        assert machine.files[NOTE] == PROMISE.note.encode()
        holding.cancel()

    run(main, seed=1)


def test_a_config_that_was_read_first_does_not_hide_what_the_note_says_of_the_hold() -> None:
    async def main(sim: Simulation) -> None:
        node, machine = scripted_node(sim.clock)
        machine.files = {NOTE: HELD.note.encode()}
        node.memory.promises["pvc-1"] = Promise(2, frozenset({1, 3}))
        await recall(node)
        assert node.memory.promises["pvc-1"] == Promise(2, frozenset({1, 3}), held=True)

    run(main, seed=1)


# A disk that a user without one refuses.

REFUSED = outcome(
    "adjust",
    "",
    exit_code=1,
    output="1000: State change failed: (-10) State change was refused by peer node\nadditional info from kernel:\n"
    "Probably this node is marked as intentional diskless on a peer",
)


@pytest.mark.parametrize(
    ("links", "cut"),
    [
        ((link(1), link(2, disk="Diskless", role="Primary")), [CUT]),
        ((link(1), link(2, disk="Diskless")), []),
        ((link(1), link(2, role="Primary")), []),
        ((link(1), link(2, "Connecting", disk="Diskless", role="Primary")), []),
    ],
)
def test_a_disk_that_was_refused_is_attached_out_of_the_users_sight(
    links: tuple[Connection, ...], cut: list[str]
) -> None:
    lost = view(replica(config=config()), kernel("Diskless", links=links), outcomes=outcomes(REFUSED))
    assert lost.intended is not None
    heard = outcome("adjust-links", lost.intended.digest, exit_code=0)
    lost = changed(lost, outcomes=outcomes(REFUSED, heard))
    assert commands(decided(lost)) == [*cut, "drbdadm adjust pvc-1"]


def _nobody() -> None: ...
