"""DRBDResourceOperation: one command on one replica, run once.

The only one that this agent knows gives a new volume its first data (M3, M22). It runs only while nobody has any: the
own disk and every diskful peer's are Inconsistent, and all are connected. ``Running`` is written before the command
runs; an agent that finds it so, and its own disk UpToDate, knows that the command ran. Final phases stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass
from datetime import datetime
from random import Random
from typing import Any, Final

from quorate.agent import looks
from quorate.agent.memory import Outcome
from quorate.agent.node import Node, resource_work
from quorate.agent.replica.controller import BY_VOLUME, REPLICAS_BY_VOLUME, file_of, replicas_here
from quorate.agent.replica.kernel import connection_to, disk_state
from quorate.agent.replica.looking import look_work
from quorate.agent.replica.verdict import secrets_of
from quorate.agent.steps import KERNEL, Look, Run, Step, kernel_of
from quorate.api.names import volume_of_replica
from quorate.api.storage.drbd import (
    ConnectionState,
    DiskState,
    DrbdConfig,
    DrbdStatus,
    Peer,
    ReplicationState,
    ReplicaType,
)
from quorate.api.storage.drbdrop import (
    DRBDResourceOperation,
    DRBDResourceOperationStatus,
    OperationPhase,
    OperationType,
)
from quorate.api.storage.rvr import ReplicatedVolumeReplica
from quorate.api.struct import replace
from quorate.drbd.masking import presentable
from quorate.drbd.resource_file import linked_peers
from quorate.engine import Controller, Index, Key, PatchStatus, Plan, Reader, Watch, no_keys

FINAL: Final = (OperationPhase.SUCCEEDED, OperationPhase.FAILED)
PURPOSE: Final = "operation"
#: Seconds after which a wait is looked at again, although an event should have told.
LATER: Final = 5.0


@dataclass(frozen=True, slots=True)
class Case:
    """One operation that is not over, and what decides it."""

    operation: DRBDResourceOperation
    resource: str
    file: str
    replica: ReplicatedVolumeReplica | None
    current: bool
    status: DrbdStatus | None
    busy: bool
    outcome: Outcome | None = None
    #: The last look at the kernel failed.
    blind: bool = False


@dataclass(frozen=True, slots=True)
class Ruling:
    """What becomes of it."""

    status: DRBDResourceOperationStatus
    steps: tuple[Step, ...] = ()
    again: float | None = None


def rule(case: Case, now: datetime) -> Ruling:
    """One pass over one operation."""
    operation = case.operation
    if operation.spec.type is not OperationType.CREATE_NEW_UUID or operation.spec.create_new_uuid is None:
        return _failed(case, now, f"{operation.spec.type.value} is not supported by this agent")
    if case.replica is None:
        return _pending(case, f"waiting for the replica {operation.spec.drbd_resource_name} on this node")
    if case.busy:
        return Ruling(operation.status, again=LATER)
    if not case.current:
        # A replica that cannot be looked at says so itself, and looks again with patience.
        return Ruling(operation.status, steps=() if case.blind else (Look(KERNEL, case.resource),), again=LATER)
    if operation.status.phase is OperationPhase.RUNNING:
        return _running(case, now)
    config = case.replica.status.drbd.config
    if refusal := has_data(config, case.status):
        return _failed(case, now, f"not run: {refusal}")
    if obstacle := not_ready(config, case.status):
        return _pending(case, f"waiting: {obstacle}")
    return Ruling(replace(operation.status, phase=OperationPhase.RUNNING, message="", started_at=now))


def _running(case: Case, now: datetime) -> Ruling:
    assert case.replica is not None
    config, last = case.replica.status.drbd.config, case.outcome
    if disk_state(case.status) == DiskState.UP_TO_DATE or (last is not None and last.succeeded):
        done = replace(case.operation.status, phase=OperationPhase.SUCCEEDED, message="", completed_at=now)
        return Ruling(done)
    if last is not None:
        said = presentable(last.output, secrets_of(config))
        return _failed(case, now, f"{last.command} ended with exit code {last.exit_code}: {said}")
    if disk_state(case.status) != DiskState.INCONSISTENT or case.status is None:
        # It is coming up after a restart. Whether the command ran shows when it is up, connected and quorate.
        return Ruling(case.operation.status, again=LATER)
    if refusal := has_data(config, case.status):
        return _failed(case, now, f"not run: {refusal}")
    if not_ready(config, case.status):
        return Ruling(case.operation.status, again=LATER)
    return Ruling(case.operation.status, steps=(_command(case),))


def has_data(config: DrbdConfig, status: DrbdStatus | None) -> str:
    """Who may have data that a new generation would declare void; "" if nobody has."""
    if status is None:
        return ""
    own = disk_state(status)
    if own != DiskState.INCONSISTENT:
        return f"the own disk is {own}, not {DiskState.INCONSISTENT.value}"
    for peer in _diskful(config):
        link = connection_to(status, peer)
        if link is None or link.connection_state != ConnectionState.CONNECTED:
            continue  # what is shown of its disk is only remembered
        theirs = _peer_disk(status, peer)
        if theirs not in (DiskState.INCONSISTENT, DiskState.UNKNOWN, ""):
            return f"the disk of {peer.name} is {theirs}, not {DiskState.INCONSISTENT.value}"
    return ""


def not_ready(config: DrbdConfig, status: DrbdStatus | None) -> str:
    """Which link is not up yet; "" if all are."""
    if status is None:
        return "the resource is not up"
    for peer in _diskful(config):
        link = connection_to(status, peer)
        if link is None or link.connection_state != ConnectionState.CONNECTED:
            return f"{peer.name} is {link.connection_state if link is not None else 'not linked'}"
        flows = [volume.replication_state for volume in link.peer_devices]
        if flows != [ReplicationState.ESTABLISHED] or _peer_disk(status, peer) != DiskState.INCONSISTENT:
            return f"{peer.name} is {', '.join(flows) or 'without a volume'}, its disk {_peer_disk(status, peer)}"
    return ""


def _diskful(config: DrbdConfig) -> list[Peer]:
    return [peer for peer in linked_peers(config) if peer.type is ReplicaType.DISKFUL]


def _peer_disk(status: DrbdStatus, peer: Peer) -> str:
    link = connection_to(status, peer)
    return link.peer_devices[0].peer_disk_state if link is not None and link.peer_devices else ""


def _command(case: Case) -> Run:
    how = case.operation.spec.create_new_uuid
    option = "--clear-bitmap" if how is not None and how.clear_bitmap else "--force-resync"
    argv = ("drbdadm", "-c", case.file, "new-current-uuid", option, f"{case.resource}/0")
    about = case.operation.metadata.uid
    return Run(argv, PURPOSE, about, changes=(kernel_of(case.resource),))


def _failed(case: Case, now: datetime, message: str) -> Ruling:
    status = case.operation.status
    return Ruling(replace(status, phase=OperationPhase.FAILED, message=message[:1024], completed_at=now))


def _pending(case: Case, message: str) -> Ruling:
    status = replace(case.operation.status, phase=OperationPhase.PENDING, message=message[:1024])
    return Ruling(status, again=LATER)


def _volume(operation: DRBDResourceOperation) -> str:
    return volume_of_replica(operation.spec.drbd_resource_name)


def _volumes(operation: DRBDResourceOperation) -> Iterable[str]:
    return (_volume(operation),)


def _volume_key(operation: DRBDResourceOperation) -> Iterable[Key]:
    return (Key("", _volume(operation)),)


OPERATIONS_BY_VOLUME: Index[Any] = Index(DRBDResourceOperation, BY_VOLUME, _volumes)


def controllers(node: Node) -> tuple[Controller[Any], ...]:
    """One key per volume, as replicas have: whatever wakes the one wakes the other."""
    looks.register(node)

    def observe(reader: Reader, key: Key) -> Case | None:
        found = [
            each
            for each in reader.find(DRBDResourceOperation, BY_VOLUME, key.name)
            if each.spec.node_name == node.name and each.status.phase not in FINAL and not each.deleting
        ]
        if not found:
            return None
        # One that runs is finished first; otherwise the oldest.
        found.sort(key=lambda each: (each.status.phase is not OperationPhase.RUNNING, _age(each)))
        operation, work = found[0], resource_work(key.name)
        replicas = replicas_here(node, reader, key.name)
        named = [each for each in replicas if each.name == operation.spec.drbd_resource_name]
        sighting = node.memory.resource(key.name)
        outcome = node.memory.last(work, PURPOSE)
        return Case(
            operation=operation,
            resource=key.name,
            file=file_of(node, key.name),
            replica=named[0] if named else None,
            current=sighting.current,
            status=sighting.value,
            busy=node.hands.busy(work),
            blind=bool(sighting.error),
            outcome=outcome if outcome is not None and outcome.about == operation.metadata.uid else None,
        )

    def decide(case: Case, now: datetime, _: Random) -> Plan:
        ruling = rule(case, now)
        operation = case.operation
        effects: tuple[Callable[[], None], ...] = ()
        if ruling.steps:
            looking = isinstance(ruling.steps[0], Look)
            work = look_work(case.resource) if looking else resource_work(case.resource)
            effects = (node.work(work, ruling.steps, node.volumes, Key("", case.resource)),)
        written = PatchStatus(operation, replace(operation, status=ruling.status), if_unchanged=True)
        if written.patch:
            # Only that: what follows from it is done by the pass that sees it.
            return Plan(transition=written, requeue_after=ruling.again)
        return Plan(effects=effects, requeue_after=ruling.again)

    return (
        Controller(
            name="operation",
            watches=(Watch(DRBDResourceOperation, _volume_key), Watch(ReplicatedVolumeReplica, no_keys)),
            observe=observe,
            decide=decide,
            indexes=(OPERATIONS_BY_VOLUME, REPLICAS_BY_VOLUME),
            signals=(node.volumes,),
        ),
    )


def tasks(node: Node) -> tuple[Coroutine[Any, Any, None], ...]:
    """None."""
    return ()


def _age(operation: DRBDResourceOperation) -> tuple[str, str]:
    return (str(operation.metadata.creation_timestamp or ""), operation.name)
