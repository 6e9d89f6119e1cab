"""Steps are carried out beside the passes, one piece of work per name at a time."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from io import StringIO
from typing import Any

import pytest

from quorate.agent.lvm.seen import SeenVolumes
from quorate.agent.machine import CommandNotFound, Completed
from quorate.agent.node import Wake
from quorate.agent.steps import FILE, LVM, Look, MoveFile, RemoveFile, Run, Step, WriteFile, kernel_of
from quorate.api.storage.drbd import Connection, Device, DrbdStatus, PeerDevice
from quorate.drbd.marks import LinkRules
from quorate.engine import Key, Signal, logs
from quorate.engine.simulation import Simulation, run
from tests.agent.machines import scripted_node


def simulated(main: Callable[[Simulation], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    def test() -> None:
        run(main, seed=1)

    test.__name__ = main.__name__
    return test


class Told:
    """Counts how often it is told."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self) -> None:
        self.times += 1


@contextmanager
def heard() -> Iterator[list[dict[str, Any]]]:
    """What is logged meanwhile, once it is over."""
    before, stream, lines = logs.configuration(), StringIO(), list[dict[str, Any]]()
    logs.configure(json=True, stream=stream)
    try:
        yield lines
    finally:
        logs.use(before)
        lines += [json.loads(line) for line in stream.getvalue().splitlines()]


def step(*argv: str, purpose: str = "p", **more: Any) -> Run:
    return Run(argv, purpose, **more)


@simulated
async def test_steps_run_in_order_and_stop_at_the_first_failure(sim: Simulation) -> None:
    node, machine = scripted_node(sim.clock)
    machine.answers["b"] = Completed(3, "", "no")
    done = Told()
    assert node.hands.start("w", (step("a"), step("b", purpose="q"), step("c")), done)
    await sim.clock.sleep(1)
    assert machine.ran == ["a", "b"]
    assert done.times == 1
    failed = node.memory.last("w", "q")
    assert failed is not None
    assert (failed.exit_code, failed.output, failed.failures) == (3, "no", 1)
    succeeded = node.memory.last("w", "p")
    assert succeeded is not None
    assert succeeded.succeeded


@simulated
async def test_a_failure_is_in_the_log_when_it_is_new_and_counted_when_it_repeats_itself(sim: Simulation) -> None:
    node, machine = scripted_node(sim.clock)
    logged: list[dict[str, Any]] = []

    async def tried() -> list[tuple[str, Any]]:
        with heard() as lines:
            node.hands.start("w", (step("a", "--of", "disk"),), Told())
            await sim.clock.sleep(1)
        logged.extend(lines)
        return [(line["event"], line.get("exit_code")) for line in lines]

    refused = "Command 'drbdsetup new-peer r 0 --shared-secret=opensesame' failed\nit is used by process {}\n"
    machine.answers["a --of disk"] = Completed(20, "", refused.format(4711))
    assert await tried() == [("a command failed", 20)]
    assert logged[0]["said"] == "it is used by process 4711"
    assert logged[0]["command"] == "a --of disk"
    machine.answers["a --of disk"] = Completed(20, "", refused.format(4712))
    assert await tried() == []
    machine.answers["a --of disk"] = Completed(5, "", "Command 'x --shared-secret=opensesame' terminated")
    assert await tried() == [("a command failed", 5)]
    machine.answers["a --of disk"] = Completed(0, "")
    assert await tried() == [("a command works again", None)]
    assert logged[-1]["failures"] == 3
    assert await tried() == []
    assert "opensesame" not in str(logged)


@simulated
async def test_exit_codes_that_a_step_accepts_are_no_failure(sim: Simulation) -> None:
    node, machine = scripted_node(sim.clock)
    machine.answers["a"] = Completed(10, "")
    node.hands.start("w", (step("a", accept=(0, 10)), step("b")), Told())
    await sim.clock.sleep(1)
    assert machine.ran == ["a", "b"]


@simulated
async def test_one_name_has_one_piece_of_work_and_who_asked_for_more_is_told_of_its_end(sim: Simulation) -> None:
    node, machine = scripted_node(sim.clock)
    machine.slow["a"] = 5.0
    first, second = Told(), Told()
    assert node.hands.start("w", (step("a"),), first)
    assert node.hands.busy("w")
    for _ in range(3):
        assert not node.hands.start("w", (step("b"),), second)
    await sim.clock.sleep(6)
    assert machine.ran == ["a"]
    assert (first.times, second.times) == (1, 1)
    assert not node.hands.busy("w")


@simulated
async def test_work_holds_the_names_beside_its_own_and_waits_for_them(sim: Simulation) -> None:
    node, machine = scripted_node(sim.clock)
    machine.slow["a"] = machine.slow["b"] = 2.0
    attaching, growing = Told(), Told()
    assert node.hands.start("disk", (step("a"),), growing)
    assert not node.hands.start("resource", (step("b"),), attaching, beside=("disk",))
    assert not node.hands.busy("resource")
    await sim.clock.sleep(3)
    assert attaching.times == 1
    assert node.hands.start("resource", (step("b"),), attaching, beside=("disk",))
    assert not node.hands.start("disk", (step("a"),), growing)
    await sim.clock.sleep(3)
    assert machine.ran == ["a", "b"]
    assert (attaching.times, growing.times) == (2, 2)
    assert not node.hands.busy("disk")
    assert not node.hands.busy("resource")


@simulated
async def test_those_who_wait_for_a_name_beside_their_own_are_told_one_after_the_other(sim: Simulation) -> None:
    """Thirty pieces of work on one group: each is told as often as it had to wait, and no oftener."""
    node, machine = scripted_node(sim.clock)
    machine.slow["a"] = 0.1
    told: list[int] = []

    def ask(number: int) -> None:
        node.hands.start(f"w{number}", (step("a"),), asks[number], beside=("group",))

    def asked(number: int) -> Callable[[], None]:
        def again() -> None:
            told.append(number)
            if number and told.count(number) == 1:
                ask(number)

        return again

    asks = [asked(number) for number in range(30)]
    for number in range(30):
        ask(number)
    await sim.clock.sleep(4)
    assert len(machine.ran) == 30
    assert machine.most_at_once == 1
    assert told == [0, *(number for number in range(1, 30) for _ in ("its turn", "its end"))]


@simulated
async def test_one_who_makes_no_use_of_his_turn_holds_nobody_up(sim: Simulation) -> None:
    node, machine = scripted_node(sim.clock)
    machine.slow["a"] = 1.0
    idle, waiting = Told(), Told()
    node.hands.start("w", (step("a"),), Told(), beside=("group",))
    assert not node.hands.start("idle", (step("b"),), idle, beside=("group",))
    assert not node.hands.start("waiting", (step("b"),), waiting, beside=("group",))
    await sim.clock.sleep(1.5)
    assert (idle.times, waiting.times) == (1, 0)
    await sim.clock.sleep(1.0)
    assert (idle.times, waiting.times) == (1, 1)


@simulated
async def test_other_names_go_on_meanwhile_within_the_slots(sim: Simulation) -> None:
    node, machine = scripted_node(sim.clock, slots=3)
    machine.slow["a"] = 1.0
    for number in range(10):
        node.hands.start(f"w{number}", (step("a"),), Told())
    await sim.clock.sleep(10)
    assert len(machine.ran) == 10
    assert machine.most_at_once == 3


@simulated
async def test_failures_in_a_row_about_the_same_thing_are_counted(sim: Simulation) -> None:
    node, machine = scripted_node(sim.clock)
    machine.answers["a"] = Completed(1, "")
    for about, expected in (("x", (1, 1)), ("x", (2, 2)), ("y", (1, 1)), ("y", (2, 2))):
        node.hands.start("w", (step("a", about=about),), Told())
        await sim.clock.sleep(1)
        last = node.memory.last("w", "p")
        assert last is not None
        assert (last.failures, last.times) == expected
    del machine.answers["a"]
    node.hands.start("w", (step("a", about="y"),), Told())
    await sim.clock.sleep(1)
    last = node.memory.last("w", "p")
    assert last is not None
    assert (last.failures, last.times) == (0, 3)


@simulated
async def test_several_steps_of_one_purpose_are_one_attempt(sim: Simulation) -> None:
    node, machine = scripted_node(sim.clock)
    machine.answers["b"] = Completed(1, "")
    for attempt in (1, 2, 3):
        node.hands.start("w", (step("a"), step("b")), Told())
        await sim.clock.sleep(1)
        last = node.memory.last("w", "p")
        assert last is not None
        assert (last.failures, last.times) == (attempt, attempt)


@simulated
async def test_a_hung_command_blocks_its_own_name_and_nothing_else(sim: Simulation) -> None:
    node, machine = scripted_node(sim.clock, slots=1)
    machine.hanging.add("a")
    done, later = Told(), Told()
    node.hands.start("w", (step("a"), step("after")), done)
    await sim.clock.sleep(11)
    assert done.times == 1  # told that it hangs
    hung = node.memory.last("w", "p")
    assert hung is not None
    assert hung.hung
    assert hung.exit_code is None
    assert node.hands.hung("w") == "a"
    assert node.hands.busy("w")
    assert not node.hands.start("w", (step("b"),), later)
    assert node.hands.start("other", (step("c"),), Told())
    await sim.clock.sleep(1)
    assert "c" in machine.ran  # the slot was given back
    machine.hanging.clear()
    await sim.clock.sleep(2)
    assert not node.hands.busy("w")
    assert node.hands.hung("w") == ""
    assert (done.times, later.times) == (2, 1)
    assert "after" not in machine.ran


@pytest.mark.parametrize(
    "error", [CommandNotFound("no such program"), OSError("input/output error"), ValueError("ours")]
)
def test_whatever_goes_wrong_is_an_outcome(error: Exception) -> None:
    async def main(sim: Simulation) -> None:
        node, machine = scripted_node(sim.clock)
        machine.answers["a"] = error
        done = Told()
        node.hands.start("w", (step("a"),), done)
        await sim.clock.sleep(1)
        last = node.memory.last("w", "p")
        assert last is not None
        assert not last.succeeded
        assert last.exit_code is None
        assert done.times == 1

    run(main, seed=1)


@simulated
async def test_what_a_command_changes_is_marked_before_it_runs_and_after(sim: Simulation) -> None:
    node, machine = scripted_node(sim.clock)
    kernel, volumes = node.memory.resource("r"), node.memory.logical_volumes
    kernel.saw(None, marks=kernel.marks)
    volumes.saw(SeenVolumes(), moment=volumes.moment)
    machine.slow["a"] = 2.0
    node.hands.start("w", (step("a", changes=(kernel_of("r"), LVM)),), Told())
    await sim.clock.sleep(1)
    assert not kernel.current
    assert not volumes.current
    kernel.saw(None, marks=kernel.marks)  # somebody looks meanwhile
    await sim.clock.sleep(2)
    assert not kernel.current


@simulated
async def test_what_is_written_moved_and_removed_is_known_at_once(sim: Simulation) -> None:
    node, machine = scripted_node(sim.clock)
    steps: tuple[Step, ...] = (WriteFile("/a", "text", "p"), MoveFile("/a", "/b", "p"))
    node.hands.start("w", steps, Told())
    await sim.clock.sleep(1)
    assert machine.files == {"/b": b"text"}
    assert node.memory.file("/b").value == "text"
    assert node.memory.file("/b").current
    assert node.memory.file("/a").value is None
    assert node.memory.file("/a").current
    node.hands.start("w", (RemoveFile("/b", "p"),), Told())
    await sim.clock.sleep(1)
    assert node.memory.file("/b").value is None
    assert machine.files == {}


def test_a_step_never_shows_what_is_in_a_file() -> None:
    assert "secret" not in repr(WriteFile("/a", "a secret", "p"))


@simulated
async def test_a_look_that_fails_is_an_outcome(sim: Simulation) -> None:
    node, _ = scripted_node(sim.clock)

    async def look(subject: str) -> None:
        raise OSError(f"cannot look at {subject}")

    node.hands.lookers[FILE] = look
    node.hands.start("w", (Look(FILE, "/x"), step("a")), Told())
    await sim.clock.sleep(1)
    last = node.memory.last("w", "look")
    assert last is not None
    assert "cannot look at /x" in last.output


@simulated
async def test_closing_lets_the_step_under_way_end_and_begins_nothing_more(sim: Simulation) -> None:
    node, machine = scripted_node(sim.clock)
    machine.slow["a"] = 2.0
    machine.slow["forever"] = 1000.0
    node.hands.start("w", (step("a"), step("b")), Told())
    node.hands.start("v", (step("forever"),), Told())
    await sim.clock.sleep(1)
    began = sim.clock.monotonic()
    await node.hands.close()
    assert sim.clock.monotonic() - began < 6
    last = node.memory.last("w", "p")
    assert last is not None
    assert last.succeeded
    assert sorted(machine.ran) == ["a", "forever"]
    assert not node.hands.start("u", (step("c"),), Told())


def test_two_wakes_of_one_key_are_one() -> None:
    signal = Signal()
    assert Wake(signal, Key("", "a")) == Wake(signal, Key("", "a"))
    assert Wake(signal, Key("", "a")) != Wake(signal, Key("", "b"))


@pytest.mark.parametrize(
    ("marked", "kept", "despite", "ran"),
    [
        (0, False, False, True),
        (4, False, False, False),
        (0, True, False, False),
        (4, True, True, True),
    ],
)
def test_nothing_that_parts_copies_which_may_differ_is_run_whoever_wants_it(
    marked: int, kept: bool, despite: bool, ran: bool
) -> None:
    async def main(sim: Simulation) -> None:
        node, machine = scripted_node(sim.clock)
        theirs = PeerDevice(replication_state="Established", peer_disk_state="UpToDate", out_of_sync=marked)
        link = Connection(peer_node_id=1, connection_state="Connected", peer_devices=(theirs,))
        shown = DrbdStatus(name="pvc-1", devices=(Device(disk_state="UpToDate", size=99),), connections=(link,))
        node.memory.resource("pvc-1").saw(shown, marks=0)
        node.memory.link_rules["pvc-1"] = LinkRules(keep_links=kept)
        argv = ("drbdsetup", "disconnect", "pvc-1", "1")
        cut = Run(argv, "cut", changes=(kernel_of("pvc-1"),), despite_marks=despite)
        node.hands.start("anything", (cut,), lambda: None)
        await sim.clock.sleep(1)
        last = node.memory.last("anything", "cut")
        assert last is not None
        assert last.succeeded is ran
        assert (machine.ran == [" ".join(argv)]) is ran
        assert ran or "may differ" in last.output

    run(main, seed=1)
