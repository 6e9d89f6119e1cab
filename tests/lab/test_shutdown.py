"""Powering a node off: in order, in time, seen by its peers; and what happens where nobody takes the devices down."""

from __future__ import annotations

import json

import pytest

from quorate.agent.machine import CommandHung, Completed
from quorate.agent.shutdown import mounted, plan, shut_down
from quorate.engine.simulation import Simulation, run
from quorate.lab import faults
from quorate.lab.host import Running
from quorate.lab.layout import Layout
from tests.lab.handmade import D, HandMadeVolume
from tests.lab.laboratory import Laboratory, laboratory

NEAR = (("node-1", D), ("node-2", D), ("node-3", D))
FAR = (("node-1", D), ("node-4", D), ("node-5", D))
SECONDARIES = 20


async def formed(lab: Laboratory, name: str, members: tuple[tuple[str, object], ...], minor: int) -> HandMadeVolume:
    volume = lab.volume(name, *members, minor=minor, redundancy=2, size="32Mi")  # type: ignore[arg-type]
    await volume.form()
    return volume


def write(lab: Laboratory, volume: HandMadeVolume, *, direct: bool = False) -> Running:
    """A program on node-1 that writes a block to a volume."""
    lab.cluster.driver.catch_up()
    words = ["dd", "if=/dev/urandom", f"of=/dev/drbd{volume.minor}", "bs=4k", "count=1", "seek=7"]
    running = lab.cluster.node("node-1").host.start([*words, "oflag=direct"] if direct else words)
    lab.cluster.driver.touch()
    return running


def links(lab: Laboratory, node: str) -> dict[str, str]:
    """Of every resource of a node, how its link with node-1 stands (which has the id 0)."""
    lab.cluster.driver.catch_up()
    found = lab.cluster.node(node).host.kernel.status()
    return {
        one["name"]: connection["connection-state"]
        for one in found
        for connection in one["connections"]
        if connection["peer-node-id"] == 0
    }


async def off_after(lab: Laboratory, node: str, patience: float) -> float | None:
    """Seconds until it has no power; None if it never comes to that."""
    began = lab.sim.clock.monotonic()
    while lab.cluster.node(node).host.powered:
        if lab.sim.clock.monotonic() - began > patience:
            return None
        await lab.sleep(0.1)
    return lab.sim.clock.monotonic() - began


def test_twenty_secondaries_a_primary_and_a_suspended_one_are_off_within_half_a_minute() -> None:
    async def main(sim: Simulation) -> None:
        async with laboratory(sim, Layout(nodes=5, zones=1)) as lab:
            for number in range(SECONDARIES):
                await formed(lab, f"quiet-{number}", NEAR, 1000 + number)
            busy, stuck = await formed(lab, "busy", NEAR, 1100), await formed(lab, "stuck", FAR, 1101)
            await busy.promote(0)
            await stuck.promote(0)
            for peer in ("node-4", "node-5"):
                lab.cluster.inject(faults.Cut("node-1", peer))
            await lab.sleep(30)
            blocked = write(lab, stuck)
            fine = write(lab, busy)
            await lab.sleep(5)
            assert not blocked.ended
            assert fine.ended
            node = lab.cluster.node("node-1")
            lab.cluster.inject(faults.Shutdown("node-1"))
            taken = await off_after(lab, "node-1", 60)
            assert taken is not None, "it never ended"
            assert taken < 30
            assert any("stuck" in line and "failed so that the machine can end" in line for line in node.shutdown_told)
            assert node.shutdown_told[-1] == f"{SECONDARIES + 2} of {SECONDARIES + 2} DRBD resources are down"
            # Its peers were told: nobody has to wait for an answer that does not come.
            for peer in ("node-2", "node-3"):
                assert set(links(lab, peer).values()) == {"Connecting"}
            # And it comes back by itself.
            lab.cluster.inject(faults.Heal())
            lab.cluster.inject(faults.NodeUp("node-1"))
            await lab.sleep(60)
            assert set(links(lab, "node-2").values()) == {"Connected"}
            assert set(links(lab, "node-4").values()) == {"Connected"}

    run(main, seed=1)


@pytest.mark.parametrize("direct", [False, True], ids=["dirty", "direct"])
def test_without_the_unit_dirty_pages_on_a_suspended_device_keep_a_machine_from_ending(direct: bool) -> None:
    async def main(sim: Simulation) -> None:
        async with laboratory(sim) as lab:
            stuck = await formed(lab, "stuck", NEAR, 1000)
            await stuck.promote(0)
            lab.cluster.inject(faults.Isolate("node-1"))
            await lab.sleep(30)
            blocked = write(lab, stuck, direct=direct)
            await lab.sleep(1)
            assert not blocked.ended
            lab.cluster.inject(faults.Shutdown("node-1", bare=True))
            taken = await off_after(lab, "node-1", 3600)
            assert (taken is None) is not direct, "only what is in the page cache is waited for"
            if taken is None:
                assert lab.cluster.node("node-1").is_stopping
                # Nothing but its power helps.
                lab.cluster.inject(faults.NodeDown("node-1"))
                assert not lab.cluster.node("node-1").host.powered

    run(main, seed=1)


def test_without_the_unit_peers_learn_by_silence() -> None:
    async def main(sim: Simulation) -> None:
        async with laboratory(sim) as lab:
            await formed(lab, "quiet", NEAR, 1000)
            lab.cluster.inject(faults.Shutdown("node-1", bare=True))
            assert await off_after(lab, "node-1", 60) is not None
            assert links(lab, "node-2") == {"quiet": "Connected"}, "nobody has told them"
            await lab.sleep(10)
            assert links(lab, "node-2") == {"quiet": "Connecting"}

    run(main, seed=1)


def test_what_hangs_is_left_after_its_time_and_told_and_the_others_are_down() -> None:
    async def main(sim: Simulation) -> None:
        async with laboratory(sim) as lab:
            for number in range(3):
                await formed(lab, f"quiet-{number}", NEAR, 1000 + number)
            lab.cluster.inject(faults.Hang("node-1", "drbdsetup down quiet-1"))
            lab.cluster.inject(faults.Shutdown("node-1"))
            taken = await off_after(lab, "node-1", 60)
            assert taken is not None
            assert taken < 30
            told = lab.cluster.node("node-1").shutdown_told
            assert [line for line in told if line.startswith("quiet-1: ")]
            assert told[-1] == "2 of 3 DRBD resources are down"

    run(main, seed=1)


def test_a_reboot_in_order_brings_everything_back() -> None:
    async def main(sim: Simulation) -> None:
        async with laboratory(sim) as lab:
            volume = await formed(lab, "busy", NEAR, 1000)
            await volume.promote(0)
            lab.cluster.inject(faults.Shutdown("node-1", reboot=True))
            await lab.sleep(90)
            assert lab.cluster.node("node-1").host.boots == 2
            await volume.until_healthy()

    run(main, seed=1)


class Standing:
    """A machine whose I/O stands still just after it was looked at: whoever touches the file systems waits for ever."""

    def __init__(self, sim: Simulation) -> None:
        self.sim = sim
        self.ran: list[str] = []

    async def run(self, *argv: str, silence: float) -> Completed:
        self.ran.append(" ".join(argv))
        if argv[:2] == ("drbdsetup", "status"):
            return Completed(0, json.dumps(STATUS[:1]), "")
        if argv[0] in ("umount", "blockdev"):
            await self.sim.clock.sleep(silence)
            raise CommandHung(f"{argv[0]} said nothing", still_there=lambda: True)
        return Completed(11 if argv == ("drbdsetup", "secondary", "b") else 0, "", "")

    async def read_file(self, path: str) -> bytes:
        return b"".join(b"%d 22 147:1001 / /mnt/%d rw - ext4 /dev/drbd1001 rw\n" % (n, n) for n in range(40, 48))


def test_a_primary_whose_io_stops_meanwhile_is_failed_before_the_time_is_over() -> None:
    async def main(sim: Simulation) -> None:
        machine, told = Standing(sim), list[str]()
        began = sim.clock.monotonic()
        assert await shut_down(machine, told.append), told  # type: ignore[arg-type]
        assert sim.clock.monotonic() - began < 15
        assert machine.ran[-2:] == ["drbdsetup secondary --force b", "drbdsetup down b"]

    run(main, seed=1)


STATUS = [
    {
        "name": "b",
        "role": "Primary",
        "suspended": False,
        "devices": [{"minor": 1001}],
        "connections": [{"peer-node-id": 1}, {"peer-node-id": 2}],
    },
    {"name": "c", "role": "Secondary", "suspended": True, "devices": [{"minor": 1002}], "connections": []},
    {"name": "a", "role": "Primary", "suspended": True, "devices": [{"minor": 1000}], "connections": []},
]
MOUNTS = """22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw
40 22 147:1001 / /srv/a\\040b rw - ext4 /dev/drbd1001 rw
41 40 147:1001 /sub /srv/a\\040b/again rw - ext4 /dev/drbd1001 rw
"""


def test_a_plan_fails_what_is_suspended_unmounts_what_is_not_and_takes_all_down() -> None:
    commands = {one.resource: [" ".join(step.argv) for step in one.commands] for one in plan(STATUS, MOUNTS)}
    assert list(commands) == ["a", "b", "c"], "what could keep the machine from ending comes first"
    assert commands["a"] == ["drbdsetup secondary --force a", "drbdsetup down a"]
    assert commands["b"] == [
        "umount /srv/a b/again",
        "umount /srv/a b",
        "drbdsetup secondary b",
        "drbdsetup down b",
    ]
    assert commands["c"] == ["drbdsetup down c"]
    demote, down = plan(STATUS, MOUNTS)[1].commands[-2:]
    assert demote.otherwise == (
        ("blockdev", "--flushbufs", "/dev/drbd1001"),
        ("drbdsetup", "secondary", "--force", "b"),
    )
    assert down.otherwise[:2] == tuple(("drbdsetup", "disconnect", "--force", "b", peer) for peer in ("1", "2"))


def test_mounts_of_other_devices_are_left_alone() -> None:
    assert mounted(MOUNTS) == {1001: ("/srv/a b/again", "/srv/a b")}
    assert mounted("") == {}
