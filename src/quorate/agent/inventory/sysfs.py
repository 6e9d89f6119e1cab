"""Where a drive sits, from sysfs: its slot in an enclosure and the locate light there, or its PCI slot.

Nothing here must be there: a drive without an enclosure has no slot, and that is all there is to say.
"""

from __future__ import annotations

from quorate.agent.inventory.discovery import Place
from quorate.agent.machine import Machine

_IN_ENCLOSURE = "enclosure_device:"


async def place_of(machine: Machine, sys: str, device_name: str) -> Place:
    """The place of one drive. A file that cannot be read says nothing."""
    device = f"{sys}/block/{device_name}/device"
    for name in await _names(machine, device):
        if name.startswith(_IN_ENCLOSURE):
            component = f"{device}/{name}"
            light = await _text(machine, f"{component}/locate")
            return Place(
                enclosure=await _text(machine, f"{component}/../id"),
                slot=await _text(machine, f"{component}/slot") or name.removeprefix(_IN_ENCLOSURE),
                light=light != "0" if light else None,
            )
    return Place(slot=await _pci_slot(machine, sys, await _text(machine, f"{device}/address")))


async def _pci_slot(machine: Machine, sys: str, address: str) -> str:
    """Slots are known by the address of the device without its function: ``0000:3b:00`` for ``0000:3b:00.0``."""
    if not address:
        return ""
    slots = f"{sys}/bus/pci/slots"
    for name in await _names(machine, slots):
        if await _text(machine, f"{slots}/{name}/address") == address.rpartition(".")[0]:
            return name
    return ""


async def _names(machine: Machine, path: str) -> tuple[str, ...]:
    try:
        return await machine.list_directory(path)
    except OSError:
        return ()


async def _text(machine: Machine, path: str) -> str:
    try:
        return (await machine.read_file(path)).decode(errors="replace").strip()
    except OSError:
        return ""
