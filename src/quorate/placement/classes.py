"""The controller of ReplicatedStorageClasses: whether volumes of a class can be made, and what they get.

A configuration is published once the class makes sense and its pool has enough nodes for one volume. It then stays
while the class says the same: that nodes are missing later is told by conditions, and by the volumes that find no
place. When the class says something else, the old one is withdrawn, and the new one published under the same terms.
Volumes that exist keep the copy they have (``NewVolumesOnly``).

How many volumes there are is for people, and counted every so often: woken by each of 10,000 volumes, the controller
would count up to that many each time. One that has just come is left to the next count: it is not what it will be.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random
from typing import Final

from quorate.api import conditions
from quorate.api.conditions import Verdict
from quorate.api.conditions import rsp as pool_conditions
from quorate.api.conditions.rsc import ConfigurationRolledOut, Ready, StoragePoolReady
from quorate.api.meta import ConditionStatus
from quorate.api.storage.configuration import Configuration
from quorate.api.storage.rsc import (
    ReplicatedStorageClass,
    ReplicatedStorageClassStatus,
    StorageClassPhase,
    StorageClassVolumes,
)
from quorate.api.storage.rsp import ReplicatedStoragePool
from quorate.api.storage.rv import ReplicatedVolume
from quorate.api.struct import replace
from quorate.engine import Controller, Index, Key, PatchStatus, Plan, PlanEvent, Reader, Watch, no_keys
from quorate.placement.sufficiency import configuration_of, contradiction, shortage

#: ReplicatedVolumes by class.
BY_CLASS: Final = "counted by class"
#: Seconds between two counts of the volumes.
COUNT_EVERY: Final = 30.0
#: Volumes are counted from this age on, in seconds.
COUNTED_AFTER: Final = 10.0

_PHASES: Final[Mapping[str, StorageClassPhase]] = {
    Ready.READY.code: StorageClassPhase.READY,
    Ready.WAITING_FOR_STORAGE_POOL.code: StorageClassPhase.WAITING_FOR_STORAGE_POOL,
    Ready.INSUFFICIENT_ELIGIBLE_NODES.code: StorageClassPhase.INSUFFICIENT_NODES,
    Ready.INVALID_CONFIGURATION.code: StorageClassPhase.INVALID_CONFIGURATION,
}


@dataclass(frozen=True, slots=True)
class ClassView:
    """A class, its pool and its volumes."""

    storage_class: ReplicatedStorageClass
    pool: ReplicatedStoragePool | None
    volumes: tuple[ReplicatedVolume, ...]


def observe(reader: Reader, key: Key) -> ClassView | None:
    """Gather what bears on a class."""
    found = reader.get(ReplicatedStorageClass, key.name)
    if found is None:
        return None
    pool = reader.get(ReplicatedStoragePool, found.spec.storage_pool)
    return ClassView(found, pool, reader.find(ReplicatedVolume, BY_CLASS, found.name))


def decide(view: ClassView, now: datetime, _: Random) -> Plan:
    """Judge the class, publish its configuration, count its volumes."""
    found, pool = view.storage_class, view.pool
    intended = configuration_of(found.spec)
    pool_ready = judge_pool(found, pool)
    ready = judge(intended, pool, pool_ready)
    status = _published(found, intended, ready)
    volumes = count((each for each in view.volumes if _has_lasted(each, now)), status.configuration, pool)
    generation = found.metadata.generation
    verdicts = (ready, pool_ready, _rolled_out(volumes))
    status = replace(
        status,
        observed_generation=generation,
        phase=StorageClassPhase.TERMINATING if found.deleting else _PHASES[ready.reason],
        message="" if ready.status is ConditionStatus.TRUE else ready.message,
        storage_pool_name=found.spec.storage_pool,
        storage_pool_based_on_generation=pool.metadata.generation if pool is not None else 0,
        storage_pool_eligible_nodes_revision=pool.status.eligible_nodes_revision if pool is not None else 0,
        volumes=volumes,
        conditions=conditions.merge(found.status.conditions, verdicts, now=now, generation=generation),
    )
    before = conditions.find(found.status.conditions, Ready)
    told = before is not None and before.reason == ready.reason
    warning = ready.status is not ConditionStatus.TRUE
    return Plan(
        status=PatchStatus(found, replace(found, status=status)),
        events=() if told else (PlanEvent(found, ready.reason, ready.message, warning=warning),),
        requeue_after=COUNT_EVERY,
    )


def judge_pool(found: ReplicatedStorageClass, pool: ReplicatedStoragePool | None) -> Verdict:
    """Whether the pool is ready, in the pool's own words."""
    if pool is None:
        return StoragePoolReady.STORAGE_POOL_NOT_FOUND(f"there is no ReplicatedStoragePool {found.spec.storage_pool}")
    ready = conditions.find(pool.status.conditions, pool_conditions.Ready)
    if ready is None:
        return StoragePoolReady.PENDING()
    return StoragePoolReady.READY() if ready.status is ConditionStatus.TRUE else StoragePoolReady.mirror(ready)


def judge(intended: Configuration, pool: ReplicatedStoragePool | None, pool_ready: Verdict) -> Verdict:
    """Whether volumes of the class can be made: does it make sense, is there a pool, does it have enough."""
    wrong = contradiction(intended, pool.spec if pool is not None else None)
    if wrong is not None:
        return Ready.INVALID_CONFIGURATION(wrong)
    if pool is None or pool_ready.status is not ConditionStatus.TRUE:
        return Ready.WAITING_FOR_STORAGE_POOL(
            f"ReplicatedStoragePool {intended.replicated_storage_pool_name}: {pool_ready.message}"
        )
    lacking = shortage(intended, pool.status.eligible_nodes)
    return Ready.INSUFFICIENT_ELIGIBLE_NODES(lacking) if lacking is not None else Ready.READY()


def count(
    volumes: Iterable[ReplicatedVolume], configuration: Configuration | None, pool: ReplicatedStoragePool | None
) -> StorageClassVolumes:
    """How many volumes there are, by whether they live by this configuration and where the pool still lists them."""
    total = pending = aligned = astray = 0
    listed = {node.node_name for node in pool.status.eligible_nodes} if pool is not None else set()
    for volume in volumes:
        total += 1
        status = volume.status
        pending += status.configuration is None
        aligned += status.configuration is not None and status.configuration == configuration
        astray += any(member.node_name not in listed for member in status.datamesh.members)
    return StorageClassVolumes(
        total=total,
        pending_observation=pending,
        aligned=aligned,
        stale_configuration=total - pending - aligned,
        in_conflict_with_eligible_nodes=astray,
    )


def _has_lasted(volume: ReplicatedVolume, now: datetime) -> bool:
    created = volume.metadata.creation_timestamp
    return created is None or now - created >= timedelta(seconds=COUNTED_AFTER)


def _published(found: ReplicatedStorageClass, intended: Configuration, ready: Verdict) -> ReplicatedStorageClassStatus:
    """The status with the right configuration in it.

    Its generation is that of the class when it first said so: a change of anything else makes no volume outdated.
    """
    status = found.status
    if status.configuration == intended:
        return status
    if ready.status is not ConditionStatus.TRUE:
        return replace(status, configuration=None, configuration_generation=0)
    return replace(status, configuration=intended, configuration_generation=found.metadata.generation)


def _rolled_out(volumes: StorageClassVolumes) -> Verdict:
    if not volumes.stale_configuration:
        return ConfigurationRolledOut.ROLLED_OUT_TO_ALL_VOLUMES()
    return ConfigurationRolledOut.CONFIGURATION_ROLLOUT_DISABLED(
        f"{volumes.stale_configuration} of {volumes.total} volumes keep an older configuration"
    )


def _of_pool(pool: ReplicatedStoragePool) -> Iterable[Key]:
    """A pool says who uses it; a class that it does not name yet has just been woken itself."""
    return [Key("", name) for name in pool.status.used_by.replicated_storage_class_names]


CLASSES = Controller(
    name="storage-classes",
    watches=(
        Watch(ReplicatedStorageClass),
        Watch(ReplicatedStoragePool, _of_pool),
        Watch(ReplicatedVolume, no_keys),
    ),
    indexes=(Index(ReplicatedVolume, BY_CLASS, lambda volume: (volume.spec.replicated_storage_class_name,)),),
    observe=observe,
    decide=decide,
)
