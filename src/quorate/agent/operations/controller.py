"""The controller of operations: from the caches and memory to a case, and from a ruling to a plan."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from datetime import datetime
from functools import partial
from random import Random
from typing import Any, Final

from quorate.agent import looks
from quorate.agent.node import Node, resource_work
from quorate.agent.operations.case import PURPOSE, Case
from quorate.agent.operations.rule import rule
from quorate.agent.replica.here import BY_VOLUME, REPLICAS_BY_VOLUME, file_of, known_secret, replicas_here
from quorate.agent.replica.looking import look_work
from quorate.agent.steps import Look
from quorate.api.names import volume_of_replica
from quorate.api.storage.drbdrop import DRBDResourceOperation, OperationPhase
from quorate.api.storage.rvr import ReplicatedVolumeReplica
from quorate.api.struct import replace
from quorate.engine import Controller, Index, Key, PatchStatus, Plan, Reader, Watch, no_keys

FINAL: Final = (OperationPhase.SUCCEEDED, OperationPhase.FAILED)


def _volume(operation: DRBDResourceOperation) -> str:
    return volume_of_replica(operation.spec.drbd_resource_name)


def _volumes(operation: DRBDResourceOperation) -> Iterable[str]:
    return (_volume(operation),)


def _volume_key(operation: DRBDResourceOperation) -> Iterable[Key]:
    return (Key("", _volume(operation)),)


OPERATIONS_BY_VOLUME: Index[Any] = Index(DRBDResourceOperation, BY_VOLUME, _volumes)


def controllers(node: Node) -> tuple[Controller[Any], ...]:
    """One key per volume, as replicas have: where there is an operation, whatever wakes the one wakes the other."""
    looks.register(node)
    #: The volumes with an operation that is not over.
    operated: set[str] = set()

    def observe(reader: Reader, key: Key) -> Case | None:
        found = [
            each
            for each in reader.find(DRBDResourceOperation, BY_VOLUME, key.name)
            if each.spec.node_name == node.name and each.status.phase not in FINAL and not each.deleting
        ]
        if not found:
            operated.discard(key.name)
            return None
        operated.add(key.name)
        # One that runs is finished first; otherwise the oldest.
        found.sort(key=lambda each: (each.status.phase is not OperationPhase.RUNNING, _age(each)))
        operation, work = found[0], resource_work(key.name)
        replicas = replicas_here(node, reader, key.name)
        named = [each for each in replicas if each.name == operation.spec.drbd_resource_name]
        sighting = node.memory.resource(key.name)
        about = operation.metadata.uid
        return Case(
            operation=operation,
            resource=key.name,
            file=file_of(node, key.name),
            replica=named[0] if named else None,
            current=sighting.current,
            status=sighting.value,
            busy=node.hands.busy(work),
            begun=about in node.memory.operations_begun,
            blind=bool(sighting.error),
            outcomes={
                purpose: outcome
                for purpose, outcome in node.memory.outcomes(work).items()
                if purpose.startswith(PURPOSE) and outcome.about.partition(" ")[0] == about
            },
            secret=known_secret(node, key.name),
            losses=node.memory.link_losses.get(key.name, 0),
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
            noted = partial(_note, node.memory.operations_begun, operation.metadata.uid, ruling.status.phase)
            return Plan(transition=written, effects=(noted,), requeue_after=ruling.again)
        return Plan(effects=effects, requeue_after=ruling.again)

    return (
        Controller(
            name="operation",
            watches=(Watch(DRBDResourceOperation, _volume_key), Watch(ReplicatedVolumeReplica, no_keys)),
            observe=observe,
            decide=decide,
            indexes=(OPERATIONS_BY_VOLUME, REPLICAS_BY_VOLUME),
            signals=(node.volumes.only(lambda key: key.name in operated),),
        ),
    )


def tasks(node: Node) -> tuple[Coroutine[Any, Any, None], ...]:
    """None."""
    return ()


def _note(begun: set[str], uid: str, phase: OperationPhase | None) -> None:
    (begun.add if phase is OperationPhase.RUNNING else begun.discard)(uid)


def _age(operation: DRBDResourceOperation) -> tuple[str, str]:
    return (str(operation.metadata.creation_timestamp or ""), operation.name)
