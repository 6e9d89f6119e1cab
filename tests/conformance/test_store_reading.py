"""get and list."""

from __future__ import annotations

import pytest

from quorate.engine.selectors import Selector, match, parse_fields, parse_labels
from quorate.engine.store import Store
from quorate.errors import BadRequest, Invalid, NotFound
from tests.conformance.making import gadget, widget
from tests.support.kinds import Gadget, Widget


async def test_what_was_created_is_read_back(store: Store) -> None:
    made = await store.create(widget("a", labels={"x": "y"}, low=1))
    assert await store.get(Widget, "a") == made
    metadata = made.metadata
    assert (metadata.name, metadata.generation, metadata.labels) == ("a", 1, {"x": "y"})
    assert metadata.uid
    assert int(metadata.resource_version) > 0
    assert metadata.creation_timestamp is not None
    assert metadata.deletion_timestamp is None


async def test_what_is_not_there_is_not_found(store: Store) -> None:
    with pytest.raises(NotFound) as caught:
        await store.get(Widget, "missing")
    assert (caught.value.group, caught.value.kind, caught.value.name) == ("test.quorate.io", "widgets", "missing")
    assert str(caught.value) == 'widgets.test.quorate.io "missing" not found'


async def test_a_list_is_sorted_and_has_a_version(store: Store) -> None:
    empty = await store.list(Widget)
    assert empty.items == ()
    made = [await store.create(widget(name)) for name in ("b", "a", "c")]
    found = await store.list(Widget)
    assert [each.name for each in found.items] == ["a", "b", "c"]
    assert found.items[1] == made[0]
    assert int(found.resource_version) >= int(made[-1].metadata.resource_version)
    assert int(empty.resource_version) < int(made[0].metadata.resource_version)
    assert found.undecodable == ()


async def test_namespaces_keep_equal_names_apart(store: Store) -> None:
    await store.create(gadget("g", low=1))
    await store.create(gadget("g", "kube-system", low=2))
    assert (await store.get(Gadget, "g", "default")).spec.low == 1
    assert (await store.get(Gadget, "g", "kube-system")).spec.low == 2
    found = await store.list(Gadget)
    assert [(each.namespace, each.name) for each in found.items] == [("default", "g"), ("kube-system", "g")]
    assert [each.spec.low for each in (await store.list(Gadget, namespace="kube-system")).items] == [2]
    assert (await store.list(Gadget, namespace="nowhere")).items == ()


async def test_an_object_of_a_namespaced_kind_needs_a_namespace(store: Store) -> None:
    with pytest.raises(Invalid) as caught:
        await store.create(gadget("g", ""))
    assert ("metadata.namespace", "FieldValueRequired") in {(each.field, each.reason) for each in caught.value.causes}
    with pytest.raises(NotFound):
        await store.create(gadget("g", "nowhere"))
    await store.create(gadget("g"))
    for attempt in (
        store.get(Gadget, "g"),
        store.patch(Gadget, "g", patch={"spec": {"low": 1}}),
        store.patch_status(Gadget, "g", patch={"phase": "x"}),
        store.delete(Gadget, "g"),
    ):
        # Not "not found", which would be taken for "gone".
        with pytest.raises(BadRequest):
            await attempt


async def test_a_namespace_says_nothing_of_an_object_that_has_none(store: Store) -> None:
    made = await store.create(widget("a"))
    assert await store.get(Widget, "a", "default") == made
    assert (await store.list(Widget, namespace="default")).items == (made,)
    with pytest.raises(BadRequest):
        await store.get(Widget, "")


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        ("tier=gold", "ab"),
        ("tier!=gold", "cd"),
        ("tier in (gold,silver)", "abc"),
        ("tier notin (gold)", "cd"),
        ("tier", "abc"),
        ("!tier", "d"),
        ("tier=gold,zone", "a"),
        ("zone>5", "c"),
        ("zone<5", "a"),
        ("tier=", ""),
    ],
)
async def test_labels_select(store: Store, selector: str, names: str) -> None:
    await store.create(widget("a", labels={"tier": "gold", "zone": "1"}))
    await store.create(widget("b", labels={"tier": "gold"}))
    await store.create(widget("c", labels={"tier": "silver", "zone": "22"}))
    await store.create(widget("d"))
    found = await store.list(Widget, labels=parse_labels(selector))
    assert "".join(each.name for each in found.items) == names


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        ("metadata.name=a", "a"),
        ("metadata.name!=a", "bc"),
        ("spec.nodeName=n1", "a"),
        ("spec.nodeName!=n1", "bc"),
        ("spec.nodeName=", "c"),
        ("spec.nodeName=n1,metadata.name=b", ""),
    ],
)
async def test_fields_select(store: Store, selector: str, names: str) -> None:
    await store.create(widget("a", node_name="n1"))
    await store.create(widget("b", node_name="n2"))
    await store.create(widget("c"))
    found = await store.list(Widget, fields=parse_fields(selector))
    assert "".join(each.name for each in found.items) == names


async def test_a_field_that_was_not_declared_selectable_is_refused(store: Store) -> None:
    with pytest.raises(BadRequest):
        await store.list(Widget, fields=match({"spec.owner": "me"}))


async def test_labels_and_fields_select_together(store: Store) -> None:
    await store.create(widget("a", labels={"x": "1"}, node_name="n1"))
    await store.create(widget("b", labels={"x": "1"}))
    found = await store.list(Widget, labels=match({"x": "1"}), fields=match({"spec.nodeName": "n1"}))
    assert [each.name for each in found.items] == ["a"]
    assert len((await store.list(Widget, labels=Selector())).items) == 2
