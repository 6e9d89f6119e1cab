"""Members that may trust their data again.

A member is outdated while a primary exists that it is not connected to, and what it copies meanwhile leaves it
Inconsistent. When that primary steps down, goes away or is met, a connected peer that is up to date shows what is
missing, if anything.
"""

from __future__ import annotations

from quorate.lab.kernel import resync, twopc, uuids
from quorate.lab.kernel.change import Change
from quorate.lab.kernel.resource import Device
from quorate.lab.kernel.states import Disk, Repl
from quorate.lab.kernel.uuids import Verdict


def refresh(reach: twopc.Reach) -> None:
    """Look at every participant again that is behind, and does not copy."""
    primaries = reach.primaries()
    for resource in reach.participants:
        resource.weak = twopc.far_primary(resource, primaries, twopc.directly_connected(resource))
        for device in resource.devices.values():
            if not resource.weak and (device.now.disk is Disk.OUTDATED or _is_left_halfway(device)):
                _refresh(device)


def _is_left_halfway(device: Device) -> bool:
    copying = any(mine.now.repl > Repl.ESTABLISHED for mine in device.peer_devices)
    return device.now.disk is Disk.INCONSISTENT and not copying


def _refresh(device: Device) -> None:
    for mine in device.peer_devices:
        theirs = mine.peer
        if theirs is None or mine.now.repl is not Repl.ESTABLISHED or mine.now.disk is not Disk.UP_TO_DATE:
            continue
        first, second = device.metadata, theirs.device.metadata
        if first is None or second is None:
            continue
        verdict = uuids.compare(first, device.resource.node_id, second, theirs.device.resource.node_id)
        if verdict is Verdict.NONE and device.now.disk is Disk.OUTDATED:
            change = Change(device.resource, "stable", hard=True)
            device.new.disk = Disk.UP_TO_DATE
            change.commit()
            return
        if verdict.takes or verdict is Verdict.SPLIT_BRAIN:
            resync.start(mine, theirs, verdict if verdict.takes else Verdict.TARGET)
            return
