"""Copies that lack something although all is well: who is in doubt, what is written down, and what is not done."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace as changed
from datetime import timedelta
from itertools import combinations, product
from typing import Any

import pytest

from quorate.api import annotation_keys
from quorate.api.scalars import ReplicaName
from quorate.api.storage.datamesh import TransitionType
from quorate.api.storage.drbd import ReplicaType
from quorate.api.storage.drbdrop import OperationPhase
from quorate.api.storage.rv import Comparison, ComparisonReason, Promotion
from quorate.api.struct import replace
from quorate.volumes import effective
from quorate.volumes.attach.comparison import failed, finished, hindrance, look_again, reference, writes
from quorate.volumes.attach.doubts import WITHOUT_DISK, noticed
from quorate.volumes.attach.guards import why_not
from quorate.volumes.datamesh import config_of
from quorate.volumes.stale import binding, doubtful_copies, links_are_kept, nobody_leaves, stale_copies, why_not_primary
from quorate.volumes.transitions.making import make
from quorate.volumes.transitions.proposals import spent_annotations
from quorate.volumes.transitions.rules import no_locks
from quorate.volumes.transitions.walking import Walk, begin
from quorate.volumes.view import ReplicaView, VolumeView
from quorate.volumes.waits import Wait
from tests.volumes.attach.making import THREE, TIE, TWO, at, attached, cut, of, with_role
from tests.volumes.attach.test_comparison import made, ran
from tests.volumes.replica.making import (
    NOW,
    D,
    name,
    node_name,
    picture,
    spoilt,
    with_device,
    with_drbd,
    with_member,
    with_rv,
)

Marks = Iterable[tuple[int, int]]
QUORUM, MARKS = ComparisonReason.QUORUM_LOST, ComparisonReason.MARKS


def marked(view: VolumeView, *pairs: tuple[int, int], amount: int = 4) -> VolumeView:
    """Members that show bits against others."""
    for by, against in pairs:
        view = spoilt(view, by, _marking(against, amount))
    return view


def _marking(against: int, amount: int) -> Callable[[ReplicaView], ReplicaView]:
    def change(found: ReplicaView) -> ReplicaView:
        status = found.replica.status.drbd.status
        assert status is not None
        links = tuple(
            replace(link, peer_devices=tuple(replace(each, out_of_sync=amount) for each in link.peer_devices))
            if link.peer_node_id == against
            else link
            for link in status.connections
        )
        return with_drbd(status=replace(status, connections=links))(found)

    return change


def used_on(number: int, *, unheard: tuple[int, ...] = (), layout: Any = THREE) -> VolumeView:
    """In use there."""
    view = attached(of(layout, number), number)
    promotion = Promotion(replica=ReplicaName(name(number)), unheard=tuple(ReplicaName(name(each)) for each in unheard))
    return with_rv(view, last_promotion=promotion)


def lost(view: VolumeView, number: int, *, prevented: bool = False, seconds: float = 0.0) -> VolumeView:
    """Its agent reports a loss of quorum."""

    def change(found: ReplicaView) -> ReplicaView:
        actual = found.replica.status.drbd.actual
        told = replace(actual, quorum_lost_at=at(seconds), quorum_loss_prevented=prevented)
        return with_drbd(actual=told)(found)

    return spoilt(view, number, change)


def standing(view: VolumeView, number: int) -> VolumeView:
    """It waits for quorum."""

    def change(found: ReplicaView) -> ReplicaView:
        found = with_role("Primary", quorum=False)(found)
        status = found.replica.status.drbd.status
        assert status is not None
        return with_drbd(status=replace(status, suspended=True, suspended_quorum=True))(found)

    return spoilt(view, number, change)


def demoted(view: VolumeView, number: int) -> VolumeView:
    """It has quorum again, and is Secondary."""

    def change(found: ReplicaView) -> ReplicaView:
        found = with_role("Secondary", quorum=True)(found)
        status = found.replica.status.drbd.status
        assert status is not None
        return with_drbd(status=replace(status, suspended=False, suspended_quorum=False))(found)

    return spoilt(view, number, change)


def settled(view: VolumeView, seconds: float = 0.0) -> VolumeView:
    """After everything that is noticed has been written."""
    for _ in range(10):
        status = noticed(view, at(seconds))
        if status is None:
            return view
        view = with_rv(view.with_status(status))
    raise AssertionError("it never ends")


def open_ones(view: VolumeView) -> list[tuple[str, str, tuple[str, ...]]]:
    return [(each.reason.value, each.reference, each.stale) for each in view.volume.status.comparisons]


def promotable(view: VolumeView) -> set[int]:
    return {
        member.node_id for member in view.diskful_members if member.attached or why_not_primary(view, member) is None
    }


# Marks.


@pytest.mark.parametrize(
    ("pairs", "stale"),
    [
        ([(2, 1)], {1}),  # only the third member shows it: 12 of 12
        ([(0, 1)], {1}),
        ([(1, 0)], {1}),  # the stale one shows it against the user
        ([(0, 1), (1, 0), (2, 1)], {1}),  # F1
        ([(2, 1), (1, 2)], {1, 2}),
        ([(0, 1), (0, 2)], {1, 2}),
    ],
)
def test_who_is_stale_beside_a_user_is_known_from_all_members_together(pairs: Marks, stale: set[int]) -> None:
    view = settled(marked(used_on(0), *pairs))
    assert set(stale_copies(view)) == {name(each) for each in stale}
    assert open_ones(view) == [("Marks", name(0), tuple(sorted(name(each) for each in stale)))]
    assert promotable(view) == {0, 1, 2} - stale
    assert links_are_kept(view)
    for replica in view.replicas:
        config = config_of(view, replica)
        assert config is not None
        assert config.keep_links


def _every_set(pairs: list[tuple[int, int]]) -> Iterator[tuple[tuple[int, int], ...]]:
    for count in range(len(pairs) + 1):
        yield from combinations(pairs, count)


PAIRS = [(one, other) for one in range(3) for other in range(3) if one != other]


@pytest.mark.parametrize("where", ["in use", "detached", "power lost", "agent silent"])
def test_whatever_bits_members_show_nobody_who_lacks_something_is_promoted(where: str) -> None:
    """Member 0 wrote; some of the others lack it, and somebody shows that; other bits mean nothing. All 64 sets."""
    tried = 0
    for lacking, pairs in product(({1}, {2}, {1, 2}), _every_set(PAIRS)):
        told = all(any(against == each or (each, 0) == (by, against) for by, against in pairs) for each in lacking)
        seen = marked(used_on(0), *pairs)
        if where == "detached":
            seen = spoilt(with_member(seen, 0, attached=False), 0, with_role("Secondary"))
        elif where == "power lost":
            seen = settled(seen)
            seen = cut(cut(spoilt(seen, 0, lambda each: changed(each, node=None)), 1, 0), 2, 0)
        elif where == "agent silent":
            seen = spoilt(seen, 0, lambda each: changed(each, node=None))
            # What only the silent one shows is not known of.
            told = all(any(against == each and by != 0 for by, against in pairs) for each in lacking)
        if not told:
            continue
        view = settled(seen)
        assert not promotable(view) & lacking, (lacking, pairs)
        tried += 1
        for member in view.diskful_members:
            asked = with_rv(view, attach_requests=of(THREE, member.node_id).volume.status.attach_requests)
            if member.node_id in lacking:
                assert why_not(asked, member.node_name) is not None
    assert tried > 50


def test_who_has_no_disk_reads_from_nobody_who_may_be_stale() -> None:
    layout = (D, D, D, ReplicaType.ACCESS)
    view = settled(marked(of(THREE, 3, layout=layout), (2, 1)))
    member = view.members_by_name[name(3)]  # type: ignore[index]
    wait = why_not_primary(view, member)
    assert wait is not None
    assert wait.reason == "WaitingForComparison"
    assert why_not_primary(of(THREE, 3, layout=layout), member) is None


@pytest.mark.parametrize(("unheard", "undecided"), [((), False), ((1,), False), ((2,), True)])
def test_bits_that_may_be_older_than_the_use_of_a_copy_are_for_a_person(
    unheard: tuple[int, ...], undecided: bool
) -> None:
    """Member 2 shows bits against the copy in use. If it could not be asked before that use, they may be older."""
    view = settled(marked(used_on(0, unheard=unheard), (2, 0)))
    assert [each.undecided for each in view.volume.status.comparisons] == [undecided]
    assert len(made(view)) == (0 if undecided else 1)
    if undecided:
        first = view.volume.status.comparisons[0]
        wait = hindrance(view, first)
        assert wait is not None
        assert wait.reason == "WaitingForPerson"
        assert view.rv is not None
        said = {annotation_keys.COMPARE_WITH: name(2), annotation_keys.ACCEPT_DATA_LOSS: "true"}
        told = changed(view, rv=replace(view.rv, metadata=replace(view.rv.metadata, annotations=said)))
        decided = settled(told)
        # The word is taken back when it has been heard.
        assert spent_annotations(told) == ()
        assert set(spent_annotations(decided)) == set(said)
        assert open_ones(decided) == [("Marks", name(2), (name(0),))]
        # It is in use still: nothing is copied over what somebody reads.
        wait = hindrance(decided, decided.volume.status.comparisons[0])
        assert wait is not None
        assert wait.reason == "WaitingForDetach"


def test_a_stale_copy_that_is_in_use_all_the_same_is_not_overwritten() -> None:
    view = settled(marked(used_on(0), (2, 1)))
    moved = spoilt(spoilt(with_member(view, 0, attached=False), 0, with_role("Secondary")), 1, with_role("Primary"))
    usurped = settled(moved)
    assert [each.undecided for each in usurped.volume.status.comparisons] == [True]
    assert made(usurped) == []


# Losses of quorum.


@pytest.mark.parametrize(
    ("view", "resumed", "prevented", "others"),
    [
        (lost(standing(used_on(0), 0), 0), False, False, True),
        (lost(used_on(0), 0), True, False, False),
        (lost(used_on(0), 0, prevented=True), True, True, True),
        (lost(used_on(0, layout=TWO), 0), True, False, False),
        (lost(used_on(0, layout=TIE), 0), True, False, False),
    ],
)
def test_after_a_loss_of_quorum_copies_are_compared_before_anybody_else_is_promoted(
    view: VolumeView, resumed: bool, prevented: bool, others: bool
) -> None:
    """Unless it has not gone on, or a new generation came in time."""
    found = settled(view)
    (doubt,) = found.volume.status.comparisons
    assert (doubt.reason, doubt.reference, doubt.resumed, doubt.prevented) == (QUORUM, name(0), resumed, prevented)
    assert promotable(found) == ({member.node_id for member in found.diskful_members} if others else {0})
    assert len(made(found)) == 1 if resumed else True
    again = settled(found)
    assert again.volume.status.comparisons == (doubt,)
    assert again.volume.status.datamesh_revision == found.volume.status.datamesh_revision


def test_a_loss_whose_user_is_demoted_without_having_gone_on_is_struck_off() -> None:
    view = settled(lost(standing(used_on(0), 0), 0))
    gone = spoilt(view, 0, with_role("Secondary", quorum=False))
    assert open_ones(settled(gone)) == []


def test_a_loss_whose_user_is_demoted_when_it_has_met_the_others_again_counts() -> None:
    """It may have gone on before anybody looked: a demotion that waited for quorum comes at once (F1)."""
    view = settled(lost(standing(used_on(0), 0), 0))
    met = settled(demoted(view, 0))
    (doubt,) = met.volume.status.comparisons
    assert doubt.resumed
    assert promotable(met) == {0}
    overtaken = with_rv(view, last_promotion=Promotion(replica=ReplicaName(name(1))))
    assert open_ones(settled(demoted(overtaken, 0))) == []


def test_a_loss_that_is_heard_of_when_its_user_is_secondary_already_counts() -> None:
    """It may have gone on in between; it lets go only by its own word, which tells of the loss, too."""
    view = spoilt(lost(used_on(0), 0), 0, with_role("Secondary"))
    (doubt,) = settled(view).volume.status.comparisons
    assert doubt.resumed


def test_one_that_was_overtaken_has_acknowledged_nothing() -> None:
    view = with_rv(lost(of(THREE), 0), last_promotion=Promotion(replica=ReplicaName(name(1))))
    found = settled(view)
    assert open_ones(found) == []
    assert found.members[0].quorum_lost_at == at(0)


def test_a_second_loss_begins_the_comparison_anew() -> None:
    first = settled(lost(used_on(0), 0))
    second = settled(lost(first, 0, seconds=9, prevented=True))
    (doubt,) = second.volume.status.comparisons
    assert doubt.revision > first.volume.status.comparisons[0].revision
    # What nothing was done against the first time is as open as it was.
    assert not doubt.prevented


@pytest.mark.parametrize(
    ("layout", "away", "noted"),
    [
        (THREE, [(1, 0), (2, 0)], True),
        (THREE, [(1, 0)], False),
        (TWO, [(1, 0)], True),
        (TIE, [(1, 0)], False),  # the tie-breaker may be with it
        (TIE, [(1, 0), (2, 0)], True),
    ],
)
def test_a_user_whose_agent_is_dead_has_lost_quorum_by_the_word_of_the_others(
    layout: Any, away: Marks, noted: bool
) -> None:
    view = used_on(0, layout=layout)
    own = view.replicas[0]
    for one, other in away:
        view = cut(view, one, other)
    view = spoilt(view, 0, lambda _: own)  # its last word: all is well
    found = settled(view)
    assert open_ones(found) == ([("QuorumLost", name(0), ())] if noted else [])
    assert binding(found) == ()
    # They meet again, and its agent still says nothing new.
    back = settled(assembled_with(found, used_on(0, layout=layout)))
    assert [each.resumed for each in back.volume.status.comparisons] == ([True] if noted else [])


def assembled_with(view: VolumeView, reports: VolumeView) -> VolumeView:
    """The same volume, with other reports."""
    for found in reports.replicas:
        view = spoilt(view, found.id, with_drbd(status=found.replica.status.drbd.status))
    return view


def test_a_user_that_died_for_good_keeps_nobody_waiting() -> None:
    view = cut(cut(used_on(0), 1, 0), 2, 0)
    dead = settled(spoilt(view, 0, lambda each: changed(each, node=None)))
    assert promotable(dead) == {0, 1, 2}


def test_who_is_meant_to_be_primary_and_is_not_yet_has_lost_nothing() -> None:
    """Otherwise its loss would be noted and struck off again in turns, without end (found by the proof)."""
    waiting = spoilt(used_on(0), 0, with_role("Secondary"))
    own = waiting.by_name[ReplicaName(name(0))]
    view = spoilt(cut(cut(waiting, 1, 0), 2, 0), 0, lambda _: own)
    assert noticed(view, NOW) is None


# What is not done meanwhile.


def consented(view: VolumeView, number: int) -> VolumeView:
    assert view.rv is not None
    said = {annotation_keys.FORCE_REMOVE: name(number), annotation_keys.ACCEPT_DATA_LOSS: "true"}
    return changed(view, rv=replace(view.rv, metadata=replace(view.rv.metadata, annotations=said)))


@pytest.mark.parametrize(
    ("kind", "number", "types"),
    [
        (TransitionType.REMOVE_REPLICA, 2, {"before": D}),
        (TransitionType.FORCE_REMOVE_REPLICA, 2, {"before": D}),
        (TransitionType.CHANGE_REPLICA_TYPE, 2, {"before": D, "after": ReplicaType.ACCESS}),
        (TransitionType.ENABLE_MULTIATTACH, None, {}),
    ],
)
@pytest.mark.parametrize("why", ["marks", "quorum lost"])
def test_nobody_leaves_or_changes_while_copies_may_differ(
    kind: TransitionType, number: int | None, types: dict[str, Any], why: str
) -> None:
    view = settled(marked(used_on(0), (2, 1)) if why == "marks" else lost(used_on(0), 0))
    transition = make(view, kind, NOW, name(number) if number is not None else None, **types)  # type: ignore[arg-type]
    refused = begin(Walk(view, NOW, no_locks), transition)
    assert isinstance(refused, Wait)
    assert refused.reason == "CopiesDiffer"
    if kind is TransitionType.FORCE_REMOVE_REPLICA:
        forced = begin(Walk(consented(view, 2), NOW, no_locks), transition)
        assert not isinstance(forced, Wait) or forced.reason != "CopiesDiffer"


def test_a_stale_copy_that_is_lost_may_go() -> None:
    view = settled(marked(used_on(0), (2, 1)))
    dead = cut(cut(spoilt(view, 1, lambda each: changed(each, node=None)), 0, 1), 2, 1)
    assert nobody_leaves(dead, name(1)) is None  # type: ignore[arg-type]
    assert nobody_leaves(dead, name(2)) is not None  # type: ignore[arg-type]


def test_a_stale_copy_is_not_counted_as_one() -> None:
    assert effective.layout(used_on(0)).guaranteed_minimum_data_redundancy == 2
    assert effective.layout(settled(marked(used_on(0), (2, 1)))).guaranteed_minimum_data_redundancy == 1
    alone = settled(lost(used_on(0), 0))
    assert effective.layout(alone).guaranteed_minimum_data_redundancy == 0
    assert effective.after_losing(alone, [node_name(0)]).copies == 0
    assert effective.after_losing(used_on(0), [node_name(0)]).copies == 2


# The cure.


def test_copies_are_made_from_the_one_in_use() -> None:
    """From a third member, new writes would go missing (G)."""
    detached = settled(spoilt(with_member(marked(used_on(0), (2, 1)), 0, attached=False), 0, with_role("Secondary")))
    (first,) = detached.volume.status.comparisons
    found = reference(detached, first)
    assert found is not None
    assert found.name == name(0)
    other = attached(detached, 2)
    found = reference(other, first)
    assert found is not None
    assert found.name == name(2)
    without = attached(settled(marked(of(THREE, 3, layout=(D, D, D, ReplicaType.ACCESS)), (2, 1))), 3)
    wait = hindrance(without, without.volume.status.comparisons[0])
    assert wait is not None
    assert wait.reason == "WaitingForDetach"


def test_bits_that_are_left_between_copies_found_equal_mean_nothing_until_they_are_gone() -> None:
    view = settled(marked(used_on(0), (2, 1)))
    done = ran(view, OperationPhase.SUCCEEDED)
    status = finished(done, NOW)
    assert status is not None
    assert [each.name for each in status.compared_marks] == [f"{name(2)}/{name(1)}"]
    after = settled(with_rv(done.with_status(status)))
    assert open_ones(after) == []
    assert doubtful_copies(after) == frozenset()
    assert promotable(after) == {0, 1, 2}
    config = config_of(after, after.replicas[2])
    assert config is not None
    assert (config.keep_links, config.compared) == (False, (1,))
    # Gone, and come again: these may mean something.
    gone = settled(marked(after, (2, 1), amount=0), seconds=60)
    assert gone.volume.status.compared_marks == ()
    assert stale_copies(settled(marked(gone, (2, 1)), seconds=61)) != {}


def test_what_cannot_be_cured_is_tried_ever_more_rarely() -> None:
    view = settled(marked(used_on(0), (2, 1)))
    for attempt, wait in ((1, 0.0), (2, 60.0), (3, 120.0), (4, 240.0), (12, 3600.0)):
        first = replace(view.volume.status.comparisons[0], attempts=attempt - 1, tried_at=None)
        operation = replace(made(with_rv(view, comparisons=(first,)))[0])
        ended = replace(operation, status=replace(operation.status, phase=OperationPhase.FAILED, completed_at=NOW))
        status = failed(changed(with_rv(view, comparisons=(first,)), comparisons=(ended,)))
        assert status is not None
        counted = with_rv(view, comparisons=status.comparisons)
        assert counted.volume.status.comparisons[0].attempts == attempt
        assert failed(changed(counted, comparisons=(ended,))) is None
        assert (look_again(counted, NOW) or 0.0) == wait
        assert bool(list(writes(counted, NOW))) is (wait == 0)
        assert list(writes(counted, NOW + timedelta(seconds=wait))) != []


def test_what_holds_others_back_is_compared_first() -> None:
    view = settled(marked(used_on(0), (2, 1)))
    older = Comparison(
        revision=1, reason=ComparisonReason.RESIZE, since=NOW, reference=ReplicaName(name(0)), start=4096, end=8192
    )
    both = with_rv(view, comparisons=(older, *view.volume.status.comparisons))
    (operation,) = made(both)
    assert operation.spec.range is None


def test_nothing_is_noticed_of_a_healthy_volume_or_one_that_goes() -> None:
    assert noticed(used_on(0), NOW) is None
    assert noticed(picture(), NOW) is None
    assert noticed(with_rv(marked(used_on(0), (2, 1)), deleting=True), NOW) is None


def met_unsure(view: VolumeView, by: int, doubted: int, *, seconds: float = 0.0) -> VolumeView:
    """An agent has made a link anew by which marks against a copy may be lost."""

    def change(found: ReplicaView) -> ReplicaView:
        actual = found.replica.status.drbd.actual
        return with_drbd(actual=replace(actual, met_unsure_at=at(seconds), met_unsure=doubted))(found)

    return spoilt(view, by, change)


@pytest.mark.parametrize("by", [1, 2])
def test_a_copy_that_was_met_again_unsure_is_compared_before_it_is_used(by: int) -> None:
    """Whoever cured it, and although its agent has died since: it is UpToDate, Established, and shows no marks."""
    found = settled(met_unsure(used_on(0), by, 2))
    assert open_ones(found) == [("Marks", name(0), (name(2),))]
    assert promotable(found) == {0, 1}
    again = settled(met_unsure(found, by, 2, seconds=9))
    (comparison,) = again.volume.status.comparisons
    assert comparison.revision > found.volume.status.comparisons[0].revision


def test_one_whose_word_counted_and_was_met_again_unsure_is_left_to_a_person() -> None:
    found = settled(met_unsure(settled(lost(used_on(0), 0)), 0, 0))
    (comparison,) = found.volume.status.comparisons
    assert comparison.undecided


def test_a_copy_that_stands_still_for_good_may_leave() -> None:
    found = settled(met_unsure(used_on(0), 2, 2))
    assert nobody_leaves(found, ReplicaName(name(2))) is not None
    behind = spoilt(found, 2, with_device(disk_state="Outdated"))
    assert nobody_leaves(behind, ReplicaName(name(2))) is None
    assert nobody_leaves(behind, ReplicaName(name(1))) is not None


def without_disk(view: VolumeView, number: int) -> VolumeView:
    """It is here, and its drive is gone."""

    def change(found: ReplicaView) -> ReplicaView:
        status = found.replica.status.drbd.status
        assert status is not None
        devices = tuple(replace(each, disk_state="Diskless") for each in status.devices)
        return with_drbd(status=replace(status, devices=devices))(found)

    return spoilt(view, number, change)


def test_the_others_are_compared_without_a_copy_whose_disk_is_gone() -> None:
    view = without_disk(settled(lost(used_on(0), 0)), 1)
    loss = binding(view)[0]
    assert noticed(view, at(WITHOUT_DISK - 1)) is None, "it may come back"
    assert hindrance(view, loss) is not None
    view = settled(view, WITHOUT_DISK + 1)
    assert open_ones(view) == [("QuorumLost", name(0), ()), ("Marks", name(0), (name(1),))]
    assert hindrance(view, view.volume.status.comparisons[0]) is None
    assert links_are_kept(view), "the other copy may differ still"
    # Compared: only the lost one is doubtful, and may go; if it comes back it is compared.
    rest = with_rv(view, comparisons=view.volume.status.comparisons[1:])
    assert settled(rest, WITHOUT_DISK + 2) is rest
    assert doubtful_copies(rest) == {name(1)}
    assert not links_are_kept(rest)
    assert nobody_leaves(rest, ReplicaName(name(1))) is None
    assert nobody_leaves(rest, ReplicaName(name(2))) is not None
    assert hindrance(rest, rest.volume.status.comparisons[0]) is not None
    back = with_rv(of(THREE, 0), comparisons=rest.volume.status.comparisons)
    assert hindrance(back, back.volume.status.comparisons[0]) is None
    assert links_are_kept(back)


def test_a_user_that_has_booted_and_is_not_up_yet_is_in_no_doubt() -> None:
    view = spoilt(cut(cut(used_on(0), 0, 1), 0, 2), 0, with_drbd(status=None))
    assert not open_ones(settled(view)), "noticed and struck off by turns, it would be written without end"
