"""Simulated nodes to run commands on."""

from __future__ import annotations

import pytest

from quorate.lab.drives import Drive, Medium
from quorate.lab.host import Host
from quorate.lab.kernel import World
from quorate.lab.tools.process import Result


class Node:
    """A host, and a short way to say what is run on it."""

    def __init__(self, world: World, name: str, address: str) -> None:
        self.world = world
        self.host = Host(world, name, [address])

    def run(self, line: str, *, expect: int | None = 0) -> Result:
        """Run a command line in the shell, and let time pass until it has ended."""
        running = self.host.start(["sh", "-c", line])
        while running.result is None and (upcoming := self.world.next_event_at()) is not None:
            self.world.advance(upcoming)
        assert running.result is not None, f"{line} does not end"
        if expect is not None:
            assert running.result.exit_code == expect, running.result
        return running.result


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def node(world: World) -> Node:
    """One node with two drives, the first of them in vg0."""
    made = Node(world, "n1", "10.77.0.1")
    made.host.insert_drive(Drive("A1", 1 << 30, slot="1"))
    made.host.insert_drive(Drive("B2", 2 << 30, Medium.HDD, slot="2"))
    made.run("vgcreate vg0 /dev/sda")
    return made
