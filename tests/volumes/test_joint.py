"""A volume and its replicas are one pass: two decisions on one picture, carried out as one plan."""

from __future__ import annotations

from dataclasses import replace as changed
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.api.meta import ObjectMeta
from quorate.api.storage.configuration import Replication
from quorate.api.struct import replace
from quorate.engine import AddFinalizer, Delete, Patch, PatchStatus, Plan, PlanEvent, ReleaseFinalizer, Write
from quorate.errors import InvalidPlan
from quorate.volumes import joint
from quorate.volumes.replica import controller as replica
from quorate.volumes.replica.snapshot import Snapshot
from quorate.volumes.view import ReplicaView, VolumeView
from quorate.volumes.volume import controller as volume
from tests.support.kinds import Widget, WidgetSpec, WidgetStatus
from tests.volumes.volume.making import NOW, formed, preconfiguring


def widget(name: str) -> Widget:
    metadata = ObjectMeta(name=name, uid=f"uid-{name}", resource_version="7", finalizers=("held",))
    return Widget(metadata=metadata, spec=WidgetSpec(owner="me"), status=WidgetStatus(phase="Old"))


VOLUME, ONE, OTHER = widget("volume"), widget("one"), widget("other")


def spec_of(obj: Widget, high: int = 9) -> Patch:
    return Patch(obj, replace(obj, spec=replace(obj.spec, high=high)))


def status_of(obj: Widget) -> PatchStatus:
    return PatchStatus(obj, replace(obj, status=replace(obj.status, phase="New")))


def unchanged(obj: Widget) -> PatchStatus:
    return PatchStatus(obj, obj)


def test_replicas_come_before_what_the_volume_does_and_its_status_is_last() -> None:
    own = Plan(writes=(spec_of(OTHER),), status=status_of(VOLUME), requeue_after=7.0)
    found = joint.joined(own, Plan(writes=(status_of(ONE), status_of(OTHER)), requeue_after=5.0))
    assert found.steps == (status_of(ONE), status_of(OTHER), spec_of(OTHER), status_of(VOLUME))
    assert found.requeue_after == 5.0


@pytest.mark.parametrize(
    ("first", "later"),
    [
        pytest.param(spec_of(ONE, 3), spec_of(ONE), id="both change it"),
        pytest.param(status_of(ONE), AddFinalizer(ONE, "new"), id="the other needs it as it was"),
        pytest.param(Delete(ONE), spec_of(ONE), id="the first ends it"),
    ],
)
def test_where_both_cannot_write_an_object_the_volume_does_and_replicas_are_looked_at_again(
    first: Write, later: Write
) -> None:
    found = joint.joined(Plan(writes=(later,), requeue_after=60.0), Plan(writes=(first, status_of(OTHER))))
    assert found.steps == (status_of(OTHER), later)
    assert found.requeue_after is not None
    assert found.requeue_after < 0.1


def test_only_who_writes_has_something_to_tell() -> None:
    news, old = PlanEvent(ONE, "News", "something is new"), PlanEvent(VOLUME, "Old", "as it was")
    silent = Plan(status=unchanged(VOLUME), events=(old,))
    assert joint.joined(silent, Plan(writes=(status_of(ONE),), events=(news,))).events == (news,)
    told = Plan(status=status_of(VOLUME), events=(old,))
    assert joint.joined(told, Plan(writes=(unchanged(ONE),), events=(news,))).events == (old,)


def some_writes(*objects: Widget) -> st.SearchStrategy[tuple[Write, ...]]:
    found = [
        each
        for obj in objects
        for each in (
            spec_of(obj),
            status_of(obj),
            Delete(obj),
            AddFinalizer(obj, "new"),
            ReleaseFinalizer(obj, "held", ()),
        )
    ]
    return st.lists(st.sampled_from(found), max_size=4).map(tuple)


@given(some_writes(ONE, OTHER), some_writes(ONE, OTHER))
def test_two_plans_make_one_that_loses_nothing(own: tuple[Write, ...], theirs: tuple[Write, ...]) -> None:
    try:
        mine, others = Plan(writes=own, status=status_of(VOLUME)), Plan(writes=theirs)
    except InvalidPlan:
        return
    found = joint.joined(mine, others)
    assert found.steps[-len(mine.steps) :] == mine.steps
    first = found.steps[: -len(mine.steps)]
    assert [each for each in others.steps if each in first] == list(first)
    assert len(first) == len(others.steps) or found.requeue_after is not None


def in_words(view: VolumeView) -> VolumeView:
    """With words about every replica that are out of date."""

    def aged(each: ReplicaView) -> ReplicaView:
        return changed(each, replica=replace(each.replica, status=replace(each.replica.status, message="old")))

    return changed(view, replicas=tuple(aged(each) for each in view.replicas))


def test_a_step_of_the_volume_is_a_plan_of_its_own() -> None:
    view = preconfiguring()
    assert volume.decide(view, NOW, Random(1)).transition is not None
    found = joint.decide(view, NOW, Random(1))
    assert (found.transition is not None, len(found.steps)) == (True, 1)


@pytest.mark.parametrize("replication", list(Replication))
def test_otherwise_a_pass_does_what_both_decide(replication: Replication) -> None:
    view = in_words(formed(replication))
    own = volume.decide(view, NOW, Random(1))
    theirs = replica.decide(Snapshot(view), NOW, Random(1))
    assert theirs.steps
    assert joint.decide(view, NOW, Random(1)).steps == (*theirs.steps, *own.steps)
