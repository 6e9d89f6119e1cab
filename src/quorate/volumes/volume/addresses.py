"""Where members listen, kept up to date in the datamesh.

An agent keeps the address it has chosen, but for one case: of two replicas with one port the younger chooses again.
Its peers must then be told, and that is a revision like any other: it changes no vote, and whoever has not applied it
yet only fails to connect.
"""

from __future__ import annotations

from quorate.api.storage.datamesh import Member
from quorate.api.storage.rv import ReplicatedVolumeStatus
from quorate.api.struct import replace
from quorate.volumes.view import VolumeView
from quorate.volumes.volume.formation.members import addresses_of


def with_new_addresses(view: VolumeView) -> ReplicatedVolumeStatus | None:
    """The status with a new revision; None while every member listens where the datamesh says."""
    members = tuple([_moved(view, member) for member in view.members])
    if members == view.members:
        return None
    status = view.volume.status
    return replace(
        status,
        datamesh=replace(status.datamesh, members=members),
        datamesh_revision=status.datamesh_revision + 1,
    )


def _moved(view: VolumeView, member: Member) -> Member:
    replica = view.replica(member.name)
    if replica is None or replica.address is None:
        return member
    found = addresses_of(replica)
    return member if found == member.addresses else replace(member, addresses=found)
