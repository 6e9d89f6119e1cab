"""The object all benchmarks use: about 3.3 KB of JSON, shaped like a replicated volume with three replicas."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from quorate.api.codec import encode, to_dict
from quorate.api.kind import Column, kind
from quorate.api.meta import Condition, ConditionStatus, ObjectMeta, Resource
from quorate.api.struct import Struct, immutable, list_map, replace

GROUP = "bench.quorate.io"
BORN = datetime(2026, 11, 16, tzinfo=UTC)


class Option(Struct):
    """One DRBD option."""

    section: str
    name: str
    value: str


class Drbd(Struct):
    """DRBD's part of the spec."""

    minor: int
    quorum: int
    algorithm: str
    options: tuple[Option, ...] = ()


class Replica(Struct):
    """Where one replica is to be."""

    name: str
    node_name: str
    node_id: int
    disk_state: str
    address: str
    port: int
    percent: int


class Expectation(Struct):
    """One condition that somebody waits for."""

    type: str
    status: str
    reason: str
    message: str
    since: datetime


class SampleSpec(Struct):
    """What is wanted; nearly all of the object, so that one create makes one full-sized event."""

    size: str
    storage_class_name: Annotated[str, immutable("storageClassName is immutable")]
    publish_on: tuple[str, ...] = ()
    drbd: Drbd
    replicas: Annotated[tuple[Replica, ...], list_map("name")] = ()
    expectations: Annotated[tuple[Expectation, ...], list_map("type")] = ()


class SampleStatus(Struct):
    """What is known."""

    phase: str = ""
    conditions: Annotated[tuple[Condition, ...], list_map("type")] = ()


@kind(group=GROUP, version="v1", plural="samples", columns=(Column("Phase", ".status.phase"),))
class Sample(Resource):
    """A volume-like object for benchmarks."""

    spec: SampleSpec
    status: SampleStatus = SampleStatus()


_OPTIONS = tuple(
    Option(section=section, name=f"{section}-option-{number}", value=f"value-{number:04}")
    for section in ("net", "disk", "options")
    for number in range(6)
)
_EXPECTATIONS = tuple(
    Expectation(
        type=name,
        status="True",
        reason="ReplicasAreUpToDate",
        message="the replicas report that they are connected and up to date, and quorum is configured",
        since=BORN,
    )
    for name in ("Ready", "QuorumConfigured", "DiskfulReplicaCountReached", "AllReplicasReady")
)


def sample(number: int) -> Sample:
    """The same object for the same number."""
    name = f"volume-{number:06}"
    replicas = tuple(
        Replica(
            name=f"{name}-{index}",
            node_name=f"node-{index}",
            node_id=index,
            disk_state="UpToDate",
            address=f"192.0.2.{index + 1}",
            port=7000 + index,
            percent=100,
        )
        for index in range(3)
    )
    return Sample(
        metadata=ObjectMeta(
            name=name,
            labels={"quorate.io/storage-class": "fast-replicated", "app.kubernetes.io/managed-by": "bench"},
            annotations={"quorate.io/description": "an object for benchmarks, as large as a real one"},
        ),
        spec=SampleSpec(
            size="10Gi",
            storage_class_name="fast-replicated",
            publish_on=("node-0", "node-1"),
            drbd=Drbd(minor=number, quorum=2, algorithm="sha256", options=_OPTIONS),
            replicas=replicas,
            expectations=_EXPECTATIONS,
        ),
    )


def settled(observed: Sample) -> Sample:
    """The one decision of the benchmark controllers: phase Ready, and one condition."""
    ready = Condition(
        type="Ready",
        status=ConditionStatus.TRUE,
        reason="Settled",
        message="every replica is up to date",
        last_transition_time=BORN,
        observed_generation=observed.metadata.generation,
    )
    return replace(observed, status=SampleStatus(phase="Ready", conditions=(ready,)))


def sample_json(number: int) -> bytes:
    """The object as a client sends it."""
    return encode(to_dict(sample(number)))
