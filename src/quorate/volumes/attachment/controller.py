"""The reconciler of attachments: conditions, phase, and the finalizer that keeps one until its node is detached.

| the attachment                                      | finalizer                                    |
|-----------------------------------------------------|----------------------------------------------|
| there is no volume                                  | none: there is nothing to wait for           |
| alive                                               | set                                          |
| being deleted, its node attached or on the way      | kept                                         |
| the same, and another attachment wants the node     | released: that one keeps the node            |
| being deleted, its node neither attached nor on the way | released                                 |

Two attachments of one volume on one node say the same, and count as one.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from random import Random
from typing import Any

from quorate.api import conditions, finalizers, names
from quorate.api.conditions import Verdict
from quorate.api.conditions.rva import Attached, ReplicaReady
from quorate.api.core import Lease
from quorate.api.meta import ConditionStatus
from quorate.api.storage import ReplicatedVolumeAttachment
from quorate.api.storage.rva import AttachmentPhase, ReplicatedVolumeAttachmentStatus
from quorate.api.struct import replace
from quorate.engine import (
    NOTHING,
    AddFinalizer,
    Controller,
    Key,
    PatchStatus,
    Plan,
    PlanEvent,
    Reader,
    ReleaseFinalizer,
    Signal,
    Write,
)
from quorate.locks import LockTable
from quorate.volumes.attachment.conditions import Subject, attached, ready, replica_ready
from quorate.volumes.locking import with_holds
from quorate.volumes.observe import ATTACHMENTS_OF, INDEXES
from quorate.volumes.observe import observe as observe_volume
from quorate.volumes.view import VolumeView
from quorate.volumes.waits import shortened
from quorate.volumes.watches import WATCHES

_MESSAGE_LIMIT = 1024


def observe(reader: Reader, key: Key) -> VolumeView | None:
    """The volume's picture; None when nobody wants it anywhere."""
    if not reader.find(ReplicatedVolumeAttachment, ATTACHMENTS_OF, key.name):
        return None
    return observe_volume(reader, key.name)


def decide(view: VolumeView, now: datetime, _: Random) -> Plan:
    """One pass over the attachments of a volume."""
    writes: list[Write] = []
    events: list[PlanEvent] = []
    for attachment in view.attachments:
        subject = Subject(view, attachment)
        held = list(_finalizer(subject))
        writes += held
        if any(isinstance(write, ReleaseFinalizer) and _ends(attachment) for write in held):
            continue
        status = status_of(subject, now)
        if status != attachment.status:
            writes.append(PatchStatus(attachment, replace(attachment, status=status)))
            events += _events(attachment, status)
    return Plan(writes=tuple(writes), events=tuple(events)) if writes else NOTHING


def status_of(subject: Subject, now: datetime) -> ReplicatedVolumeAttachmentStatus:
    """The whole status as it should be."""
    attachment, view = subject.attachment, subject.view
    is_attached = attached(subject)
    replica = replica_ready(subject) if view.rv is not None else None
    verdicts = [is_attached, ready(subject, is_attached, replica)]
    if replica is not None:
        verdicts.append(replica)
    generation = attachment.metadata.generation
    minor = view.rv.status.drbd.config.device_minor if view.rv is not None else None
    here, report = is_attached.status is ConditionStatus.TRUE, subject.replica.report if subject.replica else None
    return replace(
        attachment.status,
        observed_generation=generation,
        phase=_phase(subject, is_attached),
        message="" if verdicts[1].status is ConditionStatus.TRUE else shortened(is_attached.message, _MESSAGE_LIMIT),
        device_path=names.device_path(minor) if here and minor is not None else "",
        io_suspended=report.suspended if here and report is not None else None,
        in_use=subject.device.open if here and subject.device is not None else None,
        conditions=conditions.merge(
            attachment.status.conditions,
            verdicts,
            now=now,
            generation=generation,
            drop=() if replica is not None else (ReplicaReady,),
        ),
    )


def _phase(subject: Subject, is_attached: Verdict) -> AttachmentPhase:
    """For people; the first that fits."""
    if is_attached.reason == Attached.DETACHING.code:
        return AttachmentPhase.DETACHING
    if subject.attachment.deleting:
        return AttachmentPhase.DETACHING if subject.busy else AttachmentPhase.TERMINATING
    if is_attached.status is ConditionStatus.TRUE:
        return AttachmentPhase.ATTACHED
    return AttachmentPhase.ATTACHING if is_attached.reason == Attached.ATTACHING.code else AttachmentPhase.PENDING


def _finalizer(subject: Subject) -> Iterator[Write]:
    attachment, name = subject.attachment, finalizers.RV_CONTROLLER
    held, kept = name in attachment.metadata.finalizers, subject.view.rv is not None
    if attachment.deleting:
        kept = kept and subject.busy and not _is_doubled(subject)
    if held and not kept:
        yield ReleaseFinalizer(attachment, name, after=())
    elif kept and not held and not attachment.deleting:
        yield AddFinalizer(attachment, name)


def _is_doubled(subject: Subject) -> bool:
    node = subject.attachment.spec.node_name
    return any(not each.deleting and each.spec.node_name == node for each in subject.view.attachments)


def _ends(attachment: ReplicatedVolumeAttachment) -> bool:
    return attachment.deleting and attachment.metadata.finalizers == (finalizers.RV_CONTROLLER,)


def _events(attachment: ReplicatedVolumeAttachment, status: ReplicatedVolumeAttachmentStatus) -> Iterator[PlanEvent]:
    known, said = (conditions.find(each.conditions, Attached) for each in (attachment.status, status))
    if said is not None and (known is None or known.reason != said.reason):
        yield PlanEvent(attachment, said.reason, said.message)


def controllers(signal: Signal, table: LockTable) -> tuple[Controller[Any], ...]:
    """The reconciler of attachments, woken also through the signal of ``fanning.fan_out``."""

    def observe_with_holds(reader: Reader, key: Key) -> VolumeView | None:
        view = observe(reader, key)
        return with_holds(view, table) if view is not None else None

    return (
        Controller(
            name="attachments",
            watches=WATCHES,
            observe=observe_with_holds,
            decide=decide,
            indexes=INDEXES,
            freshness=(Lease,),
            signals=(signal,),
        ),
    )
