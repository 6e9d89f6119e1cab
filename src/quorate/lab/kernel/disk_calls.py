"""The calls about disks: attaching them, growing them, and what is done to a replica as a whole."""

from __future__ import annotations

from collections.abc import Mapping

from quorate.lab.kernel import configure, disks, resize, verify
from quorate.lab.kernel.block import BlockDevice
from quorate.lab.kernel.change import Change
from quorate.lab.kernel.module import UNKNOWN_MINOR, Module
from quorate.lab.kernel.reply import DONE, Code, Reply


class DiskCalls(Module):
    """What drbdsetup asks for of a device."""

    def attach(self, minor: int, device: BlockDevice, path: str, options: Mapping[str, str] = {}) -> Reply:
        """``drbdsetup attach``; 119 without metadata, 165 if its activity log has to be applied first."""
        found = self._minors.get(minor)
        if found is None:
            return UNKNOWN_MINOR
        reply = disks.attach(found, device, path)
        if reply.ok:
            found.options = configure.disk_options(options)
        return self._settled(reply)

    def disk_options(self, minor: int, options: Mapping[str, str], *, set_defaults: bool = False) -> Reply:
        """``drbdsetup disk-options``."""
        device = self._minors.get(minor)
        if device is None:
            return UNKNOWN_MINOR
        if device.options is None:
            return Reply(Code.NO_DISK)
        before, device.options = device.options, device.options.changed(options, set_defaults=set_defaults)
        if device.backing is not None and before["al-extents"] != device.options["al-extents"]:
            device.backing.active.clear()
        return DONE

    def detach(self, minor: int, *, force: bool = False, diskless: bool = False) -> Reply:
        """``drbdsetup detach``; ``diskless`` makes it a client from now on."""
        device = self._minors.get(minor)
        if device is None:
            return UNKNOWN_MINOR
        return self._settled(disks.detach(device, force=force, diskless=diskless))

    def outdate(self, minor: int) -> Reply:
        """``drbdsetup outdate``."""
        device = self._minors.get(minor)
        return UNKNOWN_MINOR if device is None else self._settled(disks.outdate(device))

    def invalidate(self, minor: int, sync_from: int | None = None) -> Reply:
        """``drbdsetup invalidate``: fetch everything from a peer again."""
        device = self._minors.get(minor)
        return UNKNOWN_MINOR if device is None else self._settled(disks.invalidate(device, sync_from))

    def invalidate_remote(self, name: str, peer: int, volume: int, *, reset_bitmap: bool = True) -> Reply:
        """``drbdsetup invalidate-remote``; without resetting the bitmap only what is marked already is copied."""
        found = self._peer_device(name, peer, volume)
        if isinstance(found, Reply):
            return found
        return self._settled(disks.invalidate_remote(found, reset_bitmap=reset_bitmap))

    def new_current_uuid(self, minor: int, *, clear_bitmap: bool = False, force_resync: bool = False) -> Reply:
        """``drbdsetup new-current-uuid``: how a fresh volume is brought to life."""
        device = self._minors.get(minor)
        if device is None:
            return UNKNOWN_MINOR
        return self._settled(disks.new_current_uuid(device, clear_bitmap=clear_bitmap, force_resync=force_resync))

    def resize(self, minor: int, size: int | None = None, *, assume_clean: bool = False) -> Reply:
        """``drbdsetup resize``: size in bytes, None for as much as all members have. Success does not mean it grew."""
        device = self._minors.get(minor)
        if device is None:
            return UNKNOWN_MINOR
        return self._settled(resize.resize(device, size, assume_clean=assume_clean))

    def verify(self, name: str, peer: int, volume: int, start: int | None = None, stop: int | None = None) -> Reply:
        """``drbdsetup verify`` toward one peer; start and stop in bytes."""
        found = self._peer_device(name, peer, volume)
        return found if isinstance(found, Reply) else self._settled(verify.verify(found, start, stop))

    def suspend_io(self, minor: int) -> Reply:
        """``drbdsetup suspend-io``."""
        return self._set_user_suspension(minor, suspended=True)

    def resume_io(self, minor: int) -> Reply:
        """``drbdsetup resume-io``."""
        return self._set_user_suspension(minor, suspended=False)

    def _set_user_suspension(self, minor: int, *, suspended: bool) -> Reply:
        device = self._minors.get(minor)
        if device is None:
            return UNKNOWN_MINOR
        change = Change(device.resource, "suspend-io" if suspended else "resume-io")
        device.resource.new.suspended_user = suspended
        if not suspended:
            device.resource.new.suspended_no_data = False
        return self._settled(change.commit())

    def pause_sync(self, name: str, peer: int, volume: int) -> Reply:
        """``drbdsetup pause-sync``."""
        return self._pause(name, peer, volume, paused=True)

    def resume_sync(self, name: str, peer: int, volume: int) -> Reply:
        """``drbdsetup resume-sync``."""
        return self._pause(name, peer, volume, paused=False)

    def _pause(self, name: str, peer: int, volume: int, *, paused: bool) -> Reply:
        found = self._peer_device(name, peer, volume)
        if isinstance(found, Reply):
            return found
        if found.now.paused_by_user == paused:
            return Reply(Code.PAUSE_IS_SET if paused else Code.PAUSE_IS_CLEAR)
        change = Change(found.device.resource, "pause-sync" if paused else "resume-sync")
        found.new.paused_by_user = paused
        return self._settled(change.commit())
