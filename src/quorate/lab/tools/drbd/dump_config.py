"""The text of ``drbdadm dump``: a resource as it was understood."""

from __future__ import annotations

from collections.abc import Iterator

from quorate.lab.tools.conf.model import Connection, HostSection, Resource, Settings, Volume


def text(resource: Resource, *, host: str, defined_at: str) -> str:
    """One resource."""
    return "".join(f"{line}\n" for line in _lines(resource, host, defined_at)) + "\n"


def _lines(resource: Resource, host: str, defined_at: str) -> Iterator[str]:
    yield f"# resource {resource.name} on {host}: not ignored, not stacked"
    yield f"# defined at {defined_at}"
    yield f"resource {resource.name} {{"
    for section in resource.hosts:
        yield from _indented(_host(section))
    for connection in resource.connections:
        yield from _indented(_connection(connection, host))
    for name, settings in (
        ("options", resource.options),
        ("net", resource.net),
        ("disk", (*resource.disk, *resource.peer_device)),
    ):
        yield from _indented(_settings(name, settings))
    yield "}"


def _host(section: HostSection) -> Iterator[str]:
    yield f"on {section.name} {{"
    if section.node_id is not None:
        yield f"    node-id {section.node_id};"
    for volume in section.volumes:
        yield from _indented(_volume(volume))
    if section.address is not None:
        yield f"    {'address':<16} {section.address};"
    yield "}"


def _volume(volume: Volume) -> Iterator[str]:
    yield f"volume {volume.number} {{"
    if volume.minor is not None:
        yield f"    {'device':<12} minor {volume.minor};"
    if volume.disk is not None:
        yield f"    {'disk':<12} {volume.disk};"
    if not volume.diskless:
        yield f"    {'meta-disk':<12} {volume.meta_disk};"
    yield from _indented(_settings("disk", volume.settings))
    yield "}"


def _connection(connection: Connection, host: str) -> Iterator[str]:
    yield "connection {"
    for end in connection.ends:
        yield (
            f"    host {end.host};"
            if end.address is None
            else f"    host {end.host:<10} {'address':<15} {end.address};"
        )
    names = [end.host for end in connection.ends]
    peer = tuple(("_name", name) for name in names if host in names and name != host)
    yield from _indented(_settings("net", (*peer, *connection.net)))
    yield from _indented(_settings("disk", connection.peer_device))
    yield "}"


def _settings(name: str, settings: Settings) -> Iterator[str]:
    if settings:
        yield f"{name} {{"
        for option, value in settings:
            yield f"    {option:<13} {value};" if option == "_name" else f"    {option:<16} {value:>3};"
        yield "}"


def _indented(lines: Iterator[str]) -> Iterator[str]:
    return (f"    {line}" for line in lines)
