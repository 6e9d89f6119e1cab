"""Where a disk is, by its UUID: drives are carried from node to node, pulled, and brought back.

A ledger is named by its disk's UUID and follows the disk. It stays at its place while a node says nothing of it at all
(an agent that is silent may come back), and moves when its node says that the disk is not usable there and another
says that it is. Two usable disks of one UUID are copies made by somebody; only the one with the ledger is used.
"""

from __future__ import annotations

from dataclasses import dataclass

from quorate.api import conditions
from quorate.api.conditions.inventory import Ready
from quorate.api.longhorn import DiskSchedule, Node
from quorate.api.longhorn.node import DiskStatus
from quorate.api.meta import ConditionStatus, NodeName
from quorate.api.names import disk_schedule


@dataclass(frozen=True, slots=True)
class Place:
    """A disk in the inventory of a node."""

    node: NodeName
    name: str
    disk: DiskStatus

    @property
    def ready(self) -> ConditionStatus:
        """Whether it can be used there; Unknown while the agent is silent."""
        found = conditions.find(self.disk.conditions, Ready)
        return ConditionStatus.UNKNOWN if found is None else found.status

    def __str__(self) -> str:
        return f"disk {self.name} on node {self.node}"


def places_of(schedule_name: str, nodes: tuple[Node, ...]) -> tuple[Place, ...]:
    """Every disk with this UUID, in order."""
    return tuple(
        Place(NodeName(node.name), name, disk)
        for node in nodes
        for name, disk in sorted(node.status.disk_status.items())
        if disk_schedule(disk.disk_uuid) == schedule_name
    )


def choose(schedule: DiskSchedule | None, places: tuple[Place, ...]) -> Place | None:
    """The place that the ledger speaks of; None if the disk is nowhere."""
    if not places:
        return None
    current = None
    if schedule is not None:
        spec = schedule.spec
        current = next((place for place in places if (place.node, place.name) == (spec.node_id, spec.name)), None)
    if current is not None and current.ready is not ConditionStatus.FALSE:
        return current
    usable = next((place for place in places if place.ready is ConditionStatus.TRUE), None)
    return usable or current or places[0]
