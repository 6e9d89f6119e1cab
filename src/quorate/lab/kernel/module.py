"""What a node's DRBD module is to the rest of the model: what it has, what it hears of, and how it dies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.lab.kernel import after, connecting, events, io_engine, recovery
from quorate.lab.kernel.reply import Code, Reply
from quorate.lab.kernel.resource import Connection, Device, PeerDevice, Resource
from quorate.lab.kernel.resync import work_out
from quorate.lab.kernel.states import Conn

if TYPE_CHECKING:
    from quorate.lab.kernel.states import Slip
    from quorate.lab.kernel.twopc import Reach
    from quorate.lab.kernel.world import World

UNKNOWN_RESOURCE = Reply(Code.UNKNOWN_RESOURCE, "unknown resource")
UNKNOWN_MINOR = Reply(Code.MINOR_INVALID, "unknown minor")
_UNKNOWN_PEER = Reply(Code.INVALID_REQUEST, "unknown connection")
_UNKNOWN_VOLUME = Reply(Code.INVALID_REQUEST, "unknown volume")


class Module:
    """The resources of one node."""

    def __init__(self, world: World, name: str, addresses: tuple[str, ...]) -> None:
        self.world = world
        self.name = name
        self.addresses = addresses
        self.powered = True
        self.log_lines: list[tuple[float, str]] = []
        self.feed = events.Feed()
        #: What goes wrong at the next opportunity, and with which resource; "" with any.
        self.planned_slips: list[tuple[str, str]] = []
        #: Ports on which other programs listen. Where DRBD listens already they wait until it does not.
        self.strangers: set[int] = set()
        self._resources: dict[str, Resource] = {}
        self._minors: dict[int, Device] = {}

    def slips(self, slip: Slip, resource: Resource) -> bool:
        """Whether this goes wrong now with a resource. It does so once for each time that it was asked for."""
        found = next((each for each in self.planned_slips if each[0] == slip and each[1] in ("", resource.name)), None)
        if found is not None:
            self.planned_slips.remove(found)
        return found is not None

    def listening(self) -> set[str]:
        """Where connections are taken, as "ipv4:10.0.0.1:7000": the local ends of all links that want to be up."""
        links = (link for resource in self._resources.values() for link in resource.connections.values())
        return {local for link in links if link.now.conn > Conn.DISCONNECTING for local, _ in link.paths}

    def may_listen(self, connection: Connection) -> bool:
        """Whether no other program is in the way. Who listens already goes on: all links of a port share it."""
        others = self.listening() if self.strangers else set()
        return all(
            local in others or int(local.rpartition(":")[2]) not in self.strangers for local, _ in connection.paths
        )

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

    def connections_to(self, peer: Module) -> list[Connection]:
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
            return UNKNOWN_RESOURCE
        return resource.connections.get(peer) or _UNKNOWN_PEER

    def _peer_device(self, name: str, peer: int, volume: int) -> PeerDevice | Reply:
        connection = self._connection(name, peer)
        if isinstance(connection, Reply):
            return connection
        return connection.peer_devices.get(volume) or _UNKNOWN_VOLUME

    def _named(self, name: str | None) -> list[Resource]:
        if name is None:
            return [self._resources[found] for found in sorted(self._resources)]
        return [self._resources[name]] if name in self._resources else []
