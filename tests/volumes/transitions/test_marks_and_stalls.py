"""The proof of transitions, with marks and stalls as states: whatever is amiss with copies while a step is half
applied, and however the network breaks, one side at most is quorate, and no decision costs an acknowledged write.

``test_stale_proof`` lets the kernel lose a write; here copies *are* ailing, in every way that was seen:

    marks      all are UpToDate and Established, one lacks a write, and any of those who have it show a mark against it
    stalls     a copy that should be made good is not: Outdated or Inconsistent and nothing flows, Negotiating, or a
               link that one end has given up (StandAlone)

At every write of every tale: every mix of members that have applied it, every ailment of every copy, every partition,
seen by the controllers before the network breaks, after it, or both; then it is mended, which erases marks. Whoever is
on some side may be silent, and things are asked for that must not be granted: that a copy is deleted, that its node is
given up, that the volume is used elsewhere. A sample, the same in every run, unless ``QUORATE_PROOF=full``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from dataclasses import replace as changed
from datetime import datetime, timedelta
from functools import partial
from itertools import chain, combinations
from random import Random

import msgspec.structs as structs
import pytest

from quorate.api.meta import NodeName
from quorate.api.storage import DRBDResourceOperation
from quorate.api.storage.datamesh import Member, PendingTransition, StepStatus, Transition
from quorate.api.storage.drbd import ReplicaType
from quorate.api.storage.rv import AttachRequest, AttachSource, Promotion, ReplicatedVolumeStatus
from quorate.api.struct import replace
from quorate.engine import Create
from quorate.lab.kernel.io import IoState
from quorate.lab.kernel.states import Slip
from quorate.volumes.attach import comparison
from quorate.volumes.attach.doubts import noticed
from quorate.volumes.attach.guards import not_serving
from quorate.volumes.datamesh import config_of
from quorate.volumes.stale import binding, marks, stale_copies, why_not_primary
from quorate.volumes.transitions import advance, members
from quorate.volumes.transitions.catalogue import RULES
from quorate.volumes.transitions.guards import has_consent, is_forced
from quorate.volumes.transitions.members import good_copies
from quorate.volumes.view import VolumeView

from .exploring import Kept, said
from .proof import Has, Mix, Partition, apply, config, may_serve, mixes, numbers, partitions, quorate_sides
from .story import DISK, FILE, MINOR, START, VOLUME, D, Machines, Written
from .tales import TALES, Tale

FULL = os.environ.get("QUORATE_PROOF") == "full"
#: Of a step: ailing mixes, and for each of them partitions, and for each of those things asked for.
AILING, BROKEN, ASKED = 1, 1, 3
#: What users were told is written, and where.
ACKNOWLEDGED, OFFSET = "acknowledged", 0
HOUR = timedelta(hours=1)

Ask = Callable[[VolumeView], VolumeView]


# What can be amiss with copies.


@dataclass(frozen=True)
class Marks:
    """A copy lacks a write, and nothing tells but the marks of some of those who have it."""

    stale: int
    shown_by: tuple[int, ...]

    def befall(self, machines: Machines) -> bool:
        for number, host in enumerate(machines.hosts):
            device = host.block_device(DISK) if host.powered else None
            if number != self.stale and device is not None:
                device.write(OFFSET, 4096, ACKNOWLEDGED)
        for number in self.shown_by:
            resource = machines.hosts[number].kernel.find(VOLUME)
            slot = resource.connections[self.stale].peer_devices[0].slot if resource is not None else None
            assert slot is not None
            slot.bitmap.add(OFFSET // 4096, OFFSET // 4096 + 1)
        machines.wait(1)
        return True


@dataclass(frozen=True)
class Stall:
    """A copy missed a write while it was away, is to be made good, and nothing flows to it."""

    member: int
    slip: Slip

    def befall(self, machines: Machines) -> bool:
        kernel, world = machines.hosts[self.member].kernel, machines.world
        apart = {(one.name, other.name) for one in machines.hosts for other in machines.hosts if one is not other}
        cut = [pair for pair in apart if not world.reachable(world.node(pair[0]), world.node(pair[1]))]
        if self.slip is Slip.NEGOTIATING:
            machines.run(self.member, "drbdsetup", "detach", str(MINOR), fails=True)
        else:
            world.set_cut([*cut, *(pair for pair in apart if kernel.name in pair)])
        machines.wait(8)
        is_written = written_by(machines, self.member)
        kernel.planned_slips += [(self.slip, "")] * len(machines.hosts)
        if self.slip is Slip.NEGOTIATING:
            machines.run(self.member, "drbdadm", "-c", FILE, "adjust", VOLUME, fails=True)
        else:
            world.set_cut(cut)
        machines.wait(8)
        kernel.planned_slips.clear()
        return is_written


@dataclass(frozen=True)
class GivenUp:
    """One end of a link does not look for the other any more."""

    member: int
    peer: int

    def befall(self, machines: Machines) -> bool:
        machines.run(self.member, "drbdsetup", "disconnect", VOLUME, str(self.peer), fails=True)
        machines.wait(2)
        return written_by(machines, self.member)


Ailment = Marks | Stall | GivenUp


def users(machines: Machines) -> list[int]:
    return [number for number, status in machines.statuses().items() if status.role == "Primary"]


def written_by(machines: Machines, ailing: int) -> bool:
    """Whether somebody is told that the write is done: who uses the volume, or another copy for that moment."""
    using = users(machines)
    writer = next(iter(using or [number for number in good(machines) if number != ailing]), None)
    if writer is None:
        return False
    if not using:
        machines.run(writer, "drbdadm", "-c", FILE, "primary", VOLUME, fails=True)
    io = machines.hosts[writer].kernel.write(MINOR, OFFSET, 4096, ACKNOWLEDGED)
    machines.wait(1)
    if not using:
        machines.run(writer, "drbdadm", "-c", FILE, "secondary", VOLUME, fails=True)
    return io.state is IoState.DONE


def good(machines: Machines) -> list[int]:
    """Copies that their kernels call good, and that have a quorum."""
    found = machines.statuses().items()
    return [number for number, each in found if each.devices[0].disk_state == "UpToDate" and each.devices[0].quorum]


def in_touch(machines: Machines, one: int, other: int) -> bool:
    return any(
        link.peer_node_id == other and link.connection_state == "Connected"
        for number, status in machines.statuses().items()
        if number == one
        for link in status.connections
    )


def ailments(machines: Machines, attached: set[int]) -> Iterator[Ailment]:
    """Everything that can befall the copies as they are. Who is in use, is to be, or was last, has what was written."""
    copies, using = good(machines), {*users(machines), *attached}
    for number in copies:
        witnesses = [other for other in copies if other != number and in_touch(machines, other, number)]
        if not witnesses:
            continue
        if number not in using:
            for shown_by in chain.from_iterable(combinations(witnesses, n) for n in range(1, len(witnesses) + 1)):
                yield Marks(number, shown_by)
            for slip in (Slip.UNDRAINED, Slip.LATCHED, Slip.HALF_BITMAP, Slip.NEGOTIATING):
                yield Stall(number, slip)
        for other in witnesses if len(using) < 2 else ():  # Of two users one yields: ``test_two_primaries``.
            yield GivenUp(number, other)


# What is seen of it.


@dataclass(frozen=True)
class Ailing:
    """A step that some have applied, while something is amiss."""

    title: str
    written: Written
    mix: Mix
    ailment: Ailment
    kept: Kept
    #: Whether somebody was told that the write is done.
    acknowledged: bool

    def __str__(self) -> str:
        return f"{self.title}, {self.written.step}: {self.mix}; {self.ailment}"

    def seen(self, machines: Machines, status: ReplicatedVolumeStatus) -> VolumeView:
        """What living agents show, with the step as they have applied it."""
        told, statuses = self.written.view.with_status(status), machines.statuses()
        replicas = []
        for each in told.replicas:
            found, drbd = each.replica.status, each.replica.status.drbd
            if each.id not in self.written.silent:
                drbd = replace(drbd, status=statuses.get(each.id))
            has = self.mix.applied.get(each.id, Has.ALL)
            after = config(self.written, self.written.after, each.id)
            if has is Has.ALL and after is not None and each.id not in self.written.silent:
                forgotten = after.forget if not after.down else ()
                drbd = replace(drbd, config=after, actual=replace(drbd.actual, forgotten=forgotten))
                found = replace(found, datamesh_revision=self.written.after.datamesh_revision)
            replica = replace(each.replica, status=replace(found, drbd=drbd))
            replicas.append(changed(each, replica=replica))
        return changed(told, replicas=tuple(replicas))

    def is_known(self, view: VolumeView) -> bool:
        """Marks that nobody who is heard shows, or ever showed, are known to nobody."""
        return not isinstance(self.ailment, Marks) or bool(view.marks or binding(view))

    def judged(
        self,
        when: str,
        machines: Machines,
        status: ReplicatedVolumeStatus,
        now: datetime,
        sides: Partition,
        random: Random,
        *,
        late: bool = False,
    ) -> VolumeView:
        """What is known now; whatever is asked for, now or an hour later, nothing harmful is decided on it.

        ``late``: nobody has looked since before it began. Marks that nobody shows any more are unknown then.
        """
        view = self.seen(machines, status)
        without = lacking(machines, view) if self.acknowledged else set()
        if when and isinstance(self.ailment, Stall) and self.ailment.slip is Slip.NEGOTIATING:
            without = set()  # What the kernel makes of such a copy when its peers are lost is not known (0022).
        every = list(asks(view, sides))
        for what, ask in every if FULL else [every[0], *random.sample(every[1:], min(ASKED, len(every) - 1))]:
            asked = ask(view if late else settled(view, now))
            for at in (now, now + HOUR):
                if self.is_known(found := settled(asked, at)):
                    expect_no_harm(f"{self}{when}; {what}", found, at, without)
        known = settled(view, now)
        if self.is_known(known):
            expect_no_stale_primary(f"{self}{when}", machines, known, without)
        return known


def ailing(title: str, written: Written) -> Iterator[Ailing]:
    """Every mix, and everything that can be amiss with it; or some of both."""
    random = Random(f"{title} {written.step} {written.after.datamesh_revision}")
    start = Kept(written.machines)
    every = list(mixes(written))
    both = (*written.before.datamesh.members, *written.after.datamesh.members)
    last = written.after.last_promotion
    attached = {each.node_id for each in both if each.attached or (last is not None and each.name == last.replica)}
    for mix in every if FULL else random.sample(every, min(AILING, len(every))):
        applied = start.copy()
        apply(applied, written, mix)
        applied.wait(4)
        found, kept = list(ailments(applied, attached)), Kept(applied)
        if not FULL:
            # Marks first: they are the state that DRBD calls none.
            marked = [each for each in found if isinstance(each, Marks)]
            stalls = [each for each in found if not isinstance(each, Marks)]
            found = [random.choice(each) for each in (marked, stalls) if each]
        for ailment in found:
            machines = kept.copy()
            acknowledged = ailment.befall(machines)
            yield Ailing(title, written, mix, ailment, Kept(machines), acknowledged)


def settled(view: VolumeView, now: datetime) -> VolumeView:
    for _ in range(20):
        status = noticed(view, now)
        if status is None:
            return view
        view = view.with_status(status)
    raise AssertionError(f"what is noticed never settles: {view.volume.status.comparisons}")


def used_last(written: Written, state: Ailing) -> ReplicatedVolumeStatus:
    """As attaching writes it; of a tale without a user, one that has the write."""
    stale = getattr(state.ailment, "stale", None)
    copies = [each.name for each in written.after.datamesh.members if each.type is D and each.node_id != stale]
    if written.after.last_promotion is not None or not copies:
        return written.after
    return replace(written.after, last_promotion=Promotion(replica=copies[0]))


# What is asked for meanwhile.


def silenced(view: VolumeView, side: frozenset[int], *, gone: bool = False) -> VolumeView:
    """The agents of some members are not heard; ``gone``: their nodes are taken out of the cluster, too."""
    nodes = dict(view.nodes)
    for number in side:
        name = NodeName(f"n{number}")
        nodes[name] = structs.replace(nodes[name], fresh=False, machine=None if gone else nodes[name].machine)
    replicas = (changed(each, node=nodes[NodeName(f"n{each.id}")]) for each in view.replicas)
    return changed(view, replicas=tuple(replicas), nodes=nodes)


def deleted(number: int, view: VolumeView) -> VolumeView:
    """A replica is to go."""
    replicas = []
    for each in view.replicas:
        if each.id == number:
            meta = replace(each.replica.metadata, deletion_timestamp=START)
            asked = PendingTransition(member=False) if each.member is not None else None
            status = replace(each.replica.status, datamesh_pending_transition=asked)
            each = changed(each, replica=replace(each.replica, metadata=meta, status=status))
        replicas.append(each)
    return changed(view, replicas=tuple(replicas))


def gone(number: int, view: VolumeView) -> VolumeView:
    """A node is taken out of the cluster, and its replica with it."""
    return silenced(deleted(number, view), frozenset({number}), gone=True)


def wanted(number: int, view: VolumeView) -> VolumeView:
    """The volume is to be used there, and nowhere else."""
    node = NodeName(f"n{number}")
    queue = (AttachRequest(node_name=node, since=START, source=AttachSource.PUBLISH_ON),)
    status = replace(view.volume.status, attach_requests=queue)
    rv = replace(view.volume, spec=replace(view.volume.spec, publish_on=(node,)))
    return changed(view, rv=rv).with_status(status)


def as_asked(view: VolumeView) -> VolumeView:
    return view


def asks(view: VolumeView, sides: Partition) -> Iterator[tuple[str, Ask]]:
    yield "as it is", as_asked
    for side in sides if len(sides) > 1 else ():
        yield f"{sorted(side)} silent", partial(silenced, side=side)
    for member in view.members:
        number = member.node_id
        yield f"#{number} wanted", partial(wanted, number)
        if member.type is D:
            yield f"#{number} deleted", partial(deleted, number)
            yield f"#{number} gone", partial(gone, number)


# What must not be decided.


def lacking(machines: Machines, view: VolumeView) -> set[str]:
    """Copies without the write."""
    found = set[str]()
    for member in view.diskful_members:
        device = machines.hosts[member.node_id].block_device(DISK)
        if device is None or device.read(OFFSET) != ACKNOWLEDGED:
            found.add(member.name)
    return found


def expect_no_harm(case: str, view: VolumeView, now: datetime, without: set[str]) -> None:
    """Nothing that is decided on a view is to the harm of what only some copies have."""
    counted = without.intersection(good_copies(view))
    assert not counted, f"{case}: {counted} counted as good"
    for each in comparison.writes(view, now):
        if isinstance(each, Create) and isinstance(each.obj, DRBDResourceOperation):
            copied_from = each.obj.spec.drbd_resource_name
            assert copied_from not in without, f"{case}: copies are made from {copied_from}"
    asked = advance(view, now)
    if asked is not None and asked.status is not None:
        expect_holders_stay(case, view, asked.status, without)
        if marks(view) or binding(view):
            expect_nothing_begins(case, view, asked.status)
    if marks(view) or binding(view):
        expect_links_kept(case, view)


def expect_links_kept(case: str, view: VolumeView) -> None:
    for each in view.replicas:
        found = config_of(view, each)
        assert found is None or found.keep_links, f"{case}: {each.name} may part from others"


def expect_nothing_begins(case: str, view: VolumeView, after: ReplicatedVolumeStatus) -> None:
    """No step but a change of roles, what a person consented to, or the loss of a stale copy."""
    before = {(each.type, each.replica_name): each for each in view.volume.status.datamesh_transitions}
    stale = stale_copies(view)
    for each in after.datamesh_transitions:
        name = each.replica_name
        for rule in begun(before.get((each.type, name)), each):
            allowed = RULES[rule].beside or (is_forced(each) and has_consent(view, each))
            lost = name is not None and name in stale and not view.state_of(name).up
            assert allowed or lost, f"{case}: {each.type}/{rule} begins"


def begun(before: Transition | None, after: Transition) -> Iterator[str]:
    """Steps that are under way now, have told members something, and were not."""
    active = {step.name for step in before.steps if step.status is not StepStatus.PENDING} if before else set()
    for step in after.steps:
        if step.status is StepStatus.ACTIVE and step.datamesh_revision and step.name not in active:
            yield step.name


def expect_holders_stay(case: str, view: VolumeView, after: ReplicatedVolumeStatus, without: set[str]) -> None:
    """Whoever is hidden, taken down, excused or given up: somebody who has the write, and counts, is left."""
    if any(is_forced(each) and has_consent(view, each) for each in after.datamesh_transitions):
        return
    here, left = holders(view.members, without), holders(after.datamesh.members, without)
    assert left or not here, f"{case}: of {here} nobody is left who has the write"


def holders(members: tuple[Member, ...], without: set[str]) -> set[str]:
    return {
        each.name
        for each in members
        if each.type is D and not (each.hidden or each.down or each.excused) and each.name not in without
    }


def expect_no_stale_primary(case: str, machines: Machines, view: VolumeView, without: set[str]) -> None:
    """Whoever may be promoted, by our guards and its kernel, reads what was written."""
    for member in view.members:
        has_it = member.type is ReplicaType.DISKFUL and member.name not in without
        if member.attached or has_it or not without:
            continue
        if not_serving(view, member) is not None or why_not_primary(view, member) is not None:
            continue
        found = Kept(machines).copy()
        for number, status in found.statuses().items():
            if status.role == "Primary":
                found.run(number, "drbdadm", "-c", FILE, "secondary", VOLUME, fails=True)
        found.run(member.node_id, "drbdadm", "-c", FILE, "primary", VOLUME, fails=True)
        found.wait(2)
        if member.node_id in users(found):
            io = found.hosts[member.node_id].kernel.read(MINOR, OFFSET)
            found.wait(2)
            assert io.state is not IoState.DONE or io.result == ACKNOWLEDGED, f"{case}: {member.name} reads {io.result}"


# The proof.


def expect_sound(title: str, written: Written) -> tuple[int, int]:
    """How many states, and in how many of them some copy lacked the write."""
    tried = lost = 0
    serving, random = may_serve(written), Random(f"{title} {written.step}")
    every = list(partitions(numbers(written)))
    for state in ailing(title, written):
        whole = state.kept.copy()
        now = START + timedelta(seconds=whole.world.now)
        unseen = used_last(written, state)
        known = state.judged("", whole, unseen, now, (), random)
        lost += state.acknowledged and bool(lacking(whole, known))
        for sides in every if FULL else random.sample(every, min(BROKEN, len(every))):
            tried += 1
            case = f"; {said(sides)}"
            broken = state.kept.cut(sides)
            expect_one_side(f"{state}{case}", broken, serving)
            now = START + timedelta(seconds=broken.world.now)
            after = state.judged(case, broken, known.volume.status, now, sides, random)
            state.judged(f"{case}, seen late", broken, unseen, now, sides, random, late=True)
            broken.cut([frozenset(range(len(broken.hosts)))])
            broken.wait(12)
            expect_one_side(f"{state}{case}, mended", broken, serving)
            now = START + timedelta(seconds=broken.world.now)
            state.judged(f"{case}, mended", broken, after.volume.status, now, (), random)
    return tried, lost


def expect_one_side(case: str, machines: Machines, serving: set[int]) -> None:
    """Of sides that could serve: an Outdated copy without a good one in sight may have a quorum, and is no Primary."""
    usable = {number for number, each in machines.statuses().items() if each.devices[0].disk_state == "UpToDate"}
    found = [side for side in quorate_sides(machines, serving) if side & usable]
    assert len(found) <= 1, f"{case}: quorate are {found}"


@pytest.mark.parametrize("user", [0, None] if FULL else [0], ids=lambda user: "in use" if user == 0 else "unused")
@pytest.mark.parametrize(("title", "tale"), TALES.items(), ids=TALES)
def test_no_ailing_copy_costs_an_acknowledged_write_whoever_has_applied_a_step_and_however_the_network_breaks(
    title: str, tale: Tale, user: int | None
) -> None:
    for written in tale(user).written:
        expect_sound(title, written)


def test_a_stale_copy_that_is_counted_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The proof can fail: copies that DRBD calls good are taken for good, and one lacks the write."""
    monkeypatch.setattr(members, "doubtful_copies", lambda view: frozenset())
    with pytest.raises(AssertionError, match="counted as good"):
        for written in TALES["3D moves"](0).written:
            expect_sound("3D moves", written)


def test_copies_lack_the_write_in_what_is_judged() -> None:
    found = [expect_sound("3D moves", written) for written in TALES["3D moves"](0).written]
    assert sum(lost for _, lost in found) >= len(found)
