"""The calls that make, alter and remove resources, minors, peers and paths."""

from __future__ import annotations

from collections.abc import Mapping

from quorate.lab.kernel import configure, connecting, disks, events, roles
from quorate.lab.kernel.module import UNKNOWN_MINOR, UNKNOWN_RESOURCE, Module
from quorate.lab.kernel.reply import DONE, Code, Reply


class ConfigurationCalls(Module):
    """What drbdsetup asks for before anything runs, and after."""

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
            return UNKNOWN_RESOURCE
        return self._settled(configure.resource_options(resource, options, set_defaults=set_defaults))

    def new_minor(self, name: str, minor: int, volume: int, *, diskless: bool = False) -> Reply:
        """``drbdsetup new-minor``; ``diskless`` is meant to stay without a disk (a client)."""
        resource = self._resources.get(name)
        if resource is None:
            return UNKNOWN_RESOURCE
        if minor in self._minors or volume in resource.devices:
            return Reply(Code.MINOR_OR_VOLUME_EXISTS)
        self._minors[minor] = configure.new_minor(resource, minor, volume, diskless=diskless)
        return self._settled(DONE)

    def new_peer(self, name: str, peer: int, options: Mapping[str, str]) -> Reply:
        """``drbdsetup new-peer``: peer is a node id; options are net options, ``_name`` among them."""
        resource = self._resources.get(name)
        return UNKNOWN_RESOURCE if resource is None else self._settled(configure.new_peer(resource, peer, options))

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
        return UNKNOWN_RESOURCE if resource is None else self._settled(configure.forget_peer(resource, peer))

    def del_minor(self, minor: int) -> Reply:
        """``drbdsetup del-minor``."""
        device = self._minors.get(minor)
        if device is None:
            return UNKNOWN_MINOR
        reply = configure.del_minor(device)
        if reply.ok:
            del self._minors[minor]
        return self._settled(reply)

    def del_resource(self, name: str) -> Reply:
        """``drbdsetup del-resource``."""
        resource = self._resources.get(name)
        if resource is None:
            return UNKNOWN_RESOURCE
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
            return UNKNOWN_RESOURCE
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
