"""The whole decision about one replica: rules in the order in which it comes to life, then the report."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from dataclasses import replace as changed
from datetime import datetime
from typing import Any, Final

from quorate.agent.node import KERNEL_LOOK
from quorate.agent.replica import commands, deletion, report
from quorate.agent.replica.activity_log import keep_log
from quorate.agent.replica.adjust import adjust, forget, meet_again, recount
from quorate.agent.replica.algorithm import check_algorithm
from quorate.agent.replica.config import write_file
from quorate.agent.replica.down import leave_foreign, take_down, take_down_other_member
from quorate.agent.replica.duty import Duty
from quorate.agent.replica.growth import clear_former_size, resize
from quorate.agent.replica.guard import must_yield
from quorate.agent.replica.looking import look_at_files, look_at_kernel
from quorate.agent.replica.lost_drive import let_go_of_lost_disk
from quorate.agent.replica.metadata import prepare_metadata
from quorate.agent.replica.role import change_role, step_down_by_force
from quorate.agent.replica.settling import held_back
from quorate.agent.replica.standstill import mend_standstill, part_from_loop, standstills
from quorate.agent.replica.verdict import FINE, Verdict, command_error, own_error
from quorate.agent.replica.view import View
from quorate.agent.steps import KERNEL, Look, Step
from quorate.api.finalizers import AGENT
from quorate.api.storage.drbd import CommandError, DrbdErrors
from quorate.api.storage.rvr import ReplicatedVolumeReplicaStatus
from quorate.api.struct import replace

#: Seconds between two looks at a replica whose work hangs.
HANGING: Final = 30.0

Rule = Callable[[View, datetime, bool], Verdict]


@dataclass(frozen=True, slots=True)
class Decision:
    """What is to be done to the machine, and what is to be reported."""

    status: ReplicatedVolumeReplicaStatus
    steps: tuple[Step, ...] = ()
    #: The name under which the steps are done; "" as everything that touches the resource.
    work: str = ""
    #: The steps need the disk for themselves (see Verdict).
    disk: bool = False
    #: Outcomes that mean nothing any more.
    drop: tuple[str, ...] = ()
    again: float | None = None
    #: The agent may let go of the object.
    release: bool = False
    #: Percentages in sync are in this report.
    progress: bool = False
    #: There is more to report than this status says, a moment later.
    held_back: bool = False


def wait_for_work(view: View, now: datetime, settled: bool) -> Verdict:
    """One piece of work at a time; its end wakes us. One that hangs is told of when it has for a while."""
    return Verdict(stop=True, unsettled=True, again=HANGING if view.hung else None) if view.busy else FINE


def stay_cut_off(view: View, now: datetime, settled: bool) -> Verdict:
    """A primary that has yielded stays as the guard left it, unless it is to be Secondary or down: it goes there so."""
    if not must_yield(Duty.of(view.config), view.status) or view.config.down:
        return FINE
    demotion = FINE if view.config.primary else change_role(view, now, settled)
    return changed(demotion, stop=True, unsettled=True)


def need_config(view: View, now: datetime, settled: bool) -> Verdict:
    """Nothing is done before the config is complete and belongs to a revision: the replica is no member yet.

    Nor without our finalizer (M33): the object could go, and what we made would stay.
    """
    kept = AGENT in view.replica.metadata.finalizers
    return FINE if kept and not view.incomplete else Verdict(stop=True, unsettled=True)


#: What must be so before the kernel is what the config says…
TO_BE_REALISED: Final[tuple[Rule, ...]] = (
    step_down_by_force,
    wait_for_work,
    stay_cut_off,
    need_config,
    leave_foreign,
    take_down,
    look_at_files,
    check_algorithm,
    take_down_other_member,
    write_file,
    let_go_of_lost_disk,
    prepare_metadata,
    part_from_loop,
    adjust,
    forget,
    mend_standstill,
)
#: … and what goes on from there.
AFTERWARDS: Final[tuple[Rule, ...]] = (recount, meet_again, change_role, clear_former_size, resize, keep_log)

#: Which error a failed step of a purpose is shown as.
_SHOWN_AS: Final = {
    commands.CONFIG: "last_config_error",
    commands.METADATA: "last_metadata_error",
    commands.PROBE: "last_metadata_error",
    commands.SHRINK: "last_metadata_error",
    commands.ADJUST: "last_adjustment_error",
    commands.DOWN: "last_adjustment_error",
    commands.REMOVE: "last_adjustment_error",
    commands.FORGET: "last_adjustment_error",
    commands.RECOUNT: "last_adjustment_error",
    commands.MEET: "last_adjustment_error",
    commands.REJOIN: "last_adjustment_error",
    commands.INVALIDATE: "last_adjustment_error",
    commands.PART: "last_adjustment_error",
    commands.ROLE: "last_promotion_error",
    commands.FORCE: "last_promotion_error",
    commands.RESIZE: "last_resize_error",
}


def decide(view: View, now: datetime) -> Decision:
    """One pass over one replica."""
    if view.unusable_name:
        return _never_touched(view)
    if view.elder:
        return _beside_an_elder(view)
    walk = _Walk(view, now)
    if not walk.through((look_at_kernel,)):
        return walk.decision(realised=False)
    if deletion.is_last(view):
        return _end(view, now, walk)
    realised = walk.through(TO_BE_REALISED) or _is_realised_by_being_down(view)
    if not walk.over:
        walk.through(AFTERWARDS)
    return walk.decision(realised=realised)


class _Walk:
    """Goes through rules, gathering what they say, until one ends the pass."""

    def __init__(self, view: View, now: datetime) -> None:
        self._view = view
        self._now = now
        self._settled = True
        self._end = FINE
        self._errors: dict[str, CommandError | None] = {}
        self._actual: dict[str, Any] = {}
        self._drop: tuple[str, ...] = ()
        self._again: float | None = None
        self.over = False

    def through(self, rules: tuple[Rule, ...]) -> bool:
        """Whether all of them are content."""
        for rule in rules:
            self.take(rule(self._view, self._now, self._settled))
            if self.over:
                return False
        return self._settled

    def take(self, verdict: Verdict) -> None:
        """Take in what a rule says."""
        if verdict is FINE:
            return
        self._errors.update(verdict.errors)
        self._actual.update(verdict.actual)
        self._drop += verdict.drop
        self._settled = self._settled and not verdict.unsettled
        self._wait(verdict.again)
        if verdict.steps or verdict.stop:
            self._end, self.over = verdict, True

    def _wait(self, again: float | None) -> None:
        if again is not None:
            self._again = again if self._again is None else min(again, self._again)

    def decision(self, *, realised: bool) -> Decision:
        """What follows from it all."""
        view, now = self._view, self._now
        before = view.replica.status
        errors, shown, actual = _errors(view, self._errors), before.drbd.status, before.drbd.actual
        revision, kind = before.datamesh_revision, before.actual_type
        if view.kernel.current:
            shown, later = report.drbd_status(view, now)
            self._wait(later)
            actual = report.actual(view, realised, self._actual)
            if realised:
                revision = view.config.datamesh_revision
                kind = view.config.type if view.status is not None else before.actual_type
        progress = shown is not before.drbd.status and shown is not None
        told = standstills(view, now) if view.kernel.current else before.drbd.standstills
        drbd = replace(before.drbd, errors=errors, status=shown, actual=actual, standstills=told)
        status = replace(before, drbd=drbd, datamesh_revision=revision, actual_type=kind)
        patience = held_back(view, status, now)
        self._wait(patience)
        return Decision(
            status=status if patience is None else before,
            steps=self._end.steps,
            work=self._end.work,
            disk=self._end.disk,
            drop=self._drop,
            again=self._again,
            progress=progress and patience is None,
            held_back=patience is not None,
        )


def _is_realised_by_being_down(view: View) -> bool:
    return view.config.down and view.status is None and not view.incomplete and not view.busy


def _end(view: View, now: datetime, walk: _Walk) -> Decision:
    if deletion.is_clean(view):
        return Decision(status=view.replica.status, release=not deletion.keeps_its_disk(view))
    if walk.through((step_down_by_force, wait_for_work, look_at_files)):
        walk.take(deletion.take_away(view, now))
    return walk.decision(realised=False)


def _never_touched(view: View) -> Decision:
    """The tools would take its name for something else, such as every resource of the node: it is only told of."""
    if deletion.is_last(view):
        if view.kernel.look_at_all:
            return Decision(status=view.replica.status, steps=(Look(KERNEL),), work=KERNEL_LOOK)
        if view.kernel.current and view.status is None:
            return Decision(status=view.replica.status, release=True)
    before = view.replica.status
    by_hand = (
        "" if view.status is None else "; the kernel has it: stop its users, and take it down by its parts, by hand"
    )
    error = own_error("UnusableName", f"nothing is done on this node: {view.unusable_name}{by_hand}")
    drbd = replace(before.drbd, errors=replace(before.drbd.errors, last_config_error=error))
    return Decision(status=replace(before, drbd=drbd))


def _beside_an_elder(view: View) -> Decision:
    """A second replica of a volume on one node is a mistake. The first keeps the resource; this one only says so."""
    if deletion.is_last(view):
        return Decision(status=view.replica.status, release=True)
    before = view.replica.status
    error = own_error("SecondReplicaOnNode", f"{view.elder} of the same volume is on this node and was there first")
    drbd = replace(before.drbd, errors=replace(before.drbd.errors, last_config_error=error))
    return Decision(status=replace(before, drbd=drbd))


def _errors(view: View, known: Mapping[str, CommandError | None]) -> DrbdErrors:
    """What failed last, per task; a rule's word counts more than an old outcome, and both more than an old report."""
    found: dict[str, CommandError | None] = {}
    for purpose in sorted(view.outcomes, key=lambda each: view.outcomes[each].at):
        outcome = view.outcomes[purpose]
        name = _SHOWN_AS.get(purpose.split(" ", 1)[0])
        if name is None:
            continue
        if not outcome.succeeded:
            found[name] = command_error(outcome, view)
        elif purpose not in (commands.PROBE, commands.SHRINK):
            found[name] = None
    found.update(known)
    before = view.replica.status.drbd.errors
    return replace(before, **found) if any(getattr(before, name) != value for name, value in found.items()) else before
