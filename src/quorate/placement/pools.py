"""The controller of ReplicatedStoragePools: which nodes each offers, whether it can be used, and what has yet to leave.

A pass is about all pools at once. What concerns them (a node, a volume group, an agent) does not say which pools it
belongs to, and there are few. It is woken by what changes a list, never by the mere renewal of a Lease: with a
thousand agents that would be a hundred passes a second. When the next one could fall silent, or a grace runs out, it
looks by itself; an agent that comes back is heard by the gap in its renewals, at the latest one lease later.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from random import Random
from typing import Final

from quorate.api import annotation_keys, conditions, core, longhorn, names
from quorate.api.cluster_config import ClusterConfig, ClusterConfigSpec
from quorate.api.conditions import Verdict
from quorate.api.conditions.rsp import Ready, VolumeGroupsLeft
from quorate.api.core import Lease
from quorate.api.duration import Duration
from quorate.api.meta import ConditionStatus, NodeName, Resource
from quorate.api.storage.lvg import LVMVolumeGroup
from quorate.api.storage.rsc import ReplicatedStorageClass
from quorate.api.storage.rsp import (
    MOST_LEAVING,
    LeavingVolumeGroup,
    PoolUsers,
    ReplicatedStoragePool,
    StoragePoolPhase,
)
from quorate.api.storage.rv import ReplicatedVolume
from quorate.api.storage.rvr import ReplicatedVolumeReplica
from quorate.api.struct import replace
from quorate.engine import Controller, Index, Key, PatchStatus, Plan, PlanEvent, Reader, Watch, look_again, no_keys
from quorate.placement import selector
from quorate.placement.eligibility import Eligible, Machine, eligible
from quorate.placement.grace import grace_period

#: All pools are one key.
THE_POOLS: Final = Key("", "pools")
_LEASE_PREFIX: Final = names.agent_lease(NodeName(""))
#: Nobody is looked at again sooner than after so many seconds.
_SOONEST: Final = 0.5
#: How many names a message holds.
_NAMED: Final = 5
#: ReplicatedVolumeReplicas by the volume group that they are on.
COPIES_ON: Final = "copies on a volume group"
#: Seconds between two counts of what has yet to leave a volume group.
COUNT_EVERY: Final = 5.0

#: A volume group, and its thin pool if it is of one.
Disk = tuple[str, str | None]

_PHASES: Final[Mapping[str, StoragePoolPhase]] = {
    Ready.READY.code: StoragePoolPhase.READY,
    Ready.LVM_VOLUME_GROUP_NOT_FOUND.code: StoragePoolPhase.WAITING_FOR_LVM_VOLUME_GROUPS,
    Ready.INVALID_LVM_VOLUME_GROUP.code: StoragePoolPhase.INVALID_CONFIGURATION,
    Ready.INVALID_NODE_LABEL_SELECTOR.code: StoragePoolPhase.INVALID_CONFIGURATION,
}


@dataclass(frozen=True, slots=True)
class Ground:
    """All pools, and what they are made of."""

    pools: tuple[ReplicatedStoragePool, ...]
    classes: tuple[ReplicatedStorageClass, ...]
    groups: Mapping[str, LVMVolumeGroup]
    machines: tuple[Machine, ...]
    config: ClusterConfigSpec
    #: By pool: the disks that were taken out of it, and the names of the copies of its volumes that are still there.
    leaving: Mapping[str, Mapping[Disk, tuple[str, ...]]] = field(default_factory=dict)

    @property
    def patience(self) -> float:
        """Seconds of silence after which an agent does not count."""
        return self.config.agent.lease_duration.seconds


def observe(reader: Reader, _: Key) -> Ground | None:
    """Gather everything."""
    pools = reader.list(ReplicatedStoragePool)
    if not pools:
        return None
    config = reader.get(ClusterConfig, names.CLUSTER)
    wanted = {member.name for pool in pools for member in pool.spec.lvm_volume_groups}
    found = {name: reader.get(LVMVolumeGroup, name) for name in wanted}
    unclaimed = frozenset(group.name for group in reader.list(LVMVolumeGroup)) - wanted
    return Ground(
        pools=pools,
        classes=reader.list(ReplicatedStorageClass),
        groups={name: group for name, group in found.items() if group is not None},
        machines=tuple(_machine(reader, node) for node in reader.list(core.Node)),
        config=config.spec if config is not None else ClusterConfigSpec(),
        leaving={pool.name: leaving for pool in pools if (leaving := _leaving(reader, pool, unclaimed))},
    )


def _leaving(reader: Reader, pool: ReplicatedStoragePool, unclaimed: frozenset[str]) -> Mapping[Disk, tuple[str, ...]]:
    """What was offered at the last look, or was leaving then, and is not in the pool any more.

    A node that was not listed then, being away, offered nothing: so whatever is in no pool is looked at as well.
    """
    offered = {(each.name, each.thin_pool_name) for each in pool.spec.lvm_volume_groups}
    known = {(each.name, each.thin_pool_name) for each in pool.status.leaving_volume_groups}
    for node in pool.status.eligible_nodes:
        known |= {(each.name, each.thin_pool_name) for each in node.lvm_volume_groups}
    found: dict[Disk, list[str]] = {disk: [] for disk in known - offered}
    for group in unclaimed.union(name for name, _ in found):
        for disk, replica in _copies(reader, pool, group):
            if disk not in offered:
                found.setdefault(disk, []).append(replica)
    return {disk: tuple(found[disk]) for disk in sorted(found, key=_words)}


def _copies(reader: Reader, pool: ReplicatedStoragePool, group: str) -> Iterator[tuple[Disk, str]]:
    for replica in reader.find(ReplicatedVolumeReplica, COPIES_ON, group):
        volume = reader.get(ReplicatedVolume, replica.spec.replicated_volume_name)
        configuration = volume.status.configuration if volume is not None else None
        if configuration is not None and configuration.replicated_storage_pool_name == pool.name:
            yield (group, replica.spec.lvm_volume_group_thin_pool_name), replica.name


def _machine(reader: Reader, node: core.Node) -> Machine:
    name = names.agent_lease(NodeName(node.name))
    lease = reader.get(Lease, name, names.NAMESPACE)
    inventory = reader.get(longhorn.Node, node.name, names.NAMESPACE)
    stuck = inventory is not None and bool(inventory.status.stuck_commands)
    if lease is None or not lease.spec.holder_identity:
        return Machine(node, None, has_agent=lease is not None, kernel_stuck=stuck)
    return Machine(node, reader.silent_for(Lease, name, names.NAMESPACE), has_agent=True, kernel_stuck=stuck)


def decide(ground: Ground, now: datetime, _: Random) -> Plan:
    """Report every pool, and look again when a list could change by itself."""
    writes: list[PatchStatus] = []
    events: list[PlanEvent] = []
    deadlines = [*_until_silent(ground)]
    for pool in ground.pools:
        users = [known for known in ground.classes if known.spec.storage_pool == pool.name]
        listed = _eligible(pool, users, ground, now)
        if listed.look_again_in is not None:
            deadlines.append(listed.look_again_in)
        verdict = judge(pool, ground.groups)
        before = conditions.find(pool.status.conditions, Ready)
        if before is None or before.reason != verdict.reason:
            events.append(PlanEvent(pool, verdict.reason, verdict.message, warning=verdict.reason != Ready.READY.code))
        leaving = ground.leaving.get(pool.name, {})
        left = judge_leaving(leaving)
        if left.status is ConditionStatus.FALSE:
            deadlines.append(COUNT_EVERY)
        events += _told_of_leaving(pool, left, leaving)
        writes.append(_report(pool, users, listed, (verdict, left), leaving, now))
    soonest = max(_SOONEST, min(deadlines)) if deadlines else None
    return Plan(writes=tuple(writes), events=tuple(events), requeue_after=soonest)


def judge(pool: ReplicatedStoragePool, groups: Mapping[str, LVMVolumeGroup]) -> Verdict:
    """Whether a pool is what it says. Nodes are offered all the same, of the groups that are there."""
    wrong = selector.flaw(pool.spec.node_label_selector)
    if wrong is not None:
        return Ready.INVALID_NODE_LABEL_SELECTOR(f"spec.nodeLabelSelector: {wrong}")
    missing = [member.name for member in pool.spec.lvm_volume_groups if member.name not in groups]
    if missing:
        return Ready.LVM_VOLUME_GROUP_NOT_FOUND(f"LVMVolumeGroups that do not exist: {_some(missing)}")
    unfit = [
        names.disk(member.name, member.thin_pool_name)
        for member in pool.spec.lvm_volume_groups
        if member.thin_pool_name is not None and not _has_pool(groups[member.name], member.thin_pool_name)
    ]
    if unfit:
        return Ready.INVALID_LVM_VOLUME_GROUP(f"thin pools that do not exist: {_some(unfit)}")
    return Ready.READY()


def judge_leaving(leaving: Mapping[Disk, tuple[str, ...]]) -> Verdict:
    """Whether anything is still where it should not be."""
    held = {disk: copies for disk, copies in leaving.items() if copies}
    if not held:
        return VolumeGroupsLeft.LEFT()
    said = [f"{_words(disk)}: {len(copies)} ({_some(list(copies))})" for disk, copies in held.items()]
    return VolumeGroupsLeft.LEAVING(f"copies that are still to be moved from what is not in the pool: {_some(said)}")


def _told_of_leaving(
    pool: ReplicatedStoragePool, verdict: Verdict, leaving: Mapping[Disk, tuple[str, ...]]
) -> Iterator[PlanEvent]:
    """That they begin to leave, and that a group may be used for something else now."""
    known = {(each.name, each.thin_pool_name) for each in pool.status.leaving_volume_groups}
    if any(copies and disk not in known for disk, copies in leaving.items()):
        yield PlanEvent(pool, verdict.reason, verdict.message)
    done = [_words(disk) for disk in known if not leaving.get(disk, ("it is in the pool again",))]
    if done:
        message = f"Nothing of the pool is left on {_some(sorted(done))}, which was taken out of it."
        yield PlanEvent(pool, VolumeGroupsLeft.LEFT.code, message)


def _words(disk: Disk) -> str:
    return names.disk(disk[0], disk[1] or "")


def _eligible(
    pool: ReplicatedStoragePool, users: Iterable[ReplicatedStorageClass], ground: Ground, now: datetime
) -> Eligible:
    if selector.flaw(pool.spec.node_label_selector) is not None:
        return Eligible(())
    return eligible(
        pool.spec,
        ground.groups,
        ground.machines,
        grace=_longest_grace(pool, users, ground.config),
        patience=ground.patience,
        now=now,
    )


def _longest_grace(
    pool: ReplicatedStoragePool, users: Iterable[ReplicatedStorageClass], config: ClusterConfigSpec
) -> Duration:
    """A node is listed for as long as anybody who uses the pool still waits for it to come back."""
    own = grace_period(config, pool.spec.eligible_nodes_policy)
    graces = (grace_period(config, user.spec.eligible_nodes_policy, pool.spec.eligible_nodes_policy) for user in users)
    return max([own, *graces])


def _report(
    pool: ReplicatedStoragePool,
    users: Iterable[ReplicatedStorageClass],
    listed: Eligible,
    verdicts: tuple[Verdict, Verdict],
    leaving: Mapping[Disk, tuple[str, ...]],
    now: datetime,
) -> PatchStatus:
    status, generation = pool.status, pool.metadata.generation
    used_by = tuple(sorted(user.name for user in users))
    ready, left = verdicts
    said = ["" if ready.reason == Ready.READY.code else ready.message]
    said.append("" if left.status is ConditionStatus.TRUE else left.message)
    message = " ".join(filter(None, said))
    if listed.beyond:
        message = f"{message} {listed.beyond} more nodes fit than the {len(listed.nodes)} that can be listed.".strip()
    changed = listed.nodes != status.eligible_nodes
    if changed:
        status = replace(
            status, eligible_nodes=listed.nodes, eligible_nodes_revision=status.eligible_nodes_revision + 1
        )
    status = replace(
        status,
        observed_generation=generation,
        phase=_PHASES[ready.reason],
        message=message,
        leaving_volume_groups=tuple(
            LeavingVolumeGroup(name=name, thin_pool_name=thin_pool, replicas=len(copies))
            for (name, thin_pool), copies in leaving.items()
            if copies
        )[:MOST_LEAVING],
        used_by=PoolUsers(replicated_storage_class_names=used_by),
        conditions=conditions.merge(status.conditions, verdicts, now=now, generation=generation),
    )
    # The revision is counted up from what was observed.
    return PatchStatus(pool, replace(pool, status=status), if_unchanged=changed)


def _until_silent(ground: Ground) -> Iterable[float]:
    """Seconds until an agent could fall silent, and, for those that are, until they are looked at again."""
    for machine in ground.machines:
        if machine.agent_silent_for is not None:
            left = ground.patience - machine.agent_silent_for
            yield look_again(left) if left > 0 else ground.patience


def _has_pool(group: LVMVolumeGroup, name: str) -> bool:
    return name in [pool.name for pool in group.spec.thin_pools] + [pool.name for pool in group.status.thin_pools]


def _some(found: list[str]) -> str:
    named = ", ".join(found[:_NAMED])
    return f"{named} and {len(found) - _NAMED} more" if len(found) > _NAMED else named


# What wakes it.


def _the_pools(_: Resource) -> Iterable[Key]:
    return (THE_POOLS,)


def _of_agent(lease: Lease) -> Iterable[Key]:
    ours = lease.namespace == names.NAMESPACE and lease.name.startswith(_LEASE_PREFIX)
    return (THE_POOLS,) if ours else ()


def _node_changed(old: core.Node | None, new: core.Node | None) -> bool:
    return old is None or new is None or _of_node(old) != _of_node(new)


def _of_node(node: core.Node) -> tuple[object, ...]:
    ready = [(found.status, found.last_transition_time) for found in node.status.conditions if found.type == "Ready"]
    evacuate = node.metadata.annotations.get(annotation_keys.EVACUATE)
    return ready, node.spec.unschedulable, evacuate, node.metadata.labels, node.deleting


def _is_stuck_or_not(old: longhorn.Node | None, new: longhorn.Node | None) -> bool:
    was, now = (each is not None and bool(each.status.stuck_commands) for each in (old, new))
    return was != now


def _group_changed(old: LVMVolumeGroup | None, new: LVMVolumeGroup | None) -> bool:
    return old is None or new is None or _of_group(old) != _of_group(new)


def _of_group(group: LVMVolumeGroup) -> tuple[object, ...]:
    pools = [(pool.name, pool.ready) for pool in group.status.thin_pools]
    marked = annotation_keys.UNSCHEDULABLE in group.metadata.annotations
    return group.status.phase, pools, marked, group.spec.thin_pools, group.deleting


def _class_changed(old: ReplicatedStorageClass | None, new: ReplicatedStorageClass | None) -> bool:
    return old is None or new is None or old.spec != new.spec


def _agent_changed(old: Lease | None, new: Lease | None) -> bool:
    """It came, went, changed hands, or is back after a silence: the gap between two times of one clock says so."""
    if old is None or new is None or old.spec.holder_identity != new.spec.holder_identity:
        return True
    before, after, patience = old.spec.renew_time, new.spec.renew_time, new.spec.lease_duration_seconds
    if before is None or after is None or patience is None:
        return False
    return (datetime.fromisoformat(after) - datetime.fromisoformat(before)).total_seconds() > patience


POOLS = Controller(
    name="storage-pools",
    watches=(
        Watch(ReplicatedStoragePool, _the_pools),
        Watch(ReplicatedStorageClass, _the_pools, when=_class_changed),
        Watch(LVMVolumeGroup, _the_pools, when=_group_changed),
        Watch(core.Node, _the_pools, when=_node_changed),
        Watch(longhorn.Node, _the_pools, when=_is_stuck_or_not),
        Watch(Lease, _of_agent, when=_agent_changed),
        Watch(ClusterConfig, _the_pools),
        Watch(ReplicatedVolume, no_keys),
        Watch(ReplicatedVolumeReplica, no_keys),
    ),
    indexes=(
        Index(ReplicatedVolumeReplica, COPIES_ON, lambda replica: filter(None, (replica.spec.lvm_volume_group_name,))),
    ),
    freshness=(Lease,),
    observe=observe,
    decide=decide,
    workers=1,
)
