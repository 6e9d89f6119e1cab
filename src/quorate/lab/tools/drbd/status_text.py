"""``drbdsetup status`` for people: short, or with ``--verbose`` and ``--statistics``, in colours and wrapped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_WIDTH = 80
_BOLD_GREEN, _GREEN, _RED, _YELLOW, _END = "\033[1;32m", "\033[32m", "\033[1;31m", "\033[1;33m", "\033[0m"
_DISK_COLOURS = {"UpToDate": _BOLD_GREEN, "Failed": _RED, "Inconsistent": _RED, "Outdated": _YELLOW, "Diskless": _RED}
_PEER_COLOURS = {"UpToDate": _GREEN, "Inconsistent": _RED, "Outdated": _YELLOW, "DUnknown": _YELLOW}

_Part = Mapping[str, Any]


def text(resource: _Part, backing: Mapping[int, str], *, verbose: bool, statistics: bool) -> str:
    """One resource's paragraph."""
    lines = _wrapped(0, _resource(resource, verbose, statistics), hang=4)
    for device in resource["devices"]:
        path = backing.get(device["volume"], "none")
        lines += _wrapped(2, _device(device, path, verbose, len(resource["devices"]) > 1), hang=4)
        if statistics:
            lines += _wrapped(6, _device_statistics(device, blocked=resource["suspended"]), hang=0)
    for connection in resource.get("connections", ()):
        lines += _wrapped(2, _connection(connection, verbose, statistics), hang=4)
        for peer_device in connection["peer_devices"]:
            if verbose or connection["connection-state"] == "Connected":
                lines += _wrapped(4, _peer_device(peer_device, verbose), hang=4)
                if statistics:
                    lines += _wrapped(8, _peer_statistics(peer_device), hang=0)
    return "".join(f"{line}\n" for line in lines) + "\n"


def _resource(resource: _Part, verbose: bool, statistics: bool) -> list[str]:
    found = [resource["name"]]
    if verbose:
        found.append(f"node-id:{resource['node-id']}")
    found.append(f"role:{_coloured(resource['role'], {'Primary': _BOLD_GREEN})}")
    causes = [cause for cause in ("user", "no-data", "fencing", "quorum") if resource[f"suspended-{cause}"]]
    if verbose or causes:
        found.append(f"suspended:{','.join(causes) if causes else 'no'}")
    failing = resource["force-io-failures"]
    if verbose or failing:
        found.append(f"force-io-failures:{_RED + 'yes' if failing else _BOLD_GREEN + 'no'}{_END}")
    return found + ([f"write-ordering:{resource['write-ordering']}"] if statistics else [])


def _device(device: _Part, path: str, verbose: bool, several: bool) -> list[str]:
    found = [f"volume:{device['volume']}"] if verbose or several else []
    if verbose:
        found.append(f"minor:{device['minor']}")
    state = device["disk-state"]
    colours = {} if device["client"] else _DISK_COLOURS
    found.append(f"disk:{_coloured(state, colours)}")
    if device["client"] and verbose:
        found.append("client:yes")
    if verbose:
        found.append(f"backing_dev:{path}")
    if verbose or not device["quorum"]:
        found.append(f"quorum:{_BOLD_GREEN + 'yes' if device['quorum'] else _RED + 'no'}{_END}")
    return found


def _device_statistics(device: _Part, *, blocked: bool) -> list[str]:
    names = ("size", "read", "written", "al-writes", "bm-writes", "upper-pending", "lower-pending")
    return [f"{name}:{device[name]}" for name in names] + ["al-suspended:no", f"blocked:{'upper' if blocked else 'no'}"]


def _connection(connection: _Part, verbose: bool, statistics: bool) -> list[str]:
    found = [connection["name"]]
    if verbose:
        found.append(f"node-id:{connection['peer-node-id']}")
    connected = connection["connection-state"] == "Connected"
    if verbose or not connected:
        state = connection["connection-state"]
        found.append(f"connection:{state if connected else _RED + state + _END}")
    if verbose or connected:
        found.append(f"role:{_coloured(connection['peer-role'], {'Primary': _BOLD_GREEN})}")
    if verbose:
        found.append(f"congested:{'yes' if connection['congested'] else 'no'}")
    if statistics:
        found += [f"ap-in-flight:{connection['ap-in-flight']}", f"rs-in-flight:{connection['rs-in-flight']}"]
    return found


def _peer_device(peer: _Part, verbose: bool) -> list[str]:
    found = [f"volume:{peer['volume']}"] if verbose else []
    if verbose or peer["replication-state"] not in ("Established", "Off"):
        found.append(f"replication:{peer['replication-state']}")
    found.append(f"peer-disk:{_coloured(peer['peer-disk-state'], {} if peer['peer-client'] else _PEER_COLOURS)}")
    if peer["replication-state"].startswith(("Sync", "PausedSync", "Verify")):
        found.append(f"done:{peer['percent-in-sync']:.2f}")
    return found + ([f"resync-suspended:{peer['resync-suspended']}"] if verbose else [])


def _peer_statistics(peer: _Part) -> list[str]:
    return [f"{name}:{peer[name]}" for name in ("received", "sent", "out-of-sync", "pending", "unacked")]


def _coloured(word: str, colours: Mapping[str, str]) -> str:
    return f"{colours[word]}{word}{_END}" if word in colours else word


def _wrapped(indent: int, parts: Sequence[str], *, hang: int) -> list[str]:
    lines, line = [], " " * indent + parts[0]
    for part in parts[1:]:
        if len(line) + 1 + len(part) > _WIDTH:
            lines.append(line)
            line = " " * (indent + hang) + part
        else:
            line += f" {part}"
    return [*lines, line]
