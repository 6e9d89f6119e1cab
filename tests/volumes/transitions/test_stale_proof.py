"""The proof of transitions, with bits as a state: whatever step is half applied when a user loses its quorum and comes
back, nobody who lacks what was acknowledged is promoted, and no step is begun or gone on with meanwhile.

At every write of every tale with three copies or more, for every mix of members that have applied it: the user is cut
off while it is idle, writes, and meets its peers again one after the other, in every order. The lab's kernel loses the
write on the one that comes second, as the real one does. What members show is what is judged, while the user is away
and when it is back; its own agent tells of the loss, or is dead and leaves its last word behind. A sample of the mixes,
unless ``QUORATE_PROOF=full``.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace as changed
from itertools import permutations
from random import Random

import pytest

from quorate.api.storage.datamesh import TransitionType
from quorate.api.storage.drbd import DrbdStatus
from quorate.api.storage.rv import Promotion
from quorate.api.struct import replace
from quorate.lab.kernel.io import Io, IoState
from quorate.volumes.attach.doubts import noticed
from quorate.volumes.attach.guards import not_serving
from quorate.volumes.stale import why_not_primary
from quorate.volumes.transitions import advance
from quorate.volumes.view import VolumeView

from .proof import apply, mixes
from .story import DISK, MINOR, START, D, Machines, Written
from .tales import TALES, Tale

FULL = os.environ.get("QUORATE_PROOF") == "full"
SAMPLE = 2
#: These change no member, and no link.
_ROLES = (
    TransitionType.ATTACH,
    TransitionType.DETACH,
    TransitionType.FORCE_DETACH,
    TransitionType.DISABLE_MULTIATTACH,
)


def copies(written: Written) -> list[int]:
    """Members with a good copy, in touch with somebody."""
    found = []
    for each in written.before.datamesh.members:
        status = written.machines.status(each.node_id)
        if each.type is D and each.node_id not in written.silent and status is not None:
            linked = any(link.connection_state == "Connected" for link in status.connections)
            if linked and status.devices[0].disk_state == "UpToDate":
                found.append(each.node_id)
    return found


def is_user(machines: Machines, number: int) -> bool:
    status = machines.status(number)
    return status is not None and status.role == "Primary" and status.devices[0].quorum


def played(written: Written) -> Iterator[tuple[str, Machines, dict[int, DrbdStatus], Io]]:
    """The user is cut off, and comes back, in every order."""
    others = [number for number in copies(written) if number != 0]
    every = list(mixes(written))
    chosen = every if FULL else Random(written.step).sample(every, min(SAMPLE, len(every)))
    for mix in chosen:
        for order in permutations(others, 2):
            machines = copy.deepcopy(written.machines)
            apply(machines, written, mix)
            machines.wait(4)
            if not is_user(machines, 0):
                continue
            everybody = frozenset(range(len(machines.hosts)))
            # The write begins before anybody has noticed the cut: that is the one that is lost.
            machines.world.set_cut([("n0", f"n{number}") for number in everybody - {0}])
            io = machines.hosts[0].kernel.write(MINOR, 0, 4096, "blocked")
            machines.wait(7)
            away = machines.statuses()
            machines.world.set_cut([("n0", f"n{number}") for number in everybody - {0, order[0]}])
            machines.wait(10)
            machines.world.set_cut(())
            machines.wait(20)
            yield f"{mix}; {order[0]} first, then {order[1]}", machines, away, io


def seen(view: VolumeView, statuses: Mapping[int, DrbdStatus], *, told: bool) -> VolumeView:
    """What the members show; the user's own agent is heard, or has said its last word."""
    replicas = []
    for each in view.replicas:
        drbd = each.replica.status.drbd
        if told or each.id != 0:
            drbd = replace(drbd, status=statuses.get(each.id))
        if told and each.id == 0:
            drbd = replace(drbd, actual=replace(drbd.actual, quorum_lost_at=START))
        found = replace(each.replica, status=replace(each.replica.status, drbd=drbd))
        replicas.append(changed(each, replica=found))
    return changed(view, replicas=tuple(replicas))


def in_use(written: Written) -> VolumeView:
    status = replace(written.before, last_promotion=Promotion(replica=written.view.replicas[0].name))
    return seen(written.view.with_status(status), written.machines.statuses(), told=False)


def settled(view: VolumeView) -> VolumeView:
    while (status := noticed(view, START)) is not None:
        view = view.with_status(status)
    return view


def lacking(machines: Machines, view: VolumeView) -> set[int]:
    """Copies that call themselves good and have not got the write."""
    found = set()
    for member in view.diskful_members:
        host, status = machines.hosts[member.node_id], machines.status(member.node_id)
        device = host.block_device(DISK)
        good = status is not None and status.devices[0].disk_state == "UpToDate"
        if good and device is not None and device.read(0) != "blocked":
            found.add(member.node_id)
    return found


@pytest.mark.parametrize("told", [False, True], ids=["its agent is dead", "its agent tells"])
@pytest.mark.parametrize(("title", "tale"), [(title, tale) for title, tale in TALES.items() if "3D" in title])
def test_nobody_who_lacks_what_was_acknowledged_is_promoted_and_nobody_leaves(
    title: str, tale: Tale, told: bool
) -> None:
    lost = tried = 0
    for written in tale(0).written:
        if len(copies(written)) < 3 or not is_user(written.machines, 0):
            continue
        for case, machines, away, io in played(written):
            tried += 1
            if io.state is not IoState.DONE:
                continue
            meanwhile = settled(seen(in_use(written), away, told=told))
            view = settled(seen(meanwhile, machines.statuses(), told=told))
            stale = lacking(machines, view)
            lost += bool(stale)
            for member in view.diskful_members:
                if member.node_id in stale:
                    barred = not_serving(view, member) or why_not_primary(view, member)
                    assert barred is not None, f"{title}, {written.step}: {case}"
            asked = advance(view, START) if stale or told else None
            if asked is None or asked.status is None:
                continue
            before = {(each.type, each.replica_name): each for each in view.volume.status.datamesh_transitions}
            for each in asked.status.datamesh_transitions:
                known = before.get((each.type, each.replica_name))
                begun = known is None or each.datamesh_revision > known.datamesh_revision
                assert each.type in _ROLES or not begun, f"{title}, {written.step}: {case}: {each.type}"
    # Where its own drive has died, the user has nothing that others could lack.
    assert not tried or lost or "drives die" in title, (
        f"{title}: the kernel lost nothing in {tried} tries: nothing is proved"
    )
