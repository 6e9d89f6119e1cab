"""A cluster of simulated nodes: hardware, links, agents, and faults.

It runs on the machine's clock in ``quorate up`` and on a simulation's in tests. All chance comes from one seed, so in
virtual time the same layout, seed and faults make the same history.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from itertools import combinations

from quorate.engine.clock import Clock
from quorate.engine.store import Store
from quorate.lab import faults
from quorate.lab.driver import Driver
from quorate.lab.errors import FaultRefused
from quorate.lab.faults import Fault
from quorate.lab.kernel import World
from quorate.lab.kernel.races import Race
from quorate.lab.layout import Layout
from quorate.lab.machine import LabMachine
from quorate.lab.node import SimulatedNode


class Cluster:
    """Nodes with power and working links. Their agents start with :meth:`running`."""

    def __init__(self, layout: Layout, *, clock: Clock, seed: int = 0, machine: type[LabMachine] = LabMachine) -> None:
        """``machine`` is what agents see of their node: a subclass may listen."""
        self.seed = seed
        self.world = World(seed, clock.now())
        self.driver = Driver(self.world, clock)
        self.nodes = {plan.name: SimulatedNode(plan, self.driver, f"lab/{seed}", machine) for plan in layout.plans()}
        self.plans = tuple(node.plan for node in self.nodes.values())
        #: Directions that are cut: from a node to another.
        self.cut: set[tuple[str, str]] = set()

    @asynccontextmanager
    async def running(self, store_of: Callable[[str], Store]) -> AsyncIterator[Cluster]:
        """Let time pass, and agents work over the store of their node, for as long as the block lasts."""
        try:
            async with asyncio.TaskGroup() as group:
                driver = group.create_task(self.driver.run(), name="the lab's driver")
                for node in self.nodes.values():
                    node.start_agent(store_of(node.name))
                try:
                    yield self
                finally:
                    await asyncio.gather(*(node.stop() for node in self.nodes.values()))
                    driver.cancel()
        except BaseExceptionGroup as failed:
            if len(failed.exceptions) > 1:
                raise
            raise failed.exceptions[0] from None  # of the block, or of the driver: as it was raised

    def node(self, name: str) -> SimulatedNode:
        """A node by its name."""
        found = self.nodes.get(name)
        if found is None:
            raise FaultRefused(f"there is no simulated node {name!r}; there are: {_listed(self.nodes)}")
        return found

    def inject(self, fault: Fault) -> str:
        """Do what a fault says, now; returns what was done, for a person. Raises FaultRefused."""
        self.driver.catch_up()
        try:
            return self._inject(fault)
        finally:
            self.driver.touch()

    def _inject(self, fault: Fault) -> str:
        match fault:
            case faults.NodeDown() | faults.NodeUp() | faults.Reboot() | faults.Shutdown() | faults.AgentKill():
                return self._power(fault)
            case faults.Cut() | faults.CutApi() | faults.Isolate() | faults.Heal():
                return self._links(fault)
            case faults.Hang() | faults.Slow() | faults.Mishap() | faults.Release():
                return self._commands(fault)
            case faults.Stranger():
                ports = self.node(fault.node).host.kernel.strangers
                if not fault.port:
                    ports.clear()
                    return f"on {fault.node}, DRBD's ports are its own"
                ports.add(fault.port)
                return f"on {fault.node}, a stranger listens on port {fault.port}"
            case faults.KernelRace(race=race, chance=chance):
                self.world.chances[Race(race)] = chance
                return f"the kernel loses {race} {chance:.0%} of the time"
            case faults.QuorumNews():
                self.world.news_is_faster = {"first": True, "last": False}.get(fault.comes)
                return f"news of a lost quorum comes {fault.comes.replace('-', ' ')}"
            case _:
                return self._drives(fault)

    def _power(
        self, fault: faults.NodeDown | faults.NodeUp | faults.Reboot | faults.Shutdown | faults.AgentKill
    ) -> str:
        node = self.node(fault.node)
        match fault:
            case faults.NodeDown():
                node.power_off()
                return f"{node.name} has lost its power"
            case faults.NodeUp():
                node.power_on()
                return f"{node.name} boots"
            case faults.Reboot():
                if node.host.powered:
                    node.power_off()
                node.power_on()
                return f"{node.name} boots again"
            case faults.Shutdown():
                node.shut_down(reboot=fault.reboot, bare=fault.bare)
                return f"{node.name} {'boots again' if fault.reboot else 'powers off'} as soon as everything has ended"
            case faults.AgentKill():
                node.kill_agent()
                return f"the agent of {node.name} was killed, and is started again"

    def _links(self, fault: faults.Cut | faults.CutApi | faults.Isolate | faults.Heal) -> str:
        match fault:
            case faults.Cut():
                one, other = self._pair(fault.node, fault.peer)
                self._set_links([(one, other)] if fault.one_way else [(one, other), (other, one)], up=False)
                return f"{one} {'no longer reaches' if fault.one_way else 'and'} {other}" + (
                    "" if fault.one_way else " no longer reach each other"
                )
            case faults.CutApi():
                self.node(fault.node).reaches_api = False
                return f"{fault.node} no longer reaches the API"
            case faults.Isolate():
                node = self.node(fault.node)
                node.reaches_api = False
                self._set_links(self._links_of(node.name), up=False)
                return f"{node.name} is alone"
            case faults.Heal(node="", peer=""):
                for each in self.nodes.values():
                    each.reaches_api = True
                self._set_links(tuple(self.cut), up=True)
                return "all links work"
            case faults.Heal(node=named, peer=""):
                self.node(named).reaches_api = True
                self._set_links(self._links_of(named), up=True)
                return f"all links of {named} work"
            case faults.Heal():
                one, other = self._pair(fault.node, fault.peer)
                self._set_links([(one, other), (other, one)], up=True)
                return f"{one} and {other} reach each other"

    def _pair(self, one: str, other: str) -> tuple[str, str]:
        if not one or not other:
            raise FaultRefused("a link has two ends: name both nodes")
        if self.node(one) is self.node(other):
            raise FaultRefused(f"{one} has no link to itself")
        return one, other

    def _links_of(self, name: str) -> list[tuple[str, str]]:
        others = [other for other in self.nodes if other != name]
        return [pair for other in others for pair in ((name, other), (other, name))]

    def _set_links(self, directions: Sequence[tuple[str, str]], *, up: bool) -> None:
        for source, destination in sorted(directions):
            if ((source, destination) in self.cut) is up:
                self.world.set_link(source, destination, up)
                (self.cut.discard if up else self.cut.add)((source, destination))

    def _commands(self, fault: faults.Hang | faults.Slow | faults.Mishap | faults.Release) -> str:
        if isinstance(fault, faults.Release):
            released = [self.node(fault.node)] if fault.node else list(self.nodes.values())
            for each in released:
                each.interference.release()
                each.host.kernel.planned_slips.clear()
            return f"on {fault.node or 'all nodes'}, commands run as they should"
        node = self.node(fault.node)
        match fault:
            case faults.Hang():
                node.interference.hanging.add(fault.command)
                return f"on {node.name}, {fault.command!r} hangs"
            case faults.Slow():
                node.interference.slow[fault.command] = fault.seconds
                return f"on {node.name}, {fault.command!r} takes {fault.seconds:g} s longer"
            case faults.Mishap():
                node.host.kernel.planned_slips.append((fault.what, fault.resource))
                return f"on {node.name}, the next {fault.what} is due"

    def _drives(
        self,
        fault: faults.DriveFail
        | faults.DriveMend
        | faults.DrivePull
        | faults.DriveInsert
        | faults.DriveSwap
        | faults.Smart,
    ) -> str:
        node = self.node(fault.node)
        where = f"{{}} in slot {{}} of {node.name}"
        match fault:
            case faults.DriveFail() | faults.DriveMend():
                failing = isinstance(fault, faults.DriveFail)
                drive = node.fail_drive(fault.drive, failing=failing)
                return f"{where.format(drive.serial, drive.slot)} {'fails' if failing else 'works'}"
            case faults.DrivePull():
                drive = node.pull_drive(fault.drive)
                return f"{where.format(drive.serial, drive.slot)} is out"
            case faults.DriveInsert():
                drive = node.insert_drive(fault.drive)
                return f"{where.format(drive.serial, drive.slot)} is in"
            case faults.DriveSwap():
                old, new = node.swap_drive(fault.drive)
                return f"{where.format(old.serial, old.slot)} was replaced by {new.serial}"
            case faults.Smart():
                drive = node.let_drive_say(fault.drive, fault.says)
                return f"{where.format(drive.serial, drive.slot)} says that it is {fault.says}"

    def cut_pairs(self) -> list[tuple[str, str, bool]]:
        """What is cut, for people: two nodes, and whether only the way from the first to the second is."""
        found = []
        for one, other in combinations(sorted(self.nodes), 2):
            there, back = (one, other) in self.cut, (other, one) in self.cut
            if there and back:
                found.append((one, other, False))
            elif there or back:
                found.append((one, other, True) if there else (other, one, True))
        return found


def _listed(nodes: dict[str, SimulatedNode]) -> str:
    names = list(nodes)
    shown = ", ".join(names[:20])
    return f"{shown} and {len(names) - 20} more" if len(names) > 20 else shown or "none"
