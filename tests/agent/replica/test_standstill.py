"""What should move in the kernel and does not: noticed within a minute, cured where that is safe, told (F2, F5)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from random import Random

import pytest

from quorate.engine.simulation import Simulation, run
from quorate.lab import faults
from quorate.lab.kernel.states import Slip
from tests.agent.replica.test_life import Commands, expect_quiet, spied, until_whole, with_volume
from tests.lab.handmade import HandMadeVolume
from tests.lab.laboratory import Laboratory

Story = Callable[[Laboratory, HandMadeVolume, Commands], Awaitable[None]]


def play(monkeypatch: pytest.MonkeyPatch, story: Story, *, members: int = 2, seed: int = 1) -> None:
    async def main(sim: Simulation) -> None:
        with spied(monkeypatch) as commands:
            await with_volume(sim, lambda lab, volume: story(lab, volume, commands), members=members)

    run(main, seed=seed)


def disk_of(lab: Laboratory, node: str, resource: str = "pvc-1") -> str:
    lab.cluster.driver.catch_up()
    found = lab.cluster.node(node).host.kernel.status(resource)
    return str(found[0]["devices"][0]["disk-state"]) if found and found[0]["devices"] else ""


@pytest.mark.parametrize("slow", ["new-peer", "new-path", "new-minor", "attach"])
def test_a_member_whose_up_was_given_up_half_way_comes_up_whole(monkeypatch: pytest.MonkeyPatch, slow: str) -> None:
    """drbdadm gives each drbdsetup five seconds, and the first one of a machine may load a module (F2)."""

    async def story(lab: Laboratory, volume: HandMadeVolume, commands: Commands) -> None:
        lab.cluster.inject(faults.Slow("node-1", f"drbdsetup {slow}", 6.0))

        def release(node: str, said: str) -> None:
            if node == "node-1" and " up " in said:
                lab.cluster.inject(faults.Release("node-1"))

        commands.after = release
        await volume.form()
        await until_whole(volume)
        assert [said for said in commands.on("node-1") if "--skip-disk" in said] == []
        await expect_quiet(lab, commands)

    play(monkeypatch, story)


@pytest.mark.parametrize("members", [2, 3])
def test_a_disk_that_stays_negotiating_is_attached_within_a_minute_and_a_half(
    monkeypatch: pytest.MonkeyPatch, members: int
) -> None:
    async def story(lab: Laboratory, volume: HandMadeVolume, commands: Commands) -> None:
        await volume.form()
        kernel = lab.cluster.node("node-1").host.kernel
        lab.cluster.inject(faults.Mishap("node-1", Slip.NEGOTIATING))
        lab.cluster.driver.catch_up()
        assert kernel.detach(1000).ok
        lab.cluster.driver.touch()
        await lab.sleep(5)
        assert disk_of(lab, "node-1") == "Negotiating"
        replica = await volume.replica(0)
        assert replica.status.drbd.actual.disk == ""
        await lab.sleep(60)
        assert disk_of(lab, "node-1") == "UpToDate"
        await until_whole(volume)
        assert sum("disconnect" in said for said in commands.on("node-1")) == 2
        await expect_quiet(lab, commands)

    play(monkeypatch, story, members=members)


@pytest.mark.parametrize("seed", range(12))
def test_no_order_of_our_commands_leaves_a_disk_that_is_not_attached(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Whatever was begun of a resource, in whatever order, and wherever the agent died: it comes up whole."""

    async def story(lab: Laboratory, volume: HandMadeVolume, commands: Commands) -> None:
        chance = Random(f"orders/{seed}")
        await volume.form()
        node = lab.cluster.node("node-1")
        file = "/var/lib/quorate/drbd.d/pvc-1.res"
        for _ in range(chance.randint(2, 5)):
            words = chance.choice(
                [
                    f"drbdadm -c {file} up pvc-1",
                    f"drbdadm -c {file} adjust pvc-1",
                    f"drbdadm -c {file} adjust --skip-disk pvc-1",
                    "drbdsetup down pvc-1",
                    "drbdsetup detach 1000 --force",
                    "drbdsetup disconnect pvc-1 1",
                    "drbdsetup disconnect pvc-1 2",
                ]
            )
            if chance.random() < 0.4:
                slow = chance.choice(["new-peer", "new-path", "new-minor", "attach", "connect", "peer-device-options"])
                lab.cluster.inject(faults.Slow("node-1", f"drbdsetup {slow}", 6.0))
            if chance.random() < 0.4:
                lab.cluster.inject(faults.Mishap("node-1", Slip.NEGOTIATING))
            lab.cluster.driver.catch_up()
            node.host.start(words.split())
            lab.cluster.driver.touch()
            if chance.random() < 0.4:
                lab.cluster.inject(faults.AgentKill("node-1"))
            await lab.sleep(chance.choice([0.0, 0.5, 4.0, 20.0]))
        lab.cluster.inject(faults.Release("node-1"))
        await lab.sleep(240)
        assert disk_of(lab, "node-1") == "UpToDate"
        await until_whole(volume)
        await expect_quiet(lab, commands)

    play(monkeypatch, story, members=3, seed=seed)


def test_an_agent_loads_the_modules_of_drbd_when_it_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(lab: Laboratory, volume: HandMadeVolume, commands: Commands) -> None:
        host = lab.cluster.node("node-1").host
        assert host.read("/sys/module/drbd_transport_tcp/initstate") == b"live\n"
        lab.cluster.inject(faults.Reboot("node-1"))
        await lab.sleep(20)
        assert host.read("/sys/module/drbd_transport_tcp/initstate") == b"live\n"

    play(monkeypatch, story)
