"""The younger of two primaries has lost a link: how it gives way, and how it comes back.

Its agent has cut it off already. It is Primary still, suspended, and perhaps held open by somebody who waits for a
write. If it met the third member before the older primary, both would write. So it is told to link to the older one
alone, which makes it Secondary as soon as they meet (``two_primaries_3d_disconnect``); once its own agent says that it
is, it is linked to everybody again. The copies are compared with the older one's then, because what it wrote between
the cut and its own may be on the third member only.

These are no transitions. Each changes the config of one member: it links to fewer, or to more when that is harmless.
They must not wait for anybody's confirmation: the member that is away may be the reason for it.
"""

from __future__ import annotations

from datetime import datetime

from quorate.api.storage.datamesh import Member
from quorate.api.storage.drbd import Role
from quorate.api.storage.rv import Comparison, ComparisonReason, ReplicatedVolumeStatus
from quorate.api.struct import replace
from quorate.volumes.attach.comparison import added
from quorate.volumes.attach.two_primaries import link_lost
from quorate.volumes.view import VolumeView


def yielded(view: VolumeView, now: datetime) -> ReplicatedVolumeStatus | None:
    """The status in which the younger gives way, or has come back; None: neither is to be done."""
    lost = link_lost(view)
    if lost is not None:
        older, younger = lost
        status = _with(view, replace(younger, attached=False, returns_to=older.name))
        comparison = Comparison(
            revision=status.datamesh_revision,
            reason=ComparisonReason.TWO_PRIMARIES,
            since=now,
            reference=older.name,
        )
        return added(status, comparison)
    back = next((member for member in view.members if member.returns_to is not None and _is_back(view, member)), None)
    return _with(view, replace(back, returns_to=None)) if back is not None else None


def _is_back(view: VolumeView, member: Member) -> bool:
    """Whether it is Secondary by now, or not up, by its own agent's word; or the one it returns to is gone."""
    if member.returns_to not in view.members_by_name:
        return True
    replica = view.replica(member.name)
    if replica is None or not replica.fresh:
        return False
    return replica.report is None or replica.report.role != Role.PRIMARY


def _with(view: VolumeView, changed: Member) -> ReplicatedVolumeStatus:
    status = view.volume.status
    members = tuple(changed if member.name == changed.name else member for member in view.members)
    datamesh = replace(status.datamesh, members=members)
    return replace(status, datamesh=datamesh, datamesh_revision=status.datamesh_revision + 1)
