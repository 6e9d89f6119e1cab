"""What a drbd.conf says, as it stands in the file. Nothing is inherited or decided here."""

from __future__ import annotations

from dataclasses import dataclass

#: Option names and values in the order of the file.
Settings = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Address:
    """Where a member listens."""

    family: str
    ip: str
    port: int

    def __str__(self) -> str:
        return f"{self.family} {self.ip}:{self.port}"


@dataclass(frozen=True, slots=True)
class Volume:
    """A volume of a member."""

    number: int
    line: int
    minor: int | None = None
    #: The path of the backing device; ``none`` for a member without a disk.
    disk: str | None = None
    meta_disk: str = "internal"
    settings: Settings = ()

    @property
    def diskless(self) -> bool:
        return self.disk == "none"


@dataclass(frozen=True, slots=True)
class HostSection:
    """``on HOST { … }``."""

    name: str
    line: int
    node_id: int | None = None
    node_id_line: int = 0
    address: Address | None = None
    volumes: tuple[Volume, ...] = ()
    settings: Settings = ()

    def volume(self, number: int) -> Volume | None:
        return next((volume for volume in self.volumes if volume.number == number), None)


@dataclass(frozen=True, slots=True)
class End:
    """One side of a connection."""

    host: str
    address: Address | None


@dataclass(frozen=True, slots=True)
class Connection:
    """``connection { … }``."""

    line: int
    ends: tuple[End, ...]
    net: Settings = ()
    peer_device: Settings = ()


@dataclass(frozen=True, slots=True)
class Resource:
    """``resource NAME { … }``."""

    name: str
    line: int
    options: Settings = ()
    net: Settings = ()
    disk: Settings = ()
    peer_device: Settings = ()
    hosts: tuple[HostSection, ...] = ()
    connections: tuple[Connection, ...] = ()
    volumes: tuple[Volume, ...] = ()

    def host(self, name: str) -> HostSection | None:
        return next((host for host in self.hosts if host.name == name), None)


@dataclass(frozen=True, slots=True)
class Include:
    """``include PATTERN;``."""

    pattern: str


@dataclass(frozen=True, slots=True)
class Document:
    """One file: its own resources, what ``common`` gives to all, and the files it asks for."""

    resources: tuple[Resource, ...]
    includes: tuple[Include, ...]
    common: Resource
    lines: int
