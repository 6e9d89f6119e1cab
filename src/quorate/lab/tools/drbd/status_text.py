"""``drbdsetup status`` for people: short, or with ``--verbose`` and ``--statistics``, in colours and wrapped.

On a terminal it is coloured; elsewhere it is not, and says of what has no disk whether that is intended.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from quorate.lab.tools.drbd.colours import Palette

_WIDTH = 80
_YES = {True: "yes", False: "no"}

_Part = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Style:
    """What was asked for, and whether it goes to a terminal."""

    verbose: bool = False
    statistics: bool = False
    terminal: bool = True

    @property
    def colour(self) -> Palette:
        return Palette(used=self.terminal)


def text(resource: _Part, backing: Mapping[int, str], style: Style) -> str:
    """One resource's paragraph."""
    lines = _wrapped(0, 4, *_resource(resource, style))
    devices = resource["devices"]
    only = len(devices) == 1 and devices[0]["volume"] == 0
    for device in devices:
        path = backing.get(device["volume"], "none")
        lines += _wrapped(2, 6, *_device(device, path, style, only=only, blocked=resource["suspended"]))
    for connection in resource["connections"]:
        lines += _wrapped(2, 6, _connection(connection, style))
        if style.verbose or style.statistics or connection["connection-state"] == "Connected":
            for peer in connection["peer_devices"]:
                lines += _wrapped(4, 8, *_peer_device(peer, style, only=only))
    return "".join(f"{line}\n" for line in lines) + "\n"


def _resource(resource: _Part, style: Style) -> Sequence[list[str]]:
    found = [resource["name"]]
    if style.verbose:
        found.append(f"node-id:{resource['node-id']}")
    found.append(f"role:{style.colour.role(resource['role'], own=True)}")
    causes = [cause for cause in ("user", "no-data", "fencing", "quorum") if resource[f"suspended-{cause}"]]
    if style.verbose or causes:
        found.append(f"suspended:{','.join(causes) or 'no'}")
    if style.verbose or resource["force-io-failures"]:
        found.append(f"force-io-failures:{style.colour.yes_or_no(resource['force-io-failures'], good=False)}")
    if style.verbose and style.statistics:
        return found, [f"write-ordering:{resource['write-ordering']}"]
    return (found,)


def _device(device: _Part, path: str, style: Style, *, only: bool, blocked: bool) -> Sequence[list[str]]:
    found = [] if only and not style.verbose else [f"volume:{device['volume']}"]
    if style.verbose:
        found.append(f"minor:{device['minor']}")
    client = device["client"]
    found.append(f"disk:{style.colour.disk(device['disk-state'], own=True, intended_diskless=client)}")
    if device["disk-state"] == "Diskless" and (style.verbose or not style.terminal):
        found.append(f"client:{_YES[client]}")
    if style.verbose:
        found.append(f"backing_dev:{path}")
    if style.verbose or not device["quorum"]:
        found.append(f"quorum:{style.colour.yes_or_no(device['quorum'], good=True)}")
    statistics: list[str] = []
    if style.statistics:
        names = ("size", "read", "written", "al-writes", "bm-writes", "upper-pending", "lower-pending")
        statistics = [f"{name}:{device[name]}" for name in (names if style.verbose else ("read", "written"))]
        statistics += ["al-suspended:no"] if style.verbose else []
    if style.verbose or blocked:
        (statistics if style.statistics else found).append(f"blocked:{'upper' if blocked else 'no'}")
    return (found, statistics) if statistics else (found,)


def _connection(connection: _Part, style: Style) -> list[str]:
    found, connected = [connection["name"]], connection["connection-state"] == "Connected"
    if style.verbose:
        found.append(f"node-id:{connection['peer-node-id']}")
    if style.verbose or not connected:
        found.append(f"connection:{style.colour.connection(connection['connection-state'])}")
    if style.verbose or connected:
        found.append(f"role:{style.colour.role(connection['peer-role'], own=False)}")
    if style.verbose or connection["congested"]:
        found.append(f"congested:{_YES[connection['congested']]}")
        found += [f"{name}:{connection[name]}" for name in ("ap-in-flight", "rs-in-flight")]
    return found


def _peer_device(peer: _Part, style: Style, *, only: bool) -> Sequence[list[str]]:
    found = [] if only and not style.verbose else [f"volume:{peer['volume']}"]
    replication, disk, client = peer["replication-state"], peer["peer-disk-state"], peer["peer-client"]
    if style.verbose or replication not in ("Established", "Off"):
        found.append(f"replication:{style.colour.replication(replication)}")
    found.append(f"peer-disk:{style.colour.disk(disk, own=False, intended_diskless=client)}")
    if disk == "Diskless" and (style.verbose or not style.terminal):
        found.append(f"peer-client:{_YES[client]}")
    if "percent-resync-done" in peer:
        found.append(f"done:{peer['percent-resync-done']:.2f}")
    if style.verbose or peer["resync-suspended"] != "no":
        found.append(f"resync-suspended:{peer['resync-suspended']}")
    if not style.statistics:
        return (found,)
    names = ["received", "sent"]
    names += ["out-of-sync"] if style.verbose or peer["out-of-sync"] else []
    names += ["pending", "unacked"] if style.verbose else []
    return found, [f"{name}:{peer[name]}" for name in names]


def _wrapped(indent: int, hanging: int, *rows: Sequence[str]) -> list[str]:
    """Rows of words, each broken where it would become too wide; colour codes count as text, as in the real tool."""
    lines: list[str] = []
    for words in rows:
        line = " " * (hanging if lines else indent) + words[0]
        for word in words[1:]:
            if len(line) + 1 + len(word) > _WIDTH:
                lines.append(line)
                line = " " * hanging + word
            else:
                line += f" {word}"
        lines.append(line)
    return lines
