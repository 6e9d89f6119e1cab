"""What the volume's reconciler asks of the packages that decide about a volume's life, and in which form they answer.

    transitions.advance(view, now) -> Advance | None     the next step of what is under way, or what should begin
    attach.requests(view, now) -> tuple[AttachRequest]   the queue as it should stand
    attach.verdicts(view, now) -> tuple[Verdict]         PublishSucceeded and DualPrimaryLinkLost
    effective.layout(view) -> EffectiveLayout            what the volume can survive from here

All are pure. They are asked only of a volume that has been formed; ``advance`` also of one that is being deleted and
still has something attached, because detaching is a transition.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from importlib import import_module
from typing import Any

from quorate.api.conditions import Verdict
from quorate.api.meta import NodeName
from quorate.api.scalars import ReplicaName
from quorate.api.storage.datamesh import EffectiveLayout
from quorate.api.storage.drbd import ReplicaType
from quorate.api.storage.rv import AttachRequest, ReplicatedVolumeStatus
from quorate.volumes.view import VolumeView
from quorate.volumes.waits import Wait


@dataclass(frozen=True, slots=True)
class NewReplica:
    """A replica that a transition needs and that does not exist yet."""

    type: ReplicaType
    #: Where it must be; None: placement chooses.
    node: NodeName | None = None


@dataclass(frozen=True, slots=True)
class Advance:
    """What life asks for in one pass.

    With ``status`` nothing else is done in the pass: it is written with the object's resourceVersion, as a transition.
    Otherwise the reconciler creates, deletes and changes replicas as asked, and writes what it reports of the waits.
    """

    #: The whole status with a step begun, completed or advanced; None: no step changes in this pass.
    status: ReplicatedVolumeStatus | None = None
    create: tuple[NewReplica, ...] = ()
    delete: tuple[ReplicaName, ...] = ()
    #: New ``spec.type`` of replicas; a disk that goes with it is given by placement.
    retype: Mapping[ReplicaName, ReplicaType] = field(default_factory=dict)
    #: Annotations of the volume that have done their work (force).
    spent_annotations: tuple[str, ...] = ()
    #: The status with the words of what waits, in transitions and pending ones; None: as it is.
    waiting: ReplicatedVolumeStatus | None = None
    waits: tuple[Wait, ...] = ()
    #: Seconds after which to look again, for grace periods.
    again: float | None = None


def advance(view: VolumeView, now: datetime) -> Advance:
    """Ask the transitions."""
    ask = _of("transitions", "advance")
    answer: Advance | None = ask(view, now) if ask is not None else None
    return answer if answer is not None else Advance()


def attach_requests(view: VolumeView, now: datetime) -> tuple[AttachRequest, ...]:
    """Ask for the queue."""
    ask = _of("attach", "requests")
    if ask is not None:
        answer: tuple[AttachRequest, ...] = ask(view, now)
        return answer
    return view.rv.status.attach_requests if view.rv is not None else ()


def attach_verdicts(view: VolumeView, now: datetime) -> tuple[Verdict, ...]:
    """Ask what the queue has to say."""
    ask = _of("attach", "verdicts")
    answer: tuple[Verdict, ...] = ask(view, now) if ask is not None else ()
    return answer


def resize_verdicts(view: VolumeView) -> tuple[Verdict, ...]:
    """Ask what a growth has to say."""
    ask = _of("resize", "verdicts")
    answer: tuple[Verdict, ...] = ask(view) if ask is not None else ()
    return answer


def effective_layout(view: VolumeView) -> EffectiveLayout | None:
    """Ask what could be survived; None: nobody knows."""
    ask = _of("effective", "layout")
    answer: EffectiveLayout | None = ask(view) if ask is not None else None
    return answer


def _of(module: str, name: str) -> Any:
    """A function of a package that is still being built; None while it is not there."""
    try:
        return getattr(import_module(f"quorate.volumes.{module}"), name, None)
    except ModuleNotFoundError as missing:
        if missing.name != f"quorate.volumes.{module}":
            raise
        return None
