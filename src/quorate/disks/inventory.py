"""The controller of the inventory: one longhorn Node per node, with a disk for every volume group and thin pool.

A pass is about one node. Whether its agent still lives is looked up when it could have fallen silent, and every few
seconds once it has: renewals of the Lease wake nobody. That is also how soon a changed ClusterConfig is noticed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from random import Random
from typing import Final

from quorate.api import annotation_keys, conditions, core, labels, names
from quorate.api.baremetal import Drive
from quorate.api.cluster_config import ClusterConfig, ClusterConfigSpec
from quorate.api.conditions import Verdict
from quorate.api.conditions.disks import Schedulable
from quorate.api.conditions.inventory import KernelStuck, Orphans, Ready
from quorate.api.core import Lease
from quorate.api.longhorn import DiskSchedule, Node
from quorate.api.longhorn.node import DiskStatus, NodeSpec, NodeStatus, Orphan, OrphanType
from quorate.api.meta import Bytes, ConditionStatus, NodeName, ObjectMeta
from quorate.api.storage import LVMLogicalVolume, LVMVolumeGroup
from quorate.api.struct import replace
from quorate.disks import fitness, groups
from quorate.disks.groups import Contents
from quorate.disks.space import Space, disks_of, measured
from quorate.engine import (
    Controller,
    Create,
    Delete,
    Index,
    Key,
    Patch,
    PatchStatus,
    Plan,
    PlanEvent,
    Reader,
    Watch,
    Write,
    look_again,
    no_keys,
)

#: LVMVolumeGroups by node.
BY_NODE: Final = "node"
_LEASE_PREFIX: Final = names.agent_lease(NodeName(""))
#: A node whose agent has fallen silent is looked at so often, in seconds.
_WHILE_SILENT: Final = 5.0
#: … and one with a group that is being deleted: what leaves it does not wake us.
_WHILE_DELETING: Final = 5.0
_UNKNOWN_DISK: Final = DiskStatus()
#: How many commands a message names.
_NAMED: Final = 3


@dataclass(frozen=True, slots=True)
class NodeView:
    """All that bears on one node's inventory."""

    name: str
    inventory: Node | None
    machine: core.Node | None
    config: ClusterConfigSpec
    #: Seconds; None: there is no Lease.
    agent_silent_for: float | None
    groups: tuple[LVMVolumeGroup, ...] = ()
    #: Those under the groups, by name.
    drives: Mapping[str, Drive] = field(default_factory=dict)
    #: How much is scheduled on each disk, by UUID.
    scheduled: Mapping[str, Bytes] = field(default_factory=dict)
    #: What is in the groups that are being deleted, by name.
    contents: Mapping[str, Contents] = field(default_factory=dict)
    #: The agent that holds the node's Lease; "": none.
    agent: str = ""

    @property
    def agent_is_fresh(self) -> bool:
        """Whether the agent's reports count."""
        return self.agent_silent_for is not None and self.agent_silent_for <= self.config.agent.lease_duration.seconds

    @property
    def node_is_known(self) -> bool:
        """Whether somebody could still remove what is on it: its object may have been deleted while its agent runs."""
        return self.machine is not None or self.agent_is_fresh


def observe(reader: Reader, key: Key) -> NodeView | None:
    """Gather what is known of a node."""
    name = key.name
    inventory, machine = reader.get(Node, name, names.NAMESPACE), reader.get(core.Node, name)
    found = reader.find(LVMVolumeGroup, BY_NODE, name)
    if inventory is None and machine is None and not found:
        return None
    config = reader.get(ClusterConfig, names.CLUSTER)
    lease = reader.get(Lease, names.agent_lease(NodeName(name)), names.NAMESPACE)
    agent = "" if lease is None else lease.spec.holder_identity or ""
    drives: dict[str, Drive] = {}
    scheduled: dict[str, Bytes] = {}
    for group in found:
        for device in group.status.devices:
            drive = reader.get(Drive, device.drive_uuid) if device.drive_uuid else None
            if drive is not None:
                drives[drive.name] = drive
        for uuid in (group.status.vg_uuid, *(pool.uuid for pool in group.status.thin_pools)):
            schedule = reader.get(DiskSchedule, names.disk_schedule(uuid), names.NAMESPACE)
            if schedule is not None:
                scheduled[uuid] = schedule.status.storage_scheduled
    return NodeView(
        name=name,
        inventory=inventory,
        machine=machine,
        groups=found,
        drives=drives,
        scheduled=scheduled,
        contents={group.name: groups.contents(reader, group, agent) for group in found if group.deleting},
        agent_silent_for=reader.silent_for(Lease, names.agent_lease(NodeName(name)), names.NAMESPACE),
        config=ClusterConfigSpec() if config is None else config.spec,
        agent=agent,
    )


def decide(view: NodeView, now: datetime, _: Random) -> Plan:
    """Report the node's disks. Its object is made where it is missing, and goes when it says nothing of no node."""
    writes = tuple(write for group in view.groups for write in _of_the_group(group, view, now))
    if any(groups.is_new(group) for group in view.groups):
        # What is not held is no disk yet: nobody is to put anything there.
        return Plan(writes=writes)
    inventory = view.inventory
    if inventory is None:
        made = Node(metadata=ObjectMeta(namespace=names.NAMESPACE, name=view.name))
        return Plan(writes=(*writes, Create(made)))
    if view.machine is None and not view.groups and inventory.spec == NodeSpec():
        return Plan(writes=() if inventory.deleting else (Delete(inventory, if_unchanged=True),))
    status = _status(inventory, view, now)
    return Plan(
        writes=(*writes, *_spent(inventory, view)),
        status=PatchStatus(inventory, replace(inventory, status=status)),
        events=(*_events(inventory, status), *(event for group in view.groups for event in _waits(group, view))),
        requeue_after=_next_look(view),
    )


def _of_the_group(group: LVMVolumeGroup, view: NodeView, now: datetime) -> tuple[Write, ...]:
    if not group.deleting:
        return groups.look_after(group, view.agent_is_fresh, now)
    return groups.let_go(
        group, view.contents[group.name], node_is_known=view.node_is_known, agent_is_fresh=view.agent_is_fresh, now=now
    )


def _waits(group: LVMVolumeGroup, view: NodeView) -> Iterable[PlanEvent]:
    if not group.deleting:
        return ()
    return groups.events(group, view.contents[group.name], node_is_known=view.node_is_known)


def _events(inventory: Node, status: NodeStatus) -> tuple[PlanEvent, ...]:
    """That a node stops being ready, or is again. Above all that its agent is silent: its replicas do not tell it.

    And that something is on it that belongs to no object.
    """
    told = []
    before, ready = (conditions.find(each.conditions, Ready) for each in (inventory.status, status))
    if before is not None and ready is not None and before.reason != ready.reason:
        bad = ready.status is not ConditionStatus.TRUE
        told.append(PlanEvent(inventory, ready.reason, ready.message, warning=bad))
    known, left = conditions.find(inventory.status.conditions, Orphans), _orphans_named(inventory)
    # Once: what was told of stays in the condition's message while an agent that has just started looks again.
    if left and (known is None or left not in known.message):
        told.append(PlanEvent(inventory, Orphans.ORPHANS_FOUND.code, left, warning=True))
    stuck, was_stuck = (conditions.find(each.conditions, KernelStuck) for each in (status, inventory.status))
    hangs, hung = (each is not None and each.status is ConditionStatus.TRUE for each in (stuck, was_stuck))
    if stuck is not None and hangs != hung:
        told.append(PlanEvent(inventory, stuck.reason, stuck.message, warning=hangs))
    return tuple(told)


def _stuck(inventory: Node) -> str:
    """What hangs in the node's kernel, as its agent says. What a silent agent said holds: the kernel is as it was."""
    hanging = [f"{each.command} ({each.work}, since {each.since:%H:%M:%S})" for each in inventory.status.stuck_commands]
    more = f" and {len(hanging) - _NAMED} more" if len(hanging) > _NAMED else ""
    return f"{inventory.name} has to be rebooted: {'; '.join(hanging[:_NAMED])}{more}" if hanging else ""


def _orphans(inventory: Node, view: NodeView) -> Verdict:
    """What of ours is on the node and belongs to no object, as far as its present agent has said."""
    left = _orphans_named(inventory)
    if view.agent and inventory.status.orphans_reported_by != view.agent:
        yet = "The node's agent has not looked at everything since it started; there may be more."
        return Orphans.NOT_REPORTED(f"{yet} {left}") if left else Orphans.NOT_REPORTED()
    return Orphans.ORPHANS_FOUND(left) if left else Orphans.NO_ORPHANS()


def _orphans_named(inventory: Node) -> str:
    orphans = "; ".join(map(_named, inventory.status.orphans))
    return f"{inventory.name} has, without an object: {orphans}" if orphans else ""


def _named(orphan: Orphan) -> str:
    part = f" of volume {orphan.volume_name}" if orphan.volume_name else ""
    sort = "DRBD resource" if orphan.type is OrphanType.RESOURCE else "logical volume"
    data = "" if orphan.holds_data else ", without data"
    return f"{sort} {orphan.name}{part}{data}"


def _spent(inventory: Node, view: NodeView) -> tuple[Patch, ...]:
    """A person's word about orphans, without those that are gone: one that comes back is not meant by it."""
    metadata = inventory.metadata
    said = metadata.annotations.get(annotation_keys.REMOVE_ORPHANS)
    if said is None or inventory.status.orphans_reported_by != view.agent:
        return ()
    there = {orphan.id for orphan in inventory.status.orphans}
    left = ",".join(word for word in (each.strip() for each in said.split(",")) if word in there)
    if left == said:
        return ()
    kept = {key: text for key, text in metadata.annotations.items() if key != annotation_keys.REMOVE_ORPHANS}
    if left:
        kept[annotation_keys.REMOVE_ORPHANS] = left
    return (Patch(inventory, replace(inventory, metadata=replace(metadata, annotations=kept))),)


def _next_look(view: NodeView) -> float | None:
    silent = view.agent_silent_for
    if view.contents:
        return _WHILE_DELETING
    if silent is None:
        return None  # The first Lease wakes us.
    left = view.config.agent.lease_duration.seconds - silent
    return look_again(left) if view.agent_is_fresh else _WHILE_SILENT


def _status(inventory: Node, view: NodeView, now: datetime) -> NodeStatus:
    around = fitness.Surroundings(
        machine=view.machine,
        said=inventory.spec,
        agent_is_fresh=view.agent_is_fresh,
        low_water_percent=view.config.disks.low_water_percent,
        stuck=_stuck(inventory),
    )
    generation = inventory.metadata.generation
    spaces = [space for group in view.groups for space in disks_of(group)]
    disks = {space.name: _disk(inventory, space, view, around, now) for space in spaces}
    verdicts = (
        _node_ready(spaces, around),
        _node_schedulable(disks, around),
        _orphans(inventory, view),
        KernelStuck.COMMANDS_HANG(around.stuck) if around.stuck else KernelStuck.NOTHING_HANGS(),
    )
    return replace(
        inventory.status,
        observed_generation=generation,
        zone="" if view.machine is None else view.machine.metadata.labels.get(labels.ZONE, ""),
        disk_status=disks,
        conditions=conditions.merge(inventory.status.conditions, verdicts, now=now, generation=generation),
    )


def _disk(inventory: Node, space: Space, view: NodeView, around: fitness.Surroundings, now: datetime) -> DiskStatus:
    known = inventory.status.disk_status.get(space.name, _UNKNOWN_DISK)
    found = measured(known, space, around.said.disks.get(space.name))
    drives = tuple(drive for name in found.drives if (drive := view.drives.get(name)) is not None)
    verdicts = fitness.judge(space, drives, around)
    merged = conditions.merge(known.conditions, verdicts, now=now, generation=inventory.metadata.generation)
    if merged is not known.conditions:
        found = replace(found, conditions=merged)
    if found == known:
        return known
    # The ledger is where this number lives; here it is brought up to date only along with something else.
    return replace(found, storage_scheduled=view.scheduled.get(space.uuid, Bytes(0)))


def _node_ready(spaces: list[Space], around: fitness.Surroundings) -> Verdict:
    if not around.agent_is_fresh:
        return Ready.AGENT_NOT_READY()
    if not spaces:
        return Ready.NO_DISKS()
    not_ready = [
        verdict for space in spaces if (verdict := fitness.readiness(space, around)).status is not ConditionStatus.TRUE
    ]
    if not_ready:
        return Ready.VOLUME_GROUP_NOT_READY("; ".join(dict.fromkeys(verdict.message for verdict in not_ready)))
    return Ready.READY()


def _node_schedulable(disks: dict[str, DiskStatus], around: fitness.Surroundings) -> Verdict:
    """The node takes something new if any of its disks does."""
    if not around.said.allow_scheduling:
        return Schedulable.DISABLED("allowScheduling of the node is false")
    against = fitness.cordoned(around.machine) or fitness.kernel_stuck(around)
    if against is not None:
        return against
    found = {name: conditions.find(disk.conditions, Schedulable) for name, disk in disks.items()}
    if any(condition is not None and condition.status is ConditionStatus.TRUE for condition in found.values()):
        return Schedulable.SCHEDULABLE("At least one disk takes new entries.")
    why = "; ".join(f"{name}: {condition.reason}" for name, condition in found.items() if condition is not None)
    return Schedulable.DISK_NOT_READY(why or "the node has no disks")


def _inventory_key(name: str) -> tuple[Key]:
    return (Key(names.NAMESPACE, name),)


def _of_machine(machine: core.Node) -> Iterable[Key]:
    return _inventory_key(machine.name)


def _of_group(group: LVMVolumeGroup) -> Iterable[Key]:
    return _inventory_key(group.spec.local.node_name)


def _of_drive(drive: Drive) -> Iterable[Key]:
    return _inventory_key(drive.spec.node_id)


def _of_lease(lease: Lease) -> Iterable[Key]:
    if lease.namespace == names.NAMESPACE and lease.name.startswith(_LEASE_PREFIX):
        return _inventory_key(lease.name.removeprefix(_LEASE_PREFIX))
    return ()


def _is_no_renewal(old: Lease | None, new: Lease | None) -> bool:
    return old is None or new is None or old.spec.holder_identity != new.spec.holder_identity


def _own(inventory: Node) -> Iterable[Key]:
    return _inventory_key(inventory.name) if inventory.namespace == names.NAMESPACE else ()


INVENTORY_CONTROLLER = Controller(
    name="inventory",
    watches=(
        Watch(Node, _own),
        Watch(core.Node, _of_machine),
        Watch(LVMVolumeGroup, _of_group),
        Watch(Drive, _of_drive),
        Watch(Lease, _of_lease, when=_is_no_renewal),
        Watch(DiskSchedule, no_keys),
        Watch(LVMLogicalVolume, no_keys),
        Watch(ClusterConfig, no_keys),
    ),
    indexes=(Index(LVMVolumeGroup, BY_NODE, lambda group: (group.spec.local.node_name,)), groups.PIECES_INDEX),
    freshness=(Lease,),
    observe=observe,
    decide=decide,
)
