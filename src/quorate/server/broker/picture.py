"""A described cluster as it is now, in the form of its file: it can be served again."""

from __future__ import annotations

from typing import Any, cast

import msgspec

from quorate.api.codec import to_builtins
from quorate.api.struct import Struct
from quorate.maintenance.described import DescribedCluster
from quorate.maintenance.nouns import DriveInfo, GroupInfo, NodeInfo, Rings, VDiskInfo

Json = dict[str, Any]


def picture(cluster: DescribedCluster) -> Json:
    """All of it."""
    model = cluster.model
    nodes = sorted(model.nodes(), key=lambda info: info.id)
    drives = [info for node in nodes for info in sorted(model.drives_of(node.id), key=lambda info: info.id)]
    found: Json = {
        "nodes": [_node(info) for info in nodes],
        "drives": [_drive(info) for info in drives],
        "groups": [_group(info) for info in sorted(model.groups(), key=lambda info: info.id)],
        "config": config_picture(model.settings),
    }
    return found | {"rings": _rings(model.rings)} if model.rings is not None else found


def config_picture(settings: Struct) -> Json:
    """Limits and durations, defaults included: whoever reads them need not know those."""
    found: Json = {}
    for field in msgspec.structs.fields(cast("msgspec.Struct", settings)):
        value = getattr(settings, field.name)
        found[field.encode_name] = config_picture(value) if isinstance(value, Struct) else to_builtins(value)
    return found


def _node(info: NodeInfo) -> Json:
    optional = {
        "tenant": info.tenant,
        "dc": info.data_center,
        "room": info.room,
        "rack": info.rack,
        "interconnectPort": info.interconnect_port,
    }
    return {
        "id": info.id,
        "host": info.host,
        **{key: value for key, value in optional.items() if value},
        "state": info.state.value,
        "services": info.services,
        "startTime": info.start_time,
    }


def _drive(info: DriveInfo) -> Json:
    found: Json = {"node": info.id.node, "id": info.id.drive, "state": info.state.value}
    return found | {"path": info.path} if info.path else found


def _group(info: GroupInfo) -> Json:
    assert info.species is not None  # a file describes erasure groups only
    return {
        "id": info.id,
        "erasure": info.species.word,
        "generation": info.generation,
        "vdisks": [_vdisk(part) for part in info.vdisks],
    }


def _vdisk(info: VDiskInfo) -> Json:
    return {
        "realm": info.id.realm,
        "domain": info.id.domain,
        "vdisk": info.id.vdisk,
        "node": info.node,
        "drive": info.drives[0].drive,
        "state": info.state.value,
    }


def _rings(rings: Rings) -> Json:
    return {
        "nToSelect": rings.to_select,
        "rings": [{"nodes": ring.nodes, "disabled": ring.disabled} for ring in rings.rings],
    }
