"""The lab as machines: what scenarios are predicted with, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Hashable, Iterable, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial

from prometheus_client import CollectorRegistry

from metal.errors import Failed
from metal.guest.killing import Killing
from metal.journal import Journal
from metal.machines import BLOCK, DRIVE, Machines, Running, Said, Writer, Written, block_name, block_text
from quorate.agent.machine import Completed, FileBeneath
from quorate.api import all_kinds
from quorate.api.meta import NodeName
from quorate.engine.embedded import EmbeddedStore
from quorate.engine.simulation import Simulation
from quorate.engine.store import Store
from quorate.lab import faults
from quorate.lab.cluster import Cluster
from quorate.lab.drives import Drive, Medium
from quorate.lab.host import HostDown
from quorate.lab.host import Running as HostRunning
from quorate.lab.kernel import BlockDevice
from quorate.lab.kernel.io import Io, IoState
from quorate.lab.layout import Layout, NodePlan
from quorate.lab.machine import LabMachine
from quorate.server.leading import leading

#: The first and the second drive of a node; the same as under qemu.
MEDIA = (Medium.SSD, Medium.NVME)


def drive_serial(node: str, slot: int) -> str:
    """Of a drive that a node is delivered with."""
    return f"QM-{node.upper()}-{slot}"


@dataclass(frozen=True, slots=True)
class _Plan(NodePlan):
    def new_drives(self) -> Iterator[Drive]:
        for slot in range(1, self.drives + 1):
            yield _drive(drive_serial(self.name, slot), slot)


@dataclass(frozen=True, slots=True)
class _Rack(Layout):
    names: tuple[str, ...] = ()

    def plans(self) -> Iterator[NodePlan]:
        for number, name in enumerate(self.names, 1):
            yield _Plan(name, f"zone-{chr(ord('a') + (number - 1) % 3)}", f"10.77.0.{number}", self.drives)


def _drive(serial: str, slot: int) -> Drive:
    return Drive(serial, DRIVE, MEDIA[(slot - 1) % 2], vendor="QUORATE", model="METAL", slot=str(slot))


class _Command(Running):
    def __init__(self, rack: LabMachines, running: HostRunning | None, why: str = "") -> None:
        self._rack = rack
        self._running = running
        self._why = why

    async def wait(self, seconds: float) -> Said:
        if self._running is None:
            return Said(137, self._why)
        if not self._running.ended:
            ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._running.on_exit(lambda: _release(ended))
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await ended
        result = self._running.result
        return Said(None, "") if result is None else Said(result.exit_code, result.output)

    async def kill(self) -> None:
        if self._running is not None and not self._running.ended:
            self._rack.cluster.driver.catch_up()
            self._running.kill()
            self._rack.cluster.driver.touch()


class LabMachines(Machines):
    """Simulated nodes on a simulation's clock."""

    kind = "lab"

    def __init__(self, sim: Simulation, cluster: Cluster, store: EmbeddedStore | None, journal: Journal) -> None:
        super().__init__(cluster.nodes, journal)
        self.sim = sim
        self.cluster = cluster
        self._store = store
        self._pulled: dict[str, Drive] = {}
        self._writers: list[asyncio.Task[None]] = []
        self._events: dict[str, list[str]] = {}
        self.killing: dict[str, Killing] = {}
        for node in self.nodes:
            self._listen(node)

    @property
    def store(self) -> Store:
        assert self._store is not None, "this scenario has no agents"
        return self._store

    def now(self) -> float:
        return self.sim.clock.monotonic()

    async def sleep(self, seconds: float) -> None:
        await self.sim.clock.sleep(seconds)

    def _act(self, action: Callable[[], object]) -> object:
        self.cluster.driver.catch_up()
        try:
            return action()
        finally:
            self.cluster.driver.touch()

    def _start(self, node: str, command: str) -> Running:
        host = self.cluster.node(node).host
        try:
            running = self._act(lambda: host.start(["sh", "-c", command]))
        except HostDown as error:
            return _Command(self, None, str(error))
        assert isinstance(running, HostRunning)
        return _Command(self, running)

    async def _write_file(self, node: str, path: str, data: bytes) -> None:
        self.cluster.node(node).host.files[path] = data

    async def _set_ways(self, ways: Iterable[tuple[str, str]], *, up: bool) -> None:
        for one, other in ways:
            self._act(partial(self.cluster.world.set_link, one, other, up))

    async def _power(self, node: str, *, on: bool) -> None:
        found = self.cluster.node(node)
        if on:
            found.power_on()
            self._listen(node)
        else:
            found.power_off()

    async def _ends(self, node: str, seconds: float) -> bool:
        for _ in range(int(seconds * 10)):
            if not self.cluster.node(node).host.powered:
                return True
            await self.sleep(0.1)
        return False

    async def _shut_down(self, node: str) -> None:
        self.cluster.inject(faults.Shutdown(NodeName(node)))

    async def kill_agent(self, node: str) -> None:
        self.cluster.node(node).kill_agent()

    async def stop_agent(self, node: str) -> None:
        self.journal.tell(self.now(), node, "the agent is stopped")
        await self.cluster.node(node).stop()

    async def start_agent(self, node: str) -> None:
        self.journal.tell(self.now(), node, "the agent is started")
        self.cluster.node(node).start_agent(self.store)

    async def kill_agents_at_commands(self, nodes: Iterable[str]) -> None:
        for node in nodes:
            self.killing[node] = Killing()

    async def deaths(self, node: str) -> list[str]:
        return list(self.killing[node].died) if node in self.killing else []

    async def _read_blocks(self, node: str, device: str, blocks: Iterable[int]) -> list[str]:
        host = self.cluster.node(node).host
        self.cluster.driver.catch_up()
        minor = host.minor(device)
        if minor is not None:
            reads = [host.kernel.read(minor, block * BLOCK) for block in blocks]
            await self.sleep(1.0)
            return [_named(read.result) if read.state is IoState.DONE else "?" for read in reads]
        found = host.block_device(device)
        return [_content(found, block) for block in blocks]

    async def _start_writer(self, node: str, device: str, tag: str, *, first: int, pause: float, sync: bool) -> Writer:
        writer = Writer(node, device, tag)
        task = asyncio.create_task(self._write(writer, first, pause, sync=sync), name=f"writer {tag} on {node}")
        self._writers.append(task)

        async def stop() -> None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

        writer.stop = stop
        return writer

    async def _write(self, writer: Writer, first: int, pause: float, *, sync: bool) -> None:
        host = self.cluster.node(writer.node).host
        minor = host.minor(writer.device)
        if minor is None or not host.kernel.open(minor, "writer", pid := 900000 + len(self._writers)):
            raise Failed(f"{writer.node}: {writer.device} cannot be opened")
        block = first
        try:
            while host.powered:
                began = self.now()
                self.cluster.driver.catch_up()
                data = block_text(block, writer.tag)
                request = host.kernel.write(minor, block * BLOCK, BLOCK, data, synchronous=sync)
                self.cluster.driver.touch()
                writer.writes.append(Written(block, began, began, ""))
                await _settled(request)
                result = "ok" if request.state is IoState.DONE else "EIO"
                writer.writes[-1] = Written(block, began, self.now(), result)
                block += 1
                await self.sleep(pause)
        finally:
            if host.powered:
                host.kernel.close(minor, pid)
                self.cluster.driver.touch()

    def drives(self, node: str) -> tuple[str, ...]:
        return tuple(sorted(drive.serial for _, drive in self.cluster.node(node).host.bays.items()))

    async def pull(self, node: str, serial: str) -> None:
        self.journal.tell(self.now(), node, f"drive {serial} is pulled out")
        host = self.cluster.node(node).host
        self._pulled[serial] = next(drive for _, drive in host.bays.items() if drive.serial == serial)
        self._act(lambda: host.pull_drive(serial))

    async def plug(self, node: str, serial: str) -> None:
        self.journal.tell(self.now(), node, f"drive {serial} is put in")
        drive = self._pulled.pop(serial, None) or _drive(serial, int(serial.split("-")[2]))
        self._act(lambda: self.cluster.node(node).host.insert_drive(drive))

    async def kernel_lines(self, node: str) -> list[str]:
        return [f"[{at:12.6f}] {line}" for at, line in self.cluster.world.log(node)]

    async def close(self) -> None:
        for task in self._writers:
            task.cancel()
        await asyncio.gather(*self._writers, return_exceptions=True)
        for node in self.nodes:
            for line in self.cluster.node(node).shutdown_told:
                self.journal.tell(self.now(), node, f"quorate node shutdown: {line}")
            if self.cluster.node(node).host.boots == 1:
                self.journal.events(self.now(), node, "".join(self._events[node]))
            lines = await self.kernel_lines(node)
            (self.journal.directory / f"{node}.kernel.log").write_text("\n".join(lines) + "\n")

    def _listen(self, node: str) -> None:
        said = self._events[node] = []
        host = self.cluster.node(node).host
        self._act(lambda: host.start(["drbdsetup", "events2", "--timestamps", "--full"], listener=said.append))

    def heard_command(self, node: str, argv: tuple[str, ...], done: Completed) -> None:
        """An agent ran a command."""
        text = " ".join(argv)
        self.journal.command(self.now(), node, text, done.exit_code, done.stdout + done.stderr, by="agent")


def _release(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)


async def _settled(request: Io) -> None:
    if request.blocked:
        settled: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        request.when_settled = lambda _: _release(settled)
        await settled


def _content(device: BlockDevice | None, block: int) -> str:
    return "no device" if device is None else _named(device.read(block * BLOCK))


def _named(tag: Hashable) -> str:
    if tag is None:
        return "-"
    return block_name(tag) if isinstance(tag, bytes) else "?"


def _machine_class(told: Callable[[], LabMachines | None]) -> type[LabMachine]:
    """A machine for agents that tells what they do, and lets them die at commands."""

    class ToldMachine(LabMachine):
        async def run(self, *argv: str, silence: float, stdin: FileBeneath | None = None) -> Completed:
            rack, node = told(), self._host.name
            killing = rack.killing.get(node) if rack is not None else None
            if rack is not None and killing is not None and killing.dies_before(argv):
                rack.cluster.node(node).kill_agent()
            done = await super().run(*argv, silence=silence, stdin=stdin)
            if rack is not None:
                rack.heard_command(node, argv, done)
                if killing is not None and killing.dies_after(argv):
                    rack.cluster.node(node).kill_agent()
                    self._check()
            return done

        async def write_file(self, path: str, content: bytes) -> None:
            await super().write_file(path, content)
            if (rack := told()) is not None:
                rack.journal.file(rack.now(), self._host.name, path, content.decode(errors="replace"))

        async def move_file(self, source: str, destination: str) -> None:
            await super().move_file(source, destination)
            if (rack := told()) is not None:
                text = self._host.files[destination].decode(errors="replace")
                rack.journal.file(rack.now(), self._host.name, destination, text)

        async def remove_file(self, path: str) -> None:
            await super().remove_file(path)
            if (rack := told()) is not None:
                rack.journal.command(rack.now(), self._host.name, f"rm -f {path}", 0, "", by="agent")

    return ToldMachine


@asynccontextmanager
async def lab_machines(
    sim: Simulation, journal: Journal, *, nodes: int, drives: int, agents: bool
) -> AsyncIterator[LabMachines]:
    """Nodes n1, n2 …, with agents and controllers if they are asked for; ended with the block."""
    names = tuple(f"n{number}" for number in range(1, nodes + 1))
    rack: list[LabMachines] = []
    layout = _Rack(nodes=nodes, drives=drives, names=names)
    machine = _machine_class(lambda: rack[0] if rack else None)
    cluster = Cluster(layout, clock=sim.clock, seed=sim.seed, machine=machine)
    if not agents:
        driving = asyncio.create_task(cluster.driver.run())
        rack.append(LabMachines(sim, cluster, None, journal))
        try:
            yield rack[0]
        finally:
            await rack[0].close()
            driving.cancel()
            await asyncio.gather(driving, return_exceptions=True)
        return
    store = await EmbeddedStore.open(None, kinds=all_kinds(), clock=sim.clock, random=sim.random("store"), inline=True)
    led = leading(
        store, clock=sim.clock, random=sim.random("manager"), identity="quorate", registry=CollectorRegistry()
    )
    managing = asyncio.create_task(led.run())
    try:
        async with cluster.running(lambda _: store):
            rack.append(LabMachines(sim, cluster, store, journal))
            try:
                yield rack[0]
            finally:
                await rack[0].close()
    finally:
        led.manager.stop()
        await asyncio.gather(managing, return_exceptions=True)
        await store.close()
