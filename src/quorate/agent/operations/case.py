"""One operation that is not over, what decides it, and what becomes of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from quorate.agent.memory import Outcome
from quorate.agent.replica.kernel import connection_to
from quorate.agent.replica.verdict import secrets_of
from quorate.agent.steps import Step
from quorate.api.secret import Secret
from quorate.api.storage.drbd import ConnectionState, DrbdConfig, DrbdStatus, Peer, PeerDevice, ReplicaType
from quorate.api.storage.drbdrop import DRBDResourceOperation, DRBDResourceOperationStatus, OperationPhase
from quorate.api.storage.rvr import ReplicatedVolumeReplica
from quorate.api.struct import replace
from quorate.drbd.masking import presentable
from quorate.drbd.resource_file import linked_peers

#: The purpose of an operation's commands begins with this.
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
    #: What became of its commands, by purpose; of this operation only.
    outcomes: Mapping[str, Outcome] = field(default_factory=dict)
    #: It was this agent, since its start, that declared it Running.
    begun: bool = False
    #: The last look at the kernel failed.
    blind: bool = False
    #: What authenticates the members, where the config only names it.
    secret: Secret | None = None
    #: How often a link of the resource was seen to go, or may have gone unseen.
    losses: int = 0

    @property
    def config(self) -> DrbdConfig:
        """What the replica is to be."""
        assert self.replica is not None
        return self.replica.status.drbd.config

    @property
    def about(self) -> str:
        """Which operation a command was run for."""
        return self.operation.metadata.uid


@dataclass(frozen=True, slots=True)
class Ruling:
    """What becomes of it."""

    status: DRBDResourceOperationStatus
    steps: tuple[Step, ...] = ()
    again: float | None = None


def running(case: Case, now: datetime) -> Ruling:
    """It begins: this is written before anything is run."""
    status = case.operation.status
    return Ruling(replace(status, phase=OperationPhase.RUNNING, message="", started_at=now))


def waiting(case: Case, message: str = "") -> Ruling:
    """It goes on when something changes."""
    status = case.operation.status
    if message and status.message != message[:1024]:
        status = replace(status, message=message[:1024])
    return Ruling(status, again=LATER)


def pending(case: Case, message: str) -> Ruling:
    """It has not begun."""
    status = replace(case.operation.status, phase=OperationPhase.PENDING, message=message[:1024])
    return Ruling(status, again=LATER)


def succeeded(case: Case, now: datetime, message: str = "") -> Ruling:
    """It is over."""
    status = case.operation.status
    return Ruling(replace(status, phase=OperationPhase.SUCCEEDED, message=message, completed_at=now))


def failed(case: Case, now: datetime, message: str) -> Ruling:
    """It is over, and not done."""
    status = case.operation.status
    return Ruling(replace(status, phase=OperationPhase.FAILED, message=message[:1024], completed_at=now))


def failed_command(case: Case, now: datetime, last: Outcome) -> Ruling:
    """A command of it has failed."""
    said = presentable(last.output, secrets_of(case.config, case.secret))
    return failed(case, now, f"{last.command} ended with exit code {last.exit_code}: {said}")


def diskful(config: DrbdConfig) -> list[Peer]:
    """The members with a disk that this one is linked to, by node id."""
    return [peer for peer in linked_peers(config) if peer.type is ReplicaType.DISKFUL]


def device_of(status: DrbdStatus, peer: Peer) -> PeerDevice | None:
    """The volume as a peer has it; None also while the link is not up: what is shown then is only remembered."""
    link = connection_to(status, peer)
    if link is None or link.connection_state != ConnectionState.CONNECTED or not link.peer_devices:
        return None
    return link.peer_devices[0]
