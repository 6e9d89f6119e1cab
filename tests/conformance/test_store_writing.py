"""create, patch and patch_status: what moves, what does not, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from quorate.api.meta import ObjectMeta
from quorate.api.struct import replace
from quorate.engine.store import Store
from quorate.errors import AlreadyExists, BadRequest, Conflict, Invalid, NotFound
from tests.conformance.making import changes, told, version_now, widget
from tests.support.kinds import Colour, Part, Widget, WidgetSpec, WidgetStatus


class TestCreate:
    async def test_defaults_are_filled_in(self, store: Store) -> None:
        made = await store.create(widget("a", parts=(Part(name="p"),)))
        assert made.spec.colour is Colour.RED
        assert made.spec.parts == (Part(name="p", count=1),)

    async def test_a_name_is_given_once(self, store: Store) -> None:
        first = await store.create(widget("a"))
        with pytest.raises(AlreadyExists) as caught:
            await store.create(widget("a", low=1))
        assert (caught.value.kind, caught.value.name) == ("widgets", "a")
        assert await store.get(Widget, "a") == first

    async def test_a_name_can_be_generated(self, store: Store) -> None:
        unnamed = Widget(metadata=ObjectMeta(generate_name="gen-"), spec=WidgetSpec(owner="me"))
        names = {(await store.create(unnamed)).name for _ in range(3)}
        assert len(names) == 3
        assert all(name.startswith("gen-") and len(name) == 9 for name in names)

    async def test_a_status_is_not_taken(self, store: Store) -> None:
        made = await store.create(replace(widget("a"), status=WidgetStatus(phase="Ready")))
        assert made.status == WidgetStatus()

    async def test_what_breaks_the_schema_is_refused_with_its_fields(self, store: Store) -> None:
        bad = WidgetSpec(owner="ME", low=-1)
        with pytest.raises(Invalid) as caught:
            await store.create(Widget(metadata=ObjectMeta(name="a"), spec=bad))
        causes = {(cause.field, cause.reason) for cause in caught.value.causes}
        assert causes == {("spec.owner", "FieldValueInvalid"), ("spec.low", "FieldValueInvalid")}

    async def test_a_bad_name_is_refused(self, store: Store) -> None:
        with pytest.raises(Invalid) as caught:
            await store.create(widget("Not_A_Name"))
        assert {(cause.field, cause.reason) for cause in caught.value.causes} == {
            ("metadata.name", "FieldValueInvalid")
        }

    async def test_a_dry_run_checks_everything_and_leaves_nothing(self, store: Store) -> None:
        before = await version_now(store)
        made = await store.create(widget("a"), dry_run=True)
        assert made.spec.colour is Colour.RED
        with pytest.raises(Invalid):
            await store.create(widget("b", low=-1), dry_run=True)
        with pytest.raises(NotFound):
            await store.get(Widget, "a")
        real = await store.create(widget("a"))
        with pytest.raises(AlreadyExists):
            await store.create(widget("a"), dry_run=True)
        assert told(await changes(store, before, 1)) == [("ADDED", "a")]
        assert await store.get(Widget, "a") == real


class TestGenerationAndVersion:
    @pytest.mark.parametrize(
        ("patch", "generation"),
        [
            ({"spec": {"low": 1}}, 2),
            ({"spec": {"low": 1}, "metadata": {"labels": {"a": "b"}}}, 2),
            ({"metadata": {"labels": {"a": "b"}}}, 1),
            ({"metadata": {"annotations": {"a": "b"}}}, 1),
            ({"metadata": {"finalizers": ["a.io/b"]}}, 1),
        ],
    )
    async def test_generation_moves_with_the_spec_only(
        self, store: Store, patch: dict[str, Any], generation: int
    ) -> None:
        made = await store.create(widget("a"))
        changed = await store.patch(Widget, "a", patch=patch)
        assert changed.metadata.generation == generation
        assert int(changed.metadata.resource_version) > int(made.metadata.resource_version)
        assert changed.metadata.uid == made.metadata.uid

    async def test_generation_does_not_move_with_the_status(self, store: Store) -> None:
        made = await store.create(widget("a"))
        changed = await store.patch_status(Widget, "a", patch={"phase": "x"})
        assert changed.metadata.generation == 1
        assert int(changed.metadata.resource_version) > int(made.metadata.resource_version)

    @pytest.mark.parametrize(
        "patch", [{}, {"spec": {"low": 1}}, {"metadata": {"labels": {"x": "y"}}}, {"spec": {"high": None}}]
    )
    async def test_a_write_that_changes_nothing_leaves_no_trace(self, store: Store, patch: dict[str, Any]) -> None:
        made = await store.create(widget("a", labels={"x": "y"}, low=1))
        assert await store.patch(Widget, "a", patch=patch) == made
        await store.create(widget("marker"))
        assert told(await changes(store, made.metadata.resource_version, 1)) == [("ADDED", "marker")]

    async def test_the_status_written_again_leaves_no_trace(self, store: Store) -> None:
        await store.create(widget("a"))
        first = await store.patch_status(Widget, "a", patch={"phase": "x"})
        assert await store.patch_status(Widget, "a", patch={"phase": "x"}) == first


class TestPatch:
    async def test_fields_are_merged_and_null_removes(self, store: Store) -> None:
        await store.create(widget("a", labels={"x": "1", "y": "2"}, low=1, high=2, weights={"a": 1}))
        patch = {"metadata": {"labels": {"x": None}}, "spec": {"low": None, "weights": {"b": 2}}}
        changed = await store.patch(Widget, "a", patch=patch)
        assert changed.metadata.labels == {"y": "2"}
        assert (changed.spec.low, changed.spec.high) == (None, 2)
        assert changed.spec.weights == {"a": 1, "b": 2}
        assert await store.get(Widget, "a") == changed

    async def test_lists_are_replaced_whole(self, store: Store) -> None:
        await store.create(widget("a", parts=(Part(name="p"), Part(name="q"))))
        changed = await store.patch(Widget, "a", patch={"spec": {"parts": [{"name": "r"}]}})
        assert changed.spec.parts == (Part(name="r", count=1),)

    async def test_a_removed_field_gets_its_default_again(self, store: Store) -> None:
        await store.create(widget("a", colour=Colour.GREEN))
        assert (await store.patch(Widget, "a", patch={"spec": {"colour": None}})).spec.colour is Colour.RED

    async def test_the_status_cannot_be_touched_here(self, store: Store) -> None:
        made = await store.create(widget("a"))
        assert await store.patch(Widget, "a", patch={"status": {"phase": "x"}}) == made

    async def test_nothing_else_can_be_touched_through_the_status(self, store: Store) -> None:
        await store.create(widget("a", low=1))
        changed = await store.patch_status(Widget, "a", patch={"phase": "x", "count": 3})
        assert (changed.status.phase, changed.status.count, changed.spec.low) == ("x", 3, 1)
        changed = await store.patch_status(Widget, "a", patch={"phase": None})
        assert (changed.status.phase, changed.status.count) == (None, 3)

    async def test_an_unknown_object_is_not_found(self, store: Store) -> None:
        with pytest.raises(NotFound):
            await store.patch(Widget, "a", patch={"spec": {"low": 1}})
        with pytest.raises(NotFound):
            await store.patch_status(Widget, "a", patch={"phase": "x"})

    @pytest.mark.parametrize(
        ("patch", "causes"),
        [
            ({"spec": {"low": -1}}, {("spec.low", "FieldValueInvalid")}),
            ({"spec": {"low": 2, "high": 1}}, {("spec", "FieldValueInvalid")}),
            ({"spec": {"owner": "you"}}, {("spec.owner", "FieldValueInvalid")}),
            ({"spec": {"nodeName": "n2"}}, {("spec.nodeName", "FieldValueInvalid")}),
            ({"spec": {"motto": "TODO"}}, {("spec.motto", "FieldValueInvalid")}),
            ({"spec": {"owner": None}}, {("spec.owner", "FieldValueRequired")}),
            ({"metadata": {"labels": {"a b": "c"}}}, {("metadata.labels", "FieldValueInvalid")}),
        ],
    )
    async def test_a_change_that_breaks_a_rule_is_refused_and_changes_nothing(
        self, store: Store, patch: dict[str, Any], causes: set[tuple[str, str]]
    ) -> None:
        made = await store.create(widget("a", node_name="n1"))
        with pytest.raises(Invalid) as caught:
            await store.patch(Widget, "a", patch=patch)
        found = {(cause.field, cause.reason) for cause in caught.value.causes}
        # A rule that the missing value was part of could not be looked at; the server says that too.
        assert causes <= found
        assert await store.get(Widget, "a") == made

    async def test_an_invalid_status_is_refused(self, store: Store) -> None:
        made = await store.create(widget("a"))
        with pytest.raises(Invalid) as caught:
            await store.patch_status(Widget, "a", patch={"count": -1})
        assert [(cause.field, cause.reason) for cause in caught.value.causes] == [("status.count", "FieldValueInvalid")]
        assert await store.get(Widget, "a") == made

    async def test_an_object_cannot_be_renamed(self, store: Store) -> None:
        await store.create(widget("a"))
        with pytest.raises(BadRequest):
            await store.patch(Widget, "a", patch={"metadata": {"name": "b"}})

    async def test_a_dry_run_shows_the_result_and_keeps_the_object(self, store: Store) -> None:
        made = await store.create(widget("a"))
        assert (await store.patch(Widget, "a", patch={"spec": {"low": 1}}, dry_run=True)).spec.low == 1
        assert (await store.patch_status(Widget, "a", patch={"phase": "x"}, dry_run=True)).status.phase == "x"
        with pytest.raises(Invalid):
            await store.patch(Widget, "a", patch={"spec": {"low": -1}}, dry_run=True)
        assert await store.get(Widget, "a") == made


class TestVersions:
    async def test_a_write_from_the_current_version_is_made(self, store: Store) -> None:
        made = await store.create(widget("a"))
        version = made.metadata.resource_version
        changed = await store.patch(Widget, "a", patch={"spec": {"low": 1}}, resource_version=version)
        again = await store.patch_status(
            Widget, "a", patch={"phase": "x"}, resource_version=changed.metadata.resource_version
        )
        assert (again.spec.low, again.status.phase) == (1, "x")

    async def test_a_write_from_a_stale_version_is_a_conflict_and_changes_nothing(self, store: Store) -> None:
        made = await store.create(widget("a"))
        changed = await store.patch(Widget, "a", patch={"spec": {"low": 1}})
        stale = made.metadata.resource_version
        for attempt in (
            store.patch(Widget, "a", patch={"spec": {"low": 2}}, resource_version=stale),
            store.patch_status(Widget, "a", patch={"phase": "x"}, resource_version=stale),
            store.patch(Widget, "a", patch={"spec": {"low": 1}}, resource_version=stale),
            store.patch(Widget, "a", patch={"metadata": {"labels": {"x": "y"}}}, resource_version=stale, dry_run=True),
        ):
            with pytest.raises(Conflict):
                await attempt
        assert await store.get(Widget, "a") == changed

    async def test_a_version_from_a_former_life_is_a_conflict(self, store: Store) -> None:
        former = await store.create(widget("a"))
        await store.delete(Widget, "a")
        made = await store.create(widget("a"))
        with pytest.raises(Conflict):
            await store.patch(
                Widget, "a", patch={"spec": {"low": 1}}, resource_version=former.metadata.resource_version
            )
        assert made.metadata.uid != former.metadata.uid
