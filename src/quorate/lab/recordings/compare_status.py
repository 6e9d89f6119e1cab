"""Where a recorded status and the model's differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_RESOURCE = (
    "node-id",
    "role",
    "suspended",
    "suspended-user",
    "suspended-no-data",
    "suspended-fencing",
    "suspended-quorum",
    "force-io-failures",
)
_DEVICE = ("minor", "disk-state", "client", "quorum", "size")
_CONNECTION = ("name", "connection-state", "peer-role")
_PEER_DEVICE = ("replication-state", "peer-disk-state", "peer-client", "resync-suspended")
_MOVING = ("Sync", "PausedSync", "WFBitMap", "Verify", "StartingSync", "Ahead", "Behind")

_Part = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that is not as recorded."""

    where: str
    expected: object
    seen: object

    def __str__(self) -> str:
        return f"{self.where}: expected {self.expected}, seen {self.seen}"


def differences(expected: Sequence[_Part], seen: Sequence[_Part]) -> list[Difference]:
    """Nothing if the two say the same."""
    return list(_keyed("resources", "name", expected, seen, _resource))


def _resource(where: str, expected: _Part, seen: _Part) -> Iterator[Difference]:
    yield from _fields(where, _RESOURCE, expected, seen)
    yield from _keyed(f"{where}/", "volume", expected["devices"], seen["devices"], _device)
    yield from _keyed(f"{where}:", "peer-node-id", expected["connections"], seen["connections"], _connection)


def _device(where: str, expected: _Part, seen: _Part) -> Iterator[Difference]:
    yield from _fields(where, _DEVICE, expected, seen)


def _connection(where: str, expected: _Part, seen: _Part) -> Iterator[Difference]:
    yield from _fields(where, _CONNECTION, expected, seen)
    yield from _keyed(f"{where}/", "volume", expected["peer_devices"], seen["peer_devices"], _peer_device)


def _peer_device(where: str, expected: _Part, seen: _Part) -> Iterator[Difference]:
    yield from _fields(where, _PEER_DEVICE, expected, seen)
    if not expected["replication-state"].startswith(_MOVING):
        yield from _fields(where, ("out-of-sync",), expected, seen)


def _fields(where: str, names: Sequence[str], expected: _Part, seen: _Part) -> Iterator[Difference]:
    for name in names:
        if name in expected and expected[name] != seen.get(name):
            yield Difference(f"{where} {name}", expected[name], seen.get(name))


def _keyed(where: str, key: str, expected: Sequence[_Part], seen: Sequence[_Part], inner: Any) -> Iterator[Difference]:
    there = {part[key]: part for part in expected}
    here = {part[key]: part for part in seen}
    if there.keys() != here.keys():
        yield Difference(f"{where} {key}", sorted(there), sorted(here))
    for name in there.keys() & here.keys():
        yield from inner(f"{where}{name}" if where != "resources" else str(name), there[name], here[name])
