"""The younger of two primaries cuts itself off when any of its links goes."""

from __future__ import annotations

import json
from dataclasses import replace as changed
from datetime import timedelta

import pytest

from quorate.agent import looks
from quorate.agent.machine import Completed
from quorate.agent.memory import Outcome
from quorate.agent.node import resource_work
from quorate.agent.replica.duty import Duty
from quorate.agent.replica.guard import Guard, Guarded, decide
from quorate.agent.replica.looking import look_work
from quorate.agent.steps import KERNEL, Look, Run
from quorate.api.storage.drbd import Connection, DrbdConfig, DrbdStatus
from quorate.api.struct import replace
from quorate.engine import Key
from quorate.engine.simulation import Simulation, run
from tests.agent.machines import scripted_node
from tests.agent.replica.builders import (
    NOW,
    commands,
    config,
    decided,
    errors,
    kernel,
    link,
    outcome,
    outcomes,
    replica,
    view,
)

LOST = link(2, "Connecting", flow="Off", disk="DUnknown")
CUT = ["drbdsetup disconnect pvc-1 1 --force", "drbdsetup disconnect pvc-1 2 --force"]
YIELDING = config(primary=True, yields=True, allow_two_primaries=True)


def guarded(
    status: DrbdStatus | None, *, given: DrbdConfig = YIELDING, current: bool = True, cut: Outcome | None = None
) -> Guarded:
    duty = Duty.of(given)
    assert duty is not None
    return Guarded("pvc-1", duty, current, status, cut=cut)


@pytest.mark.parametrize(
    ("role", "links", "expected"),
    [
        ("Primary", (link(1, role="Primary"), link(2)), []),
        ("Primary", (link(1), LOST), CUT),
        ("Primary", (link(1, "NetworkFailure"), link(2)), CUT),
        ("Primary", (link(1, "StandAlone"), link(2)), CUT[1:]),
        ("Primary", (link(1),), CUT[:1]),
        ("Primary", (link(1, "StandAlone"), link(2, "StandAlone")), []),
        ("Secondary", (link(1), LOST), []),
    ],
)
def test_a_yielding_primary_that_loses_a_link_cuts_the_others(
    role: str, links: tuple[Connection, ...], expected: list[str]
) -> None:
    assert commands(decide(guarded(kernel(role=role, links=links)), NOW).steps) == expected


def test_a_link_to_a_peer_that_is_hidden_may_come_and_go() -> None:
    peers = tuple(replace(peer, hidden=peer.node_id == 2) for peer in YIELDING.peers)
    joining = replace(YIELDING, peers=peers)
    for links in ((link(1), LOST), (link(1),)):
        assert decide(guarded(kernel(role="Primary", links=links), given=joining), NOW).steps == ()
    lost = kernel(role="Primary", links=(link(1, "Connecting"), link(2)))
    assert commands(decide(guarded(lost, given=joining), NOW).steps) == CUT


def test_no_other_primary_has_the_duty() -> None:
    assert Duty.of(config(primary=True, allow_two_primaries=True)) is None


def test_the_guard_looks_for_itself() -> None:
    assert decide(guarded(None, current=False), NOW).steps == (Look("kernel", "pvc-1"),)


def test_a_cut_that_fails_is_repeated_soon() -> None:
    lost = kernel(role="Primary", links=(link(1), LOST))
    failed = outcome("cut", times=10)
    waiting = decide(guarded(lost, cut=failed), NOW)
    assert waiting.steps == ()
    assert waiting.again == 5.0
    assert commands(decide(guarded(lost, cut=failed), NOW + timedelta(seconds=5)).steps) == CUT


def test_it_stays_cut_off_while_it_yields() -> None:
    alone = kernel(role="Primary", links=(link(1, "StandAlone"), link(2, "StandAlone")), quorum=False)
    held = view(replica(config=YIELDING), alone, unadjusted=True)
    assert decided(held).steps == ()


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({"primary": False}, ["drbdadm secondary pvc-1"]),
        ({"primary": False, "down": True}, ["drbdsetup down pvc-1"]),
        ({"primary": True, "down": True}, ["drbdsetup down pvc-1"]),
    ],
)
def test_cut_off_it_can_be_demoted_and_taken_down_but_is_not_connected(
    told: dict[str, bool], expected: list[str]
) -> None:
    alone = kernel(role="Primary", links=(link(1, "StandAlone"), link(2, "StandAlone")), quorum=False)
    yielding = config(yields=True, allow_two_primaries=True, **told)
    held = view(replica(config=yielding), alone, unadjusted=True)
    assert commands(decided(held)) == expected
    assert decided(changed(held, busy=True)).steps == ()


def test_a_demotion_that_fails_while_cut_off_is_shown_and_repeated_and_nothing_else_is_done() -> None:
    alone = kernel(role="Primary", links=(link(1, "StandAlone"), link(2, "StandAlone")), quorum=False)
    tried = outcome("role", "secondary", exit_code=11, output="Device is held open by someone")
    held = view(replica(config=config(yields=True, primary=False)), alone, unadjusted=True, outcomes=outcomes(tried))
    decision = decided(held)
    assert (decision.steps, decision.again) == ((), 1.0)
    assert errors(decision).last_promotion_error is not None


def test_it_is_connected_again_and_then_demoted_once_it_no_longer_yields() -> None:
    alone = kernel(role="Primary", links=(link(1, "StandAlone"), link(2, "StandAlone")), quorum=False)
    released = view(replica(config=config()), alone)
    assert commands(decided(released)) == ["drbdadm adjust pvc-1"]
    assert commands(decided(view(replica(config=config()), kernel(role="Primary")))) == ["drbdadm secondary pvc-1"]


def test_the_guard_waits_for_nobody_however_busy_the_node_is() -> None:
    """One cut wakes hundreds of replicas at once, while sixteen commands are slow: it is then that it must act."""

    async def main(sim: Simulation) -> None:
        node, machine = scripted_node(sim.clock)
        looks.register(node)
        machine.slow = {"drbdadm up": 60.0, "drbdsetup": 0.05}
        machine.answers["drbdsetup status --json pvc-1"] = Completed(0, json.dumps([CUT_IN_TWO]))
        for number in range(16):
            up = Run(("drbdadm", "up", f"pvc-{number}"), "adjust")
            node.hands.start(resource_work(f"pvc-{number}"), (up,), _nobody)
        for number in range(500):
            node.hands.start(look_work(f"pvc-{number}"), (Look(KERNEL, f"pvc-{number}"),), _nobody)
        guarding = sim.loop.create_task(Guard(node).keep())
        node.memory.duties["pvc-1"] = Duty(frozenset({1, 2}))
        await sim.clock.sleep(0.01)
        node.volumes.wake(Key("", "pvc-1"))
        await sim.clock.sleep(0.5)
        assert [said for said in machine.ran if "disconnect" in said] == CUT
        assert machine.most_at_once <= 16 + 4
        guarding.cancel()

    run(main, seed=1)


#: What ``status --json`` says of a primary whose link to member 2 is gone.
CUT_IN_TWO = {
    "name": "pvc-1",
    "role": "Primary",
    "connections": [
        {"peer-node-id": 1, "connection-state": "Connected"},
        {"peer-node-id": 2, "connection-state": "Connecting"},
    ],
}


def _nobody() -> None: ...
