"""A described cluster: what a YAML or JSON file says of nodes, drives, groups, rings and limits.

    nodes:  [{id: 1, host: h1, tenant: null, dc: a, room: r, rack: k1, state: UP, services: [storage], startTime: 0}]
    drives: [{node: 1, id: 1, state: UP, path: /dev/sdb}]
    groups: [{id: 0, erasure: block-4-2, generation: 1,
              vdisks: [{realm: 0, domain: 0, vdisk: 0, node: 1, drive: 1, state: UP}]}]
    rings:  {nToSelect: 5, rings: [{nodes: [1], disabled: false}]}
    config: {clusterLimits: {disabledNodesLimit: 0, disabledNodesRatioLimit: 0}, defaultRetryTime: 300s}

Only ``nodes`` must be there. Times are microseconds since 1970, as everywhere in the broker.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeVar

from quorate.api.maintenance.action import HostState
from quorate.api.maintenance.broker_config import BrokerConfigSpec
from quorate.errors import ConfigError
from quorate.maintenance.described.layouts import fault
from quorate.maintenance.described.reading import Entry
from quorate.maintenance.described.text import tree
from quorate.maintenance.model.lookup import SERVICES
from quorate.maintenance.moments import FOREVER
from quorate.maintenance.nouns import (
    STORAGE,
    DriveId,
    DriveInfo,
    GroupInfo,
    NodeInfo,
    Ring,
    Rings,
    Species,
    VDiskId,
    VDiskInfo,
)

Info = TypeVar("Info", NodeInfo, DriveInfo, GroupInfo, VDiskInfo)

_MAX_NUMBER: Final = 2**32 - 1
_MAX_PLACE: Final = 255
_MAX_HOST: Final = 253
_MAX_WORD: Final = 128
_SPECIES: Final = {species.word: species for species in Species}
_STATES: Final = {str(state): state for state in HostState}


@dataclass(frozen=True, slots=True)
class Description:
    """A cluster, as its file says."""

    nodes: tuple[NodeInfo, ...]
    drives: tuple[DriveInfo, ...] = ()
    groups: tuple[GroupInfo, ...] = ()
    rings: Rings | None = None
    settings: BrokerConfigSpec = field(default_factory=BrokerConfigSpec)


def load(path: Path) -> Description:
    """Read a file; raises ConfigError that says what, where and what is allowed."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from error
    try:
        return parse(text)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error


def parse(text: str) -> Description:
    """Read a document's text, YAML or JSON."""
    return describe(tree(text))


def describe(document: object) -> Description:
    """Read a parsed document."""
    fields = Entry(document, "").fields(("nodes",), ("drives", "groups", "rings", "config"))
    nodes = _distinct([(entry, _node(entry)) for entry in fields["nodes"].items()])
    known = {info.id for info in nodes}
    read = [(entry, _drive(entry, known)) for entry in _items(fields, "drives")]
    drives = _distinct(read)
    _once((entry, f"{info.path} of node {info.id.node}") for entry, info in read if info.path)
    places = {info.id for info in drives}
    groups = _distinct([(entry, _group(entry, places)) for entry in _items(fields, "groups")])
    return Description(
        nodes=nodes,
        drives=drives,
        groups=groups,
        rings=_rings(fields["rings"], known) if "rings" in fields else None,
        settings=settings(fields["config"].value, "config") if "config" in fields else BrokerConfigSpec(),
    )


def settings(given: object, path: str = "config") -> BrokerConfigSpec:
    """Limits and durations; what is not given has its default."""
    found = Entry(given, path).struct(BrokerConfigSpec)
    if broken := found.without_time():
        raise ConfigError("; ".join(f"{path}.{field} must be more than zero" for field in broken))
    return found


def state(given: object, path: str = "state") -> HostState:
    """UP, DOWN, RESTART or UNKNOWN."""
    return Entry(given, path).one_of(_STATES)


def _node(entry: Entry) -> NodeInfo:
    fields = entry.fields(
        ("id", "host"), ("tenant", "dc", "room", "rack", "state", "services", "startTime", "interconnectPort")
    )
    words = {key: fields[key].text(_MAX_WORD) for key in ("tenant", "dc", "room", "rack") if key in fields}
    standing = _state(fields)
    return NodeInfo(
        id=fields["id"].integer(1, _MAX_NUMBER),
        host=fields["host"].text(_MAX_HOST),
        tenant=words.get("tenant", ""),
        data_center=words.get("dc", ""),
        room=words.get("room", ""),
        rack=words.get("rack", ""),
        state=standing,
        start_time=fields["startTime"].integer(0, FOREVER) if "startTime" in fields else 0,
        services=_services(fields),
        interconnect_port=fields["interconnectPort"].integer(0, 65535) if "interconnectPort" in fields else 0,
        surely_down=standing is HostState.DOWN,
    )


def _services(fields: dict[str, Entry]) -> tuple[str, ...]:
    if "services" not in fields:
        return (STORAGE,)
    entries = fields["services"].items()
    for entry in entries:
        if entry.value not in SERVICES:
            entry.fail(f"one of {', '.join(SERVICES)}")
    return tuple(dict.fromkeys(entry.value for entry in entries))


def _drive(entry: Entry, nodes: set[int]) -> DriveInfo:
    fields = entry.fields(("node", "id"), ("state", "path"))
    node = fields["node"].integer(1, _MAX_NUMBER)
    if node not in nodes:
        fields["node"].fail("the id of a node in nodes")
    return DriveInfo(
        id=DriveId(node, fields["id"].integer(0, _MAX_NUMBER)),
        state=_state(fields),
        path=fields["path"].text(512) if "path" in fields else "",
    )


def _group(entry: Entry, drives: set[DriveId]) -> GroupInfo:
    fields = entry.fields(("id", "erasure", "vdisks"), ("generation",))
    number = fields["id"].integer(0, _MAX_NUMBER)
    generation = fields["generation"].integer(0, _MAX_NUMBER) if "generation" in fields else 1
    species = fields["erasure"].one_of(_SPECIES)
    vdisks = _distinct([(part, _vdisk(part, number, generation, drives)) for part in fields["vdisks"].items()])
    wrong = fault(species, [info.id for info in vdisks]) if vdisks else f"{species.word} has parts"
    if wrong:
        raise ConfigError(f"{fields['vdisks'].path}: the layout is wrong: {wrong}")
    return GroupInfo(id=number, generation=generation, species=species, vdisks=vdisks)


def _vdisk(entry: Entry, group: int, generation: int, drives: set[DriveId]) -> VDiskInfo:
    fields = entry.fields(("realm", "domain", "vdisk", "node", "drive"), ("state",))
    realm, domain, vdisk = (fields[key].integer(0, _MAX_PLACE) for key in ("realm", "domain", "vdisk"))
    drive = DriveId(fields["node"].integer(1, _MAX_NUMBER), fields["drive"].integer(0, _MAX_NUMBER))
    if drive not in drives:
        fields["drive"].fail(f"a drive of node {drive.node} in drives")
    identity = VDiskId(group, generation, realm, domain, vdisk)
    return VDiskInfo(id=identity, node=drive.node, drives=(drive,), state=_state(fields))


def _rings(entry: Entry, nodes: set[int]) -> Rings:
    fields = entry.fields(("nToSelect", "rings"))
    rings = tuple(_ring(item, nodes) for item in fields["rings"].items())
    entries = [
        item for ring in fields["rings"].items() for item in ring.fields(("nodes",), ("disabled",))["nodes"].items()
    ]
    _once((item, item.value) for item in entries)
    return Rings(fields["nToSelect"].integer(1, max(1, len(rings))), rings)


def _ring(entry: Entry, nodes: set[int]) -> Ring:
    fields = entry.fields(("nodes",), ("disabled",))
    items = fields["nodes"].items()
    if not items:
        fields["nodes"].fail("a list of at least one node")
    for item in items:
        if item.integer(1, _MAX_NUMBER) not in nodes:
            item.fail("the id of a node in nodes")
    return Ring(tuple(item.value for item in items), fields["disabled"].flag() if "disabled" in fields else False)


def _state(fields: dict[str, Entry]) -> HostState:
    return fields["state"].one_of(_STATES) if "state" in fields else HostState.UP


def _items(fields: dict[str, Entry], key: str) -> list[Entry]:
    return fields[key].items() if key in fields else []


def _distinct(read: list[tuple[Entry, Info]]) -> tuple[Info, ...]:
    """Everything that was read, if nothing has the id of another."""
    _once((entry, info.id) for entry, info in read)
    return tuple(info for _, info in read)


def _once(entries: Iterable[tuple[Entry, Hashable]]) -> None:
    first: dict[Hashable, Entry] = {}
    for entry, key in entries:
        if first.setdefault(key, entry) is not entry:
            raise ConfigError(f"{entry.path}: {key} is at {first[key].path} already: each may be there once")
