"""One simulated node with its agent: power, the agent's process, and what can be done to its drives."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from quorate.agent.inventory.registration import Registration
from quorate.agent.lease import Identity
from quorate.agent.machine import CommandHung
from quorate.agent.parts import PARTS
from quorate.agent.process import Agent, Part
from quorate.agent.shutdown import shut_down
from quorate.api import labels
from quorate.api.meta import NodeName
from quorate.engine import logs
from quorate.engine.backoff import Backoff
from quorate.engine.logs import get_logger
from quorate.engine.store import Store
from quorate.lab.driver import Driver
from quorate.lab.drives import Bays, Drive, Smart
from quorate.lab.errors import FaultRefused
from quorate.lab.host import Host
from quorate.lab.layout import NodePlan, new_drive
from quorate.lab.machine import Interference, LabMachine
from quorate.lab.plug import Plug

log = get_logger(__name__)

#: Seconds after which somebody looks whether a sync still waits.
_SYNC = 3600.0

#: An agent that fails is started again, as an init system would.
_RESTART = Backoff(first=1.0, longest=30.0)

_SAYINGS = {
    "good": Smart(),
    "wearing": Smart(endurance_used=97, reallocated_sectors=180, pending_sectors=12),
    "failing": Smart(passed=False, reallocated_sectors=2040, pending_sectors=96, media_errors=310),
}


@dataclass(frozen=True, slots=True)
class AgentProcess:
    """One life of an agent: what it holds of the outside world, and the task that is its process."""

    agent: Agent
    plug: Plug
    machine: LabMachine
    task: asyncio.Task[None]

    def kill(self) -> None:
        """End it without a last word: first nothing it does arrives anywhere, then it is taken down."""
        self.plug.pull()
        self.machine.disconnect()
        self.task.cancel()


class SimulatedNode:
    """A node of the lab. ``start_agent`` once it has a store to report to."""

    def __init__(self, plan: NodePlan, driver: Driver, seed: str, machine: type[LabMachine] = LabMachine) -> None:
        self.plan = plan
        self._machine = machine
        self.host = Host(driver.world, plan.name, (plan.address,))
        self.interference = Interference()
        self.host.lateness = self.interference.lateness
        #: Drives that were taken out, the last one last.
        self.pulled: list[Drive] = []
        #: Why lives of its agent ended that should not have.
        self.agent_failures: list[str] = []
        self._driver = driver
        self._random = Random(f"{seed}/{plan.name}")
        self._store: Store | None = None
        self._parts: tuple[Part, ...] = (*PARTS, Registration(plan.address, {labels.ZONE: plan.zone}))
        self._process: AgentProcess | None = None
        self._dying: set[asyncio.Task[None]] = set()
        self._starting: asyncio.Task[None] | None = None
        self._stopping: asyncio.Task[None] | None = None
        #: What the unit that takes devices down said, the last time.
        self.shutdown_told: list[str] = []
        self._failures = 0
        self._swaps: dict[str, int] = {}
        self._reaches_api = True
        for drive in plan.new_drives():
            self.host.insert_drive(drive)

    @property
    def name(self) -> str:
        return self.plan.name

    # The agent.

    @property
    def agent(self) -> Agent | None:
        """The agent that runs, if one does."""
        return self._process.agent if self._process is not None else None

    def start_agent(self, store: Store) -> None:
        """Let the node have an agent from now on, whenever it has power."""
        self._store = store
        if self.host.powered:
            self._spawn()

    def kill_agent(self) -> None:
        """Kill the agent; it is started again at once, while there is power."""
        self._end_process()
        if self.host.powered and self._store is not None:
            self._spawn()

    async def stop(self) -> None:
        """Let the agent end in an orderly way, and wait for all that is left of earlier ones."""
        if self._starting is not None:
            self._starting.cancel()
        process, self._process = self._process, None
        if process is not None:
            process.agent.stop()
            await asyncio.gather(process.task, return_exceptions=True)
        await asyncio.gather(*self._dying, return_exceptions=True)

    @property
    def reaches_api(self) -> bool:
        """Whether the agent's requests arrive."""
        return self._reaches_api

    @reaches_api.setter
    def reaches_api(self, value: bool) -> None:
        self._reaches_api = value
        if self._process is not None:
            self._process.plug.connected = value

    def _spawn(self) -> None:
        assert self._store is not None
        plug = Plug(self._store, self.name)
        plug.connected = self._reaches_api
        machine = self._machine(self.host, self._driver, self.interference, self._random)
        agent = Agent(
            plug,
            machine,
            node_name=NodeName(self.name),
            identity=Identity.new(f"lab-{self.name}", self._random),
            clock=self._driver.clock,
            random=self._random,
            parts=self._parts,
        )
        context = copy_context()
        context.run(logs.bind, node=self.name)  # of many agents in one process, each line says whose it is
        task = asyncio.create_task(agent.run(), name=f"agent of {self.name}", context=context)
        self._process = AgentProcess(agent, plug, machine, task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        process = self._process
        if process is None or process.task is not task or task.cancelled():
            return
        why = _told(task.exception())
        log.error("a simulated node's agent failed", node=self.name, why=why)
        self.agent_failures.append(why)
        self._failures += 1
        self._end_process()
        self._starting = asyncio.create_task(self._start_later(), name=f"restart of the agent of {self.name}")

    async def _start_later(self) -> None:
        await self._driver.clock.sleep(_RESTART.delay(self._failures, self._random))
        if self._process is None and self.host.powered:
            self._spawn()

    def _end_process(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            self._dying.add(process.task)
            process.task.add_done_callback(self._buried)

    def _buried(self, task: asyncio.Task[None]) -> None:
        self._dying.discard(task)
        if not task.cancelled():
            task.exception()  # of the dead nothing is asked

    # Power.

    def power_off(self) -> None:
        """Everything stops at once."""
        if not self.host.powered:
            raise FaultRefused(f"node {self.name} has no power already")
        self._driver.catch_up()
        self._end_process()
        if self._stopping is not None:
            self._stopping.cancel()
            self._stopping = None
        self.host.power_off()
        self._driver.touch()

    def power_on(self) -> None:
        """The node boots; what is on its drives and in its files is as it was."""
        if self.host.powered:
            raise FaultRefused(f"node {self.name} has power already")
        self._driver.catch_up()
        self.host.power_on()
        if self._store is not None:
            self._spawn()
        self._driver.touch()

    @property
    def is_stopping(self) -> bool:
        """Whether it is on its way down."""
        return self._stopping is not None

    def shut_down(self, *, reboot: bool, bare: bool) -> None:
        """Begin to end the machine in order. It may never come to its end (``faults.Shutdown``)."""
        if not self.host.powered or self.is_stopping:
            raise FaultRefused(f"node {self.name} has no power already, or is on its way down")
        process, self._process = self._process, None
        ending = self._end_in_order(process, reboot=reboot, bare=bare)
        self._stopping = asyncio.create_task(ending, name=f"{self.name} powers off")

    async def _end_in_order(self, process: AgentProcess | None, *, reboot: bool, bare: bool) -> None:
        """As an init system does it: the agent and what uses volumes, then the unit, and at last all caches."""
        machine = LabMachine(self.host, self._driver, self.interference, self._random)
        if process is not None:
            process.agent.stop()
            await asyncio.gather(process.task, return_exceptions=True)
        self._driver.catch_up()
        self.host.kill_processes()
        self._driver.touch()
        if not bare:
            self.shutdown_told.clear()
            await shut_down(machine, self.shutdown_told.append)
        while True:
            # On and on: nothing but power ends a sync that waits.
            with suppress(CommandHung):
                await machine.run("sync", silence=_SYNC)
                break
        self._stopping = None
        self.power_off()
        if reboot:
            self.power_on()

    # What outlives the process that simulates it.

    def saved(self) -> dict[str, object]:
        """Everything that is on drives and in files, for ``saving``."""
        return {
            "powered": self.host.powered,
            "boots": self.host.boots,
            "files": self.host.files,
            "drives": [drive for _, drive in self.host.bays.items()],
            "groups": self.host.lvm.groups,
            "labelled": self.host.lvm.labelled,
            "pulled": self.pulled,
            "swaps": self._swaps,
        }

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Have the drives and files of an earlier life. The node has booted since; one that was off stays off."""
        host = self.host
        host.power_off()
        host.boots, host.files, host.bays = saved["boots"], saved["files"], Bays()
        host.lvm.groups, host.lvm.labelled = saved["groups"], saved["labelled"]
        self.pulled, self._swaps = saved["pulled"], saved["swaps"]
        for drive in saved["drives"]:
            host.insert_drive(drive)
        if saved["powered"]:
            host.power_on()

    # Drives.

    def drive(self, named: str) -> Drive:
        """A drive that is in the node, by its device, slot or serial number."""
        wanted = named.removeprefix("/dev/")
        for device, drive in self.host.bays.items():
            if wanted in (device, drive.slot, drive.serial):
                return drive
        there = ", ".join(
            f"{device} (slot {drive.slot}, serial {drive.serial})" for device, drive in self.host.bays.items()
        )
        raise FaultRefused(f"node {self.name} has no drive {named!r}; it has: {there or 'none'}")

    def fail_drive(self, named: str, *, failing: bool) -> Drive:
        """Let a drive's reads and writes fail, or work again."""
        drive = self.drive(named)
        self.host.fail_drive(drive.serial, failing)
        return drive

    def pull_drive(self, named: str) -> Drive:
        """Take a drive out."""
        drive = self.host.pull_drive(self.drive(named).serial)
        self.pulled.append(drive)
        return drive

    def insert_drive(self, serial: str) -> Drive:
        """Put a drive back that was taken out; without a serial number the last one."""
        chosen = [drive for drive in self.pulled if serial in ("", drive.serial)]
        if not chosen:
            there = ", ".join(drive.serial for drive in self.pulled) or "none"
            raise FaultRefused(f"no drive {serial!r} was pulled out of node {self.name}; pulled out are: {there}")
        drive = chosen[-1]
        if any(present.slot == drive.slot for _, present in self.host.bays.items()):
            raise FaultRefused(f"slot {drive.slot} of node {self.name} is taken by another drive")
        self.pulled.remove(drive)
        self.host.insert_drive(drive)
        return drive

    def swap_drive(self, named: str) -> tuple[Drive, Drive]:
        """Put a new, empty drive in a drive's place."""
        old = self.drive(named)
        self._swaps[old.slot] = self._swaps.get(old.slot, 0) + 1
        new = new_drive(self.name, old.slot, self._swaps[old.slot])
        self.host.swap_drive(old.serial, new)
        self.pulled.append(old)
        return old, new

    def let_drive_say(self, named: str, says: str) -> Drive:
        """Change what a drive says of itself."""
        drive = self.drive(named)
        drive.smart = replace(_SAYINGS[says])
        return drive


def _told(error: BaseException | None) -> str:
    """An error in a line, with what is inside a group."""
    if error is None:
        return "it ended, which it never should"
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(_told(one) for one in error.exceptions)
    return f"{type(error).__name__}: {error}"
