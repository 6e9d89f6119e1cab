"""``drbdsetup status --json`` in its own layout: two spaces a level, a list's brackets where its items are.

Machines do not care, but people do: recordings and bug reports hold this text, and a difference should be a difference.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from quorate.lab.kernel.status import Look

_Part = Mapping[str, Any]
_LISTS = ("devices", "connections", "peer_devices")


def text(resources: Sequence[Look]) -> str:
    """All resources. What was printed of one is kept while it stays true: 500 of them are looked at often."""
    for look in resources:
        if not look.printed:
            look.printed = _resource(look.fields)
    return "[\n" + ",\n".join(look.printed for look in resources) + ("\n" if resources else "") + "]\n\n"


def _resource(resource: _Part) -> str:
    devices = ",\n".join(f"    {{\n{_fields(6, device)}\n    }}" for device in resource["devices"])
    connections = ",\n".join(map(_connection, resource["connections"]))
    return f'{{\n{_fields(2, resource)},\n  "devices": [\n{devices} ],\n  "connections": [\n{connections} ]\n}}'


def _connection(connection: _Part) -> str:
    peers = ",\n".join(f"        {{\n{_fields(10, peer)}\n        }}" for peer in connection["peer_devices"])
    return f'    {{\n{_fields(6, connection)},\n      "peer_devices": [\n{peers} ]\n    }}'


def _fields(indent: int, part: _Part) -> str:
    return ",\n".join(_lines(" " * indent, part))


def _lines(indent: str, part: _Part) -> Iterable[str]:
    for name, value in part.items():
        if name not in _LISTS:
            yield f'{indent}"{name}": {_shown(value)}'


def _shown(value: object) -> str:
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:.2f}"
    return str(value) if isinstance(value, int) else msgspec.json.encode(value).decode()
