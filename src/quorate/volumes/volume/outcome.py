"""What one part of the reconciler decides; the reconciler makes one plan of it."""

from __future__ import annotations

import msgspec

from quorate.api.storage.rv import ReplicatedVolumeStatus
from quorate.engine import PlanEvent, Write
from quorate.volumes.waits import Wait


class Outcome(msgspec.Struct, frozen=True, gc=False):
    """The status to go on from, and what else is to be written."""

    status: ReplicatedVolumeStatus
    #: A step begins or ends with this status: it is written with the resourceVersion, and nothing else in the pass.
    advances: bool = False
    writes: tuple[Write, ...] = ()
    #: Why it does not go on.
    wait: Wait | None = None
    #: It only waits for its first data, on their way: that goes without saying for longer (``settling``).
    copying: bool = False
    #: Seconds for which all of this goes without saying; None: it does not.
    untold: float | None = None
    #: Seconds after which to look again.
    again: float | None = None
    #: Annotations of the volume that have done their work.
    spent_annotations: tuple[str, ...] = ()
    #: For people, when it is written: a reason and words.
    event: tuple[str, str] | None = None
    #: What is told of others than the volume.
    told: tuple[PlanEvent, ...] = ()
