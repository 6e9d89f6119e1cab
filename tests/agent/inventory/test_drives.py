"""Drive objects follow the drives of the machine, and cost nothing while nothing changes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from quorate.agent import inventory
from quorate.agent.inventory.discovery import Place, discover
from quorate.agent.inventory.drives import DrivesView, decide
from quorate.agent.inventory.lsblk import BlockDevice
from quorate.agent.inventory.sysfs import place_of
from quorate.agent.linux import LinuxMachine, Roots
from quorate.agent.machine import CommandHung, CommandNotFound, Completed
from quorate.agent.node import Node
from quorate.api import all_kinds, labels
from quorate.api.baremetal import Drive
from quorate.api.baremetal.drive import DriveHealth, DriveStatus, Presence, SmartReport
from quorate.api.meta import NodeName, ObjectMeta
from quorate.engine import PatchStatus, Plan
from quorate.engine.embedded import EmbeddedStore
from quorate.engine.manager import Manager
from quorate.engine.simulation import Simulation, run

HERE = NodeName("n1")
NOW = datetime(2026, 1, 1, tzinfo=UTC)


class FakeMachine:
    """A machine with drives, and files."""

    def __init__(self) -> None:
        self.drives: dict[str, dict[str, Any]] = {}
        self.smart: dict[str, dict[str, Any]] = {}
        self.files: dict[str, str] = {}
        self.ran: list[str] = []
        self.hanging: set[str] = set()
        self.has_smartctl = True
        self.broken = False
        self.unknown_columns: list[str] = []

    def insert(self, path: str, serial: str, **facts: Any) -> None:
        name = path.removeprefix("/dev/")
        self.drives[path] = {"name": name, "path": path, "type": "disk", "size": 1 << 30, "serial": serial, **facts}
        self.smart[path] = {"smart_status": {"passed": True}, "temperature": {"current": 30}}

    async def run(self, *argv: str, silence: float, stdin: object = None) -> Completed:
        await asyncio.sleep(0.001)
        self.ran.append(argv[0])
        if argv[0] == "lsblk":
            for column in self.unknown_columns:
                if column in argv[-1].split(","):
                    return Completed(1, "", f"lsblk: unknown column: {column}\n")
            return Completed(1 if self.broken else 0, json.dumps({"blockdevices": list(self.drives.values())}))
        if not self.has_smartctl:
            raise CommandNotFound("smartctl")
        if argv[-1] in self.hanging:
            await asyncio.sleep(silence)
            raise CommandHung("it hangs", still_there=lambda: argv[-1] in self.hanging)
        return Completed(4, json.dumps(self.smart[argv[-1]]))  # some SMART command failed: says nothing

    async def lines(self, *argv: str) -> AsyncGenerator[str, None]:
        await asyncio.Event().wait()
        yield ""

    async def read_file(self, path: str) -> bytes:
        if path not in self.files:
            raise FileNotFoundError(path)
        return self.files[path].encode()

    async def write_file(self, path: str, content: bytes) -> None: ...
    async def move_file(self, source: str, destination: str) -> None: ...
    async def remove_file(self, path: str) -> None: ...
    async def list_directory(self, path: str) -> tuple[str, ...]:
        prefix = f"{path}/"
        return tuple(sorted({file[len(prefix) :].split("/")[0] for file in self.files if file.startswith(prefix)}))

    async def port_is_free(self, address: str, port: int) -> bool:
        return True


async def started(sim: Simulation, machine: FakeMachine) -> EmbeddedStore:
    clock, random = sim.clock, sim.random("agent")
    store = await EmbeddedStore.open(None, kinds=all_kinds(), clock=clock, random=random, inline=True)
    sim.cleanup.push_async_callback(store.close)
    node = Node(HERE, machine, clock=clock, random=random)
    process = sim.process("agent")
    process.spawn(Manager(store, inventory.controllers(node), clock=clock, random=random, identity="agent").run())
    for task in inventory.tasks(node):
        process.spawn(task)
    return store


async def by_serial(store: EmbeddedStore) -> dict[str, Drive]:
    return {drive.spec.serial_number: drive for drive in (await store.list(Drive)).items}


def test_every_drive_becomes_an_object_with_the_nodes_label_and_a_quiet_hour_writes_nothing() -> None:
    async def main(sim: Simulation) -> None:
        machine = FakeMachine()
        machine.insert("/dev/sda", "A", mountpoints=["/"])
        machine.insert("/dev/sdb", "B")
        machine.insert("/dev/sdc", "")
        store = await started(sim, machine)
        await sim.clock.sleep(10)
        found = await by_serial(store)
        assert sorted(found) == ["A", "B"]
        for drive in found.values():
            assert (drive.metadata.labels[labels.NODE], drive.spec.uuid) == (HERE, drive.name)
            assert (drive.status.presence, drive.status.smart and drive.status.smart.health) == ("ONLINE", "GOOD")
        assert (found["A"].spec.is_system, found["B"].spec.is_system, found["B"].spec.is_clean) == (True, False, True)
        machine.smart["/dev/sdb"]["temperature"]["current"] = 45
        machine.ran.clear()
        await sim.clock.sleep(3600)
        assert await by_serial(store) == found
        assert (machine.ran.count("lsblk"), machine.ran.count("smartctl")) == (60, 2 * 6)

    run(main, seed=1)


def test_a_drive_that_is_pulled_is_offline_since_then_and_online_when_it_is_back_elsewhere() -> None:
    async def main(sim: Simulation) -> None:
        machine = FakeMachine()
        machine.insert("/dev/sda", "A")
        store = await started(sim, machine)
        await sim.clock.sleep(10)
        before = (await by_serial(store))["A"]
        del machine.drives["/dev/sda"]
        await sim.clock.sleep(120)
        gone = (await by_serial(store))["A"]
        assert (gone.status.presence, gone.spec) == (Presence.OFFLINE, before.spec)
        assert gone.status.missing_since is not None
        await sim.clock.sleep(600)
        assert (await by_serial(store))["A"] == gone
        machine.insert("/dev/sdk", "A")
        await sim.clock.sleep(120)
        back = (await by_serial(store))["A"]
        assert (back.name, back.spec.path) == (before.name, "/dev/sdk")
        assert (back.status.presence, back.status.missing_since) == (Presence.ONLINE, None)

    run(main, seed=1)


def test_a_listing_that_fails_takes_no_drive_away_and_is_told_of_until_it_works_again() -> None:
    async def main(sim: Simulation) -> None:
        machine = FakeMachine()
        machine.insert("/dev/sda", "A")
        store = await started(sim, machine)
        await sim.clock.sleep(10)
        before = (await by_serial(store))["A"]
        machine.broken, there = True, machine.drives
        machine.drives = {}
        await sim.clock.sleep(70)
        assert (await by_serial(store))["A"] == before  # once may happen
        await sim.clock.sleep(530)
        blind = (await by_serial(store))["A"]
        assert blind.status.smart is not None
        assert before.status.smart is not None
        assert blind.status.smart.message.startswith("The drives of the node cannot be looked at: lsblk ended with 1")
        assert blind.status.smart.health == before.status.smart.health
        assert blind.status.presence is Presence.ONLINE
        machine.broken, machine.drives = False, there
        await sim.clock.sleep(70)
        assert (await by_serial(store))["A"].status == before.status

    run(main, seed=1)


def test_a_drive_whose_identity_udev_does_not_tell_for_a_while_is_neither_new_nor_gone() -> None:
    async def main(sim: Simulation) -> None:
        machine = FakeMachine()
        machine.insert("/dev/sda", "A", model="ST8000", wwn="0x1")
        machine.insert("/dev/sdb", "B", model="ST8000", wwn="0x2")
        store = await started(sim, machine)
        await sim.clock.sleep(10)
        before = await by_serial(store)
        # udev's database is made anew: less is known, and one drive has come up under another path.
        whole = {path: dict(row) for path, row in machine.drives.items()}
        for row in machine.drives.values():
            row.update(serial=None, model=None)
        machine.drives["/dev/sdb"].update(path="/dev/sdk", name="sdk")
        await sim.clock.sleep(300)
        assert await by_serial(store) == before
        machine.drives = whole
        await sim.clock.sleep(120)
        assert await by_serial(store) == before
        # With one that comes without a serial number it is not confused.
        machine.insert("/dev/sdc", "", wwn="0x3")
        await sim.clock.sleep(120)
        assert sorted(await by_serial(store)) == ["0x3", "A", "B"]

    run(main, seed=1)


def test_after_a_boot_a_drive_without_a_serial_number_is_not_taken_for_another_at_its_path() -> None:
    known = discover(HERE, BlockDevice("sda", "/dev/sda", serial="A", model="M", wwn="0x1"), Place())
    drive = Drive(metadata=ObjectMeta(name=known.name, uid="u"), spec=known.spec)
    incomplete = discover(HERE, BlockDevice("sda", "/dev/sda", wwn="0x1"), Place())
    assert incomplete.name != known.name
    assert decide(DrivesView(HERE, (drive,), (incomplete,), {}), NOW) == ()
    # Whereas one that tells all of its identity is another.
    other = discover(HERE, BlockDevice("sda", "/dev/sda", serial="X", model="M", wwn="0x9"), Place())
    assert len(decide(DrivesView(HERE, (drive,), (other,), {}), NOW)) == 2


def test_columns_that_an_older_lsblk_does_not_know_are_left_out_from_then_on() -> None:
    async def main(sim: Simulation) -> None:
        machine = FakeMachine()
        machine.unknown_columns = ["MOUNTPOINTS", "PATH"]
        machine.insert("/dev/sda", "A", mountpoint="/")
        store = await started(sim, machine)
        await sim.clock.sleep(10)
        assert (await by_serial(store))["A"].spec.is_system
        assert machine.ran.count("lsblk") == 3
        await sim.clock.sleep(60)
        assert machine.ran.count("lsblk") == 4

    run(main, seed=1)


def _view(temperature: int, health: DriveHealth = DriveHealth.GOOD) -> DrivesView:
    found = discover(HERE, BlockDevice("sda", "/dev/sda", serial="A"), Place())
    smart = SmartReport(health=DriveHealth.GOOD, temperature_celsius=30)
    drive = Drive(
        metadata=ObjectMeta(name=found.name, uid="u"),
        spec=found.spec,
        status=DriveStatus(presence=Presence.ONLINE, smart=smart),
    )
    return DrivesView(
        HERE, (drive,), (found,), {found.name: SmartReport(health=health, temperature_celsius=temperature)}
    )


@pytest.mark.parametrize(
    ("view", "written"),
    [
        (_view(30), None),
        (_view(55), None),
        (_view(55, DriveHealth.BAD), 55),  # with something else it is worth a write
    ],
)
def test_a_temperature_alone_is_not_written(view: DrivesView, written: int | None) -> None:
    steps = Plan(writes=decide(view, NOW)).steps
    found = [step.patch["smart"]["temperatureCelsius"] for step in steps if isinstance(step, PatchStatus)]
    assert found == ([] if written is None else [written])


def test_nothing_is_written_of_drives_that_nobody_could_look_at() -> None:
    view = _view(30)
    assert decide(DrivesView(HERE, view.objects, None, {}), NOW) == ()


def test_a_first_listing_that_fails_is_tried_again_but_not_all_the_time() -> None:
    async def main(sim: Simulation) -> None:
        machine = FakeMachine()
        machine.insert("/dev/sda", "A")
        machine.broken = True
        store = await started(sim, machine)
        await sim.clock.sleep(600)
        assert await by_serial(store) == {}
        assert 5 < machine.ran.count("lsblk") < 30
        machine.broken = False
        await sim.clock.sleep(120)
        assert sorted(await by_serial(store)) == ["A"]

    run(main, seed=1)


def test_what_a_drive_says_arrives_within_ten_minutes_and_one_that_hangs_does_not_keep_others_from_it() -> None:
    async def main(sim: Simulation) -> None:
        machine = FakeMachine()
        machine.insert("/dev/sda", "A")
        machine.insert("/dev/sdb", "B")
        machine.hanging.add("/dev/sda")
        store = await started(sim, machine)
        await sim.clock.sleep(60)
        found = await by_serial(store)
        reports = [found[each].status.smart for each in "AB"]
        assert [report and report.health for report in reports] == [DriveHealth.UNKNOWN, DriveHealth.GOOD]
        machine.smart["/dev/sdb"]["smart_status"]["passed"] = False
        await sim.clock.sleep(660)
        smart = (await by_serial(store))["B"].status.smart
        assert smart is not None
        assert smart.health is DriveHealth.BAD

    run(main, seed=1)


def test_without_smartctl_health_is_unknown_and_says_why() -> None:
    async def main(sim: Simulation) -> None:
        machine = FakeMachine()
        machine.has_smartctl = False
        machine.insert("/dev/sda", "A")
        store = await started(sim, machine)
        await sim.clock.sleep(60)
        smart = (await by_serial(store))["A"].status.smart
        assert smart is not None
        assert (smart.health, "not installed" in smart.message) == (DriveHealth.UNKNOWN, True)

    run(main, seed=1)


@pytest.mark.parametrize(
    ("files", "enclosure", "slot", "light"),
    [
        ({}, "", "", None),
        ({"/sys/block/sda/device/enclosure_device:Slot 07/slot": "7\n"}, "", "7", None),
        ({"/sys/block/sda/device/enclosure_device:Slot 07/locate": "1\n"}, "", "Slot 07", True),
        (
            {
                "/sys/block/sda/device/enclosure_device:Slot 07/locate": "0\n",
                "/sys/block/sda/device/enclosure_device:Slot 07/../id": "0x5000\n",
            },
            "0x5000",
            "Slot 07",
            False,
        ),
        (
            {"/sys/block/sda/device/address": "0000:3b:00.0\n", "/sys/bus/pci/slots/12/address": "0000:3b:00\n"},
            "",
            "12",
            None,
        ),
    ],
)
async def test_where_a_drive_sits_is_read_from_sysfs(
    files: dict[str, str], enclosure: str, slot: str, light: bool | None
) -> None:
    machine = FakeMachine()
    machine.files = files
    place = await place_of(machine, "/sys", "sda")
    assert (place.enclosure, place.slot, place.light) == (enclosure, slot, light)


async def test_a_place_in_an_enclosure_is_found_behind_the_links_of_a_real_sysfs(tmp_path: Path) -> None:
    """As the kernel makes it: relative links, and the component's parent is the enclosure's directory."""
    sys = tmp_path / "sys"
    component = sys / "devices/pci0000:00/host0/0:0:24:0/enclosure/0:0:24:0/Slot 01"
    device = sys / "devices/pci0000:00/host0/0:0:0:0"
    for directory in (component, device, sys / "block/sda"):
        directory.mkdir(parents=True)
    (component.parent / "id").write_text("0x500605b0000272bf\n")
    (component / "slot").write_text("1\n")
    (component / "locate").write_text("0\n")
    (device / "enclosure_device:Slot 01").symlink_to("../0:0:24:0/enclosure/0:0:24:0/Slot 01")
    (sys / "block/sda/device").symlink_to("../../devices/pci0000:00/host0/0:0:0:0")
    machine = LinuxMachine(roots=Roots({"/sys": str(sys)}))
    assert await place_of(machine, "/sys", "sda") == Place("0x500605b0000272bf", "1", False)


def test_a_drive_whose_place_cannot_be_told_hides_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    async def place(machine: object, sys: str, name: str) -> Place:
        if name == "sda":
            raise ValueError("an enclosure that nobody has thought of")
        return Place(slot="2")

    async def main(sim: Simulation) -> None:
        machine = FakeMachine()
        machine.insert("/dev/sda", "A")
        machine.insert("/dev/sdb", "B")
        store = await started(sim, machine)
        await sim.clock.sleep(10)
        assert {serial: drive.spec.slot for serial, drive in (await by_serial(store)).items()} == {"A": "", "B": "2"}

    monkeypatch.setattr("quorate.agent.inventory.looker.place_of", place)
    run(main, seed=1)
