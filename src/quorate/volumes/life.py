"""What life asks of the volume's reconciler: the form in which ``transitions.advance`` answers.

Pure data between the two: transitions decide about steps and about which replicas there should be; the reconciler
(``quorate.volumes.volume.living``) writes, creates and deletes.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from quorate.api.meta import NodeName
from quorate.api.scalars import ReplicaName
from quorate.api.storage.drbd import ReplicaType
from quorate.api.storage.rv import ReplicatedVolumeStatus
from quorate.volumes.waits import Wait


class NewReplica(msgspec.Struct, frozen=True, gc=False):
    """A replica that a transition needs and that does not exist yet."""

    type: ReplicaType
    #: Where it must be; None: placement chooses.
    node: NodeName | None = None


class Advance(msgspec.Struct, frozen=True, gc=False):
    """What life asks for in one pass.

    With ``status`` nothing else is done in the pass: it is written with the object's resourceVersion, as a transition.
    Otherwise the reconciler creates, deletes and changes replicas as asked, and writes what it reports of the waits.
    """

    #: The whole status with a step begun, completed or advanced; None: no step changes in this pass.
    status: ReplicatedVolumeStatus | None = None
    create: tuple[NewReplica, ...] = ()
    #: Those to be deleted, each with why, for people.
    delete: Mapping[ReplicaName, str] = msgspec.field(default_factory=dict)
    #: New ``spec.type`` of replicas; a disk that goes with it is given by placement.
    retype: Mapping[ReplicaName, ReplicaType] = msgspec.field(default_factory=dict)
    #: The replica that a person's word has removed by force, and whose copy is not missed.
    given_up: ReplicaName | None = None
    #: Annotations of the volume that have done their work (force).
    spent_annotations: tuple[str, ...] = ()
    #: The status with the words of what waits, in transitions and pending ones; None: as it is.
    waiting: ReplicatedVolumeStatus | None = None
    waits: tuple[Wait, ...] = ()
    #: Seconds after which to look again: a grace, or the patience with somebody, runs out then.
    again: float | None = None
