"""The verbs, from the outside."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from quorate.api.core import Lease, Namespace, Node
from quorate.api.kind import Kind
from quorate.api.meta import ObjectMeta
from quorate.engine.embedded import EmbeddedStore, FieldValidation, parse_version
from quorate.engine.selectors import parse_fields, parse_labels
from quorate.engine.store import Store
from quorate.errors import (
    AlreadyExists,
    BadRequest,
    Conflict,
    Forbidden,
    InternalError,
    Invalid,
    NotFound,
    StorageFailure,
)
from tests.engine.embedded.support import GADGET, NAMESPACE, WIDGET, gadget, open_store, widget
from tests.support.kinds import Gadget, Widget, WidgetSpec


@pytest.fixture
async def store() -> AsyncIterator[EmbeddedStore]:
    opened = await open_store()
    yield opened
    await opened.close()


async def make(store: Store, name: str = "w", **spec: Any) -> Widget:
    return await store.create(Widget(metadata=ObjectMeta(name=name), spec=WidgetSpec(owner="me", **spec)))


class TestTyped:
    async def test_what_is_created_can_be_read(self, store: EmbeddedStore) -> None:
        made = await make(store, low=1)
        assert await store.get(Widget, "w") == made
        assert made.metadata.generation == 1
        assert made.spec.low == 1

    async def test_a_patch_merges_and_a_status_patch_leaves_the_rest(self, store: EmbeddedStore) -> None:
        await make(store, low=1, motto="keep")
        changed = await store.patch(Widget, "w", patch={"spec": {"low": 2}, "status": {"phase": "no"}})
        assert (changed.spec.low, changed.spec.motto, changed.status.phase) == (2, "keep", None)
        reported = await store.patch_status(Widget, "w", patch={"phase": "Ready", "count": 1})
        assert (reported.spec, reported.status.phase, reported.metadata.generation) == (changed.spec, "Ready", 2)
        assert (await store.patch_status(Widget, "w", patch={"phase": None})).status.count == 1

    async def test_a_patch_on_an_old_version_conflicts(self, store: EmbeddedStore) -> None:
        made = await make(store)
        version = made.metadata.resource_version
        await store.patch(Widget, "w", patch={"spec": {"low": 1}}, resource_version=version)
        with pytest.raises(Conflict):
            await store.patch(Widget, "w", patch={"spec": {"low": 2}}, resource_version=version)
        with pytest.raises(Conflict):
            await store.patch_status(Widget, "w", patch={"phase": "x"}, resource_version=version)
        assert (await store.get(Widget, "w")).spec.low == 1

    async def test_a_write_that_changes_nothing_leaves_the_version_alone(self, store: EmbeddedStore) -> None:
        made = await make(store, low=1)
        before = store.resource_version
        assert await store.patch(Widget, "w", patch={"spec": {"low": 1}}) == made
        assert store.resource_version == before

    async def test_a_dry_run_answers_and_stores_nothing(self, store: EmbeddedStore) -> None:
        before = store.resource_version
        body = Widget(metadata=ObjectMeta(name="d"), spec=WidgetSpec(owner="me"))
        assert (await store.create(body, dry_run=True)).metadata.resource_version == ""
        made = await make(store)
        dry = await store.patch(Widget, "w", patch={"spec": {"low": 3}}, dry_run=True)
        assert (dry.spec.low, dry.metadata.resource_version) == (3, made.metadata.resource_version)
        assert await store.delete(Widget, "w", dry_run=True) is None
        assert await store.get(Widget, "w") == made
        assert store.resource_version == before + 1

    async def test_a_list_is_sorted_and_selected(self, store: EmbeddedStore) -> None:
        for name, labels in (("c", {"a": "1"}), ("a", {"a": "1"}), ("b", {"a": "2"})):
            await store.create_raw(WIDGET, widget(name, metadata={"labels": labels}))
        listed = await store.list(Widget)
        assert [item.name for item in listed.items] == ["a", "b", "c"]
        assert listed.resource_version == str(store.resource_version)
        assert [item.name for item in (await store.list(Widget, labels=parse_labels("a=1"))).items] == ["a", "c"]

    async def test_deletion_waits_for_finalizers(self, store: EmbeddedStore) -> None:
        await make(store)
        await store.patch(Widget, "w", patch={"metadata": {"finalizers": ["x.io/a", "x.io/b"]}})
        held = await store.delete(Widget, "w")
        assert held is not None
        assert held.deleting
        assert await store.delete(Widget, "w") == held
        with pytest.raises(AlreadyExists, match="object is being deleted"):
            await make(store)
        await store.patch(Widget, "w", patch={"metadata": {"finalizers": ["x.io/b"]}})
        await store.patch(Widget, "w", patch={"metadata": {"finalizers": None}})
        with pytest.raises(NotFound):
            await store.get(Widget, "w")

    async def test_deletion_can_be_of_one_incarnation_only(self, store: EmbeddedStore) -> None:
        made = await make(store)
        with pytest.raises(Conflict):
            await store.delete(Widget, "w", uid="another")
        with pytest.raises(Conflict):
            await store.delete(Widget, "w", resource_version="1")
        meta = made.metadata
        assert await store.delete(Widget, "w", uid=meta.uid, resource_version=meta.resource_version) is None
        with pytest.raises(NotFound):
            await store.delete(Widget, "w")


class TestRaw:
    async def test_a_name_is_generated_and_free(self, store: EmbeddedStore) -> None:
        names = set()
        for _ in range(20):
            body = {**widget(), "metadata": {"generateName": "x" * 60}}
            names.add((await store.create_raw(WIDGET, body)).record.name)
        assert len(names) == 20
        assert all(name.startswith("x" * 58) and len(name) == 63 for name in names)

    async def test_a_taken_name_is_refused_after_the_object_was_judged(self, store: EmbeddedStore) -> None:
        await store.create_raw(WIDGET, widget())
        with pytest.raises(AlreadyExists, match=r'widgets.test.quorate.io "w" already exists'):
            await store.create_raw(WIDGET, widget())
        with pytest.raises(Invalid):
            await store.create_raw(WIDGET, widget(spec={"owner": ""}))

    async def test_a_version_cannot_be_brought_along(self, store: EmbeddedStore) -> None:
        with pytest.raises(InternalError, match="should not be set"):
            await store.create_raw(WIDGET, widget(metadata={"resourceVersion": "5"}))

    async def test_warnings_come_with_the_answer(self, store: EmbeddedStore) -> None:
        body = widget(spec={"owner": "me", "foo": 1}, metadata={"finalizers": ["plain"]})
        written = await store.create_raw(WIDGET, body)
        assert [warning.split(":")[0] for warning in written.warnings] == [
            'unknown field "spec.foo"',
            "metadata.finalizers",
        ]
        strict = FieldValidation.STRICT
        with pytest.raises(BadRequest, match="strict decoding error"):
            await store.create_raw(WIDGET, {**body, "metadata": {"name": "s"}}, field_validation=strict)
        with pytest.raises(BadRequest, match='duplicate field "a"'):
            await store.create_raw(WIDGET, widget("s"), field_validation=strict, problems=('duplicate field "a"',))

    @pytest.mark.parametrize(
        "body",
        [
            widget("\ud800"),
            widget(metadata={"labels": {"a": "\udfff"}}),
            widget(metadata={"annotations": {"a": "\udfff"}}),
            widget(spec={"owner": "me", "motto": "\ud800"}),
        ],
    )
    async def test_text_that_is_not_unicode_is_refused(self, store: EmbeddedStore, body: dict[str, Any]) -> None:
        with pytest.raises(BadRequest, match="not Unicode"):
            await store.create_raw(WIDGET, body)

    async def test_text_that_is_not_unicode_is_refused_in_an_update(self, store: EmbeddedStore) -> None:
        await store.create_raw(WIDGET, widget())
        with pytest.raises(Invalid, match="not Unicode"):
            await store.patch(Widget, "w", patch={"spec": {"motto": "\ud800"}})

    async def test_a_change_must_not_make_another_object(self, store: EmbeddedStore) -> None:
        await store.create_raw(WIDGET, widget())
        with pytest.raises(BadRequest, match="does not match the name on the URL"):
            await store.update_raw(WIDGET, "w", lambda current: {**current, "metadata": {"name": "v"}})

    async def test_a_kind_that_is_not_served_is_not_found(self, store: EmbeddedStore) -> None:
        for kind in (Lease.KIND, Node.KIND):
            with pytest.raises(NotFound, match="could not find the requested resource"):
                store.read(kind, "x")
            with pytest.raises(NotFound, match="could not find the requested resource"):
                await store.create_raw(kind, {})
        with pytest.raises(NotFound, match="could not find the requested resource"):
            await store.update_raw(WIDGET, "w", lambda current: current, subresource="scale")

    async def test_what_is_nested_too_deeply_is_refused(self) -> None:
        store = await open_store(kinds=(Node.KIND,))
        deep: Any = 1
        for _ in range(100_000):
            deep = [deep]
        with pytest.raises(BadRequest, match="nested too deeply"):
            await store.create_raw(
                Node.KIND, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "spec": {"deep": deep}}
            )

    async def test_kubernetes_own_kinds_have_no_generation_and_may_be_overwritten_blindly(self) -> None:
        store = await open_store(kinds=(Node.KIND, Lease.KIND, NAMESPACE))
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {"capacity": {"cpu": "4"}}}
        made = await store.create_raw(Node.KIND, node)
        assert made.record.tree["status"] == {"capacity": {"cpu": "4"}}
        assert "generation" not in made.record.tree["metadata"]
        labelled = {**node, "metadata": {"name": "n", "labels": {"a": "b"}}}
        assert (await store.update_raw(Node.KIND, "n", lambda _: labelled)).record.typed.metadata.labels == {"a": "b"}
        lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"}, "spec": {}}
        await store.create_raw(Lease.KIND, lease, namespace="default")
        with pytest.raises(Invalid, match="must be specified for an update"):
            await store.update_raw(Lease.KIND, "l", lambda _: lease, namespace="default")
        with pytest.raises(NotFound):
            await store.update_raw(Lease.KIND, "l", lambda it: it, namespace="default", subresource="status")

    @pytest.mark.parametrize(
        ("kind", "selector"), [(WIDGET, "spec.owner=x"), (WIDGET, "metadata.namespace=x"), (GADGET, "spec.nodeName=x")]
    )
    async def test_a_field_that_cannot_be_selected_is_refused(
        self, store: EmbeddedStore, kind: Kind, selector: str
    ) -> None:
        with pytest.raises(BadRequest, match="field label not supported"):
            store.read_page(kind, fields=parse_fields(selector))
        with pytest.raises(BadRequest, match="field label not supported"):
            store.subscribe(kind, resource_version=None, fields=parse_fields(selector))

    @pytest.mark.parametrize(
        ("selector", "names"),
        [
            ("spec.nodeName=n1", ["a"]),
            ("spec.nodeName=", ["b"]),
            ("spec.nodeName!=n1", ["b"]),
            ("metadata.name=b", ["b"]),
            ("metadata.name=a,spec.nodeName=n1", ["a"]),
        ],
    )
    async def test_fields_select(self, store: EmbeddedStore, selector: str, names: list[str]) -> None:
        await store.create_raw(WIDGET, widget("a", {"owner": "me", "nodeName": "n1"}))
        await store.create_raw(WIDGET, widget("b"))
        page = store.read_page(WIDGET, fields=parse_fields(selector))
        assert [record.name for record in page.records] == names


class TestNamespaces:
    async def test_the_first_ones_are_there(self, store: EmbeddedStore) -> None:
        page = store.read_page(NAMESPACE)
        assert [record.name for record in page.records] == [
            *("default", "kube-node-lease", "kube-public", "kube-system", "quorate-system")
        ]
        default = await store.get(Namespace, "default")
        assert (default.status.phase, default.metadata.labels) == ("Active", {"kubernetes.io/metadata.name": "default"})

    async def test_an_object_needs_its_namespace(self, store: EmbeddedStore) -> None:
        await store.create_raw(GADGET, gadget(), namespace="default")
        assert store.read(GADGET, "g", "default").typed.namespace == "default"
        with pytest.raises(NotFound, match='namespaces "nowhere" not found'):
            await store.create_raw(GADGET, gadget(), namespace="nowhere")
        with pytest.raises(BadRequest, match="does not match the namespace sent"):
            await store.create_raw(GADGET, gadget(namespace="default"), namespace="kube-system")
        with pytest.raises(Invalid, match=r"metadata.namespace: Required value"):
            await store.create_raw(GADGET, gadget())

    async def test_a_name_is_a_label(self, store: EmbeddedStore) -> None:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a.b"}}
        with pytest.raises(Invalid, match="RFC 1123 label"):
            await store.create_raw(NAMESPACE, body)

    async def test_some_may_not_be_deleted(self, store: EmbeddedStore) -> None:
        with pytest.raises(Forbidden, match="this namespace may not be deleted"):
            await store.delete(Namespace, "default")

    async def test_deletion_takes_the_content_along(self, store: EmbeddedStore) -> None:
        await store.create_raw(NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
        await store.create_raw(GADGET, gadget("free"), namespace="team")
        held = gadget("held")
        held["metadata"]["finalizers"] = ["x.io/y"]
        await store.create_raw(GADGET, held, namespace="team")
        await store.create_raw(GADGET, gadget("other"), namespace="default")
        marked = await store.delete(Namespace, "team")
        assert marked is not None
        assert marked.status.phase == "Terminating"
        assert [record.name for record in store.read_page(GADGET).records] == ["other", "held"]
        with pytest.raises(Forbidden, match="it is being terminated") as caught:
            await store.create_raw(GADGET, gadget("new"), namespace="team")
        assert caught.value.causes[0].reason == "NamespaceTerminating"
        await store.patch(Gadget, "held", "team", patch={"metadata": {"finalizers": None}})
        with pytest.raises(NotFound):
            store.read(NAMESPACE, "team")

    async def test_deletion_of_an_empty_one_is_immediate(self, store: EmbeddedStore) -> None:
        await store.create_raw(NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
        assert await store.delete(Namespace, "team") is None


@pytest.mark.parametrize(("text", "version"), [("", 0), ("0", 0), ("17", 17), ("18446744073709551615", 2**64 - 1)])
def test_a_version_is_a_number(text: str, version: int) -> None:
    assert parse_version(text) == version


@pytest.mark.parametrize("text", ["x", "-1", "+1", " 1", "1_0", "²", "1" * 5000])
def test_anything_else_is_no_version(text: str) -> None:
    with pytest.raises(BadRequest, match="invalid resource version"):
        parse_version(text)


async def test_a_closed_store_takes_no_writes() -> None:
    store = await open_store()
    await store.close()
    await store.close()
    with pytest.raises(StorageFailure, match="is closed"):
        await store.create_raw(WIDGET, widget())
