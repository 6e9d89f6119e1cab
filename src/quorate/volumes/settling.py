"""When what is merely said is worth a write.

A formation that takes two seconds would otherwise be told step by step, condition by condition, in dozens of writes
that nobody can read that fast. So while a volume forms, each phase has a few seconds in which volumes and replicas
write only what somebody acts on: phases, places, requests to join, configs. A phase that lasts longer is told in full.
That the first data are being copied goes without saying for longer: the phase has said so, and many a copy is over.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from quorate.api.storage import DRBDResourceOperation
from quorate.api.storage.drbdrop import OperationPhase
from quorate.api.storage.rv import ReplicatedVolumeStatus
from quorate.volumes.patience import left_of

#: What is younger is not described yet, in seconds.
SETTLING: Final = 3.0
#: The same for a first copy under way.
COPYING: Final = 30.0


def young(since: datetime | None, now: datetime, patience: float = SETTLING) -> float | None:
    """Seconds until something that has been so since then is worth describing; None: it is."""
    return (left_of(patience, since, now) or None) if since is not None else None


def untold(status: ReplicatedVolumeStatus, now: datetime, *, copying: bool) -> float | None:
    """Seconds until a formation is worth describing; None: it is, or none is under way."""
    return young(forming_since(status), now, COPYING if copying else SETTLING)


def is_copying(operation: DRBDResourceOperation | None) -> bool:
    """Whether a volume's first operation has begun to copy everything, which the kernels then do by themselves."""
    if operation is None or operation.spec.create_new_uuid is None:
        return False
    return operation.spec.create_new_uuid.force_resync and operation.status.phase is OperationPhase.SUCCEEDED


def forming_since(status: ReplicatedVolumeStatus) -> datetime | None:
    """Since when the phase of a formation has lasted; None: the volume is not being formed."""
    found = (each.formation for each in status.datamesh_transitions if each.formation is not None)
    return next((formation.phase_started_at for formation in found), None)
