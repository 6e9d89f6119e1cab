"""The calls that drbdsetup makes, one method each; here those about connections and roles, I/O, and what is printed."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from quorate.lab.kernel import connecting, events, io_engine, roles, show, status
from quorate.lab.kernel.change import Change
from quorate.lab.kernel.configuration_calls import ConfigurationCalls
from quorate.lab.kernel.disk_calls import DiskCalls
from quorate.lab.kernel.events import Event
from quorate.lab.kernel.io import Io, IoState
from quorate.lab.kernel.module import UNKNOWN_RESOURCE
from quorate.lab.kernel.reply import Reply
from quorate.lab.kernel.resource import Opener
from quorate.lab.kernel.states import Role
from quorate.lab.kernel.status import Look


class Kernel(ConfigurationCalls, DiskCalls):
    """The DRBD module of one node. Options are given as drbdsetup spells them: {"ping-int": "3", "quorum": "majority"}.

    A call that names something that does not exist answers with the kernel's number for it (158, 127, 162).
    """

    # -- connections and roles ---------------------------------------------------------------------------------------

    def connect(self, name: str, peer: int, *, discard_my_data: bool = False) -> Reply:
        """``drbdsetup connect``."""
        connection = self._connection(name, peer)
        if isinstance(connection, Reply):
            return connection
        return self._settled(connecting.configure(connection, discard_my_data=discard_my_data))

    def disconnect(self, name: str, peer: int, *, force: bool = False) -> Reply:
        """``drbdsetup disconnect``."""
        connection = self._connection(name, peer)
        if isinstance(connection, Reply):
            return connection
        return self._settled(connecting.disconnect(connection, force=force))

    def primary(self, name: str, *, force: bool = False) -> Reply:
        """``drbdsetup primary``."""
        resource = self._resources.get(name)
        return UNKNOWN_RESOURCE if resource is None else self._settled(roles.promote(resource, force=force))

    def secondary(self, name: str, *, force: bool = False) -> Reply:
        """``drbdsetup secondary``."""
        resource = self._resources.get(name)
        return UNKNOWN_RESOURCE if resource is None else self._settled(roles.demote(resource, force=force))

    # -- what users of the device do ---------------------------------------------------------------------------------

    def open(self, minor: int, process: str, pid: int, *, writable: bool = True) -> bool:
        """Open the device; False ("Wrong medium type") if there is none or it is not Primary."""
        device = self._minors.get(minor)
        if device is None or device.resource.now.fail_io:
            return False
        resource = device.resource
        if resource.now.role is not Role.PRIMARY and resource.options.yes("auto-promote"):
            self._settled(roles.promote(resource, force=False))
        if resource.now.role is not Role.PRIMARY:
            return False
        device.openers.append(Opener(process, pid, self.world.now, writable))
        return True

    def close(self, minor: int, pid: int) -> None:
        """Close the device; the last one to close a device that was failing its I/O ends that."""
        device = self._minors.get(minor)
        opener = next((o for o in device.openers if o.pid == pid), None) if device else None
        if device is None or opener is None:
            return
        device.openers.remove(opener)
        resource = device.resource
        if any(other.openers for other in resource.devices.values()):
            return
        if resource.now.fail_io:
            change = Change(resource, "release", hard=True)
            resource.new.fail_io = False
            change.commit()
        elif resource.now.role is Role.PRIMARY and resource.options.yes("auto-promote"):
            roles.demote(resource, force=False)
        self.world.settle()

    def write(self, minor: int, offset: int, length: int, tag: Hashable, *, synchronous: bool = False) -> Io:
        """Write one tag over a range; ``synchronous`` as with O_DSYNC."""
        return self._submit(Io(minor, offset, length, tag, write=True, synchronous=synchronous))

    def read(self, minor: int, offset: int) -> Io:
        """Read the tag at an offset; ``Io.result`` when done."""
        return self._submit(Io(minor, offset, 0, None, write=False))

    def _submit(self, io: Io) -> Io:
        device = self._minors.get(io.minor)
        if device is None or io.offset + io.length > device.size:
            io.settle(IoState.FAILED)
        else:
            io_engine.submit(device, io)
            self.world.settle()
        return io

    def device_size(self, minor: int) -> int | None:
        """The size of /dev/drbdN in bytes; None if there is no such minor."""
        device = self._minors.get(minor)
        return None if device is None else device.size

    # -- what drbdsetup prints ---------------------------------------------------------------------------------------

    def resources(self) -> list[str]:
        """The configured resources, by name."""
        return sorted(self._resources)

    def status(self, name: str | None = None) -> list[dict[str, Any]]:
        """As ``drbdsetup status --json`` (with --verbose --statistics) gives it; empty for an unknown name."""
        return [look.fields for look in self.looks(name)]

    def looks(self, name: str | None = None) -> list[Look]:
        """The same, for who prints it: what was printed of a resource can be kept beside it."""
        return [status.look(resource) for resource in self._named(name)]

    def show(self, name: str | None = None, *, defaults: bool = False) -> list[dict[str, Any]]:
        """As ``drbdsetup show --json`` (with --show-defaults) gives it."""
        return [show.show_resource(resource, defaults=defaults) for resource in self._named(name)]

    def subscribe(self, callback: Callable[[Event], None]) -> Callable[[], None]:
        """Call back with what every line of ``drbdsetup events2`` tells from now on; returns how to stop."""
        feed = self.feed
        if not feed.listeners:
            events.remember(self, self._named(None))
        feed.listeners.append(callback)

        def stop() -> None:
            if callback in feed.listeners:
                feed.listeners.remove(callback)

        return stop

    def dump(self, name: str | None = None) -> list[Event]:
        """What events2 starts with: what exists, then "exists -"."""
        return events.dump(self._named(name))
