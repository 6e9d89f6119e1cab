"""Phase 2, EstablishConnectivity: members that know one another, and nobody has data yet.

``introduce`` makes the revision: secret, members, quorum. Then every member must show it, be connected to every member
it is linked to, and be without data: diskful ones Inconsistent and Established, the tie-breaker Diskless.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import combinations
from random import Random

from quorate.api import names
from quorate.api.cluster_config import SharedSecrets
from quorate.api.scalars import ReplicaName
from quorate.api.secret import Secret
from quorate.api.storage.datamesh import FormationPhase, Member
from quorate.api.storage.drbd import DiskState, ReplicationState, ReplicaType
from quorate.api.struct import replace
from quorate.placement.layout import layout_of
from quorate.volumes.view import ReplicaView, VolumeView
from quorate.volumes.volume import secrets
from quorate.volumes.volume.formation.errors import first_error
from quorate.volumes.volume.formation.members import member_of
from quorate.volumes.volume.formation.steps import enter, waiting
from quorate.volumes.volume.outcome import Outcome
from quorate.volumes.waits import Blocker, Wait, ids


def introduce(view: VolumeView, replicas: Sequence[ReplicaView], now: datetime, random: Random) -> Outcome:
    """Tell everybody of everybody: one revision with the secret, the members and the promised quorum."""
    status, layout = view.volume.status, layout_of(view.configuration)
    config = replace(
        status.drbd.config,
        shared_secret=_secret(view, random),
        shared_secret_alg=secrets.ALGORITHMS[0],
        quorum=layout.majority,
        quorum_minimum_redundancy=layout.minimum_redundancy,
    )
    introduced = replace(
        status,
        drbd=replace(status.drbd, config=config),
        datamesh=replace(status.datamesh, members=tuple(member_of(view, replica) for replica in replicas)),
        datamesh_revision=status.datamesh_revision + 1,
    )
    return enter(introduced, FormationPhase.ESTABLISH_CONNECTIVITY, now)


def _secret(view: VolumeView, random: Random) -> Secret:
    """The secret, or the name of the Secret that holds it (``shared_secrets``)."""
    if view.config.drbd.shared_secrets is SharedSecrets.SECRET:
        return Secret(names.shared_secret(view.name))
    return secrets.new_secret(random)


def establish(view: VolumeView, now: datetime) -> Outcome:
    """``reconcileFormationPhaseEstablishConnectivity``, after the members are set."""
    limit = view.config.timeouts.establish_connectivity.seconds
    if changed := changed_members(view):
        return waiting(view, now, changed, limit)
    algorithm = view.volume.status.drbd.config.shared_secret_alg or secrets.ALGORITHMS[0]
    if lacking := secrets.without(view.replicas, algorithm):
        return _other_algorithm(view, now, lacking)
    wait = _unconfigured(view) or _disconnected(view) or _unready(view)
    if wait is not None:
        return waiting(view, now, wait, limit)
    return enter(view.volume.status, FormationPhase.BOOTSTRAP_DATA, now)


def changed_members(view: VolumeView) -> Wait | None:
    """Whether the replicas are still those that were introduced; somebody may have deleted one."""
    alive = {replica.name: replica for replica in view.replicas if not replica.replica.deleting}
    gone = [member.name for member in view.members if not _is_of(alive.get(member.name), member)]
    new = [name for name in alive if name not in view.members_by_name]
    if not gone and not new:
        return None
    told = [f"members without their replica {ids(gone)}"] if gone else []
    told += [f"replicas that are no members {ids(new)}"] if new else []
    return Wait("MembersChanged", "; ".join(told), _blockers((*gone, *new)))


def _is_of(replica: ReplicaView | None, member: Member) -> bool:
    return replica is not None and (replica.type, replica.node_name) == (member.type, member.node_name)


def _other_algorithm(view: VolumeView, now: datetime, lacking: Sequence[ReplicaName]) -> Outcome:
    """The next of the list, as a new revision; at its end, a wait for a person (M19)."""
    status = view.volume.status
    following = secrets.next_algorithm(status.drbd.config.shared_secret_alg or secrets.ALGORITHMS[0])
    if following is None:
        names = ", ".join(secrets.ALGORITHMS)
        return waiting(
            view,
            now,
            Wait("UnableToSelectSharedSecretAlgorithm", f"none of {names} works {ids(lacking)}", _blockers(lacking)),
        )
    config = replace(status.drbd.config, shared_secret_alg=following)
    changed = replace(status, drbd=replace(status.drbd, config=config), datamesh_revision=status.datamesh_revision + 1)
    return enter(changed, FormationPhase.ESTABLISH_CONNECTIVITY, now)


def _unconfigured(view: VolumeView) -> Wait | None:
    revision = view.volume.status.datamesh_revision
    members = [replica for replica in view.replicas if replica.member is not None]
    waits = [replica for replica in members if not replica.confirms(revision)]
    if not waits:
        return None
    said = "".join(f"; {error}" for replica in waits if (error := first_error(replica)))
    names = [replica.name for replica in waits]
    return Wait("WaitingForConfiguration", f"revision {revision} is not shown by {ids(names)}{said}", _blockers(names))


def _disconnected(view: VolumeView) -> Wait | None:
    cut = [
        (one.name, other.name)
        for one, other in combinations(view.members, 2)
        if ReplicaType.DISKFUL in (one.type, other.type) and not view.connected(one.name, other.name)
    ]
    if not cut:
        return None
    names = tuple(dict.fromkeys(name for pair in cut for name in pair))
    pairs = ", ".join(f"{one} and {other}" for one, other in cut)
    return Wait("WaitingForConnections", f"not connected: {pairs}", _blockers(names))


def _unready(view: VolumeView) -> Wait | None:
    waits = [member.name for member in view.members if not _is_blank(view, member)]
    if not waits:
        return None
    told = ", ".join(f"{name} is {view.state_of(name).disk}" for name in waits)
    return Wait("WaitingForBootstrapReadiness", f"not ready for the first data: {told}", _blockers(waits))


def _is_blank(view: VolumeView, member: Member) -> bool:
    """Without data, and with nothing flowing."""
    disk = view.state_of(member.name).disk
    if member.type is not ReplicaType.DISKFUL:
        return disk == DiskState.DISKLESS
    return disk == DiskState.INCONSISTENT and all(
        view.replication(member.name, peer.name) == ReplicationState.ESTABLISHED
        for peer in view.diskful_members
        if peer.name != member.name
    )


def _blockers(names: Sequence[ReplicaName]) -> tuple[Blocker, ...]:
    return tuple(Blocker("ReplicatedVolumeReplica", name) for name in names)
