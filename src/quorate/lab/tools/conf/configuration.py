"""Several files as one configuration, as drbdadm puts them together, and one host's part in a resource.

A line number in an error counts on from the last line of the file that was read before a ``--config-to-test`` file:
the recordings show the number of the line after the wrong one, with a main file of one line.
"""

from __future__ import annotations

import fnmatch
import functools
import posixpath
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from quorate.lab.tools.conf import parser
from quorate.lab.tools.conf.model import Address, Connection, End, HostSection, Resource, Settings, Volume

#: The other section of that name is in every file of ours, and in most others.
_GLOBAL = "global"
MAIN_FILE = "/etc/drbd.conf"
#: What is given as the main file by whoever wants no other file read than the one under test.
NOTHING = "/dev/null"


class ConfigInvalid(Exception):
    """drbdadm does not take the configuration; the text is its own."""


@dataclass(frozen=True, slots=True)
class Peer:
    """One connection as this host sees it."""

    node_id: int
    name: str
    local: Address
    remote: Address
    net: Settings
    peer_device: Settings
    #: Volumes of the peer that have no disk: no bitmap is kept for them.
    diskless_volumes: frozenset[int]


@dataclass(frozen=True, slots=True)
class Part:
    """What one host is to do for a resource."""

    name: str
    node_id: int
    options: Settings
    volumes: tuple[Volume, ...]
    disk: Settings
    peers: tuple[Peer, ...]


@dataclass(frozen=True, slots=True)
class _Placed:
    path: str
    first_line: int
    resource: Resource

    def where(self, line: int) -> str:
        return f"{self.path}:{line + self.first_line - 1}"


class Configuration:
    """All resources that drbdadm knows after reading its files. Equal files give the same one, which nobody alters."""

    def __init__(self, placed: tuple[_Placed, ...]) -> None:
        self._placed = placed
        self.resources: Mapping[str, Resource] = {entry.resource.name: entry.resource for entry in placed}
        self._parts: dict[tuple[str, str], Part | None] = {}

    @classmethod
    def of(
        cls, files: Mapping[str, bytes], *, main: str = MAIN_FILE, test: str | None = None, exclude: str | None = None
    ) -> Configuration:
        """Read ``main`` with what it includes, and then a file to test. Raises ConfigInvalid, FileNotFoundError."""
        reading = _Reading(files, exclude)
        lines = reading.read(main, 1)
        if test is not None:
            reading.read(test, lines)
        return _put_together(tuple(reading.found))

    def check(self) -> None:
        """What is wrong in several places at once: first what is used twice, then what is missing or clashes."""
        used = _Used()
        for entry in self._placed:
            resource = entry.resource
            if resource.name == _GLOBAL:
                raise ConfigInvalid(
                    f"{entry.where(resource.line)}: conflicting use of resource section '{_GLOBAL}' ..."
                )
            used.once(entry.where(resource.line), "resource section", resource.name)
            for host in resource.hosts:
                used.once(entry.where(host.line), "host section", f"{resource.name}: on {host.name}")
                if host.node_id is not None:
                    used.once(entry.where(host.node_id_line), "node-id", f"{resource.name}:{host.node_id}")
                for volume in host.volumes:
                    if volume.minor is not None:
                        minor = f"device-minor:{host.name}:{volume.minor}"
                        used.once(entry.where(volume.line), "device-minor", minor)
        problems = [problem for entry in self._placed for problem in _incomplete(entry)]
        problems += _shared_addresses(self._placed)
        if problems:
            raise ConfigInvalid("\n".join([*problems, "command sh-nop exited with code 10"]))

    def where(self, name: str) -> str:
        """The file and line in which a resource is defined."""
        return next(entry.where(entry.resource.line) for entry in self._placed if entry.resource.name == name)

    def part(self, name: str, host_name: str) -> Part | None:
        """The host's part in a resource; None when the resource does not mention it."""
        if (name, host_name) not in self._parts:
            resource = self.resources.get(name)
            self._parts[name, host_name] = _part(resource, host_name) if resource is not None else None
        return self._parts[name, host_name]


class _Used:
    """Names that may be given only once, and where they were."""

    def __init__(self) -> None:
        self._where: dict[tuple[str, str], str] = {}

    def once(self, where: str, what: str, name: str) -> None:
        if (what, name) in self._where:
            earlier = self._where[what, name]
            raise ConfigInvalid(
                f"{where}: conflicting use of {what} '{name}' ...\n{earlier}: {what} '{name}' first used here."
            )
        self._where[what, name] = where


def _incomplete(entry: _Placed) -> Iterator[str]:
    resource = entry.resource
    for connection in resource.connections:
        if len(connection.ends) != 2:
            yield f"{entry.where(connection.line)}: Resource {resource.name}: connection needs to have two endpoints"
        for end in connection.ends:
            if resource.host(end.host) is None:
                yield (
                    f'{entry.where(connection.line)}: in resource {resource.name} a hostname ("{end.host}") is given\n'
                    'with a "host" keyword, has no "address" keyword, and no matching\nhost section ("on" keyword)'
                )
    for host in resource.hosts:
        where = f"{entry.where(host.line)}: in resource {resource.name}, on {host.name} {{ ... }}:"
        if host.node_id is None:
            yield f"{where} 'node-id' keyword missing."
        if any(volume.minor is None for volume in _volumes(resource, host)):
            yield f"{where} 'device' keyword missing."
        for other in resource.hosts:
            numbers = {volume.number for volume in _volumes(resource, host)}
            for volume in _volumes(resource, other):
                if volume.number not in numbers:
                    yield f"{where} volume {volume.number} missing (present on {other.name})"


def _shared_addresses(placed: tuple[_Placed, ...]) -> Iterator[str]:
    """An address and port that two resources have on the same host."""
    first: dict[tuple[str, str], _Placed] = {}
    for entry in placed:
        for host in entry.resource.hosts:
            if host.address is None:
                continue
            text = str(host.address).replace(" ", ":", 1)
            earlier = first.setdefault((host.name, text), entry)
            if earlier.resource.name != entry.resource.name:
                yield (
                    f"{entry.path}:0: in resource {entry.resource.name}\n"
                    f"    {text} is also used {earlier.path}:0 (resource {earlier.resource.name})"
                )


class _Read(NamedTuple):
    """A file that was read. A line of it counts from the first one's number."""

    path: str
    first_line: int
    text: str


class _Reading:
    """The files read so far."""

    def __init__(self, files: Mapping[str, bytes], exclude: str | None) -> None:
        self._files = files
        self._exclude = exclude
        self.found: list[_Read] = []

    def read(self, path: str, first_line: int) -> int:
        """Read a file and what it includes; the number of its last line."""
        try:
            text = "" if path == NOTHING else self._files[path].decode(errors="replace")
        except KeyError:
            raise FileNotFoundError(path) from None
        try:
            document = parser.parse(text)
        except parser.Refused as refused:
            lines = [f"{path}:{problem.line + first_line - 1}: {problem.text}" for problem in refused.problems]
            raise ConfigInvalid("\n".join(lines)) from None
        for include in document.includes:
            pattern = posixpath.join(posixpath.dirname(path), include.pattern)
            names = sorted(name for name in self._files if fnmatch.fnmatchcase(name, pattern))
            if not names and not set(pattern) & set("*?["):
                raise ConfigInvalid(f"{path}:{document.lines - 1}: Failed to open include file '{include.pattern}'.")
            for found in names:
                if found != self._exclude and found.count("/") == pattern.count("/"):
                    self.read(found, 1)
        self.found.append(_Read(path, first_line, text))
        return first_line + document.lines - 1


@functools.lru_cache(maxsize=4096)
def _put_together(files: tuple[_Read, ...]) -> Configuration:
    """Every resource, with what ``common`` sections give to all. Raises ConfigInvalid."""
    documents = [parser.parse(file.text) for file in files]
    configuration = Configuration(
        tuple(
            _Placed(file.path, file.first_line, _with_common(resource, [each.common for each in documents]))
            for file, document in zip(files, documents, strict=True)
            for resource in document.resources
        )
    )
    configuration.check()
    return configuration


def _with_common(resource: Resource, shared: Iterable[Resource]) -> Resource:
    for common in shared:
        if not (common.options or common.net or common.disk or common.peer_device):
            continue
        resource = replace(
            resource,
            options=_overlay(common.options, resource.options),
            net=_overlay(common.net, resource.net),
            disk=_overlay(common.disk, resource.disk),
            peer_device=_overlay(common.peer_device, resource.peer_device),
        )
    return resource


def _part(resource: Resource, host_name: str) -> Part | None:
    me = resource.host(host_name)
    if me is None or me.node_id is None:
        return None
    return Part(
        resource.name,
        me.node_id,
        _overlay(resource.options, me.settings),
        _volumes(resource, me),
        resource.disk,
        tuple(peer for connection in _connections(resource) if (peer := _peer(resource, me, connection))),
    )


def _overlay(inherited: Settings, own: Settings) -> Settings:
    """What is set nearer counts; the order is that of the files."""
    nearer = {name for name, _ in own}
    return (*(setting for setting in inherited if setting[0] not in nearer), *own)


def _connection_net(resource: Resource, connection: Connection) -> Settings:
    """Drbdadm puts what a connection inherits before its own options, last first."""
    nearer = {name for name, _ in connection.net}
    inherited = dict(resource.net)  # the last of equal names counts
    return (*((name, inherited[name]) for name in reversed(inherited) if name not in nearer), *connection.net)


def _volumes(resource: Resource, host: HostSection) -> tuple[Volume, ...]:
    own = {volume.number for volume in host.volumes}
    return (*host.volumes, *(volume for volume in resource.volumes if volume.number not in own))


def _connections(resource: Resource) -> tuple[Connection, ...]:
    if resource.connections or len(resource.hosts) != 2:
        return resource.connections
    return (Connection(resource.line, tuple(End(host.name, None) for host in resource.hosts)),)


def _peer(resource: Resource, me: HostSection, connection: Connection) -> Peer | None:
    ends = {end.host: end for end in connection.ends}
    if me.name not in ends:
        return None
    other = next((end for end in connection.ends if end.host != me.name), None)
    if other is None:
        return None
    host = resource.host(other.host)
    local, remote = ends[me.name].address or me.address, other.address or (host.address if host else None)
    if host is None or host.node_id is None or local is None or remote is None:
        return None
    return Peer(
        host.node_id,
        host.name,
        local,
        remote,
        _connection_net(resource, connection),
        _overlay(resource.peer_device, connection.peer_device),
        frozenset(volume.number for volume in _volumes(resource, host) if volume.diskless),
    )
