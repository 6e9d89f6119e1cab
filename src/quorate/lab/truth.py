"""How a simulated cluster really is, whatever its objects say: for people, and for tests."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from quorate.lab.cluster import Cluster
from quorate.lab.drives import Drive
from quorate.lab.node import SimulatedNode


class ReplicaTruth(msgspec.Struct, frozen=True, rename="camel"):
    """A DRBD resource in a node's kernel."""

    resource: str
    role: str
    disk: str
    quorum: bool
    #: What is not as it should be of its connections: node id and state.
    trouble: tuple[str, ...] = ()


class DriveTruth(msgspec.Struct, frozen=True, rename="camel"):
    """A drive. No device: it was pulled out."""

    serial: str
    slot: str
    device: str = ""
    failing: bool = False
    smart_passed: bool = True
    locate_light: bool = False


class NodeTruth(msgspec.Struct, frozen=True, rename="camel"):
    """A node."""

    name: str
    zone: str
    address: str
    powered: bool
    boots: int
    agent_runs: bool
    reaches_api: bool
    drives: tuple[DriveTruth, ...]
    replicas: tuple[ReplicaTruth, ...] = ()
    #: Beginnings of commands that hang, and of those that are late, with the seconds.
    hanging_commands: tuple[str, ...] = ()
    slow_commands: dict[str, float] = {}
    #: What its DRBD does wrong at the next opportunity, and with which resource.
    planned_slips: tuple[tuple[str, str], ...] = ()
    #: It is on its way down, and may never come there.
    is_stopping: bool = False


class Truth(msgspec.Struct, frozen=True, rename="camel"):
    """The cluster. ``cut`` holds pairs of nodes, in words."""

    nodes: tuple[NodeTruth, ...]
    cut: tuple[str, ...] = ()


def truth_of(cluster: Cluster) -> Truth:
    """Look at everything, now."""
    cluster.driver.catch_up()
    cut = tuple(f"{one} {'->' if one_way else '<->'} {other}" for one, other, one_way in cluster.cut_pairs())
    return Truth(tuple(_node(node) for node in cluster.nodes.values()), cut)


def _node(node: SimulatedNode) -> NodeTruth:
    host = node.host
    return NodeTruth(
        name=node.name,
        zone=node.plan.zone,
        address=node.plan.address,
        powered=host.powered,
        boots=host.boots,
        agent_runs=node.agent is not None,
        is_stopping=node.is_stopping,
        reaches_api=node.reaches_api,
        drives=(
            *(_drive(drive, f"/dev/{device}") for device, drive in host.bays.items()),
            *(_drive(drive, "") for drive in node.pulled),
        ),
        replicas=tuple(_replicas(node)) if host.powered else (),
        hanging_commands=tuple(sorted(node.interference.hanging)),
        slow_commands=dict(sorted(node.interference.slow.items())),
        planned_slips=tuple(host.kernel.planned_slips),
    )


def _drive(drive: Drive, device: str) -> DriveTruth:
    return DriveTruth(drive.serial, drive.slot, device, drive.failing, drive.smart.passed, drive.locate_light)


def _replicas(node: SimulatedNode) -> Iterator[ReplicaTruth]:
    for resource in node.host.kernel.status():
        device = resource["devices"][0] if resource.get("devices") else {}
        yield ReplicaTruth(
            resource=resource["name"],
            role=resource["role"],
            disk=device.get("disk-state", ""),
            quorum=bool(device.get("quorum", False)),
            trouble=tuple(
                f"{connection['peer-node-id']}:{connection['connection-state']}"
                for connection in resource.get("connections", ())
                if connection["connection-state"] != "Connected"
            ),
        )
