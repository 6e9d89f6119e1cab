"""What the steps of Attach, Detach and Multiattach do to the datamesh; ``transitions.catalogue`` makes steps of them.

| transition         | step               | change                     | over when                            |
|--------------------|--------------------|----------------------------|--------------------------------------|
| Attach             | Promote            | the member is attached     | all confirm, the kernel says Primary |
| Detach             | Demote             | the member is not attached | all confirm, no longer Primary       |
| EnableMultiattach  | AllowTwoPrimaries  | two primaries are allowed  | all confirm                          |
| DisableMultiattach | ForbidTwoPrimaries | they are not               | all confirm                          |

Of two attached members the younger yields (``datamesh.config_of``). A Demote that takes the younger away because its
link is lost leaves behind that the copies have to be compared with the older one's.
"""

from __future__ import annotations

from quorate.api.storage.datamesh import Transition
from quorate.api.storage.rv import Comparison, ComparisonReason, ReplicatedVolumeStatus
from quorate.api.struct import replace
from quorate.volumes.attach.comparison import added, used
from quorate.volumes.attach.two_primaries import link_lost
from quorate.volumes.view import VolumeView


def attach(view: VolumeView, transition: Transition) -> ReplicatedVolumeStatus:
    """It is meant to be Primary; and what nobody had used before may be used from here on."""
    return used(_with_attached(view, transition, attached=True))


def detach(view: VolumeView, transition: Transition) -> ReplicatedVolumeStatus:
    """It is not meant to be Primary any more."""
    status = _with_attached(view, transition, attached=False)
    lost = link_lost(view)
    stays = [member.name for member in lost or () if member.name != transition.replica_name]
    if len(stays) != 1:
        return status
    comparison = Comparison(
        revision=status.datamesh_revision + 1,
        reason=ComparisonReason.TWO_PRIMARIES,
        since=transition.started_at,
        reference=stays[0],
    )
    return added(status, comparison)


def allow_two(view: VolumeView, transition: Transition) -> ReplicatedVolumeStatus:
    """Every member lets two be Primary."""
    return _with_two(view, allowed=True)


def forbid_two(view: VolumeView, transition: Transition) -> ReplicatedVolumeStatus:
    """One at a time again."""
    return _with_two(view, allowed=False)


def _with_attached(view: VolumeView, transition: Transition, *, attached: bool) -> ReplicatedVolumeStatus:
    status, name = view.volume.status, transition.replica_name
    members = tuple(replace(member, attached=attached) if member.name == name else member for member in view.members)
    return replace(status, datamesh=replace(status.datamesh, members=members))


def _with_two(view: VolumeView, *, allowed: bool) -> ReplicatedVolumeStatus:
    status = view.volume.status
    shared = replace(status.drbd.config, allow_two_primaries=allowed)
    return replace(status, drbd=replace(status.drbd, config=shared))
