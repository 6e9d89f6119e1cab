"""The calls that drbdsetup makes, one method each."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import TYPE_CHECKING, Any

from quorate.lab.kernel import (
    after,
    configure,
    connecting,
    disks,
    events,
    io_engine,
    recovery,
    resize,
    roles,
    show,
    status,
    verify,
)
from quorate.lab.kernel.block import BlockDevice
from quorate.lab.kernel.change import Change
from quorate.lab.kernel.io import Io, IoState
from quorate.lab.kernel.reply import DONE, Code, Reply
from quorate.lab.kernel.resource import Connection, Device, Opener, PeerDevice, Resource
from quorate.lab.kernel.resync import work_out
from quorate.lab.kernel.states import Role
from quorate.lab.kernel.status import Look

if TYPE_CHECKING:
    from quorate.lab.kernel.twopc import Reach
    from quorate.lab.kernel.world import World

_UNKNOWN_RESOURCE = Reply(Code.UNKNOWN_RESOURCE, "unknown resource")
_UNKNOWN_MINOR = Reply(Code.MINOR_INVALID, "unknown minor")
_UNKNOWN_PEER = Reply(Code.INVALID_REQUEST, "unknown connection")
_UNKNOWN_VOLUME = Reply(Code.INVALID_REQUEST, "unknown volume")


class Kernel:
    """The DRBD module of one node. Options are given as drbdsetup spells them: {"ping-int": "3", "quorum": "majority"}.

    A call that names something that does not exist answers with the kernel's number for it (158, 127, 162).
    """

    def __init__(self, world: World, name: str, addresses: tuple[str, ...]) -> None:
        self.world = world
        self.name = name
        self.addresses = addresses
        self.powered = True
        self.log_lines: list[tuple[float, str]] = []
        self.feed = events.Feed()
        self._resources: dict[str, Resource] = {}
        self._minors: dict[int, Device] = {}

    # -- for the other modules of the model --------------------------------------------------------------------------

    def log(self, line: str) -> None:
        """Add a line to the kernel log."""
        self.log_lines.append((self.world.now, line))

    def find(self, name: str) -> Resource | None:
        """A resource by name."""
        return self._resources.get(name)

    def follow_up(self, resource: Resource, tag: str) -> None:
        """A change was committed."""
        after.committed(resource, tag)

    def resume_connecting(self, resource: Resource) -> None:
        """Connections that wait may go on."""
        connecting.resume(resource)

    def members_counted(self, resource: Resource, reach: Reach) -> None:
        """The members agreed on who is left after a loss."""
        recovery.refresh(reach)
        connecting.resume(resource)

    def pump(self, resource: Resource) -> None:
        """Requests that wait may go on."""
        io_engine.pump(resource)

    def connections_to(self, peer: Kernel) -> list[Connection]:
        """All connections whose path leads to a node."""
        return [
            connection
            for resource in self._resources.values()
            for connection in resource.connections.values()
            if any(self.world.by_address(remote.split(":")[-2]) is peer for _, remote in connection.paths)
        ]

    def lose_power(self) -> list[Connection]:
        """Forget everything at once; the other ends of the connections that were in use."""
        orphaned = []
        for resource in self._resources.values():
            resource.gone = True
            for connection in resource.connections.values():
                for peer in connection.peer_devices.values():
                    if peer.copying is not None:
                        work_out(peer.copying)
                if connection.other is not None and connection.other.other is connection:
                    orphaned.append(connection.other)
            for device in resource.devices.values():
                if device.backing is not None:
                    device.backing.device.holder = None
        self._resources, self._minors = {}, {}
        self.log_lines = []
        self.feed = events.Feed()
        self.powered = False
        return orphaned

    def _settled(self, reply: Reply) -> Reply:
        """Let everything that follows at once happen before the caller sees the answer."""
        self.world.settle()
        return reply

    def _connection(self, name: str, peer: int) -> Connection | Reply:
        resource = self._resources.get(name)
        if resource is None:
            return _UNKNOWN_RESOURCE
        return resource.connections.get(peer) or _UNKNOWN_PEER

    def _peer_device(self, name: str, peer: int, volume: int) -> PeerDevice | Reply:
        connection = self._connection(name, peer)
        if isinstance(connection, Reply):
            return connection
        return connection.peer_devices.get(volume) or _UNKNOWN_VOLUME

    # -- resources, minors, peers ------------------------------------------------------------------------------------

    def new_resource(self, name: str, node_id: int, options: Mapping[str, str] = {}) -> Reply:
        """``drbdsetup new-resource``."""
        if name in self._resources:
            return Reply(Code.ALREADY_EXISTS)
        resource = self._resources[name] = configure.new_resource(self, name, node_id, options)
        events.created(self, resource)
        return DONE

    def resource_options(self, name: str, options: Mapping[str, str], *, set_defaults: bool = False) -> Reply:
        """``drbdsetup resource-options``."""
        resource = self._resources.get(name)
        if resource is None:
            return _UNKNOWN_RESOURCE
        return self._settled(configure.resource_options(resource, options, set_defaults=set_defaults))

    def new_minor(self, name: str, minor: int, volume: int, *, diskless: bool = False) -> Reply:
        """``drbdsetup new-minor``; ``diskless`` is meant to stay without a disk (a client)."""
        resource = self._resources.get(name)
        if resource is None:
            return _UNKNOWN_RESOURCE
        if minor in self._minors or volume in resource.devices:
            return Reply(Code.MINOR_OR_VOLUME_EXISTS)
        self._minors[minor] = configure.new_minor(resource, minor, volume, diskless=diskless)
        return self._settled(DONE)

    def new_peer(self, name: str, peer: int, options: Mapping[str, str]) -> Reply:
        """``drbdsetup new-peer``: peer is a node id; options are net options, ``_name`` among them."""
        resource = self._resources.get(name)
        return _UNKNOWN_RESOURCE if resource is None else self._settled(configure.new_peer(resource, peer, options))

    def net_options(self, name: str, peer: int, options: Mapping[str, str], *, set_defaults: bool = False) -> Reply:
        """``drbdsetup net-options``."""
        connection = self._connection(name, peer)
        if isinstance(connection, Reply):
            return connection
        return self._settled(configure.net_options(connection, options, set_defaults=set_defaults))

    def peer_device_options(
        self, name: str, peer: int, volume: int, options: Mapping[str, str], *, set_defaults: bool = False
    ) -> Reply:
        """``drbdsetup peer-device-options``; ``bitmap`` can only be set before the device is attached."""
        found = self._peer_device(name, peer, volume)
        if isinstance(found, Reply):
            return found
        found.options = found.options.changed(options, set_defaults=set_defaults)
        events.changed(found.device.resource)
        return DONE

    def new_path(self, name: str, peer: int, local: str, remote: str) -> Reply:
        """``drbdsetup new-path``; addresses as "ipv4:10.0.0.1:7000"."""
        connection = self._connection(name, peer)
        if isinstance(connection, Reply):
            return connection
        if (local, remote) in connection.paths:
            return Reply(Code.ALREADY_EXISTS)
        connection.paths.append((local, remote))
        events.path_created(connection, (local, remote))
        connecting.resume(connection.resource)
        return self._settled(DONE)

    def del_path(self, name: str, peer: int, local: str, remote: str) -> Reply:
        """``drbdsetup del-path``."""
        connection = self._connection(name, peer)
        if isinstance(connection, Reply):
            return connection
        if (local, remote) not in connection.paths:
            return Reply(Code.INVALID_REQUEST, "no such path")
        connection.paths.remove((local, remote))
        events.path_created(connection, (local, remote), gone=True)
        return DONE

    def del_peer(self, name: str, peer: int) -> Reply:
        """``drbdsetup del-peer``: disconnects first."""
        connection = self._connection(name, peer)
        return connection if isinstance(connection, Reply) else self._settled(configure.del_peer(connection))

    def forget_peer(self, name: str, peer: int) -> Reply:
        """``drbdsetup forget-peer``: its slot in the metadata, and with it its vote."""
        resource = self._resources.get(name)
        return _UNKNOWN_RESOURCE if resource is None else self._settled(configure.forget_peer(resource, peer))

    def del_minor(self, minor: int) -> Reply:
        """``drbdsetup del-minor``."""
        device = self._minors.get(minor)
        if device is None:
            return _UNKNOWN_MINOR
        reply = configure.del_minor(device)
        if reply.ok:
            del self._minors[minor]
        return self._settled(reply)

    def del_resource(self, name: str) -> Reply:
        """``drbdsetup del-resource``."""
        resource = self._resources.get(name)
        if resource is None:
            return _UNKNOWN_RESOURCE
        if resource.devices or resource.connections:
            return Reply(Code.RESOURCE_IN_USE)
        resource.gone = True
        del self._resources[name]
        events.destroyed(self, resource)
        return DONE

    def down(self, name: str) -> Reply:
        """``drbdsetup down``: demote, disconnect, detach, delete; refused if somebody has a device open."""
        resource = self._resources.get(name)
        if resource is None:
            return _UNKNOWN_RESOURCE
        reply = roles.demote(resource, force=False)
        for connection in list(resource.connections.values()):
            if reply.ok:
                self.world.settle()
                reply = configure.del_peer(connection)
        for device in list(resource.devices.values()):
            if reply.ok:
                self.world.settle()
                reply = disks.detach(device, force=False, diskless=False)
        self.world.settle()
        for device in list(resource.devices.values()):
            if reply.ok:
                reply = self.del_minor(device.minor)
        return self._settled(self.del_resource(name) if reply.ok else reply)

    # -- disks -------------------------------------------------------------------------------------------------------

    def attach(self, minor: int, device: BlockDevice, path: str, options: Mapping[str, str] = {}) -> Reply:
        """``drbdsetup attach``; 119 without metadata, 165 if its activity log has to be applied first."""
        found = self._minors.get(minor)
        if found is None:
            return _UNKNOWN_MINOR
        reply = disks.attach(found, device, path)
        if reply.ok:
            found.options = configure.disk_options(options)
        return self._settled(reply)

    def disk_options(self, minor: int, options: Mapping[str, str], *, set_defaults: bool = False) -> Reply:
        """``drbdsetup disk-options``."""
        device = self._minors.get(minor)
        if device is None:
            return _UNKNOWN_MINOR
        if device.options is None:
            return Reply(Code.NO_DISK)
        device.options = device.options.changed(options, set_defaults=set_defaults)
        return DONE

    def detach(self, minor: int, *, force: bool = False, diskless: bool = False) -> Reply:
        """``drbdsetup detach``; ``diskless`` makes it a client from now on."""
        device = self._minors.get(minor)
        if device is None:
            return _UNKNOWN_MINOR
        return self._settled(disks.detach(device, force=force, diskless=diskless))

    def outdate(self, minor: int) -> Reply:
        """``drbdsetup outdate``."""
        device = self._minors.get(minor)
        return _UNKNOWN_MINOR if device is None else self._settled(disks.outdate(device))

    def invalidate(self, minor: int, sync_from: int | None = None) -> Reply:
        """``drbdsetup invalidate``: fetch everything from a peer again."""
        device = self._minors.get(minor)
        return _UNKNOWN_MINOR if device is None else self._settled(disks.invalidate(device, sync_from))

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
            return _UNKNOWN_MINOR
        return self._settled(disks.new_current_uuid(device, clear_bitmap=clear_bitmap, force_resync=force_resync))

    def resize(self, minor: int, size: int | None = None, *, assume_clean: bool = False) -> Reply:
        """``drbdsetup resize``: size in bytes, None for as much as all members have. Success does not mean it grew."""
        device = self._minors.get(minor)
        if device is None:
            return _UNKNOWN_MINOR
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
            return _UNKNOWN_MINOR
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
        return _UNKNOWN_RESOURCE if resource is None else self._settled(roles.promote(resource, force=force))

    def secondary(self, name: str, *, force: bool = False) -> Reply:
        """``drbdsetup secondary``."""
        resource = self._resources.get(name)
        return _UNKNOWN_RESOURCE if resource is None else self._settled(roles.demote(resource, force=force))

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

    def write(self, minor: int, offset: int, length: int, tag: Hashable) -> Io:
        """Write one tag over a range."""
        return self._submit(Io(minor, offset, length, tag, write=True))

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

    def _named(self, name: str | None) -> list[Resource]:
        return [self._resources[found] for found in sorted(self._resources) if name in (None, found)]

    def status(self, name: str | None = None) -> list[dict[str, Any]]:
        """As ``drbdsetup status --json`` (with --verbose --statistics) gives it; empty for an unknown name."""
        return [look.fields for look in self.looks(name)]

    def looks(self, name: str | None = None) -> list[Look]:
        """The same, for who prints it: what was printed of a resource can be kept beside it."""
        return [status.look(resource) for resource in self._named(name)]

    def show(self, name: str | None = None, *, defaults: bool = False) -> list[dict[str, Any]]:
        """As ``drbdsetup show --json`` (with --show-defaults) gives it."""
        return [show.show_resource(resource, defaults=defaults) for resource in self._named(name)]

    def subscribe(self, callback: Callable[[str], None]) -> Callable[[], None]:
        """Call back with every ``drbdsetup events2`` line (no timestamp) from now on; returns how to stop."""
        feed = self.feed
        if not feed.listeners:
            events.remember(self, self._named(None))
        feed.listeners.append(callback)

        def stop() -> None:
            if callback in feed.listeners:
                feed.listeners.remove(callback)

        return stop

    def dump(self, name: str | None = None) -> list[str]:
        """The lines that events2 starts with: what exists, then "exists -"."""
        return events.dump(self._named(name))
