"""The recordings of a real cluster, taken apart for the tests of ``quorate.drbd``: steps, files, histories."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from quorate.api.meta import NodeName
from quorate.api.scalars import ReplicaName
from quorate.api.storage.drbd import Address, DrbdConfig, Peer, ReplicaType
from quorate.drbd.events import parse_event
from quorate.drbd.quorum import Setting

DIRECTORY = Path(__file__).parents[1] / "lab" / "recordings" / "data"
NAMES = tuple(sorted(file.stem for file in DIRECTORY.glob("*.json")))

Step = dict[str, Any]


@cache
def steps(name: str) -> tuple[Step, ...]:
    return tuple(json.loads((DIRECTORY / f"{name}.json").read_text())["steps"])


def of_kind(kind: str) -> Iterator[tuple[str, Step]]:
    """Every step of that kind in every recording, with the recording's name."""
    for name in NAMES:
        for step in steps(name):
            if step["kind"] == kind:
                yield name, step


@dataclass(frozen=True)
class File:
    """A recorded ``.res`` file, as far as quorum goes."""

    config: DrbdConfig
    quorum: Setting | int
    #: Toward whom this node's own file says allow-remote-read no.
    hidden: frozenset[int]


def read_file(text: str, node: str) -> File:
    hosts = {host[1]: host[2] for host in re.finditer(r"^  on (\w+) \{\n(.*?)^  \}", text, re.MULTILINE | re.DOTALL)}
    ids = {host: int(_found(r"node-id (\d+)", body)) for host, body in hosts.items()}
    types = {
        host: ReplicaType.TIE_BREAKER if "disk none" in body else ReplicaType.DISKFUL for host, body in hosts.items()
    }
    links = re.findall(r"connection \{ host (\w+) .*?host (\w+) [^;]*;(.*)\}", text)
    hidden = {
        ids[second if first == node else first]
        for first, second, rest in links
        if "allow-remote-read no" in rest and node in (first, second)
    }
    peers = tuple(
        Peer(
            name=ReplicaName(f"pvc-1-{ids[host]}"),
            node_name=NodeName(host),
            node_id=ids[host],
            type=types[host],
            address=Address(ipv4="10.77.0.1", port=7000),
            hidden=ids[host] in hidden,
        )
        for host in hosts
        if host != node
    )
    redundancy = _found(r"quorum-minimum-redundancy (\w+);", text)
    quorum = _found(r"^\s+quorum (\w+);", text)
    return File(
        DrbdConfig(
            node_id=ids[node],
            type=types[node],
            peers=peers,
            quorum_minimum_redundancy=int(redundancy) if redundancy.isdigit() else None,
        ),
        int(quorum) if quorum.isdigit() else Setting(quorum),
        frozenset(hidden),
    )


def _found(pattern: str, text: str) -> str:
    match = re.search(pattern, text, re.MULTILINE)
    assert match, pattern
    return match[1]


@dataclass
class Moment:
    """What an event stream says of a resource after one change, and what was so before the last one that mattered."""

    disk: str = "Diskless"
    quorum: bool = False
    #: Per peer: replication state and disk state.
    peers: dict[int, tuple[str, str]] = field(default_factory=dict)
    connected_before: frozenset[int] = frozenset()
    had_quorum: bool = False
    met: frozenset[int] = frozenset()

    @property
    def connected(self) -> frozenset[int]:
        return frozenset(peer for peer, (replication, _) in self.peers.items() if replication != "Off")


def history(text: str) -> list[Moment]:
    """The moments of a stream. What has one timestamp is one change of the kernel's."""
    groups: dict[str, list[str]] = {}
    for line in text.splitlines():
        groups.setdefault(line.split(" ", 1)[0], []).append(line)
    moments: list[Moment] = []
    now = Moment()
    for lines in groups.values():
        before = now
        now = Moment(now.disk, now.quorum, dict(now.peers), now.connected_before, now.had_quorum, now.met)
        for line in lines:
            event = parse_event(line)
            assert event is not None, line
            fields = event.fields
            if event.kind == "resource" and event.verb in ("create", "destroy"):
                now = Moment(met=now.met)
            elif event.kind == "device":
                now.disk = fields.get("disk", now.disk)
                now.quorum = fields["quorum"] == "yes" if "quorum" in fields else now.quorum
            elif event.kind == "connection" and event.verb == "destroy":
                now.peers.pop(int(fields["peer-node-id"]))
            elif event.kind == "peer-device":
                peer = int(fields["peer-node-id"])
                if event.verb != "destroy":
                    replication, disk = now.peers.get(peer, ("Off", "DUnknown"))
                    now.peers[peer] = fields.get("replication", replication), fields.get("peer-disk", disk)
        now.met |= now.connected
        if (before.disk, before.quorum, before.peers) != (now.disk, now.quorum, now.peers):
            now.connected_before, now.had_quorum = before.connected, before.quorum
        moments.append(now)
    return moments
