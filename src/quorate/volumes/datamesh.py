"""A member's DRBD config, rendered from one revision of the datamesh. The only place that does.

| field                | from                                                                                        |
|----------------------|---------------------------------------------------------------------------------------------|
| ``peers``            | the other members of the revision (M24), hidden ones included; members without a disk are   |
|                      | linked only to those with one; an excused member is left out until it has caught up; who    |
|                      | has yielded to another primary is linked only to that one until it is Secondary             |
| ``disk``             | ``/dev/<group>/<volume>`` of its logical volume; a member without a disk has none           |
| ``hidden``, ``down`` | the member's own                                                                            |
| ``forget``           | ids of members that left; only the diskful remember anybody                                 |
| ``primary``          | whether it is attached                                                                      |
| ``force_secondary``  | whether a person has it detached by force                                                   |
| ``yields``           | of two attached, the one that came later                                                    |
| ``keep_links``       | whether copies may differ although DRBD says that they do not (``stale``)                   |
| ``compared``         | those that it was found equal to, and shows bits against all the same                       |
| everything else      | ``rv.status.drbd.config`` and ``datamesh.size``, alike for all                              |

``address`` is the agent's and stays as it is. ``quorum`` is for people (M21).
"""

from __future__ import annotations

from operator import attrgetter
from typing import Final

from quorate.api.storage import ReplicatedVolume
from quorate.api.storage.datamesh import Member
from quorate.api.storage.drbd import Address, DrbdConfig, Peer, ReplicaType
from quorate.volumes.stale import are_equal, links_are_kept
from quorate.volumes.view import ReplicaView, VolumeView

_BY_ID: Final = attrgetter("node_id")


def config_of(view: VolumeView, replica: ReplicaView) -> DrbdConfig | None:
    """What the replica's agent must realise; None while it is not a member: then its config stays as it is."""
    member = view.members_by_name.get(replica.name)
    if view.rv is None or member is None:
        return None
    status = view.rv.status
    shared = status.drbd.config
    before = replica.replica.status.drbd.config
    diskful = member.type is ReplicaType.DISKFUL
    return DrbdConfig(
        datamesh_revision=status.datamesh_revision,
        node_id=member.node_id,
        type=member.type,
        address=before.address,
        peers=_peers(view, member),
        peers_initialized=True,
        device_minor=shared.device_minor,
        disk=(disk_path(replica) or before.disk) if diskful else None,
        size=status.datamesh.size,
        copy_growth=status.datamesh.copy_growth,
        shared_secret=shared.shared_secret,
        shared_secret_alg=shared.shared_secret_alg,
        quorum=shared.quorum,
        quorum_minimum_redundancy=shared.quorum_minimum_redundancy,
        allow_two_primaries=shared.allow_two_primaries,
        primary=member.attached,
        force_secondary=member.force_secondary and not member.attached,
        hidden=member.hidden,
        down=member.down,
        forget=tuple(each for each in status.datamesh.forget if each != member.node_id) if diskful else (),
        yields=member.attached and younger_of_two(view.rv) == member.name,
        keep_links=links_are_kept(view),
        compared=tuple(each.node_id for each in view.diskful_members if are_equal(view, member.name, each.name)),
    )


def disk_path(replica: ReplicaView) -> str | None:
    """The device of the replica's logical volume; None: it has none."""
    volume, group = replica.logical_volume, replica.group
    if volume is None or group is None:
        return None
    return f"/dev/{group.spec.actual_vg_name_on_the_node}/{volume.spec.actual_lv_name_on_the_node}"


def address_of(member: Member) -> Address | None:
    """Where a member listens, as the datamesh has it."""
    return member.addresses[0].address if member.addresses else None


def younger_of_two(rv: ReplicatedVolume) -> str | None:
    """Of two attached members, the one whose node asked later; None unless there are two."""
    attached = [member for member in rv.status.datamesh.members if member.attached]
    if len(attached) != 2:
        return None
    place = {request.node_name: request.since for request in rv.status.attach_requests}
    known = [member for member in attached if member.node_name in place]
    if len(known) < 2:
        # One of the two is on its way out, nobody asks for it any more: it yields to the one that stays.
        leaving = [member for member in attached if member.node_name not in place]
        return max(member.name for member in leaving)
    return max(known, key=lambda member: (place[member.node_name], member.name)).name


def _peers(view: VolumeView, member: Member) -> tuple[Peer, ...]:
    diskful = member.type is ReplicaType.DISKFUL
    return tuple(
        [
            Peer(
                name=other.name,
                node_name=other.node_name,
                node_id=other.node_id,
                type=other.type,
                address=address,
                hidden=other.hidden,
            )
            for other in sorted(view.members, key=_BY_ID)
            if other.name != member.name
            and not other.excused
            and member.returns_to in (None, other.name)
            and (diskful or other.type is ReplicaType.DISKFUL)
            and (address := address_of(other)) is not None
        ]
    )
