"""Where a recorded status and the model's differ."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
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
        return f"{self.where}: expected {_visible(self.expected)}, seen {_visible(self.seen)}"


def _visible(value: object) -> str:
    """As text in which colours can be told apart: escape codes are spelled out."""
    return str(value).replace("\033", r"\033")


def differences(expected: Sequence[_Part], seen: Sequence[_Part], *, slack: int = 0) -> list[Difference]:
    """Nothing if the two say the same. Out-of-sync counts may differ by ``slack`` KiB, see ``former_metadata``."""
    return list(_keyed("resources", "name", expected, seen, partial(_resource, slack)))


def former_metadata(usable: int) -> int:
    """How much internal metadata lay behind a volume of that size, in KiB: superblock, activity log, seven bitmaps.

    When the volume grows over it, what DRBD left there is data. Which blocks of it are equal on two members depends on
    how writes were bunched in the log, and verify counts those that are not.
    """
    bits = -(-usable // 4 // 64) * 64
    return 4 + 32 + -(-bits // 8 * 7 // 4096) * 4


def _resource(slack: int, where: str, expected: _Part, seen: _Part) -> Iterator[Difference]:
    yield from _fields(where, _RESOURCE, expected, seen)
    yield from _keyed(f"{where}/", "volume", expected.get("devices", ()), seen["devices"], _device)
    connections = partial(_connection, slack)
    there, here = expected.get("connections", ()), seen["connections"]
    yield from _keyed(f"{where}:", "peer-node-id", there, here, connections)


def _device(where: str, expected: _Part, seen: _Part) -> Iterator[Difference]:
    yield from _fields(where, _DEVICE, expected, seen)


def _connection(slack: int, where: str, expected: _Part, seen: _Part) -> Iterator[Difference]:
    yield from _fields(where, _CONNECTION, expected, seen)
    peer_devices = partial(_peer_device, slack)
    yield from _keyed(f"{where}/", "volume", expected.get("peer_devices", ()), seen["peer_devices"], peer_devices)


def _peer_device(slack: int, where: str, expected: _Part, seen: _Part) -> Iterator[Difference]:
    yield from _fields(where, _PEER_DEVICE, expected, seen)
    if expected["replication-state"].startswith(_MOVING):
        return
    here, there = expected["out-of-sync"], seen["out-of-sync"]
    if abs(here - there) > (slack if here and there else 0):
        yield Difference(f"{where} out-of-sync", here, there)


def _fields(where: str, names: Sequence[str], expected: _Part, seen: _Part) -> Iterator[Difference]:
    for name in names:
        if name in expected and expected[name] != seen.get(name):
            yield Difference(f"{where} {name}", expected[name], seen.get(name))


def _keyed(
    where: str,
    key: str,
    expected: Sequence[_Part],
    seen: Sequence[_Part],
    inner: Callable[[str, _Part, _Part], Iterator[Difference]],
) -> Iterator[Difference]:
    there = {part[key]: part for part in expected}
    here = {part[key]: part for part in seen}
    if there.keys() != here.keys():
        yield Difference(f"{where} {key}", sorted(there), sorted(here))
    for name in sorted(there.keys() & here.keys()):
        yield from inner(f"{where}{name}" if where != "resources" else str(name), there[name], here[name])
