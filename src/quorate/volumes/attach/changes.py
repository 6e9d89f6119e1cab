"""What the steps of Attach, Detach and Multiattach do to the datamesh; ``transitions.catalogue`` makes steps of them.

| transition         | step               | change                     | over when                            |
|--------------------|--------------------|----------------------------|--------------------------------------|
| Attach             | Promote            | the member is attached     | the kernel says Primary              |
| Detach             | Demote             | the member is not attached | it confirms, and is not Primary      |
| EnableMultiattach  | AllowTwoPrimaries  | two primaries are allowed  | all confirm                          |
| DisableMultiattach | ForbidTwoPrimaries | they are not               | all confirm                          |

Of two attached members the younger yields (``datamesh.config_of``, ``yielding``).
"""

from __future__ import annotations

from quorate.api.storage.datamesh import Transition
from quorate.api.storage.rv import ReplicatedVolumeStatus
from quorate.api.struct import replace
from quorate.volumes.attach.comparison import used
from quorate.volumes.attach.doubts import promoted
from quorate.volumes.view import VolumeView


def attach(view: VolumeView, transition: Transition) -> ReplicatedVolumeStatus:
    """It is meant to be Primary; and what nobody had used before may be used from here on."""
    status = used(_with_member(view, transition, attached=True))
    member = view.members_by_name.get(transition.replica_name) if transition.replica_name is not None else None
    return replace(status, last_promotion=promoted(view, member)) if member is not None else status


def detach(view: VolumeView, transition: Transition) -> ReplicatedVolumeStatus:
    """It is not meant to be Primary any more."""
    return _with_member(view, transition, attached=False)


def allow_two(view: VolumeView, transition: Transition) -> ReplicatedVolumeStatus:
    """Every member lets two be Primary."""
    return _with_two(view, allowed=True)


def forbid_two(view: VolumeView, transition: Transition) -> ReplicatedVolumeStatus:
    """One at a time again."""
    return _with_two(view, allowed=False)


def _with_member(view: VolumeView, transition: Transition, **changes: object) -> ReplicatedVolumeStatus:
    status, name = view.volume.status, transition.replica_name
    members = tuple(replace(member, **changes) if member.name == name else member for member in view.members)
    return replace(status, datamesh=replace(status.datamesh, members=members))


def _with_two(view: VolumeView, *, allowed: bool) -> ReplicatedVolumeStatus:
    status = view.volume.status
    shared = replace(status.drbd.config, allow_two_primaries=allowed)
    return replace(status, drbd=replace(status.drbd, config=shared))
