"""Looks at the drives of the machine: all of them with one ``lsblk``, and at each with ``smartctl``, one at a time.

A drive that is failing may keep ``smartctl`` in the kernel for ever. That costs the report of that drive and the
seconds until it counts as hung; while it is there, that drive is not asked again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from quorate.agent.backoff import wait_before_retry
from quorate.agent.hands import LookFailed
from quorate.agent.inventory import discovery
from quorate.agent.inventory.discovery import Discovered
from quorate.agent.inventory.lsblk import COLUMNS, BlockDevice, lsblk, read_block_devices, unknown_column
from quorate.agent.inventory.smart import but_for_temperature, judge, smartctl
from quorate.agent.inventory.sysfs import place_of
from quorate.agent.lvm.looker import GROUPS, GROUPS_LOOK
from quorate.agent.machine import CommandHung, CommandNotFound
from quorate.agent.node import DRIVES_LOOK, LVM_LOOK, Node, Wake
from quorate.agent.steps import DRIVES, LVM, Look
from quorate.api.baremetal.drive import SmartReport
from quorate.engine import Key, Signal
from quorate.engine.logs import get_logger
from quorate.errors import QuorateError

log = get_logger(__name__)

#: What can be looked at beside the drives, and the name of that look as a piece of work.
SMART: Final = "smart"
SMART_LOOK: Final = "look/smart"

HANGS: Final = SmartReport(message="Nothing is known: smartctl hangs.")


class Looker:
    """What was last seen of the drives."""

    def __init__(self, node: Node, signal: Signal, key: Key) -> None:
        self._node = node
        self._signal = signal
        self._key = key
        self.drives = node.memory.drives
        #: What each drive said of itself last, by the name of its object. Replaced, never changed.
        self.smart: Mapping[str, SmartReport] = {}
        #: Why the drives cannot be looked at, once that has failed more than once in a row.
        self.trouble = ""
        #: The names of drives that have told all of their identity, by world-wide name. Replaced, never changed.
        self.names: Mapping[str, str] = {}
        #: The columns that this machine's lsblk knows.
        self._columns: tuple[str, ...] = COLUMNS
        self._hung: dict[str, Callable[[], bool]] = {}
        self._told: set[str] = set()
        node.hands.lookers[DRIVES] = self._look_at_drives
        node.hands.lookers[SMART] = self._look_at_smart

    def pause(self) -> float:
        """Seconds before the drives may be looked at again: above zero after looks that failed."""
        return wait_before_retry(self._node.memory.last(DRIVES_LOOK, Look(DRIVES).purpose), self._node.clock.now())

    def ask_for_drives(self) -> None:
        """Have the drives looked at, and the key woken."""
        self._node.hands.start(DRIVES_LOOK, (Look(DRIVES),), Wake(self._signal, self._key))

    def ask_for_smart(self) -> None:
        """Have every drive asked how it is, and the key woken."""
        self._node.hands.start(SMART_LOOK, (Look(SMART),), Wake(self._signal, self._key))

    async def _look_at_drives(self, _: str) -> None:
        marks = self.drives.marks
        try:
            listed = read_block_devices(await self._listing())
        except (QuorateError, OSError) as error:
            lasting = bool(self.drives.error) or isinstance(error, CommandHung)
            self.drives.failed(str(error), marks=marks)
            if lasting:
                self._say_trouble(str(error))
            raise
        found = [await self._discover(device) for device in listed if self._has_identity(device)]
        drives, twice = discovery.unique(found)
        for path in twice:
            self._tell_once(path, "a second path to a drive that is known already: left out")
        before = self.drives.value
        self.drives.saw(drives, marks=marks)
        self.names = {**self.names, **{drive.wwn: drive.name for drive in drives if drive.complete and drive.wwn}}
        self._say_trouble("")
        if before == drives:
            return
        self._signal.wake(self._key)
        known, there = ({(drive.name, drive.spec.path) for drive in some} for some in (before or (), drives))
        if there - known:
            self.ask_for_smart()
        if there != known and before is not None:
            self._have_groups_looked_at()

    async def _listing(self) -> str:
        while True:
            completed = await self._node.hands.run(*lsblk(self._columns))
            if completed.exit_code == 0:
                return completed.stdout
            unknown = unknown_column(completed.output)
            if unknown not in self._columns:
                raise LookFailed(f"lsblk ended with {completed.exit_code}: {completed.output[:400]}")
            self._columns = tuple(column for column in self._columns if column != unknown)

    async def _discover(self, device: BlockDevice) -> Discovered:
        try:
            place = await place_of(self._node.machine, self._node.settings.sys, device.name)
        except Exception:
            # Where one drive sits must not cost us the sight of all the others.
            log.exception("exception in our own code", path=device.path)
            place = discovery.Place()
        return discovery.discover(self._node.name, device, place)

    def _say_trouble(self, trouble: str) -> None:
        if trouble != self.trouble:
            self.trouble = trouble
            self._signal.wake(self._key)

    def _has_identity(self, device: BlockDevice) -> bool:
        if not discovery.is_drive(device):
            return False
        if discovery.serial_number(device):
            return True
        self._tell_once(device.path, "a drive without serial number and world-wide name cannot be told from others")
        return False

    async def _look_at_smart(self, _: str) -> None:
        before, reports = self.smart, {}
        for drive in self.drives.value or ():
            still_there = self._hung.get(drive.name)
            if still_there is not None and still_there():
                reports[drive.name] = before.get(drive.name, HANGS)
                continue
            self._hung.pop(drive.name, None)
            reports[drive.name] = await self._report(drive)
        self.smart = reports
        if any(but_for_temperature(before.get(name)) != but_for_temperature(now) for name, now in reports.items()):
            self._signal.wake(self._key)

    async def _report(self, drive: Discovered) -> SmartReport:
        try:
            completed = await self._node.hands.run(*smartctl(drive.spec.path))
        except CommandHung as error:
            self._hung[drive.name] = error.still_there
            return HANGS
        except CommandNotFound:
            return SmartReport(message="Nothing is known: smartctl is not installed on the node.")
        except (QuorateError, OSError) as error:
            return SmartReport(message=f"Nothing is known: {error}"[:1000])
        return judge(completed.stdout)

    def _have_groups_looked_at(self) -> None:
        """A drive that came or went may have brought or taken a volume group."""
        if LVM in self._node.hands.lookers:
            self._node.hands.start(LVM_LOOK, (Look(LVM),), nobody)
            self._node.hands.start(GROUPS_LOOK, (Look(LVM, GROUPS),), nobody)

    def _tell_once(self, path: str, what: str) -> None:
        if path not in self._told:
            self._told.add(path)
            log.info(what, path=path)


def nobody() -> None:
    """Whom to tell of the end of a look that nobody waits for: what it changes wakes those it concerns."""
