"""At most one side is ever quorate: every step, every mix of members, every partition; the lab's kernel judges.

Volumes of up to three members are tried in every case, larger ones in a sample that is the same in every run. All of
it, with two cuts in a row and with power losses (``exploring``), takes half an hour: ``QUORATE_PROOF=full pytest
tests/volumes/transitions/test_proof.py``.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from random import Random

import pytest

from quorate.api.storage.configuration import Replication
from quorate.api.storage.datamesh import TransitionType
from quorate.api.storage.rv import ReplicatedVolumeStatus
from quorate.api.struct import replace
from quorate.placement.layout import Layout, layout_of

from .exploring import everything, said
from .proof import (
    Has,
    applied_back_cut,
    applied_cut_cut,
    applied_then_cut,
    as_it_is,
    cut_then_applied,
    may_serve,
    mixes,
    numbers,
    partitions,
    quorate_sides,
)
from .story import TB, D, Machines, Story, Written
from .tales import CONSENTED, TALES, Tale, moved

FULL = os.environ.get("QUORATE_PROOF") == "full"
#: Of a step's cases with one cut, and of those with two or with a power loss, where not all are tried.
SAMPLE, SAMPLE_OF_HISTORIES = 16, 4

Case = tuple[str, Callable[[], Machines]]


def single_cuts(written: Written) -> list[Case]:
    return [
        (f"{history.__name__}: {mix}; {said(sides)}", partial(history, written, mix, sides))
        for mix, sides in product(mixes(written), partitions(numbers(written)))
        for history in (applied_then_cut, cut_then_applied)
    ]


def longer_histories(written: Written) -> Iterator[Case]:
    found = list(partitions(numbers(written)))
    awake = [number for number in numbers(written) if number not in written.silent]
    for mix, first, second in product(mixes(written), found, found):
        if first != second:
            yield (
                f"two cuts: {mix}; {said(first)}, then {said(second)}",
                partial(applied_cut_cut, written, mix, first, second),
            )
    for mix, number, sides in product(mixes(written), awake, found):
        yield f"#{number} back: {mix}; {said(sides)}", partial(applied_back_cut, written, mix, number, sides)


def chosen(title: str, written: Written) -> Iterator[tuple[str, Machines]]:
    if FULL:
        yield from everything(written)
        return
    single, longer = single_cuts(written), list(longer_histories(written))
    random = Random(f"{title} {written.step} {written.after.datamesh_revision}")
    small = len(numbers(written)) <= 3
    cases = single if small else random.sample(single, min(SAMPLE, len(single)))
    for case, play in (*cases, *random.sample(longer, min(SAMPLE_OF_HISTORIES, len(longer)))):
        yield case, play()


def expect_one_side(title: str, story: Story) -> int:
    tried = 0
    for written in story.written:
        serving = may_serve(written)
        for case, machines in chosen(title, written):
            sides = quorate_sides(machines, serving)
            assert len(sides) <= 1, f"{title}, {written.step}: {case}: quorate are {sides}"
            tried += 1
    return tried


@pytest.mark.parametrize("user", [0, None] if FULL else [0], ids=lambda user: "in use" if user == 0 else "unused")
@pytest.mark.parametrize(("title", "tale"), TALES.items(), ids=TALES)
def test_at_most_one_side_is_quorate_whoever_has_applied_a_step_and_however_the_network_breaks(
    title: str, tale: Tale, user: int | None
) -> None:
    story = tale(user)
    assert expect_one_side(title, story) >= 2 * len(story.written)


@pytest.mark.parametrize(("title", "tale"), TALES.items(), ids=TALES)
def test_whoever_uses_the_volume_keeps_it_while_a_step_is_applied_in_any_order(title: str, tale: Tale) -> None:
    """With every link up, no mix of members that know a step and members that do not stops the primary."""
    for written in tale(0).written:
        stays = any(each.attached and each.node_id == 0 for each in written.after.datamesh.members)
        if not stays or not _is_in_use(written.machines) or _has_too_few_copies(written):
            continue
        for mix in mixes(written):
            machines = applied_then_cut(written, mix, as_it_is(written))
            assert _is_in_use(machines), f"{title}, {written.step}: {mix}"


@pytest.mark.parametrize(("title", "tale"), TALES.items(), ids=TALES)
def test_where_a_loss_is_survived_before_and_after_a_step_it_is_survived_meanwhile(title: str, tale: Tale) -> None:
    """The promise holds in every mix, but for the window in which the tie-breaker is hidden.

    And for the moment between adjusting and forgetting, in which a member counts one that it cannot hide any more: the
    kernel forgets nobody to whom a link is configured.
    """
    for written in tale(0).written:
        if written.silent or min(_survived(written.before), _survived(written.after)) < 1:
            continue
        if written.machines.dead:
            continue  # members without a disk are not what was counted
        others = [number for number in numbers(written) if number != 0]
        for mix, lost in product(mixes(written), others):
            if Has.HALF in mix.applied.values():
                continue
            machines = applied_then_cut(written, mix, as_it_is(written))
            machines.hosts[lost].power_off()
            machines.wait(12)
            assert _is_in_use(machines) or not _is_in_use(written.machines), f"{title}, {written.step}: {mix}; #{lost}"


@pytest.mark.parametrize(("title", "tale"), TALES.items(), ids=TALES)
def test_copies_and_redundancy_keep_the_promise_at_every_revision(title: str, tale: Tale) -> None:
    """Invariants 5, 6 and 8 of the lab, over every revision that is ever written."""
    for written in tale(0).written:
        status = written.after
        assert status.configuration is not None
        promise = layout_of(status.configuration)
        members = status.datamesh.members
        votes = [each for each in members if each.type is D and not each.hidden]
        assert len([each for each in members if each.type is not D and not each.hidden]) <= 1
        demanded = status.drbd.config.quorum_minimum_redundancy or 0
        assert demanded == promise.minimum_redundancy or (title in CONSENTED and demanded >= 1)
        assert demanded <= len(votes)
        assert status.drbd.config.quorum == len(votes) // 2 + 1
        assert len({each.node_id for each in members}) == len(members) == len({each.node_name for each in members})
        before = written.before.datamesh.members
        lost = {each.name for each in before if each.type is D} - {each.name for each in members}
        for name in lost:
            good = [each for each in votes if written.view.state_of(each.name).disk == "UpToDate"]
            due = _copies_due(title, written, promise)
            assert len(good) >= due, f"{title}: {name} goes, and {len(good)} of {due} copies are good"
    assert tale(0).rv.status.drbd.config.quorum_minimum_redundancy == promise.minimum_redundancy


@pytest.mark.parametrize(("title", "tale"), TALES.items(), ids=TALES)
def test_votes_change_by_one_at_most_in_a_step(title: str, tale: Tale) -> None:
    for written in tale(0).written:
        changed = _votes(written.before) ^ _votes(written.after)
        assert len(changed) <= 1, f"{title}, {written.step}: {changed}"


def test_a_vote_that_changes_beside_a_shown_tie_breaker_is_caught() -> None:
    """The proof can fail: a copy that is shown while the tie-breaker is, as in ``parity_naive_2dtb``, splits."""
    story = moved(Replication.AVAILABILITY, [D, D, TB], 1)(0)
    hide = next(written for written in story.written if written.step == "AddReplica/HideTieBreaker")
    naive = dataclasses.replace(hide, after=_all_shown(hide.before))
    assert any(len(quorate_sides(play())) > 1 for _, play in single_cuts(naive))


@pytest.mark.parametrize("seed", range(20 if FULL else 1))
@pytest.mark.parametrize(("title", "tale"), TALES.items(), ids=TALES)
def test_a_controller_that_dies_between_any_two_writes_leaves_what_its_successor_finishes(
    title: str, tale: Tale, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After every write only some members' configs are written before the controller dies; the next one goes on."""
    calm = tale(0).shape()
    monkeypatch.setattr(Story, "halting", Random(f"{title} {seed}"))
    assert tale(0).shape() == calm


def _copies_due(title: str, written: Written, promise: Layout) -> int:
    """All that are promised; for one whose node is gone what every write needs; for a person's word the last one."""
    assert written.transition is not None
    if title in CONSENTED:
        return 1
    forced = written.transition.type is TransitionType.FORCE_REMOVE_REPLICA
    return promise.minimum_redundancy if forced else promise.diskful


def _is_in_use(machines: Machines) -> bool:
    status = machines.status(0)
    return status is not None and status.role == "Primary" and not status.suspended


def _has_too_few_copies(written: Written) -> bool:
    """Whether a user goes on by a quorum that its kernel has not counted since copies were lost (decision 0012)."""
    votes = [each for each in written.before.datamesh.members if each.type is D and not each.hidden]
    good = [each for each in votes if written.view.state_of(each.name).disk == "UpToDate"]
    return len(good) < (written.before.drbd.config.quorum_minimum_redundancy or 1)


def _survived(status: ReplicatedVolumeStatus) -> int:
    """How many losses the members that count survive."""
    shown = [each for each in status.datamesh.members if not each.hidden]
    if any(each.excused for each in shown):
        return 0
    votes = [each for each in shown if each.type is D]
    tie_broken = len(votes) % 2 == 0 and len(shown) > len(votes)
    copies = len(votes) - (status.drbd.config.quorum_minimum_redundancy or 1)
    return min(len(votes) - len(votes) // 2 - 1 + tie_broken, copies)


def _votes(status: ReplicatedVolumeStatus) -> set[int]:
    return {each.node_id for each in status.datamesh.members if not each.hidden}


def _all_shown(status: ReplicatedVolumeStatus) -> ReplicatedVolumeStatus:
    members = tuple(replace(each, hidden=False) for each in status.datamesh.members)
    return replace(
        status,
        datamesh=replace(status.datamesh, members=members),
        datamesh_revision=status.datamesh_revision + 1,
    )
