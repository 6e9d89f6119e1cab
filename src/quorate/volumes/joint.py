"""One pass over a volume and its replicas: two decisions on one picture, and one plan of both.

A step of the volume is a plan of its own: what replicas make of it is decided by the next pass, which sees it. In every
other pass replicas come first, as children do, then what the volume does, and its status last.
"""

from __future__ import annotations

from datetime import datetime
from random import Random
from typing import Final

from quorate.api.core import Lease
from quorate.engine import NOTHING, Controller, Create, Delete, Key, Plan, Reader, ReleaseFinalizer, Signal, Write
from quorate.locks import LockTable
from quorate.volumes import locking
from quorate.volumes.observe import INDEXES, observe
from quorate.volumes.replica import controller as replica
from quorate.volumes.replica.snapshot import Snapshot
from quorate.volumes.view import VolumeView
from quorate.volumes.volume import controller as volume
from quorate.volumes.watches import OF_VOLUMES, REST

#: Seconds after which a write that had to stand back for another of the same object is decided anew.
_AT_ONCE: Final = 0.001


def decide(view: VolumeView, now: datetime, random: Random) -> Plan:
    """What becomes of the volume, and of its replicas."""
    own = volume.decide(view, now, random)
    if own.transition is not None or not view.replicas:
        return own
    theirs = replica.decide(Snapshot(view), now, random)
    return joined(own, theirs) if theirs is not NOTHING else own


def joined(own: Plan, theirs: Plan) -> Plan:
    """Both. Where they cannot both write an object, the volume does, and the replicas' pass is made again."""
    first = [write for write in theirs.steps if all(_agree(write, other) for other in own.steps)]
    again = [each for each in (own.requeue_after, theirs.requeue_after) if each is not None]
    if len(first) < len(theirs.steps):
        again.append(_AT_ONCE)
    return Plan(
        writes=(*first, *own.writes),
        status=own.status,
        # Those of a plan with nothing to write would be told again in every pass.
        events=(*(theirs.events if first else ()), *(own.events if own.steps else ())),
        requeue_after=min(again, default=None),
    )


def _agree(write: Write, later: Write) -> bool:
    """Whether one can be followed by the other."""
    if write.target is not later.target or isinstance(later, Create):
        return True
    ends = isinstance(write, Delete | ReleaseFinalizer)
    return not (ends or later.if_unchanged or type(write) is type(later))


def reconciler(signal: Signal, table: LockTable) -> Controller[VolumeView]:
    """Of volumes and their replicas, woken also through the signal of ``fanning.fan_out``."""

    def observe_with_holds(reader: Reader, key: Key) -> VolumeView | None:
        view = observe(reader, key.name)
        return locking.with_holds(view, table) if view is not None else None

    def decide_with_claim(view: VolumeView, now: datetime, random: Random) -> Plan:
        return locking.claimed(view, decide(view, now, random), table)

    return Controller(
        name="volumes",
        watches=OF_VOLUMES,
        observe=observe_with_holds,
        decide=decide_with_claim,
        indexes=INDEXES,
        freshness=(Lease,),
        signals=(signal,),
        workers=8,
        rest=REST,
    )
