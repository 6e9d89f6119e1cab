"""Whether an events2 stream is in the recorded format, and adds up to the state it ends in."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from quorate.lab.recordings.compare_status import Difference

_STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}[+-]\d\d:\d\d$")
_KEYS = {
    "resource": "name role suspended force-io-failures write-ordering may_promote promotion_score",
    "device": "name volume minor backing_dev disk client quorum size read written al-writes bm-writes upper-pending"
    " lower-pending al-suspended blocked",
    "connection": "name peer-node-id conn-name connection role congested ap-in-flight rs-in-flight",
    "peer-device": "name peer-node-id conn-name volume replication peer-disk peer-client resync-suspended done received"
    " sent out-of-sync pending unacked dbdt1 eta",
    "path": "name peer-node-id conn-name local peer established",
    "helper": "name peer-node-id conn-name volume minor helper status",
}
_VERBS = frozenset({"exists", "create", "change", "destroy", "call", "response"})
_IDENTITY = {
    "resource": ("name",),
    "device": ("name", "volume"),
    "connection": ("name", "peer-node-id"),
    "peer-device": ("name", "peer-node-id", "volume"),
}
_Parts = dict[tuple[str, ...], dict[str, str]]


def differences(text: str, status: Sequence[Mapping[str, Any]]) -> list[Difference]:
    """Nothing if the stream is well formed and ends where the status is."""
    parts: _Parts = {}
    for line in text.splitlines():
        problem = _add(parts, line)
        if problem:
            return [Difference("events2 line", problem, line)]
    told = set(_told(parts))
    shown = set(_shown(status))
    return (
        [Difference("state that the events add up to", sorted(shown - told), sorted(told - shown))]
        if told != shown
        else []
    )


def _add(parts: _Parts, line: str) -> str | None:
    """Take a line in; what is wrong with it."""
    stamp, _, rest = line.partition(" ")
    verb, _, rest = rest.partition(" ")
    kind, *fields = rest.split(" ")
    if not _STAMP.match(stamp):
        return "a timestamp first"
    if verb not in _VERBS or kind not in (*_KEYS, "-"):
        return "a known verb and object"
    if kind == "-":
        return None if verb == "exists" and not fields else "exists -"
    values = dict(field.partition(":")[::2] for field in fields)
    order = _KEYS[kind].split()
    if set(values) - set(order):
        return f"only the keys {_KEYS[kind]}"
    if list(values) != sorted(values, key=order.index):
        return f"keys in the order {_KEYS[kind]}"
    if kind in _IDENTITY:
        identity = (kind, *(values[name] for name in _IDENTITY[kind] if name in values))
        if verb == "destroy":  # a peer device goes with its connection and is not named
            gone = (identity, ("peer-device", *identity[1:])) if kind == "connection" else (identity,)
            for known in [known for known in parts if any(known[: len(head)] == head for head in gone)]:
                del parts[known]
        else:
            parts.setdefault(identity, {}).update(values)
    return None


def _told(parts: _Parts) -> Iterator[tuple[str, ...]]:
    for (kind, *identity), values in parts.items():
        if kind == "resource":
            yield kind, *identity, values["role"], values["suspended"]
        elif kind == "device":
            yield kind, *identity, values["disk"], values["quorum"]
        elif kind == "connection":
            yield kind, *identity, values["connection"], values["role"]
        elif kind == "peer-device":
            yield kind, *identity, values["replication"], values["peer-disk"]


def _shown(status: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, ...]]:
    for resource in status:
        name = resource["name"]
        causes = [cause for cause in ("user", "no-data", "fencing", "quorum") if resource[f"suspended-{cause}"]]
        yield "resource", name, resource["role"], ",".join(causes) or "no"
        for device in resource["devices"]:
            yield "device", name, str(device["volume"]), device["disk-state"], "yes" if device["quorum"] else "no"
        for connection in resource["connections"]:
            peer = str(connection["peer-node-id"])
            yield "connection", name, peer, connection["connection-state"], connection["peer-role"]
            for entry in connection["peer_devices"]:
                where = (name, peer, str(entry["volume"]))
                yield "peer-device", *where, entry["replication-state"], entry["peer-disk-state"]
