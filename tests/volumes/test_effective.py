"""What a volume could survive from here: tables by layout and loss, and the promise of every level."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace as changed
from itertools import combinations
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.api.meta import VolumeName
from quorate.api.storage.configuration import Replication
from quorate.api.storage.drbd import DrbdStatus, ReplicaType
from quorate.api.struct import replace
from quorate.placement.layout import LEVELS
from quorate.volumes import effective
from quorate.volumes.effective import after_losing, layout
from quorate.volumes.view import ReplicaView, VolumeView
from tests.volumes.replica.making import (
    LAYOUTS,
    TB,
    A,
    D,
    node,
    node_name,
    picture,
    settled,
    spoilt,
    with_device,
    with_drbd,
    with_member,
    without_membership,
)

THREE, PAIR = Replication.CONSISTENCY_AND_AVAILABILITY, Replication.AVAILABILITY


def healthy(replication: Replication, members: tuple[ReplicaType, ...] | None = None) -> VolumeView:
    return settled(picture(members or LAYOUTS[replication], replication))


def unlinked(*numbers: int) -> Callable[[ReplicaView], ReplicaView]:
    """A member that has lost these, and has noticed."""

    def cut(found: ReplicaView) -> ReplicaView:
        report = found.replica.status.drbd.status
        assert report is not None
        links = tuple(
            replace(
                link,
                connection_state="Connecting",
                peer_role="Unknown",
                peer_devices=tuple(
                    replace(each, replication_state="Off", peer_disk_state="DUnknown") for each in link.peer_devices
                ),
            )
            if link.peer_node_id in numbers
            else link
            for link in report.connections
        )
        return with_drbd(status=replace(report, connections=links))(found)

    return cut


def lost(view: VolumeView, *numbers: int, quorate: Collection[int] | None = None) -> VolumeView:
    """These are down, their agents silent; the others have noticed, and are quorate as given (all, by default)."""

    for number in numbers:
        view = spoilt(view, number, lambda each: changed(each, node=node(each.id, fresh=False)))
        view = changed(view, nodes={**view.nodes, node_name(number): node(number, fresh=False)})
    for found in view.replicas:
        if found.id not in numbers:
            view = spoilt(view, found.id, unlinked(*numbers))
            if quorate is not None and found.id not in quorate:
                view = spoilt(view, found.id, with_device(quorum=False))
    return view


def unnoticed(view: VolumeView, number: int, quorate: Collection[int] = ()) -> VolumeView:
    """One has just died: the others have lost it, and its agent's last word, that all is well, still counts."""
    alive = view.replicas[number]
    view = lost(view, number, quorate=quorate)
    view = changed(view, replicas=tuple(alive if each.id == number else each for each in view.replicas))
    return changed(view, nodes={**view.nodes, node_name(number): node(number)})


def primary(view: VolumeView, number: int) -> VolumeView:
    def promote(found: ReplicaView) -> ReplicaView:
        report = found.replica.status.drbd.status
        assert report is not None
        return with_drbd(status=replace(report, role="Primary"))(found)

    return spoilt(view, number, promote)


def behind(view: VolumeView, number: int) -> VolumeView:
    """A copy that is being brought up to date, as it says itself and as the others see it."""

    def seen(found: ReplicaView) -> ReplicaView:
        report = found.replica.status.drbd.status
        assert report is not None
        links = tuple(
            replace(
                link, peer_devices=tuple(replace(each, peer_disk_state="Inconsistent") for each in link.peer_devices)
            )
            if link.peer_node_id == number
            else link
            for link in report.connections
        )
        return with_drbd(status=replace(report, connections=links))(found)

    for found in view.replicas:
        view = spoilt(view, found.id, seen)
    return spoilt(view, number, with_device(disk_state="Inconsistent"))


@pytest.mark.parametrize("replication", sorted(LEVELS))
def test_a_healthy_volume_survives_just_what_its_level_promises(replication: Replication) -> None:
    found = layout(healthy(replication))
    level = LEVELS[replication]
    assert found.failures_to_tolerate == level.failures_to_tolerate
    assert found.guaranteed_minimum_data_redundancy == level.diskful - 1
    assert (found.total_voters, found.reachable_voters, found.up_to_date_voters) == (level.diskful,) * 3
    assert (found.total_tie_breakers, found.reachable_tie_breakers) == (level.tie_breakers,) * 2
    assert found.stale_agents == 0


AFTER = [
    ("3D, one lost", lost(healthy(THREE), 2), 0, 1, "out of reach: pvc-1-2 on n2"),
    ("3D, two lost", lost(healthy(THREE), 1, 2, quorate=()), -1, 0, "I/O stands"),
    ("3D, one has just died", unnoticed(healthy(THREE), 2, quorate=(0, 1)), 0, 1, "out of reach: pvc-1-2 on n2"),
    ("2D, its user has just died", unnoticed(primary(healthy(Replication.CONSISTENCY), 1), 1), -1, 1, "I/O stands"),
    ("3D, one behind", behind(healthy(THREE), 2), 0, 1, "not up to date: pvc-1-2 on n2"),
    ("2D+1TB, a diskful one lost", lost(healthy(PAIR), 1), 0, 0, "out of reach: pvc-1-1 on n1"),
    ("2D+1TB, the tie-breaker lost", lost(healthy(PAIR), 2), 0, 1, "out of reach: pvc-1-2 on n2"),
    ("2D, one lost", lost(healthy(Replication.CONSISTENCY), 1, quorate=()), -1, 0, "I/O stands"),
    ("1D", healthy(Replication.NONE), 0, 0, "none more may be lost"),
]


def test_a_link_that_is_cut_is_named_by_both_its_ends() -> None:
    message = layout(spoilt(spoilt(healthy(PAIR), 1, unlinked(2)), 2, unlinked(1))).message
    assert "not connected with one another: pvc-1-1 on n1, pvc-1-2 on n2" in message


def test_of_two_that_stand_because_they_do_not_see_each_other_neither_is_out_of_reach() -> None:
    view = primary(healthy(Replication.CONSISTENCY), 0)
    for number in (0, 1):
        view = spoilt(spoilt(view, number, unlinked(1 - number)), number, with_device(quorum=False))
    message = layout(view).message
    assert message.startswith("I/O stands: ")
    assert "not connected with one another: pvc-1-0 on n0, pvc-1-1 on n1" in message
    assert "out of reach" not in message


def test_no_number_is_told_that_only_keeps_a_member_from_having_quorum_by_itself() -> None:
    message = after_losing(primary(healthy(PAIR, (D, D, A)), 2), (node_name(0), node_name(1))).message
    assert "pvc-1-2 on n2: 0 of 2 voters here; without a disk, and no UpToDate peer" in message
    assert "32" not in message


@pytest.mark.parametrize(("view", "ftt", "gmdr", "words"), [row[1:] for row in AFTER], ids=[row[0] for row in AFTER])
def test_what_is_left_after_a_loss(view: VolumeView, ftt: int, gmdr: int, words: str) -> None:
    found = layout(view)
    assert (found.failures_to_tolerate, found.guaranteed_minimum_data_redundancy) == (ftt, gmdr), found.message
    assert words in found.message


def test_a_survivor_by_tie_break_would_not_get_quorum_back() -> None:
    """``had quorum before`` is an input: the same picture after a restart of the survivor is not quorate."""
    kept = lost(healthy(PAIR), 1)
    assert layout(kept).failures_to_tolerate == 0
    restarted = lost(healthy(PAIR), 1, quorate=())
    assert layout(restarted).failures_to_tolerate == -1
    assert "tie" in layout(restarted).message


def test_whose_agent_is_silent_counts_as_its_peers_see_it() -> None:
    """00 Freshness: the kernel goes on without its agent."""
    view = healthy(THREE)
    silent = spoilt(view, 2, lambda each: changed(each, node=node(2, fresh=False)))
    silent = changed(silent, nodes={**silent.nodes, node_name(2): node(2, fresh=False)})
    found = layout(silent)
    assert (found.failures_to_tolerate, found.reachable_voters, found.up_to_date_voters) == (1, 3, 3)
    assert found.stale_agents == 1
    assert "silent agents: pvc-1-2 on n2" in found.message


def test_what_a_silent_agent_said_last_does_not_count() -> None:
    """Alone it would still be a healthy member; nobody has it in touch, so it is down."""
    found = layout(lost(healthy(THREE), 2))
    assert (found.reachable_voters, found.up_to_date_voters, found.stale_agents) == (2, 2, 1)


def test_nothing_is_known_when_nobody_speaks() -> None:
    found = layout(lost(healthy(THREE), 0, 1, 2))
    assert found.failures_to_tolerate is None
    assert found.guaranteed_minimum_data_redundancy is None
    assert "no member's agent reports" in found.message
    nobody = layout(without_membership(healthy(THREE), 0, 1, 2))
    assert nobody.failures_to_tolerate is None


def test_a_member_that_joins_hidden_is_no_voter_yet() -> None:
    view = with_member(healthy(THREE, (D, D, D, D)), 3, hidden=True)
    view = settled(view)
    found = layout(view)
    assert (found.total_voters, found.failures_to_tolerate) == (3, 1)


def test_an_excused_member_is_missed_although_no_file_names_it() -> None:
    """02: its vote stays in the others' metadata."""
    view = settled(with_member(lost(healthy(THREE), 2), 2, excused=True))
    assert layout(view).failures_to_tolerate == 0
    assert after_losing(view, [node_name(1)]).verdicts[0].voters == 3


def test_a_member_that_serves_and_stops_is_a_loss_whoever_else_goes_on() -> None:
    """The access replica sees only one copy; without that one the other two go on, and it does not."""
    view = primary(settled(picture((D, D, D, A), THREE)), 3)
    apart = lost(view, 0, 1)
    alone = spoilt(view, 3, lambda _: apart.replicas[3])
    assert after_losing(alone, []).survives
    found = after_losing(alone, [node_name(2)])
    assert not found.survives
    assert found.verdicts[0].quorate
    assert "I/O stops at pvc-1-3 on n3" in found.message


def test_quorum_without_a_copy_is_of_no_use() -> None:
    """As long as nothing demands a copy (qmr), the kernel does not ask for one."""
    view = behind(healthy(PAIR), 1)
    for number in range(3):
        config = replace(view.replicas[number].replica.status.drbd.config, quorum_minimum_redundancy=None)
        view = spoilt(view, number, with_drbd(config=config))
    found = after_losing(view, [node_name(0)])
    assert found.verdicts[1].quorate
    assert not found.survives


def test_the_node_that_uses_the_volume_is_one_that_may_be_lost() -> None:
    """Its own I/O ends with it; the volume's does not."""
    view = primary(healthy(THREE), 0)
    assert layout(view).failures_to_tolerate == 1
    assert after_losing(view, [node_name(0)]).survives


def test_an_access_replica_that_serves_goes_on_through_a_quorate_peer() -> None:
    """access_primary_3d_q32: {A, two D} goes on; without a majority its peers are not quorate, and neither is it."""
    view = primary(settled(picture((D, D, D, A), THREE)), 3)
    assert after_losing(view, [node_name(0)]).survives
    stopped = after_losing(view, [node_name(0), node_name(1)])
    assert not stopped.survives
    assert "I/O stops at pvc-1-3 on n3" in stopped.message


def test_a_tie_breaker_that_serves_survives_the_loss_of_either_copy() -> None:
    """tb_primary_2d_q32."""
    view = settled(with_member(settled(picture((D, D, A), PAIR)), 2, hidden=False))
    view = primary(view, 2)
    assert layout(view).failures_to_tolerate == 1
    for number in (0, 1):
        assert after_losing(view, [node_name(number)]).survives


def test_losing_nodes_that_have_nothing_of_the_volume_changes_nothing() -> None:
    view = healthy(THREE)
    assert after_losing(view, [node_name(4)]).survives
    assert after_losing(view, []).copies == 3


def test_losing_everybody_is_not_survived() -> None:
    view = healthy(THREE)
    found = after_losing(view, [node_name(number) for number in range(3)])
    assert not found.survives
    assert found.copies == 0


def test_the_last_copy_is_not_survived_whoever_else_is_left() -> None:
    found = after_losing(behind(healthy(PAIR), 1), [node_name(0)])
    assert not found.survives


@given(st.sampled_from(sorted(LAYOUTS)), st.data())
@settings(max_examples=60)
def test_the_number_is_the_largest_of_which_any_so_many_may_be_lost(
    replication: Replication, data: st.DataObject
) -> None:
    members = LAYOUTS[replication]
    view = healthy(replication)
    for number in range(len(members)):
        if members[number] is D and data.draw(st.booleans()):
            state = data.draw(st.sampled_from(["UpToDate", "Inconsistent", "Outdated"]))
            view = spoilt(view, number, with_device(disk_state=state))
    if data.draw(st.booleans()):
        view = primary(view, data.draw(st.integers(0, len(members) - 1)))
    found = layout(view).failures_to_tolerate
    assert found is not None
    nodes = [node_name(number) for number in range(len(members))]
    survived = [
        all(after_losing(view, list(some)).survives for some in combinations(nodes, count))
        for count in range(len(members) + 1)
    ]
    expected = -1 if not survived[0] else survived.index(False) - 1
    assert found == expected


def test_volumes_of_one_shape_share_one_evaluation() -> None:
    layout(healthy(THREE))
    before = effective._evaluated.cache_info()
    begun = process_time()
    view = healthy(THREE)
    for number in range(50):
        found = layout(changed(view, name=VolumeName(f"other-{number}")))
        assert found.failures_to_tolerate == 1
    assert effective._evaluated.cache_info().misses == before.misses
    assert (process_time() - begun) / 50 < 0.01


REPORTS = st.builds(
    lambda quorum, disk, role: (quorum, disk, role),
    st.booleans(),
    st.sampled_from(["UpToDate", "Diskless", "Failed", "", "Strange"]),
    st.sampled_from(["Primary", "Secondary", ""]),
)


@given(st.lists(st.none() | REPORTS, min_size=3, max_size=3), st.sampled_from([(D, D, TB), (D, D, D)]))
@settings(max_examples=100)
def test_whatever_is_reported_there_is_an_answer(
    reports: list[tuple[bool, str, str] | None], members: tuple[ReplicaType, ...]
) -> None:
    view = picture(members, PAIR)
    for number, said in enumerate(reports):
        if said is None:
            view = spoilt(view, number, with_drbd(status=None))
            continue
        quorum, disk, role = said
        view = spoilt(view, number, with_device(quorum=quorum, disk_state=disk))
        view = spoilt(view, number, lambda each, role=role: _as(each, role))  # type: ignore[misc]
    found = layout(view)
    assert found.failures_to_tolerate is None or -1 <= found.failures_to_tolerate <= 3
    assert len(found.message) <= 512


def _as(found: ReplicaView, role: str) -> ReplicaView:
    report = found.replica.status.drbd.status
    assert isinstance(report, DrbdStatus)
    return with_drbd(status=replace(report, role=role))(found)


# What whoever uses the volume says counts more than what should be.


def used_without_a_disk(**said: bool) -> VolumeView:
    """2D in use by an access replica; the second copy's disk is gone, and the first has no quorum."""
    view = healthy(Replication.CONSISTENCY, (D, D, A))
    for number in (0, 1):
        view = spoilt(view, number, with_device(quorum=False))
    view = spoilt(view, 1, with_device(disk_state="Diskless"))

    def sees(found: ReplicaView) -> ReplicaView:
        report = found.replica.status.drbd.status
        assert report is not None
        links = tuple(
            replace(link, peer_devices=tuple(replace(each, peer_disk_state="Diskless") for each in link.peer_devices))
            if link.peer_node_id == 1
            else link
            for link in report.connections
        )
        return with_drbd(status=replace(report, connections=links))(found)

    for number in (0, 2):
        view = spoilt(view, number, sees)

    def used(found: ReplicaView) -> ReplicaView:
        drbd = found.replica.status.drbd
        assert drbd.status is not None
        held = said.get("held", False)
        report = replace(drbd.status, role="Primary", suspended=held, suspended_user=held)
        return with_drbd(status=report, actual=replace(drbd.actual, held_for_copies=held))(found)

    return with_member(spoilt(view, 2, used), 2, attached=True)


def test_io_is_not_said_to_stand_where_its_user_says_that_it_flows() -> None:
    told = layout(used_without_a_disk())
    assert told.failures_to_tolerate == -1
    assert told.message.startswith("I/O goes on at pvc-1-2 on n2, with fewer copies than promised: ")
    assert "I/O stands" not in told.message


def test_io_that_is_held_is_said_to_be() -> None:
    told = layout(used_without_a_disk(held=True))
    assert told.message.startswith("I/O stands: ")
    assert "held by the agent until enough copies are connected: pvc-1-2 on n2" in told.message


def test_where_the_agent_that_would_hold_it_is_silent_nobody_knows_whether_it_stands() -> None:
    view = used_without_a_disk()
    view = spoilt(view, 2, lambda each: changed(each, node=node(each.id, fresh=False)))
    view = changed(view, nodes={**view.nodes, node_name(2): node(2, fresh=False)})
    told = layout(view)
    assert "not known whether it does where no agent is heard that would hold it: pvc-1-2 on n2" in told.message
