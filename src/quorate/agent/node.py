"""What the parts of one agent share.

A part (``replica``, ``operations``, ``lvm``, ``inventory``) offers two functions:

    controllers(node) -> tuple[Controller, ...]           what the manager runs; registers its lookers with the hands
    tasks(node) -> tuple[Coroutine[Any, Any, None], ...]  what runs for as long as the agent does; each never returns

Signals wake keys. ``volumes`` carries ``Key("", <name of the ReplicatedVolume>)``, which is also the name of the kernel
resource: whoever learns something of that resource wakes that key. ``disks`` is for LVM's part, and carries the keys
that it chooses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random

from quorate.agent.hands import Hands
from quorate.agent.machine import Machine
from quorate.agent.memory import Memory
from quorate.agent.settings import Settings
from quorate.agent.steps import Step
from quorate.api.meta import NodeName
from quorate.engine import Key, Signal
from quorate.engine.clock import Clock


@dataclass(frozen=True, slots=True)
class Wake:
    """Ask for a pass over a key. Two that ask for the same are equal."""

    signal: Signal
    key: Key

    def __call__(self) -> None:
        self.signal.wake(self.key)


class Node:
    """One node, from the inside."""

    def __init__(
        self,
        name: NodeName,
        machine: Machine,
        *,
        clock: Clock,
        random: Random,
        settings: Settings | None = None,
    ) -> None:
        self.name = name
        #: What the machine calls itself (``uname -n``): drbdadm knows its own section of a file by it.
        self.host_name = str(name)
        #: How this process holds the node's Lease.
        self.identity = ""
        self.machine = machine
        self.clock = clock
        self.random = random
        self.settings = settings if settings is not None else Settings()
        self.memory = Memory()
        self.hands = Hands(machine, self.memory, clock=clock, silence=self.settings.silence, slots=self.settings.slots)
        #: Wakes a volume's key: something is known, or has ended, about its kernel resource.
        self.volumes = Signal()
        #: Wakes the same keys: the kernel tells that quorum is lost, or something can be done about it now.
        self.quorum = Signal()
        #: Wakes a key of LVM's part.
        self.disks = Signal()

    def work(
        self, name: str, steps: Sequence[Step], signal: Signal, key: Key, *, urgent: bool = False
    ) -> Callable[[], None]:
        """An effect for a Plan: start this work, and wake the key when it has ended."""
        return partial(self._start, name, tuple(steps), Wake(signal, key), urgent)

    def _start(self, name: str, steps: tuple[Step, ...], done: Wake, urgent: bool) -> None:
        self.hands.start(name, steps, done, urgent=urgent)


def resource_work(resource: str) -> str:
    """The name under which everything is done that touches one DRBD resource."""
    return f"drbd/{resource}"


def volume_work(logical_volume: str) -> str:
    """The name under which LVM's part changes a logical volume. Who attaches or uses it anew holds that name too."""
    return f"lvm/{logical_volume}"


#: All that is left on a node and belongs to no object is one key of ``disks`` (``orphans``).
ORPHANS_KEY = Key("", "orphans")

#: The names of looks at everything at once; whoever needs one joins it.
KERNEL_LOOK = "look/kernel"
LVM_LOOK = "look/lvm"
DRIVES_LOOK = "look/drives"
