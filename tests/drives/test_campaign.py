"""Whatever people, drives, nodes and controllers do to each other: nothing acknowledged is lost, and it all ends well.

At most one copy of anything is out of reach at a time, which is what three copies promise to survive.
"""

from __future__ import annotations

from random import Random

import pytest

from quorate.api.baremetal import Drive, Volume
from quorate.api.baremetal.drive import OperationalStatus
from quorate.api.maintenance import PermissionRequest
from quorate.api.storage.configuration import Replication
from quorate.engine.simulation import Simulation, run
from quorate.lab import faults
from quorate.lab.layout import Layout

from .laboratory import DriveLab, drive_lab, in_use

NAMES = ("v", "v1", "v2")
OPERATIVE, RELEASING, RELEASED, FAILED, REMOVING, REMOVED = OperationalStatus


class Troublemaker:
    """Does one thing after the other, as a seed decides."""

    def __init__(self, lab: DriveLab, random: Random, user: str) -> None:
        self.lab = lab
        self.random = random
        self.user = user
        #: What is out of reach now: a node, or the node whose drive is out.
        self.down = ""
        self.pulled = ""

    async def act(self) -> None:
        deeds = [self.say_health, self.say_replacement, self.pull_or_insert, self.power, self.restart, self.swap]
        await self.random.choice(deeds)()
        await self.lab.sleep(self.random.choice([1, 5, 20, 90]))

    async def any_drive(self) -> Drive:
        drives = (await self.lab.store.list(Drive)).items
        return self.random.choice(sorted(drives, key=lambda each: each.name))

    async def say_health(self) -> None:
        drive = await self.any_drive()
        await self.lab.annotate(drive, health=self.random.choice(["BAD", "BAD", "SUSPECT", "GOOD", None]))

    async def say_replacement(self) -> None:
        drive = await self.any_drive()
        if drive.spec.node_id != self.user:
            await self.lab.annotate(drive, replacement=self.random.choice(["ready", "ready", "restart", None]))

    async def pull_or_insert(self) -> None:
        if self.pulled:
            self.lab.lab.cluster.inject(faults.DriveInsert(node=self.pulled))
            self.pulled = ""
            await self.lab.sleep(200)
        elif not self.down:
            node = self.random.choice([name for name in self.lab.lab.cluster.nodes if name != self.user])
            here = [drive.serial for _, drive in self.lab.lab.cluster.node(node).host.bays.items()]
            self.lab.lab.cluster.inject(faults.DrivePull(node=node, drive=self.random.choice(here)))
            self.pulled = node

    async def power(self) -> None:
        if self.down:
            self.lab.lab.cluster.inject(faults.NodeUp(node=self.down))
            self.down = ""
            await self.lab.sleep(120)
        elif not self.pulled:
            self.down = self.random.choice([name for name in self.lab.lab.cluster.nodes if name != self.user])
            self.lab.lab.cluster.inject(faults.NodeDown(node=self.down))

    async def restart(self) -> None:
        self.lab.lab.kill()
        await self.lab.sleep(self.random.uniform(0, 5))
        self.lab.lab.start()

    async def swap(self) -> None:
        """A technician does as the lights say."""
        for drive in (await self.lab.store.list(Drive)).items:
            node = self.lab.lab.cluster.node(drive.spec.node_id)
            here = [each.serial for _, each in node.host.bays.items()]
            if drive.status.operational_status is REMOVED and node.host.powered and drive.spec.serial_number in here:
                self.lab.lab.cluster.inject(faults.DriveSwap(node=node.name, drive=drive.spec.serial_number))

    async def make_good(self) -> None:
        """No more trouble; people see every procedure through."""
        if self.pulled:
            self.lab.lab.cluster.inject(faults.DriveInsert(node=self.pulled))
        if self.down:
            self.lab.lab.cluster.inject(faults.NodeUp(node=self.down))
        self.pulled = self.down = ""
        for _ in range(60):
            await self.lab.sleep(30)
            await self.swap()
            busy = False
            for drive in (await self.lab.store.list(Drive)).items:
                said = {key: value for key, value in drive.metadata.annotations.items() if "health" in key}
                if said:
                    await self.lab.annotate(drive, health="GOOD")
                if drive.status.operational_status in (RELEASED, FAILED):
                    await self.lab.annotate(drive, replacement="restart")
                busy = busy or drive.status.operational_status not in (None, OPERATIVE)
            if not busy:
                return


@pytest.mark.parametrize("seed", [101, 102])
def test_it_all_ends_well(seed: int) -> None:
    async def main(sim: Simulation) -> None:
        async with drive_lab(sim, Layout(nodes=6)) as lab:
            await lab.volumes(len(NAMES), Replication.CONSISTENCY_AND_AVAILABILITY, slots=(1, 2), size="512Mi")
            user = await lab.node_of("v-1")
            story = await in_use(lab, user)
            trouble = Troublemaker(lab, sim.random("trouble"), user)
            written = ""
            for number in range(25):
                await trouble.act()
                if user in story.primaries() and await story.write(user, f"write-{number}", seconds=10):
                    written = f"write-{number}"
            await story.detach(user)
            await trouble.make_good()
            for name in NAMES:
                await lab.until_copies(name, patience=3600)

            async def clear() -> bool:
                replicas = await lab.lab.replicas()
                left = (await lab.store.list(Volume)).items or (await lab.store.list(PermissionRequest)).items
                diskful = [each for each in replicas if each.spec.type == "Diskful"]
                return not left and len(diskful) == 3 * len(NAMES) and not any(each.deleting for each in replicas)

            await lab.until("nothing is left of it", clear, 3600)
            assert written
            copies = {tag for node, tag in story.copies().items() if node in lab.up_to_date("v")}
            assert len(copies) == 1
            assert int(str(copies.pop()).removeprefix("write-")) >= int(written.removeprefix("write-"))

    run(main, seed=seed)
