"""One story each: growth, two primaries, a member that leaves, a command that hangs. On simulated nodes."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from quorate.api.codec import to_builtins
from quorate.api.meta import Bytes
from quorate.api.quantity import Quantity
from quorate.api.storage import LVMLogicalVolume
from quorate.api.storage.llv import LogicalVolumePhase
from quorate.api.storage.rvr import ReplicatedVolumeReplica
from quorate.drbd.metadata import usable_size
from quorate.engine.simulation import Simulation, run
from quorate.lab import faults
from quorate.lab.node import SimulatedNode
from tests.agent.replica.builders import MIB
from tests.agent.replica.test_life import Commands, expect_quiet, spied, stored, until_whole, with_volume, write
from tests.lab.handmade import HandMadeVolume
from tests.lab.laboratory import Laboratory

GROWN = Quantity.of_bytes(192 * MIB)


async def grow_disks(volume: HandMadeVolume) -> None:
    for number in volume.diskful:
        await volume.store.patch(
            LVMLogicalVolume, volume.logical_volume_name(number), patch={"spec": {"size": GROWN.text}}
        )


async def until_disks_have_grown(volume: HandMadeVolume) -> None:
    async def grown(number: int) -> bool:
        found = await volume.store.get(LVMLogicalVolume, volume.logical_volume_name(number))
        done = found.status.phase is LogicalVolumePhase.CREATED
        return done and found.status.actual_size is not None and found.status.actual_size >= GROWN

    # The first one's agent tells DRBD to grow: its disk grows with that.
    for number in volume.diskful[1:] or volume.diskful:
        await volume.until(f"disk {number} has grown", grown, number)


async def take_into_use(volume: HandMadeVolume) -> None:
    size = usable_size(Bytes(int(GROWN)))
    await volume.configure(size=str(size))
    await volume.until_configured()
    for number in volume.diskful:
        await volume.until_replica(number, "it has grown", lambda replica: size_of(replica) >= size)


def size_of(replica: ReplicatedVolumeReplica) -> int:
    status = replica.status.drbd.status
    return status.devices[0].size * 1024 if status is not None and status.devices else 0


async def patch_config(volume: HandMadeVolume, number: int, **config: Any) -> None:
    patch = {"drbd": {"config": config}}
    await volume.store.patch_status(ReplicatedVolumeReplica, volume.replica_name(number), patch=patch)


def test_a_volume_grows_while_it_is_detached(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main(sim: Simulation) -> None:
        with spied(monkeypatch) as commands:

            async def story(lab: Laboratory, volume: HandMadeVolume) -> None:
                await volume.form()
                await volume.promote(0)
                await write(lab, "node-1", "a")
                await volume.promote(0, primary=False)
                await grow_disks(volume)
                await until_disks_have_grown(volume)
                for number in volume.diskful:
                    assert (await volume.replica(number)).status.drbd.actual.backing_size is not None
                await take_into_use(volume)
                await until_whole(volume)
                for number in volume.diskful:
                    await volume.until_replica(
                        number, "the former size is cleared", lambda one: one.status.drbd.actual.backing_size is None
                    )
                # It asks every member once before its own disk grows, and then to grow.
                asked = [(node, said.split()[0]) for node, said in commands.ran if " resize" in said]
                assert asked == [("node-1", "drbdsetup"), ("node-1", "drbdadm")]
                assert stored(lab, volume) == ["a", "a"]
                await expect_quiet(lab, commands, without_log=True)

            await with_volume(sim, story)

    run(main, seed=1)


@pytest.mark.parametrize("kept", [True, False], ids=["state kept", "state lost"])
@pytest.mark.parametrize("members", [2, 3])
def test_a_power_loss_after_the_disks_grew_loses_nothing(
    kept: bool, members: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The recordings grow_power_loss and grow_power_loss_state_kept, with an agent."""

    async def main(sim: Simulation) -> None:
        with spied(monkeypatch) as commands:

            async def story(lab: Laboratory, volume: HandMadeVolume) -> None:
                await volume.form()
                await volume.promote(0)
                await write(lab, "node-1", "a")
                await grow_disks(volume)
                await until_disks_have_grown(volume)
                await patch_config(volume, 0, primary=None)
                nodes = [lab.cluster.node(volume.members[number][0]) for number in volume.diskful]
                for node in nodes:
                    node.power_off()
                    if not kept:
                        for path in [path for path in node.host.paths() if path.startswith("/var/lib/drbd/")]:
                            del node.host.files[path]
                await lab.sleep(1)
                for node in nodes:
                    node.power_on()
                await lab.sleep(30)
                await until_whole(volume)
                assert any("lvreduce" in said for _, said in commands.ran) is not kept
                await until_disks_have_grown(volume)
                await take_into_use(volume)
                await until_whole(volume)
                assert stored(lab, volume) == ["a"] * members
                await expect_quiet(lab, commands, without_log=True)

            await with_volume(sim, story, members=members)

    run(main, seed=2)


@pytest.mark.parametrize("seed", range(6))
def test_whatever_ends_while_the_disks_grow_nothing_is_lost(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main(sim: Simulation) -> None:
        with spied(monkeypatch) as commands:

            async def story(lab: Laboratory, volume: HandMadeVolume) -> None:
                random = Random(seed)
                await volume.form()
                await volume.promote(0)
                await write(lab, "node-1", "a")
                await volume.promote(0, primary=False)
                await grow_disks(volume)
                for _ in range(random.randrange(2, 10)):
                    for node in random.sample(list(lab.cluster.nodes.values()), k=random.randint(1, 3)):
                        end(node, random)
                    await lab.sleep(random.choice((0.001, 0.005, 0.02, 0.1, 1.0, 5.0)))
                await until_whole(volume)
                await until_disks_have_grown(volume)
                await take_into_use(volume)
                await until_whole(volume)
                assert stored(lab, volume) == ["a"] * len(volume.diskful)
                await expect_quiet(lab, commands, without_log=True)

            await with_volume(sim, story, members=2 + seed % 2)

    run(main, seed=seed)


def end(node: SimulatedNode, random: Random) -> None:
    """Its agent is killed, or its power goes for a moment, and with it perhaps what DRBD knew of its disk."""
    if random.random() < 0.3:
        node.kill_agent()
        return
    node.power_off()
    if random.random() < 0.7:
        for path in [path for path in node.host.paths() if path.startswith("/var/lib/drbd/")]:
            del node.host.files[path]
    node.power_on()


@pytest.mark.parametrize("restarted", [False, True], ids=["its agent lives on", "its agent is started anew"])
def test_a_second_primary_cuts_itself_off_even_when_it_cannot_reach_the_api(
    restarted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main(sim: Simulation) -> None:
        with spied(monkeypatch) as commands:

            async def story(lab: Laboratory, volume: HandMadeVolume) -> None:
                await volume.form()
                await volume.configure(allowTwoPrimaries=True)
                await volume.until_configured()
                await volume.promote(0)
                await patch_config(volume, 1, yields=True)
                await volume.promote(1)
                await write(lab, "node-1", "a")
                lab.cluster.inject(faults.CutApi("node-2"))
                if restarted:
                    lab.cluster.inject(faults.AgentKill("node-2"))
                await lab.sleep(5)
                lab.cluster.inject(faults.Cut("node-1", "node-2"))
                await lab.sleep(20)
                assert any(said.startswith("drbdsetup disconnect pvc-1 ") for said in commands.on("node-2"))
                (shown,) = lab.cluster.node("node-2").host.kernel.status("pvc-1")
                assert shown["suspended-quorum"]
                assert {link["connection-state"] for link in shown["connections"]} == {"StandAlone"}
                await write(lab, "node-1", "b")
                lab.cluster.inject(faults.Heal())
                await lab.sleep(30)
                (shown,) = lab.cluster.node("node-2").host.kernel.status("pvc-1")
                assert {link["connection-state"] for link in shown["connections"]} == {"StandAlone"}
                await patch_config(volume, 1, yields=None, primary=None)
                await until_whole(volume)
                await volume.until_replica(1, "it is secondary", lambda one: role_of(one) == "Secondary")
                assert stored(lab, volume) == ["b", "b", "b"]
                await expect_quiet(lab, commands)

            await with_volume(sim, story, members=3)

    run(main, seed=3)


def role_of(replica: ReplicatedVolumeReplica) -> str:
    status = replica.status.drbd.status
    return status.role if status is not None else ""


def test_a_member_that_leaves_goes_down_and_is_forgotten_by_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main(sim: Simulation) -> None:
        with spied(monkeypatch) as commands:

            async def story(lab: Laboratory, volume: HandMadeVolume) -> None:
                await volume.form()
                await volume.configure()
                await patch_config(volume, 2, down=True)
                await volume.until_replica(2, "it is down", lambda one: one.status.drbd.status is None)
                assert f"{commands_dir()}/pvc-1.res" in lab.cluster.node("node-3").host.files
                volume.revision += 1
                for number in (0, 1):
                    config = (await volume.replica(number)).status.drbd.config
                    left = [peer for peer in config.peers if peer.node_id != 2]
                    await patch_config(
                        volume,
                        number,
                        peers=[to_builtins(peer) for peer in left],
                        forget=[2],
                        datameshRevision=volume.revision,
                    )
                for number in (0, 1):
                    await volume.until_replica(
                        number, "it has forgotten", lambda one: one.status.drbd.actual.forgotten == (2,)
                    )
                    assert (await volume.replica(number)).status.datamesh_revision == volume.revision
                await expect_quiet(lab, commands)

            await with_volume(sim, story, members=3)

    run(main, seed=4)


def commands_dir() -> str:
    return "/var/lib/quorate/drbd.d"


def test_a_command_that_hangs_holds_up_its_own_volume_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main(sim: Simulation) -> None:
        with spied(monkeypatch):

            async def story(lab: Laboratory, volume: HandMadeVolume) -> None:
                await volume.form()
                other = lab.volume("pvc-2", *volume.members, minor=1001)
                lab.cluster.inject(faults.Hang("node-1", f"drbdadm -c {commands_dir()}/pvc-1.res primary"))
                await patch_config(volume, 0, primary=True)
                await lab.sleep(15)
                hung = (await volume.replica(0)).status.drbd.errors.last_promotion_error
                assert hung is not None
                assert hung.reason == "CommandHung"
                await other.form()
                await other.promote(0)
                lab.cluster.inject(faults.Release("node-1"))
                await volume.until_replica(0, "it is primary", lambda one: role_of(one) == "Primary")
                done = await volume.until_replica(
                    0, "the error is gone", lambda one: one.status.drbd.errors.last_promotion_error is None
                )
                assert done.status.drbd.errors.last_adjustment_error is None

            await with_volume(sim, story)

    run(main, seed=5)


def test_an_algorithm_that_the_kernel_has_not_got_is_reported_and_used_once_it_is_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def main(sim: Simulation) -> None:
        with spied(monkeypatch) as commands:

            async def story(lab: Laboratory, volume: HandMadeVolume) -> None:
                host = lab.cluster.node("node-1").host
                crypto = host.files["/proc/crypto"]
                host.files["/proc/crypto"] = b"name         : crc32c\n"
                forming = sim.loop.create_task(volume.form())
                await lab.sleep(20)
                error = (await volume.replica(0)).status.drbd.errors.shared_secret_alg_selection_error
                assert error is not None
                assert error.unsupported_alg == "sha256"
                assert not _touches_drbd(commands, "node-1")
                host.files["/proc/crypto"] = crypto
                await forming
                assert (await volume.replica(0)).status.drbd.errors.shared_secret_alg_selection_error is None

            await with_volume(sim, story)

    run(main, seed=6)


def _touches_drbd(commands: Commands, node: str) -> bool:
    return any(said.startswith("drbdadm") for said in commands.on(node))
