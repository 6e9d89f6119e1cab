"""When a change that somebody asked for is refused.

What the world imposes (a lost peer, a failed disk) is not asked for and not refused; a primary that would lose its
quorum by what is asked refuses it, and that goes for the kernel's own requests too: see `links.clean_up`.
"""

from __future__ import annotations

from quorate.lab.kernel.quorum import count
from quorate.lab.kernel.reply import DONE, Code, Reply
from quorate.lab.kernel.resource import Device, Resource
from quorate.lab.kernel.sanitize import data_accessible
from quorate.lab.kernel.states import TARGETS, Disk, Repl, Role


def held_open(resource: Resource) -> Reply:
    """The refusal that names every process with the device open."""
    lines = [
        f"drbd{device.minor} opened by {opener.process} (pid {opener.pid}) at {resource.world.clock_text(opener.at)}"
        for device in resource.devices.values()
        for opener in device.openers
        if opener.writable
    ]
    return Reply(Code.DEVICE_IN_USE, "\n".join(lines))


def _may_be_outdated(device: Device) -> bool:
    """Whether outdating the local copy takes nothing from a primary."""
    if device.resource.new.role is Role.PRIMARY:
        return any(
            peer.new.disk is Disk.UP_TO_DATE and peer.new.repl is Repl.WF_BITMAP_T for peer in device.peer_devices
        )
    if not any(
        peer.connection.new.peer_role is Role.PRIMARY and peer.new.repl > Repl.OFF for peer in device.peer_devices
    ):
        return True
    return any(peer.new.repl in TARGETS for peer in device.peer_devices)


def _check_roles(resource: Resource) -> Reply:
    old, new = resource.now, resource.new
    promoted = old.role is not Role.PRIMARY and new.role is Role.PRIMARY
    if promoted and new.fail_io:
        return held_open(resource)
    for connection in resource.connections.values():
        if connection.options.yes("allow-two-primaries"):
            continue
        peer_is_primary = connection.new.peer_role is Role.PRIMARY
        if promoted and peer_is_primary:
            return Reply(Code.TWO_PRIMARIES)
        if peer_is_primary and connection.now.peer_role is not Role.PRIMARY and old.role is Role.PRIMARY:
            return Reply(Code.TWO_PRIMARIES)
    return DONE


def _check_device(device: Device, *, ignore_openers: bool) -> Reply:
    resource, old, new = device.resource, device.now, device.new
    was_primary, is_primary = resource.now.role is Role.PRIMARY, resource.new.role is Role.PRIMARY
    if was_primary and not is_primary and not ignore_openers and any(o.writable for o in device.openers):
        return held_open(resource)
    finished = any(p.now.repl is Repl.SYNC_TARGET and p.new.repl is Repl.ESTABLISHED for p in device.peer_devices)
    if new.disk is Disk.OUTDATED and old.disk < Disk.OUTDATED and old.disk is not Disk.ATTACHING and not finished:
        return Reply(Code.LOWER_THAN_OUTDATED)
    had_data = was_primary and not data_accessible(device, new=False)
    if is_primary and not had_data and not data_accessible(device, new=True):
        return Reply(Code.NO_UP_TO_DATE_DATA)
    if is_primary and not new.quorum and (not was_primary or old.quorum):
        return Reply(
            Code.NO_QUORUM,
            count(device).complaint() if new.disk > Disk.ATTACHING else "no UpToDate peer with quorum",
        )
    if old.disk > Disk.OUTDATED and new.disk is Disk.OUTDATED and not _may_be_outdated(device):
        return Reply(Code.CONNECTED_OUTDATES)
    return DONE


def check(resource: Resource, *, ignore_openers: bool = False) -> Reply:
    """Whether the state being prepared may be asked for."""
    reply = _check_roles(resource)
    for device in resource.devices.values():
        if not reply.ok:
            break
        reply = _check_device(device, ignore_openers=ignore_openers)
    return reply
