"""A plan that breaks a rule cannot be built; one that changes nothing does nothing."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.api.codec import to_builtins
from quorate.api.meta import Condition, ConditionStatus, ObjectMeta, OwnerReference
from quorate.api.quantity import Quantity
from quorate.api.struct import replace
from quorate.engine import merge
from quorate.engine.plan import (
    NOTHING,
    AddFinalizer,
    Create,
    Delete,
    NoneLeft,
    Patch,
    PatchStatus,
    Plan,
    ReleaseFinalizer,
)
from quorate.errors import InvalidPlan
from tests.support.kinds import Colour, Gadget, Part, Widget, WidgetSpec, WidgetStatus

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def stored(name: str = "w", *, finalizers: tuple[str, ...] = (), deleting: bool = False) -> Widget:
    metadata = ObjectMeta(
        name=name,
        uid=f"uid-{name}",
        resource_version="7",
        finalizers=finalizers,
        deletion_timestamp=NOW if deleting else None,
        labels={"kept": "yes", "gone": "soon"},
    )
    return Widget(metadata=metadata, spec=WidgetSpec(owner="me", low=1, high=2), status=WidgetStatus(phase="Old"))


def status_of(widget: Widget, phase: str = "New", *, if_unchanged: bool = False) -> PatchStatus:
    intended = replace(widget, status=replace(widget.status, phase=phase))
    return PatchStatus(widget, intended, if_unchanged=if_unchanged)


def spec_of(widget: Widget, high: int = 9, *, if_unchanged: bool = False) -> Patch:
    return Patch(widget, replace(widget, spec=replace(widget.spec, high=high)), if_unchanged=if_unchanged)


def child_of(parent: Widget, name: str = "child") -> Create:
    owner = OwnerReference(api_version="v1", kind="Widget", name=parent.name, uid=parent.metadata.uid)
    metadata = ObjectMeta(namespace="test", name=name, owner_references=(owner,))
    return Create(Gadget(metadata=metadata, spec=WidgetSpec(owner="me")))


W = stored()
OTHER = stored("other")
LAST = stored(finalizers=("mine",), deleting=True)
HELD = stored(finalizers=("mine", "foreign"), deleting=True)


@pytest.mark.parametrize(
    ("build", "complaint"),
    [
        # Transitions.
        (lambda: Plan(transition=status_of(W)), "needs if_unchanged"),
        (lambda: Plan(transition=status_of(W, if_unchanged=True), status=status_of(W)), "writes nothing else"),
        (lambda: Plan(transition=status_of(W, if_unchanged=True), writes=(child_of(W),)), "writes nothing else"),
        # Spec and status are two writes.
        (lambda: Patch(W, replace(W, status=WidgetStatus(phase="New"))), "use PatchStatus"),
        (lambda: PatchStatus(W, replace(W, spec=replace(W.spec, high=9))), "use Patch"),
        (lambda: PatchStatus(W, replace(W, metadata=replace(W.metadata, labels={}))), "use Patch"),
        # One object.
        (lambda: Patch(W, stored("other")), r"differ in metadata\.name"),
        (lambda: PatchStatus(W, replace(W, metadata=replace(W.metadata, uid="x"))), r"differ in metadata\.uid"),
        (lambda: Patch(W, Gadget(metadata=W.metadata, spec=W.spec)), "different kinds"),
        (lambda: Patch(W, replace(W, metadata=replace(W.metadata, finalizers=("a",)))), "use AddFinalizer"),
        # Creation.
        (lambda: Create(W), "an object that exists is patched"),
        (lambda: Create(Widget(spec=W.spec)), "needs a name"),
        (lambda: Create(Widget(metadata=ObjectMeta(name="a", generate_name="a"), spec=W.spec)), "needs a name"),
        # Finalizer first.
        (lambda: Plan(writes=(AddFinalizer(W, "mine"), child_of(W))), "no child before the finalizer"),
        (lambda: Plan(writes=(child_of(W), AddFinalizer(W, "mine"))), "no child before the finalizer"),
        (lambda: AddFinalizer(stored(deleting=True), "mine"), "is being deleted"),
        # No write on top of a state that the plan itself has changed.
        (lambda: Plan(writes=(spec_of(W), spec_of(W, 8))), "make it one"),
        (lambda: Plan(writes=(status_of(W),), status=status_of(W, "Other")), "make it one"),
        (lambda: Plan(writes=(spec_of(W),), status=status_of(W, if_unchanged=True)), "always be a conflict"),
        (lambda: Plan(writes=(status_of(W), AddFinalizer(W, "mine"))), "always be a conflict"),
        (lambda: Plan(writes=(Delete(W),), status=status_of(W)), "ends the object's life"),
        (lambda: Plan(writes=(ReleaseFinalizer(LAST, "mine", ()),), status=status_of(LAST)), "ends the object's life"),
        # When to look again.
        (lambda: Plan(requeue_after=0), "above zero"),
        (lambda: Plan(requeue_after=-1), "above zero"),
        (lambda: Plan(requeue_after=float("inf")), "above zero"),
        (lambda: Plan(requeue_after=float("nan")), "above zero"),
    ],
)
def test_a_plan_that_breaks_a_rule_is_refused(build: Callable[[], object], complaint: str) -> None:
    with pytest.raises(InvalidPlan, match=complaint):
        build()


def test_the_complaint_names_the_write_and_the_object() -> None:
    with pytest.raises(InvalidPlan, match="Create of Gadget test/child: its parent"):
        Plan(writes=(AddFinalizer(W, "mine"), child_of(W)))


@pytest.mark.parametrize(
    "plan",
    [
        NOTHING,
        Plan(status=PatchStatus(W, W)),
        Plan(status=status_of(W, "Old")),
        Plan(transition=status_of(W, "Old", if_unchanged=True)),
        Plan(writes=(spec_of(W, 2), AddFinalizer(HELD, "mine"), ReleaseFinalizer(W, "mine", ())), requeue_after=5),
        Plan(writes=(Patch(W, replace(W, metadata=replace(W.metadata, labels=dict(W.metadata.labels)))),)),
    ],
)
def test_a_difference_that_is_empty_is_no_write(plan: Plan) -> None:
    assert plan.steps == ()


def test_own_status_goes_last_and_everything_else_in_order() -> None:
    writes = (
        child_of(stored("parent")),
        spec_of(OTHER),
        status_of(OTHER),
        Delete(stored("third")),
        AddFinalizer(W, "mine"),
    )
    status = status_of(W)
    assert Plan(status=status, writes=writes).steps == (*writes, status)


def test_an_object_that_foreign_finalizers_still_hold_can_be_reported_on_after_ours_is_gone() -> None:
    release, status = ReleaseFinalizer(HELD, "mine", (NoneLeft(Gadget),)), status_of(HELD)
    assert Plan(writes=(release,), status=status).steps == (release, status)


def test_only_what_changed_is_sent() -> None:
    intended = replace(
        W,
        metadata=replace(W.metadata, labels={"kept": "yes", "new": "1"}, annotations={"a": "b"}),
        spec=replace(W.spec, low=None, high=5, parts=(Part(name="x"),)),
    )
    assert Patch(W, intended).patch == {
        "metadata": {"labels": {"gone": None, "new": "1"}, "annotations": {"a": "b"}},
        "spec": {"low": None, "high": 5, "parts": [{"name": "x"}]},
    }


def test_a_value_that_returns_to_its_default_is_removed_so_that_the_server_puts_the_default() -> None:
    green = replace(W, spec=replace(W.spec, colour=Colour.GREEN))
    assert Patch(green, replace(green, spec=replace(green.spec, colour=Colour.RED))).patch == {"spec": {"colour": None}}


quantities = st.none() | st.sampled_from(["1Gi", "2Gi", "500M"]).map(Quantity)
specs = st.builds(
    WidgetSpec,
    owner=st.just("me"),
    size=quantities,
    colour=st.sampled_from(list(Colour)),
    low=st.none() | st.integers(0, 3),
    ratio=st.none() | st.floats(0.1, 0.9),
    enabled=st.none() | st.booleans(),
    parts=st.lists(st.builds(Part, name=st.sampled_from("abc")), max_size=3, unique_by=lambda part: part.name).map(
        tuple
    ),
    tags=st.lists(st.sampled_from("xyz"), max_size=3, unique=True).map(tuple),
    weights=st.dictionaries(st.sampled_from("ab"), st.integers(0, 3), max_size=2),
)
conditions = st.builds(
    Condition,
    type=st.sampled_from(["Ready", "Other"]),
    status=st.sampled_from(list(ConditionStatus)),
    reason=st.just("Because"),
    last_transition_time=st.just(NOW),
)
statuses = st.builds(
    WidgetStatus,
    phase=st.none() | st.sampled_from(["Old", "New"]),
    count=st.none() | st.integers(0, 3),
    conditions=st.lists(conditions, max_size=2, unique_by=lambda condition: condition.type).map(tuple),
)


def with_unknown_fields(tree: dict[str, Any]) -> dict[str, Any]:
    return {**tree, "fromTheFuture": {"deep": [1, 2]}}


@given(before=specs, after=specs)
def test_the_patch_of_a_spec_leads_from_one_to_the_other_and_leaves_unknown_fields_alone(
    before: WidgetSpec, after: WidgetSpec
) -> None:
    observed, intended = replace(W, spec=before), replace(W, spec=after)
    patch = Patch(observed, intended).patch
    merged = merge.apply(with_unknown_fields(to_builtins(before)), patch.get("spec", {}))
    assert merged == with_unknown_fields(to_builtins(after))
    assert bool(patch) == (before != after)


@given(before=statuses, after=statuses)
def test_the_patch_of_a_status_leads_from_one_to_the_other_and_leaves_unknown_fields_alone(
    before: WidgetStatus, after: WidgetStatus
) -> None:
    patch = PatchStatus(replace(W, status=before), replace(W, status=after)).patch
    merged = merge.apply(with_unknown_fields(to_builtins(before)), to_builtins(patch))
    assert merged == with_unknown_fields(to_builtins(after))
    assert bool(patch) == (before != after)
