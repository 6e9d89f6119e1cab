"""Views to decide about: a healthy 3D member unless told otherwise."""

from __future__ import annotations

import re
from dataclasses import replace as changed
from datetime import UTC, datetime, timedelta
from typing import Any

from quorate.agent.lvm.seen import SeenVolume
from quorate.agent.memory import Outcome
from quorate.agent.replica.decide import Decision, decide
from quorate.agent.replica.here import REPLICAS_BY_VOLUME
from quorate.agent.replica.view import KernelView, Text, View
from quorate.agent.steps import Run, Step
from quorate.api.baremetal import Drive
from quorate.api.cluster_config import ClusterConfig
from quorate.api.finalizers import AGENT, CONTROLLER
from quorate.api.meta import Bytes, NodeName, ObjectMeta, VolumeName
from quorate.api.quantity import Quantity
from quorate.api.scalars import ReplicaName
from quorate.api.secret import Secret
from quorate.api.storage.drbd import (
    Address,
    Connection,
    Device,
    DrbdActual,
    DrbdConfig,
    DrbdErrors,
    DrbdStatus,
    Peer,
    PeerDevice,
    ReplicaDrbd,
    ReplicaType,
    SharedSecretAlgorithm,
)
from quorate.api.storage.llv import (
    LogicalVolumePhase,
    LogicalVolumeType,
    LVMLogicalVolume,
    LVMLogicalVolumeSpec,
    LVMLogicalVolumeStatus,
)
from quorate.api.storage.rvr import (
    ReplicatedVolumeReplica,
    ReplicatedVolumeReplicaSpec,
    ReplicatedVolumeReplicaStatus,
)
from quorate.api.struct import replace
from quorate.drbd.metadata import lower_size, usable_size
from quorate.drbd.resource_file import missing, render
from quorate.engine import Reader
from quorate.engine.cache import Cache
from quorate.engine.store import ObjectList

NOW = datetime(2030, 1, 1, tzinfo=UTC)
MIB = 1024 * 1024
SECRET = "correct horse battery staple"
LV_SIZE = Bytes(32 * MIB)
LLV = "pvc-1-0-abcdef01"
DISK = f"/dev/vg0/{LLV}"
FILE = "/var/lib/quorate/drbd.d/pvc-1.res"
METADATA_TAG = "quorate.md"
#: What goes with every command of LVM.
FILTER = r"--config devices\{filter=\S* ?\S*\} "


def peer(node_id: int, kind: ReplicaType = ReplicaType.DISKFUL, *, hidden: bool = False) -> Peer:
    return Peer(
        name=ReplicaName(f"pvc-1-{node_id}"),
        node_name=NodeName(f"n{node_id}"),
        node_id=node_id,
        type=kind,
        address=Address(ipv4=f"10.0.0.{node_id + 1}", port=7000),
        hidden=hidden,
    )


def config(**changes: Any) -> DrbdConfig:
    """Member 0 of three."""
    whole = DrbdConfig(
        datamesh_revision=5,
        node_id=0,
        type=ReplicaType.DISKFUL,
        address=Address(ipv4="10.0.0.1", port=7000),
        peers=(peer(1), peer(2)),
        peers_initialized=True,
        device_minor=1000,
        disk=DISK,
        shared_secret=Secret(SECRET),
        shared_secret_alg=SharedSecretAlgorithm.SHA256,
        quorum_minimum_redundancy=2,
    )
    return replace(whole, **changes)


DISKLESS = {"type": ReplicaType.TIE_BREAKER, "disk": None}


def link(
    node_id: int,
    state: str = "Connected",
    *,
    flow: str = "Established",
    disk: str = "UpToDate",
    role: str = "Secondary",
) -> Connection:
    volume = PeerDevice(replication_state=flow, peer_disk_state=disk, percent_in_sync=100)
    return Connection(
        peer_node_id=node_id, name=f"n{node_id}", connection_state=state, peer_role=role, peer_devices=(volume,)
    )


def kernel(
    disk: str = "UpToDate",
    *,
    role: str = "Secondary",
    links: tuple[Connection, ...] | None = None,
    quorum: bool = True,
    size: int = usable_size(LV_SIZE) // 1024,
    node_id: int = 0,
) -> DrbdStatus:
    return DrbdStatus(
        name="pvc-1",
        node_id=node_id,
        role=role,
        devices=(Device(minor=1000, disk_state=disk, quorum=quorum, size=size),),
        connections=(link(1), link(2)) if links is None else links,
    )


def actual(**changes: Any) -> DrbdActual:
    log_at = Quantity.of_bytes(usable_size(LV_SIZE))
    whole = DrbdActual(disk=DISK, initial_sync_completed=True, metadata_created=LLV, activity_log_at=log_at)
    return replace(whole, **changes)


def logical_volume(size: int = LV_SIZE, **status: Any) -> LVMLogicalVolume:
    observed = LVMLogicalVolumeStatus(phase=LogicalVolumePhase.CREATED, actual_size=Quantity.of_bytes(LV_SIZE))
    return LVMLogicalVolume(
        metadata=ObjectMeta(name=LLV),
        spec=LVMLogicalVolumeSpec(
            actual_lv_name_on_the_node=LLV,
            type=LogicalVolumeType.THICK,
            size=Quantity.of_bytes(size),
            lvm_volume_group_name="vg0",
        ),
        status=replace(observed, **status),
    )


def volume(size: int = LV_SIZE, tags: tuple[str, ...] = (METADATA_TAG,)) -> SeenVolume:
    return SeenVolume("vg0", LLV, size=size, tags=frozenset(tags))


def replica(**drbd: Any) -> ReplicatedVolumeReplica:
    parts = {"config": config(), "actual": actual(), "status": kernel(), **drbd}
    return ReplicatedVolumeReplica(
        metadata=ObjectMeta(name="pvc-1-0", uid="u", resource_version="7", finalizers=(CONTROLLER, AGENT)),
        spec=ReplicatedVolumeReplicaSpec(
            replicated_volume_name=VolumeName("pvc-1"), type=ReplicaType.DISKFUL, node_name=NodeName("n0")
        ),
        status=ReplicatedVolumeReplicaStatus(
            actual_type=parts["config"].type,
            datamesh_revision=5,
            lvm_logical_volume_name=LLV,
            drbd=ReplicaDrbd(**parts),
        ),
    )


def view(
    obj: ReplicatedVolumeReplica | None = None, shown: DrbdStatus | str | None = "healthy", **changes: Any
) -> View:
    """A view at rest: what the kernel shows is reported, and the file is in place."""
    obj = obj if obj is not None else replica()
    config = obj.status.drbd.config
    text = Text.of(render(VolumeName("pvc-1"), NodeName("n0"), config)) if not missing(config) else None
    status = kernel() if shown == "healthy" else shown
    assert not isinstance(status, str)
    whole = View(
        replica=obj,
        node_name=NodeName("n0"),
        resource="pvc-1",
        file=FILE,
        temporary_file=f"{FILE}_tmp",
        kernel=KernelView(known=True, current=True, status=status),
        intended=text,
        incomplete="" if text is not None else ", ".join(missing(config)),
        files_current=True,
        written=text.content if text is not None else None,
        algorithms=frozenset({"sha256", "sha1"}),
        logical_volume=logical_volume(),
        metadata_owner_exists=True,
        volumes_current=True,
        volume=volume(),
    )
    return changed(whole, **changes)


def outcome(
    purpose: str, about: str = "", *, exit_code: int | None = 1, output: str = "", age: float = 0.0, times: int = 1
) -> Outcome:
    return Outcome(
        purpose=purpose,
        about=about,
        command=f"the command of {purpose}",
        at=NOW - timedelta(seconds=age),
        exit_code=exit_code,
        output=output,
        failures=0 if exit_code == 0 else times,
        times=times,
    )


def outcomes(*given: Outcome) -> dict[str, Outcome]:
    return {each.purpose: each for each in given}


def decided(view: View, now: datetime = NOW) -> Decision:
    return decide(view, now)


def commands(steps: tuple[Step, ...] | Decision) -> list[str]:
    """What is run, in words: without the file, which every drbdadm names, and LVM's filter."""
    found = steps.steps if isinstance(steps, Decision) else steps
    said = (" ".join(step.argv) for step in found if isinstance(step, Run))
    return [re.sub(FILTER, "", each.replace(f"-c {FILE} ", "")) for each in said]


def errors(decision: Decision) -> DrbdErrors:
    return decision.status.drbd.errors


__all__ = ["LV_SIZE", "MIB", "NOW", "lower_size", "usable_size"]


def reader(*replicas: ReplicatedVolumeReplica) -> Reader:
    """An agent's caches with these replicas, and nothing else."""
    cache = Cache(ReplicatedVolumeReplica, indexes=[REPLICAS_BY_VOLUME])
    cache.replace(ObjectList(replicas, "1"))
    return Reader([cache, Cache(LVMLogicalVolume), Cache(Drive), Cache(ClusterConfig)])
