"""Whether a replica may go, and what still holds it: 000's ``rvr-gc-controller`` with the finalizer table of 01.

| the volume                          | a replica that is being deleted lets go of its data                          |
|-------------------------------------|------------------------------------------------------------------------------|
| does not exist                      | at once if it has no copy; else only with a person's consent, the annotation  |
|                                     | ``accept-data-loss`` on it: a volume ends after its replicas, so this one's   |
|                                     | object was lost, and Kubernetes deletes by itself what a lost object owned   |
| is being deleted, nothing attached  | at once                                                                      |
| is being formed, not with it        | at once: it has no data that anybody counts on. One that had some is older    |
|                                     | than that formation (decision 0010), and goes only with a person's consent   |
| lives                               | once it has left the datamesh, the rest have forgotten it, and 000's gc       |
|                                     | conditions hold: enough of the others are quorate and connected, the promised |
|                                     | number of copies is up to date, and it is not in use on its node             |
| has lost its status                 | not before a person has decided                                              |

The conditions are judged by live reports, never by ``Ready`` (M23). A replica without a disk, or whose disk has never
been up to date, has no copy that could be missed: for it only "not in use" counts. One whose core Node is gone cannot
be missed either, nor one that a person gave up: the word that removed it by force is handed on to it
(``accept-data-loss``), for there may be no other place for the copy that is to replace it.

An object with a foreign finalizer is not treated as gone: somebody still needs it.
"""

from __future__ import annotations

from typing import Final

from quorate.api import annotation_keys, finalizers
from quorate.api.meta import Resource
from quorate.api.scalars import ReplicaName
from quorate.api.storage import ReplicatedVolumeReplica
from quorate.api.storage.datamesh import FormationPhase, TransitionGroup
from quorate.api.storage.drbd import DiskState, Role
from quorate.drbd.outcomes import Outcome
from quorate.placement.layout import layout_of
from quorate.volumes.naming import named
from quorate.volumes.view import ReplicaView, VolumeView
from quorate.volumes.waits import Blocker, Wait

#: What Kubernetes itself puts there while it deletes children first, or not at all.
_OF_KUBERNETES: Final = frozenset({"foregroundDeletion", "orphan"})
_OURS: Final = frozenset(
    {*finalizers.OF_A_NEW_REPLICA, *finalizers.OF_A_MEMBER, finalizers.RV_CONTROLLER, *_OF_KUBERNETES}
)


def foreign_finalizers(obj: Resource) -> tuple[str, ...]:
    """Those of somebody we know nothing of."""
    return tuple(name for name in obj.metadata.finalizers if name not in _OURS)


def is_leaving(replica: ReplicatedVolumeReplica) -> bool:
    """Whether it is being deleted, and only we still hold it."""
    return replica.deleting and not foreign_finalizers(replica)


def is_ending(view: VolumeView) -> bool:
    """Whether the whole volume goes, and nothing of it is in use. One whose object was lost does not go."""
    rv = view.rv
    return rv is not None and rv.deleting and not foreign_finalizers(rv) and not attached(view)


def attached(view: VolumeView) -> tuple[ReplicaName, ...]:
    """Replicas that are, may be, or are about to be in use."""
    if view.rv is None:
        return ()
    moving = {
        transition.replica_name
        for transition in view.rv.status.datamesh_transitions
        if transition.group is TransitionGroup.ATTACHMENT
    }
    intended = {member.name for member in view.members if member.attached}
    live = {replica.name for replica in view.replicas if view.state_of(replica.name).role == Role.PRIMARY}
    return tuple(sorted({*intended, *live, *(name for name in moving if name is not None)}))


def status_is_lost(view: VolumeView) -> bool:
    """Whether there is data under a volume that knows nothing of it: then a person decides."""
    if view.rv is None or view.rv.status.datamesh_revision or view.formation is not None:
        return False
    return any(replica.replica.status.drbd.actual.initial_sync_completed for replica in view.replicas)


def hindrance(view: VolumeView, replica: ReplicaView) -> Wait | None:
    """Why a replica that is being deleted must keep what it has; None: it may let go of it."""
    if is_ending(view):
        return None
    if view.rv is None:
        return _volume_lost(view, replica) if _has_something_to_lose(replica) else None
    if replica.member is not None:
        return Wait("StillMember", f"{replica.name} is still a member of the datamesh", _volume(view))
    if status_is_lost(view):
        return Wait("StatusLost", "the volume has lost its status, and a person must decide", _volume(view))
    if view.forming and _may_be_dropped(view):
        return _older_than_its_formation(replica) if _has_something_to_lose(replica) else None
    if not is_forgotten(view, replica):
        return Wait("NotForgotten", f"the members have not forgotten node id {replica.id} yet", _volume(view))
    in_use = _in_use(view, replica)
    if in_use is not None or replica.node is None or replica.node.gone:
        return in_use
    return _copies_elsewhere(view, replica) if _has_something_to_lose(replica) else None


def accepts_data_loss(obj: Resource) -> bool:
    """Whether a person has said on the object itself that what it holds may go."""
    return obj.metadata.annotations.get(annotation_keys.ACCEPT_DATA_LOSS) == "true"


def _has_something_to_lose(replica: ReplicaView) -> bool:
    """Whether it has a copy that no person has given up."""
    return has_a_copy(replica) and not accepts_data_loss(replica.replica)


def _volume_lost(view: VolumeView, replica: ReplicaView) -> Wait:
    return Wait(
        "VolumeLost",
        f"there is no ReplicatedVolume {view.name}, and {replica.name} holds a copy of its data; to give it up,"
        f" annotate {replica.name} with {annotation_keys.ACCEPT_DATA_LOSS}=true",
        _volume(view),
    )


def _older_than_its_formation(replica: ReplicaView) -> Wait:
    return Wait(
        "ReplicaHoldsData",
        f"{replica.name} was up to date once, although its volume is only being formed: the API may have forgotten what"
        f" is on it; to give it up, annotate {replica.name} with {annotation_keys.ACCEPT_DATA_LOSS}=true",
        (Blocker.of(replica.replica),),
    )


def is_forgotten(view: VolumeView, replica: ReplicaView) -> bool:
    """Whether it has left, and everybody who is awake has forgotten it.

    A copy that sleeps is told when it wakes, before anybody listens to it, and one without its disk when that is back.
    The id is not used again until then, but nothing else waits for that: the node may be the only one left for whoever
    is to replace the sleeper.
    """
    if view.rv is None:
        return True
    underway = any(each.replica_name == replica.name for each in view.rv.status.datamesh_transitions)
    if replica.member is not None or underway:
        return False
    asleep = any(
        member.excused or view.state_of(member.name).disk == DiskState.DISKLESS for member in view.diskful_members
    )
    return asleep or replica.id not in view.datamesh.forget


def _may_be_dropped(view: VolumeView) -> bool:
    """A volume that has no members yet, or gives up those it has, misses nobody."""
    formation = view.formation
    return formation is None or not view.members or formation.phase is FormationPhase.RESTARTING


def _in_use(view: VolumeView, replica: ReplicaView) -> Wait | None:
    published = view.rv is not None and replica.node_name in view.rv.status.published_on
    if published or view.state_of(replica.name).role == Role.PRIMARY:
        message = f"{replica.name} is in use on {replica.node_name}{_held_open(replica)}"
        return Wait("Published", message, (Blocker.of(replica.replica),))
    return None


def _held_open(replica: ReplicaView) -> str:
    """Who holds a device whose member has left: nobody but a person can end that, so the words say how."""
    error = replica.replica.status.drbd.errors.last_adjustment_error
    if error is None or error.reason != Outcome.HELD_OPEN:
        return ""
    return (
        f", although it has left the volume: {' '.join(error.output.split())}. What that process waits for is never"
        f" written: end it, or restart {replica.node_name} if it cannot be ended"
    )


def has_a_copy(replica: ReplicaView) -> bool:
    """Whether it has data that was ever good."""
    return bool(replica.volumes) and replica.replica.status.drbd.actual.initial_sync_completed


def _copies_elsewhere(view: VolumeView, replica: ReplicaView) -> Wait | None:
    """000's two counts, of the others: up to date, quorate and in touch with each other."""
    configuration = view.rv.status.configuration if view.rv is not None else None
    if configuration is None:
        return Wait("NoConfiguration", "the volume has no configuration: what it promises is not known", _volume(view))
    layout, evacuation = layout_of(configuration), replica.evacuation
    # From a drive that gave nothing any more it was taken without a replacement: there may be none without its place.
    lost = evacuation is not None and evacuation.lost
    promised = layout.minimum_redundancy if lost else layout.diskful
    good = [name for name in _others_with_data(view, replica) if _is_good(view, name)]
    apart = [one for one in good if any(not view.connected(one, other) for other in good if other != one)]
    if len(good) < promised:
        message = (
            f"{len(good)} of {promised} promised copies are up to date and quorate without it: {named(view, good)}"
        )
        return Wait("CopiesMissing", message, _volume(view))
    if apart:
        return Wait("NotConnected", f"members are not connected with each other: {named(view, apart)}", _volume(view))
    return None


def _others_with_data(view: VolumeView, replica: ReplicaView) -> list[ReplicaName]:
    """Voters, also those that are to go: each stays until the copies are there without it.

    They may need this one's node for that. If they did not count here, several that are deleted together would wait
    for one another (decision 0006).
    """
    return [member.name for member in view.diskful_members if not member.hidden and member.name != replica.name]


def _is_good(view: VolumeView, name: ReplicaName) -> bool:
    state = view.state_of(name)
    return state.up and state.disk == DiskState.UP_TO_DATE and bool(state.quorum)


def _volume(view: VolumeView) -> tuple[Blocker, ...]:
    return (Blocker("ReplicatedVolume", view.name),)
