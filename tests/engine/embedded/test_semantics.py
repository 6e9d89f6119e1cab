"""What a write does to an object: Kubernetes' rules as tables.

Every expectation here was compared with a kube-apiserver 1.36.3; the conformance suite does it again.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from quorate.engine import merge
from quorate.engine.embedded import FieldValidation, Record, semantics
from quorate.errors import ApiError, BadRequest, Conflict, InternalError, Invalid, TooLarge
from tests.engine.embedded.support import WIDGET, Tree, faults, rules_of, widget

NOW = datetime(2026, 1, 2, 3, 4, 5, 999_999, tzinfo=UTC)
RULES = rules_of(WIDGET)


def create(body: Any, *, validation: FieldValidation = FieldValidation.IGNORE) -> Record:
    received = semantics.received(RULES, body, validation=validation)
    return semantics.created(RULES, received.tree, version=7, now=NOW, uid="the-uid")


def update(old: Record, new: Any, *, status: bool = False, patch: bool = False) -> Record | None:
    before = old.tree
    received = semantics.received(RULES, new(before) if callable(new) else new, before, patch=patch)
    return semantics.updated(RULES, old, before, received.tree, version=8, status=status, patch=patch)


def patched(old: Record, patch: Tree, *, status: bool = False) -> Record | None:
    return update(old, lambda before: merge.apply(before, patch), status=status, patch=True)


class TestCreate:
    def test_fills_in_what_the_server_decides(self) -> None:
        sent = widget(
            metadata={
                "uid": "mine",
                "generation": 9,
                "creationTimestamp": "2020-01-01T00:00:00Z",
                "deletionTimestamp": "2020-01-01T00:00:00Z",
                "deletionGracePeriodSeconds": 3,
                "labels": {"a": "b"},
            },
            status={"phase": "Ready"},
        )
        assert create(sent).tree == {
            "apiVersion": "test.quorate.io/v1",
            "kind": "Widget",
            "metadata": {
                "name": "w",
                "labels": {"a": "b"},
                "uid": "the-uid",
                "creationTimestamp": "2026-01-02T03:04:05Z",
                "generation": 1,
                "resourceVersion": "7",
            },
            "spec": {"owner": "me", "colour": "Red"},
        }

    def test_gives_bytes_and_type_of_the_same_object(self) -> None:
        record = create(widget())
        assert (record.name, record.version, record.typed.metadata.resource_version) == ("w", 7, "7")
        assert record.typed.metadata.creation_timestamp == NOW.replace(microsecond=0)

    @pytest.mark.parametrize(
        ("body", "complaint"),
        [
            (None, "an object was expected"),
            ([], "an object was expected"),
            ({**widget(), "kind": ""}, "'Kind' is missing"),
            ({**widget(), "apiVersion": "test.quorate.io/v2"}, r"\(test.quorate.io/v2\) does not match the expected"),
            ({**widget(), "apiVersion": None}, r"\(\) does not match the expected"),
            ({**widget(), "metadata": "x"}, "metadata: expected an object"),
            (widget(metadata={"labels": {"a": 1}}), "metadata.labels.a: expected text"),
        ],
    )
    def test_of_what_is_no_such_object_is_a_bad_request(self, body: Any, complaint: str) -> None:
        with pytest.raises(BadRequest, match=complaint):
            create(body)

    @pytest.mark.parametrize(
        ("body", "found"),
        [
            (widget(""), {("metadata.name", "Required")}),
            ({**widget(), "metadata": None}, {("metadata.name", "Required")}),
            (widget("Bad_Name"), {("metadata.name", "Invalid")}),
            (widget(metadata={"generateName": "Bad-"}), {("metadata.generateName", "Invalid")}),
            ({**widget(), "kind": "Gadget"}, {("kind", "Invalid")}),
            (widget(metadata={"labels": {"a b": ""}}), {("metadata.labels", "Invalid")}),
            (
                widget("Bad_Name", {"owner": "ME", "low": -1, "colour": "Blue"}),
                {
                    ("metadata.name", "Invalid"),
                    ("spec.owner", "Invalid"),
                    ("spec.low", "Invalid"),
                    ("spec.colour", "NotSupported"),
                },
            ),
        ],
    )
    def test_of_a_faulty_object_names_every_fault(self, body: Tree, found: set[tuple[str, str]]) -> None:
        with pytest.raises(Invalid) as caught:
            create(body)
        assert faults(caught.value) == found

    def test_of_a_dash_ended_prefix_is_fine(self) -> None:
        assert create(widget(metadata={"generateName": "w-"})).typed.metadata.generate_name == "w-"

    def test_of_an_object_beyond_the_limit_is_refused(self) -> None:
        with pytest.raises(TooLarge, match="are allowed"):
            create(widget(spec={"owner": "me", "motto": "x" * semantics.OBJECT_LIMIT}))


class TestUnknownFields:
    BODY = widget(
        spec={"owner": "me", "foo": 1, "parts": [{"name": "a", "bar": 2}]}, metadata={"zzz": 1}, extra={"deep": [1]}
    )
    COMPLAINTS = (
        'unknown field "metadata.zzz"',
        'unknown field "extra"',
        'unknown field "spec.foo"',
        'unknown field "spec.parts[0].bar"',
    )

    def test_are_dropped(self) -> None:
        tree = create(self.BODY).tree
        assert tree["spec"] == {"owner": "me", "parts": [{"name": "a", "count": 1}], "colour": "Red"}
        assert "extra" not in tree
        assert "zzz" not in tree["metadata"]

    @pytest.mark.parametrize(
        ("validation", "warnings"), [(FieldValidation.WARN, COMPLAINTS), (FieldValidation.IGNORE, ())]
    )
    def test_are_warned_of_when_asked(self, validation: FieldValidation, warnings: tuple[str, ...]) -> None:
        assert semantics.received(RULES, self.BODY, validation=validation).warnings == warnings

    def test_are_refused_when_asked_to_be_strict(self) -> None:
        with pytest.raises(BadRequest, match="strict decoding error: duplicate field") as caught:
            semantics.received(
                RULES, self.BODY, validation=FieldValidation.STRICT, problems=('duplicate field "spec.owner"',)
            )
        assert caught.value.message.endswith(", ".join(('duplicate field "spec.owner"', *self.COMPLAINTS)))

    def test_are_invalid_in_a_strict_patch(self) -> None:
        before = create(widget()).tree
        with pytest.raises(Invalid) as caught:
            semantics.received(RULES, {**before, "extra": 1}, before, patch=True, validation=FieldValidation.STRICT)
        assert faults(caught.value) == {("patch", "Invalid")}


class TestUpdate:
    @pytest.mark.parametrize(
        "patch",
        [
            {},
            {"spec": {"owner": "me"}},
            {"spec": {"colour": None}},
            {"spec": {"unknown": 1}},
            {"status": {"phase": "Ready"}},
            {"metadata": {"generation": 99}},
            {"metadata": {"creationTimestamp": "2020-01-01T00:00:00Z"}},
            {"metadata": {"namespace": "default"}},
            {"metadata": {"uid": None}},
            {"metadata": {"labels": {}}},
        ],
    )
    def test_that_changes_nothing_is_none(self, patch: Tree) -> None:
        assert patched(create(widget()), patch) is None

    @pytest.mark.parametrize(
        ("patch", "generation"),
        [
            ({"spec": {"low": 1}}, 2),
            ({"metadata": {"labels": {"a": "b"}}}, 1),
            ({"metadata": {"finalizers": ["x.io/y"]}, "status": {"phase": "Ready"}}, 1),
            ({"metadata": {"labels": {"a": "b"}}, "spec": {"low": 1}}, 2),
        ],
    )
    def test_moves_the_generation_when_more_than_metadata_changes(self, patch: Tree, generation: int) -> None:
        record = patched(create(widget()), patch)
        assert record is not None
        assert (record.version, record.typed.metadata.generation) == (8, generation)
        assert "status" not in record.tree

    def test_takes_true_for_something_else_than_one(self) -> None:
        with pytest.raises(Invalid) as caught:
            patched(create(widget(spec={"owner": "me", "low": 1})), {"spec": {"low": True}})
        assert faults(caught.value) == {("spec.low", "TypeInvalid")}

    @pytest.mark.parametrize(
        ("change", "error"),
        [
            ({"metadata": {"name": "other"}}, BadRequest),
            ({"metadata": {"name": None}}, BadRequest),
            ({"metadata": None}, BadRequest),
            ({"metadata": {"resourceVersion": "6"}}, Conflict),
            ({"metadata": {"resourceVersion": "99"}}, Conflict),
            ({"metadata": {"resourceVersion": "x"}}, InternalError),
            ({"metadata": {"resourceVersion": None}}, Invalid),
            ({"metadata": {"resourceVersion": "0"}}, Invalid),
            ({"metadata": {"uid": "other"}}, Invalid),
            ({"metadata": {"deletionTimestamp": "2020-01-01T00:00:00Z"}}, Invalid),
            ({"kind": "Gadget"}, Invalid),
            ({"kind": None}, Invalid),
            ({"apiVersion": "test.quorate.io/v2"}, Invalid),
            ({"spec": None}, Invalid),
            ({"metadata": {"labels": {"a b": ""}}}, Invalid),
        ],
    )
    def test_by_patch_is_refused(self, change: Tree, error: type[ApiError]) -> None:
        with pytest.raises(error):
            patched(create(widget()), change)

    @pytest.mark.parametrize(
        ("change", "error"),
        [
            ({"metadata": {"uid": "other"}}, Conflict),
            ({"kind": None}, BadRequest),
            ({"apiVersion": "test.quorate.io/v2"}, BadRequest),
            ({"metadata": "x"}, BadRequest),
        ],
    )
    def test_by_put_is_refused_differently(self, change: Tree, error: type[ApiError]) -> None:
        with pytest.raises(error):
            update(create(widget()), lambda before: merge.apply(before, change))

    def test_without_a_version_names_the_field(self) -> None:
        with pytest.raises(Invalid) as caught:
            update(create(widget()), widget())
        assert faults(caught.value) == {("metadata.resourceVersion", "Invalid")}
        assert caught.value.message == (
            'widgets.test.quorate.io "w" is invalid: metadata.resourceVersion: Invalid value: 0:'
            " must be specified for an update"
        )

    def test_on_an_old_state_is_a_conflict_in_kubernetes_words(self) -> None:
        with pytest.raises(Conflict) as caught:
            patched(create(widget()), {"metadata": {"resourceVersion": "6"}})
        assert caught.value.message == (
            'Operation cannot be fulfilled on widgets.test.quorate.io "w": the object has been modified;'
            " please apply your changes to the latest version and try again"
        )

    def test_forgives_what_it_did_not_touch(self) -> None:
        # Stored before the schema had its bounds, say.
        old = create(widget(spec={"owner": "me", "parts": [{"name": "a"}, {"name": "b"}]}))
        before = old.tree
        before["spec"]["parts"] = [{"name": "a", "count": 500}, {"name": "b", "count": 1}]
        before["spec"]["motto"] = "TODO"
        new = merge.apply(
            before, {"spec": {"low": 1, "parts": [{"name": "b", "count": 2}, before["spec"]["parts"][0]]}}
        )
        _, found = RULES.schema.judge(b"{}", new, before, None)
        assert [cause.field for cause in found if cause.field != "<nil>"] == []
        new["spec"]["parts"][1] = {"name": "a", "count": 501}
        _, found = RULES.schema.judge(b"{}", new, before, None)
        assert [cause.field for cause in found if cause.field != "<nil>"] == ["spec.parts[1].count"]


class TestStatus:
    def test_changes_alone(self) -> None:
        old = create(widget(metadata={"labels": {"a": "b"}}))
        patch = {
            "status": {"count": 1},
            "spec": {"low": 5},
            "metadata": {"labels": {"c": "d"}, "finalizers": ["x.io/y"]},
        }
        record = patched(old, patch, status=True)
        assert record is not None
        before = old.tree
        assert record.tree == {
            **before,
            "metadata": {**before["metadata"], "resourceVersion": "8"},
            "status": {"count": 1},
        }

    def test_can_be_removed(self) -> None:
        with_status = patched(create(widget()), {"status": {"count": 1}}, status=True)
        assert with_status is not None
        without = patched(with_status, {"status": None}, status=True)
        assert without is not None
        assert "status" not in without.tree

    def test_that_is_the_same_is_none(self) -> None:
        with_status = patched(create(widget()), {"status": {"count": 1}}, status=True)
        assert with_status is not None
        assert patched(with_status, {"status": {"count": 1}, "spec": {"low": 3}}, status=True) is None

    def test_faults_are_named_from_the_object_down(self) -> None:
        with pytest.raises(Invalid) as caught:
            patched(create(widget()), {"status": {"count": -1, "conditions": [{"type": "Ready"}]}}, status=True)
        assert faults(caught.value) == {
            ("status.count", "Invalid"),
            ("status.conditions[0].status", "Required"),
            ("status.conditions[0].reason", "Required"),
            ("status.conditions[0].lastTransitionTime", "Required"),
        }


class TestDeletion:
    def test_is_marked_with_a_time_and_a_generation(self) -> None:
        old = create(widget(metadata={"finalizers": ["x.io/y"]}))
        marked = semantics.marked_deleted(RULES, old, version=8, now=NOW)
        assert marked is not None
        meta = marked.tree["metadata"]
        assert (meta["deletionTimestamp"], meta["deletionGracePeriodSeconds"], meta["generation"]) == (
            "2026-01-02T03:04:05Z",
            0,
            2,
        )
        assert semantics.marked_deleted(RULES, marked, version=9, now=NOW) is None

    def test_cannot_be_taken_back(self) -> None:
        marked = semantics.marked_deleted(
            RULES, create(widget(metadata={"finalizers": ["x.io/y"]})), version=8, now=NOW
        )
        assert marked is not None
        for patch in ({"deletionTimestamp": None}, {"deletionGracePeriodSeconds": None}):
            assert patched(marked, {"metadata": patch}) is None

    def test_lets_no_new_finalizer_in(self) -> None:
        marked = semantics.marked_deleted(
            RULES, create(widget(metadata={"finalizers": ["x.io/y"]})), version=8, now=NOW
        )
        assert marked is not None
        with pytest.raises(Invalid) as caught:
            patched(marked, {"metadata": {"finalizers": ["x.io/y", "x.io/z"]}})
        assert faults(caught.value) == {("metadata.finalizers", "Forbidden")}

    @pytest.mark.parametrize(("uid", "version"), [("other", None), (None, "6"), ("the-uid", "6")])
    def test_of_another_object_is_a_conflict(self, uid: str | None, version: str | None) -> None:
        with pytest.raises(
            Conflict, match=r"Widget.test.quorate.io \"w\": the (UID|ResourceVersion) in the precondition"
        ):
            semantics.check_deletion(create(widget()), uid=uid, resource_version=version)

    def test_of_the_object_that_was_meant_is_allowed(self) -> None:
        semantics.check_deletion(create(widget()), uid="the-uid", resource_version="7")
