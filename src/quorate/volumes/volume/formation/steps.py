"""The Formation transition: how it begins, moves from phase to phase, waits, gives up and ends.

Everything here makes a new status; what is in it is decided by the phases' own modules.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final

from quorate.api.meta import NodeName
from quorate.api.quantity import Quantity
from quorate.api.storage import ReplicatedVolume
from quorate.api.storage.datamesh import (
    Datamesh,
    Formation,
    FormationPhase,
    Step,
    StepStatus,
    Transition,
    TransitionGroup,
    TransitionType,
)
from quorate.api.storage.rv import ReplicatedVolumeStatus, VolumeDrbd, VolumeDrbdConfig
from quorate.api.struct import replace
from quorate.volumes import births
from quorate.volumes.settling import young
from quorate.volumes.sizes import in_blocks
from quorate.volumes.view import VolumeView
from quorate.volumes.volume.formation import emptiness
from quorate.volumes.volume.outcome import Outcome
from quorate.volumes.waits import Blocker, Wait, ids

_PHASES: Final = (
    FormationPhase.PRECONFIGURE,
    FormationPhase.ESTABLISH_CONNECTIVITY,
    FormationPhase.BOOTSTRAP_DATA,
)


#: So many seconds an agent is given to look at its node before volumes are formed without its word.
AGENTS_START: Final = 60.0
#: Meanwhile it is looked so often whether they have.
LOOK_FOR_REPORTS: Final = 1.0


def begin(view: VolumeView, now: datetime) -> Outcome:
    """Revision 1: size and networks are fixed, and nobody takes part yet."""
    rv = view.volume
    if view.rsp is None:
        pool = view.configuration.replicated_storage_pool_name
        wait = Wait(
            "StoragePoolNotReady",
            f"there is no ReplicatedStoragePool {pool}",
            (Blocker("ReplicatedStoragePool", pool),),
        )
        return Outcome(rv.status, wait=wait)
    if found := left_behind(view):
        return Outcome(rv.status, wait=found)
    if starting := _starting(view, now):
        words = f"agents have just started, and may find data of an earlier {view.name}: {', '.join(sorted(starting))}"
        left = max(starting.values())
        return Outcome(rv.status, wait=Wait("WaitingForAgents", words), again=min(left, LOOK_FOR_REPORTS))
    if births.is_full(view.others_forming, now):
        return _let_wait(rv, now)
    minor = rv.status.drbd.config.device_minor
    status = replace(
        rv.status,
        drbd=VolumeDrbd(config=VolumeDrbdConfig(device_minor=minor)),
        datamesh=Datamesh(size=_in_blocks(rv.spec.size), system_network_names=view.rsp.spec.system_network_names),
        datamesh_revision=1,
        datamesh_transitions=(
            Transition(
                type=TransitionType.FORMATION,
                group=TransitionGroup.FORMATION,
                started_at=now,
                datamesh_revision=1,
                steps=tuple(Step(name=phase, status=StepStatus.PENDING) for phase in _PHASES),
                formation=Formation(phase=FormationPhase.PRECONFIGURE, phase_started_at=now),
            ),
        ),
        datamesh_pending_replica_transitions=(),
    )
    return Outcome(_moved(status, FormationPhase.PRECONFIGURE, now), advances=True)


def left_behind(view: VolumeView) -> Wait | None:
    """Why nothing is formed: what an earlier volume of this name has left holds data, and belongs to no object.

    Its store may have been restored from an older copy: an empty volume beside its data would be taken for it.
    """
    if not view.orphans:
        return None
    left = [f"{node}/{orphan.name}" for node, orphan in view.orphans]
    message = (
        f"not formed beside what is left of an earlier volume {view.name}: {', '.join(left)} hold data, and belong to"
        " no object. If they are needed, bring back the objects that they belonged to; if not, quorate orphan remove"
        f" {left[0]}. Of a machine that does not come back, delete the Node object"
    )
    nodes = dict.fromkeys(node for node, _ in view.orphans)
    return Wait("OrphansFound", message, tuple(Blocker("Node", node) for node in nodes))


def _starting(view: VolumeView, now: datetime) -> dict[NodeName, float]:
    """Agents that have just started and not looked yet, and the seconds that each still has for it.

    One that cannot look keeps nobody waiting for longer, nor is it named beside those that can.
    """
    left = {node: AGENTS_START - (now - since).total_seconds() for node, since in view.not_looked_at.items()}
    return {node: seconds for node, seconds in left.items() if seconds > 0}


def _let_wait(rv: ReplicatedVolume, now: datetime) -> Outcome:
    wait = Wait("WaitingForTurn", f"{births.AT_ONCE} volumes are being formed: its turn comes when some of them are")
    patience = young(rv.metadata.creation_timestamp, now, births.PATIENCE)
    return Outcome(rv.status, wait=wait, again=births.LOOK, untold=patience)


def enter(status: ReplicatedVolumeStatus, phase: FormationPhase, now: datetime) -> Outcome:
    """The status, with the next phase begun."""
    return Outcome(_moved(status, phase, now), advances=True)


def complete(view: VolumeView, now: datetime) -> Outcome:
    """The volume is born: there is no Formation any more."""
    took = (now - transition_of(view).started_at).total_seconds()
    event = ("Formed", f"the volume was formed in {took:.1f} s")
    return Outcome(_without_formation(view), advances=True, event=event)


def _without_formation(view: VolumeView) -> ReplicatedVolumeStatus:
    status = view.volume.status
    others = tuple(each for each in status.datamesh_transitions if each.type is not TransitionType.FORMATION)
    return replace(status, datamesh_transitions=others)


def restart_clock(view: VolumeView, now: datetime) -> Outcome:
    """The phase counts from now: what it waited for until now was nobody's fault."""
    transition = transition_of(view)
    assert transition.formation is not None
    changed = replace(transition, formation=replace(transition.formation, phase_started_at=now), reason="", message="")
    return Outcome(_with(view.volume.status, changed), advances=True)


def waiting(
    view: VolumeView, now: datetime, wait: Wait, limit: float | None = None, writes: tuple[Any, ...] = ()
) -> Outcome:
    """The phase goes on waiting; past its limit, in seconds, formation starts again, if nothing is lost by that."""
    if limit is None:
        return Outcome(_told(view, wait), writes=writes, wait=wait)
    left = limit - elapsed(view, now)
    if left > 0:
        return Outcome(_told(view, wait), writes=writes, wait=wait, again=left)
    return _given_up(view, now, wait, limit, writes)


def elapsed(view: VolumeView, now: datetime) -> float:
    """Seconds since the phase began."""
    transition = transition_of(view)
    assert transition.formation is not None
    began = transition.formation.phase_started_at or transition.started_at
    return max(0.0, (now - began) / timedelta(seconds=1))


def transition_of(view: VolumeView) -> Transition:
    """The Formation."""
    found = view.transition(TransitionType.FORMATION)
    assert found is not None
    return found


def _given_up(view: VolumeView, now: datetime, wait: Wait, limit: float, writes: tuple[Any, ...]) -> Outcome:
    """It took too long. It starts again if nothing is lost by that; that is written before anything is deleted."""
    found, transition = emptiness.look(view), transition_of(view)
    assert transition.formation is not None
    late = f"{transition.formation.phase} took more than {limit:.0f} s"
    if found.with_data and emptiness.serves(view):
        return _found_alive(view, f"{late}, but {ids(found.with_data)} hold data and have quorum: the volume lives")
    if refusal := emptiness.refusal(view, found, wait):
        return Outcome(_told(view, refusal), writes=writes, wait=refusal)
    if found.disks:
        patience = emptiness.time_to_answer(view, now)
        if patience is None:
            return Outcome(_asked(view, now), advances=True)
        if patience > 0:
            return Outcome(_told(view, wait), writes=writes, wait=wait, again=patience)
    why = Wait(wait.reason, f"{late}: {wait.message}", wait.blockers)
    dissolved = replace(view.volume.status, datamesh=replace(view.datamesh, members=()))
    status = _moved(dissolved, FormationPhase.RESTARTING, now, why)
    return Outcome(status, advances=True, wait=why, event=("FormationRestarted", why.message))


def _found_alive(view: VolumeView, why: str) -> Outcome:
    """It was formed before, as a store that is lost knew, or far enough: what it lacks is repaired as in any life."""
    return Outcome(_without_formation(view), advances=True, event=("FoundFormed", why))


def _asked(view: VolumeView, now: datetime) -> ReplicatedVolumeStatus:
    """One more revision, the same but for its number: whoever shows it has looked at its disk since."""
    transition, status = transition_of(view), view.volume.status
    assert transition.formation is not None
    asked = replace(transition, formation=replace(transition.formation, asked_at=now))
    revision = status.datamesh_revision + bool(view.members)
    return replace(_with(status, asked), datamesh_revision=revision)


def _moved(
    status: ReplicatedVolumeStatus, phase: FormationPhase, now: datetime, why: Wait | None = None
) -> ReplicatedVolumeStatus:
    transition = next(each for each in status.datamesh_transitions if each.type is TransitionType.FORMATION)
    steps = tuple(_step(each, phase, status.datamesh_revision, now) for each in transition.steps)
    changed = replace(
        transition,
        datamesh_revision=status.datamesh_revision,
        reason=why.reason if why is not None else "",
        message=why.brief() if why is not None else "",
        steps=steps,
        formation=Formation(phase=phase, phase_started_at=now),
    )
    return _with(status, changed)


def _step(step: Step, phase: FormationPhase, revision: int, now: datetime) -> Step:
    """Steps before the phase are completed, its own is active."""
    if step.name == phase:
        return replace(step, status=StepStatus.ACTIVE, datamesh_revision=revision, started_at=now)
    if step.status is StepStatus.ACTIVE and phase is not FormationPhase.RESTARTING:
        return replace(step, status=StepStatus.COMPLETED, completed_at=now)
    return step


def _told(view: VolumeView, wait: Wait) -> ReplicatedVolumeStatus:
    transition = transition_of(view)
    return _with(view.volume.status, replace(transition, reason=wait.reason, message=wait.brief()))


def _with(status: ReplicatedVolumeStatus, transition: Transition) -> ReplicatedVolumeStatus:
    changed = tuple(
        transition if each.type is TransitionType.FORMATION else each for each in status.datamesh_transitions
    )
    return replace(status, datamesh_transitions=changed)


def _in_blocks(size: Quantity) -> Quantity:
    return Quantity.of_bytes(in_blocks(int(size)))
