"""Random histories of one volume: people, faults and restarts, one on top of the other; then everything is mended.

What happens is drawn from a seed. What must be so at the end is always the same: whoever is to use the volume does, a
write is acknowledged, all copies are good, and it can be detached, used elsewhere and deleted, and nothing is left.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from random import Random

from quorate.api import annotation_keys, conditions, core
from quorate.api.conditions.rv import Resilient
from quorate.api.conditions.rvr import Ready as ReplicaReady
from quorate.api.storage import ReplicatedVolume, ReplicatedVolumeReplica
from quorate.api.storage.drbd import ReplicaType
from quorate.errors import AlreadyExists, Invalid, NotFound
from quorate.lab import faults
from quorate.lab.errors import FaultRefused
from quorate.lab.faults import Fault
from tests.volumes.attach.stories import Story
from tests.volumes.laboratory import VolumeLab

#: How long things last before the next one happens, in seconds.
PAUSES = (0.05, 0.5, 2.0, 8.0, 25.0, 90.0)
#: Within which everything is well again, in virtual seconds: five minutes are the longest pause before a retry, and a
#: formation may be started again once.
PATIENCE = 1500.0


class History:
    """One volume, ``v``, and what happens to it."""

    def __init__(self, lab: VolumeLab, chance: Random, story: Story) -> None:
        self.lab = lab
        self.chance = chance
        self.story = story
        self.nodes = sorted(lab.cluster.nodes)
        self.users: list[str] = []
        self.evacuated: set[str] = set()
        self.size = 64
        self.written = 0
        #: What happened, for whoever has to find out why it did not end well.
        self.told: list[str] = []

    async def play(self, count: int) -> None:
        """So many things happen."""
        deeds: tuple[Callable[[], Awaitable[None]], ...] = (
            *(self.attach, self.detach, self.write) * 2,
            *(self.fault,) * 8,
            self.drive,
            self.evacuate,
            self.grow,
            self.delete_replica,
            self.restart_controller,
        )
        for _ in range(count):
            await self.chance.choice(deeds)()
            await self.lab.sleep(self.chance.choice(PAUSES))

    def tell(self, what: str) -> None:
        self.told.append(f"{self.lab.sim.clock.monotonic():.1f} {what}")

    # What people do.

    async def attach(self) -> None:
        node = self.chance.choice(self.nodes)
        if node not in self.users and len(self.users) < 2:
            self.tell(f"attach {node}")
            self.users.append(node)
            with suppress(AlreadyExists):  # the last attachment of that name is not gone yet
                await self.story.attach(node)
                return
            self.users.remove(node)

    async def detach(self) -> None:
        if self.users:
            node = self.chance.choice(self.users)
            self.tell(f"detach {node}")
            self.users.remove(node)
            with suppress(NotFound):
                await self.story.detach(node)

    async def write(self) -> None:
        """As a process would, that waits for its write for as long as it takes."""
        for node in self.story.primaries():
            self.tell(f"write on {node}")
            self.written += 1
            with suppress(AssertionError):  # it is being taken away
                self.story.begin_write(node, f"w{self.written}")

    async def evacuate(self) -> None:
        node = self.chance.choice(self.nodes)
        leaving = node not in self.evacuated
        self.tell(f"evacuate {node}: {leaving}")
        (self.evacuated.add if leaving else self.evacuated.discard)(node)
        await self._annotate_node(node, "true" if leaving else None)

    async def _annotate_node(self, node: str, value: str | None) -> None:
        said = {"metadata": {"annotations": {annotation_keys.EVACUATE: value}}}
        await self.lab.store.patch(core.Node, node, patch=said)

    async def grow(self) -> None:
        self.size += 16
        self.tell(f"grow to {self.size}Mi")
        with suppress(Invalid):
            await self.story.resize(f"{self.size}Mi")

    async def delete_replica(self) -> None:
        found = sorted(await self.lab.replicas(), key=lambda each: each.name)
        if found:
            chosen = self.chance.choice(found)
            self.tell(f"delete replica {chosen.name} on {chosen.spec.node_name}")
            with suppress(NotFound):
                await self.lab.store.delete(ReplicatedVolumeReplica, chosen.name)

    async def restart_controller(self) -> None:
        self.tell("the controllers are restarted")
        self.lab.kill()
        await self.lab.sleep(self.chance.uniform(0, 5))
        self.lab.start()

    # What happens.

    async def fault(self) -> None:
        one, other = self.chance.sample(self.nodes, 2)
        self.inject(
            self.chance.choice(
                (
                    faults.NodeDown(one),
                    faults.NodeUp(one),
                    faults.NodeUp(other),
                    faults.Reboot(one),
                    faults.AgentKill(one),
                    faults.Cut(one, other),
                    faults.Cut(one, other, one_way=True),
                    faults.Isolate(one),
                    faults.CutApi(one),
                    faults.Heal(one),
                    faults.Heal(),
                    faults.Slow(one, "drbdadm", 4.0),
                    faults.Hang(one, "drbdsetup"),
                    faults.Release(one),
                )
            )
        )

    async def drive(self) -> None:
        """Mostly one with a copy."""
        copies = sorted(self.story.copies())
        node = self.chance.choice(copies or self.nodes)
        self.inject(
            self.chance.choice(
                (
                    faults.DriveFail(node, "1"),
                    faults.DriveFail(node, "1"),
                    faults.DriveMend(node, "1"),
                    faults.DrivePull(node, "1"),
                    faults.DriveInsert(node),
                )
            )
        )

    def inject(self, fault: Fault) -> None:
        with suppress(FaultRefused):  # it is so already
            self.tell(self.lab.cluster.inject(fault))

    # The end of all trouble.

    async def mend(self) -> None:
        self.tell("everything is mended")
        for node in self.nodes:
            self.inject(faults.Release(node))
            self.inject(faults.DriveInsert(node))
            self.inject(faults.DriveMend(node, "1"))
            self.inject(faults.NodeUp(node))
        self.inject(faults.Heal())
        for node in sorted(self.evacuated):
            await self._annotate_node(node, None)

    async def expect_well(self) -> None:
        """Everything is as it should be, and goes on to be."""
        await self.until("whoever is to use it does, and it is as promised", self._is_well)
        for node in list(self.users):
            self.users.remove(node)
            await self.story.detach(node)
        await self.until("nobody uses it", self._is_unused)
        user = self.chance.choice(self.nodes)
        await self.story.attach(user)
        self.users.append(user)
        await self.until(f"{user} uses it", self._is_well)
        await self.story.detach(user)
        await self.lab.store.delete(ReplicatedVolume, "v")
        await self.until("it is gone", self._is_gone)

    async def until(self, what: str, check: Callable[[], Awaitable[bool]]) -> None:
        try:
            await self.lab.until(what, check, PATIENCE)
        except AssertionError as never:
            raise AssertionError("\n".join((*self.told, str(never)))) from None

    async def _is_well(self) -> bool:
        status = (await self.lab.volume()).status
        # Who is asked for again while it is on its way out serves, and goes when it is detached.
        staying = [each for each in await self.lab.replicas() if not each.deleting]
        ready = all(conditions.is_true(each.status.conditions, ReplicaReady) for each in staying)
        if status.datamesh_transitions or not (ready and conditions.is_true(status.conditions, Resilient)):
            return False
        if not self.users:
            return True
        here = [node for node in self.users if node in self.story.primaries()]
        if not here or sorted(here) != sorted(status.published_on):
            return False
        self.written += 1
        tag = f"w{self.written}"
        if not await self.story.write(here[0], tag, seconds=3.0):
            return False
        copies = self.story.copies()
        return all(copies.get(node) == tag for node in await self.story.nodes(ReplicaType.DISKFUL))

    async def _is_unused(self) -> bool:
        status = (await self.lab.volume()).status
        return not self.story.primaries() and not status.published_on and not status.datamesh_transitions

    async def _is_gone(self) -> bool:
        with suppress(NotFound):
            await self.lab.volume()
            return False
        return not await self.lab.replicas() and not self.story.roles()
