"""A simulated machine behaves to its agent as a real one does, its faults included."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from random import Random

import pytest

from quorate.agent.machine import CommandHung, CommandNotFound, Machine
from quorate.engine.simulation import Simulation, run
from quorate.lab.driver import Driver
from quorate.lab.host import Host, HostDown
from quorate.lab.kernel import World
from quorate.lab.layout import new_drive
from quorate.lab.machine import Interference, LabMachine


class Bench:
    """One host with one drive, and its machine."""

    def __init__(self, sim: Simulation) -> None:
        self.sim = sim
        self.driver = Driver(World(1), sim.clock)
        self.host = Host(self.driver.world, "n1", ("10.0.0.1",))
        self.host.insert_drive(new_drive("n1", "2"))
        self.interference = Interference()
        self.lab_machine = LabMachine(self.host, self.driver, self.interference, Random(1))
        self.machine: Machine = self.lab_machine


def on_a_bench(test: Callable[[Bench], Awaitable[None]]) -> None:
    async def main(sim: Simulation) -> None:
        bench = Bench(sim)
        driving = asyncio.create_task(bench.driver.run())
        try:
            await test(bench)
        finally:
            driving.cancel()

    run(main, seed=1)


def test_a_command_says_what_it_says_and_takes_a_moment() -> None:
    async def test(bench: Bench) -> None:
        before = bench.sim.clock.monotonic()
        done = await bench.machine.run("echo", "hello", silence=1)
        assert (done.exit_code, done.stdout, done.stderr) == (0, "hello\n", "")
        assert 0 < bench.sim.clock.monotonic() - before < 0.1

    on_a_bench(test)


def test_a_program_that_is_not_there() -> None:
    async def test(bench: Bench) -> None:
        with pytest.raises(CommandNotFound, match="frobnicate: there is no such program on node n1"):
            await bench.machine.run("frobnicate", silence=1)

    on_a_bench(test)


def test_a_silent_command_is_killed_and_gone() -> None:
    async def test(bench: Bench) -> None:
        before = bench.sim.clock.monotonic()
        with pytest.raises(CommandHung, match="sleep 60: silent for 5 s") as hung:
            await bench.machine.run("sleep", "60", silence=5)
        assert 5 <= bench.sim.clock.monotonic() - before < 5.1
        assert not hung.value.still_there()

    on_a_bench(test)


def test_a_command_that_hangs_in_the_kernel_is_there_until_it_is_released() -> None:
    async def test(bench: Bench) -> None:
        bench.interference.hanging.add("echo hello")
        assert (await bench.machine.run("echo", "bye", silence=5)).exit_code == 0
        with pytest.raises(CommandHung) as hung:
            await bench.machine.run("echo", "hello", silence=5)
        await bench.sim.clock.sleep(1000)
        assert hung.value.still_there()
        bench.interference.release()
        await bench.sim.clock.sleep(1)
        assert not hung.value.still_there()
        assert (await bench.machine.run("echo", "hello", silence=5)).exit_code == 0

    on_a_bench(test)


def test_a_command_that_begins_to_hang_at_the_moment_of_the_release_is_released() -> None:
    async def test(bench: Bench) -> None:
        bench.interference.hanging.add("echo")
        waiting = asyncio.create_task(bench.machine.run("echo", "hello", silence=5))
        await asyncio.sleep(0)
        bench.interference.release()
        assert (await waiting).stdout == "hello\n"

    on_a_bench(test)


def test_a_hung_command_that_is_released_in_time_goes_on() -> None:
    async def test(bench: Bench) -> None:
        bench.interference.hanging.add("echo")
        asyncio.get_running_loop().call_later(2, bench.interference.release)
        assert (await bench.machine.run("/bin/echo", "hello", silence=5)).stdout == "hello\n"

    on_a_bench(test)


def test_a_slow_command_is_late_and_hung_when_it_is_too_late() -> None:
    async def test(bench: Bench) -> None:
        bench.interference.slow["echo"] = 3.0
        before = bench.sim.clock.monotonic()
        await bench.machine.run("echo", silence=5)
        assert 3 <= bench.sim.clock.monotonic() - before < 3.1
        with pytest.raises(CommandHung) as hung:
            await bench.machine.run("echo", silence=2)
        assert hung.value.still_there()
        await bench.sim.clock.sleep(2)
        assert not hung.value.still_there()

    on_a_bench(test)


def test_files_are_there_until_they_are_removed_and_survive_a_power_loss() -> None:
    async def test(bench: Bench) -> None:
        machine = bench.machine
        await machine.write_file("/var/lib/quorate/drbd.d/a.res_tmp", b"text")
        await machine.move_file("/var/lib/quorate/drbd.d/a.res_tmp", "/var/lib/quorate/drbd.d/a.res")
        bench.host.power_off()
        bench.host.power_on()
        assert await machine.list_directory("/var/lib/quorate/drbd.d") == ("a.res",)
        assert await machine.read_file("/var/lib/quorate/drbd.d/a.res") == b"text"
        await machine.remove_file("/var/lib/quorate/drbd.d/a.res")
        await machine.remove_file("/var/lib/quorate/drbd.d/a.res")
        with pytest.raises(FileNotFoundError):
            await machine.read_file("/var/lib/quorate/drbd.d/a.res")
        with pytest.raises(FileNotFoundError):
            await machine.move_file("/nothing", "/something")
        assert await machine.list_directory("/var/lib/quorate/drbd.d") == ()

    on_a_bench(test)


def test_sysfs_tells_the_slot_of_a_drive_and_switches_its_light() -> None:
    async def test(bench: Bench) -> None:
        component = "/sys/block/sda/device/enclosure_device:Slot 02"
        assert await bench.machine.list_directory("/sys/block/sda/device") == ("enclosure_device:Slot 02",)
        assert await bench.machine.read_file(f"{component}/slot") == b"2\n"
        await bench.machine.write_file(f"{component}/locate", b"1")
        assert bench.host.bays.by_name("sda").locate_light  # type: ignore[union-attr]
        assert await bench.machine.read_file(f"{component}/locate") == b"1\n"
        with pytest.raises(PermissionError):
            await bench.machine.write_file(f"{component}/slot", b"3")

    on_a_bench(test)


def test_a_stream_of_lines_ends_when_it_is_closed() -> None:
    async def test(bench: Bench) -> None:
        heard = []
        async with aclosing(bench.machine.lines("drbdsetup", "events2")) as lines:
            async for line in lines:
                heard.append(line)
                break
        assert heard == ["exists -"]

    on_a_bench(test)


def test_nothing_happens_for_a_dead_agent() -> None:
    async def test(bench: Bench) -> None:
        waiting = asyncio.create_task(bench.machine.run("sleep", "60", silence=100))
        await bench.sim.clock.sleep(1)
        bench.lab_machine.disconnect()
        with pytest.raises(HostDown):
            await waiting
        with pytest.raises(HostDown):
            await bench.machine.write_file("/a", b"")
        assert "/a" not in bench.host.files

    on_a_bench(test)


def test_nothing_happens_without_power() -> None:
    async def test(bench: Bench) -> None:
        bench.host.power_off()
        for call in (bench.machine.run("echo", silence=1), bench.machine.read_file("/etc/hostname")):
            with pytest.raises(HostDown):
                await call

    on_a_bench(test)
