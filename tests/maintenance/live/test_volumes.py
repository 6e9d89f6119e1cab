"""A volume as a group: its parts, whether it would survive, and what of it must not be disturbed."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, combinations

import pytest

from quorate.api.maintenance.action import HostState
from quorate.api.meta import NodeName, VolumeName
from quorate.api.names import replica
from quorate.api.storage.configuration import Replication
from quorate.api.storage.datamesh import Step, StepStatus, Transition, TransitionGroup, TransitionType
from quorate.api.storage.drbd import ReplicaType, Role
from quorate.api.struct import replace as changed
from quorate.locks import Change
from quorate.maintenance.live import volumes
from quorate.maintenance.live.volumes import Naming, group_info, is_group, out_of_touch
from quorate.maintenance.model.items import GroupItem
from quorate.maintenance.nouns import GroupInfo, VDiskId
from quorate.maintenance.rules.volumes import copies_left, is_writable
from quorate.volumes.effective import after_losing, mesh_of
from tests.volumes.transitions.story import VOLUME, Story

D, A, TB = ReplicaType.DISKFUL, ReplicaType.ACCESS, ReplicaType.TIE_BREAKER
NONE, AVAILABILITY, CONSISTENCY, BOTH = (
    Replication.NONE,
    Replication.AVAILABILITY,
    Replication.CONSISTENCY,
    Replication.CONSISTENCY_AND_AVAILABILITY,
)
LAYOUTS = [(NONE, [D]), (AVAILABILITY, [D, D, TB]), (CONSISTENCY, [D, D]), (BOTH, [D, D, D])]


def shown(story: Story, change: Change | None = None) -> GroupInfo:
    view = story.view()
    naming = Naming(
        group=9,
        nodes={NodeName(f"n{number}"): number + 1 for number in range(8)},
        replicas={member.name: member.node_id + 100 for member in view.members},
        drives={member.name: () for member in view.members},
        markers=lambda _: (),
    )
    return group_info(view, mesh_of(view), naming, change)


@pytest.mark.parametrize(("level", "kinds"), LAYOUTS, ids=[level for level, _ in LAYOUTS])
def test_parts_are_the_members_that_count(level: Replication, kinds: list[ReplicaType]) -> None:
    info = shown(Story(level, kinds))
    assert len(info.vdisks) == len(kinds)
    assert {part.state for part in info.vdisks} == {HostState.UP}
    assert info.vdisks[0].id == VDiskId(9, 1, 0, 0, 100)
    facts = info.volume
    assert facts is not None
    assert [(member.voter, member.tie_breaker) for member in facts.members] == [
        (kind is D, kind is TB) for kind in kinds
    ]
    assert all(member.connected for member in facts.members)
    assert facts.copies_kept == (2 if level is BOTH else 1)
    assert facts.failures_to_tolerate == (1 if level in (AVAILABILITY, BOTH) else 0)


@pytest.mark.parametrize(("level", "kinds"), LAYOUTS, ids=[level for level, _ in LAYOUTS])
@pytest.mark.parametrize("away", [None, 0, 1])
@pytest.mark.parametrize("attached", [False, True])
def test_what_the_rules_are_told_of_losses_is_what_the_kernel_would_do(
    level: Replication, kinds: list[ReplicaType], away: int | None, attached: bool
) -> None:
    story = Story(level, kinds)
    if attached:
        story.attach(0)
    if away is not None and away < len(kinds) and not (attached and away == 0):
        story.lose(away)
    info = shown(story)
    facts = info.volume
    assert facts is not None
    # Where the rules must count for themselves, they are never laxer than that.
    by_count = replace(info, volume=replace(facts, survives=None))
    view = story.view()
    numbers = range(len(kinds))
    for lost in chain.from_iterable(combinations(numbers, count) for count in range(len(kinds) + 1)):
        expected = after_losing(view, [NodeName(f"n{number}") for number in lost]).survives
        members = frozenset(member.vdisk for member in facts.members if member.node - 1 in lost)
        assert is_writable(GroupItem(info), members) == expected, (lost, facts)
        assert not is_writable(GroupItem(by_count), members) or expected, (lost, facts)


def test_a_member_without_a_copy_or_out_of_reach_is_down() -> None:
    story = Story(BOTH, [D, D, D])
    story.lose(2)
    info = shown(story)
    assert [part.state for part in info.vdisks] == [HostState.UP, HostState.UP, HostState.DOWN]
    assert info.volume is not None
    assert [member.connected for member in info.volume.members] == [True, True, False]
    assert out_of_touch(story.view()) == {"n2"}


def test_a_silent_agents_replica_is_what_its_peers_say() -> None:
    story = Story(BOTH, [D, D, D])
    story.silent.add(2)
    assert [part.state for part in shown(story).vdisks] == [HostState.UP] * 3
    assert out_of_touch(story.view()) == frozenset()


def test_a_sole_member_whose_agent_is_silent_is_out_of_touch_but_missed_by_nobody() -> None:
    """Nobody can testify: past its grace it is down, before that it may be serving."""
    story = Story(NONE, [D])
    story.lose(0)
    assert out_of_touch(story.view()) == {"n0"}
    info = shown(story)
    assert [part.state for part in info.vdisks] == [HostState.DOWN]
    assert info.volume is not None
    assert [member.missed for member in info.volume.members] == [False]


def test_a_good_copy_counts_although_its_side_does_not_serve() -> None:
    story = Story(CONSISTENCY, [D, D])
    story.lose(1)
    facts = shown(story).volume
    assert facts is not None
    survivor, lost = facts.members
    assert (survivor.connected, survivor.up_to_date, survivor.missed) == (False, True, False)
    assert (lost.up_to_date, lost.missed) == (False, True)
    assert copies_left(facts, frozenset({lost.vdisk})) == 1


def test_where_it_is_in_use_or_is_meant_to_be_counts() -> None:
    story = Story(BOTH, [D, D, D])
    story.attach(1)
    facts = shown(story).volume
    assert facts is not None
    assert facts.attached_on == {2}


def test_a_copy_that_is_made_is_no_part_but_is_told_of_and_a_step_concerns_it_too() -> None:
    story = Story(BOTH, [D, D, D])
    story.add(3, D)
    seen: list[tuple[str, int, int]] = []
    for _ in range(14):
        story.controller()
        facts = shown(story).volume
        assert facts is not None
        seen.append((facts.unconfirmed_step, len(shown(story).vdisks), len(facts.members)))
        story.agents()
    assert list(dict.fromkeys(seen)) == [("", 3, 4), ("Show of v-3", 4, 4), ("", 4, 4)]


def test_a_first_copy_that_is_under_way_is_told_of() -> None:
    story = Story(BOTH, [D, D, D])
    copying = Transition(
        type=TransitionType.ADD_REPLICA,
        group=TransitionGroup.VOTING_MEMBERSHIP,
        replica_name=replica(VOLUME, 3),
        started_at=story.now,
        steps=(Step(name="Synchronize", status=StepStatus.ACTIVE),),
    )
    story.rv = changed(story.rv, status=changed(story.rv.status, datamesh_transitions=(copying,)))
    facts = shown(story).volume
    assert facts is not None
    assert (facts.synchronizing, facts.unconfirmed_step) == ("v-3", "")


def test_a_step_that_is_only_being_written_counts_already() -> None:
    facts = shown(Story(BOTH, [D, D, D]), Change(VolumeName("v"), "Hide of v-1")).volume
    assert facts is not None
    assert facts.unconfirmed_step == "Hide of v-1"


def test_what_has_nothing_to_lose_is_no_group() -> None:
    story = Story(BOTH, [D, D, D])
    assert is_group(story.view())
    formed = story.rv
    story.rv = changed(formed, status=changed(formed.status, datamesh_revision=0))
    assert not is_group(story.view()), "it is not born yet"
    story.rv = changed(formed, metadata=changed(formed.metadata, deletion_timestamp=story.now))
    assert not is_group(story.view()), "it goes, and nobody uses it"
    story.rv = formed
    story.attach(0)
    story.rv = changed(story.rv, metadata=changed(story.rv.metadata, deletion_timestamp=story.now))
    assert is_group(story.view()), "it is still in use"
    assert volumes.attached_on(story.view()) == ("n0",)


def test_where_io_stands_still_under_a_user_is_known_by_the_agent_there() -> None:
    story = Story(BOTH, [D, D, D])
    story.attach(0)
    view = story.view()
    own = view.replica(replica(VOLUME, 0))
    assert own is not None
    assert own.report is not None
    assert volumes.suspended_on(view) == ()
    object.__setattr__(own, "report", changed(own.report, role=Role.PRIMARY, suspended=True))
    assert volumes.suspended_on(view) == ("n0",)
    object.__setattr__(own, "report", changed(own.report, role=Role.SECONDARY, suspended=True))
    assert volumes.suspended_on(view) == (), "nobody writes there"
