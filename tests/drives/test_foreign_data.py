"""A drive with data outside of LVM: it is told of, and neither moved nor wiped."""

from __future__ import annotations

import pytest

from quorate.api import conditions
from quorate.api.baremetal.drive import OperationalStatus
from quorate.api.conditions.drive import Released, Removed
from quorate.engine.simulation import Simulation, run
from quorate.lab.layout import Layout

from .laboratory import drive_lab

RELEASED, FAILED, REMOVED = OperationalStatus.RELEASED, OperationalStatus.FAILED, OperationalStatus.REMOVED


@pytest.mark.parametrize(
    ("filesystem", "partitions", "named"),
    [("xfs", (), "xfs on {path}"), ("", ("ext4", ""), "ext4 on {path}1, {path}2")],
)
def test_what_is_not_ours_is_told_of_and_not_wiped(filesystem: str, partitions: tuple[str, ...], named: str) -> None:
    async def main(sim: Simulation) -> None:
        async with drive_lab(sim, Layout(nodes=3)) as lab:
            await lab.sleep(30)
            drive = await lab.drive("node-1", 2)
            host, path = lab.lab.cluster.node("node-1").host, drive.spec.path
            device = host.bays.by_serial(drive.spec.serial_number)
            host.execute(["vgremove", "quorate-2"])
            host.execute(["pvremove", path])
            device.filesystem, device.partitions = filesystem, partitions
            await lab.sleep(70)
            drive = await lab.again(drive)
            assert drive.status.foreign_data == named.format(path=path)
            assert not drive.spec.is_clean
            assert (await lab.events(drive)).count("DriveHasData") == 1

            await lab.annotate(drive, health="BAD")
            drive = await lab.until_phase(drive, RELEASED)
            assert drive.status.foreign_data in drive.status.message
            for condition, reason in ((Released, Released.FOREIGN_DATA), (Removed, Removed.WAITING_FOR_USER)):
                said = conditions.find(drive.status.conditions, condition)
                assert said is not None
                assert (said.reason, drive.status.foreign_data in said.message) == (reason.code, True)

            await lab.annotate(drive, replacement="ready")
            drive = await lab.until_phase(drive, FAILED)
            assert "not ours to wipe" in drive.status.message
            assert (device.filesystem, device.partitions) == (filesystem, partitions)
            # Somebody has saved it.
            host.execute(["wipefs", "--all", path])
            drive = await lab.until_phase(drive, REMOVED)
            await lab.sleep(70)
            assert (await lab.again(drive)).status.foreign_data == ""
            told = await lab.events(drive)
            assert (told.count("DriveHasData"), told.count("DriveClean")) == (1, 1)

    run(main, seed=7)
