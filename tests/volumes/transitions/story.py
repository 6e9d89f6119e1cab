"""A volume on the lab's kernel, with a controller and agents as small as can be: they carry out what is decided.

Everything that decides is the real thing: ``advance`` on the one side, the rendered ``.res`` files and the lab's
drbdadm on the other. In between there is no API server: objects are attributes, and a pass is a call.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from typing import ClassVar

from quorate.api.core import Node
from quorate.api.core.node import NodeCondition, NodeStatus
from quorate.api.meta import NodeName, ObjectMeta
from quorate.api.names import logical_volume, replica, replica_id
from quorate.api.quantity import Quantity
from quorate.api.scalars import ReplicaName
from quorate.api.secret import Secret
from quorate.api.storage import LVMLogicalVolume, ReplicatedVolume, ReplicatedVolumeReplica
from quorate.api.storage.configuration import Configuration, Replication, Topology, VolumeAccess
from quorate.api.storage.datamesh import Datamesh, Member, PendingTransition, Transition
from quorate.api.storage.drbd import (
    Address,
    CommandError,
    DrbdConfig,
    DrbdErrors,
    ReplicaDrbd,
    ReplicaType,
    SharedSecretAlgorithm,
)
from quorate.api.storage.llv import (
    LogicalVolumePhase,
    LogicalVolumeType,
    LVMLogicalVolumeSpec,
    LVMLogicalVolumeStatus,
)
from quorate.api.storage.rv import (
    AttachRequest,
    AttachSource,
    ReplicatedVolumeSpec,
    ReplicatedVolumeStatus,
    VolumeDrbd,
    VolumeDrbdConfig,
)
from quorate.api.storage.rvr import ReplicatedVolumeReplicaSpec, ReplicatedVolumeReplicaStatus
from quorate.api.struct import replace
from quorate.placement.layout import LEVELS
from quorate.volumes.attach.yielding import yielded
from quorate.volumes.datamesh import config_of
from quorate.volumes.transitions import advance
from quorate.volumes.transitions.rules import Locks, no_locks
from quorate.volumes.view import NodeView, ReplicaView, VolumeView
from quorate.volumes.volume.formation.members import member_of

from .machines import DISK, FILE, MINOR, TB, VOLUME, A, D, Machines

__all__ = ["DISK", "FILE", "MINOR", "START", "TB", "VOLUME", "A", "D", "Machines", "Story", "Written"]

START = datetime(2026, 11, 16, tzinfo=UTC)
_PUBLISHED = AttachSource.PUBLISH_ON


def configuration(level: Replication) -> Configuration:
    layout = LEVELS[level]
    return Configuration(
        replicated_storage_pool_name="pool",
        replication=level,
        topology=Topology.IGNORED,
        volume_access=VolumeAccess.PREFERABLY_LOCAL,
        failures_to_tolerate=layout.failures_to_tolerate,
        guaranteed_minimum_data_redundancy=layout.data_redundancy,
    )


def address(number: int) -> Address:
    return Address(ipv4=f"10.0.0.{number}", port=7000)


def replica_of(number: int, kind: ReplicaType) -> ReplicatedVolumeReplica:
    """Scheduled, with an address and a disk: all that it takes to join."""
    return ReplicatedVolumeReplica(
        metadata=ObjectMeta(name=replica(VOLUME, number)),
        spec=ReplicatedVolumeReplicaSpec(
            replicated_volume_name=VOLUME,
            type=kind,
            node_name=NodeName(f"n{number}"),
            lvm_volume_group_name="vg0" if kind is D else None,
        ),
        status=ReplicatedVolumeReplicaStatus(
            drbd=ReplicaDrbd(config=DrbdConfig(address=address(number), disk=DISK)),
        ),
    )


def _disk(found: ReplicatedVolumeReplica) -> LVMLogicalVolume:
    """Grown, and zeros where it has."""
    size = Quantity("48Mi")
    return LVMLogicalVolume(
        metadata=ObjectMeta(name=logical_volume(found.name, "vg0", "")),
        spec=LVMLogicalVolumeSpec(
            actual_lv_name_on_the_node="v",
            type=LogicalVolumeType.THICK,
            size=size,
            lvm_volume_group_name="vg0",
        ),
        status=LVMLogicalVolumeStatus(phase=LogicalVolumePhase.CREATED, actual_size=size, grown_zero=True),
    )


def volume_of(level: Replication) -> ReplicatedVolume:
    shared = VolumeDrbdConfig(
        device_minor=MINOR,
        shared_secret=Secret("a secret"),
        shared_secret_alg=SharedSecretAlgorithm.SHA256,
        quorum_minimum_redundancy=LEVELS[level].minimum_redundancy,
        quorum=LEVELS[level].majority,
    )
    return ReplicatedVolume(
        metadata=ObjectMeta(name=VOLUME),
        spec=ReplicatedVolumeSpec(size=Quantity("32Mi"), replicated_storage_class_name="class"),
        status=ReplicatedVolumeStatus(
            configuration=configuration(level), drbd=VolumeDrbd(config=shared), datamesh_revision=1
        ),
    )


@dataclass(frozen=True)
class Written:
    """One write of a step: what members that have applied it know, and those that have not."""

    before: ReplicatedVolumeStatus
    after: ReplicatedVolumeStatus
    #: Ids of members whose agents were silent or could do nothing.
    silent: frozenset[int]
    #: Under way when it was written, as it was then.
    transition: Transition | None
    #: The machines as they were, before anybody had applied it.
    machines: Machines
    #: What was seen when it was decided.
    view: VolumeView

    @property
    def step(self) -> str:
        """Such as ``AddReplica/Show``."""
        if self.transition is None:
            return "readmission"
        active = [each.name for each in self.transition.steps if each.status.value == "Active"]
        return f"{self.transition.type.value}/{active[0] if active else '-'}"


@dataclass
class Story:
    """A volume that lives."""

    level: Replication
    kinds: list[ReplicaType]
    #: Nodes that exist beside those of the first members.
    spare: int = 2
    #: What the broker would say of a member.
    locks: Locks = no_locks
    #: Whether replicas are deleted as is asked for. Otherwise only this story's teller deletes them.
    obedient: bool = False
    machines: Machines = field(init=False)
    rv: ReplicatedVolume = field(init=False)
    replicas: dict[ReplicaName, ReplicatedVolumeReplica] = field(default_factory=dict)
    silent: set[int] = field(default_factory=set)
    not_ready: set[int] = field(default_factory=set)
    gone: set[int] = field(default_factory=set)
    #: Alive and out of touch, and their agents can do nothing that they are told but end it.
    stuck: set[int] = field(default_factory=set)
    #: Whether the disks have grown.
    extended: bool = False
    written: list[Written] = field(default_factory=list)
    #: The controller dies after every write, having told only some of the members of it.
    halting: ClassVar[Random | None] = None

    def __post_init__(self) -> None:
        self.machines = Machines(len(self.kinds) + self.spare)
        self.rv = volume_of(self.level)
        for number, kind in enumerate(self.kinds):
            self.add(number, kind)
        view = self.view()
        members = tuple(member_of(view, each) for each in view.replicas)
        self.rv = replace(self.rv, status=replace(self.rv.status, datamesh=Datamesh(members=members)))
        self.agents()
        self.machines.bootstrap(min(number for number, kind in enumerate(self.kinds) if kind is D))
        self.agents()

    # What the world does.

    def add(self, number: int, kind: ReplicaType) -> None:
        self.replicas[replica(VOLUME, number)] = replica_of(number, kind)

    def delete(self, number: int) -> None:
        found = self.replicas[replica(VOLUME, number)]
        self.replicas[replica(VOLUME, number)] = replace(
            found, metadata=replace(found.metadata, deletion_timestamp=self.now)
        )

    def change(self, number: int, kind: ReplicaType) -> None:
        found = self.replicas[replica(VOLUME, number)]
        group = "vg0" if kind is D else None
        drbd = replace(found.status.drbd, config=replace(found.status.drbd.config, disk=DISK))
        self.replicas[replica(VOLUME, number)] = replace(
            found,
            spec=replace(found.spec, type=kind, lvm_volume_group_name=group),
            status=replace(found.status, drbd=drbd),
        )

    def attach(self, number: int, attached: bool = True) -> None:
        """Put the node into the queue or take it out, and wait until that is done."""
        self.unask(number)
        if attached:
            self.ask(number)
        self.settle()

    def ask(self, number: int) -> None:
        """Put the node into the queue, and wait for nothing."""
        node = NodeName(f"n{number}")
        self._queue(*self.rv.status.attach_requests, AttachRequest(node_name=node, since=self.now, source=_PUBLISHED))

    def unask(self, number: int) -> None:
        """Take the node out of the queue, and wait for nothing."""
        self._queue(*(each for each in self.rv.status.attach_requests if each.node_name != f"n{number}"))

    def _queue(self, *queue: AttachRequest) -> None:
        spec = replace(self.rv.spec, publish_on=tuple(each.node_name for each in queue))
        self.rv = replace(self.rv, spec=spec, status=replace(self.rv.status, attach_requests=queue))

    def grow(self) -> None:
        """Every disk has grown, more is asked for, and the volume grows."""
        self.ask_to_grow()
        self.settle()

    def ask_to_grow(self) -> None:
        """Every disk has grown, and more is asked for."""
        shown = next(status.devices[0].size for status in self.machines.statuses().values() if status.devices[0].size)
        self.machines.extend()
        self.extended = True
        datamesh = replace(self.rv.status.datamesh, size=Quantity.of_bytes(shown * 1024))
        spec, size = replace(self.rv.spec, size=Quantity("40Mi")), Quantity("40Mi")
        status = replace(self.rv.status, datamesh=datamesh, growing_to=size)
        self.rv = replace(self.rv, spec=spec, status=status)

    def lose(self, number: int, *, alive: bool = False) -> None:
        """The node goes dark: without power, or alive and out of everybody's reach."""
        self.silent.add(number)
        if alive:
            self.machines.cut([{number}, set(range(len(self.machines.hosts))) - {number}])
        else:
            self.machines.hosts[number].power_off()
        self.machines.wait(8)
        self.agents()

    def stick(self, number: int) -> None:
        """Its links are gone and its agent can do nothing: its disk may be dead."""
        self.stuck.add(number)
        self.machines.cut([{number}, set(range(len(self.machines.hosts))) - {number}])
        self.agents()

    def annotate(self, **annotations: str) -> None:
        said = {f"storage.deckhouse.io/{key.replace('_', '-')}": value for key, value in annotations.items()}
        self.rv = replace(self.rv, metadata=replace(self.rv.metadata, annotations=said))

    # What is seen of it.

    @property
    def now(self) -> datetime:
        return START + timedelta(seconds=self.machines.world.now)

    @property
    def members(self) -> tuple[Member, ...]:
        return self.rv.status.datamesh.members

    def member(self, number: int) -> Member:
        return next(each for each in self.members if each.node_id == number)

    def shape(self) -> str:
        """Such as ``D0 D1 (D2) TB3``: in brackets whoever is hidden."""
        short = {D: "D", A: "A", TB: "TB"}
        named = [(f"{short[each.type]}{each.node_id}", each.hidden) for each in self.members]
        return " ".join(f"({name})" if hidden else name for name, hidden in named)

    def view(self) -> VolumeView:
        nodes = {NodeName(f"n{number}"): self._node(number) for number in range(len(self.machines.hosts))}
        members = {each.name: each for each in self.rv.status.datamesh.members}
        replicas = tuple(
            ReplicaView(
                replica=found,
                member=members.get(name),
                node=nodes[NodeName(f"n{replica_id(name)}")],
                volumes=(_disk(found),) if found.spec.type is D and self.extended else (),
            )
            for name, found in sorted(self.replicas.items())
        )
        return VolumeView(name=VOLUME, rv=self.rv, replicas=replicas, nodes=nodes)

    def _node(self, number: int) -> NodeView:
        ready = NodeCondition(
            type="Ready",
            status="Unknown" if number in self.not_ready else "True",
            last_transition_time=START - timedelta(hours=1),
        )
        machine = Node(metadata=ObjectMeta(name=f"n{number}"), status=NodeStatus(conditions=(ready,)))
        known = None if number in self.gone else machine
        return NodeView(NodeName(f"n{number}"), known, fresh=number not in self.silent)

    # One pass of everybody.

    def agents(self, only: Iterable[int] | None = None) -> None:
        """Every agent that is heard realises its config and reports. What guards a second primary hears nobody."""
        for name, found in sorted(self.replicas.items()):
            self.machines.guard(replica_id(name), found.status.drbd.config)
        for name in sorted(self.replicas):
            number = replica_id(name)
            if number not in self.silent and (only is None or number in only):
                self._agent(name, number)
        self.machines.wait(4)
        if self.machines.dead:
            for name in sorted(self.replicas):
                self.machines.count_again(replica_id(name))
        self.report()

    def _agent(self, name: ReplicaName, number: int) -> None:
        view = self.view()
        seen = view.by_name[name]
        config = config_of(view, seen)
        found = self.replicas[name]
        if config is not None and number in self.stuck and not config.down:
            return
        if config is not None:
            config = replace(config, disk=DISK if config.type is D else None)
            self.machines.realise(number, config)
            forgotten = config.forget if not config.down else ()
            actual = replace(
                found.status.drbd.actual, allow_two_primaries=config.allow_two_primaries, forgotten=forgotten
            )
            drbd = replace(found.status.drbd, config=config, actual=actual)
            status = replace(found.status, drbd=drbd, datamesh_revision=config.datamesh_revision)
            self.replicas[name] = replace(found, status=status)
        elif self.machines.status(number) is None:
            self.machines.wipe(number)

    def report(self) -> None:
        for name, found in self.replicas.items():
            if replica_id(name) not in self.silent:
                failed = CommandError(exit_code=1) if replica_id(name) in self.stuck else None
                errors = DrbdErrors(last_adjustment_error=failed)
                drbd = replace(found.status.drbd, status=self.machines.status(replica_id(name)), errors=errors)
                self.replicas[name] = replace(found, status=replace(found.status, drbd=drbd))
        self._ask()

    def _ask(self) -> None:
        """What the replicas' reconciler says that they want of the datamesh."""
        members = {each.name: each for each in self.members}
        for name, found in self.replicas.items():
            asked = _pending(found, members.get(name))
            self.replicas[name] = replace(found, status=replace(found.status, datamesh_pending_transition=asked))

    def controller(self) -> bool:
        """One pass; whether it wrote something."""
        self.report()
        view = self.view()
        settled = yielded(view, self.now)
        if settled is not None:
            self._write(settled)
            return True
        asked = advance(view, self.now, self.locks)
        assert asked is not None
        if asked.status is not None:
            self._write(asked.status)
            return True
        if asked.waiting is not None:
            self.rv = replace(self.rv, status=asked.waiting)
        for name in asked.delete if self.obedient else ():
            self.delete(replica_id(name))
        if asked.spent_annotations:
            kept = {k: v for k, v in self.rv.metadata.annotations.items() if k not in asked.spent_annotations}
            self.rv = replace(self.rv, metadata=replace(self.rv.metadata, annotations=kept))
        return False

    def _write(self, after: ReplicatedVolumeStatus) -> None:
        before = self.rv.status
        if after.datamesh_revision != before.datamesh_revision:
            transition = next(
                (each for each in after.datamesh_transitions if each.datamesh_revision == after.datamesh_revision), None
            )
            machines, view = copy.deepcopy(self.machines), self.view()
            deaf = frozenset(self.silent | self.stuck)
            self.written.append(Written(before, after, deaf, transition, machines, view))
        self.rv = replace(self.rv, status=after)

    def settle(self, passes: int = 60) -> None:
        """Until nothing is under way and nothing more is begun."""
        for _ in range(passes):
            wrote = self.controller()
            if self.halting is not None:
                names = sorted(self.replicas)
                self.agents(only={replica_id(name) for name in self.halting.sample(names, len(names) // 2)})
                wrote = self.controller() or wrote
            self.agents()
            if not wrote and not self.rv.status.datamesh_transitions:
                return
        raise AssertionError(f"not settled: {self.shape()} {self.rv.status.datamesh_transitions}")

    def waits(self) -> str:
        """Why nothing goes on."""
        asked = advance(self.view(), self.now, self.locks)
        assert asked is not None
        return "; ".join(f"{wait.reason}: {wait.message}" for wait in asked.waits)


def _pending(found: ReplicatedVolumeReplica, member: Member | None) -> PendingTransition | None:
    if found.deleting:
        return PendingTransition(member=False) if member is not None else None
    if member is None:
        return PendingTransition(member=True, type=found.spec.type)
    return PendingTransition(type=found.spec.type) if member.type is not found.spec.type else None
