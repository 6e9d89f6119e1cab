"""What an attachment's conditions say: Attached, ReplicaReady, Ready (02; ``facts/replicated-volume.md`` 2.3).

Attached, first match wins:

| what is seen                                             | reason                                            |
|----------------------------------------------------------|---------------------------------------------------|
| no volume                                                | WaitingForReplicatedVolume (M32)                  |
| Primary, and meant to be                                 | Attached                                          |
| Primary, not meant to be, held open                      | DeviceInUse: True, it is still attached           |
| Primary, not meant to be, or a Detach under way          | Detaching                                         |
| the attachment is being deleted                          | Detached                                          |
| meant to be Primary                                      | Attaching                                         |
| ``attach`` says why it is not attached now               | ReplicatedVolumeTerminating, NodeNotEligible,     |
|                                                          | VolumeAccessLocalityNotSatisfied, Pending,        |
|                                                          | TwoPrimariesNotAllowed, NoFreeNodeId,             |
|                                                          | WaitingForReplica, WaitingForReplicatedVolume,    |
|                                                          | PermissionHeld                                    |
| otherwise, or it says anything that will pass by itself  | Attaching, with its words                         |
"""

from __future__ import annotations

from dataclasses import dataclass

from quorate.api import conditions
from quorate.api.conditions import Verdict, rvr
from quorate.api.conditions.rv import PublishSucceeded
from quorate.api.conditions.rva import Attached, Ready, ReplicaReady
from quorate.api.meta import ConditionStatus
from quorate.api.storage import ReplicatedVolumeAttachment
from quorate.api.storage.datamesh import Transition, TransitionType
from quorate.api.storage.drbd import Device, Role
from quorate.volumes.attach.guards import why_not
from quorate.volumes.view import ReplicaView, VolumeView

_DETACHING = (TransitionType.DETACH, TransitionType.FORCE_DETACH)
#: Waits of ``attach`` that are an attachment's own reasons; one is called otherwise there, as 000 has it.
_REASONS = {
    **{reason.code: reason for reason in Attached.reasons()},
    PublishSucceeded.UNABLE_TO_PROVIDE_LOCAL_VOLUME_ACCESS.code: Attached.VOLUME_ACCESS_LOCALITY_NOT_SATISFIED,
}


@dataclass(frozen=True, slots=True)
class Subject:
    """One attachment, and the replica on its node."""

    view: VolumeView
    attachment: ReplicatedVolumeAttachment

    @property
    def replica(self) -> ReplicaView | None:
        """On the node."""
        return self.view.on_node(self.attachment.spec.node_name)

    @property
    def intended(self) -> bool:
        """Whether the volume is meant to be Primary there."""
        node = self.attachment.spec.node_name
        return any(member.attached and member.node_name == node for member in self.view.members)

    @property
    def is_primary(self) -> bool:
        """Whether it is, by a word that counts."""
        replica = self.replica
        return replica is not None and self.view.state_of(replica.name).role == Role.PRIMARY

    @property
    def device(self) -> Device | None:
        """The device there, by a living agent's word."""
        report = self.replica.report if self.replica is not None else None
        return report.devices[0] if report is not None and report.devices else None

    def under_way(self, *types: TransitionType) -> Transition | None:
        """A transition of the replica there."""
        replica, rv = self.replica, self.view.rv
        if rv is None or replica is None:
            return None
        found = (each for each in rv.status.datamesh_transitions if each.replica_name == replica.name)
        return next((each for each in found if each.type in types), None)

    @property
    def busy(self) -> bool:
        """Whether the node is attached, or on its way there or back."""
        return self.intended or self.is_primary or self.under_way(TransitionType.ATTACH, *_DETACHING) is not None


def attached(subject: Subject) -> Verdict:
    """The table."""
    attachment, view = subject.attachment, subject.view
    node = attachment.spec.node_name
    if view.rv is None:
        return Attached.WAITING_FOR_REPLICATED_VOLUME(f"volume {view.name} does not exist")
    if subject.is_primary and subject.intended:
        return _while_attached(subject)
    leaving = subject.under_way(*_DETACHING)
    if subject.is_primary or leaving is not None:
        return _while_detaching(subject, leaving)
    if attachment.deleting:
        return Attached.DETACHED(f"{view.name} is not attached on {node}")
    if subject.intended:
        return _attaching(subject)
    return _waiting(subject)


def replica_ready(subject: Subject) -> Verdict:
    """The replica's own Ready."""
    replica = subject.replica
    found = conditions.find(replica.replica.status.conditions, rvr.Ready) if replica is not None else None
    if found is None:
        return ReplicaReady.WAITING_FOR_REPLICA(f"{subject.attachment.spec.node_name} has no replica that says so")
    return ReplicaReady.mirror(found)


def ready(subject: Subject, is_attached: Verdict, replica: Verdict | None) -> Verdict:
    """All of it, and nobody wants it to end."""
    if subject.attachment.deleting:
        return Ready.TERMINATING(is_attached.message)
    if is_attached.status is not ConditionStatus.TRUE or replica is None:
        return Ready.NOT_ATTACHED(f"{is_attached.reason}: {is_attached.message}")
    if replica.status is not ConditionStatus.TRUE:
        return Ready.REPLICA_NOT_READY(f"{replica.reason}: {replica.message}")
    return Ready.READY()


def _while_attached(subject: Subject) -> Verdict:
    device = subject.device
    if subject.attachment.deleting and device is not None and device.open:
        return Attached.DEVICE_IN_USE(_held_by(subject))
    return Attached.ATTACHED(f"{subject.view.name} is Primary on {subject.attachment.spec.node_name}")


def _while_detaching(subject: Subject, leaving: Transition | None) -> Verdict:
    device = subject.device
    if subject.is_primary and device is not None and device.open:
        return Attached.DEVICE_IN_USE(_held_by(subject))
    words = leaving.message if leaving is not None else ""
    return Attached.DETACHING(words or f"{subject.attachment.spec.node_name} gives up the device")


def _held_by(subject: Subject) -> str:
    """Who holds the device: the kernel names the process when it refuses."""
    replica = subject.replica
    error = replica.replica.status.drbd.errors.last_promotion_error if replica is not None else None
    said = f": {error.output.strip()}" if error is not None and error.output.strip() else ""
    return f"the device on {subject.attachment.spec.node_name} is held open{said}"


def _attaching(subject: Subject, words: str = "") -> Verdict:
    found = subject.under_way(TransitionType.ATTACH)
    said = words or (found.message if found is not None else "")
    return Attached.ATTACHING(said or f"{subject.view.name} becomes Primary on {subject.attachment.spec.node_name}")


def _waiting(subject: Subject) -> Verdict:
    """The same answer that the volume's reconciler acts on."""
    wait = why_not(subject.view, subject.attachment.spec.node_name)
    if wait is None:
        return _attaching(subject)
    reason = _REASONS.get(wait.reason)
    return reason(wait.message) if reason is not None else _attaching(subject, wait.message)
